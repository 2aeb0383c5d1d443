"""What one agent process may use. Each limit is the kernel's own, and holds for each process by itself."""

from __future__ import annotations

import resource
from dataclasses import dataclass, fields
from typing import Final

MIB: Final = 1024 * 1024

RANGES: Final = {
    "cpu_s": (1, 10_000_000),
    "memory_mb": (64, 16_000_000),
    "file_mb": (1, 16_000_000),
    "files": (16, 1_000_000),
    "processes": (1, 4_000_000),
}
"""The least and the most that each limit can be set to."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a process may use; None for no limit but that of the service itself, which none of these can raise.

    They hold for each process, not for all processes of an agent together: those take the limits of a control group
    or of a container around the service. No process leaves a core file, whatever is set here.

    Attributes:
        cpu_s: processor seconds of all its threads from start to end, 1 to 10,000,000. At the limit it gets SIGXCPU,
            and a second later SIGKILL. None by default: an agent that is kept plays for hours.
        memory_mb: writable private memory in MiB (RLIMIT_DATA), 64 to 16,000,000. Not the size of the address space:
            the runtimes of Java, Go and JavaScript reserve far more of that than they ever use, and would not start.
            Memory shared with others and files that are mapped do not count.
        file_mb: how large a file it may write, in MiB, 1 to 16,000,000. Of such files it may write several.
        files: how many files and sockets it may have open at once, 16 to 1,000,000.
        processes: how many processes and threads its *user* may have when it starts another one, 1 to 4,000,000. All
            others of that user count too, the service's included, and root is not bound at all: no defence against a
            fork bomb, and none by default.
    """

    cpu_s: int | None = None
    memory_mb: int | None = 4096
    file_mb: int | None = 1024
    files: int | None = 1024
    processes: int | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for a limit out of range, naming it."""
        for name in (field.name for field in fields(self)):
            least, most = RANGES[name]
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not least <= value <= most):
                raise ValueError(f"limit {name} must be a whole number from {least} to {most}, or none; not {value!r}")

    def resources(self) -> list[tuple[int, int, int]]:
        """Returns the limits as the launcher takes them: number of the resource, soft limit, hard limit."""
        found = [(resource.RLIMIT_CORE, 0, 0)]
        if self.cpu_s is not None:
            found.append((resource.RLIMIT_CPU, self.cpu_s, self.cpu_s + 1))
        for number, value in (
            (resource.RLIMIT_DATA, self.memory_mb and self.memory_mb * MIB),
            (resource.RLIMIT_FSIZE, self.file_mb and self.file_mb * MIB),
            (resource.RLIMIT_NOFILE, self.files),
            (resource.RLIMIT_NPROC, self.processes),
        ):
            if value is not None:
                found.append((number, value, value))
        return found

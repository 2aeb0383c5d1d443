"""What keeps an agent process from the rest of the machine: the tiers, whether they work here, how they are made.

A tier is asked for by name and probed once, when the service starts. Where it does not work it is refused with the
reason; nothing is ever run in a lower one than was asked for. `docs/isolation.md` says what each tier stops and what it
does not.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from referee_server.agents.limits import MIB

Tier = Literal["process", "bubblewrap"]

TIERS: Final[tuple[Tier, ...]] = get_args(Tier)

RUNTIME: Final = tuple(
    Path(path)
    for path in (
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib64",
        "/etc/alternatives",
        "/etc/ld.so.cache",
        "/etc/localtime",
        "/etc/ssl/certs",
    )
)
"""What every program in a sandbox can read, where it exists: programs, libraries, time zone, certificates."""

_PACKAGES: Final = ("referee_server", "referee_games", "referee_client", "referee", "grpc", "google")
"""What a house bot imports. Wherever the packages are, their folders are shown, and not all that is on the path."""
_TMP: Final = Path("/tmp")  # the sandbox's own
_PROBE_S: Final = 10.0
"""How long a sandbox may take to run `true`, in seconds. One that hangs does not work."""
_NEEDED: Final = (0, 7)
"""The first version that can limit the size of /tmp."""
_DISABLE_USERNS: Final = (0, 8)
"""The first version that can forbid sandboxes within the sandbox."""


class IsolationError(Exception):
    """A tier that was asked for cannot be given; the text says why, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of trying a tier.

    Attributes:
        tier: the tier that was tried.
        works: whether it works here.
        why: if not, why, and what to do about it; one line. Empty if it does.
        version: version of the program that makes the sandbox; empty where there is none.
        program: path of that program; empty where there is none.
    """

    tier: Tier
    works: bool
    why: str = ""
    version: str = ""
    program: str = ""

    @property
    def label(self) -> str:
        """How the tier is called in logs: its name, with the version of what makes it."""
        return f"{self.tier} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class Room:
    """What a sandboxed process finds in its sandbox, beside the runtime.

    Attributes:
        cwd: the folder it runs in, which it can read and not change; None for the sandbox's own /tmp.
        reads: files and folders that it can read besides; each must exist.
        hidden: folders that it must never see, though they may lie in one that it can read: the referee's data.
        socket: the Unix socket of the referee, its only way out; None for none.
        tmp_mb: how much it may keep in /tmp, and again in /dev/shm, in MiB, 1 to 1,000,000. It is memory.
    """

    cwd: Path | None = None
    reads: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    socket: Path | None = None
    tmp_mb: int = 64

    def __post_init__(self) -> None:
        """Raises ValueError for a size out of range."""
        if not 1 <= self.tmp_mb <= 1_000_000:
            raise ValueError(f"the size of /tmp must be from 1 to 1,000,000 MiB, not {self.tmp_mb}")


def probe(tier: Tier) -> Probe:
    """Tries a tier by running `true` in it, in the way agents are run. Blocks for some milliseconds, and forks.

    Args:
        tier: the tier to try.

    Returns:
        Whether it works, and if not, why.
    """
    if tier == "process":
        return Probe(tier, works=True)
    program = shutil.which("bwrap")
    if program is None:
        return Probe(tier, works=False, why="there is no program `bwrap`; install the package bubblewrap")
    try:
        told = _run([program, "--version"]).stdout
        found = re.search(r"(\d+)\.(\d+)(?:\.\d+)*", told)
        if found is None:
            return Probe(tier, works=False, why=f"{program} does not tell its version", program=program)
        if _parts(found[0]) < _NEEDED:
            why = f"{program} is of version {found[0]}, which cannot limit the size of /tmp; version 0.7 or later can"
            return Probe(tier, works=False, why=why, version=found[0], program=program)
        done = _run(command(["true"], Probe(tier, works=True, version=found[0], program=program), Room()))
    except subprocess.TimeoutExpired:
        return Probe(tier, works=False, why=f"{program} did not run `true` in {_PROBE_S:.0f} seconds", program=program)
    except OSError as error:
        return Probe(tier, works=False, why=f"{program}: {error.strerror}", program=program)
    why = "" if done.returncode == 0 else _reason(done)
    return Probe(tier, works=not why, why=why, version=found[0], program=program)


def require(tier: str) -> Probe:
    """Probes a tier, and refuses it if it does not work.

    Raises:
        IsolationError: there is no such tier, or it does not work here.
    """
    for known in TIERS:
        if tier == known:
            tried = probe(known)
            if not tried.works:
                raise IsolationError(f"isolation {tier} does not work here: {tried.why}")
            return tried
    raise IsolationError(f"there is no isolation {tier!r}; there are {' and '.join(TIERS)}")


def command(argv: Sequence[str], tried: Probe, room: Room) -> list[str]:
    """Returns the command that runs another one in a tier.

    The environment is not in it: everybody on the machine can read a command line. The sandbox hands on what it is
    started with, and that is made by `environment`.

    Args:
        argv: the command to run.
        tried: the tier, as probed.
        room: what is in the sandbox; without meaning in the tier `process`.

    Raises:
        IsolationError: the tier does not work, or a hidden folder would have to be shown.
    """
    if not tried.works:
        raise IsolationError(f"isolation {tried.tier} does not work here: {tried.why}")
    if tried.tier == "process":
        return list(argv)
    # Later lines lie over earlier ones: /tmp before what is shown below it, what is hidden after what it lies in.
    line = [tried.program, "--unshare-user", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if _parts(tried.version) >= _DISABLE_USERNS:
        line.append("--disable-userns")
    line += ["--hostname", "agent"]
    for path in RUNTIME:
        line += ["--ro-bind-try", str(path), str(path)]
    size = str(room.tmp_mb * MIB)
    line += [
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--size",
        size,
        "--tmpfs",
        "/dev/shm",
        "--size",
        size,
        "--tmpfs",
        "/tmp",
    ]
    shown = [path.absolute() for path in (*room.reads, *((room.cwd,) if room.cwd else ()))]
    for path in shown:
        line += ["--ro-bind", str(path), str(path)]
    covers = _covers(shown, room.hidden)
    for path in covers:
        line += ["--tmpfs", str(path)]
    if room.socket is not None:
        line += ["--ro-bind", str(room.socket.absolute()), str(room.socket.absolute())]
    # What is left to write to is /tmp and /dev/shm, both of a known size.
    for path in (*covers, Path("/dev"), Path("/")):
        line += ["--remount-ro", str(path)]
    return [*line, "--chdir", str(room.cwd.absolute() if room.cwd else _TMP), "--", *argv]


def environment(given: Mapping[str, str], tried: Probe, cwd: Path, tmp: Path) -> dict[str, str]:
    """Returns the whole environment of an agent: where programs are, its home, its language, and what is given.

    Nothing else of the referee's own environment is in it, and so neither its data folder nor its credentials.

    Args:
        given: what the agent is given; it wins over the rest.
        tried: the tier, as probed.
        cwd: the folder it runs in.
        tmp: its folder for passing files; in a sandbox that is /tmp, whatever is given here.
    """
    sandboxed = tried.tier != "process"
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "HOME": str(_TMP if sandboxed else cwd),
        "TMPDIR": str(_TMP if sandboxed else tmp),
        **given,
    }


def this_python() -> tuple[Path, ...]:
    """Returns what this interpreter reads to run this program as an agent: for house bots in a sandbox."""
    folders = {Path(sys.prefix), Path(sys.base_prefix)}
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        folders |= {Path(place).parent for place in (spec and spec.submodule_search_locations) or ()}
    # What is named by a symbolic link is needed under both names.
    return _outermost({*(path.absolute() for path in folders), *(path.resolve() for path in folders)})


def _outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    found: list[Path] = []
    for path in sorted(paths):
        if not any(path.is_relative_to(outer) for outer in (*found, *RUNTIME)):
            found.append(path)
    return tuple(found)


def _covers(shown: Sequence[Path], hidden: Sequence[Path]) -> list[Path]:
    """Returns where hidden folders would be seen in the sandbox."""
    covers = set()
    for folder in (path.resolve() for path in hidden):
        for path in (*RUNTIME, *shown):
            real = path.resolve()
            if real.is_relative_to(folder):
                raise IsolationError(f"{path} lies in {folder}, which no agent may see; put it somewhere else")
            if folder.is_relative_to(real):
                covers.add(path / folder.relative_to(real))
    return sorted(covers)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ.get("PATH", os.defpath)}
    return subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", env=env, timeout=_PROBE_S
    )


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
    if _switched_on("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"):
        # As in Ubuntu since 23.10.
        fix = "AppArmor keeps programs from making user namespaces; load its profile bwrap-userns-restrict"
    elif _switched_off("/proc/sys/user/max_user_namespaces"):
        fix = "user namespaces are switched off; set the sysctl user.max_user_namespaces above 0"
    elif _switched_off("/proc/sys/kernel/unprivileged_userns_clone"):
        fix = "user namespaces are switched off; set the sysctl kernel.unprivileged_userns_clone to 1"
    elif Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        fix = "the container forbids user namespaces; start it with a seccomp profile that allows them"
    else:
        fix = "user namespaces, or something else that it needs, are not to be had"
    return f"{fix} ({said})"


def _switched_on(path: str) -> bool:
    return _setting(path) not in ("", "0")


def _switched_off(path: str) -> bool:
    return _setting(path) == "0"


def _setting(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return ""

"""On what kind of file system a folder is. Only Linux says so; elsewhere nobody is warned."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

MOUNTS: Final = Path("/proc/self/mountinfo")
"""What is mounted, as proc(5) describes it."""

_NETWORK: Final = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "coda", "glusterfs", "gpfs", "lustre", "beegfs")
)
# Of what is mounted through FUSE, some is local: NTFS, disks with encryption, layers of containers.
_NETWORK_FUSE: Final = frozenset(
    ("sshfs", "s3fs", "rclone", "gcsfuse", "glusterfs", "ceph", "davfs", "davfs2", "curlftpfs", "blobfuse2", "mfs")
)


def is_network(kind: str) -> bool:
    """Tells whether a file system's data come from another machine, as far as its kind shows it."""
    family, _, member = kind.partition(".")
    return member in _NETWORK_FUSE if family == "fuse" else kind in _NETWORK


def file_system_of(path: Path, mounts: Path = MOUNTS) -> str | None:
    """Returns the kind of the file system that a path is on, such as `ext4` or `nfs4`; None where nobody says so.

    Args:
        path: a file or folder that exists; of a link, what counts is where it leads to.
        mounts: the list of what is mounted.
    """
    try:
        lines = os.fsdecode(mounts.read_bytes()).splitlines()
        path = path.resolve()
    except OSError:
        return None
    found: tuple[int, str] | None = None
    for line in lines:
        mounted, _, source = line.partition(" - ")
        fields, kind = mounted.split(" "), source.partition(" ")[0]
        if len(fields) < 5 or not kind:
            continue
        point = Path(_plain(fields[4]))
        depth = len(point.parts)
        # Of two at one place, the later one hides the earlier.
        if path.is_relative_to(point) and (found is None or depth >= found[0]):
            found = depth, kind
    return found[1] if found is not None else None


def _plain(field: str) -> str:
    """Returns a field without its escapes: blanks and backslashes are written in octal."""
    return re.sub(r"\\([0-7]{3})", lambda escape: chr(int(escape[1], 8)), field)

"""Where the data folder is on a network file system, its host is told so."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from referee_server.cli.data import DataFolder
from referee_server.cli.mounts import MOUNTS, file_system_of, is_network

MOUNTED = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:20 / /proc rw,nosuid - proc proc rw
23 21 0:44 / /srv rw,relatime shared:7 master:2 - nfs4 files:/srv rw,vers=4.2
24 23 0:45 / /srv/local rw,relatime - xfs /dev/sdb1 rw
25 21 0:46 / /srv2 rw,relatime - btrfs /dev/sdc1 rw
26 21 0:47 / /mnt/with\\040blank\\134slash rw,relatime - cifs //files/with\\040blank rw
27 21 8:2 / /twice rw,relatime - nfs files:/twice rw
28 27 8:3 / /twice rw,relatime - ext4 /dev/sdd1 rw
a line that says nothing
29 21 0:48 / /home - fuse.sshfs me@files: rw
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    file = tmp_path / "mountinfo"
    file.write_text(MOUNTED)
    return file


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/var/lib/referee", "ext4"),
        ("/srv", "nfs4"),
        ("/srv/referee/data", "nfs4"),
        ("/srv/local/data", "xfs"),
        ("/srv2/data", "btrfs"),
        ("/srv3/data", "ext4"),
        ("/mnt/with blank\\slash/data", "cifs"),
        ("/twice/data", "ext4"),
        ("/home/me", "fuse.sshfs"),
        ("/srv/local/../data", "nfs4"),
    ],
)
def test_what_counts_is_the_innermost_mount_that_holds_the_path(mounts: Path, path: str, kind: str) -> None:
    assert file_system_of(Path(path), mounts) == kind


@pytest.mark.parametrize("content", [None, "", "nonsense\n", "1 2 3 / /\n"])
def test_where_the_system_does_not_say_nothing_is_known(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "mountinfo"
    if content is not None:
        file.write_text(content)
    assert file_system_of(tmp_path, file) is None


def test_this_system_says_what_a_folder_is_on(tmp_path: Path) -> None:
    assert file_system_of(tmp_path, MOUNTS)


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "fuse.rclone"])
def test_network_file_systems_are_known_as_such(kind: str) -> None:
    assert is_network(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuse.ntfs-3g", "fuseblk", "fuse"])
def test_local_file_systems_are_not_taken_for_them(kind: str) -> None:
    assert not is_network(kind)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder that is reached by a link, as data folders often are."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "disk")
    return tmp_path / "data"


@pytest.mark.parametrize(("kind", "told"), [("nfs4", True), ("fuse.sshfs", True), ("ext4", False)])
def test_the_host_is_told_at_the_start(elsewhere: Path, tmp_path: Path, kind: str, told: bool) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / {tmp_path}/disk rw - {kind} there rw\n")
    folder = DataFolder(elsewhere, mounts)
    with closing(folder.open()):
        notes = [note for note in folder.notes if "network" in note]
    assert [f"is on a network file system ({kind})" in note for note in notes] == [True] * told

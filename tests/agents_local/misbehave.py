"""Agents that end, hang, flood and breed: `misbehave.py HOW`. Each says hello to the socket in HELLO, as KEY."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import sys
import time
from pathlib import Path
from typing import NoReturn

LINK = socket.socket(socket.AF_UNIX)


def say(what: object) -> None:
    LINK.sendall(json.dumps([os.environ["KEY"], what]).encode() + b"\n")


def hello(what: object = "hello") -> None:
    LINK.connect(os.environ["HELLO"])
    say(what)


def told() -> None:
    """Waits for a line of the test's."""
    LINK.recv(64)


def forever() -> NoReturn:
    while True:
        time.sleep(60)


def plays() -> None:
    hello()
    forever()


def crash_at_start() -> None:
    sys.exit("no model file")


def exit_at_start() -> None:
    pass


def never_hello() -> None:
    print("loading", flush=True)
    forever()


def leaves() -> None:
    hello()
    told()


def crashes() -> None:
    hello()
    told()
    raise RuntimeError("out of cards")


def prints() -> None:
    hello()
    for number in range(100):
        told()
        print(f"turn {number}", flush=True)
        say("printed")


def goodbye() -> None:
    def leave(*_: object) -> None:
        print("goodbye")
        sys.exit(3)

    signal.signal(signal.SIGTERM, leave)
    hello()
    forever()


def ignores_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hello()
    forever()


def daemon() -> None:
    """Puts a process aside, in a session of its own, by way of another one that ends."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.write(write, b".")
            forever()
        os._exit(0)
    os.wait()
    os.read(read, 1)
    hello()
    forever()


def floods() -> None:
    print("begin")
    for _ in range(50):
        sys.stdout.write("x" * 1_000_000)
    print("end", flush=True)
    hello()
    forever()


def fills() -> None:
    hello()
    told()
    with (Path(os.environ["TMPDIR"]) / "fill").open("wb") as file:
        while True:
            file.write(bytes(1 << 20))


def eats() -> None:
    hello()
    told()
    eaten = []
    while True:
        eaten.append(bytearray(16 << 20))


def spins() -> None:
    hello()
    told()
    while True:
        pass


def breeds() -> None:
    """A tree of 16 processes, each but the first in a session of its own, none of which heeds SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    first = os.getpid()
    read, write = os.pipe()
    for _ in range(4):
        if os.fork() == 0:
            os.setsid()
            os.write(write, b".")
    if os.getpid() == first:
        for _ in range(15):
            os.read(read, 1)
        hello()
    forever()


def tells() -> None:
    """Says what it finds: environment, folder, limits, descriptors, mask, privileges."""
    names = ("RLIMIT_CPU", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_CORE")
    status = Path("/proc/self/status").read_text(encoding="ascii")
    mask = os.umask(0)
    hello(
        {
            "env": dict(os.environ),
            "cwd": str(Path.cwd()),
            "limits": {name: resource.getrlimit(getattr(resource, name)) for name in names},
            "files": sorted(int(file.name) for file in Path("/proc/self/fd").iterdir() if file.exists()),
            "umask": mask,
            "no_new_privs": "NoNewPrivs:\t1" in status,
            "no_capabilities": "CapEff:\t0000000000000000" in status,
        }
    )
    forever()


def looks() -> None:
    """Says what of the world it can reach; PATHS and PORT say what to try."""
    paths = json.loads(os.environ["PATHS"])
    written = []
    for path in ("/", "/dev", "/usr", "/tmp", "/dev/shm", *paths):
        with contextlib.suppress(OSError):
            (Path(path) / "mine").write_text("x", encoding="ascii")
            written.append(path)
    network = socket.socket()
    hello(
        {
            "read": [path for path in paths if os.access(path, os.R_OK)],
            "listed": {path: [entry.name for entry in Path(path).iterdir()] for path in paths if Path(path).is_dir()},
            "written": written,
            "network": network.connect_ex(("127.0.0.1", int(os.environ["PORT"]))) == 0,
            "processes": sum(folder.name.isdigit() for folder in Path("/proc").iterdir()),
            "namespaces": ctypes.CDLL(None).unshare(0x10000000) == 0,
        }
    )
    forever()


if __name__ == "__main__":
    globals()[sys.argv[1]]()

"""Run a script as if on Windows: python3 windows.py SCRIPT. What Windows lacks is taken away, what it has is faked."""

from __future__ import annotations

import fcntl
import os
import runpy
import select
import sys
import types
from typing import Any

BINARY = 1 << 40  # a bit of no flag here
real_open = os.open


def locking(fd: int, mode: int, length: int) -> None:
    """Stand in for msvcrt.locking: one byte far behind the end, as others could not read a locked one; no waiting."""
    if (mode, length) != (2, 1) or os.lseek(fd, 0, os.SEEK_CUR) < 1 << 20:
        raise ValueError("this would wait, or keep others from reading")
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def binary_open(path: Any, flags: int, mode: int = 0o777) -> int:
    """Stand in for os.open: what is written in text mode would get other line ends."""
    if flags & (os.O_RDWR | os.O_APPEND) and not flags & BINARY:
        raise ValueError(f"{path} is opened in text mode")
    return real_open(path, flags & ~BINARY, mode)


def no_select(*_: Any) -> None:
    raise OSError("on Windows only sockets can be waited for")


def main() -> None:
    """Take away, fake, run."""
    fake: Any = types.ModuleType("msvcrt")
    fake.LK_NBLCK, fake.LK_UNLCK, fake.locking = 2, 0, locking
    sys.modules["msvcrt"] = fake
    sys.modules["fcntl"] = None  # type: ignore[assignment]
    select.select = no_select  # type: ignore[assignment]
    for name in ("geteuid", "getuid", "O_NOFOLLOW", "O_NONBLOCK", "fork", "mkfifo", "chmod", "set_blocking"):
        delattr(os, name)
    os.O_BINARY, os.open = BINARY, binary_open  # type: ignore[assignment,attr-defined]
    os.name, sys.platform = "nt", "win32"
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()

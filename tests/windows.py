"""Run a script as if on Windows: python3 windows.py SCRIPT. What Windows lacks is taken away, what it has is faked."""

from __future__ import annotations

import fcntl
import os
import runpy
import select
import sys
import types
from typing import Any


def locking(fd: int, mode: int, _length: int) -> None:
    """Stand in for msvcrt.locking in its two modes that do not wait."""
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB if mode == 2 else fcntl.LOCK_UN)


def no_select(*_: Any) -> None:
    raise OSError("on Windows only sockets can be waited for")


def main() -> None:
    """Take away, fake, run."""
    fake: Any = types.ModuleType("msvcrt")
    fake.LK_NBLCK, fake.LK_UNLCK, fake.locking = 2, 0, locking
    sys.modules["msvcrt"] = fake
    sys.modules["fcntl"] = None  # type: ignore[assignment]
    select.select = no_select  # type: ignore[assignment]
    for name in ("geteuid", "getuid", "O_NOFOLLOW", "O_NONBLOCK", "fork", "mkfifo", "chmod"):
        delattr(os, name)
    os.O_BINARY = 0  # type: ignore[attr-defined]
    os.name, sys.platform = "nt", "win32"
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()

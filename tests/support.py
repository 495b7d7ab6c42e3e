"""What the tests share: the scripts on the path, a hook run as the client runs it, a throwaway home, leaked calls."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "cases"
RECOVER = ROOT / "recover_malformed_toolcall.py"
COACH = ROOT / "tool_coach.py"
GIVE_UP = "The model's tool call could not be parsed (retry also failed)."

for heavy in ("hashlib", "json", "re", "select"):  # what the scripts import late: a forked child has it then
    importlib.import_module(heavy)
sys.dont_write_bytecode = True
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from recover_malformed_toolcall import ARGUMENT, CALL, PREFIX  # noqa: E402

Event = dict[str, Any]


class Answer(NamedTuple):
    """What a hook process left: its exit code, the JSON object on stdout (None = nothing), stderr, raw stdout."""

    code: int
    out: Event | None
    err: str
    raw: bytes


def encode(event: Event) -> bytes:
    """Return an event as the client sends it: compact, UTF-8 unescaped, one line; lone surrogates escaped."""
    try:
        return json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(event, separators=(",", ":")).encode() + b"\n"


def run_hook(
    script: Path,
    event: Event | bytes,
    home: Path,
    *,
    env: Mapping[str, str] | None = None,
    args: tuple[str, ...] = (),
    timeout: float = 10,
    flags: tuple[str, ...] = ("-I", "-S"),
    prepare: Callable[[], None] | None = None,
) -> Answer:
    """Run a script as the client does; AssertionError if stdout holds anything but one JSON object or nothing."""
    done = subprocess.run(
        [sys.executable, *flags, str(script), *args],
        input=event if isinstance(event, bytes) else encode(event),
        capture_output=True,
        env={"HOME": str(home), "PATH": os.environ.get("PATH", ""), **(env or {})},
        timeout=timeout,
        check=False,
        preexec_fn=prepare,
    )
    return Answer(done.returncode, parse_output(done.stdout), done.stderr.decode("utf-8", "replace"), done.stdout)


@contextlib.contextmanager
def holding(script: ModuleType, path: str) -> Iterator[Callable[[], None]]:
    """Let another process hold a state as a script does, to the end or until what is yielded is called."""
    hold = "import sys; sys.path[:0] = sys.argv[1:2]; script = __import__(sys.argv[2]); script.lock_state(sys.argv[3])"
    wait = "print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", f"{hold}; {wait}", str(ROOT), Path(script.__file__ or "").stem, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        process.stdout.readline()
        yield process.stdin.close


def fork_hook(
    main: Callable[[list[str]], int],
    event: Event | bytes,
    home: Path,
    *,
    env: Mapping[str, str] | None = None,
    clock: float = 0,
) -> Answer:
    """Run a script's main in a forked child, its clock ahead by some seconds: as run_hook does, ten times as fast."""
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        stdin.write(event if isinstance(event, bytes) else encode(event))
        stdin.seek(0)
        child = os.fork()
        if child == 0:
            code = 99
            try:
                for number, file in enumerate((stdin, stdout, stderr)):
                    os.dup2(file.fileno(), number)
                sys.stdin = open(0, closefd=False)
                os.environ.clear()
                os.environ.update({"HOME": str(home), **(env or {})})
                real = time.time
                time.time = lambda: real() + clock
                code = main([])
            except BaseException:
                os.write(2, traceback.format_exc().encode())
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        raw = os.pread(stdout.fileno(), 1 << 20, 0)
        return Answer(code, parse_output(raw), os.pread(stderr.fileno(), 1 << 20, 0).decode("utf-8", "replace"), raw)


def parse_output(raw: bytes) -> Event | None:
    """Return the one JSON object on stdout, None for nothing."""
    if not raw:
        return None
    output = json.loads(raw)
    if not isinstance(output, dict):
        raise AssertionError(f"stdout is no JSON object: {raw[:200]!r}")
    return output


def copy_script(script: Path, folder: Path, **constants: object) -> Path:
    """Copy a script into a folder with some of its top-level constants set to other values, as a user would edit it."""
    text = script.read_text("utf-8")
    for name, value in constants.items():
        text, count = re.subn(rf"^{name} = .*$", f"{name} = {value!r}".replace("\\", r"\\"), text, flags=re.M)
        if count != 1:
            raise AssertionError(f"{script.name} sets {name} {count} times")
    copy = folder / script.name
    copy.write_text(text, "utf-8")
    return copy


def slow_copy(script: Path, folder: Path) -> Path:
    """Copy a script into a folder, made to dawdle between reading its state and writing it: a race is then certain."""
    dawdle = "load_state = (lambda real: lambda fd: (real(fd), time.sleep(0.05))[0])(load_state)\n\n\n"
    before, main, after = script.read_text("utf-8").rpartition('if __name__ == "__main__":')
    copy = folder / f"slow_{script.name}"
    copy.write_text(before + dawdle + main + after, "utf-8")
    return copy


def state_files(session: str) -> list[Path]:
    """Return every file in /tmp that a hook keeps for a session."""
    return sorted(p for kind in ("recover", "tool-coach") for p in Path("/tmp").glob(f"cc-{kind}-{session}*"))


class HookTest(unittest.TestCase):
    """A test with a home of its own, and sessions whose state is removed at the end."""

    def setUp(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="toolcall-hooks-"))
        self.addCleanup(shutil.rmtree, self.home, True)
        (self.home / ".claude").mkdir()
        self.session = self.new_session()

    def new_session(self) -> str:
        """Return a session id that nobody has used."""
        session = str(uuid.uuid4())
        self.addCleanup(remove_state, session)
        return session

    def actions(self) -> list[list[str]]:
        """Return the record's lines without their time: hook, session, outcome, tool, number."""
        path = self.home / ".claude" / "toolcall-hooks.log"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        return [line.split("\t")[1:] for line in lines]


def remove_state(session: str) -> None:
    """Remove what the hooks keep for a session."""
    for path in state_files(session):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, True)
        else:
            path.unlink()


def opener(tool: str, prefix: str = "") -> str:
    """Return a call's opening tag."""
    return f'<{prefix}{CALL} name="{tool}">'


def argument(name: str, value: str, prefix: str = "") -> str:
    """Return one argument element."""
    return f'<{prefix}{ARGUMENT} name="{name}">{value}</{prefix}{ARGUMENT}>'


def leak(tool: str = "Bash", prefix: str = "", **args: str) -> str:
    """Return a tool call written out as text, one element a line; without args, a Bash call that lists a folder."""
    pairs = args or {"command": "ls -la"}
    lines = [argument(name, value, prefix) for name, value in pairs.items()]
    return "\n".join([opener(tool, prefix), *lines, f"</{prefix}{CALL}>"])


def read_cases(name: str) -> list[dict[str, Any]]:
    """Return the cases of a file in tests/cases, the namespace prefix put in."""
    lines = (CASES / name).read_text("utf-8").splitlines()
    return [json.loads(line.replace("@@NS@@", PREFIX)) for line in lines if line.strip()]

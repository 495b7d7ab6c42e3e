"""Random events, transcripts, states, prompts and settings: whatever comes in, a hook neither breaks nor harms.

  python3 tests/fuzz.py [--cases N] [--seed S]    the last line says: cases, failures, seconds; exit 1 on a failure
  python3 tests/fuzz.py --seed S --case NUMBER    one case alone, with all that it was made of

A case depends on its seed and number alone. It has a throwaway folder with a home, a project, a state folder and
copies of the scripts that keep their state there. Most hooks run in forked children, a few percent as processes.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib.util
import io
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import stat
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, NamedTuple

import support
from support import GIVE_UP, Answer, Event

SLOW_SEC = 10  # a hook that takes longer is a failure
OURS = re.compile(r"state/cc-(recover|tool-coach)-[^/]*|home/\.claude/(toolcall-hooks\.log(\.old)?|tool-coach\.off)")
RECORD_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ(\t[ -~]{1,1000}){5}")
Random = random.Random


def load(script: Path) -> ModuleType:
    """Import a script from where it lies."""
    spec = importlib.util.spec_from_file_location(f"fuzzed_{script.stem}", script)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = load(support.RECOVER)
ARGUMENT, CALL, PREFIX = SCRIPT.ARGUMENT, SCRIPT.CALL, SCRIPT.PREFIX


class Yard:
    """The throwaway folder of one worker, emptied before each case."""

    def __init__(self) -> None:
        self.folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="toolcall-hooks-fuzz-")))
        self.home, self.state, self.source = self.folder / "home", self.folder / "state", self.folder / "source"
        self.config, self.project = self.home / ".claude", self.folder / "project"
        self.transcript = self.folder / "transcript.jsonl"
        self.prompts = self.source / "prompts.txt"
        self.source.mkdir()
        self.scripts = [
            support.copy_script(support.RECOVER, self.source, STATE_DIR=str(self.state), LAG_WAIT_SEC=0),
            support.copy_script(support.COACH, self.source, STATE_DIR=str(self.state)),
        ]
        self.recover, self.coach = map(load, self.scripts)
        self.made_of: list[str] = []

    def clear(self) -> None:
        """Empty the folder, but for the scripts."""
        self.made_of.clear()
        for path in (self.home, self.state, self.project):
            shutil.rmtree(path, True)
            path.mkdir()
        self.config.mkdir()
        for path in (self.transcript, self.prompts):
            if path.is_dir():
                path.rmdir()
            path.unlink(missing_ok=True)

    def note(self, what: str, value: object) -> None:
        """Keep what a case is made of, for the report of a failure; a tag spelled there would be taken for one."""
        text = (value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else repr(value)).rstrip("\n")
        text = text if len(text) <= 3000 else f"{text[:1500]} [{len(text) - 3000} characters left out] {text[-1500:]}"
        self.made_of.append(f"  {what}: {text}".replace("<", "\u2039"))

    def tree(self) -> dict[str, tuple[int, bytes]]:
        """Return mode and content of everything in the folder, the scripts aside."""
        found = {}
        for top in (self.home, self.state, self.project, self.transcript, self.prompts, self.source):
            for path in [top, *(top.rglob("*") if top.is_dir() and not top.is_symlink() else [])]:
                if path not in self.scripts and os.path.lexists(path):
                    info = path.lstat()
                    content = path.read_bytes() if stat.S_ISREG(info.st_mode) else b""
                    found[str(path.relative_to(self.folder))] = (info.st_mode, content)
        return found


def check(truth: object, what: str) -> None:
    """Fail unless something is true."""
    if not truth:
        raise AssertionError(what)


def is_one_in(r: Random, number: int) -> bool:
    """Tell whether the dice say so, once in a number of times."""
    return r.randrange(number) == 0


# --- What is thrown at the hooks --------------------------------------------------------------------------

REFUSED_TAG = "<tool_use_error>"
ODD_STRINGS = (
    "", " ", "\n", "x", "\0", "\ud800", "\udfff\ud800", "\ufeff", "\u2028", "é 日本 🦊", "../../etc/passwd",
    "/dev/zero", "/dev/full", "a\0b", "%s %n {0} {tool}", "null", "\x1b[31m", "-", "0", "x" * 5000, "Stop", "__proto__",
    REFUSED_TAG,
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 5, 10, 0.5, -0.0, 1e308, -1e308, float("inf"), float("nan"), 10**25, -(10**400),
    2**63, 1e-320, [], {}, [[]], [None], {"": None}, [1, "2", {}],
)  # fmt: skip
ODD_BYTES = (
    b"", b"\0", b"\xff", b"\xed\xa0\x80", b"\xc0\xaf", b"\xef\xbb\xbf", b"\xf4\x90\x80\x80", b"\\ud800", b"\\u12",
    b"\n", b"\r\n", b"}\n", b'"', b"\\", b",", b"{", b"}", b"]", b"NaN", b"1e999", b"-", b"1" * 5000, b"[" * 100_000,
    b'{"a":' * 20_000, b" " * 70_000, b"\x1b]0;x\x07", b"\xe2\x80\xa8", b"// no\n",
)  # fmt: skip
PIECES = (
    "\n", "\n", "\n", "\n\n", "\n\n", " ", "  ", "    ", "\t", "\r\n", "\r", "```", "````", "```xml\n", "\n```\n",
    "~~~", "\n~~~\n", "`", "`", "``", "\\`", "\\", "\\\\`", "> ", ">", "- ", "* ", "+ ", "-", "1. ", "2) ", "10. ",
    "1.", "***", "---", "* * *", "===", "# ", "## T\n", "#", "word", "I look at it.", "court", "court\n", "Count",
    "The form ", " is old.", ":", "!", "<", ">", "</", "<p>", "\0", "\1", "\0\0\0", "é", "目次", "🔧", "\u2028", "\x0b",
    "\x0c", "\u00a0", "| a | b |\n|---|---|\n", "http://a.b/c", "&lt;", GIVE_UP, "name=", '"', "'",
    "</function_calls>", "<function_calls>", "<bpel:x>", "x" * 300, "**", "_", "[a](b)",
)  # fmt: skip
CALL_PIECES = tuple(
    piece
    for prefix in ("", PREFIX)
    for piece in (
        f'<{prefix}{CALL} name="Bash">',
        f"<{prefix}{CALL} name='Read' >",
        f'{prefix}{CALL} name="Bash">',
        f'<{prefix}{CALL} name="Bash"',
        f"<{prefix}{CALL}",
        f'<{prefix}court name="Bash">',
        f'<{prefix}{ARGUMENT} name="command">',
        f'<{prefix}{ARGUMENT} name="a">b</{prefix}{ARGUMENT}>',
        f'{prefix}{ARGUMENT} name="command">',
        f"</{prefix}{ARGUMENT}>",
        f"</{prefix}{CALL}>",
        f"<{prefix}",
        support.leak("Edit", prefix, file_path="a`b", old_string="```\nx", new_string="    y"),
    )
)
CASES = [case for name in ("leaks.jsonl", "leak_variations.jsonl") for case in support.read_cases(name)]
SEEDS: list[str] = [case["text"] for case in CASES]
FIRING: list[str] = [case["text"] for case in CASES if case["expect"] == "fire"]
ERRORS = [*(case["error"] for case in support.read_cases("errors.jsonl")), "No such file.", "x" * 9000, "", "\ud800"]
SHAPES = [path.read_bytes() for path in sorted((support.CASES / "settings").rglob("*.json"))]


def some_text(r: Random) -> str:
    """Return a message: a case as it is, cut, spliced with another, or pieces of Markdown and of calls."""
    kind = r.randrange(8)
    if kind == 0:
        return r.choice(SEEDS)
    if kind == 1:
        text = r.choice(SEEDS)
        return text[: r.randint(0, len(text))]
    if kind == 2:
        first, second = r.choice(SEEDS), r.choice(SEEDS)
        return first[: r.randint(0, len(first))] + r.choice(PIECES) + second[r.randint(0, len(second)) :]
    if kind == 3:
        return r.choice(ODD_STRINGS)
    return "".join(r.choice(CALL_PIECES if is_one_in(r, 4) else PIECES) for _ in range(r.randint(1, 30)))


def anything(r: Random, depth: int = 3) -> Any:
    """Return a random value, JSON or nearly."""
    kind = r.randrange(6 if depth else 4)
    if kind < 2:
        return copy.deepcopy(r.choice(ODD_VALUES))
    if kind < 4:
        return r.choice(ODD_STRINGS) if kind == 2 else some_text(r)
    if kind == 4:
        return [anything(r, depth - 1) for _ in range(r.randrange(4))]
    names = ("type", "content", "id", "message", "hooks", "command", "kept", "count", "tool_name", *ODD_STRINGS)
    return {r.choice(names): anything(r, depth - 1) for _ in range(r.randrange(4))}


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of everything inside a value."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []:
        yield value, key
        yield from places(value[key])


def with_faults(r: Random, value: Any, most: int = 3) -> Any:
    """Return a copy of a value with some of its parts replaced, removed, renamed or doubled."""
    value = copy.deepcopy(value)
    for _ in range(r.randint(1, most)):
        found = list(places(value))
        if not found or is_one_in(r, 40):
            return anything(r)
        holder, key = r.choice(found)
        kind = r.randrange(6)
        if kind < 3:
            holder[key] = anything(r)
        elif kind == 3:
            del holder[key]
        elif kind == 4 and isinstance(holder, dict):
            holder[r.choice(ODD_STRINGS)] = holder.pop(key)
        else:
            other, name = r.choice(found)
            with contextlib.suppress(LookupError):
                holder[key] = copy.deepcopy(other[name])
    return value


def with_broken_bytes(r: Random, data: bytes) -> bytes:
    """Return data cut, flipped, doubled, or with odd bytes put in."""
    for _ in range(r.randint(1, 3)):
        at, end = sorted((r.randint(0, len(data)), r.randint(0, len(data))))
        kind = r.randrange(9)
        if kind <= 1:
            data = data[:at]
        elif kind == 2:
            data = data[:at] + data[end:]
        elif kind == 3 and data:
            data = data[: at - 1] + bytes([r.randrange(256)]) + data[at:]
        elif kind == 4:
            data = data[:at] + data[at:end] * r.randint(2, 5) + data[end:]
        elif kind == 5:
            data = data.rstrip(b"\n")
        elif kind == 6:
            data = data.decode("utf-8", "replace").encode(r.choice(("utf-8-sig", "utf-16", "utf-32", "utf-7")))
        else:
            data = data[:at] + r.choice(ODD_BYTES) + data[at:]
    return data


def written(r: Random, value: Any) -> bytes:
    """Return a value as JSON, most often as the client writes it."""
    if is_one_in(r, 10):
        return json.dumps(value, indent=r.choice((None, 1))).encode() + b"\n"
    return support.encode(value)


# --- A session: events, transcript, state, prompts --------------------------------------------------------


class Input(NamedTuple):
    """An event to send: its bytes, and the event that they hold if it is as the client makes it."""

    data: bytes
    event: Event | None


def session_id(r: Random) -> str:
    """Return a session id, most often an ordinary one."""
    odd = ("../../home/x", "..", "a/b", ".", "x" * 300, "é", "a\0b", "", "\ud800", "a.b", "heartbeat", "/etc/passwd")
    return r.choice(odd) if is_one_in(r, 12) else f"s{r.randrange(3)}"


def head(r: Random, yard: Yard, session: str, **fields: Any) -> Event:
    """Return what every event begins with."""
    return {"session_id": session, "transcript_path": str(yard.transcript), "cwd": str(yard.project), **fields}


def stop_event(r: Random, yard: Yard, session: str, message: str) -> Event:
    """Return an event of the recovery hook."""
    name = r.choice(("Stop", "Stop", "SubagentStop", "StopFailure"))
    event = head(r, yard, session)
    if name == "SubagentStop" or is_one_in(r, 8):
        event.update(agent_id=f"a{r.randrange(2)}", agent_type="x", agent_transcript_path=str(yard.transcript))
    event.update(hook_event_name=name, stop_hook_active=is_one_in(r, 2))
    if name == "StopFailure":
        event.update(error="unknown")
        message = message if is_one_in(r, 3) else GIVE_UP
    if not is_one_in(r, 6):
        event["last_assistant_message"] = message
    return event


def call_event(r: Random, yard: Yard, session: str) -> Event:
    """Return an event of the coach; few tools and inputs, so that calls come again."""
    tool = r.choice(("Read", "Read", "Edit", "Write", "Agent", "Bash", "mcp__a__get", "mcp__b__get", "AskUserQuestion"))
    path = r.choice(("nowhere.txt", str(yard.project / "there.txt"), "", "a\0b", "x" * 300))
    tool_input = r.choice(({"file_path": path}, {"file_path": path}, {"command": "ls", "description": some_text(r)}))
    call: Event = {"tool_name": tool, "tool_input": tool_input, "tool_use_id": f"t{r.randrange(4)}"}
    name = r.choice((*yard.coach.HANDLERS, "PreToolUse", "PreToolUse", "PostToolUseFailure", "PostToolUseFailure"))
    event = head(r, yard, session, **({"agent_id": f"a{r.randrange(2)}"} if is_one_in(r, 5) else {}))
    event["hook_event_name"] = name
    error = r.choice(ERRORS)
    if name == "PostToolBatch":
        results: list[Any] = [
            f"{REFUSED_TAG}{error}</tool_use_error>",
            error,
            [{"type": "text", "text": error}],
            {"a": error},
        ]
        event["tool_calls"] = [
            {**call, "tool_use_id": f"t{n}", "tool_response": r.choice(results)} for n in range(r.randint(0, 4))
        ]
    elif name == "UserPromptExpansion":
        event.update(
            command_name=r.choice(("tool-coach", "x:tool-coach", "greet")),
            command_args=r.choice(("on", "off", "", error)),
        )
    elif name == "UserPromptSubmit":
        event["prompt"] = some_text(r)
    elif name != "SessionEnd":
        event.update(call)
    if name == "PostToolUseFailure":
        event.update(error=error, is_interrupt=is_one_in(r, 9))
        event.update({} if is_one_in(r, 4) else {"duration_ms": r.choice((0, 6, 1200, 10**7))})
    return event


def some_rows(r: Random, message: str) -> list[Any]:
    """Return rows of a transcript that might end with a message."""
    rows: list[Any] = []
    for number in range(r.randint(0, 8)):
        blocks: list[Any] = [
            {"type": "text", "text": message if is_one_in(r, 2) else some_text(r)},
            {"type": "tool_use", "id": f"t{r.randrange(4)}", "name": "Read", "input": {}},
            {"type": "thinking", "thinking": some_text(r)},
        ]
        said = {
            "id": f"m{number // 2}",
            "role": "assistant",
            "content": [r.choice(blocks)],
            "model": r.choice(("x", "<synthetic>")),
        }
        result = {
            "role": "user",
            "content": r.choice(([{"type": "tool_result", "tool_use_id": "t1", "content": "x"}], some_text(r))),
        }
        rows.append(
            r.choice(
                (
                    {"type": "assistant", "message": said, "isSidechain": is_one_in(r, 4)},
                    {"type": "assistant", "message": said},
                    {"type": "user", "message": result},
                    {"type": "attachment", "message": anything(r)},
                    {"type": "system", "content": "x" * r.choice((1, 70_000))},
                )
            )
        )
        if is_one_in(r, 3):
            rows[-1] = with_faults(r, rows[-1])
    return rows


def put_transcript(r: Random, yard: Yard, message: str) -> None:
    """Put a transcript there, seldom a folder, a fifo or nothing."""
    kind = r.randrange(30)
    if kind == 0:
        yard.transcript.mkdir()
    elif kind == 1:
        os.mkfifo(yard.transcript)
    elif kind > 3:
        lines = [written(r, row).replace(b"\n", b"") for row in some_rows(r, message)]
        lines = [with_broken_bytes(r, line) if is_one_in(r, 12) else line for line in lines]
        data = b"\n".join(lines) + b"\n" * r.randrange(2)
        data = with_broken_bytes(r, data) if is_one_in(r, 12) else data
        yard.transcript.write_bytes(data)
        yard.note("transcript", data)


def put_prompts(r: Random, yard: Yard) -> bool:
    """Put a file of prompts there, or none; tell whether the prompts are those of this project."""
    kind = r.randrange(6)
    if kind == 0:
        yard.prompts.mkdir()
    elif kind == 1:
        data = with_broken_bytes(r, (support.ROOT / "prompts.txt").read_bytes())
        yard.prompts.write_bytes(data)
        yard.note("prompts", data)
        return False
    elif kind == 2:
        yard.prompts.write_text("# a\n\n" + some_text(r), "utf-8", "surrogatepass")
        return False
    return True


def put_state(r: Random, path: Path, state: Event, yard: Yard) -> bool:
    """Put a state there, or none; tell whether it is none or as a hook writes it, some time ago."""
    kind = r.randrange(8)
    if kind < 3:
        return True
    data, sound = json.dumps(state).encode() + b"\n", kind < 4
    if kind == 4:
        data = json.dumps(with_faults(r, state)).encode() + b"\n"
    elif kind == 5:
        data = data[: r.randint(0, len(data))]
    elif kind == 6:
        data = with_broken_bytes(r, data)
    elif kind == 7:
        data = r.choice(
            (b"", b"\n", b"garbage", b"[]", b"null", b"{}", b'{"kept": 5}', b'{"kept": {"a": 1}}', *ODD_BYTES)
        )
    path.write_bytes(data)
    path.chmod(0o600)
    if is_one_in(r, 2):
        when = r.choice((0, 1, 10**9, int(time.time()) + 10**6, 2**33))
        os.utime(path, (when, when))
        yard.note("time of the state", when)
    yard.note("state", data)
    return sound


def some_recover_state(r: Random) -> Event:
    """Return a state as the recovery hook writes it."""
    ts = time.time() + r.choice((-1, -100, -599, -601, -(10**6), 100, 10**9))
    return {"count": r.randrange(12), "ts": ts, "last_idx": r.choice((None, 0, 3, 500)), "blocks": r.randrange(10)}


def some_coach_state(r: Random, yard: Yard, events: list[Event]) -> Event:
    """Return a state as the coach writes it, of calls that come in events."""
    kept, turn = {}, {}
    for event in events:
        if "tool_input" in event:
            key = yard.coach.key_of(event, event)
            look = yard.coach.look_of(event)
            kept[key] = {
                "tool": event["tool_name"],
                "error": r.choice(ERRORS),
                "at": time.time() - r.choice((0, 1, 599, 601, -50, 10**9)),
                "look": look if is_one_in(r, 2) else [event["cwd"]],
                "agent": event.get("agent_id", ""),
                "id": event["tool_use_id"],
                "denied": r.randrange(7),
                "over": is_one_in(r, 2),
            }
            turn[key], turn[f"refused {key}"] = r.randrange(4), r.randrange(6)
    return {"kept": kept, "turn": turn}


def inputs(r: Random, events: list[Event]) -> list[Input]:
    """Return events as they are sent: about half as they are, the others spoilt."""
    sent = []
    for event in events:
        kind = r.randrange(10)
        if kind < 5:
            sent.append(Input(support.encode(event), event))
        elif kind < 8:
            sent.append(Input(written(r, with_faults(r, event)), None))
        elif kind == 8:
            sent.append(Input(with_broken_bytes(r, written(r, event)), None))
        else:
            many = [written(r, r.choice(events)) for _ in range(r.randint(0, 3))]
            sent.append(Input(r.choice((b"", b"\n", b",")).join(many) + r.choice(ODD_BYTES), None))
    return sent


# --- The cases --------------------------------------------------------------------------------------------


def send(yard: Yard, hook: int, data: bytes, as_process: bool, env: dict[str, str]) -> Answer:
    """Send bytes to a hook: 0 the recovery hook, 1 the coach."""
    if as_process:
        return support.run_hook(yard.scripts[hook], data, yard.home, env=env, timeout=SLOW_SEC)
    main = (yard.recover, yard.coach)[hook].main

    def limited(argv: list[str]) -> int:
        signal.alarm(SLOW_SEC)
        result: int = main(argv)
        return result

    return support.fork_hook(limited, data, yard.home, env=env)


def check_answer(answer: Answer, hook: int) -> None:
    """Check exit code, stdout and stderr of a hook, whatever it was sent."""
    check(answer.code != -signal.SIGALRM, f"not done after {SLOW_SEC} s")
    check(answer.code in ((0, 2) if hook == 0 else (0,)), f"exit code {answer.code}: {answer.err[-3000:]}")
    if answer.code == 2:
        check("(recovery attempt" in answer.err and not answer.raw, f"a wake of another kind: {answer.err[-2000:]}")
    else:
        check(not answer.err, f"on stderr: {answer.err[-3000:]}")
    check(not answer.raw or answer.raw.endswith(b"}\n"), f"stdout: {answer.raw[-200:]!r}")
    check(not re.search(rb"NaN|Infinity", answer.raw) or answer.out is not None, "stdout is not JSON")


def check_files(before: dict[str, tuple[int, bytes]], after: dict[str, tuple[int, bytes]]) -> None:
    """Check that nothing has changed but what is ours, and that this is private."""
    for path in sorted({*before, *after}):
        if before.get(path) != after.get(path):
            check(OURS.fullmatch(path), f"{path} was {'changed' if path in before else 'made'}")
            if path in after and path not in before:
                check(after[path][0] == stat.S_IFREG | 0o600, f"{path} has mode {after[path][0]:o}")


def record(yard: Yard) -> list[list[str]]:
    """Return the record's lines, less their time."""
    path = yard.config / "toolcall-hooks.log"
    lines = path.read_text("ascii").splitlines() if path.exists() else []
    for line in lines:
        check(RECORD_LINE.fullmatch(line), f"a line of the record: {line!r}")
    return [line.split("\t")[1:] for line in lines]


def hook_case(r: Random, yard: Yard, hook: int, as_process: bool) -> None:
    """Send a hook a few events, sound and spoilt."""
    session, message = session_id(r), some_text(r)
    if hook == 0:
        events = [stop_event(r, yard, session, message) for _ in range(r.randint(1, 3))]
        state, path = some_recover_state(r), yard.recover.state_path("recover", session, events[0].get("agent_id", ""))
    else:
        events = [call_event(r, yard, session) for _ in range(r.randint(1, 5))]
        state, path = some_coach_state(r, yard, events), yard.coach.state_path("tool-coach", session)
    if is_one_in(r, 3):
        (yard.project / "there.txt").write_text("x")
    put_transcript(r, yard, message)
    own_prompts = put_prompts(r, yard)
    sound = session.isascii() and "\0" not in session and len(session) < 100  # others name no file, or two
    sound = sound and put_state(r, Path(path), state, yard)
    if is_one_in(r, 15):
        (yard.config / "tool-coach.off").touch(0o600)
    if is_one_in(r, 15):
        (yard.state / "cc-recover-heartbeat.on").touch(0o600)
    cap = r.choice(("", "0", "3", "8", "x", "-1", "9" * 30, "٣"))
    env = {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": cap} if is_one_in(r, 4) else {}
    for data, event in inputs(r, events[:1] if as_process else events):
        yard.note("event", data)
        before, said = yard.tree(), len(record(yard))
        answer = send(yard, hook, data, as_process, env)
        yard.note("answer", (answer.code, answer.raw, answer.err))
        check_answer(answer, hook)
        check_files(before, yard.tree())
        lines = record(yard)[said:]
        check(len(lines) <= 1, f"lines in the record: {lines}")
        sound = sound and event is not None
        check(not sound or not lines or lines[0][2] != "error", f"an internal error: {lines}")
        if hook == 0 and own_prompts and (answer.code == 2 or answer.out):
            check(yard.recover.find_leaked_call(answer.err + str(answer.out)) is None, "the answer holds a call")


def healing_case(r: Random, yard: Yard) -> None:
    """Whatever the recovery hook's state holds, endless leaks are handed back; the coach's is anew after a prompt."""
    message = "I look.\n\n" + support.leak()
    stop = head(r, yard, "s", hook_event_name="Stop", last_assistant_message=message)
    put_state(r, yard.state / "cc-recover-s.json", some_recover_state(r), yard)
    for number in range(14):
        answer = send(
            yard,
            0,
            support.encode({**stop, "stop_hook_active": number > 0}),
            False,
            {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0"},
        )
        check_answer(answer, 0)
        check(answer.out, f"a leak goes unanswered: {record(yard)}")
        if answer.out and "systemMessage" in answer.out:
            break
    check(number < 13, "leaks are blocked for ever")
    call = {"tool_name": "Read", "tool_input": {"file_path": "nowhere"}, "tool_use_id": "t1"}
    failed = head(
        r, yard, "s", hook_event_name="PostToolUseFailure", **call, error="File does not exist.", duration_ms=1
    )
    put_state(r, yard.state / "cc-tool-coach-s.json", some_coach_state(r, yard, [failed]), yard)
    for name, fields in (
        ("UserPromptSubmit", {"prompt": "go"}),
        ("PostToolUseFailure", failed),
        ("PostToolBatch", {"tool_calls": [call]}),
    ):
        check_answer(
            send(yard, 1, support.encode({**head(r, yard, "s"), **fields, "hook_event_name": name}), False, {}), 1
        )
    answer = send(yard, 1, support.encode(head(r, yard, "s", hook_event_name="PreToolUse", **call)), False, {})
    check_answer(answer, 1)
    check(answer.out, f"the repeated call runs: {record(yard)}")


def detection_case(r: Random, yard: Yard) -> None:
    """What holds for every message: masking, fences, prose before it."""
    mask, find = yard.recover.mask_code, yard.recover.find_leaked_call
    for _ in range(10):
        text = some_text(r)
        yard.note("text", text)
        masked = mask(text)
        check(masked.count("\n") == text.count("\n"), "masking changes the number of lines")
        if "\\`" not in text:  # an escaped tick can close a span but not open one: hidden it is no partner any more
            check(mask(masked) == masked, "masking twice is not masking once")
        tick = r.choice("`~")
        longest = max((len(run) for run in re.findall(f"{tick}+", text)), default=0)
        fence = tick * max(3, longest + 1)
        check(find(f"{fence}\n{text}\n{fence}") is None, "a call in a fence is taken for a leak")
        check(find(f"So:\n\n{fence} xml\n{text}") is None, "a call in an open fence is taken for a leak")
        if find(text) is not None:
            for prose in ("I look at it.\n\n", "One. Two words.\nMore of it.\n\n", "# T\n\nA `span` here.\n\n"):
                check(find(prose + text) is not None, f"prose silences a leak: {prose!r}")
    text = r.choice(FIRING)
    yard.note("text", text)
    check(find(some_prose(r) + text) is not None, "prose silences a leak")


def some_prose(r: Random) -> str:
    """Return a few paragraphs without code."""
    words = (
        "the",
        "blocks",
        "is",
        "kept",
        "é",
        "目次",
        "(a)",
        "b/c",
        "2.1",
        "go:",
        "say,",
        "-x",
        "a_b",
        "it's",
        "1.",
        "name=",
        "<b>",
    )
    paragraphs = [
        " ".join(["So", *(r.choice(words) for _ in range(r.randint(1, 12)))]) + "." for _ in range(r.randint(1, 4))
    ]
    return "\n\n".join(paragraphs) + "\n\n"


# --- Settings ---------------------------------------------------------------------------------------------


class TooSlow(BaseException):
    """A maintenance command takes too long."""


def maintain(yard: Yard, *argv: str) -> tuple[int, str]:
    """Run a maintenance command in this process; return the exit code and what it says."""
    out, code, said = io.StringIO(), 0, ""

    def give_up(*_: object) -> None:
        raise TooSlow(f"not done after {SLOW_SEC} s")

    former, here, environment = signal.signal(signal.SIGALRM, give_up), Path.cwd(), dict(os.environ)
    signal.alarm(SLOW_SEC)
    os.environ.clear()
    os.environ.update(HOME=str(yard.home), PATH=str(yard.project))
    os.chdir(yard.project)
    try:
        with contextlib.redirect_stdout(out):
            code = yard.recover.main(list(argv))
    except SystemExit as end:
        code, said = (1, end.code) if isinstance(end.code, str) else (2, str(end.code))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(here)
    yard.note(" ".join(argv), (code, said, out.getvalue()))
    return code, said or out.getvalue()


def some_settings(r: Random) -> bytes:
    """Return the bytes of a settings file of any kind."""
    kind = r.randrange(10)
    if kind < 2:
        return with_broken_bytes(r, r.choice(SHAPES))
    value: Any = {}
    with contextlib.suppress(ValueError):
        value = json.loads(r.choice(SHAPES).decode("utf-8-sig"))
    if kind > 4:
        handlers: list[Any] = [
            {
                "type": "command",
                "command": r.choice(
                    ("echo", 'python3 -I -S "/x/hooks/tool_coach.py"', "x/tool_coach.py", some_text(r))
                ),
            },
            {"type": "prompt", "prompt": "x"},
            anything(r, 1),
        ]
        groups = [
            {"matcher": "x", "hooks": [r.choice(handlers) for _ in range(r.randrange(3))]}
            for _ in range(r.randrange(3))
        ]
        events = ("Stop", "StopFailure", "PreToolUse", "PostToolUse", "Notification", "", "é")
        value = {
            "model": "x",
            "hooks": {r.choice(events): groups for _ in range(r.randrange(4))},
            **({"z": anything(r)} if kind > 7 else {}),
        }
    if kind > 5 or kind < 4:
        value = with_faults(r, value)
    text = json.dumps(
        value,
        indent=r.choice((None, None, 1, 2, 4, "\t")),
        ensure_ascii=is_one_in(r, 2),
        separators=r.choice((None, (",", ":"))),
    )
    text = text.replace("\n", "\r\n") if is_one_in(r, 6) else text
    text = "\ufeff" * is_one_in(r, 8) + text + r.choice(("", "\n", "\r\n", "\n\n", " \t"))
    return text.encode("utf-8", "surrogatepass")


def strict(data: bytes) -> Any:
    """Return the value of settings; ValueError for what is no JSON, NaN included."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    return json.loads(data.decode("utf-8-sig"), parse_constant=refuse)


def less_ours(yard: Yard, settings: Any) -> tuple[Any, int]:
    """Return settings without our handlers and without hook lists that are empty, and how many they were."""
    settings = copy.deepcopy(settings)
    ours = [id(handler) for _, _, _, handler in yard.recover.registered(settings, "")]
    for event, groups in list(settings.get("hooks", {}).items()):
        left = []
        for group in groups:
            others = [handler for handler in group.get("hooks", []) if id(handler) not in ours]
            if len(others) == len(group.get("hooks", [])):
                left.append(group)
            elif others:
                left.append({**group, "hooks": others})
        settings["hooks"][event] = left
    hooks = {event: groups for event, groups in settings.pop("hooks", {}).items() if groups}
    return {"hooks": hooks, **settings}, len(ours)


def settings_case(r: Random, yard: Yard) -> None:
    """Install, install again, uninstall: refused without a trace, or the settings are the user's as before."""
    data = some_settings(r)
    path = yard.config / "settings.json"
    path.write_bytes(data)
    path.chmod(r.choice((0o600, 0o644)))
    yard.note("settings", data)
    shutil.copy(support.ROOT / "prompts.txt", yard.prompts)
    before = yard.tree()
    if is_one_in(r, 10):
        maintain(yard, r.choice(("install", "uninstall")), "--dry-run")
        check(yard.tree() == before, "a dry run changes files")
    code, said = maintain(yard, "install")
    if code:
        check(said.startswith(str(path)), f"the refusal says: {said!r}")
        check(yard.tree() == before, "a refused install changes files")
        code, _ = maintain(yard, "uninstall")
        check(code and yard.tree() == before, "a refused uninstall changes files")
        return
    old, new = strict(data), strict(path.read_bytes())
    wanted, number = less_ours(yard, old)
    found, _ = less_ours(yard, new)
    check(json.dumps(found) == json.dumps(wanted), "install changes the user's own")
    entries = sorted((script, event) for event, script, _, _ in yard.recover.registered(new, ""))
    check(
        entries == sorted((s, e) for s, events in yard.recover.EVENTS.items() for e in events), f"registered: {entries}"
    )
    installed = yard.tree()
    check(maintain(yard, "install")[0] == 0, "the second install fails")
    check(yard.tree() == installed, "the second install changes files")
    code, said = maintain(yard, "uninstall")
    check(code == 0, "uninstall fails")
    kept = "which settings still name" in said  # another hook does, in words that are not ours
    after = yard.tree()
    if not number and not kept:
        check(
            after == before, f"uninstall leaves {sorted(p for p in {*after, *before} if after.get(p) != before.get(p))}"
        )
    left, number = less_ours(yard, strict(path.read_bytes()))
    check(number == 0 and json.dumps(left) == json.dumps(wanted), "uninstall changes the user's own")
    check({name for name in after if name in before} == set(before), "uninstall removes files")
    check(kept or set(after) == set(before), f"uninstall leaves {sorted(set(after) - set(before))}")


KINDS: tuple[tuple[int, str, Callable[[Random, Yard], None]], ...] = (
    (38, "recover", partial(hook_case, hook=0, as_process=False)),
    (38, "coach", partial(hook_case, hook=1, as_process=False)),
    (2, "recover-process", partial(hook_case, hook=0, as_process=True)),
    (2, "coach-process", partial(hook_case, hook=1, as_process=True)),
    (4, "healing", healing_case),
    (6, "detection", detection_case),
    (10, "settings", settings_case),
)


def run_case(seed: int, number: int, yard: Yard) -> str:
    """Run a case; return what is wrong, "" for nothing."""
    r = Random(f"{seed}:{number}")
    yard.clear()
    [(_, name, case)] = r.choices(KINDS, [weight for weight, _, _ in KINDS])
    try:
        case(r, yard)
    except AssertionError as error:
        return f"{name}: {error}".replace("<", "\u2039")
    except BaseException:
        return f"{name}: {traceback.format_exc()[-3000:]}".replace("<", "\u2039")
    return ""


def run_cases(seed: int, numbers: range) -> list[tuple[int, str]]:
    """Run cases in a folder of their own; return (number, what is wrong) of those that fail."""
    yard = Yard()
    try:
        return [(number, wrong) for number in numbers for wrong in [run_case(seed, number, yard)] if wrong]
    finally:
        shutil.rmtree(yard.folder, True)


def main(argv: list[str]) -> int:
    """Run the cases; return 1 if any fails."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="this one alone")
    options = parser.parse_args(argv)
    start = time.monotonic()
    if options.case is not None:
        yard = Yard()
        wrong = run_case(options.seed, options.case, yard)
        print("\n".join([*yard.made_of, wrong or "nothing is wrong"]).encode("utf-8", "backslashreplace").decode())
        shutil.rmtree(yard.folder, True)
        return 1 if wrong else 0
    parts = [range(first, min(first + 50, options.cases)) for first in range(0, options.cases, 50)]
    failures = 0
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("fork")) as pool:
        for found in pool.map(partial(run_cases, options.seed), parts):
            for number, wrong in found:
                failures += 1
                print(
                    f"--seed {options.seed} --case {number}: {wrong}".encode("utf-8", "backslashreplace").decode(),
                    flush=True,
                )
    print(f"{options.cases} cases, {failures} failures, {time.monotonic() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""Measure what a hook costs: whole processes, interleaved with a bare interpreter in the same run, as ratios to it.

Ratios, because milliseconds tell of the machine. On a busy one the ratio of the processor's time, in the last column,
is the steadier. Nothing here is a test: tests/test_cost.py checks the causes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Callable, NamedTuple

import support

BARE = [sys.executable, "-I", "-S", "-c", "pass"]
QUICK, DECISION = 1.6, 3.2  # what a run may cost at most, in bare starts; where it is 0, only the last lines tell
SMALL, LARGE = 10_000, 1 << 30  # bytes of a transcript
MEMORY = (
    "import os, resource, sys; pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ); os.waitpid(pid, 0); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
)


class Case(NamedTuple):
    """One kind of run: its name, script, event, what it has to answer, its limit, and what comes before each run."""

    name: str
    script: Path
    event: support.Event
    answers: str
    limit: float
    prepare: Callable[[], object]


def make_transcript(path: Path, size: int) -> Path:
    """Write a transcript of some size whose last rows, about 9,000 bytes, are a whole turn; what precedes is a hole."""
    rows: list[support.Event] = [{"type": "user", "message": {"role": "user", "content": "Do it."}}]
    for number in range(25):
        content = [{"type": "text", "text": f"Step {number}: " + "words " * 40}]
        rows.append({"type": "assistant", "message": {"id": f"msg_{number}", "role": "assistant", "content": content}})
    tail = b"\n" + b"".join(support.encode(row) for row in rows)
    with path.open("wb") as file:
        file.truncate(size - len(tail))
        file.seek(0, os.SEEK_END)
        file.write(tail)
    return path


class Run(NamedTuple):
    """What a process took, in seconds: from its start to its end, and of the processor."""

    whole: float
    processor: float


def run_once(command: list[str], event: bytes, env: dict[str, str]) -> Run:
    """Return what a process that is given an event takes."""
    reading, writing = os.pipe()
    os.write(writing, event)
    os.close(writing)
    nothing = os.open(os.devnull, os.O_WRONLY)
    moves = [(os.POSIX_SPAWN_DUP2, reading, 0), (os.POSIX_SPAWN_DUP2, nothing, 1), (os.POSIX_SPAWN_DUP2, nothing, 2)]
    begin = time.perf_counter()
    used = os.wait4(os.posix_spawn(command[0], command, env, file_actions=moves), 0)[2]
    whole = time.perf_counter() - begin
    os.close(reading)
    os.close(nothing)
    return Run(whole, used.ru_utime + used.ru_stime)


def peak_memory(command: list[str], event: bytes, env: dict[str, str]) -> int:
    """Return the most memory that a process had, in bytes; never less than a bare interpreter has, which starts it."""
    launcher = [sys.executable, "-I", "-S", "-c", MEMORY, *command]
    done = subprocess.run(launcher, input=event, capture_output=True, env=env, check=True)
    return int(done.stdout.split()[-1]) * (1 if sys.platform == "darwin" else 1024)


def compile_cost(script: Path, rounds: int) -> tuple[int, float]:
    """Return the lines of a script, and the seconds that compiling a hundred of them takes at least."""
    source = script.read_text("utf-8")
    lines, times = source.count("\n"), []
    for _ in range(rounds):
        begin = time.perf_counter()
        compile(source, script.name, "exec")
        times.append(time.perf_counter() - begin)
    return lines, min(times) / lines * 100


class Bench:
    """A home, sessions and transcripts of its own."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="toolcall-hooks-bench-"))
        self.env = {"HOME": str(self.home), "PATH": os.environ.get("PATH", "")}
        self.sessions: list[str] = []
        (self.home / ".claude").mkdir()

    def close(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.home, True)
        for session in self.sessions:
            support.remove_state(session)

    def head(self, name: str) -> support.Event:
        """Return the fields that begin an event of a new session, in the client's order."""
        self.sessions.append(str(uuid.uuid4()))
        path = str(self.home / "transcript.jsonl")
        return {
            "session_id": self.sessions[-1],
            "transcript_path": path,
            "cwd": str(self.home),
            "hook_event_name": name,
        }

    def after(self, script: Path, event: support.Event, *before: support.Event) -> Callable[[], None]:
        """Return what puts a session into the state that some events left."""
        for earlier in before:
            support.run_hook(script, {**event, **earlier}, self.home)
        files = [
            (path, path.read_bytes(), path.stat().st_mtime_ns) for path in support.state_files(event["session_id"])
        ]

        def restore() -> None:
            for path in support.state_files(event["session_id"]):
                path.unlink()
            for path, data, changed in files:
                path.write_bytes(data)
                path.chmod(0o600)
                os.utime(path, ns=(changed, changed))

        return restore

    def cases(self) -> list[Case]:
        """Return what is measured."""
        call = {"tool_name": "Read", "tool_input": {"file_path": f"{self.home}/missing.txt"}, "tool_use_id": "toolu_1"}
        failure = {
            "hook_event_name": "PostToolUseFailure",
            **call,
            "error": "File does not exist.",
            "is_interrupt": False,
        }
        batch = {"hook_event_name": "PostToolBatch", "tool_calls": [{**call, "tool_response": "File does not exist."}]}
        refused = {**call, "tool_response": "<tool_use_error>InputValidationError: no.</tool_use_error>"}
        refusal = {"hook_event_name": "PostToolBatch", "tool_calls": [refused]}
        written = {"hook_event_name": "PostToolUse", "tool_name": "Write", "tool_input": {}, "tool_response": "fine"}
        leaked = "I read it.\n\n" + support.leak("Read", file_path="a.txt")
        make_transcript(self.home / "transcript.jsonl", SMALL)
        large = str(make_transcript(self.home / "large.jsonl", LARGE))

        def coach(name: str, event: support.Event, answers: str, limit: float, *before: support.Event) -> Case:
            whole = {**self.head(""), **event}
            return Case(name, support.COACH, whole, answers, limit, self.after(support.COACH, whole, *before))

        def recover(name: str, answers: str, limit: float, **fields: object) -> Case:
            whole = {**self.head("Stop"), "stop_hook_active": False, **fields}
            return Case(name, support.RECOVER, whole, answers, limit, self.after(support.RECOVER, whole))

        before_call = {"hook_event_name": "PreToolUse", **call}
        return [
            coach("a call, nothing kept (PreToolUse)", before_call, "", QUICK, written),
            coach("a change, nothing kept (PostToolUse)", written, "", QUICK, written),
            coach("a batch without a refusal (PostToolBatch)", batch, "", QUICK, written),
            recover("an ordinary end of a turn (Stop)", "", QUICK, last_assistant_message="All done."),
            coach("a repeated call is denied", before_call, "permissionDecision", DECISION, failure, batch),
            coach("a failed call is kept", failure, "", DECISION, written),
            coach("a second refusal brings a note", refusal, "additionalContext", DECISION, refusal),
            recover("a leaked call is sent back", "decision", DECISION, last_assistant_message=leaked),
            recover("a Stop that must read a transcript of 10 kB", "", 0),
            recover("a Stop that must read a transcript of 1 GB", "", 0, transcript_path=large),
        ]


def check(bench: Bench, case: Case) -> None:
    """Check that a case does what its name says; SystemExit if not, for then its time means nothing."""
    case.prepare()
    before = [path.read_bytes() for path in support.state_files(case.event["session_id"])]
    answer = support.run_hook(case.script, case.event, bench.home)
    after = [path.read_bytes() for path in support.state_files(case.event["session_id"])]
    right = answer.code == 0 and (case.answers in json.dumps(answer.out) if case.answers else answer.out is None)
    if case.name == "a failed call is kept":
        right = right and before != after
    if not right:
        raise SystemExit(f"{case.name}: {answer}")


def measure(bench: Bench, cases: Sequence[Case], rounds: int) -> dict[str, list[Run]]:
    """Return every run of each case, "" being the bare start; in another order each round."""
    runs: dict[str, list[Run]] = {"": [], **{case.name: [] for case in cases}}
    order: list[Case | None] = [None, *cases]
    for _ in range(rounds):
        random.shuffle(order)
        for case in order:
            if case is None:
                runs[""].append(run_once(BARE, b"", bench.env))
            else:
                case.prepare()
                command = [sys.executable, "-I", "-S", str(case.script)]
                runs[case.name].append(run_once(command, support.encode(case.event), bench.env))
    return runs


def report(bench: Bench, cases: Sequence[Case], runs: dict[str, list[Run]]) -> None:
    """Print the table."""
    whole = {name: statistics.median(run.whole for run in them) for name, them in runs.items()}
    least = {name: min(run.whole for run in them) for name, them in runs.items()}
    processor = {name: statistics.median(run.processor for run in them) for name, them in runs.items()}
    print(f"{'':46}{'median':>9}{'least':>9}{'x bare':>9}{'reach':>7}{'least x':>9}{'cpu x':>7}")
    for name, limit in [("", 0.0), *((case.name, case.limit) for case in cases)]:
        print(
            f"{name or 'bare python3 -I -S -c pass':46}{whole[name] * 1e3:6.1f} ms{least[name] * 1e3:6.1f} ms"
            f"{whole[name] / whole['']:9.2f}{limit or '':>7}{least[name] / least['']:9.2f}"
            f"{processor[name] / processor['']:7.2f}{'  missed' if 0 < limit < whole[name] / whole[''] else ''}"
        )
    small, large = (whole[case.name] for case in cases[-2:])
    print(f"\n1 GB beside 10 kB: {large / small:.2f} times the time (reach 1.2)")
    for case in cases[-2:]:
        case.prepare()
        command = [sys.executable, "-I", "-S", str(case.script)]
        memory = peak_memory(command, support.encode(case.event), bench.env)
        print(f"{case.name}: {memory / 1e6:.1f} MB at most")
    print(f"a bare interpreter: {peak_memory(BARE, b'', bench.env) / 1e6:.1f} MB at most")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="how often each kind of run is measured (default 60)")
    rounds = parser.parse_args(argv).rounds
    print(f"Python {sys.version.split()[0]}, {rounds} rounds, everything run in turn\n")
    bench = Bench()
    try:
        cases = bench.cases()
        for case in cases:
            check(bench, case)
        report(bench, cases, measure(bench, cases, rounds))
    finally:
        bench.close()
    for script in (support.RECOVER, support.COACH):
        lines, cost = compile_cost(script, rounds)
        total = cost * lines / 100
        print(f"compiling {script.name}: {lines} lines, {cost * 1e3:.2f} ms a hundred, {total * 1e3:.1f} ms in all")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

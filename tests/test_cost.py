"""Why the hooks are quick: what the usual run imports, and how little of a large transcript is read."""

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import bench
import recover_malformed_toolcall as recover
import support
import tool_coach as coach

HEAVY = {"json", "re", "hashlib", "typing", "random", "tempfile", "contextlib", "pathlib", "subprocess", "argparse"}
NEVER = {"typing", "random", "tempfile", "pathlib", "subprocess", "argparse", "shutil", "ast", "difflib", "asyncio"}
CALL = {"tool_name": "Read", "tool_input": {"file_path": "/nowhere/a.txt"}, "tool_use_id": "toolu_1"}
FAILURE = {"hook_event_name": "PostToolUseFailure", **CALL, "error": "File does not exist.", "is_interrupt": False}
BATCH = {"hook_event_name": "PostToolBatch", "tool_calls": [{**CALL, "tool_response": "File does not exist."}]}
PRE = {"hook_event_name": "PreToolUse", **CALL}
WRITTEN = {"hook_event_name": "PostToolUse", "tool_name": "Write", "tool_input": {}, "tool_response": "fine"}
PROMPT = {"hook_event_name": "UserPromptSubmit", "prompt": "Do it."}
END = {"hook_event_name": "SessionEnd", "reason": "other"}
STOP = {"hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": "All done."}


class Imports(support.HookTest):
    def head(self, **fields: object) -> support.Event:
        """Return an event of the session, its fields in the client's order."""
        return {"session_id": self.session, "transcript_path": f"{self.home}/t.jsonl", "cwd": str(self.home), **fields}

    def imported(self, script: Path, event: support.Event, acts: bool = False) -> set[str]:
        """Return the modules that a run imports; AssertionError if it does not act, or not stay quiet, as said."""
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-X", "importtime", str(script)],
            input=support.encode(self.head(**event)),
            capture_output=True,
            env={"HOME": str(self.home), "PATH": os.environ.get("PATH", "")},
            check=True,
        )
        self.assertEqual(bool(done.stdout), acts, done.stdout)
        lines = [line for line in done.stderr.decode().splitlines() if line.startswith("import time:")]
        names = {line.rpartition("|")[2].strip() for line in lines}
        self.assertIn("os", names)
        return {name.partition(".")[0] for name in names}

    def test_a_usual_run_of_the_coach_imports_nothing_heavy(self) -> None:
        for before, states in (((), 0), ((WRITTEN,), 1)):
            for event in (PRE, BATCH, WRITTEN, PRE, BATCH, PROMPT, END):
                if states and event in (PROMPT, END):
                    continue  # they have something to remove then
                with self.subTest(event=event["hook_event_name"], after=len(before)):
                    if not states:
                        support.remove_state(self.session)
                    for earlier in before:
                        support.run_hook(support.COACH, self.head(**earlier), self.home)
                    self.assertEqual(self.imported(support.COACH, event) & HEAVY, set())

    def test_a_switched_off_coach_imports_nothing_heavy(self) -> None:
        (self.home / ".claude").mkdir(exist_ok=True)
        (self.home / ".claude" / "tool-coach.off").touch()
        for event in (PRE, FAILURE, BATCH, WRITTEN, PROMPT):
            with self.subTest(event=event["hook_event_name"]):
                self.assertEqual(self.imported(support.COACH, event) & HEAVY, set())

    def test_an_ordinary_end_of_a_turn_imports_nothing_heavy(self) -> None:
        agent = {"agent_id": "a1", "agent_type": "general-purpose"}
        for name, more in (("Stop", {}), ("SubagentStop", agent)):
            for message in ("All done.", "Done: `ls <dir>` shows «3» files; it costs 5 < 6.", "ü" * 100_000):
                with self.subTest(event=name, message=message[:20]):
                    event = {**STOP, **more, "hook_event_name": name, "last_assistant_message": message}
                    self.assertEqual(self.imported(support.RECOVER, event) & HEAVY, set())

    def test_the_end_of_a_burst_is_over_at_the_next_stop_but_one(self) -> None:
        leaked = {**STOP, "last_assistant_message": support.leak()}
        self.imported(support.RECOVER, leaked, acts=True)
        self.assertIn("json", self.imported(support.RECOVER, STOP))
        self.assertEqual(self.imported(support.RECOVER, STOP) & HEAVY, set())

    def test_no_run_imports_what_only_maintenance_needs(self) -> None:
        refused = {**CALL, "tool_response": "<tool_use_error>InputValidationError: no.</tool_use_error>"}
        refusal = {"hook_event_name": "PostToolBatch", "tool_calls": [refused]}
        asked = {"hook_event_name": "UserPromptExpansion", "command_name": "tool-coach", "command_args": ""}
        for event, acts in (
            (FAILURE, False),
            (BATCH, False),
            (PRE, True),
            (WRITTEN, False),
            (refusal, False),
            (refusal, True),
            (asked, True),
            (PROMPT, False),
            (END, False),
        ):
            with self.subTest(event=event["hook_event_name"], acts=acts):
                self.assertEqual(self.imported(support.COACH, event, acts) & NEVER, set())
        transcript = bench.make_transcript(self.home / "t.jsonl", bench.SMALL)
        unknown = {"hook_event_name": "Stop", "transcript_path": str(transcript)}
        leaked = {**STOP, "last_assistant_message": support.leak()}
        for event, acts in ((leaked, True), (STOP, False), (unknown, False)):
            with self.subTest(event=event, acts=acts):
                self.assertEqual(self.imported(support.RECOVER, event, acts) & (NEVER | {"hashlib"}), set())


class Transcripts(support.HookTest):
    @contextmanager
    def counted(self) -> Iterator[list[int]]:
        """Count the bytes that are read from files opened meanwhile, one number a read."""
        reads: list[int] = []
        real_open, real_read = builtins.open, os.read

        def counting_open(*args: Any, **kwargs: Any) -> Any:
            file = real_open(*args, **kwargs)
            wrapped = mock.MagicMock(wraps=file)
            wrapped.__enter__.side_effect = lambda: wrapped
            wrapped.__exit__.side_effect = lambda *error: file.close()

            def read(*sizes: int) -> Any:
                data = file.read(*sizes)
                reads.append(len(data))
                return data

            wrapped.read.side_effect = read
            return wrapped

        def counting_read(fd: int, size: int) -> bytes:
            data = real_read(fd, size)
            reads.append(len(data))
            return data

        with mock.patch("builtins.open", counting_open), mock.patch("os.read", counting_read):
            yield reads

    def large(self, tail: bytes = b"") -> Path:
        """Return a transcript of 1 GB; tail: what it ends with, a whole turn if nothing is said."""
        path = self.home / "large.jsonl"
        if not tail:
            return bench.make_transcript(path, bench.LARGE)
        with path.open("wb") as file:
            file.truncate(bench.LARGE)
            file.seek(0, os.SEEK_END)
            file.write(tail)
        return path

    def test_a_stop_reads_the_last_turn_of_a_large_transcript_and_no_more(self) -> None:
        path = self.large()
        with self.counted() as reads:
            turn = recover.read_turn(str(path), False, "", 0)
        assert turn
        self.assertTrue(turn["texts"][0].startswith("Step 24"))
        self.assertGreater(sum(reads), 1000)
        self.assertLessEqual(sum(reads), 70_000)

    def test_a_stop_reads_no_more_than_its_limit_where_no_row_helps(self) -> None:
        row = support.encode({"type": "attachment", "message": {"id": 1, "content": "x" * 500}})
        for name, tail in {
            "one endless line": b"x" * 3_000_000,
            "rows of other kinds": row * 5000,
            "broken rows": b'{"message": \n' * 100_000,
            "holes": b"\n",
        }.items():
            with self.subTest(tail=name):
                with self.counted() as reads:
                    turn = recover.read_turn(str(self.large(tail)), False, "", 0)
                self.assertFalse(turn and turn["written"])
                self.assertGreater(sum(reads), recover.TAIL_BYTES // 2)
                self.assertLessEqual(sum(reads), recover.TAIL_BYTES)

    def test_the_coach_finds_a_batch_at_the_end_and_reads_no_more_than_its_limit(self) -> None:
        for messages, together in ((("msg_1", "msg_1"), True), (("msg_1", "msg_2"), False), ((), False)):
            rows = [
                support.encode({"message": {"id": message, "content": [{"type": "tool_use", "id": f"toolu_{number}"}]}})
                for number, message in enumerate(messages, 1)
            ]
            path = self.large(b"\n" + b"".join(rows))
            with self.counted() as reads:
                found = coach.in_one_message({"transcript_path": str(path), "tool_use_id": "toolu_2"}, "toolu_1")
            self.assertEqual(found, together)
            self.assertGreater(sum(reads), 100)
            self.assertLessEqual(sum(reads), coach.TAIL_BYTES)

    def test_memory_stays_flat(self) -> None:
        small = bench.make_transcript(self.home / "small.jsonl", bench.SMALL)
        env = {"HOME": str(self.home), "PATH": os.environ.get("PATH", "")}
        peaks = []
        for path in (small, self.large()):
            event = {"session_id": self.session, "transcript_path": str(path), "hook_event_name": "Stop"}
            command = [sys.executable, "-I", "-S", str(support.RECOVER)]
            peaks.append(bench.peak_memory(command, support.encode(event), env))
        self.assertLess(peaks[1] - peaks[0], 3_000_000)
        bare = bench.peak_memory(bench.BARE, b"", env)
        self.assertLess(peaks[1] - bare, 20_000_000)

    def test_an_unreadable_transcript_is_asked_for_once_when_the_message_is_known(self) -> None:
        event = {"session_id": self.session, "transcript_path": "/nowhere/t.jsonl", **STOP}
        with self.counted() as reads:
            self.assertEqual(recover.on_stop(event), 0)
        self.assertEqual(sum(reads), 0)


class ThePipe(support.HookTest):
    def test_an_event_is_read_once_and_whole(self) -> None:
        event = {"session_id": self.session, **STOP, "last_assistant_message": "x " * 150_000 + support.leak()}
        answer = support.run_hook(support.RECOVER, event, self.home)
        self.assertEqual(json.loads(answer.raw)["decision"], "block")


if __name__ == "__main__":
    unittest.main()

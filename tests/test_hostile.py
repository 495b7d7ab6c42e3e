"""Both hooks in hostile surroundings: they never hang, never crash, never touch what is not theirs."""

from __future__ import annotations

import functools
import json
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import time
import unittest
import unittest.mock
from pathlib import Path
from typing import Any, Callable

import recover_malformed_toolcall
import tool_coach
from support import (
    COACH,
    GIVE_UP,
    RECOVER,
    ROOT,
    Answer,
    Event,
    HookTest,
    copy_script,
    encode,
    fork_hook,
    holding,
    leak,
    run_hook,
)

QUIET = (0, b"", "")
MISSING = "File does not exist."
WINDOWS = ROOT / "tests" / "windows.py"
NOBODY = 65534
recover_malformed_toolcall.find_leaked_call(leak())  # the patterns are compiled here, not in every forked child
tool_coach.is_passing("")
am_root = hasattr(os, "geteuid") and os.geteuid() == 0


class HostileTest(HookTest):
    def setUp(self) -> None:
        super().setUp()
        self.transcript = self.home / "transcript.jsonl"
        self.precious = self.home / "precious"
        self.precious.write_text("mine")
        self.folder = self.home / "tmp"
        self.folder.mkdir()

    def event(self, name: str, **fields: Any) -> Event:
        event: Event = {"session_id": self.session, "transcript_path": str(self.transcript), "cwd": "/w"}
        return {**event, "hook_event_name": name, **fields}

    def stop(self, **fields: Any) -> Event:
        return self.event("Stop", **{"last_assistant_message": "court\n" + leak(), **fields})

    def call(self, name: str, **fields: Any) -> Event:
        call = {"tool_name": "Read", "tool_input": {"file_path": "/w/a"}, "tool_use_id": f"toolu_{name}"}
        return self.event(name, **{**call, **fields})

    def failure(self, **fields: Any) -> Event:
        return self.call("PostToolUseFailure", **{"error": MISSING, **fields})

    def batch(self) -> Event:
        return self.event("PostToolBatch", tool_calls=[])

    def fork(self, event: Event | bytes, **how: Any) -> Answer:
        """Run the hook that an event is for, in a forked child."""
        mine = b"Stop" in event if isinstance(event, bytes) else "Stop" in event.get("hook_event_name", "")
        return fork_hook((recover_malformed_toolcall if mine else tool_coach).main, event, self.home, **how)

    def keep_state_in(self, folder: Path) -> None:
        """Let both hooks keep their state elsewhere, in forked children."""
        for module in (recover_malformed_toolcall, tool_coach):
            patch = unittest.mock.patch.object(module, "STATE_DIR", str(folder))
            patch.start()
            self.addCleanup(patch.stop)

    def recover_state(self) -> Path:
        return Path(f"/tmp/cc-recover-{self.session}.json")

    def coach_state(self) -> Path:
        return Path(f"/tmp/cc-tool-coach-{self.session}.json")

    def assert_quiet(self, answer: Answer) -> None:
        self.assertEqual((answer.code, answer.raw, answer.err), QUIET)

    def assert_block(self, answer: Answer) -> None:
        self.assertEqual((answer.code, (answer.out or {}).get("decision"), answer.err), (0, "block", ""))

    def assert_deny(self, answer: Answer) -> None:
        decision = (answer.out or {}).get("hookSpecificOutput", {}).get("permissionDecision")
        self.assertEqual((answer.code, decision, answer.err), (0, "deny", ""))

    def assert_both_work(self, run: Callable[[Path, Event], Answer] | None = None, **how: Any) -> None:
        """Assert that the one hook blocks and the other denies, however they are run: in a forked child if not said."""
        go = run or (lambda _, event: self.fork(event, **how))
        self.assert_block(go(RECOVER, self.stop()))
        self.assert_quiet(go(COACH, self.failure()))
        self.assert_quiet(go(COACH, self.batch()))
        self.assert_deny(go(COACH, self.call("PreToolUse")))

    def planted(self) -> list[tuple[str, Callable[[Path], object]]]:
        """Return what may lie where a hook expects its own file: a name, and a function that puts it there."""
        things: list[tuple[str, Callable[[Path], object]]] = [
            ("link to a file", lambda path: path.symlink_to(self.precious)),
            ("link to nothing", lambda path: path.symlink_to(self.home / "not there")),
            ("link to a folder", lambda path: path.symlink_to(self.home)),
            ("link to itself", lambda path: path.symlink_to(path)),
            ("link to a device", lambda path: path.symlink_to("/dev/full")),
            ("second name of a file", lambda path: os.link(self.precious, path)),
            ("folder", lambda path: path.mkdir()),
            ("fifo", os.mkfifo),
            ("socket", self.put_socket),
        ]
        if am_root:
            things.append(("file of another user", self.put_foreign_file))
        return things

    def put_foreign_file(self, path: Path) -> None:
        path.write_text("mine")
        os.chown(path, NOBODY, NOBODY)

    def put_socket(self, path: Path) -> None:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))

    def remove(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()

    def look(self, path: Path) -> tuple[int, int, str]:
        info = path.lstat()
        return info.st_mode, info.st_uid, path.read_text() if path.is_file() else ""


class Planted(HostileTest):
    def test_nothing_planted_in_place_of_a_state_is_followed_or_trusted(self) -> None:
        os.link(self.precious, self.home / "second name")  # so that both hard-link cases start alike
        for name, put in self.planted():
            with self.subTest(name):
                for path in (self.recover_state(), self.coach_state()):
                    put(path)
                before = [self.look(path) for path in (self.recover_state(), self.coach_state())]
                for event in (
                    self.stop(), self.stop(last_assistant_message="Done."), self.failure(), self.batch(),
                    self.call("PreToolUse"), self.call("PostToolUse", tool_name="Bash"),
                    self.event("UserPromptSubmit", prompt="x"), self.call("PreToolUse"),
                ):  # fmt: skip
                    self.assert_quiet(self.fork(event))
                after = [self.look(path) for path in (self.recover_state(), self.coach_state())]
                self.assertEqual(after, before)
                self.assertEqual(self.precious.read_text(), "mine")
                self.assertFalse((self.home / "not there").exists())
                for path in (self.recover_state(), self.coach_state()):
                    self.remove(path)

    def test_the_sessions_end_removes_nothing_that_is_not_the_hooks_own(self) -> None:
        for name, put in self.planted():
            with self.subTest(name):
                put(self.coach_state())
                self.assert_quiet(self.fork(self.event("SessionEnd", reason="other")))
                self.assertTrue(os.path.lexists(self.coach_state()))
                self.remove(self.coach_state())

    def test_nothing_planted_in_place_of_the_record_is_written_to_and_both_hooks_still_work(self) -> None:
        log = self.home / ".claude" / "toolcall-hooks.log"
        for name, put in self.planted():
            with self.subTest(name):
                self.session = self.new_session()
                put(log)
                before = self.look(log)
                self.assert_both_work()
                self.assertEqual(self.look(log), before)
                self.assertEqual(self.precious.read_text(), "mine")
                self.assertFalse((self.home / "not there").exists())
                self.remove(log)

    def test_nothing_planted_in_place_of_the_heartbeats_files_is_trusted_or_written_to(self) -> None:
        copy = copy_script(RECOVER, self.home, STATE_DIR=str(self.folder))
        switch, log = (self.folder / f"cc-recover-heartbeat.{end}" for end in ("on", "log"))
        for name, put in self.planted():
            with self.subTest(name):
                put(switch)
                self.assert_quiet(run_hook(copy, self.stop(last_assistant_message="Done."), self.home, timeout=5))
                self.assertFalse(os.path.lexists(log))
                self.remove(switch)
                switch.touch()
                put(log)
                before = self.look(log)
                self.assert_quiet(run_hook(copy, self.stop(last_assistant_message="Done."), self.home, timeout=5))
                self.assertEqual(self.look(log), before)
                self.remove(log)
                self.remove(switch)

    def test_a_transcript_of_any_kind_never_makes_a_hook_hang(self) -> None:
        self.assert_quiet(self.fork(self.failure()))
        at_once = copy_script(RECOVER, self.home, LAG_WAIT_SEC=0)
        for name, put in self.planted():
            with self.subTest(name):
                put(self.transcript)
                self.assert_block(run_hook(RECOVER, self.stop(), self.home, timeout=5))
                self.assert_quiet(run_hook(at_once, self.stop(last_assistant_message=None), self.home, timeout=5))
                answer = run_hook(COACH, self.call("PreToolUse"), self.home, timeout=5)
                self.assertEqual((answer.code, answer.err), (0, ""))
                self.remove(self.transcript)

    def test_the_switch_of_any_kind_never_makes_a_hook_hang(self) -> None:
        switch = self.home / ".claude" / "tool-coach.off"
        for name, put in self.planted():
            with self.subTest(name):
                put(switch)
                for event in (self.call("PreToolUse"), self.failure()):
                    self.assert_quiet(self.fork(event))
                command = {"command_name": "tool-coach", "command_args": "off"}
                try:
                    answer = run_hook(COACH, self.event("UserPromptExpansion", **command), self.home, timeout=5)
                finally:
                    self.remove(switch)
                self.assertIn("tool-coach", (answer.out or {})["reason"])
                self.assertEqual(self.precious.read_text(), "mine")
                self.assertFalse((self.home / "not there").exists())

    @unittest.skipUnless(am_root, "only root can make another user's file")
    def test_another_users_state_full_of_counts_and_failures_is_not_believed(self) -> None:
        self.assert_quiet(self.fork(self.failure()))
        self.assert_quiet(self.fork(self.batch()))
        os.chown(self.coach_state(), NOBODY, NOBODY)
        self.assert_quiet(self.fork(self.call("PreToolUse")))
        self.assert_block(self.fork(self.stop()))
        os.chown(self.recover_state(), NOBODY, NOBODY)
        self.assert_quiet(self.fork(self.stop()))


class Modes(HostileTest):
    def run_under(self, mask: int, script: Path, event: Event) -> Answer:
        def prepare() -> None:
            os.umask(mask)

        return run_hook(script, event, self.home, prepare=prepare)

    def test_whatever_the_umask_every_file_is_the_users_alone(self) -> None:
        for mask in (0o000, 0o022, 0o077):
            with self.subTest(oct(mask)):
                self.session = self.new_session()
                self.assert_both_work(functools.partial(self.run_under, mask))
                log = self.home / ".claude" / "toolcall-hooks.log"
                for path in (self.recover_state(), self.coach_state(), log):
                    self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
                log.unlink()

    def test_the_heartbeats_log_and_the_switch_are_the_users_alone_too(self) -> None:
        copy = copy_script(RECOVER, self.home, STATE_DIR=str(self.folder))
        (self.folder / "cc-recover-heartbeat.on").touch()
        self.run_under(0, copy, self.stop())
        command = self.event("UserPromptExpansion", command_name="tool-coach", command_args="off")
        self.run_under(0, COACH, command)
        for path in (self.folder / "cc-recover-heartbeat.log", self.home / ".claude" / "tool-coach.off"):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)


class NoRoom(HostileTest):
    def test_a_home_that_is_missing_or_takes_nothing_stops_neither_hook(self) -> None:
        for home in ("/nonexistent", "/proc", "/dev/null", "", str(self.precious), "relative", "/\udcff"):
            with self.subTest(home):
                self.session = self.new_session()
                self.assert_both_work(env={"HOME": home})

    def test_a_state_folder_that_is_missing_or_takes_nothing_means_no_block_and_no_denial(self) -> None:
        for folder in ("/nonexistent", "/proc", "/dev/null", str(self.precious)):
            with self.subTest(folder):
                recover = copy_script(RECOVER, self.home, STATE_DIR=folder)
                coach = copy_script(COACH, self.home, STATE_DIR=folder)
                self.assert_quiet(run_hook(recover, self.stop(), self.home))
                self.assert_quiet(
                    run_hook(recover, self.event("StopFailure", last_assistant_message=GIVE_UP), self.home)
                )
                for event in (self.failure(), self.batch(), self.call("PreToolUse"), self.event("SessionEnd")):
                    self.assert_quiet(run_hook(coach, event, self.home))

    def test_on_a_full_disk_nothing_is_blocked_that_could_not_be_counted(self) -> None:
        for room in (0, 20):
            with self.subTest(room=room):
                self.session = self.new_session()
                limit = (room, room)
                full: Any = {"prepare": lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, limit)}
                self.assert_quiet(run_hook(RECOVER, self.stop(), self.home, **full))
                self.assert_quiet(run_hook(COACH, self.failure(), self.home, **full))
                self.assert_quiet(run_hook(COACH, self.batch(), self.home))
                self.assert_quiet(run_hook(COACH, self.call("PreToolUse"), self.home))
                self.assert_both_work()

    def test_a_disk_that_fills_up_later_neither_blocks_nor_denies_without_counting(self) -> None:
        self.assert_both_work()
        full: Any = {"prepare": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))}
        self.assert_quiet(run_hook(RECOVER, self.stop(), self.home, **full))
        self.assert_quiet(run_hook(COACH, self.call("PreToolUse"), self.home, **full))
        self.assert_block(self.fork(self.stop()))


class Clock(HostileTest):
    def test_a_clock_that_jumps_neither_blocks_for_ever_nor_denies_for_ever(self) -> None:
        for clock in (-1_000_000_000, -86_400, 86_400, 1_000_000_000, 100_000_000_000):
            with self.subTest(clock):
                self.session = self.new_session()
                self.assert_both_work()
                self.assert_quiet(self.fork(self.call("PreToolUse"), clock=clock))
                answers = [self.fork(self.stop(), clock=clock) for _ in range(11)]
                self.assertTrue(answers[0].out and answers[0].out["reason"].endswith("1/10)"))
                self.assertEqual(list(answers[-1].out or {}), ["systemMessage"])


class Stdin(HostileTest):
    def open_run(self, script: Path, data: bytes) -> tuple[int, bytes, float]:
        """Run a hook, write to its stdin and never close it; return exit code, stdout, and seconds."""
        start = time.perf_counter()
        command = [sys.executable, "-I", "-S", str(script)]
        env = {"HOME": str(self.home)}
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(data)
            process.stdin.flush()
            output = process.stdout.read()
            code = process.wait(10)
            seconds = time.perf_counter() - start
        return code, output, seconds

    def test_an_event_is_answered_though_stdin_is_never_closed(self) -> None:
        hasty = copy_script(RECOVER, self.home, WAIT_SEC=0.5)
        for script, data in ((RECOVER, encode(self.stop())), (hasty, encode(self.stop()).rstrip())):
            code, output, seconds = self.open_run(script, data)
            self.assertEqual((code, json.loads(output)["decision"]), (0, "block"))
            self.assertLess(seconds, 4)

    def test_silence_and_half_an_event_on_an_open_stdin_end_by_themselves(self) -> None:
        self.assertLessEqual(recover_malformed_toolcall.WAIT_SEC, 5)
        for script, data in ((RECOVER, b""), (COACH, encode(self.failure())[:-9])):
            hasty = copy_script(script, self.home, WAIT_SEC=0.5)
            code, output, seconds = self.open_run(hasty, data)
            self.assertEqual((code, output), (0, b""))
            self.assertLess(seconds, 4)

    def test_an_event_that_comes_in_pieces_is_read_whole(self) -> None:
        data = encode(self.stop(last_assistant_message="word {}\n" * 30_000 + leak()))
        command = [sys.executable, "-I", "-S", str(RECOVER)]
        env = {"HOME": str(self.home)}
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for start in range(0, len(data), 100_000):
                process.stdin.write(data[start : start + 100_000])
                process.stdin.flush()
                time.sleep(0.05)
            process.stdin.close()
            self.assertEqual(json.loads(process.stdout.read())["decision"], "block")

    def test_a_standard_stream_that_is_closed_is_no_reason_to_fail(self) -> None:
        for script, event in ((RECOVER, self.stop()), (COACH, self.failure())):
            for closed in (0, 1, 2):
                with self.subTest(script.name, closed=closed):
                    done = subprocess.run(
                        ["/bin/sh", "-c", f'exec "$@" {closed}>&-', "sh", sys.executable, "-I", "-S", str(script)],
                        input=encode(event), capture_output=True, env={"HOME": str(self.home)}, timeout=10, check=False,
                    )  # fmt: skip
                    self.assertEqual((done.returncode, done.stderr), (0, b""))
                    if closed == 0:
                        self.assertEqual(done.stdout, b"")

    def test_a_reader_that_has_gone_away_is_no_reason_to_fail(self) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(RECOVER)],
            input=encode(self.stop()), stdout=writer, stderr=subprocess.PIPE, env={"HOME": str(self.home)}, check=False,
        )  # fmt: skip
        os.close(writer)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_junk_on_stdin_is_passed_over(self) -> None:
        self.keep_state_in(self.folder)
        junk = (
            b"", b"\n", b"x", b"{", b"[]", b"null", b"5", b'"x"', b"{}", b"\xff\xfe\x00", b"\x00" * 1000, b"NaN",
            b"[" * 100_000, b'{"a":' * 100_000, b'{"hook_event_name": "Stop", "x": ' + b"[" * 100_000,
            b'{"hook_event_name": ["Stop"]}', b'{"hook_event_name": {}}', b'{"hook_event_name": null}',
            b'{"session_id": "s", "hook_event_name": "PostToolUse"', b'{"session_id": "s", "hook_event_name": "Setup"}',
            encode(self.stop()) * 2, encode(self.stop()).replace(b'"court', b"'court"),
            b'{"hook_event_name": "PostToolUseFailure", "tool_name": "Read", "tool_input": {"a": NaN}, "error": "x"',
        )  # fmt: skip
        for data in junk:
            for main in (recover_malformed_toolcall.main, tool_coach.main):
                with self.subTest(data[:60]):
                    answer = fork_hook(main, data, self.home)
                    self.assertEqual((answer.code, answer.err), (0, ""))

    def test_fifty_megabytes_are_read_and_judged_or_passed_over(self) -> None:
        size = 50_000_000
        start = time.perf_counter()
        self.assert_quiet(run_hook(RECOVER, b"x" * size, self.home))
        self.assert_quiet(run_hook(RECOVER, self.stop(last_assistant_message="word " * (size // 5)), self.home))
        big = {"tool_input": {"file_path": "/w/a", "content": "x" * size}}
        self.assert_quiet(run_hook(COACH, self.failure(**big), self.home))
        self.assert_quiet(run_hook(COACH, self.batch(), self.home))
        self.assert_deny(run_hook(COACH, self.call("PreToolUse", **big), self.home))
        self.assertLess(self.coach_state().stat().st_size, 10_000)
        self.assertLess(time.perf_counter() - start, 30)


class Names(HostileTest):
    IDS: tuple[object, ...] = (
        "../../x", "/etc/passwd", "a/b", "..", ".", "", "a\0b", "x" * 10_000, "\u76ee\u6b21", "a b\nc", "~", "$HOME",
        "*", "\ud800", "CON", "a:b", "..\\..\\x", None, 5, 1.5, True, [], {}, ["../x"],
    )  # fmt: skip

    def test_no_session_or_agent_id_leads_out_of_the_state_folder(self) -> None:
        inner = self.folder / "a" / "b" / "c"
        inner.mkdir(parents=True)
        self.keep_state_in(inner)
        outside = self.home_files() - set(inner.iterdir())
        for one in self.IDS:
            for event in (
                self.stop(),
                self.failure(),
                self.call("PostToolUse", tool_name="Bash"),
                self.event("SessionEnd"),
            ):
                for fields in ({"session_id": one}, {"session_id": one, "agent_id": one}):
                    with self.subTest(str(fields)[:60], event=event["hook_event_name"]):
                        answer = self.fork({**event, **fields})
                        self.assertEqual((answer.code, answer.err), (0, ""))
        self.assertEqual({path for path in self.home_files() if path.parent != inner}, outside)
        for path in inner.iterdir():
            self.assertRegex(path.name, r"^cc-(recover|tool-coach)-[^/]*\.json$")

    def home_files(self) -> set[Path]:
        log = self.home / ".claude" / "toolcall-hooks.log"
        return {path for path in self.home.rglob("*") if path != log}


class Texts(HostileTest):
    def test_in_the_c_locale_both_hooks_read_and_write_any_text(self) -> None:
        for env in ({"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}, {"LANG": "nonsense"}):
            with self.subTest(env):
                self.session = self.new_session()
                text = "\u76ee\u6b21 \u00e9 \U0001f527"
                stop = self.stop(last_assistant_message=f"{text}\n" + leak("\u8aad\u3080", command=text))
                self.assert_block(run_hook(RECOVER, stop, self.home, env=env))
                fields = {"tool_input": {"file_path": f"/w/{text}"}}
                self.assert_quiet(run_hook(COACH, self.failure(error=text, **fields), self.home, env=env))
                self.assert_quiet(run_hook(COACH, self.batch(), self.home, env=env))
                answer = run_hook(COACH, self.call("PreToolUse", **fields), self.home, env=env)
                self.assert_deny(answer)
                self.assertIn(text, json.dumps(answer.out, ensure_ascii=False))

    def test_lone_surrogates_go_through_from_end_to_end(self) -> None:
        for one in ("\ud800", "\udfff", "a\udc80b"):
            with self.subTest(ascii(one)):
                self.session = self.new_session()
                self.assert_block(
                    run_hook(RECOVER, self.stop(last_assistant_message=one + "\n" + leak(one)), self.home)
                )
                row = {
                    "type": "assistant",
                    "message": {"id": one, "content": [{"type": "text", "text": one + leak(one)}]},
                }
                self.transcript.write_text(json.dumps(row) + "\n")
                self.assert_block(run_hook(RECOVER, self.stop(last_assistant_message=None), self.home))
                fields = {"tool_name": f"mcp__{one}__x", "tool_input": {one: one, "path": one}, "cwd": "/" + one}
                self.assert_quiet(run_hook(COACH, self.failure(error=one, **fields), self.home))
                self.assert_quiet(run_hook(COACH, self.batch(), self.home))
                answer = run_hook(COACH, self.call("PreToolUse", **fields), self.home)
                self.assert_deny(answer)
                self.assertIn(one, (answer.out or {})["hookSpecificOutput"]["permissionDecisionReason"])

    def test_bytes_that_are_no_text_do_not_hide_a_leak(self) -> None:
        data = encode(self.stop(last_assistant_message="here\n" + leak())).replace(b"here", b"\xff\xfe\x80")
        self.assert_block(run_hook(RECOVER, data, self.home))

    def test_numbers_that_are_none_and_deep_inputs_are_no_reason_to_fail(self) -> None:
        deep: Any = "x"
        for _ in range(400):
            deep = {"a": [deep]}
        for fields in (
            {"duration_ms": float("nan")}, {"duration_ms": float("inf")}, {"duration_ms": 10**400}, {"duration_ms": -5},
            {"duration_ms": True}, {"duration_ms": None}, {"duration_ms": "5"}, {"tool_input": {"a": float("nan")}},
            {"tool_input": deep}, {"tool_input": None}, {"error": 5}, {"error": None}, {"cwd": 5}, {"is_interrupt": 1},
        ):  # fmt: skip
            with self.subTest(str(fields)[:60]):
                for event in (self.failure(**fields), self.batch(), self.call("PreToolUse", **fields)):
                    answer = self.fork(event)
                    self.assertEqual((answer.code, answer.err), (0, ""))


class Killed(HostileTest):
    def test_a_budget_cut_off_anywhere_is_counted_on_or_afresh(self) -> None:
        for _ in range(5):
            self.assert_block(self.fork(self.stop()))
        whole = self.recover_state().read_bytes()
        for end in range(0, len(whole), 2):
            with self.subTest(end=end):
                self.recover_state().write_bytes(whole[:end])
                answer = self.fork(self.stop())
                self.assert_block(answer)
                count = json.loads(self.recover_state().read_bytes())["count"]
                self.assertIn(count, (1, 6))
                self.assertIn(f"attempt {count}/10", str(answer.out))

    def test_a_budget_overwritten_in_part_is_counted_on_or_afresh(self) -> None:
        self.assert_block(self.fork(self.stop()))
        old = self.recover_state().read_bytes()
        for _ in range(9):
            self.assert_block(self.fork(self.stop()))
        new = self.recover_state().read_bytes()
        for end in range(0, len(new), 5):
            with self.subTest(end=end):
                self.recover_state().write_bytes(new[:end] + old[end:])
                answer = self.fork(self.stop())
                self.assertEqual((answer.code, answer.err, len(answer.out or {}) in (1, 2)), (0, "", True))

    def test_kept_calls_cut_off_anywhere_deny_with_the_right_words_or_not_at_all(self) -> None:
        for name in ("a", "b", "c"):
            self.assert_quiet(self.fork(self.failure(tool_input={"file_path": name}, tool_use_id=name)))
        self.assert_quiet(self.fork(self.batch()))
        whole = self.coach_state().read_bytes()
        for end in [*range(0, len(whole), 29), *range(len(whole) - 4, len(whole))]:
            with self.subTest(end=end):
                self.coach_state().write_bytes(whole[:end])
                answer = self.fork(self.call("PreToolUse", tool_input={"file_path": "a"}))
                self.assertEqual((answer.code, answer.err), (0, ""))
                if answer.out:
                    self.assertIn(MISSING, str(answer.out))

    def test_a_hook_that_is_killed_leaves_no_lock_behind(self) -> None:
        for script, event in ((RECOVER, self.stop()), (COACH, self.failure())):
            for seconds in (0.005, 0.015, 0.025, 0.035):
                command = [sys.executable, "-I", "-S", str(script)]
                with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
                    assert process.stdin is not None
                    process.stdin.write(encode(event))
                    process.stdin.flush()
                    time.sleep(seconds)
                    process.send_signal(signal.SIGKILL)
        start = time.perf_counter()
        answer = self.fork(self.stop())
        self.assert_block(answer)
        self.assert_quiet(self.fork(self.failure()))
        self.assertLess(time.perf_counter() - start, 1)

    def test_a_state_that_another_process_holds_for_good_is_waited_for_but_not_long(self) -> None:
        self.assert_both_work()
        one, two = str(self.recover_state()), str(self.coach_state())
        with holding(tool_coach, one), holding(tool_coach, two):
            start = time.perf_counter()
            for script, event in ((RECOVER, self.stop()), (COACH, self.call("PreToolUse"))):
                hasty = copy_script(script, self.home, WAIT_SEC=0.3)
                self.assert_quiet(run_hook(hasty, event, self.home))
            self.assertLess(time.perf_counter() - start, 4)
        self.assertLessEqual(recover_malformed_toolcall.WAIT_SEC, 5)


class Windows(HostileTest):
    def run_there(self, script: Path, event: Event) -> Answer:
        env = {"TEMP": str(self.folder), "USERPROFILE": str(self.home), "PYTHONDONTWRITEBYTECODE": "1"}
        return run_hook(WINDOWS, event, self.home, args=(str(script),), env=env, timeout=10)

    def test_a_leak_is_blocked_and_a_repeat_denied_with_the_state_in_the_temp_folder(self) -> None:
        self.assert_both_work(self.run_there)
        names = sorted(path.name for path in self.folder.iterdir())
        self.assertEqual(names, [f"cc-recover-{self.session}.json", f"cc-tool-coach-{self.session}.json"])
        self.assertFalse(self.recover_state().exists())

    def test_the_budget_is_counted_there_too(self) -> None:
        answers = [self.run_there(RECOVER, self.stop()) for _ in range(11)]
        self.assertEqual(
            [next(iter(answer.out or {"-": 0})) for answer in answers], ["decision"] * 10 + ["systemMessage"]
        )

    def test_a_state_that_another_process_holds_is_waited_for_there_too(self) -> None:
        import fcntl

        hasty = copy_script(RECOVER, self.home, WAIT_SEC=0.3)
        with (self.folder / f"cc-recover-{self.session}.json").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.assert_quiet(self.run_there(hasty, self.stop()))
        self.assert_block(self.run_there(hasty, self.stop()))

    def test_a_change_lets_a_call_run_there_too(self) -> None:
        self.assert_quiet(self.run_there(COACH, self.failure()))
        self.assert_quiet(self.run_there(COACH, self.batch()))
        self.assert_quiet(self.run_there(COACH, self.call("PostToolUse", tool_name="Bash", tool_response={})))
        self.assert_quiet(self.run_there(COACH, self.call("PreToolUse")))

    def test_a_give_up_wakes_there_too_and_the_sessions_end_cleans_up(self) -> None:
        answer = self.run_there(RECOVER, self.event("StopFailure", last_assistant_message=GIVE_UP))
        self.assertEqual(answer.code, 2)
        self.assert_quiet(self.run_there(COACH, self.failure()))
        self.assert_quiet(self.run_there(COACH, self.event("SessionEnd", reason="other")))
        self.assertEqual([path.name for path in self.folder.iterdir()], [f"cc-recover-{self.session}.json"])


if __name__ == "__main__":
    unittest.main()

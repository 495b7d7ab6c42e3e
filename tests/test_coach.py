"""The coach as a process: what it keeps, denies, notes, forgets, and says."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
import unittest
import unittest.mock
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import tool_coach
from player import Player, play
from support import COACH, Answer, Event, HookTest, encode, read_cases, run_hook, slow_copy, state_files
from tool_coach import HANDLERS, QUOTE_CHARS, is_passing, quote

MISSING = "File does not exist. Note: your current working directory is /w."
READ = {"file_path": "/w/a.txt"}
EDIT = {"file_path": "/w/m.py", "old_string": "a = 1", "new_string": "a = 2"}
NOT_FOUND = "String to replace not found in file."
DENIAL = f"""\
this exact Read call failed a moment ago, and no file or command has changed anything since, so it would \
fail the same way. Its error was:
{MISSING}
Read the error, change the input, and call again."""


class CoachTest(HookTest):
    def setUp(self) -> None:
        super().setUp()
        self.player = Player(self.home, self.session, None)

    def state_path(self) -> Path:
        return Path(f"/tmp/cc-tool-coach-{self.session}.json")

    def event(self, name: str, **fields: Any) -> Event:
        """Return an event of a Read call in the player's session."""
        event = {"session_id": self.session, "transcript_path": str(self.player.transcript), "cwd": "/w"}
        call = {"tool_name": "Read", "tool_input": READ, "tool_use_id": "toolu_x"}
        return {**event, "hook_event_name": name, **call, **fields}

    def edit(self, **constants: Any) -> None:
        """Set some of the script's constants, as a user would by editing it."""
        patch = unittest.mock.patch.multiple(tool_coach, **constants)
        patch.start()
        self.addCleanup(patch.stop)

    def fail_once(self) -> None:
        self.player.call("Read", READ, MISSING)

    def end_of_turn(self, answers: list[Event]) -> list[Event]:
        return [answer for answer in answers if answer.get("continue") is False]


class Job(NamedTuple):
    """One case to play, and how: its last call as processes or all in forked children, and what the client is like."""

    case: Event
    home: Path
    session: str
    script: Path | None = None
    parallel: bool = False
    batches: bool = True


def outcome_of(job: Job) -> str:
    """Return what becomes of a case's last call, or what went wrong."""
    job.home.mkdir()
    player = Player(job.home, job.session, None, parallel=job.parallel, batches=job.batches)
    try:
        return play(job.case, player, job.script)
    except AssertionError as error:
        return str(error)


class Cases(HookTest):
    def play_all(self, cases: list[Event], **how: Any) -> None:
        """Play cases at the same time, and assert that each comes out as it says."""
        homes = [self.home / f"{number}-{case['id']}" for number, case in enumerate(cases)]
        jobs = [Job(case, home, self.new_session(), **how) for case, home in zip(cases, homes)]
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            outcomes = list(pool.map(outcome_of, jobs, chunksize=4))
        for case, outcome in zip(cases, outcomes):
            with self.subTest(case["id"], why=case["why"]):
                self.assertEqual(outcome, case["expect"])

    def test_every_case_comes_out_as_it_says_with_the_hook_as_a_process(self) -> None:
        self.play_all(read_cases("repeats.jsonl"), script=COACH)

    def test_every_variation_comes_out_as_it_says(self) -> None:
        self.play_all(read_cases("repeat_variations.jsonl"))

    def test_it_makes_no_difference_whether_the_calls_of_a_message_run_at_once(self) -> None:
        cases = read_cases("repeats.jsonl") + read_cases("repeat_variations.jsonl")
        self.play_all([case for case in cases if any("batch" in event for event in case["events"])], parallel=True)

    def test_without_the_batch_event_of_newer_clients_the_transcript_tells(self) -> None:
        self.play_all([case for case in read_cases("repeats.jsonl") if case["expect"] != "note"], batches=False)

    def test_the_variations_are_many_and_of_every_outcome(self) -> None:
        cases = read_cases("repeat_variations.jsonl")
        self.assertGreaterEqual(len(cases), 60)
        self.assertEqual({case["expect"] for case in cases}, {"run", "deny", "note"})
        self.assertEqual(len(cases), len({case["id"] for case in cases}))


class PassingErrors(unittest.TestCase):
    def test_every_error_is_passing_or_not_as_the_file_says(self) -> None:
        for case in read_cases("errors.jsonl"):
            with self.subTest(case["error"], why=case["why"]):
                self.assertEqual(is_passing(case["error"]), case["passing"])

    def test_an_errors_length_and_surroundings_do_not_matter(self) -> None:
        for case in read_cases("errors.jsonl"):
            for text in (f"Error: {case['error']}", f"{'x ' * 3000}\n{case['error']}"):
                with self.subTest(case["error"], length=len(text)):
                    self.assertEqual(is_passing(text), case["passing"])

    def test_a_huge_error_is_judged_at_once(self) -> None:
        for text in ("connection " * 100_000, "not " * 200_000, "still " * 200_000, "5" * 1_000_000, " " * 1_000_000):
            start = time.perf_counter()
            is_passing(text)
            self.assertLess(time.perf_counter() - start, 0.5)


class Words(CoachTest):
    def test_a_denial_is_word_for_word_what_the_model_and_the_person_shall_read(self) -> None:
        self.player.script = COACH
        self.fail_once()
        [answer] = self.player.call("Read", READ)
        decision = {"permissionDecision": "deny", "permissionDecisionReason": DENIAL}
        line = "tool-coach: Read call repeated after it failed, not run"
        wanted = {"systemMessage": line, "hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}
        self.assertEqual(answer, wanted)

    def test_the_original_error_is_quoted_at_every_denial(self) -> None:
        self.fail_once()
        for _ in range(3):
            [answer] = self.player.call("Read", READ)
            self.assertEqual(answer["hookSpecificOutput"]["permissionDecisionReason"], DENIAL)

    def test_a_failure_that_is_kept_prints_nothing(self) -> None:
        self.assertEqual(self.player.call("Read", READ, MISSING), [])
        self.assertEqual([answer.raw for answer in self.player.answers], [b""] * 3)

    def test_a_second_refusal_names_the_call_the_error_and_how_often(self) -> None:
        self.assertEqual(self.player.call("Edit", EDIT, NOT_FOUND), [])
        for times in (2, 3):
            [answer] = self.player.call("Edit", EDIT, NOT_FOUND)
            self.assertEqual(answer["systemMessage"], "tool-coach: Edit call repeated after it was refused")
            note = answer["hookSpecificOutput"]
            self.assertEqual(note["hookEventName"], "PostToolBatch")
            for words in ("tool-coach", "this exact Edit call", NOT_FOUND, str(times), "change the input"):
                self.assertIn(words, note["additionalContext"])
            self.assertNotIn("tool_use_error", note["additionalContext"])
            self.assertNotIn("continue", answer)

    def test_a_third_failure_names_the_call_the_error_and_how_often(self) -> None:
        for _ in range(2):
            self.assertEqual(self.player.call("Read", READ, MISSING), [])
            self.player.call("Bash", {"command": "ls"})
        [answer] = self.player.call("Read", READ, MISSING)
        note = answer["hookSpecificOutput"]
        self.assertEqual(note["hookEventName"], "PostToolUseFailure")
        for words in ("tool-coach", "this exact Read call", MISSING, "3", "change the input"):
            self.assertIn(words, note["additionalContext"])
        self.assertTrue(answer["systemMessage"].startswith("tool-coach: Read call failed"))

    def test_notes_about_several_calls_of_one_batch_each_have_their_own_error(self) -> None:
        other = {**EDIT, "old_string": "b"}
        calls = [("Edit", EDIT, NOT_FOUND), ("Edit", other, "Found 3 matches of the string to replace")]
        for _ in range(2):
            batch = [{"call": t, "input": i, "result": "error", "error": e} for t, i, e in calls]
            answers = self.player.message(batch)
        [answer] = answers
        for words in (NOT_FOUND, "Found 3 matches"):
            self.assertEqual(answer["hookSpecificOutput"]["additionalContext"].count(words), 1)

    def test_an_error_up_to_the_limit_is_quoted_whole_and_a_longer_one_by_head_and_tail(self) -> None:
        whole = "x" * QUOTE_CHARS
        self.assertEqual(quote(whole), whole)
        for more in (1, 50, 100_000):
            text = "HEAD" + "x" * (QUOTE_CHARS + more - 8) + "TAIL"
            quoted = quote(text)
            self.assertTrue(quoted.startswith("HEAD") and quoted.endswith("TAIL"))
            self.assertLess(len(quoted), QUOTE_CHARS + 100)
            left_out = len(text) - quoted.count("x") - 8
            self.assertRegex(quoted, rf"\b{left_out} characters left out")

    def test_a_long_error_stays_below_the_clients_limit_for_a_hooks_text(self) -> None:
        self.player.call("Read", READ, "no such row. " * 10_000)
        [answer] = self.player.call("Read", READ)
        self.assertLess(len(answer["hookSpecificOutput"]["permissionDecisionReason"]), 3_000)
        edits = [{**EDIT, "old_string": f"{number}"} for number in range(30)]
        error = NOT_FOUND + "x" * 5_000
        for _ in range(2):
            batch = [{"call": "Edit", "input": edit, "result": "error", "error": error} for edit in edits]
            answers = self.player.message(batch)
        self.assertLess(len(answers[0]["hookSpecificOutput"]["additionalContext"]), 10_000)

    def test_an_error_is_quoted_as_it_is_whatever_it_holds(self) -> None:
        for error in (
            "目次 é 🔧",
            'say "x" \\ \t and\nmore',
            "<b>&amp;</b>",
            "lone \ud800 end",
            "nul \x00 end",
            "{braces} %s",
        ):
            with self.subTest(error):
                session = Player(self.home, self.new_session(), None)
                session.call("mcp__t__get", {"id": 1}, error)
                [answer] = session.call("mcp__t__get", {"id": 1})
                self.assertIn(f"was:\n{error}\nRead", answer["hookSpecificOutput"]["permissionDecisionReason"])

    def test_a_result_that_only_quotes_a_refusal_is_none(self) -> None:
        call = {"tool_name": "Grep", "tool_input": {"pattern": "x"}, "tool_use_id": "toolu_1"}
        for response in (
            "a.log:3: <tool_use_error>x</tool_use_error>",
            {"content": "<tool_use_error>x</tool_use_error>"},
        ):
            for _ in range(3):
                answer = self.player.fire("PostToolBatch", tool_calls=[{**call, "tool_response": response}])
                self.assertEqual(answer, {})


class HandBack(CoachTest):
    def test_the_fifth_denial_of_one_call_ends_the_turn_and_tells_the_person_why(self) -> None:
        self.fail_once()
        for _ in range(4):
            self.assertEqual(self.end_of_turn(self.player.call("Read", READ)), [])
        [end, *_] = self.end_of_turn(self.player.call("Read", READ))
        for words in ("tool-coach", "Read", "5", "continue", "/tool-coach off"):
            self.assertIn(words, end["stopReason"])
        self.assertIn("hand-back", [action[2] for action in self.actions()])

    def test_the_fifth_denial_itself_is_still_a_denial(self) -> None:
        self.fail_once()
        for _ in range(5):
            self.assertTrue(self.player.denied("Read", READ))

    def test_denials_of_different_calls_do_not_add_up(self) -> None:
        inputs = [{"file_path": f"/w/{number}"} for number in range(6)]
        for one in inputs:
            self.player.call("Read", one, MISSING)
        for one in inputs:
            self.assertEqual(self.end_of_turn(self.player.call("Read", one)), [])

    def test_a_new_turn_counts_denials_afresh(self) -> None:
        for _ in range(2):
            self.fail_once()
            for _ in range(4):
                self.assertEqual(self.end_of_turn(self.player.call("Read", READ)), [])
            self.player.happen({"turn": True})

    def test_the_fifth_refusal_of_one_call_ends_the_turn(self) -> None:
        for _ in range(4):
            self.assertEqual(self.end_of_turn(self.player.call("Edit", EDIT, NOT_FOUND)), [])
        [end] = self.end_of_turn(self.player.call("Edit", EDIT, NOT_FOUND))
        for words in ("tool-coach", "Edit", "5", "continue"):
            self.assertIn(words, end["stopReason"])

    def test_refusals_of_different_calls_do_not_add_up(self) -> None:
        for number in range(8):
            answers = self.player.call("Edit", {**EDIT, "old_string": str(number)}, NOT_FOUND)
            self.assertEqual(self.end_of_turn(answers), [])

    def test_zero_means_never(self) -> None:
        self.edit(HAND_BACK_AFTER=0)
        self.fail_once()
        for _ in range(8):
            answers = self.player.call("Read", READ) + self.player.call("Edit", EDIT, NOT_FOUND)
            self.assertEqual(self.end_of_turn(answers), [])

    def test_another_number_is_kept_to(self) -> None:
        self.edit(HAND_BACK_AFTER=2)
        self.fail_once()
        self.assertEqual(self.end_of_turn(self.player.call("Read", READ)), [])
        self.assertNotEqual(self.end_of_turn(self.player.call("Read", READ)), [])


class Keeping(CoachTest):
    def failures_at_once(self, number: int) -> tuple[list[Answer], float]:
        """Run that many failure hooks at the same time; return their answers and the seconds it took."""
        events = [
            encode(
                self.event(
                    "PostToolUseFailure", tool_input={"file_path": f"/w/{n}"}, tool_use_id=f"t{n}", error=MISSING
                )
            )
            for n in range(number)
        ]
        start = time.perf_counter()
        with ThreadPoolExecutor(number) as pool:
            answers = list(pool.map(lambda event: run_hook(COACH, event, self.home), events))
        return answers, time.perf_counter() - start

    def test_of_thirty_two_failures_at_once_none_is_lost_and_none_waits_long(self) -> None:
        answers, seconds = self.failures_at_once(32)
        self.assertEqual({(answer.code, answer.raw, answer.err) for answer in answers}, {(0, b"", "")})
        self.assertLess(seconds, 6)
        self.assertEqual(len(json.loads(self.state_path().read_text())["kept"]), 32)
        calls = [{"tool_name": "Read", "tool_input": {}, "tool_use_id": f"t{n}"} for n in range(32)]
        self.player.fire("PostToolBatch", tool_calls=calls)
        for number in range(32):
            self.assertTrue(self.player.denied("Read", {"file_path": f"/w/{number}"}, cwd="/w"), number)

    def test_a_hook_that_dawdles_makes_the_others_wait(self) -> None:
        slow = slow_copy(COACH, self.home)
        inputs = [{"file_path": f"/w/{number}"} for number in range(6)]
        events = [self.event("PostToolUseFailure", tool_input=one, error=MISSING) for one in inputs]
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda event: run_hook(slow, event, self.home), events))
        self.assertEqual(len(json.loads(self.state_path().read_text())["kept"]), 6)

    def test_a_success_at_the_same_time_as_failures_loses_no_change(self) -> None:
        self.fail_once()
        events = [self.event("PostToolUse", tool_name="Bash", tool_input={"command": "ls"})]
        for number in range(8):
            fields = {"tool_input": {"file_path": f"/w/{number}"}, "error": MISSING}
            events.append(self.event("PostToolUseFailure", **fields))
        with ThreadPoolExecutor(9) as pool:
            list(pool.map(lambda event: run_hook(COACH, event, self.home), events))
        self.assertFalse(self.player.denied("Read", READ))

    def test_only_a_bounded_number_of_calls_is_kept_the_newest(self) -> None:
        self.edit(KEEP_MOST=5)
        for number in range(8):
            self.player.call("Read", {"file_path": f"/w/{number}"}, MISSING)
        self.assertEqual(len(json.loads(self.state_path().read_text())["kept"]), 5)
        self.assertTrue(self.player.denied("Read", {"file_path": "/w/7"}))
        self.assertFalse(self.player.denied("Read", {"file_path": "/w/0"}))

    def test_the_ten_minutes_can_be_edited(self) -> None:
        self.edit(KEEP_SEC=0)
        self.fail_once()
        self.assertFalse(self.player.denied("Read", READ))

    def test_a_failure_whose_call_began_before_the_last_change_is_not_kept(self) -> None:
        for duration, kept in ((60_000, False), (0, True)):
            with self.subTest(duration=duration):
                player = Player(self.home, self.new_session(), None)
                player.call("Bash", {"command": "ls"})
                call: Event = {"tool_name": "Read", "tool_input": READ, "tool_use_id": "t9", "error": MISSING}
                player.fire("PostToolUseFailure", "Read", **call, duration_ms=duration, is_interrupt=False)
                player.fire("PostToolBatch", tool_calls=[])
                self.assertEqual(player.denied("Read", READ), kept)

    def test_a_failure_without_a_duration_is_kept(self) -> None:
        call: Event = {"tool_name": "Read", "tool_input": READ, "tool_use_id": "t9", "error": MISSING}
        self.player.call("Bash", {"command": "ls"})
        self.player.fire("PostToolUseFailure", "Read", **call, is_interrupt=False)
        self.player.fire("PostToolBatch", tool_calls=[])
        self.assertTrue(self.player.denied("Read", READ))

    def test_the_state_is_the_users_alone_and_holds_no_input(self) -> None:
        self.player.call("mcp__t__get", {"token": "very-secret-value"}, "no such record")
        self.assertEqual(stat.S_IMODE(self.state_path().stat().st_mode), 0o600)
        self.assertNotIn("very-secret-value", self.state_path().read_text())

    def test_the_record_holds_neither_inputs_nor_errors(self) -> None:
        self.player.call("mcp__t__get", {"token": "very-secret-value"}, "secret error")
        self.player.call("mcp__t__get", {"token": "very-secret-value"})
        [action] = self.actions()
        self.assertEqual(action, ["tool-coach", self.session, "deny", "mcp__t__get", "1"])

    def test_the_sessions_end_removes_the_state(self) -> None:
        self.fail_once()
        self.assertTrue(self.state_path().exists())
        self.player.happen({"end": True})
        self.assertEqual(state_files(self.session), [])

    def test_a_session_without_failures_and_changes_leaves_nothing_in_tmp(self) -> None:
        self.player.call("Read", READ)
        self.player.call("Glob", {"pattern": "*"})
        self.player.happen({"turn": True})
        self.player.happen({"end": True})
        self.assertEqual(state_files(self.session), [])

    def test_a_state_that_makes_no_sense_lets_the_call_run_and_is_replaced_by_the_next_failure(self) -> None:
        self.fail_once()
        key = next(iter(json.loads(self.state_path().read_text())["kept"]))
        for state in (
            b"garbage", b"[]", b"null", b'"x"', b"{", b"\xff\xfe", b"\x00" * 100, b"[" * 100_000, b'{"kept": 5}',
            b'{"kept": {"%s": 5}}' % key.encode(), b'{"kept": {"%s": {}}}' % key.encode(), b'{"kept": []}',
            b'{"kept": {"%s": {"at": "x", "cwd": 1, "look": 2}}}' % key.encode(), b'{"kept": {"a": 1}, "turn": 7}',
            b'{"kept": {"%s": {"at": NaN, "cwd": "/w", "look": [], "denied": 0, "over": true}}}' % key.encode(),
        ):  # fmt: skip
            with self.subTest(state[:60]):
                self.state_path().write_bytes(state)
                self.assertFalse(self.player.denied("Read", READ))

    def test_after_garbage_in_its_place_the_state_is_built_anew(self) -> None:
        for state in (b"garbage", b"[]", b"\xff", b'{"kept": {'):
            with self.subTest(state):
                self.state_path().write_bytes(state)
                self.player.happen({"turn": True})
                self.fail_once()
                self.assertTrue(self.player.denied("Read", READ))

    def test_an_unknown_shape_of_an_event_lets_the_call_run(self) -> None:
        self.fail_once()
        for event in (
            self.event("PreToolUse", tool_name=None), self.event("PreToolUse", tool_input=None),
            self.event("PreToolUse", tool_input=7), self.event("PreToolUse", cwd=5), {"hook_event_name": "PreToolUse"},
            self.event("NoSuchEvent"), self.event("PostToolBatch", tool_calls=None), {}, self.event("PostToolBatch"),
            self.event("PostToolBatch", tool_calls=[1, {}, {"tool_name": 1, "tool_response": "<tool_use_error>"}]),
            self.event("PostToolUseFailure", error=None, duration_ms="x"), self.event("SessionEnd", session_id=4),
        ):  # fmt: skip
            with self.subTest(str(event)[:100]):
                answer = run_hook(COACH, event, self.home)
                self.assertEqual((answer.code, answer.raw, answer.err), (0, b"", ""))

    def test_the_answers_are_for_every_event_it_is_registered_for_and_no_other(self) -> None:
        from recover_malformed_toolcall import EVENTS

        self.assertEqual(set(HANDLERS), set(EVENTS[COACH.name]))


class Switch(CoachTest):
    def off_file(self) -> Path:
        return self.home / ".claude" / "tool-coach.off"

    def command(self, words: str, **fields: Any) -> Event:
        event: Event = {"command_name": "tool-coach", "command_args": words, "prompt": f"/tool-coach {words}", **fields}
        return self.player.fire("UserPromptExpansion", event["command_name"], **event)

    def shell(self, *words: str, **env: str) -> Answer:
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(COACH), *words],
            stdin=subprocess.DEVNULL, capture_output=True, env={"HOME": str(self.home), **env}, timeout=10, check=False,
        )  # fmt: skip
        return Answer(done.returncode, None, done.stderr.decode(), done.stdout)

    def test_the_command_switches_and_says_so_without_a_request(self) -> None:
        for wish, state in (("off", "off"), ("", "off"), ("on", "on"), ("  ON ", "on"), ("", "on")):
            with self.subTest(wish):
                answer = self.command(wish)
                self.assertEqual(answer["decision"], "block")
                self.assertRegex(answer["reason"], rf"^tool-coach is {state}\b")
                self.assertEqual(self.off_file().exists(), state == "off")

    def test_an_unknown_wish_changes_nothing_and_shows_the_usage(self) -> None:
        answer = self.command("maybe")
        self.assertIn("usage: /tool-coach [on|off]", answer["reason"])
        self.assertFalse(self.off_file().exists())

    def test_another_command_is_left_alone(self) -> None:
        for name in ("greet", "my-tool-coach-notes"):
            event = self.event("UserPromptExpansion", command_name=name, command_args="off")
            self.assertEqual(run_hook(COACH, event, self.home).raw, b"")
        self.assertFalse(self.off_file().exists())

    def test_the_plugins_name_for_the_command_is_answered_too(self) -> None:
        self.assertEqual(self.command("off", command_name="toolcall-hooks:tool-coach")["decision"], "block")
        self.assertTrue(self.off_file().exists())

    def test_switched_off_every_handler_returns_at_once_and_writes_nothing(self) -> None:
        self.shell("off")
        before = sorted(self.home.rglob("*"))
        for _ in range(3):
            self.assertEqual(self.player.call("Read", READ, MISSING), [])
            self.assertEqual(self.player.call("Edit", EDIT, NOT_FOUND), [])
            self.assertEqual(self.player.call("Bash", {"command": "ls"}), [])
        self.assertEqual(state_files(self.session), [])
        self.assertEqual(sorted(set(self.home.rglob("*")) - {self.player.transcript}), before)

    def test_the_choice_outlives_the_session(self) -> None:
        self.command("off")
        self.player.happen({"end": True})
        other = Player(self.home, self.new_session(), None)
        other.call("Read", READ, MISSING)
        self.assertFalse(other.denied("Read", READ))

    def test_the_shell_switches_as_the_command_does(self) -> None:
        for wish in ("off", "off", "on", "on"):
            answer = self.shell(wish)
            self.assertEqual((answer.code, answer.err), (0, ""))
            self.assertRegex(answer.raw.decode(), rf"^tool-coach is {wish}\b")
            self.assertEqual(self.off_file().exists(), wish == "off")
        self.assertIn(b"tool-coach is on", self.shell("on").raw)

    def test_the_shell_says_what_it_knows_and_refuses_the_rest(self) -> None:
        self.assertEqual(self.shell("--help").code, 0)
        self.assertIn(b"tool_coach.py on|off", self.shell("--help").raw)
        self.assertEqual(self.shell("maybe").code, 2)
        self.assertEqual(self.shell("on", "off").code, 2)

    def test_the_config_folder_may_be_elsewhere(self) -> None:
        elsewhere = self.home / "elsewhere"
        self.assertEqual(self.shell("off", CLAUDE_CONFIG_DIR=str(elsewhere)).code, 0)
        self.assertTrue((elsewhere / "tool-coach.off").exists())
        self.assertFalse(self.off_file().exists())

    def test_a_config_folder_that_takes_no_file_gives_a_clear_error(self) -> None:
        (self.home / ".claude").rmdir()
        (self.home / ".claude").write_text("a file where the folder should be")
        answer = self.shell("off")
        self.assertEqual(answer.code, 1)
        self.assertRegex(answer.err, r"^tool-coach could not be switched off: /.*: [A-Z].*\n$")
        self.assertEqual(len(answer.err.splitlines()), 1)
        self.assertIn("could not be switched off", self.command("off")["reason"])

    @unittest.skipIf(not hasattr(os, "geteuid") or os.geteuid() == 0, "root writes everywhere")
    def test_a_read_only_config_folder_gives_a_clear_error(self) -> None:
        (self.home / ".claude").chmod(0o500)
        self.assertEqual(self.shell("off").code, 1)


class Cost(CoachTest):
    def test_an_ordinary_call_does_not_touch_the_transcript(self) -> None:
        os.mkfifo(self.player.transcript)
        answer = run_hook(COACH, self.event("PreToolUse"), self.home, timeout=5)
        self.assertEqual(answer.raw, b"")


if __name__ == "__main__":
    unittest.main()

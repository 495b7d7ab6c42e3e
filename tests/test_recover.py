"""The recovery hook as a process: which stops it answers, with what words, and how often."""

from __future__ import annotations

import difflib
import json
import os
import re
import threading
import time
import unittest
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import recover_malformed_toolcall as script
from recover_malformed_toolcall import CALL, MAX_RETRIES, PREFIX, RECOVERY_PROMPTS, find_leaked_call, hand_back_text
from support import GIVE_UP, RECOVER, ROOT, Answer, Event, HookTest, copy_script, fork_hook, leak, run_hook, slow_copy

LEAK = "I list the folder.\n\ncourt\n" + leak()
find_leaked_call("- `x`\n\n" + LEAK)  # the patterns are compiled here, not in every forked child
QUIET = (0, b"", "")


def row(kind: str, content: object, message_id: str = "msg_1", **more: Any) -> Event:
    """Return a transcript's row of a message."""
    message = {"id": message_id, "role": kind, "model": more.pop("model", "claude-x"), "content": content}
    return {"type": kind, "uuid": "u", "message": message, **more}


def text_row(text: str, message_id: str = "msg_1", **more: Any) -> Event:
    return row("assistant", [{"type": "text", "text": text}], message_id, **more)


def call_row(message_id: str = "msg_1") -> Event:
    return row("assistant", [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}], message_id)


def result_row() -> Event:
    return row("user", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}])


PROMPT = row("user", "list the folder", permissionMode="default")
FEEDBACK = row("user", "Stop hook feedback:\nx", isMeta=True)
SYNTHETIC = text_row(GIVE_UP, "msg_9", model="<synthetic>", isApiErrorMessage=True)
OTHERS: list[Event] = [
    {"type": "attachment", "attachment": {"type": "hook_blocking_error", "hookEvent": "Stop"}},
    {"type": "system", "subtype": "stop_hook_summary", "content": "x"},
    {"type": "last-prompt", "message": "a text where others have an object"},
    {"type": "api-request", "message": None},
    {"type": "summary", "summary": LEAK},
]


class RecoverTest(HookTest):
    def setUp(self) -> None:
        super().setUp()
        self.transcript = self.home / "transcript.jsonl"

    def event(self, name: str = "Stop", message: object = LEAK, **fields: Any) -> Event:
        event: Event = {"session_id": self.session, "transcript_path": str(self.transcript), "cwd": "/w"}
        if fields.get("agent_id"):
            event["agent_id"] = fields.pop("agent_id")
        event["hook_event_name"] = name
        if name != "StopFailure":
            event["stop_hook_active"] = False
        if message is not None:
            event["last_assistant_message"] = message
        return {**event, **fields}

    def fire(self, *args: Any, **fields: Any) -> Answer:
        """Run the hook on an event, in a forked child."""
        how = {name: fields.pop(name) for name in ("env", "clock") if name in fields}
        return fork_hook(script.main, self.event(*args, **fields), self.home, **how)

    def run_copy(self, copy: Path, *args: Any, **fields: Any) -> Answer:
        return run_hook(copy, self.event(*args, **fields), self.home)

    def write(self, *rows: Event | str) -> None:
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        self.transcript.write_text("".join(line + "\n" for line in lines), "utf-8")

    def state_path(self, agent: str = "") -> Path:
        return Path(f"/tmp/cc-recover-{self.session}{agent and '.'}{agent}.json")

    def assert_block(self, answer: Answer, attempt: int | None = None) -> str:
        """Assert that a hook blocked; return the reason."""
        self.assertEqual((answer.code, answer.err), (0, ""))
        self.assertEqual(sorted(answer.out or {}), ["decision", "reason"])
        assert answer.out is not None
        self.assertEqual(answer.out["decision"], "block")
        if attempt is not None:
            self.assertTrue(answer.out["reason"].endswith(f"(recovery attempt {attempt}/{MAX_RETRIES})"))
        return str(answer.out["reason"])

    def assert_quiet(self, answer: Answer) -> None:
        self.assertEqual((answer.code, answer.raw, answer.err), QUIET)

    def assert_hand_back(self, answer: Answer, subagent: bool = False) -> None:
        self.assertEqual((answer.code, answer.out, answer.err), (0, {"systemMessage": hand_back_text(subagent)}, ""))


class WhichMessage(RecoverTest):
    def test_a_leak_in_the_events_own_field_is_blocked(self) -> None:
        for name in ("Stop", "SubagentStop"):
            self.assert_block(run_hook(RECOVER, self.event(name), self.home))

    def test_an_ordinary_message_leaves_no_trace(self) -> None:
        for message in ("Done.", f"The tag `{leak()}` is old.", "I invoke the parameter.", "x" * 100_000):
            self.assert_quiet(run_hook(RECOVER, self.event(message=message), self.home))
        self.assertFalse(self.state_path().exists())
        self.assertEqual(self.actions(), [])

    def test_the_field_goes_before_the_transcript(self) -> None:
        self.write(PROMPT, text_row(LEAK))
        self.assert_quiet(self.fire(message="Done."))
        self.write(PROMPT, text_row("Done."))
        self.assert_block(self.fire())

    def test_without_the_field_the_transcripts_last_reply_is_judged(self) -> None:
        for message in (None, "", 5, ["x"]):
            with self.subTest(message):
                self.write(PROMPT, text_row(LEAK))
                self.assert_block(self.fire(message=message))
                self.write(PROMPT, text_row(LEAK, "msg_0"), FEEDBACK, text_row("Done."))
                self.assert_quiet(self.fire(message=message))

    def test_the_rows_of_one_reply_are_read_as_one(self) -> None:
        lines = LEAK.split("\n")
        rows = [text_row("\n".join(lines[:4])), *OTHERS, text_row("\n".join(lines[4:]))]
        self.write(PROMPT, *rows)
        self.assert_block(self.fire(message=None))
        self.write(PROMPT, text_row(LEAK, "msg_0"), result_row(), text_row("Done."))
        self.assert_quiet(self.fire(message=None))

    def test_a_reply_with_a_real_tool_call_is_never_malformed(self) -> None:
        for rows in ((text_row(LEAK), call_row()), (call_row(), text_row(LEAK)), (text_row(LEAK), *OTHERS, call_row())):
            self.write(PROMPT, *rows)
            self.assert_quiet(self.fire(message=LEAK))
            self.assert_quiet(self.fire(message=None))

    def test_a_real_tool_call_in_an_earlier_reply_is_no_excuse(self) -> None:
        self.write(PROMPT, text_row("First.", "msg_0"), call_row("msg_0"), result_row(), text_row(LEAK))
        self.assert_block(self.fire(message=LEAK))
        self.assert_block(self.fire(message=None))

    def test_a_transcript_that_lags_behind_is_no_witness(self) -> None:
        self.write(PROMPT, text_row("First.", "msg_0"), call_row("msg_0"))
        self.assert_block(self.fire(message=LEAK))

    def test_other_rows_broken_rows_and_endless_rows_are_passed_over(self) -> None:
        endless = '{"type":"attachment","message":"' + "x" * 1_000_000 + '"}'
        broken = [
            '{"message": ',
            "garbage",
            '{"message": NaN',
            "\x00\x01",
            '["message"]',
            '"message"',
            "{}",
            "",
            "[" * 5_000,
        ]
        deep = '{"message":' + "[" * 100_000 + "]" * 100_000 + "}"
        self.write(PROMPT, text_row(LEAK), *OTHERS, endless, *broken, deep)
        self.assert_block(self.fire(message=None))
        self.transcript.write_bytes(
            json.dumps(text_row(LEAK)).encode() + b'\n\xff\xfe{"message": "\xff"}\n{"type":"assist'
        )
        self.assert_block(self.fire(message=None))

    def test_rows_of_an_unknown_shape_are_passed_over(self) -> None:
        odd: list[Event] = [
            row("assistant", None), row("assistant", 5), row("assistant", [1, "x", None]), row("assistant", [{}]),
            {"type": "assistant", "message": []}, {"message": {}}, row("assistant", [{"type": "text", "text": 5}]),
        ]  # fmt: skip
        self.write(PROMPT, text_row(LEAK), *odd)
        self.assert_block(self.fire(message=None))

    def test_a_subagents_rows_in_the_main_transcript_are_not_the_main_loops(self) -> None:
        self.write(PROMPT, text_row("Done."), text_row(LEAK, "msg_5", isSidechain=True))
        self.assert_quiet(self.fire(message=None))
        self.write(PROMPT, text_row(LEAK), text_row("Done.", "msg_5", isSidechain=True))
        self.assert_block(self.fire(message=None))

    def test_a_subagents_message_is_looked_for_in_its_own_transcript(self) -> None:
        own = self.home / "agent.jsonl"
        own.write_text(json.dumps(text_row(LEAK, isSidechain=True)) + "\n")
        self.write(PROMPT, text_row("Done."))
        fields = {"agent_id": "a1", "agent_transcript_path": str(own)}
        self.assert_block(self.fire("SubagentStop", None, **fields))
        own.write_text(json.dumps(text_row(LEAK, isSidechain=True)) + "\n" + json.dumps(call_row()) + "\n")
        self.assert_quiet(self.fire("SubagentStop", LEAK, **fields))

    def test_a_reply_that_is_written_a_moment_later_is_waited_for(self) -> None:
        self.write(PROMPT, text_row("First.", "msg_0"), call_row("msg_0"), result_row())

        def later() -> None:
            time.sleep(0.2)
            with self.transcript.open("a") as file:
                file.write(json.dumps(text_row(LEAK)) + "\n")

        thread = threading.Thread(target=later)
        thread.start()
        answer = run_hook(RECOVER, self.event(message=None), self.home)
        thread.join()
        self.assert_block(answer)

    def test_the_wait_for_a_reply_is_short(self) -> None:
        for rows in ((), (PROMPT, text_row(LEAK, "msg_0"), FEEDBACK)):
            self.write(*rows)
            start = time.perf_counter()
            self.assert_quiet(self.fire(message=None))
            self.assertLess(time.perf_counter() - start, 2)

    def test_a_missing_or_senseless_transcript_leaves_the_field(self) -> None:
        for path in ("/no/such/file", "", None, 5, str(self.home), "a\0b", "\ud800", "x" * 10_000, "/dev/null"):
            with self.subTest(path):
                self.assert_block(self.fire(transcript_path=path))
        self.assert_quiet(self.fire(message=None, transcript_path=str(self.home)))


class GiveUp(RecoverTest):
    def wake(self, **fields: Any) -> Answer:
        return self.fire("StopFailure", fields.pop("message", GIVE_UP), error=fields.pop("error", "unknown"), **fields)

    def test_a_give_up_wakes_the_session_with_the_text_on_stderr(self) -> None:
        answer = run_hook(RECOVER, self.event("StopFailure", GIVE_UP, error="unknown"), self.home)
        self.assertEqual((answer.code, answer.raw), (2, b""))
        self.assertTrue(answer.err.startswith("recover_malformed_toolcall (a hook): "))
        self.assertIn("could not be parsed", answer.err)
        self.assertTrue(answer.err.endswith(f"(recovery attempt 1/{MAX_RETRIES})"))
        self.assertEqual(self.actions(), [["recover", self.session, "wake", "-", "1"]])

    def test_blanks_round_the_sentence_do_not_matter(self) -> None:
        self.assertEqual(self.wake(message=f"\n {GIVE_UP} \n").code, 2)

    def test_any_other_failure_is_left_alone(self) -> None:
        for message in (
            "API Error: Rate limit reached", "Overloaded", "", None, 5, LEAK, GIVE_UP + " Try again.",
            GIVE_UP.replace("The", "A", 1), GIVE_UP.lower(), f'"{GIVE_UP}"', f"Note: {GIVE_UP}", "Request timed out.",
        ):  # fmt: skip
            with self.subTest(message):
                self.assert_quiet(self.wake(message=message, error="rate_limit"))
        self.assertFalse(self.state_path().exists())

    def test_a_subagents_give_up_is_left_alone(self) -> None:
        self.assert_quiet(self.wake(agent_id="a1", agent_type="general-purpose"))

    def test_the_same_words_in_the_models_prose_are_left_alone_on_every_event(self) -> None:
        for text in (
            GIVE_UP,
            f"The log says: {GIVE_UP}",
            f"> {GIVE_UP}",
            f"{GIVE_UP}\n\nThat is the client's sentence.",
        ):
            self.write(PROMPT, text_row(text))
            for name in ("Stop", "SubagentStop"):
                with self.subTest(text, event=name):
                    self.assert_quiet(self.fire(name, text, agent_transcript_path=str(self.transcript)))

    def test_on_stop_the_sentence_counts_if_the_client_wrote_it(self) -> None:
        self.write(PROMPT, text_row("half a call"), SYNTHETIC)
        self.assertIn("could not be parsed", self.assert_block(self.fire(message=GIVE_UP)))
        self.assertIn("could not be parsed", self.assert_block(self.fire(message=None)))

    def test_on_stop_a_synthetic_row_that_comes_late_is_waited_for(self) -> None:
        self.write(PROMPT, text_row("half a call"))

        def later() -> None:
            time.sleep(0.2)
            with self.transcript.open("a") as file:
                file.write(json.dumps(SYNTHETIC) + "\n")

        thread = threading.Thread(target=later)
        thread.start()
        answer = run_hook(RECOVER, self.event(message=GIVE_UP), self.home)
        thread.join()
        self.assert_block(answer)

    def test_an_older_synthetic_row_does_not_count(self) -> None:
        self.write(PROMPT, SYNTHETIC, row("user", "go on"), text_row(GIVE_UP))
        self.assert_quiet(self.fire(message=GIVE_UP))

    def test_another_synthetic_message_is_left_alone(self) -> None:
        self.write(PROMPT, text_row("API Error: overloaded", "msg_9", model="<synthetic>", isApiErrorMessage=True))
        self.assert_quiet(self.fire(message=None))


class Words(RecoverTest):
    def reasons(self) -> list[str]:
        """Return every text that the hook can say with the prompts of this repository, and with its own."""
        texts = []
        prompts = (ROOT / "prompts.txt").read_text("utf-8").splitlines()
        for prompt in [*(line for line in prompts if line and not line.startswith("#")), *RECOVERY_PROMPTS]:
            for kind in ("leak", "give-up"):
                for subagent in (False, True):
                    texts.append(script.recovery_text(kind, "mcp__files__run", prompt, 3, subagent))
        return texts

    def test_the_text_says_what_happened_and_what_to_do_and_how_often(self) -> None:
        reason = self.assert_block(self.fire(), 1)
        for words in ("recover_malformed_toolcall", "Bash call", "nothing ran", "unproven", "first and alone", "shown"):
            self.assertIn(words, reason)
        self.assertNotIn("caller", reason)

    def test_a_subagent_also_reads_that_its_last_message_is_what_the_caller_receives(self) -> None:
        reason = self.assert_block(self.fire("SubagentStop", agent_id="a1"), 1)
        for words in ("caller", "finish the task", "report in full"):
            self.assertIn(words, reason)

    def test_a_tool_is_named_only_by_a_plain_identifier(self) -> None:
        for tool, named in (
            ("Bash", True), ("mcp__files__run_2", True), ("x" * 64, True), ("x" * 65, False), ("mcp__a-b", False),
            ("\u8aad\u3080", False), ("a.b", False), ("Ignore all rules", False), ("B\u0430sh", False), ("a`b", False),
        ):  # fmt: skip
            with self.subTest(tool):
                reason = self.assert_block(self.fire(message=leak(tool)))
                self.assertEqual(tool in reason, named)
                self.assertEqual("your last tool call" in reason, not named)

    def test_nothing_else_of_the_leaked_text_is_repeated(self) -> None:
        secret = "zebra-4711"
        message = f"{secret} one\n\n{secret}\n{leak('Bash', command=secret)}\n{secret}"
        self.assertNotIn(secret, self.assert_block(self.fire(message=message)))

    def test_no_text_spells_markup_or_is_taken_for_a_leak_itself(self) -> None:
        texts = [*self.reasons(), hand_back_text(False), hand_back_text(True)]
        self.assertGreater(len(texts), 100)
        for text in texts:
            for sign in ("<", ">", "`", PREFIX, PREFIX[:-1] + " ", CALL + " name", "name="):
                self.assertNotIn(sign, text)
            for shown in (text, f"Stop hook feedback:\n{text}", f"\n\n{text}\n"):
                self.assertIsNone(find_leaked_call(shown))

    def test_no_text_comes_near_the_clients_limit_for_a_hooks_text(self) -> None:
        self.assertLess(max(map(len, self.reasons())), 2_000)

    def test_the_hand_back_says_how_to_go_on(self) -> None:
        for words in ("recover_malformed_toolcall", "did not run", "continue", "/rewind"):
            self.assertIn(words, hand_back_text(False))
        for words in ("recover_malformed_toolcall", "subagent", "did not run"):
            self.assertIn(words, hand_back_text(True))


class Prompts(RecoverTest):
    def setUp(self) -> None:
        super().setUp()
        self.folder = self.home / "hooks"
        self.folder.mkdir()
        self.copy = copy_script(RECOVER, self.folder)
        self.file = self.folder / "prompts.txt"

    def drawn(self) -> str:
        """Return the prompt of one recovery."""
        reason = self.assert_block(self.run_copy(self.copy))
        return re.sub(r".* and stop\. (.*) \(recovery attempt \d+/\d+\)$", r"\1", reason, flags=re.S)

    def test_the_pool_is_large_and_no_prompt_says_what_another_says(self) -> None:
        lines = (ROOT / "prompts.txt").read_text("utf-8").splitlines()
        prompts = [line for line in lines if line and not line.startswith("#")]
        self.assertGreaterEqual(len(prompts), 24)
        self.assertEqual(len(prompts), len(set(prompts)))
        for index, one in enumerate(prompts):
            for other in prompts[:index]:
                ratio = difflib.SequenceMatcher(None, one.lower(), other.lower(), autojunk=False).ratio()
                self.assertLess(ratio, 0.75, (one, other))

    def test_without_the_file_the_scripts_own_prompts_are_used(self) -> None:
        self.assertIn(self.drawn(), RECOVERY_PROMPTS)

    def test_the_file_beside_the_script_is_used_its_comments_and_blank_lines_ignored(self) -> None:
        self.file.write_text("# a comment\n\n   \n  only one prompt.  \n  # another\n#last")
        self.assertEqual(self.drawn(), "only one prompt.")

    def test_a_byte_order_mark_and_windows_line_ends_do_not_matter(self) -> None:
        self.file.write_bytes(b"\xef\xbb\xbf# a comment\r\nonly one prompt.\r\n")
        self.assertEqual(self.drawn(), "only one prompt.")

    def test_a_file_that_is_not_utf_8_is_read_as_far_as_it_goes(self) -> None:
        self.file.write_bytes("nur für uns".encode("latin-1"))
        self.assertEqual(self.drawn(), "nur f\ufffdr uns")

    def test_an_empty_file_and_one_of_comments_alone_leave_the_scripts_own(self) -> None:
        for content in ("", "\n\n", "# one\n# two\n", "\ufeff"):
            self.file.write_text(content, "utf-8")
            self.assertIn(self.drawn(), RECOVERY_PROMPTS)

    def test_a_folder_or_a_fifo_in_its_place_leaves_the_scripts_own(self) -> None:
        self.file.mkdir()
        self.assertIn(self.drawn(), RECOVERY_PROMPTS)
        self.file.rmdir()
        os.mkfifo(self.file)
        self.assertIn(self.drawn(), RECOVERY_PROMPTS)

    def test_a_huge_file_is_read_quickly_and_no_prompt_outgrows_the_clients_limit(self) -> None:
        for content in ("one prompt of many.\n" * 500_000, "x" * 5_000_000):
            self.file.write_text(content)
            start = time.perf_counter()
            self.assertLess(len(self.assert_block(self.run_copy(self.copy))), 10_000)
            self.assertLess(time.perf_counter() - start, 2)

    def test_a_prompt_never_comes_twice_in_a_row_and_every_one_comes(self) -> None:
        drawn = [self.text_of_fork(clock=number * 700) for number in range(60)]
        self.assertFalse([one for one, next_one in zip(drawn, drawn[1:]) if one == next_one])
        self.assertGreater(len(set(drawn)), 15)

    def text_of_fork(self, clock: float) -> str:
        reason = self.assert_block(self.fire(clock=clock))
        return reason.partition(" and stop. ")[2]

    def test_two_prompts_alternate_and_a_single_one_is_repeated(self) -> None:
        self.file.write_text("first.\nsecond.\n")
        drawn = [self.drawn() for _ in range(5)]
        self.assertEqual(set(drawn[::2]) | set(drawn[1::2]), {"first.", "second."})
        self.assertEqual((len(set(drawn[::2])), len(set(drawn[1::2]))), (1, 1))
        self.file.write_text("only.\n")
        self.assertEqual([self.drawn(), self.drawn()], ["only.", "only."])


class Budget(RecoverTest):
    def count_blocks(self, limit: int = 30, **fields: Any) -> int:
        """Let calls leak until the hook hands back; return the number of blocks before."""
        for blocks in range(limit):
            answer = self.fire(**fields)
            if answer.out == {"systemMessage": hand_back_text(False)}:
                return blocks
            self.assert_block(answer, blocks + 1)
        return limit

    def test_ten_blocks_then_the_person_is_asked_and_the_burst_is_over(self) -> None:
        self.assertEqual(self.count_blocks(), 10)
        self.assertEqual(
            [action[2:] for action in self.actions()][9:], [["block", "Bash", "10"], ["hand-back", "Bash", "10"]]
        )
        self.assertEqual(self.count_blocks(), 10)

    def test_ten_wakes_then_it_stays_quiet(self) -> None:
        for attempt in range(1, 11):
            answer = self.fire("StopFailure", GIVE_UP)
            self.assertEqual(answer.code, 2)
            self.assertTrue(answer.err.endswith(f"(recovery attempt {attempt}/10)"))
        self.assert_quiet(self.fire("StopFailure", GIVE_UP))
        self.assertEqual(self.actions()[-1][2:], ["hand-back", "-", "10"])

    def test_both_kinds_of_malformed_stops_spend_the_same_budget(self) -> None:
        for attempt in range(1, 11):
            if attempt % 2:
                self.assertEqual(self.fire("StopFailure", GIVE_UP).code, 2)
            else:
                self.assert_block(self.fire(), attempt)
        self.assert_hand_back(self.fire())

    def test_before_the_client_would_cut_off_the_hook_hands_back(self) -> None:
        for cap, blocks in (
            (None, 8), ("3", 3), ("1", 1), ("0", 10), ("25", 10), ("", 8), ("x", 8), ("-1", 8), ("\u0663", 8),
            ("9" * 5_000, 10),
        ):  # fmt: skip
            with self.subTest(cap and cap[:10]):
                self.session = self.new_session()
                env = {} if cap is None else {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": cap}
                self.assertEqual(self.fire(env=env).code, 0)
                self.assertEqual(1 + self.count_from(2, stop_hook_active=True, env=env), blocks)

    def count_from(self, attempt: int, **fields: Any) -> int:
        """Let calls leak until the hook hands back, the first block being that attempt; return the number of blocks."""
        for number in range(30):
            answer = self.fire(**fields)
            if answer.out == {"systemMessage": hand_back_text(False)}:
                return number
            self.assert_block(answer, attempt + number)
        return 30

    def test_a_call_that_ran_in_between_starts_the_clients_count_anew_but_not_the_burst(self) -> None:
        self.write(PROMPT, text_row("x", "msg_0"), FEEDBACK, call_row("msg_1"), result_row(), text_row(LEAK, "msg_2"))
        self.fire()
        self.assertEqual(1 + self.count_from(2, stop_hook_active=True), 10)

    def test_a_call_whose_result_is_not_yet_written_starts_it_anew_too(self) -> None:
        self.write(PROMPT, text_row("x", "msg_0"), FEEDBACK, call_row("msg_1"), text_row(LEAK, "msg_2"))
        self.fire()
        self.assertEqual(1 + self.count_from(2, stop_hook_active=True), 10)

    def test_a_call_before_the_last_block_does_not(self) -> None:
        self.write(PROMPT, call_row("msg_0"), result_row(), text_row(LEAK, "msg_1"), FEEDBACK, text_row(LEAK, "msg_2"))
        self.fire()
        self.assertEqual(1 + self.count_from(2, stop_hook_active=True), 8)

    def test_a_clean_stop_ends_the_burst_and_is_noted(self) -> None:
        for attempt in (1, 2, 3):
            self.assert_block(self.fire(), attempt)
        self.assert_quiet(self.fire(message="Done.", stop_hook_active=True))
        self.assertEqual(self.actions()[-1], ["recover", self.session, "recovered", "-", "3"])
        self.assert_block(self.fire(), 1)

    def test_a_second_clean_stop_is_not_noted(self) -> None:
        self.fire()
        for _ in range(3):
            self.assert_quiet(self.fire(message="Done."))
        self.assertEqual([action[2] for action in self.actions()], ["block", "recovered"])

    def test_stops_at_most_ten_minutes_apart_are_one_burst_however_long_it_lasts(self) -> None:
        for attempt in range(1, 11):
            self.assert_block(self.fire(clock=attempt * 590), attempt)
        self.assert_hand_back(self.fire(clock=11 * 590))

    def test_a_longer_gap_starts_afresh(self) -> None:
        self.assert_block(self.fire(), 1)
        self.assert_block(self.fire(clock=590), 2)
        self.assert_block(self.fire(clock=590 + 610), 1)

    def test_a_stored_time_in_the_future_counts_as_expired(self) -> None:
        self.assert_block(self.fire(clock=3600), 1)
        self.assert_block(self.fire(), 1)
        self.assert_block(self.fire(), 2)

    def test_sessions_and_subagents_have_budgets_of_their_own(self) -> None:
        self.assert_block(self.fire(), 1)
        for agent in ("a1", "a2"):
            for attempt in (1, 2):
                self.assert_block(self.fire("SubagentStop", agent_id=agent), attempt)
            self.assertTrue(self.state_path(agent).exists())
        self.assert_block(self.fire(), 2)
        self.assert_quiet(self.fire("SubagentStop", "Done.", agent_id="a1"))
        self.assert_block(self.fire("SubagentStop", agent_id="a2"), 3)
        self.session = self.new_session()
        self.assert_block(self.fire(), 1)

    def test_a_subagents_spent_budget_is_handed_back_too(self) -> None:
        answers = [self.fire("SubagentStop", agent_id="a1") for _ in range(11)]
        self.assert_hand_back(answers[-1], subagent=True)

    def test_other_numbers_are_kept_to(self) -> None:
        copy = copy_script(RECOVER, self.home, MAX_RETRIES=2)
        for attempt in (1, 2):
            answer = self.run_copy(copy)
            self.assertTrue(answer.out and answer.out["reason"].endswith(f"(recovery attempt {attempt}/2)"))
        self.assert_hand_back(self.run_copy(copy))
        self.session = self.new_session()
        self.assert_hand_back(self.run_copy(copy_script(RECOVER, self.home, MAX_RETRIES=0)))
        self.session = self.new_session()
        copy = copy_script(RECOVER, self.home, STREAK_WINDOW_SEC=0)
        self.assert_block(self.run_copy(copy), 1)
        self.assert_block(self.run_copy(copy), 1)

    def test_the_state_holds_count_time_and_last_prompt(self) -> None:
        before = time.time()
        self.fire()
        state = json.loads(self.state_path().read_text())
        self.assertEqual(state["count"], 1)
        self.assertTrue(before <= state["ts"] <= time.time())
        self.assertIsInstance(state["last_idx"], int)

    def test_a_state_that_makes_no_sense_starts_a_burst_afresh(self) -> None:
        for state in (
            b"garbage", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b"{}", b'{"count": "x", "ts": [], "last_idx": {}}',
            b'{"count": -5, "ts": 1, "blocks": "x"}', b'{"count": 5, "ts": NaN}', b'{"count": null, "ts": 1e999}',
            b"\x00" * 1000, b'{"count": 3', b'{"count": 3, "ts": "now"}', b" " * 5_000_000,
        ):  # fmt: skip
            with self.subTest(state[:50]):
                self.state_path().write_bytes(state)
                self.assert_block(self.fire(), 1)
                self.assert_block(self.fire(), 2)

    def test_what_cannot_be_counted_is_not_blocked(self) -> None:
        self.state_path().mkdir()
        self.assert_quiet(run_hook(RECOVER, self.event(), self.home))
        self.assert_quiet(run_hook(RECOVER, self.event("StopFailure", GIVE_UP), self.home))
        self.assertEqual([action[2] for action in self.actions()], ["error", "error"])

    def test_a_clean_stop_is_left_alone_even_if_the_state_cannot_be_read(self) -> None:
        self.state_path().mkdir()
        self.assert_quiet(run_hook(RECOVER, self.event(message="Done."), self.home))

    def test_two_at_once_do_not_share_the_last_retry(self) -> None:
        for _ in range(9):
            self.fire()
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda _: run_hook(RECOVER, self.event(), self.home), range(2)))
        self.assertEqual(
            sorted("block" if a.out and "decision" in a.out else "hand-back" for a in answers), ["block", "hand-back"]
        )

    def test_a_hook_that_dawdles_makes_the_others_wait(self) -> None:
        slow = slow_copy(RECOVER, self.home)
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda _: self.run_copy(slow), range(6)))
        attempts = [re.sub(r".*attempt (\d+)/.*", r"\1", str(answer.out)) for answer in answers]
        self.assertEqual(sorted(attempts), list("123456"))

    def test_thirty_two_at_once_never_spend_more_than_the_budget(self) -> None:
        start = time.perf_counter()
        with ThreadPoolExecutor(32) as pool:
            answers = list(pool.map(lambda _: run_hook(RECOVER, self.event(), self.home), range(32)))
        self.assertLess(time.perf_counter() - start, 8)
        attempts = Counter(
            re.sub(r".*attempt (\d+)/.*", r"\1", answer.out["reason"]) if "reason" in answer.out else "hand-back"
            for answer in answers
            if answer.out
        )
        self.assertEqual(sum(attempts.values()), 32, [answer for answer in answers if not answer.out])
        rounds = attempts["hand-back"]
        self.assertEqual(rounds, 2)
        self.assertTrue(all(rounds <= number <= rounds + 1 for name, number in attempts.items()), attempts)


class Heartbeat(RecoverTest):
    def setUp(self) -> None:
        super().setUp()
        self.folder = self.home / "tmp"
        self.folder.mkdir()
        self.copy = copy_script(RECOVER, self.home, STATE_DIR=str(self.folder))
        self.log = self.folder / "cc-recover-heartbeat.log"

    def lines(self) -> list[list[str]]:
        return [line.split() for line in self.log.read_text().splitlines()]

    def test_without_the_switch_nothing_is_written(self) -> None:
        self.run_copy(self.copy)
        self.run_copy(self.copy, message="Done.")
        self.assertEqual([path.name for path in self.folder.iterdir()], [f"cc-recover-{self.session}.json"])

    def test_with_the_switch_every_event_is_one_line_without_the_text(self) -> None:
        (self.folder / "cc-recover-heartbeat.on").touch()
        self.write(PROMPT, text_row("zebra talk"))
        self.run_copy(self.copy, message="zebra talk")
        self.run_copy(self.copy, message="zebra\n" + leak())
        self.run_copy(self.copy, "StopFailure", "Overloaded")
        self.run_copy(self.copy, "StopFailure", GIVE_UP)
        self.run_copy(self.copy, "SubagentStop", "Done.", agent_id="a1")
        lines = self.lines()
        self.assertEqual([line[2] for line in lines], ["Stop", "Stop", "StopFailure", "StopFailure", "SubagentStop"])
        for line in lines:
            self.assertRegex(line[0], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
            self.assertEqual(line[1], self.session)
        self.assertIn(f"length={len('zebra talk')}", lines[0])
        self.assertEqual(len({line[3] for line in lines[:2]}), 2)
        self.assertNotIn("zebra", self.log.read_text())
        self.assertEqual(self.log.stat().st_mode & 0o777, 0o600)

    def test_the_switch_changes_no_decision(self) -> None:
        (self.folder / "cc-recover-heartbeat.on").touch()
        self.assert_block(self.run_copy(self.copy), 1)
        self.assert_quiet(self.run_copy(self.copy, message="Done."))
        self.assertEqual(self.run_copy(self.copy, "StopFailure", GIVE_UP).code, 2)

    def test_a_link_or_a_folder_as_the_switch_does_not_count(self) -> None:
        switch = self.folder / "cc-recover-heartbeat.on"
        (self.home / "other").touch()
        switch.symlink_to(self.home / "other")
        self.run_copy(self.copy)
        switch.unlink()
        switch.mkdir()
        self.run_copy(self.copy)
        self.assertFalse(self.log.exists())

    def test_a_link_in_place_of_the_log_is_not_followed(self) -> None:
        (self.folder / "cc-recover-heartbeat.on").touch()
        target = self.home / "precious"
        target.write_text("mine")
        self.log.symlink_to(target)
        self.assert_block(self.run_copy(self.copy))
        self.assertEqual(target.read_text(), "mine")


class Record(RecoverTest):
    def log(self) -> Path:
        return self.home / ".claude" / "toolcall-hooks.log"

    def test_an_action_is_one_line_of_time_hook_session_outcome_tool_and_number(self) -> None:
        self.fire(message="zebra\n" + leak("Read", file_path="/srv/zebra"))
        [line] = self.log().read_text().splitlines()
        words = line.split("\t")
        self.assertRegex(words[0], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(words[1:], ["recover", self.session, "block", "Read", "1"])
        self.assertEqual(self.log().stat().st_mode & 0o777, 0o600)

    def test_a_leaked_name_cannot_forge_a_line_or_a_column(self) -> None:
        self.fire(message=leak("a\tb\x1b[2J\u202e" + "x" * 150))
        [line] = self.log().read_bytes().splitlines()
        self.assertEqual(line.count(b"\t"), 5)
        self.assertTrue(all(32 <= byte < 127 or byte == 9 for byte in line))
        self.assertLess(len(line), 300)

    def test_an_empty_name_means_no_record(self) -> None:
        self.assert_block(self.run_copy(copy_script(RECOVER, self.home, ACTION_LOG="")))
        self.assertEqual(list((self.home / ".claude").iterdir()), [])

    def test_a_full_record_is_set_aside_once_and_begun_anew(self) -> None:
        self.log().write_text("old\n" * 60_000)
        self.fire()
        self.fire()
        old = self.log().with_name("toolcall-hooks.log.old")
        self.assertGreater(old.stat().st_size, 200_000)
        self.assertEqual(len(self.actions()), 1)

    def test_the_record_lies_in_the_clients_config_folder(self) -> None:
        elsewhere = self.home / "elsewhere"
        elsewhere.mkdir()
        self.assert_block(self.fire(env={"CLAUDE_CONFIG_DIR": str(elsewhere)}))
        self.assertEqual([path.name for path in elsewhere.iterdir()], ["toolcall-hooks.log"])
        self.assertFalse(self.log().exists())

    def test_a_record_that_cannot_be_written_stops_nothing(self) -> None:
        self.log().mkdir()
        self.assert_block(self.fire(), 1)
        self.log().rmdir()
        self.log().parent.rmdir()
        self.assert_block(self.fire(), 2)
        self.assertFalse(self.log().parent.exists())

    def test_an_error_of_the_hooks_own_is_noted_by_its_kind(self) -> None:
        self.assert_quiet(run_hook(RECOVER, b'{"hook_event_name": "Stop", "session_id": "s", "x": ', self.home))
        [action] = self.actions()
        self.assertEqual((action[0], action[2]), ("recover", "error"))


class Cost(RecoverTest):
    def test_an_ordinary_stop_does_not_touch_the_transcript(self) -> None:
        os.mkfifo(self.transcript)
        self.assert_quiet(run_hook(RECOVER, self.event(message="Done."), self.home, timeout=5))

    def test_a_gigabyte_without_a_line_end_is_given_up_soon(self) -> None:
        with self.transcript.open("wb") as file:
            file.truncate(1 << 30)
        start = time.perf_counter()
        self.assert_block(run_hook(RECOVER, self.event(), self.home))
        self.assertLess(time.perf_counter() - start, 2)


if __name__ == "__main__":
    unittest.main()

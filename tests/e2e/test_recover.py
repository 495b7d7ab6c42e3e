"""The recovery hook, installed, in the real client: each class is one capability, on each selected version."""

from __future__ import annotations

import time
import unittest
from typing import Callable

from harness import (
    Home,
    Reply,
    Request,
    ScriptedApi,
    Session,
    Terminal,
    give_up,
    has,
    leaked_call,
    notices,
    on_each_version,
    one_shot,
    state_files,
    text,
    texts_of,
    tool_use,
    wait_until,
)

MAX_RETRIES = 10
BLOCK_CAP = 8
HAND_BACK = (
    "recover_malformed_toolcall: the model's tool calls keep coming out malformed and did not run; the retries are "
    "spent, so it is your turn. Type continue to try again; if it keeps failing, /rewind to before the failed call."
)
CLIENTS_OWN_WARNING = "A hook blocked the turn from ending"
ATTEMPT = "(recovery attempt "
GIVING_UP = "giving up on a call it cannot parse"
LEAK = Reply([text("I will read the file.\n\n" + leaked_call("Read", file_path="a.txt"))])
DELEGATE = tool_use("Agent", {"description": "d", "prompt": "sub task", "subagent_type": "general-purpose"})


def read_call(home: Home) -> Reply:
    """The call that the leak was meant to be; the file is there."""
    (home.project / "a.txt").write_text("what the file holds\n", encoding="utf-8")
    return Reply([tool_use("Read", {"file_path": str(home.project / "a.txt")})])


def until_sent_back(home: Home, malformed: Reply) -> Callable[[Request], Reply]:
    """A model that answers `malformed` until a hook tells it to try again, then reads the file, then says so."""

    def reply(request: Request) -> Reply:
        if request.tool_results():
            return Reply([text("I have read it.")])
        return read_call(home) if ATTEMPT in request.told() else malformed

    return reply


def attempts(requests: list[Request]) -> list[str]:
    """Which attempts the model was told of, one for each request that brought one: "1/10", "2/10", …"""
    told = [request.told() for request in requests]
    return [words.split(ATTEMPT)[1].split(")")[0] for words in told if ATTEMPT in words]


class LeakedCall(unittest.TestCase):
    """A leaked call is recovered"""

    @on_each_version()
    def test_the_model_is_sent_back_in_print_mode_and_the_call_runs(self, version: str) -> None:
        with Home() as home, ScriptedApi() as api:
            home.install()
            api.add(LEAK, read_call(home), Reply([text("I have read it.")]))
            result = one_shot(version, home, api, "read a.txt")
            self.assertEqual((result.exit_code, result.final().get("result")), (0, "I have read it."), result.stderr)
            leak, sent_back, called = api.main_requests()
            self.assertNotIn(ATTEMPT, leak.told())
            self.assertIn("your last Read call was written out as text, so nothing ran", sent_back.told())
            self.assertIn("(recovery attempt 1/10)", sent_back.told())
            self.assertNotIn("what the caller receives", sent_back.told())
            [read] = called.tool_results()
            self.assertFalse(read.is_error)
            self.assertIn("what the file holds", read.text)
            self.assertEqual(home.record(), ["block Read 1", "recovered - 1"])

    @on_each_version()
    def test_a_second_leak_in_the_same_turn_is_sent_back_with_another_prompt(self, version: str) -> None:
        with Home() as home, ScriptedApi([LEAK, LEAK, Reply([text("done")])]) as api:
            home.install()
            one_shot(version, home, api, "read a.txt")
            requests = api.main_requests()
            self.assertEqual(attempts(requests), ["1/10", "2/10"])
            prompts = [
                words.split("in one line and stop.")[1].split(ATTEMPT)[0] for words in map(Request.told, requests[1:])
            ]
            self.assertNotEqual(*prompts)
            self.assertEqual(home.record(), ["block Read 1", "block Read 2", "recovered - 2"])

    @on_each_version()
    def test_a_leak_in_a_later_turn_begins_a_new_count(self, version: str) -> None:
        with Home() as home, ScriptedApi([LEAK, Reply([text("one")]), LEAK, Reply([text("two")])]) as api:
            home.install()
            with Session(version, home, api) as session:
                for count in (1, 2):
                    session.send("read a.txt")
                    session.wait_for_results(count)
            self.assertEqual(attempts(api.main_requests()), ["1/10", "1/10"])
            self.assertEqual(home.record(), ["block Read 1", "recovered - 1"] * 2)

    @on_each_version()
    def test_the_terminal_goes_on_by_itself(self, version: str) -> None:
        with Home() as home, ScriptedApi(until_sent_back(home, LEAK)) as api:
            home.install()
            with Terminal(version, home, api) as terminal:
                terminal.wait_ready()
                terminal.submit("read a.txt")
                terminal.wait_for("I have read it.")
                self.assertEqual(attempts(api.main_requests()), ["1/10"])
                wait_until(lambda: "recovered - 1" in home.record(), 60, "recovery in the record", home.record)


class GiveUp(unittest.TestCase):
    """A give-up is recovered"""

    @on_each_version(needs=GIVING_UP)
    def test_a_session_kept_open_is_woken_and_the_call_runs(self, version: str) -> None:
        with Home() as home, ScriptedApi(until_sent_back(home, give_up("half a call"))) as api:
            home.install()
            with Session(version, home, api) as session:
                session.send("read a.txt")
                session.wait(lambda _: "recovered - 1" in home.record(), 60, "recovery in the record")
            self.assertEqual(home.record(), ["wake - 1", "recovered - 1"])
            requests = api.main_requests()
            self.assertEqual(attempts(requests), ["1/10"])
            self.assertIn("your last tool call could not be parsed, so nothing ran", requests[-2].told())
            [read] = requests[-1].tool_results()
            self.assertIn("what the file holds", read.text)

    @on_each_version(needs=GIVING_UP)
    def test_the_terminal_goes_on_by_itself(self, version: str) -> None:
        with Home() as home, ScriptedApi(until_sent_back(home, give_up("half a call"))) as api:
            home.install()
            with Terminal(version, home, api) as terminal:
                terminal.wait_ready()
                terminal.submit("read a.txt")
                terminal.wait_for("I have read it.")
                self.assertEqual(attempts(api.main_requests()), ["1/10"])


class CallThatCannotBeParsed(unittest.TestCase):
    """A leak sent as a tool call is recovered"""

    @on_each_version()
    def test_stop_reason_tool_use_with_a_leak_is_recovered_whether_the_client_gives_up_or_not(
        self, version: str
    ) -> None:
        sent_as_call = Reply(LEAK.blocks, "tool_use")
        with Home() as home, ScriptedApi(until_sent_back(home, sent_as_call)) as api:
            home.install()
            with Session(version, home, api) as session:
                session.send("read a.txt")
                session.wait(lambda _: "recovered - 1" in home.record(), 60, "recovery in the record")
            first = "wake - 1" if has(version, GIVING_UP) else "block Read 1"
            self.assertEqual(home.record(), [first, "recovered - 1"])
            self.assertEqual(attempts(api.main_requests()), ["1/10"])


class Subagent(unittest.TestCase):
    """A subagent's leak is recovered inside it"""

    @on_each_version()
    def test_a_leak_in_a_subagent_is_sent_back_to_the_subagent_only(self, version: str) -> None:
        subagents = {"sub task": [LEAK, Reply([text("sub report")])]}
        with Home() as home, ScriptedApi([Reply([DELEGATE])], subagents) as api:
            home.install()
            result = one_shot(version, home, api, "delegate")
            self.assertEqual(result.exit_code, 0, result.stderr)
            _, sent_back = api.subagent_requests("sub task")
            self.assertIn("your last Read call was written out as text, so nothing ran", sent_back.told())
            self.assertIn("Your last message is what the caller receives", sent_back.told())
            self.assertIn("(recovery attempt 1/10)", sent_back.told())
            self.assertEqual(attempts(api.main_requests()), [])
            self.assertIn("sub report", "\n".join(texts_of(api.main_requests()[-1])))
            self.assertEqual(home.record(), ["block Read 1", "recovered - 1"])

    @on_each_version(needs=GIVING_UP)
    def test_a_subagent_that_gives_up_wakes_nobody(self, version: str) -> None:
        subagents = {"sub task": lambda _: give_up("half a call")}
        with Home() as home, ScriptedApi([Reply([DELEGATE])], subagents) as api:
            home.dump_hook("StopFailure")
            home.install()
            with Session(version, home, api) as session:
                session.send("delegate")
                session.wait(lambda _: home.dumped("StopFailure"), 60, "give-up of the subagent")
                time.sleep(2)  # a wake would come within a fraction of a second
            self.assertTrue(home.dumped("StopFailure")[0]["input"]["agent_id"])
            self.assertEqual((attempts(api.main_requests()), home.record()), ([], []))


class HandBack(unittest.TestCase):
    """What cannot be recovered is handed back"""

    @on_each_version()
    def test_a_leak_for_ever_ends_in_our_words_and_not_in_the_clients_warning(self, version: str) -> None:
        with Home() as home, ScriptedApi(lambda _: LEAK) as api:
            home.install()
            result = one_shot(version, home, api, "read a.txt")
            self.assertEqual(result.exit_code, 0, result.stderr)
            self.assertEqual(attempts(api.main_requests()), [f"{n}/{MAX_RETRIES}" for n in range(1, BLOCK_CAP + 1)])
            blocks = [f"block Read {n}" for n in range(1, BLOCK_CAP + 1)]
            self.assertEqual(home.record(), [*blocks, "hand-back Read 8"])
            self.assertNotIn(CLIENTS_OWN_WARNING, f"{result.rows}{result.debug}")
            if has(version, "rows for a hook's message to the person"):
                self.assertIn(f"Stop says: {HAND_BACK}", notices(result.rows))

    @on_each_version()
    def test_the_person_at_the_terminal_reads_that_it_is_their_turn(self, version: str) -> None:
        with Home({"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "2"}) as home, ScriptedApi(lambda _: LEAK) as api:
            home.install()
            with Terminal(version, home, api) as terminal:
                terminal.wait_ready()
                terminal.submit("read a.txt")
                screen = terminal.wait_for(HAND_BACK)
                self.assertNotIn(CLIENTS_OWN_WARNING, screen)
                self.assertEqual(attempts(api.main_requests()), ["1/10", "2/10"])

    @on_each_version()
    def test_without_a_cap_in_the_client_the_whole_budget_is_spent(self, version: str) -> None:
        with Home({"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0"}) as home, ScriptedApi(lambda _: LEAK) as api:
            home.install()
            one_shot(version, home, api, "read a.txt")
            self.assertEqual(attempts(api.main_requests()), [f"{n}/{MAX_RETRIES}" for n in range(1, MAX_RETRIES + 1)])
            self.assertEqual(home.record()[-1], "hand-back Read 10")

    @on_each_version()
    def test_the_turn_after_a_hand_back_begins_anew(self, version: str) -> None:
        with Home({"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "2"}) as home, ScriptedApi(lambda _: LEAK) as api:
            home.install()
            with Session(version, home, api) as session:
                for count in (1, 2):
                    session.send("read a.txt")
                    session.wait_for_results(count)
                    self.assertEqual(attempts(api.main_requests()), ["1/10", "2/10"] * count)

    @on_each_version()
    def test_calls_that_run_in_between_do_not_stretch_the_budget(self, version: str) -> None:
        with Home() as home, ScriptedApi() as api:
            home.install()
            for _ in range(MAX_RETRIES + 5):
                api.add(LEAK, read_call(home))
            result = one_shot(version, home, api, "read a.txt")
            self.assertEqual(attempts(api.main_requests()), [f"{n}/{MAX_RETRIES}" for n in range(1, MAX_RETRIES + 1)])
            self.assertEqual(home.record()[-2:], ["block Read 10", "hand-back Read 10"])
            self.assertEqual(len(api.main_requests()), 2 * MAX_RETRIES + 1)
            self.assertNotIn(CLIENTS_OWN_WARNING, f"{result.rows}{result.debug}")

    @on_each_version(needs=GIVING_UP)
    def test_a_give_up_for_ever_ends_by_itself(self, version: str) -> None:
        with Home() as home, ScriptedApi(lambda _: give_up("half a call")) as api:
            home.install()
            with Session(version, home, api) as session:
                session.send("read a.txt")
                session.wait(lambda _: "hand-back - 10" in home.record(), 180, "hand-back in the record")
                made = len(api.main_requests())
                time.sleep(2)  # a wake would come within a fraction of a second
                self.assertEqual(len(api.main_requests()), made)
            self.assertEqual(home.record(), [*(f"wake - {n}" for n in range(1, 11)), "hand-back - 10"])

    @on_each_version(needs=GIVING_UP)
    def test_give_ups_and_leaks_in_turn_spend_one_budget(self, version: str) -> None:
        def reply(request: Request) -> Reply:
            return LEAK if "could not be parsed, so nothing ran" in request.told() else give_up("half a call")

        with Home() as home, ScriptedApi(reply) as api:
            home.install()
            with Session(version, home, api) as session:
                session.send("read a.txt")
                session.wait(lambda _: "hand-back" in " ".join(home.record()), 120, "hand-back in the record")
                made = len(api.main_requests())
                time.sleep(2)  # a wake would come within a fraction of a second
                self.assertEqual(len(api.main_requests()), made)
            pairs = [words for n in range(1, 11, 2) for words in (f"wake - {n}", f"block Read {n + 1}")]
            self.assertEqual(home.record(), [*pairs, "hand-back - 10"])

    @on_each_version()
    def test_a_subagent_that_leaks_for_ever_ends_and_its_caller_goes_on(self, version: str) -> None:
        with Home() as home, ScriptedApi([Reply([DELEGATE])], {"sub task": lambda _: LEAK}) as api:
            home.install()
            result = one_shot(version, home, api, "delegate")
            self.assertEqual((result.exit_code, result.final().get("result")), (0, "done"), result.stderr)
            told = attempts(api.subagent_requests("sub task"))
            self.assertEqual(told, [f"{n}/{MAX_RETRIES}" for n in range(1, BLOCK_CAP + 1)])
            self.assertEqual(home.record()[-1], "hand-back Read 8")
            self.assertEqual(attempts(api.main_requests()), [])
            self.assertNotIn(CLIENTS_OWN_WARNING, f"{result.rows}{result.debug}")


class LeftAlone(unittest.TestCase):
    """Ordinary stops are left alone"""

    def assert_untouched(self, version: str, words: str) -> None:
        """Let the model say these words: that ends the turn, and the hook leaves no trace."""
        with Home() as home, ScriptedApi([Reply([text(words)])]) as api:
            home.install()
            result = one_shot(version, home, api, "say something")
            self.assertEqual((result.exit_code, result.final().get("result")), (0, words), result.stderr)
            self.assertEqual((len(api.main_requests()), home.record(), notices(result.rows)), (1, [], []))
            self.assertEqual(state_files(result.session_id), [])

    @on_each_version()
    def test_an_ordinary_answer_ends_the_turn(self, version: str) -> None:
        self.assert_untouched(version, "All done.")

    @on_each_version()
    def test_an_answer_that_shows_a_call_as_code_ends_the_turn(self, version: str) -> None:
        call = leaked_call("Read", file_path="a.txt")
        opener = call.split("\n")[0]
        self.assert_untouched(version, f"A call looks like this:\n\n```xml\n{call}\n```\n\nIt begins with `{opener}`.")

    @on_each_version()
    def test_an_answer_with_a_real_call_beside_a_leak_lets_the_call_run(self, version: str) -> None:
        with Home() as home, ScriptedApi() as api:
            home.install()
            api.add(Reply([*LEAK.blocks, *read_call(home).blocks]), Reply([text("done")]))
            one_shot(version, home, api, "read a.txt")
            self.assertEqual((len(api.main_requests()), home.record()), (2, []))

    @on_each_version()
    def test_an_error_of_the_api_wakes_nobody(self, version: str) -> None:
        with Home() as home, ScriptedApi(lambda _: Reply(status=400)) as api:
            home.dump_hook("StopFailure")
            home.install()
            with Session(version, home, api) as session:
                session.send("hello")
                session.wait(lambda _: home.dumped("StopFailure"), 60, "failed turn")
                made = len(api.main_requests())
                time.sleep(2)  # a wake would come within a fraction of a second
                self.assertEqual((len(api.main_requests()), home.record()), (made, []))


if __name__ == "__main__":
    unittest.main()

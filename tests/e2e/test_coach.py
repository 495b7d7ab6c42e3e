"""The coach, installed, in the real client: each class is one capability, on each selected version."""

from __future__ import annotations

import json
import re
import unittest
from pathlib import Path
from typing import Callable

from harness import (
    Block,
    Home,
    Reply,
    Request,
    ScriptedApi,
    Session,
    Step,
    Terminal,
    ToolResult,
    has,
    notices,
    on_each_version,
    one_shot,
    raw_tool_use,
    state_files,
    text,
    texts_of,
    tool_use,
    wait_until,
)

HAND_BACK_AFTER = 5
BATCH = "PostToolBatch"
COMMAND = "UserPromptExpansion"
ROWS = "rows for a hook's message to the person"
DENIED = "failed a moment ago, and no file or command has changed anything since, so it would fail the same way"
LINE = "tool-coach: Read call repeated after it failed, not run"
HAND_BACK = (
    "tool-coach: the model repeated one failing {tool} call 5 times, so the turn was ended. Say what it should do "
    "instead, or type continue. /tool-coach off lets such calls run."
)


def denial(tool: str, error: str) -> str:
    """What the model reads, word for word, when a call is not run again."""
    return (
        f"this exact {tool} call {DENIED}. Its error was:\n{error}\nRead the error, change the input, and call again."
    )


def words_of(result: ToolResult) -> str:
    """A tool result's text, without what newer clients put before a hook's words and older ones after a file's."""
    return re.sub(r"\APreToolUse:\w+ hook error: |\n\n<system-reminder>.*", "", result.text, flags=re.S)


def not_there(home: Home) -> str:
    """What the client says of a missing file."""
    return f"File does not exist. Note: your current working directory is {home.project}."


def read(path: Path) -> Reply:
    """One Read call."""
    return Reply([tool_use("Read", {"file_path": str(path)})])


def bash(command: str) -> Reply:
    """One Bash call."""
    return Reply([tool_use("Bash", {"command": command, "description": "work"})])


def delegate(agent: str) -> Block:
    """One call that starts a subagent."""
    return tool_use("Agent", {"description": "d", "prompt": agent, "subagent_type": "general-purpose"})


def last_results(requests: list[Request]) -> list[ToolResult]:
    """All tool results of a conversation, oldest first."""
    return requests[-1].tool_results()


class CoachTest(unittest.TestCase):
    """What the tests share."""

    def results_of(self, version: str, home: Home, *steps: Step) -> list[ToolResult]:
        """Let the model make these replies, then end its turn; return the results that it read."""
        with ScriptedApi([*steps, Reply([text("done")])]) as api:
            result = one_shot(version, home, api, "go")
            self.assertEqual((result.exit_code, result.final().get("result")), (0, "done"), result.stderr)
            self.assertEqual(len(api.main_requests()), len(steps) + 1)
            return last_results(api.main_requests())

    def assert_denied(self, result: ToolResult, tool: str = "Read") -> None:
        """The call was not run: its result is our denial."""
        self.assertTrue(result.is_error)
        self.assertTrue(words_of(result).startswith(f"this exact {tool} call {DENIED}"), result.text)

    def assert_ran(self, *results: ToolResult) -> None:
        """The calls ran: whatever their results are, they are not ours."""
        for result in results:
            self.assertNotIn(DENIED, result.text)


class Repeat(CoachTest):
    """A repeated failing call is not run"""

    @on_each_version()
    def test_the_model_reads_the_error_again_and_the_person_a_line(self, version: str) -> None:
        with Home() as home, ScriptedApi([*[read(home.project / "a.txt")] * 2, Reply([text("done")])]) as api:
            home.install()
            result = one_shot(version, home, api, "read it")
            self.assertEqual((result.exit_code, result.final().get("result")), (0, "done"), result.stderr)
            first, second = last_results(api.main_requests())
            self.assertEqual((first.is_error, words_of(first)), (True, not_there(home)))
            self.assertEqual((second.is_error, words_of(second)), (True, denial("Read", not_there(home))))
            self.assertEqual(home.record(), ["deny Read 1"])
            if has(version, ROWS):
                self.assertIn(f"PreToolUse:Read says: {LINE}", notices(result.rows))

    @on_each_version()
    def test_the_person_at_the_terminal_sees_a_line(self, version: str) -> None:
        with Home() as home, ScriptedApi([*[read(home.project / "a.txt")] * 2, Reply([text("all done")])]) as api:
            home.install()
            with Terminal(version, home, api) as terminal:
                terminal.wait_ready()
                terminal.submit("read it")
                terminal.wait_for("all done")
                self.assertIn(f"PreToolUse:Read says: {LINE}", terminal.unwrapped())

    @on_each_version()
    def test_every_further_repeat_is_denied_too(self, version: str) -> None:
        with Home() as home:
            home.install()
            calls = HAND_BACK_AFTER if has(version, BATCH) else 10  # without that event a turn can't be ended
            first, *others = self.results_of(version, home, *[read(home.project / "a.txt")] * calls)
            self.assert_ran(first)
            for other in others:
                self.assert_denied(other)

    @on_each_version()
    def test_another_input_runs(self, version: str) -> None:
        with Home() as home:
            home.install()
            self.assert_ran(*self.results_of(version, home, read(home.project / "a"), read(home.project / "b")))
            self.assertEqual(home.record(), [])

    @on_each_version()
    def test_a_call_that_the_client_denied_itself_is_none_of_ours(self, version: str) -> None:
        with Home() as home:
            home.write_settings(permissions={"deny": ["Read(//**/secret.txt)"]})
            (home.project / "secret.txt").write_text("secret", encoding="utf-8")
            home.install()
            results = self.results_of(version, home, *[read(home.project / "secret.txt")] * 2)
            self.assertEqual([result.is_error for result in results], [True, True])
            self.assert_ran(*results)


class McpTools(CoachTest):
    """An MCP tool's failing call is not run again"""

    ARGUMENTS = ('{"word": "f", "list": [1, 2], "number": 1}', '{"number": 1, "list": [1, 2], "word": "f"}')

    def calls(self, *arguments: str) -> list[Reply]:
        """Calls of the tool that always fails."""
        return [Reply([raw_tool_use("mcp__probe__fails", words)]) for words in arguments]

    @on_each_version()
    def test_the_order_of_keys_does_not_matter(self, version: str) -> None:
        with Home() as home:
            home.add_mcp_server()
            home.install()
            first, second = self.results_of(version, home, *self.calls(*self.ARGUMENTS))
            self.assertTrue(first.text.startswith("failed: f"), first.text)
            self.assert_denied(second, "mcp__probe__fails")
            self.assertIn("Its error was:\nfailed: f", second.text)

    @on_each_version()
    def test_the_order_in_a_list_does(self, version: str) -> None:
        with Home() as home:
            home.add_mcp_server()
            home.install()
            calls = self.calls('{"word": "f", "list": [1, 2]}', '{"word": "f", "list": [2, 1]}')
            self.assert_ran(*self.results_of(version, home, *calls))

    @on_each_version()
    def test_a_success_of_the_same_server_lets_it_run_again(self, version: str) -> None:
        with Home() as home:
            home.add_mcp_server()
            home.install()
            fails = self.calls(self.ARGUMENTS[0])
            works = Reply([tool_use("mcp__probe__works", {"word": "w"})])
            self.assert_ran(*self.results_of(version, home, *fails, works, *fails))


class LetsRunAgain(CoachTest):
    """A failed call runs again after a change"""

    @on_each_version()
    def test_a_file_written_in_between_lets_it_run(self, version: str) -> None:
        with Home() as home:
            home.install()
            missing, other = home.project / "a.txt", home.project / "b.txt"
            write = Reply([tool_use("Write", {"file_path": str(other), "content": "b"})])
            first, _, second = self.results_of(version, home, read(missing), write, read(missing))
            self.assertEqual([words_of(first), words_of(second)], [not_there(home)] * 2)
            self.assertEqual(home.record(), [])

    @on_each_version()
    def test_a_command_in_between_lets_it_run(self, version: str) -> None:
        with Home() as home:
            home.install()
            missing = home.project / "a.txt"
            first, _, second = self.results_of(version, home, read(missing), bash("true"), read(missing))
            self.assertEqual([words_of(first), words_of(second)], [not_there(home)] * 2)

    @on_each_version()
    def test_a_read_that_succeeds_in_between_does_not(self, version: str) -> None:
        with Home() as home:
            home.install()
            missing, there = home.project / "a.txt", home.project / "b.txt"
            there.write_text("b", encoding="utf-8")
            self.assert_denied(self.results_of(version, home, read(missing), read(there), read(missing))[-1])

    @on_each_version()
    def test_a_file_that_another_process_makes_lets_it_run(self, version: str) -> None:
        with Home() as home:
            home.install()
            missing = home.project / "a.txt"

            def made_meanwhile(_: Request) -> Reply:
                missing.write_text("there now", encoding="utf-8")
                return read(missing)

            first, second = self.results_of(version, home, read(missing), made_meanwhile)
            self.assertEqual((first.is_error, second.is_error), (True, False))
            self.assertIn("there now", second.text)

    @on_each_version()
    def test_a_new_prompt_lets_it_run(self, version: str) -> None:
        with Home() as home, ScriptedApi() as api:
            home.install()
            missing = read(home.project / "a.txt")
            api.add(
                missing, Reply([text("one")]), missing, Reply([text("two")]), missing, missing, Reply([text("three")])
            )
            with Session(version, home, api) as session:
                for count, words in enumerate(("one", "two", "three"), 1):
                    session.send("read it")
                    self.assertEqual(session.wait_for_results(count)["result"], words)
            *ran, denied = last_results(api.main_requests())
            self.assert_ran(*ran)
            self.assert_denied(denied)

    @on_each_version()
    def test_a_failed_command_runs_again(self, version: str) -> None:
        with Home() as home:
            home.install()
            results = self.results_of(version, home, *[bash("echo ran >> count.txt; exit 1")] * 2)
            self.assertEqual([result.is_error for result in results], [True, True])
            self.assertEqual((home.project / "count.txt").read_text(encoding="utf-8"), "ran\nran\n")
            self.assertEqual(home.record(), [])


class Batches(CoachTest):
    """Calls of one message judge nobody in it"""

    @on_each_version()
    def test_two_equal_calls_in_one_message_both_run_and_a_third_after_them_does_not(self, version: str) -> None:
        fails = tool_use("mcp__probe__fails", {"word": "f"})  # of a kind that runs one after the other
        twin = tool_use("mcp__probe__fails", {"word": "f"})
        with Home() as home:
            home.add_mcp_server()
            home.install()
            again = Reply([tool_use("mcp__probe__fails", {"word": "f"})])
            first, second, third = self.results_of(version, home, Reply([fails, twin]), again)
            self.assert_ran(first, second)
            self.assert_denied(third, "mcp__probe__fails")
            self.assertEqual(home.record(), ["deny mcp__probe__fails 1"])

    @on_each_version()
    def test_equal_calls_of_one_message_all_run_however_long_that_takes(self, version: str) -> None:
        """The client writes the results of a message's first calls while the others still wait."""
        several = [tool_use("mcp__probe__fails", {"word": "f"}) for _ in range(7)]
        message = Reply([*several[:2], *bash("sleep 1; false").blocks, *several[2:]])
        with Home() as home:
            home.add_mcp_server()
            home.install()
            *results, last = self.results_of(version, home, message, Reply(several[:1]))
            self.assert_ran(*results)
            self.assert_denied(last, "mcp__probe__fails")
            self.assertEqual(home.record(), ["deny mcp__probe__fails 1"])

    @on_each_version()
    def test_two_equal_calls_at_the_same_time_both_run_and_a_third_after_them_does_not(self, version: str) -> None:
        with Home() as home:
            home.install()
            missing = home.project / "a.txt"
            both = Reply([*read(missing).blocks, *read(missing).blocks])
            first, second, third = self.results_of(version, home, both, read(missing))
            self.assert_ran(first, second)
            self.assert_denied(third)


class Subagents(CoachTest):
    """A subagent's failures are its own"""

    @on_each_version()
    def test_a_subagent_may_make_the_call_that_failed_for_its_caller_but_not_twice(self, version: str) -> None:
        with Home() as home:
            home.install()
            missing = read(home.project / "a.txt")
            subagents = {"sub task": [missing, missing, Reply([text("sub report")])]}
            with ScriptedApi([missing, Reply([delegate("sub task")])], subagents) as api:
                one_shot(version, home, api, "go")
                first, second = last_results(api.subagent_requests("sub task"))
            self.assertEqual(words_of(first), not_there(home))
            self.assertEqual(words_of(second), denial("Read", not_there(home)))
            self.assertEqual(home.record(), ["deny Read 1"])


class Refused(CoachTest):
    """A call refused twice brings a note"""

    @on_each_version(needs=BATCH)
    def test_the_first_refusal_brings_no_note_and_the_second_does(self, version: str) -> None:
        with Home() as home:
            home.install()
            path = home.project / "a.txt"
            path.write_text("what is there\n", encoding="utf-8")
            edit = Reply([tool_use("Edit", {"file_path": str(path), "old_string": "what is not", "new_string": "b"})])
            with ScriptedApi([read(path), edit, edit, Reply([text("done")])]) as api:
                result = one_shot(version, home, api, "edit it")
                _, _, once, twice = api.main_requests()
            note = "tool-coach: this exact Edit call was refused before it ran, 2 times in this turn. Its error was:\n"
            self.assertNotIn("tool-coach: ", once.told())
            self.assertIn(note + "String to replace not found in file.", twice.told())
            self.assertIn("Read the error, change the input, and call again.", twice.told())
            self.assertEqual(home.record(), ["note Edit 2"])
            if has(version, ROWS):
                line = "PostToolBatch says: tool-coach: Edit call repeated after it was refused"
                self.assertIn(line, notices(result.rows))

    @on_each_version(needs=BATCH)
    def test_an_input_that_is_no_object_brings_one_too(self, version: str) -> None:
        with Home() as home:
            home.install()
            wrong = Reply([raw_tool_use("Read", '"a.txt"')])
            with ScriptedApi([wrong, wrong, Reply([text("done")])]) as api:
                one_shot(version, home, api, "read it")
                _, once, twice = api.main_requests()
            self.assertNotIn("tool-coach: ", once.told())
            self.assertIn("tool-coach: this exact Read call was refused before it ran, 2 times", twice.told())

    @on_each_version(needs=BATCH)
    def test_a_change_in_between_does_not_wipe_the_refusals(self, version: str) -> None:
        with Home() as home:
            home.install()
            wrong = Reply([tool_use("Read", {"path": "a.txt"})])
            with ScriptedApi([wrong, bash("true"), wrong, Reply([text("done")])]) as api:
                one_shot(version, home, api, "read it")
                self.assertIn("this exact Read call was refused before it ran, 2 times", api.main_requests()[3].told())

    @on_each_version(needs=BATCH)
    def test_the_person_at_the_terminal_sees_a_line(self, version: str) -> None:
        wrong = Reply([tool_use("Read", {"path": "a.txt"})])
        with Home() as home, ScriptedApi([wrong, wrong, Reply([text("all done")])]) as api:
            home.install()
            with Terminal(version, home, api) as terminal:
                terminal.wait_ready()
                terminal.submit("read it")
                terminal.wait_for("all done")
                line = "PostToolBatch says: tool-coach: Read call repeated after it was refused"
                self.assertIn(line, terminal.unwrapped())


class ThirdFailure(CoachTest):
    """The third failure in a turn brings a note"""

    @on_each_version()
    def test_a_call_that_fails_a_third_time_although_something_changed_brings_a_note(self, version: str) -> None:
        with Home() as home:
            home.install()
            missing = read(home.project / "a.txt")
            steps = [missing, bash("echo 1"), missing, bash("echo 2"), missing]
            with ScriptedApi([*steps, Reply([text("done")])]) as api:
                one_shot(version, home, api, "read it")
                requests = api.main_requests()
            self.assert_ran(*last_results(requests))
            note = "tool-coach: this exact Read call has failed 3 times in this turn. Its error was:\n" + not_there(
                home
            )
            self.assertFalse(any("tool-coach: " in request.told() for request in requests[:-1]))
            self.assertIn(note, requests[-1].told())


class HandBack(CoachTest):
    """An endless repeat ends the turn"""

    @on_each_version(needs=BATCH)
    def test_a_failing_call_for_ever_ends_the_turn(self, version: str) -> None:
        with Home() as home, ScriptedApi(lambda _: read(home.project / "a.txt")) as api:
            home.install()
            result = one_shot(version, home, api, "read it")
            self.assertEqual(result.exit_code, 0, result.stderr)
            self.assertEqual(len(api.main_requests()), 1 + HAND_BACK_AFTER)
            self.assertEqual(home.record(), [*(f"deny Read {n}" for n in (1, 2, 3, 4)), "hand-back Read 5"])

    @on_each_version(needs=BATCH)
    def test_a_refused_call_for_ever_ends_the_turn(self, version: str) -> None:
        wrong = Reply([tool_use("Read", {"path": "a.txt"})])
        with Home() as home, ScriptedApi(lambda _: wrong) as api:
            home.install()
            result = one_shot(version, home, api, "read it")
            self.assertEqual(result.exit_code, 0, result.stderr)
            self.assertEqual(len(api.main_requests()), HAND_BACK_AFTER)
            self.assertEqual(home.record(), [*(f"note Read {n}" for n in (2, 3, 4)), "hand-back Read 5"])

    @on_each_version(needs=BATCH)
    def test_the_person_at_the_terminal_reads_why_and_may_go_on(self, version: str) -> None:
        def reply(request: Request) -> Reply:
            return Reply([text("as you say")]) if "do else" in request.told() else read(home.project / "a.txt")

        with Home() as home, ScriptedApi(reply) as api:
            home.install()
            with Terminal(version, home, api) as terminal:
                terminal.wait_ready()
                terminal.submit("read it")
                terminal.wait_for(HAND_BACK.format(tool="Read"))
                terminal.submit("do else")
                terminal.wait_for("as you say")

    @on_each_version(needs=BATCH)
    def test_the_turn_after_it_begins_anew(self, version: str) -> None:
        with Home() as home, ScriptedApi(lambda _: read(home.project / "a.txt")) as api:
            home.install()
            with Session(version, home, api) as session:
                for count in (1, 2):
                    session.send("read it")
                    session.wait_for_results(count)
                    self.assertEqual(len(api.main_requests()), count * (1 + HAND_BACK_AFTER))

    @on_each_version(needs=BATCH)
    def test_a_subagents_endless_repeat_ends_the_subagent_and_not_its_caller(self, version: str) -> None:
        with Home() as home:
            home.install()
            (home.project / "b.txt").write_text("b", encoding="utf-8")
            endless = {"sub task": lambda _: read(home.project / "a.txt")}
            with ScriptedApi([Reply([delegate("sub task")])], endless) as api:

                def read_after_it(_: Request) -> Reply:
                    wait_until(lambda: len(api.subagent_requests("sub task")) > HAND_BACK_AFTER, 60, "end of subagent")
                    wait_until(lambda: "hand-back Read 5" in home.record(), 60, "hand-back", home.record)
                    return read(home.project / "b.txt")

                api.add(read_after_it)
                result = one_shot(version, home, api, "go")
                self.assertEqual(len(api.subagent_requests("sub task")), 1 + HAND_BACK_AFTER)
                self.assertEqual((result.exit_code, result.final().get("result")), (0, "done"), result.stderr)
            self.assertEqual(home.record(), [*(f"deny Read {n}" for n in (1, 2, 3, 4)), "hand-back Read 5"])


class Switch(CoachTest):
    """/tool-coach on and off"""

    def repeated(self, terminal: Terminal, api: ScriptedApi, missing: Callable[[], Reply], mark: str) -> ToolResult:
        """Have a failing call made twice in a new turn, and return the second's result."""
        api.add(missing(), missing(), Reply([text(mark)]))
        terminal.submit(f"read it for {mark}")
        terminal.wait_for(f"● {mark}")
        return last_results(api.main_requests())[-1]

    @on_each_version(needs=COMMAND)
    def test_the_command_switches_without_a_request(self, version: str) -> None:
        with Home() as home, ScriptedApi() as api:
            home.install()
            with Terminal(version, home, api) as terminal:

                def missing() -> Reply:
                    return read(home.project / "a.txt")

                terminal.wait_ready()
                self.assert_denied(self.repeated(terminal, api, missing, "first"))
                made = len(api.requests)
                terminal.submit("/tool-coach off")
                terminal.wait_for("tool-coach is off")
                self.assertEqual(len(api.requests), made)
                self.assert_ran(self.repeated(terminal, api, missing, "second"))
                made = len(api.requests)
                terminal.submit("/tool-coach on")
                terminal.wait_for("tool-coach is on")
                self.assertEqual(len(api.requests), made)
                self.assert_denied(self.repeated(terminal, api, missing, "third"))
                self.assertFalse(any("/tool-coach" in words for words in texts_of(api.main_requests()[-1])))


class SwitchByScript(CoachTest):
    """The coach is switched from a shell"""

    @on_each_version()
    def test_the_script_itself_switches_too(self, version: str) -> None:
        with Home() as home:
            home.install()
            script, missing = str(home.config / "hooks" / "tool_coach.py"), read(home.project / "a.txt")
            home.run("python3", script, "off")
            self.assert_ran(*self.results_of(version, home, missing, missing))
            home.run("python3", script, "on")
            self.assert_denied(self.results_of(version, home, missing, missing)[1])


class Traces(CoachTest):
    """The coach leaves nothing in /tmp, nor in the context"""

    @on_each_version()
    def test_the_command_is_not_offered_to_the_model(self, version: str) -> None:
        with Home() as home, ScriptedApi() as api:
            home.install()
            one_shot(version, home, api, "hello")
            self.assertFalse("tool-coach" in json.dumps(api.main_requests()[0].body), "the model is told of it")

    @on_each_version()
    def test_the_state_is_removed_when_the_session_ends(self, version: str) -> None:
        with Home() as home, ScriptedApi([read(home.project / "a.txt"), Reply([text("done")])]) as api:
            home.install()
            with Session(version, home, api) as session:
                session.send("read it")
                session.wait_for_results(1)
                self.assertEqual(len(state_files(session.session_id)), 1)
                session.close()
                wait_until(lambda: not state_files(session.session_id), 60, "removal of the state")


if __name__ == "__main__":
    unittest.main()

"""The harness itself: what it scripts is what the client does, on each selected version."""

from __future__ import annotations

import unittest

from harness import (
    GIVE_UP_REPLIES,
    NEWEST,
    Home,
    Reply,
    ScriptedApi,
    Session,
    Terminal,
    give_up,
    one_shot,
    running_in,
    selected_versions,
    text,
    texts_of,
    tool_use,
    wait_until,
)


class OneShot(unittest.TestCase):
    def test_a_plain_run_answers_the_prompt_and_exits_with_zero(self) -> None:
        for version in selected_versions():
            with self.subTest(version=version), ScriptedApi([Reply([text("hello back")])]) as api, Home() as home:
                result = one_shot(version, home, api, "hello there")
                self.assertEqual((result.exit_code, result.final().get("result")), (0, "hello back"), result.stderr)
                self.assertEqual(len(api.main_requests()), 1)
                self.assertTrue(any("hello there" in words for words in texts_of(api.main_requests()[0])))
                self.assertTrue(home.transcript(result.session_id))
                self.assertTrue(result.debug)

    def test_a_stop_hook_sees_the_last_message_and_its_block_reaches_the_model(self) -> None:
        script = [Reply([text("first")]), Reply([text("second")])]
        for version in selected_versions():
            with self.subTest(version=version), ScriptedApi(script) as api, Home() as home:
                home.dump_hook("Stop")
                home.answer("Stop", {"decision": "block", "reason": "say it again"}, nth=1)
                result = one_shot(version, home, api, "hello")
                self.assertEqual((result.exit_code, result.final().get("result")), (0, "second"), result.stderr)
                seen = [row["input"]["last_assistant_message"] for row in home.dumped("Stop")]
                self.assertEqual(seen, ["first", "second"])
                self.assertEqual([row["input"]["session_id"] for row in home.dumped()], [result.session_id] * 2)
                self.assertIn("say it again", "\n".join(api.main_requests()[1].last_texts()))

    def test_a_tool_call_runs_and_the_model_reads_its_result(self) -> None:
        script = [Reply([tool_use("Bash", {"command": "echo from-bash", "description": "say"})]), Reply([text("ok")])]
        for version in selected_versions():
            with self.subTest(version=version), ScriptedApi(script) as api, Home() as home:
                one_shot(version, home, api, "run it")
                [result] = api.main_requests()[1].tool_results()
                self.assertEqual((result.is_error, result.text.strip()), (False, "from-bash"))

    def test_a_subagent_has_a_script_of_its_own(self) -> None:
        call = tool_use("Agent", {"description": "d", "prompt": "sub task", "subagent_type": "general-purpose"})
        subagents = {"sub task": [Reply([text("sub answer")])]}
        for version in selected_versions():
            with self.subTest(version=version), ScriptedApi([Reply([call])], subagents) as api, Home() as home:
                one_shot(version, home, api, "delegate")
                self.assertEqual(len(api.subagent_requests("sub task")), 1)

    def test_mcp_tools_work_and_fail(self) -> None:
        calls = [tool_use("mcp__probe__works", {"word": "w"}), tool_use("mcp__probe__fails", {"word": "f"})]
        for version in selected_versions():
            with self.subTest(version=version), ScriptedApi([Reply(calls)]) as api, Home() as home:
                home.add_mcp_server()
                one_shot(version, home, api, "call them")
                results = api.main_requests()[1].tool_results()
                self.assertEqual([result.is_error for result in results], [False, True])
                self.assertEqual(results[0].text, "w")
                self.assertTrue(results[1].text.startswith("failed: f"))  # 2.1.332 adds advice about the schema


class OpenSession(unittest.TestCase):
    def test_two_turns_in_one_session(self) -> None:
        for version in selected_versions():
            with self.subTest(version=version), ScriptedApi() as api, Home() as home:
                api.add(Reply([text("one")]), Reply([text("two")]))
                with Session(version, home, api) as session:
                    session.send("first")
                    self.assertEqual(session.wait_for_results(1)["result"], "one")
                    session.send("second")
                    self.assertEqual(session.wait_for_results(2)["result"], "two")
                    self.assertEqual(session.close(), 0)

    def test_the_give_up_reply_ends_in_stop_failure_or_in_the_oldest_client_in_stop(self) -> None:
        for version in selected_versions():
            with self.subTest(version=version), Home() as home:
                home.dump_hook("Stop")
                home.dump_hook("StopFailure")
                script = [give_up("half a call")] * GIVE_UP_REPLIES
                with ScriptedApi(script) as api, Session(version, home, api) as session:
                    session.send("call a tool")
                    session.wait(lambda _: home.dumped(), what="hook run")
                    expected = "Stop" if version == "2.1.104" else "StopFailure"
                    self.assertEqual([row["label"] for row in home.dumped()], [expected])

    def test_leaving_a_home_ends_all_that_runs_in_it(self) -> None:
        with Home() as home:
            home.hook("Stop", "setsid sleep 300 & sleep 300")
            with ScriptedApi() as api, Session(NEWEST, home, api) as session:
                session.send("hello")
                wait_until(lambda: len(running_in(home)) >= 3, 30, "client and two sleeps", lambda: running_in(home))
        self.assertEqual((running_in(home), home.path.exists()), ([], False))


class TerminalUi(unittest.TestCase):
    def test_a_typed_prompt_is_answered_on_the_screen(self) -> None:
        for version in selected_versions():
            api, home = ScriptedApi([Reply([text("hello back")])]), Home()
            with self.subTest(version=version), api, home, Terminal(version, home, api) as terminal:
                terminal.wait_ready()
                terminal.submit("hello there")
                terminal.wait_for("hello back")
                self.assertEqual(terminal.settings_warning, "")

    def test_a_settings_warning_at_the_start_is_confirmed(self) -> None:
        api, home = ScriptedApi([Reply([text("hello back")])]), Home()
        home.dump_hook("NoSuchEvent")
        with api, home, Terminal(NEWEST, home, api) as terminal:
            terminal.wait_ready()
            self.assertIn("NoSuchEvent", terminal.settings_warning)
            terminal.submit("hello there")
            terminal.wait_for("hello back")


if __name__ == "__main__":
    unittest.main()

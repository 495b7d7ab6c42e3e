"""Installing and uninstalling, and the plugin, as the real client sees them: each class is one capability."""

from __future__ import annotations

import json
import os
import unittest
from pathlib import Path

from harness import (
    REPO,
    Home,
    Reply,
    ScriptedApi,
    Terminal,
    client_command,
    leaked_call,
    on_each_version,
    one_shot,
    state_files,
    text,
    tool_use,
)

LEAK = leaked_call("Read", file_path="a.txt")
OUR_FILES = {
    "hooks/recover_malformed_toolcall.py",
    "hooks/tool_coach.py",
    "hooks/prompts.txt",
    "commands/tool-coach.md",
    "settings.json.before-toolcall-hooks",
    "toolcall-hooks.log",
    "tool-coach.off",
}
OUR_NAMES = ("recover_malformed", "tool_coach", "tool-coach", "toolcall-hooks")
RECOVERED_AND_COACHED = ["block Read 1", "deny Read 1", "recovered - 1"]
PLUGIN = REPO / ".claude-plugin"


def tree_of(home: Home) -> dict[str, tuple[int, bytes]]:
    """{path in the home: (mode, contents)} of every file and folder in it; a folder has no contents."""
    found = {}
    for folder, names, files in os.walk(home.path):
        for name in [*names, *files]:
            path = Path(folder, name)
            contents = path.read_bytes() if path.is_file() else b""
            found[str(path.relative_to(home.path))] = (path.lstat().st_mode, contents)
    return found


class InstallTest(unittest.TestCase):
    """What the tests share."""

    def leak_and_repeat(self, version: str, home: Home) -> int:
        """Run a model that leaks a call and, sent back, makes a failing one twice; return how many requests it made."""
        missing = Reply([tool_use("Read", {"file_path": str(home.project / "missing.txt")})])
        with ScriptedApi([Reply([text(f"I look.\n\n{LEAK}")]), missing, missing, Reply([text("done")])]) as api:
            result = one_shot(version, home, api, "read it")
            self.assertEqual(result.exit_code, 0, result.stderr)
            self.assertEqual(state_files(result.session_id)[1:], [])  # the burst's state at most
            return len(api.main_requests())

    def assert_works(self, version: str, home: Home) -> None:
        """Both hooks do their work in this home, each once."""
        self.assertEqual(self.leak_and_repeat(version, home), 4)
        self.assertEqual(home.record(), RECOVERED_AND_COACHED)

    def assert_does_nothing(self, version: str, home: Home) -> None:
        """Neither hook does anything in this home."""
        self.assertEqual(self.leak_and_repeat(version, home), 1)
        missing = Reply([tool_use("Read", {"file_path": str(home.project / "missing.txt")})])
        with ScriptedApi([missing, missing, Reply([text("done")])]) as api:
            result = one_shot(version, home, api, "read it")
            self.assertEqual(len(api.main_requests()), 3)
            for read in api.main_requests()[-1].tool_results():
                self.assertTrue(read.text.startswith("File does not exist."), read.text)
            self.assertEqual((home.record(), state_files(result.session_id)), ([], []))


class Installed(InstallTest):
    """A home after install recovers and coaches"""

    @on_each_version()
    def test_an_installed_home_recovers_and_coaches_and_its_status_is_well(self, version: str) -> None:
        with Home() as home:
            home.install()
            self.assert_works(version, home)
            self.assertIn("a leaked call is sent back", home.maintain("status"))

    @on_each_version()
    def test_a_second_install_changes_nothing(self, version: str) -> None:
        with Home() as home:
            home.install()
            before = tree_of(home)
            home.install()
            self.assertEqual(tree_of(home), before)
            self.assert_works(version, home)

    @on_each_version()
    def test_a_home_with_spaces_and_a_dollar_sign_in_its_path_works(self, version: str) -> None:
        with Home(name="a home's $HOME `of` (mine) & more.") as home:
            home.install()
            self.assert_works(version, home)
            self.assertIn("a leaked call is sent back", home.maintain("status"))

    @on_each_version()
    def test_another_config_folder_is_honoured(self, version: str) -> None:
        with Home(config_name="my config") as home:
            home.install()
            self.assert_works(version, home)
            self.assertFalse((home.path / ".claude").exists())

    @on_each_version()
    def test_a_client_on_the_path_that_knows_fewer_events_does_not_complain_at_its_start(self, version: str) -> None:
        with Home() as home:
            home.add_client_to_path(version)
            home.install()
            with ScriptedApi([Reply([text("hello back")])]) as api, Terminal(version, home, api) as terminal:
                terminal.wait_ready()
                terminal.submit("hello there")
                terminal.wait_for("hello back")
                self.assertEqual(terminal.settings_warning, "")
            self.assert_works(version, home)
            self.assertIn("a leaked call is sent back", home.maintain("status"))

    @on_each_version()
    def test_hooks_that_were_there_still_run(self, version: str) -> None:
        with Home() as home:
            home.dump_hook("Stop")
            home.dump_hook("UserPromptSubmit")
            home.install()
            self.assert_works(version, home)
            self.assertEqual([row["label"] for row in home.dumped()], ["UserPromptSubmit", "Stop", "Stop"])


class Uninstalled(InstallTest):
    """Nothing is left after uninstall"""

    @on_each_version(workers=1)  # it removes the state of all sessions in /tmp
    def test_neither_hook_works_any_more_and_nothing_of_ours_is_left(self, version: str) -> None:
        with Home() as home:
            home.dump_hook("SessionEnd")
            settings = (home.config / "settings.json").read_bytes()
            home.install()
            self.assert_works(version, home)
            home.run("python3", str(home.config / "hooks" / "tool_coach.py"), "off")
            used = tree_of(home)
            home.maintain("uninstall")
            left = tree_of(home)
            changed = {path for path in left if left[path] != used.get(path)}
            self.assertEqual(changed, {".claude/settings.json"})
            self.assertEqual(left[".claude/settings.json"][1], settings)
            folders = {".claude/hooks", ".claude/commands"}
            self.assertEqual(used.keys() - left.keys(), folders | {f".claude/{path}" for path in OUR_FILES})
            self.assertEqual([path for path in left if any(name in path for name in OUR_NAMES)], [])
            self.assertEqual([path for session_id in home.session_ids for path in state_files(session_id)], [])
            self.assert_does_nothing(version, home)

    @on_each_version(workers=1)
    def test_a_home_that_no_client_ran_in_is_left_as_it_was(self, version: str) -> None:
        with Home() as home:
            before = tree_of(home)
            home.install()
            home.maintain("uninstall")
            self.assertEqual(tree_of(home), before)
            self.assert_does_nothing(version, home)


class Plugin(InstallTest):
    """A home with the plugin recovers and coaches"""

    def install_plugin(self, version: str, home: Home) -> None:
        """Install the plugin from this folder, as a person would."""
        market = json.loads((PLUGIN / "marketplace.json").read_text(encoding="utf-8"))
        [plugin] = market["plugins"]
        client = [*client_command(version), "plugin"]
        home.run(*client, "marketplace", "add", str(REPO))
        home.run(*client, "install", f"{plugin['name']}@{market['name']}")

    @on_each_version()
    def test_a_home_with_the_plugin_recovers_and_coaches(self, version: str) -> None:
        with Home() as home:
            self.install_plugin(version, home)
            self.assert_works(version, home)

    @on_each_version()
    def test_a_home_with_the_plugin_and_the_hooks_is_told_so_by_status(self, version: str) -> None:
        with Home() as home:
            self.install_plugin(version, home)
            self.assertIn("a leaked call is sent back", home.maintain("status"))
            home.install()
            with self.assertRaisesRegex(RuntimeError, "(?i)registered (twice|2 times)"):
                home.maintain("status")

    @on_each_version(needs="UserPromptExpansion")
    def test_the_plugins_command_switches_the_coach(self, version: str) -> None:
        with Home() as home:
            self.install_plugin(version, home)
            with ScriptedApi() as api, Terminal(version, home, api) as terminal:
                terminal.wait_ready()
                terminal.submit("/toolcall-hooks:tool-coach off")
                terminal.wait_for("tool-coach is off")
                self.assertEqual(api.main_requests(), [])
                self.assertTrue((home.config / "tool-coach.off").exists())

    @on_each_version()
    def test_the_clients_own_validator_has_no_complaint(self, version: str) -> None:
        with Home() as home:
            said = home.run(*client_command(version), "plugin", "validate", str(REPO))
            self.assertIn("Validation passed", said)


if __name__ == "__main__":
    unittest.main()

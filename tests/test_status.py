"""status: whatever is wrong is found and named, and the proof runs what is registered, as it is registered."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable, NamedTuple, cast
from unittest import mock

import support
from test_install import POSIX, SCRIPTS, MaintenanceTest, Settings, make_source, ours_in, tree

RECOVER, COACH = SCRIPTS


class Report(NamedTuple):
    """What status found: its exit code, what it said, the record, what is wrong, and all that in one text."""

    code: int
    said: list[str]
    record: dict[str, int]
    wrong: list[str]
    text: str


class StatusTest(MaintenanceTest):
    """A home with both hooks installed."""

    def setUp(self) -> None:
        super().setUp()
        self.succeed("install")

    def status(self, *argv: str) -> Report:
        """Run status; check that its lines name each fault as such, and that the exit code tells if there is any."""
        done = self.run_command("status", "--json", *argv)
        self.assertEqual(done.err, "")
        found = json.loads(done.out)
        self.assertEqual(sorted(found), ["record", "status", "wrong"])
        self.assertEqual(done.code, 1 if found["wrong"] else 0, found)
        self.assertEqual(len(found["wrong"]), len(set(found["wrong"])), found["wrong"])
        self.assertEqual(found["wrong"], [line for line in found["status"] if "WRONG" in line])
        wrong = [line.partition("WRONG: ")[2] for line in found["wrong"]]
        return Report(done.code, found["status"], found["record"], wrong, done.out)

    def faults(self, *argv: str) -> str:
        """Return what is wrong besides the proof, which is left out for its time; AssertionError if nothing is."""
        with mock.patch.object(self.module, "samples", lambda script: iter(())):
            report = self.status(*argv)
        self.assertTrue(report.wrong)
        return "\n".join(report.wrong)

    def quick(self, *argv: str) -> Report:
        """Return the report without the proof, of an installation that must be well."""
        with mock.patch.object(self.module, "samples", lambda script: iter(())):
            report = self.status(*argv)
        self.assertEqual(report.wrong, [])
        return report

    def change(self, edit: Callable[[Settings], object], path: Path | None = None) -> None:
        """Edit the settings."""
        path = path or self.settings
        settings = self.read(path) if path.exists() else {}
        edit(settings)
        self.write(path, json.dumps(settings))

    def edit_handlers(self, script: str, edit: Callable[[str, Settings, Settings], object]) -> None:
        """Edit each registered (event, group, handler) of a script."""

        def each(settings: Settings) -> None:
            for event, group, handler in ours_in(settings):
                if script in handler["command"]:
                    edit(event, group, handler)

        self.change(each)

    def replace_script(self, script: str, body: str) -> None:
        """Put another program in the place of an installed script."""
        self.write(self.config / "hooks" / script, body)


class WhenAllIsWell(StatusTest):
    def test_everything_is_told_and_proved(self) -> None:
        done = self.run_process("status")
        self.assertEqual((done.code, done.err), (0, ""), done.out)
        self.assertTrue(done.out.endswith("all is well\n"), done.out)
        self.assertIn(f"Python {sys.version.split()[0]}", done.out)
        for script in SCRIPTS:
            file = self.config / "hooks" / script
            self.assertIn(str(file), done.out)
            self.assertIn(f"{script} {self.module.__version__}", done.out)
            self.assertIn(hashlib.sha256(file.read_bytes()).hexdigest()[:12], done.out)
            for event in self.module.EVENTS[script]:
                self.assertRegex(done.out, rf"registered for .*\b{event}\b.* in {re.escape(str(self.settings))}")
        results = re.findall(r"(?m)^  ok +(.+)$", done.out)
        self.assertEqual(len(set(results)), 10)
        self.assertNotIn("WRONG", done.out)

    def test_the_samples_are_some_that_must_act_and_some_that_must_stay_quiet(self) -> None:
        for script in SCRIPTS:
            outcomes = [expected for _, expected, *_ in self.module.samples(script)]
            self.assertGreaterEqual(len(set(outcomes) - {"quiet"}), 2)
            self.assertGreaterEqual(outcomes.count("quiet"), 3)

    def test_status_leaves_no_trace(self) -> None:
        temporary = self.project / "tmp"
        temporary.mkdir()
        self.write(self.config / "toolcall-hooks.log", "the record\n")
        before = tree(self.folder, times=True)
        with mock.patch.object(tempfile, "tempdir", str(temporary)):
            self.assertEqual(self.status().wrong, [])
        after = tree(self.folder, times=True)
        for found in (before, after):
            found.pop(str(temporary.relative_to(self.folder)))
            found.pop("state")
        self.assertEqual(after, before)
        self.assertEqual(list(self.state.iterdir()), [])

    def test_a_coach_that_is_switched_off_is_said_and_is_proved_all_the_same(self) -> None:
        self.write(self.config / "tool-coach.off", "")
        first = next(iter(self.module.samples(COACH)))
        self.assertEqual(first[1], "deny")
        with mock.patch.object(self.module, "samples", lambda script: iter([first])):
            report = self.status("--only", COACH)
        self.assertEqual(report.wrong, [])
        self.assertIn("the coach is switched off", report.said)
        (self.config / "tool-coach.off").unlink()
        self.assertNotIn("off", "\n".join(self.quick().said))

    def test_edited_constants_are_no_fault(self) -> None:
        for script, pattern, edit in (
            (RECOVER, r"(?m)^MAX_RETRIES = 10", "MAX_RETRIES = 3"),
            (COACH, r"(?ms)^PASSING = \(.*?^\)", 'PASSING = (\n    "mine",\n\n# mine\n)'),
        ):
            path = self.config / "hooks" / script
            text, count = re.subn(pattern, edit, path.read_text("utf-8"), count=1)
            self.assertEqual(count, 1)
            path.write_text(text, "utf-8")
        self.quick()

    def test_only_one_hook_is_looked_at_when_asked(self) -> None:
        self.edit_handlers(RECOVER, lambda event, group, handler: group.update(matcher="x"))
        self.assertNotIn(RECOVER, "\n".join(self.quick("--only", COACH).said))
        self.assertIn(RECOVER, self.faults("--only", RECOVER))

    def test_the_settings_of_a_project_are_looked_at_when_asked(self) -> None:
        self.succeed("uninstall")
        project = self.home / "elsewhere" / "settings.json"
        self.succeed("install", "--settings", str(project))
        self.assertIn(f"in {project}", self.quick("--settings", str(project)).text)
        self.assertIn("no hook is registered", self.faults())

    def test_the_users_own_commands_are_tried_beside_another_settings_file(self) -> None:
        said = self.status("--settings", str(self.write(self.project / "other.json", "{}"))).said
        self.assertEqual(sum(line.startswith("  ok ") for line in said), 10)
        self.assertEqual([line for line in said if "not tried" in line], [])

    def test_one_hook_alone_is_no_fault(self) -> None:
        self.succeed("uninstall", "--only", COACH)
        self.quick()

    @unittest.skipUnless(POSIX, "a client that is a shell script")
    def test_events_that_the_client_does_not_know_are_not_missed(self) -> None:
        self.client('echo "2.1.104 (Claude Code)"')
        self.succeed("install")
        self.quick()
        self.client('echo "2.1.122 (Claude Code)"')
        self.assertIn("PostToolBatch", self.faults())


class WhatIsWrong(StatusTest):
    def test_nothing_installed(self) -> None:
        self.succeed("uninstall")
        self.assertIn("no hook is registered", self.faults())

    def test_an_event_that_is_missing(self) -> None:
        for script in SCRIPTS:
            for event in self.module.EVENTS[script]:
                with self.subTest(event=event):
                    self.fresh_home(None)
                    self.succeed("install")
                    self.change(lambda settings, event=event: settings["hooks"].pop(event))  # type: ignore[misc]
                    self.assertRegex(self.faults(), rf"(?m)^{script}\b.*\b{event}$")

    def test_a_give_up_that_would_wake_nobody(self) -> None:
        def edit(event: str, group: Settings, handler: Settings) -> None:
            handler.pop("asyncRewake", None)

        self.edit_handlers(RECOVER, edit)
        self.assertRegex(self.faults(), r"(?m)^recover_malformed_toolcall\.py\b.*StopFailure.*asyncRewake")

    def test_a_hook_that_would_wake_where_it_must_answer(self) -> None:
        self.edit_handlers(RECOVER, lambda event, group, handler: handler.update(asyncRewake=True))
        faults = self.faults().splitlines()
        self.assertEqual(len(faults), 2)
        self.assertTrue(all("asyncRewake" in fault for fault in faults), faults)

    def test_another_matcher(self) -> None:
        def edit(event: str, group: Settings, handler: Settings) -> None:
            if event == "PostToolUse":
                group["matcher"] = "Write"

        self.edit_handlers(COACH, edit)
        self.assertRegex(self.faults(), r"PostToolUse\b.*matcher")

    def test_all_hooks_switched_off(self) -> None:
        places = (
            self.settings,
            self.project / ".claude" / "settings.json",
            self.project / ".claude" / "settings.local.json",
        )
        for path in places:
            with self.subTest(path=path.name):
                self.change(lambda settings: settings.update(disableAllHooks=True), path)
                self.assertIn(f"disableAllHooks is set in {path}", self.faults())
                self.change(lambda settings: settings.pop("disableAllHooks"), path)
                self.quick()

    def test_the_same_hook_in_two_settings_files(self) -> None:
        for name in ("settings.json", "settings.local.json"):
            with self.subTest(name=name):
                path = self.project / ".claude" / name
                self.succeed("install", "--settings", str(path), "--only", COACH)
                faults = self.faults()
                self.assertEqual(len(faults.splitlines()), 7)
                self.assertRegex(faults, rf"(?m)^{COACH} is registered 2 times for PreToolUse")
                path.unlink()

    def test_the_same_hook_twice_in_one_file(self) -> None:
        self.change(lambda settings: settings["hooks"]["Stop"].append(settings["hooks"]["Stop"][0]))
        self.assertIn(f"{RECOVER} is registered 2 times for Stop", self.faults())

    def test_the_users_own_settings_are_not_counted_twice_at_home(self) -> None:
        os.chdir(self.home)
        self.quick()

    def test_a_script_that_differs_from_this_one(self) -> None:
        for script in SCRIPTS:
            with self.subTest(script=script):
                path = self.config / "hooks" / script
                path.write_text(path.read_text("utf-8").replace("\ndef main(", "\n\ndef main(", 1), "utf-8")
                self.assertRegex(self.faults(), rf"{re.escape(str(path))} differs from .*source.{script}")
                self.succeed("install")
                self.quick()

    @unittest.skipUnless(POSIX, "a client that is a shell script")
    def test_a_client_that_is_too_old(self) -> None:
        self.client('echo "2.1.103 (Claude Code)"')
        self.assertRegex(self.faults(), r"2\.1\.103.*2\.1\.104")

    def test_settings_that_cannot_be_read(self) -> None:
        shapes: dict[str, tuple[bytes, str]] = {
            "no JSON": (b"{\n// mine\n}", ":2"),
            "an array": (b"[]", ""),
            "no text": (b"\xff\xfe{}", ""),
            "hooks of a wrong shape": (b'{"hooks": {"Stop": null}}', "Stop"),
        }
        for name, (data, place) in shapes.items():
            for path in (self.project / ".claude" / "settings.local.json", self.settings):
                with self.subTest(shape=name, path=path.name):
                    self.fresh_home(None)
                    self.succeed("install")
                    self.write(path, data)
                    faults = self.faults()
                    self.assertIn(f".claude/{path.name}", faults)
                    self.assertIn(place, faults)
                    path.unlink()

    def test_each_fault_is_printed_as_such(self) -> None:
        self.change(lambda settings: settings.update(disableAllHooks=True))
        with mock.patch.object(self.module, "samples", lambda script: iter(())):
            done = self.run_command("status")
        self.assertEqual(done.code, 1)
        self.assertRegex(done.out, r"(?m)^WRONG: disableAllHooks is set in ")
        self.assertNotIn("all is well", done.out)


class Plugin(StatusTest):
    def install_plugin(self, enabled: bool = True, as_list: bool = True) -> Path:
        """Write what the client keeps of an installed plugin; return the plugin's folder."""
        folder = self.config / "plugins" / "cache" / "toolcall-hooks" / "1.0.0"
        folder.parent.mkdir(parents=True, exist_ok=True)
        if not folder.exists():
            make_source(folder, self.state)
        shutil.copytree(support.ROOT / ".claude-plugin", folder / ".claude-plugin", dirs_exist_ok=True)
        place = {"scope": "user", "installPath": str(folder), "version": "1.0.0"}
        known = {"version": 2, "plugins": {"toolcall-hooks@market": [place] if as_list else place}}
        self.write(self.config / "plugins" / "installed_plugins.json", json.dumps(known))
        self.change(lambda settings: settings.update(enabledPlugins={"toolcall-hooks@market": enabled}))
        return folder

    def test_settings_and_plugin_together_run_each_hook_twice(self) -> None:
        for as_list in (True, False):
            self.install_plugin(as_list=as_list)
            faults = self.faults()
            for script in SCRIPTS:
                for event in self.module.EVENTS[script]:
                    self.assertIn(f"{script} is registered 2 times for {event}\n", faults + "\n")

    def test_a_plugin_that_is_not_enabled_does_not_count(self) -> None:
        self.install_plugin(enabled=False)
        self.quick()

    def test_the_plugin_alone_is_proved_as_it_is_registered(self) -> None:
        self.succeed("uninstall")
        folder = self.install_plugin()
        report = self.status()
        self.assertEqual(report.wrong, [])
        self.assertIn(str(folder), report.text)
        self.assertEqual(sum(line.startswith("  ok ") for line in report.said), 10)
        (folder / COACH).unlink()
        self.assertTrue(self.status("--only", COACH).wrong)

    def test_a_plugin_of_another_version_differs(self) -> None:
        self.succeed("uninstall")
        folder = self.install_plugin()
        path = folder / COACH
        path.write_text(path.read_text("utf-8").replace("\ndef main(", "\n\ndef main(", 1), "utf-8")
        self.assertIn(f"{path} differs from", self.faults())

    def test_a_plugin_whose_hooks_cannot_be_read_is_a_fault_among_others(self) -> None:
        folder = self.install_plugin()
        (folder / ".claude-plugin" / "hooks.json").write_text("{")
        self.assertIn("not a JSON object", self.faults())

    def test_another_plugin_is_not_ours(self) -> None:
        folder = self.install_plugin()
        known = {"plugins": {"other@market": [{"installPath": str(folder)}]}}
        self.write(self.config / "plugins" / "installed_plugins.json", json.dumps(known))
        self.change(lambda settings: settings.update(enabledPlugins={"other@market": True}))
        self.quick()

    def test_a_list_of_plugins_of_another_shape_is_no_fault(self) -> None:
        self.install_plugin()
        shapes: tuple[Any, ...] = (
            {},
            {"plugins": []},
            {"plugins": None},
            {"plugins": {"toolcall-hooks@m": None}},
            {"plugins": {"toolcall-hooks@market": []}},
            {"plugins": {"toolcall-hooks@market": [{}]}},
            [],
        )
        for shape in shapes:
            with self.subTest(shape=shape):
                self.write(self.config / "plugins" / "installed_plugins.json", json.dumps(shape))
                self.quick()
        for enabled in cast("tuple[object, ...]", ([], None, "toolcall-hooks@market", {"other@market": True})):
            with self.subTest(enabled=enabled):
                self.install_plugin()
                self.change(lambda settings, enabled=enabled: settings.update(enabledPlugins=enabled))  # type: ignore[misc]
                self.quick()


class Proof(StatusTest):
    def assert_proof_fails(self, script: str, *words: str) -> list[str]:
        """Check that the proof of a script fails with these words; return what it printed of each sample."""
        report = self.status("--only", script)
        self.assertEqual(report.code, 1)
        for word in words:
            self.assertIn(word, "\n".join(report.wrong))
        results = [line for line in report.said if line.startswith("  ok ") or " instead of " in line]
        return [line.split()[0].strip(":") for line in results]

    def test_a_registered_path_that_does_not_exist(self) -> None:
        for script in SCRIPTS:
            path = f"/nowhere/hooks/{script}"
            command = f'python3 -I -S "{path}"'
            self.edit_handlers(script, lambda event, group, handler, command=command: handler.update(command=command))  # type: ignore[misc]
            results = self.assert_proof_fails(script, path)
            self.assertEqual(set(results), {"WRONG"})

    def test_an_installed_script_that_is_gone(self) -> None:
        (self.config / "hooks" / RECOVER).unlink()
        self.assertEqual(set(self.assert_proof_fails(RECOVER, str(self.config / "hooks" / RECOVER))), {"WRONG"})

    @unittest.skipUnless(POSIX, "PATH")
    def test_a_python3_that_is_missing_from_path(self) -> None:
        (self.bin / "python3").unlink()
        self.assertEqual(set(self.assert_proof_fails(COACH, "python3", "exit code 127")), {"WRONG"})

    @unittest.skipUnless(POSIX, "PATH")
    def test_a_python3_that_is_too_old_for_the_scripts(self) -> None:
        (self.bin / "python3").unlink()
        body = "#!/bin/sh\necho 'SyntaxError: invalid syntax' >&2\nexit 1\n"
        self.write(self.bin / "python3", body).chmod(0o755)
        self.assertEqual(set(self.assert_proof_fails(COACH, "SyntaxError", "exit code 1")), {"WRONG"})

    def test_a_path_with_blanks_that_is_not_quoted(self) -> None:
        home = self.home / "my home"
        with mock.patch.dict(os.environ, {"HOME": str(home)}):
            self.succeed("install", "--only", RECOVER)
            settings = home / ".claude" / "settings.json"
            settings.write_text(settings.read_text("utf-8").replace('\\"', ""), "utf-8")
            self.assert_proof_fails(RECOVER)

    def test_a_script_that_says_nothing(self) -> None:
        for script, acting in ((RECOVER, 2), (COACH, 2)):
            self.replace_script(script, "")
            self.assertEqual(self.assert_proof_fails(script, "quiet instead of").count("WRONG"), acting)

    def test_a_script_that_always_acts(self) -> None:
        self.replace_script(RECOVER, 'print(\'{"decision": "block"}\')')
        self.assertEqual(self.assert_proof_fails(RECOVER, "block instead of quiet").count("WRONG"), 4)

    def test_a_script_that_answers_what_is_no_answer(self) -> None:
        for body in (
            "print('hello')",
            "print([])",
            "print('null')",
            "print('{} {}')",
            "print('{\"hookSpecificOutput\": 1}')",
        ):
            with self.subTest(body=body):
                self.replace_script(RECOVER, body)
                self.assertIn("WRONG", self.assert_proof_fails(RECOVER))

    def test_a_script_that_warns_or_fails(self) -> None:
        for body, word in (
            ("import sys; print('odd', file=sys.stderr)", "odd"),
            ("raise SystemExit(3)", "exit code 3"),
        ):
            with self.subTest(body=body):
                self.replace_script(RECOVER, body)
                self.assertEqual(set(self.assert_proof_fails(RECOVER, word)), {"WRONG"})

    def test_a_script_that_never_ends(self) -> None:
        self.replace_script(RECOVER, "import time\ntime.sleep(30)")
        real = subprocess.run

        def hurried(*args: Any, **kwargs: Any) -> Any:
            return real(*args, **{**kwargs, "timeout": 0.1})

        with mock.patch("subprocess.run", hurried):
            self.assertEqual(set(self.assert_proof_fails(RECOVER)), {"WRONG"})

    def test_hand_made_forms_of_the_command_are_proved_too(self) -> None:
        first = next(iter(self.module.samples(RECOVER)))
        for form in (f"python3 ~/.claude/hooks/{RECOVER}", f"python3 -I -S '{self.config}/hooks/{RECOVER}'"):
            with self.subTest(form=form):
                self.edit_handlers(RECOVER, lambda event, group, handler, form=form: handler.update(command=form))  # type: ignore[misc]
                with mock.patch.object(self.module, "samples", lambda script: iter([first])):
                    self.assertEqual(self.status("--only", RECOVER).wrong, [])


class Record(StatusTest):
    LINES = """
        recover s1 block Read 1
        recover s1 block Read 2
        recover s1 recovered - 2
        recover s2 wake - 1
        recover s2 recovered - 1
        recover s3 block Bash 1
        recover s3 recovered - 1
        recover s4 hand-back Bash 10
        tool-coach s1 deny Read 1
        tool-coach s1 deny Read 2
        tool-coach s1 deny Edit 1
        tool-coach s1 note Edit 2
        tool-coach s1 hand-back Edit 5
        tool-coach s1 error KeyError 0
    """

    def record(self, *lines: str) -> dict[str, int]:
        """Return the record of some log lines."""
        text = "".join("\t".join(["2026-01-02T03:04:05Z", *line.split()]) + "\n" for line in lines)
        self.write(self.config / "toolcall-hooks.log", text)
        return self.quick().record

    def numbers_of(self, record: dict[str, int], *words: str) -> list[int]:
        """Return the counts of what the record says with all of these words."""
        return [count for text, count in record.items() if all(word in text for word in words)]

    def test_it_is_summed_up(self) -> None:
        record = self.record(*filter(None, map(str.strip, self.LINES.splitlines())))
        self.assertEqual(self.numbers_of(record, "recovered", "1 attempt"), [2])
        self.assertEqual(self.numbers_of(record, "recovered", "2 attempts"), [1])
        self.assertEqual(self.numbers_of(record, "handed back"), [1])
        self.assertEqual(self.numbers_of(record, "Read", "stopped"), [2])
        self.assertEqual(self.numbers_of(record, "Edit", "stopped"), [1])
        self.assertEqual(self.numbers_of(record, "Edit", "note"), [1])
        self.assertEqual(self.numbers_of(record, "Edit", "ended"), [1])
        self.assertEqual(self.numbers_of(record, "error"), [1])
        with mock.patch.object(self.module, "samples", lambda script: iter(())):
            printed = self.run_command("status").out
        for text, count in record.items():
            self.assertIn(f"  {count} {text}\n", printed)

    def test_what_was_rotated_away_counts_too(self) -> None:
        self.write(self.config / "toolcall-hooks.log.old", "t\tcoach\ts\tdeny\tRead\t1\n")
        self.assertEqual(self.numbers_of(self.record("coach s deny Read 1"), "Read"), [2])

    def test_lines_that_are_none_are_passed_over(self) -> None:
        self.assertEqual(
            self.record("", "x", "recover", "recover s", "coach s dance Read 1", "a b c d e f g h i j"), {}
        )
        self.write(
            self.config / "toolcall-hooks.log",
            b"\xff\xfe\0\t\t\t\t\t\t{}\n{}\t{tool}\t%s\tdeny\t{0}\t{x}\n\tcoach\ts\tdeny\t{0}",
        )
        self.quick()

    def test_no_record_is_said_so(self) -> None:
        with mock.patch.object(self.module, "samples", lambda script: iter(())):
            self.assertIn("the record: nothing yet\n", self.run_command("status").out)

    def test_what_the_hooks_write_is_what_status_reads(self) -> None:
        def send(script: str, **event: object) -> None:
            answer = support.run_hook(self.config / "hooks" / script, {"session_id": "s", **event}, self.home)
            self.assertIn(answer.code, (0, 2))

        call = {"tool_name": "Read", "tool_input": {"file_path": "/nowhere/a"}, "tool_use_id": "1"}
        send(COACH, hook_event_name="PostToolUseFailure", error="File does not exist.", **call)
        send(COACH, hook_event_name="PostToolBatch", tool_calls=[call])
        send(COACH, hook_event_name="PreToolUse", **call)
        send(RECOVER, hook_event_name="StopFailure", last_assistant_message=support.GIVE_UP)
        send(RECOVER, hook_event_name="Stop", last_assistant_message="fine")
        record = self.quick().record
        self.assertEqual(self.numbers_of(record, "Read", "stopped"), [1])
        self.assertEqual(self.numbers_of(record, "recovered", "1 attempt"), [1])
        self.assertEqual(len(record), 2)


if __name__ == "__main__":
    unittest.main()

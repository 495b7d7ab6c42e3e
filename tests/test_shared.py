"""What the two scripts, their docstrings, the plugin and the repository must have in common."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import recover_malformed_toolcall as recover
import support
import tool_coach as coach

SCRIPTS = {support.RECOVER: recover, support.COACH: coach}
PLUGIN = support.ROOT / ".claude-plugin"
Registration = dict[str, dict[str, Any]]


def project_files() -> list[Path]:
    """Return the files of the repository that git knows or would add; without git, all but those in dot folders."""
    command = ["git", "-C", str(support.ROOT), "ls-files", "-co", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        listed = [str(path.relative_to(support.ROOT)) for path in support.ROOT.rglob("*") if "/." not in str(path)]
    return [path for path in (support.ROOT / name for name in listed if name) if path.is_file()]


def registration_of(hooks: dict[str, Any], script: Path) -> Registration:
    """Return {event: matcher, if any, and the handler's fields with the script's name as its command}."""
    found: Registration = {}
    for event, groups in hooks.items():
        for group in groups:
            for handler in group["hooks"]:
                if script.name in handler["command"]:
                    assert event not in found, event
                    rest = {name: value for name, value in group.items() if name != "hooks"}
                    found[event] = {**rest, **handler, "command": script.name}
    return found


def wanted(script: Path) -> Registration:
    """Return the registration that install writes for a script."""
    groups = {event: [recover.group_of(script.name, event, "/f")] for event in recover.EVENTS[script.name]}
    return registration_of(groups, script)


class BothScripts(unittest.TestCase):
    def test_the_shared_block_is_the_same_letter_for_letter(self) -> None:
        marker = r"^# --- Shared by both scripts, letter for letter: {} -+$"
        blocks = []
        for script in SCRIPTS:
            text = script.read_text("utf-8")
            begin, end = (re.findall(marker.format(word), text, re.M) for word in ("begin", "end"))
            self.assertEqual((len(begin), len(end)), (1, 1), script.name)
            blocks.append(text.partition(begin[0])[2].partition(end[0])[0])
        self.assertGreater(blocks[0].count("\n"), 50)
        self.assertEqual(blocks[0], blocks[1])

    def test_nothing_else_stands_in_both(self) -> None:
        def functions(script: Path) -> dict[str, str]:
            text = script.read_text("utf-8")
            text = re.sub(r"(?ms)^# --- Shared by both.*?: begin.*?: end -+$", "", text)
            nodes = [node for node in ast.parse(text).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
            return {ast.dump(ast.Module(node.body, [])): node.name for node in nodes}

        one, other = map(functions, SCRIPTS)
        self.assertEqual([one[body] for body in one if body in other], [])

    def test_each_runs_alone_in_an_empty_folder(self) -> None:
        for script in SCRIPTS:
            with self.subTest(script=script.name), tempfile.TemporaryDirectory() as folder:
                alone = Path(folder) / "empty" / script.name
                alone.parent.mkdir()
                shutil.copy(script, alone)
                answer = support.run_hook(alone, b"{}", Path(folder) / "home")
                self.assertEqual((answer.code, answer.raw, answer.err), (0, b"", ""))
                self.assertEqual([path.name for path in alone.parent.iterdir()], [script.name])
                self.assertFalse((Path(folder) / "home").exists())

    def test_each_starts_with_shebang_licence_and_manual(self) -> None:
        for script, module in SCRIPTS.items():
            lines = script.read_text("utf-8").splitlines()
            self.assertEqual(lines[0], "#!/usr/bin/env python3")
            self.assertTrue(lines[1].startswith("# SPDX-FileCopyrightText: "))
            self.assertEqual(lines[2], "# SPDX-License-Identifier: MIT")
            self.assertTrue(lines[3].startswith('"""'))
            for word in ("Reads", "Writes", "Never", "By hand"):
                self.assertRegex(module.__doc__ or "", rf"(?m)^{word}\b")

    def test_each_imports_the_standard_library_alone(self) -> None:
        known = getattr(sys, "stdlib_module_names", None)
        if known is None:
            self.skipTest("Python before 3.10 cannot tell")
        for script in SCRIPTS:
            for node in ast.walk(ast.parse(script.read_text("utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom):
                    self.assertEqual(node.level, 0)
                    names = [node.module or ""]
                for name in names:
                    self.assertIn(name.partition(".")[0], known, script.name)

    def test_each_imports_little_before_it_knows_what_to_do(self) -> None:
        for script in SCRIPTS:
            tops = [
                node
                for node in ast.parse(script.read_text("utf-8")).body
                if isinstance(node, (ast.Import, ast.ImportFrom))
            ]
            names = {alias.name for node in tops for alias in node.names}
            self.assertLessEqual(names, {"os", "stat", "sys", "time"}, script.name)

    def test_no_function_is_longer_than_a_screen(self) -> None:
        for script in SCRIPTS:
            for node in ast.walk(ast.parse(script.read_text("utf-8"))):
                if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                    length = (node.end_lineno or 0) - node.lineno + 1
                    with self.subTest(script=script.name, function=getattr(node, "name", "lambda")):
                        self.assertLessEqual(length, 60)

    def test_every_public_function_has_a_docstring(self) -> None:
        for script in SCRIPTS:
            for node in ast.parse(script.read_text("utf-8")).body:
                if isinstance(node, ast.FunctionDef):
                    self.assertTrue(ast.get_docstring(node), f"{script.name}: {node.name}")

    def test_one_catch_all_stands_in_each(self) -> None:
        for script in SCRIPTS:
            handlers = [n for n in ast.walk(ast.parse(script.read_text("utf-8"))) if isinstance(n, ast.ExceptHandler)]
            broad = [
                n for n in handlers if n.type is None or getattr(n.type, "id", "") in ("Exception", "BaseException")
            ]
            self.assertEqual(len(broad), 1, script.name)


class Registrations(unittest.TestCase):
    def test_every_handler_is_registered_and_every_registered_event_is_handled(self) -> None:
        for script, module in SCRIPTS.items():
            self.assertEqual(sorted(module.HANDLERS), sorted(recover.EVENTS[script.name]))

    def test_the_settings_block_of_each_docstring_is_what_install_writes(self) -> None:
        for script, module in SCRIPTS.items():
            manual = module.__doc__ or ""
            block = re.search(r'(?ms)^ *(\{"hooks": .*?\}\})\n\n', manual)
            handler = re.search(r"(?m)^ +HOOK +(\{.*\})$", manual)
            assert block and handler, script.name
            hook = json.loads(handler[1])
            text = block[1].replace("HOOK", handler[1])
            if "WAKING" in text:
                waking = re.search(r"(?m)^ +WAKING +the same with (.*)$", manual)
                assert waking
                text = text.replace("WAKING", json.dumps({**hook, **json.loads("{" + waking[1] + "}")}))
            self.assertEqual(hook["command"], f"python3 -I -S ~/.claude/hooks/{script.name}")
            self.assertEqual(registration_of(json.loads(text)["hooks"], script), wanted(script))

    def test_the_manual_names_every_event(self) -> None:
        for script, module in SCRIPTS.items():
            head = (module.__doc__ or "").partition("By hand")[0]
            for event in recover.EVENTS[script.name]:
                self.assertIn(event, head)

    def test_a_plain_command_is_registered(self) -> None:
        for script in SCRIPTS:
            for event, registration in wanted(script).items():
                handler = recover.group_of(script.name, event, "/f")["hooks"][0]
                python = "python" if os.name == "nt" else "python3"
                self.assertEqual(handler["command"], f'{python} -I -S "/f/{script.name}"')
                self.assertEqual((registration["type"], registration["timeout"]), ("command", 10))
                self.assertNotIn("args", registration)

    def test_the_patterns_of_the_matchers_leave_out_and_let_in_what_they_say(self) -> None:
        cases = {
            "PreToolUse": (["Read", "Edit", "mcp__a__Bash", "BashOutput"], ["Bash", "PowerShell"]),
            "PostToolUseFailure": (["Read", "Agent"], ["Bash", "PowerShell"]),
            "PostToolUse": (
                ["Edit", "Write", "Bash", "NotebookEdit", "mcp__a__b"],
                ["Read", "Grep", "WebFetch", "mcp__"],
            ),
            "UserPromptExpansion": (
                ["tool-coach", "toolcall-hooks:tool-coach"],
                ["coach", "my-tool-coach", "tool-coach2"],
            ),
        }
        for event, (let_in, left_out) in cases.items():
            matcher = recover.EVENTS["tool_coach.py"][event]["matcher"]
            self.assertEqual([name for name in let_in if not re.search(matcher, name)], [], event)
            self.assertEqual([name for name in left_out if re.search(matcher, name)], [], event)


class ThePlugin(unittest.TestCase):
    def manifest(self) -> dict[str, Any]:
        """Return the plugin's manifest."""
        manifest = json.loads((PLUGIN / "plugin.json").read_text("utf-8"))
        assert isinstance(manifest, dict)
        return manifest

    def hooks(self) -> dict[str, Any]:
        """Return the hooks of the plugin: those in the manifest, and those in the files that it names."""
        named = self.manifest()["hooks"]
        parts = [named] if isinstance(named, (dict, str)) else named
        found: dict[str, Any] = {}
        for part in parts:
            more = json.loads((support.ROOT / part).read_text("utf-8"))["hooks"] if isinstance(part, str) else part
            for event, groups in more.items():
                found.setdefault(event, []).extend(groups)
        return found

    def test_it_registers_what_install_registers(self) -> None:
        hooks = self.hooks()
        for script in SCRIPTS:
            self.assertEqual(registration_of(hooks, script), wanted(script))
        handlers = [handler for groups in hooks.values() for group in groups for handler in group["hooks"]]
        self.assertEqual(len(handlers), sum(map(len, recover.EVENTS.values())))
        commands = {f'python3 -I -S "${{CLAUDE_PLUGIN_ROOT}}/{script.name}"' for script in SCRIPTS}
        self.assertEqual({handler["command"] for handler in handlers}, commands)

    def test_its_hooks_are_not_loaded_twice(self) -> None:
        self.assertFalse((support.ROOT / "hooks").exists())

    def test_its_version_is_that_of_both_scripts(self) -> None:
        self.assertEqual({self.manifest()["version"]}, {recover.__version__, coach.__version__})
        self.assertRegex(recover.__version__, r"\A\d+\.\d+\.\d+\Z")

    def test_the_marketplace_names_it(self) -> None:
        market = json.loads((PLUGIN / "marketplace.json").read_text("utf-8"))
        self.assertEqual([entry["name"] for entry in market["plugins"]], [self.manifest()["name"]])
        self.assertNotIn("version", market["plugins"][0])

    def test_its_slash_command_is_the_one_that_install_writes(self) -> None:
        commands = [path for path in PLUGIN.rglob("*.md") if path.is_file()]
        self.assertEqual([path.name for path in commands], ["tool-coach.md"])
        self.assertEqual(commands[0].read_text("utf-8"), recover.SLASH_COMMAND)


class TheRepository(unittest.TestCase):
    def test_its_top_level_holds_the_seven_names_and_dot_entries_alone(self) -> None:
        names = {path.relative_to(support.ROOT).parts[0] for path in project_files()}
        wanted = {
            "recover_malformed_toolcall.py",
            "tool_coach.py",
            "prompts.txt",
            "tests",
            "README.md",
            "LICENSE",
            "Makefile",
        }
        self.assertEqual({name for name in names if not name.startswith(".")}, wanted)

    def test_no_file_holds_a_raw_prefixed_tag(self) -> None:
        files = project_files()
        self.assertGreater(len(files), 20)
        found = [str(path) for path in files if recover.PREFIX.encode() in path.read_bytes()]
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()

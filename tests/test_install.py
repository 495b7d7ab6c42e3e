"""install and uninstall: the settings stay the user's, and nothing of ours is left behind."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import importlib.util
import io
import itertools
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, NamedTuple
from unittest import mock

import support

SHAPES = support.CASES / "settings"
SCRIPTS = ("recover_malformed_toolcall.py", "tool_coach.py")
NOBODY = 65534
POSIX = os.name == "posix"

Settings = dict[str, Any]
Tree = dict[str, tuple[Any, ...]]

NOTHING_TO_DO = b'{"hook_event_name": "UserPromptSubmit", "last_assistant_message": "for neither hook"}'


class Done(NamedTuple):
    """What a maintenance command left: its exit code, stdout, stderr."""

    code: int
    out: str
    err: str


def make_source(folder: Path, state: Path, newer: bool = False) -> Path:
    """Copy what `make install` installs into a folder, its state kept in another; newer: as a later version."""
    folder.mkdir()
    for script in (support.RECOVER, support.COACH):
        target = support.copy_script(script, folder, STATE_DIR=str(state))
        if newer:
            text = target.read_text("utf-8")
            target.write_text(
                text.replace("def main(", "def of_the_newer_version() -> None: ...\n\n\ndef main("), "utf-8"
            )
    shutil.copy(support.ROOT / "prompts.txt", folder)
    folder.chmod(0o755)
    return folder


def load(script: Path) -> ModuleType:
    """Import a script from where it lies."""
    spec = importlib.util.spec_from_file_location(f"copy_{abs(hash(script))}", script)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tree(folder: Path, times: bool = False) -> Tree:
    """Return everything below a folder: kind, mode and content of each path; with times also inode and change time."""
    found: Tree = {}
    for path in sorted(folder.rglob("*")):
        info = path.lstat()
        content: object = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        if isinstance(content, bytes) and len(content) > 2000:
            content = hashlib.sha256(content).hexdigest()
        extra = (info.st_ino, info.st_mtime_ns) if times else ()
        found[str(path.relative_to(folder))] = (stat.S_IFMT(info.st_mode), stat.S_IMODE(info.st_mode), content, *extra)
    return found


def object_of(data: bytes) -> Settings:
    """Return the object in a settings file's bytes; {} for no file."""
    settings = json.loads(data.decode("utf-8-sig")) if data else {}
    assert isinstance(settings, dict)
    return settings


def is_ours(handler: Settings) -> bool:
    """Tell whether a handler runs one of the two scripts: another way to tell than the script's own."""
    last = str(handler.get("command", "")).replace('"', "").replace("'", "").rpartition(" ")[2]
    return last.endswith(tuple(f"/hooks/{script}" for script in SCRIPTS))


def ours_in(settings: Settings) -> list[tuple[str, Settings, Settings]]:
    """Return (event, group, handler) of each of our handlers."""
    return [
        (event, group, handler)
        for event, groups in settings.get("hooks", {}).items()
        for group in groups
        for handler in group.get("hooks", [])
        if is_ours(handler)
    ]


def without_ours(settings: Settings, prune: bool = False) -> Settings:
    """Return settings less our handlers and the groups that held nothing else; prune: less empty events and hooks."""
    left = copy.deepcopy(settings)
    for event, groups in left.get("hooks", {}).items():
        kept = []
        for group in groups:
            others = [handler for handler in group.get("hooks", []) if not is_ours(handler)]
            if "hooks" not in group or others == group["hooks"]:
                kept.append(group)
            elif others:
                kept.append({**group, "hooks": others})
        left["hooks"][event] = kept
    if prune and "hooks" in left:
        left["hooks"] = {event: groups for event, groups in left["hooks"].items() if groups}
        if not left["hooks"]:
            del left["hooks"]
    return left


def valid_shapes() -> list[tuple[str, bytes]]:
    """Return name and bytes of each shape of valid settings, no file (b"") among them."""
    files = sorted((SHAPES / "valid").glob("*.json"))
    return [("(missing)", b""), *((path.stem, path.read_bytes()) for path in files)]


class MaintenanceTest(unittest.TestCase):
    """A test with a home, a state folder, a PATH of its own, and copies of the scripts that keep their state there."""

    folder: Path
    state: Path
    source: Path
    module: ModuleType

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp(prefix="toolcall-hooks-")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.folder.chmod(0o755)
        cls.state = cls.folder / "state"
        cls.source = make_source(cls.folder / "source", cls.state)
        cls.module = load(cls.source / SCRIPTS[0])

    def setUp(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="home-", dir=self.folder))
        self.config = self.home / ".claude"
        self.settings = self.config / "settings.json"
        shutil.rmtree(self.state, True)
        self.state.mkdir()
        self.bin = self.home.with_name(self.home.name + "-bin")
        self.bin.mkdir()
        if POSIX:
            (self.bin / "python3").symlink_to(sys.executable)
        path = str(self.bin) if POSIX else f"{self.bin};{Path(sys.executable).parent}"
        self.environment = {"HOME": str(self.home), "USERPROFILE": str(self.home), "PATH": path}
        environment = mock.patch.dict(os.environ, self.environment)
        environment.start()
        self.addCleanup(environment.stop)
        os.environ.pop("CLAUDE_CONFIG_DIR", None)
        self.project = self.home.with_name(self.home.name + "-project")
        self.project.mkdir()
        self.addCleanup(os.chdir, Path.cwd())
        os.chdir(self.project)

    def run_command(self, *argv: str, module: ModuleType | None = None) -> Done:
        """Run a maintenance command in this process."""
        out, err, code = io.StringIO(), io.StringIO(), 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = (module or self.module).main(list(argv))
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
                print("" if isinstance(end.code, int) else end.code, file=sys.stderr)
        return Done(code, out.getvalue(), err.getvalue())

    def run_process(self, *argv: str, script: Path | None = None) -> Done:
        """Run a maintenance command as a person does."""
        done = subprocess.run(
            [sys.executable, str(script or self.source / SCRIPTS[0]), *argv],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=60,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def succeed(self, *argv: str, module: ModuleType | None = None) -> str:
        """Run a maintenance command that must succeed; return what it printed."""
        done = self.run_command(*argv, module=module)
        self.assertEqual((done.code, done.err), (0, ""), done)
        return done.out

    def fail_with(self, *argv: str) -> str:
        """Run a maintenance command that must fail with one line for a person; return that."""
        done = self.run_command(*argv)
        self.assertNotEqual(done.code, 0, done)
        self.assertEqual(len(done.err.strip().splitlines()), 1, done.err)
        return done.err.strip()

    def write(self, path: Path, data: bytes | str) -> Path:
        """Write a file and the folders above it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def read(self, path: Path | None = None) -> Settings:
        """Return the settings now."""
        return object_of((path or self.settings).read_bytes())

    def client(self, body: str) -> None:
        """Put a client on PATH: a shell script."""
        file = self.write(self.bin / "claude", f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)

    def fresh_home(self, settings: bytes | None) -> None:
        """Empty the home, and put its settings there, if any."""
        shutil.rmtree(self.home)
        self.home.mkdir()
        if settings is not None:
            self.write(self.settings, settings)

    @contextlib.contextmanager
    def home_with(self, shape: str, data: bytes) -> Iterator[None]:
        """Empty the home and put settings of a shape there, b"" for no file; what fails inside fails for that shape."""
        with self.subTest(shape=shape):
            self.fresh_home(data or None)
            yield


class ShapesOfSettings(MaintenanceTest):
    def test_both_folders_hold_shapes_and_the_valid_ones_are_valid(self) -> None:
        valid, invalid = (sorted((SHAPES / kind).glob("*.json")) for kind in ("valid", "invalid"))
        self.assertGreaterEqual(len(valid), 18)
        self.assertGreaterEqual(len(invalid), 18)
        for path in valid:
            object_of(path.read_bytes())

    def test_install_keeps_every_other_key_hook_and_their_order(self) -> None:
        for shape, before in valid_shapes():
            with self.home_with(shape, before):
                self.succeed("install")
                old, new = without_ours(object_of(before)), without_ours(self.read())
                self.assertEqual(list(new)[: len(old)], list(old))
                self.assertEqual({**new, "hooks": None}, {**old, "hooks": None})
                self.assertLessEqual(set(new) - set(old), {"hooks"})
                old_events, new_events = old.get("hooks", {}), new.get("hooks", {})
                for event, groups in old_events.items():
                    self.assertEqual(new_events.get(event, []), groups, event)
                self.assertEqual([event for event in new_events if new_events[event] and event not in old_events], [])
                kept = [event for event in old_events if old_events[event]]
                self.assertEqual([event for event in new_events if event in kept], kept)

    def test_install_registers_each_event_once_in_a_group_of_its_own(self) -> None:
        for shape, data in valid_shapes():
            with self.home_with(shape, data):
                self.succeed("install")
                found: dict[tuple[str, str], Settings] = {}
                for event, group, handler in ours_in(self.read()):
                    script = next(script for script in SCRIPTS if script in handler["command"])
                    self.assertNotIn((script, event), found)
                    found[script, event] = group
                    self.assertEqual(group["hooks"], [handler])
                    self.assertEqual(handler["command"], f'python3 -I -S "{self.config}/hooks/{script}"')
                    self.assertEqual((handler["type"], handler["timeout"]), ("command", 10))
                wanted = {
                    (script, event): more
                    for script, events in self.module.EVENTS.items()
                    for event, more in events.items()
                }
                self.assertEqual(set(found), set(wanted))
                for key, more in wanted.items():
                    self.assertEqual(found[key].get("matcher"), more.get("matcher"))
                    self.assertEqual(found[key]["hooks"][0].get("asyncRewake"), more.get("asyncRewake"))

    def test_install_writes_the_file_as_it_was_written(self) -> None:
        for name, before in valid_shapes():
            with self.home_with(name, before):
                self.succeed("install")
                old, new = before.decode(), self.settings.read_bytes().decode()
                if not before:
                    old = "{\n}\n"
                    self.assertTrue(new.startswith('{\n  "hooks"'), new)
                self.assertEqual(new.startswith("\ufeff"), old.startswith("\ufeff"))
                self.assertEqual(new[len(new.rstrip()) :], old[len(old.rstrip()) :])
                if before and object_of(before):
                    self.assertEqual(re.findall(r'\n([ \t]+)"', new)[:1], re.findall(r'\n([ \t]+)"', old)[:1])
                    self.assertEqual('": ' in new, '": ' in old)
                if "crlf" in name:
                    self.assertEqual(new.count("\n"), new.count("\r\n"))
                else:
                    self.assertNotIn("\r", new)
                if "escaped" in name:
                    self.assertTrue(new.isascii())
                if "raw" in name:
                    self.assertIn("Français – 日本語 🦊", new)

    def test_a_second_install_changes_no_byte_of_anything(self) -> None:
        for shape, data in valid_shapes():
            with self.home_with(shape, data):
                self.succeed("install")
                before = tree(self.home, times=True)
                self.assertIn(f"as it is {self.settings}\n", self.succeed("install"))
                self.assertEqual(tree(self.home, times=True), before)

    def test_uninstall_gives_the_exact_bytes_from_before(self) -> None:
        for name, before in valid_shapes():
            with self.home_with(name, before):
                everything = tree(self.home)
                self.succeed("install")
                self.assertNotEqual(tree(self.home), everything)
                self.succeed("uninstall")
                if name.startswith("ours"):
                    self.assertEqual(self.read(), without_ours(object_of(before), prune=True))
                elif before:
                    self.assertEqual(self.settings.read_bytes(), before)
                    self.assertEqual(tree(self.home), everything)
                else:
                    self.assertEqual(list(tree(self.home)), [".claude", ".claude/settings.json"])
                    self.assertEqual(self.read(), {})

    def test_uninstall_keeps_what_the_user_changed_meanwhile(self) -> None:
        def change(settings: Settings) -> None:
            settings["addedMeanwhile"] = {"é": 1}
            group = {"hooks": [{"type": "command", "command": "echo meanwhile"}]}
            settings.setdefault("hooks", {}).setdefault("Stop", []).append(group)
            settings.pop("model", None)

        for shape, before in valid_shapes():
            with self.home_with(shape, before):
                self.succeed("install")
                settings = self.read()
                change(settings)
                self.write(self.settings, json.dumps(settings))
                self.succeed("uninstall")
                wanted = without_ours(object_of(before))
                change(wanted)
                self.assertEqual(without_ours(self.read(), prune=True), without_ours(wanted, prune=True))
                self.assertEqual(ours_in(self.read()), [])

    def test_what_the_user_adds_to_our_own_group_stays(self) -> None:
        self.succeed("install")
        settings = self.read()
        own = {"type": "command", "command": "echo mine"}
        for event in ("Stop", "PreToolUse"):
            settings["hooks"][event][0]["hooks"].insert(0, own)
        self.write(self.settings, json.dumps(settings))
        self.succeed("uninstall")
        matcher = self.module.EVENTS[SCRIPTS[1]]["PreToolUse"]["matcher"]
        self.assertEqual(
            self.read(), {"hooks": {"Stop": [{"hooks": [own]}], "PreToolUse": [{"matcher": matcher, "hooks": [own]}]}}
        )

    def test_settings_that_are_no_json_object_are_named_and_left_as_they_are(self) -> None:
        for path in sorted((SHAPES / "invalid").glob("*.json")):
            for command in ("install", "uninstall", "install --dry-run"):
                with self.subTest(shape=path.stem, command=command):
                    self.fresh_home(path.read_bytes())
                    before = tree(self.home, times=True)
                    error = self.fail_with(*command.split())
                    kind, _, place = path.stem.rpartition(".")[2].partition("-")
                    if kind == "line":  # of a trailing comma, Python 3.13 names the comma's own, others the next
                        places = [f"{self.settings}:{line}:" for line in place.split("-")]
                    elif place == "settings":
                        places = [f"{self.settings}:1: not a JSON object: "]
                    else:
                        places = [f'{self.settings}: "hooks" has a wrong shape at "{place.replace("hooks", "")}"']
                    self.assertTrue(any(words in error for words in places), error)
                    self.assertEqual(tree(self.home, times=True), before)

    def test_settings_nested_without_end_are_left_as_they_are(self) -> None:
        data = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
        self.write(self.settings, data)
        self.assertIn(str(self.settings), self.fail_with("install"))
        self.assertEqual(self.settings.read_bytes(), data)
        self.assertEqual(list(tree(self.home)), [".claude", ".claude/settings.json"])

    def test_a_valid_file_never_becomes_an_invalid_one(self) -> None:
        self.write(self.settings, '{"beyondEveryFloat": 1e400}\n')
        self.run_command("install")

        def refuse(name: str) -> None:
            self.fail(f"{name} is not JSON")

        json.loads(self.settings.read_bytes(), parse_constant=refuse)


class TheFileItself(MaintenanceTest):
    BEFORE = b'{\n  "model": "opus"\n}\n'

    @unittest.skipUnless(POSIX, "modes")
    def test_the_mode_is_kept(self) -> None:
        for mode in (0o600, 0o644, 0o640, 0o664):
            with self.subTest(mode=oct(mode)):
                self.fresh_home(self.BEFORE)
                self.settings.chmod(mode)
                for command in ("install", "uninstall"):
                    self.succeed(command)
                    self.assertEqual(stat.S_IMODE(self.settings.stat().st_mode), mode, command)

    @unittest.skipUnless(POSIX, "modes")
    def test_new_settings_are_private_and_the_scripts_can_be_run(self) -> None:
        umask = os.umask(0)
        self.addCleanup(os.umask, umask)
        self.succeed("install")
        modes = {
            str(path.relative_to(self.config)): stat.S_IMODE(path.stat().st_mode) for path in self.config.rglob("*.*")
        }
        self.assertEqual(modes.pop("settings.json"), 0o600)
        self.assertEqual({modes.pop(f"hooks/{script}") for script in SCRIPTS}, {0o755})
        self.assertEqual(set(modes.values()), {0o644})

    @unittest.skipUnless(POSIX, "modes")
    def test_private_settings_are_at_no_moment_open_to_others(self) -> None:
        self.write(self.settings, self.BEFORE)
        self.settings.chmod(0o600)
        seen: dict[str, int] = {}

        def watch(real: Callable[..., None]) -> Callable[..., None]:
            def watched(path: Any, *args: Any, **kwargs: Any) -> None:
                if "settings.json" in str(path):
                    seen[str(path)] = seen.get(str(path), 0) | stat.S_IMODE(os.stat(path).st_mode)
                real(path, *args, **kwargs)

            return watched

        umask = os.umask(0)
        self.addCleanup(os.umask, umask)
        with mock.patch("os.chmod", watch(os.chmod)), mock.patch("os.replace", watch(os.replace)):
            self.succeed("install")
        self.assertEqual(len(seen), 2, seen)
        self.assertEqual(set(seen.values()), {0o600})

    @unittest.skipUnless(POSIX, "links")
    def test_a_link_is_followed_and_not_replaced(self) -> None:
        dotfiles = self.write(self.home / "dotfiles" / "claude.json", self.BEFORE)
        self.config.mkdir()
        (self.home / "hop").symlink_to(dotfiles)
        self.settings.symlink_to("../hop")
        before = tree(self.home)
        self.succeed("install")
        self.assertTrue(self.settings.is_symlink() and (self.home / "hop").is_symlink())
        self.assertFalse(dotfiles.is_symlink())
        self.assertTrue(ours_in(self.read(dotfiles)))
        self.succeed("uninstall")
        self.assertEqual(tree(self.home), before)

    @unittest.skipUnless(POSIX, "links")
    def test_a_link_whose_target_is_missing_makes_the_target(self) -> None:
        self.config.mkdir()
        self.settings.symlink_to(self.home / "dotfiles" / "claude.json")
        self.succeed("install")
        self.assertTrue(self.settings.is_symlink())
        self.assertTrue(ours_in(self.read(self.home / "dotfiles" / "claude.json")))

    @unittest.skipUnless(POSIX, "links")
    def test_a_link_to_itself_is_an_error_that_names_it(self) -> None:
        self.config.mkdir()
        self.settings.symlink_to(self.settings)
        for command in ("install", "uninstall"):
            self.assertIn(str(self.settings), self.fail_with(command))
        self.assertEqual(list(tree(self.home)), [".claude", ".claude/settings.json"])

    @unittest.skipUnless(POSIX, "links")
    def test_a_linked_config_folder_is_followed(self) -> None:
        self.write(self.home / "dotfiles" / "settings.json", self.BEFORE)
        self.config.symlink_to("dotfiles")
        before = tree(self.home)
        self.succeed("install")
        self.assertTrue(ours_in(self.read(self.home / "dotfiles" / "settings.json")))
        self.succeed("uninstall")
        self.assertEqual(tree(self.home), before)

    @unittest.skipUnless(POSIX, "links")
    def test_a_hooks_folder_that_links_to_the_clone_leaves_the_clone_whole(self) -> None:
        clone = make_source(self.home / "clone", self.state)
        module = load(clone / SCRIPTS[0])
        self.config.mkdir()
        (self.config / "hooks").symlink_to(clone)
        before = tree(clone)
        self.succeed("install", module=module)
        self.assertEqual(tree(clone), before)
        self.succeed("uninstall", module=module)
        self.assertEqual(tree(clone), before)

    def test_one_backup_is_made_before_the_first_change_and_goes_with_uninstall(self) -> None:
        self.write(self.settings, self.BEFORE)
        self.succeed("install")
        backups = [path for path in self.config.iterdir() if path.is_file() and path != self.settings]
        self.assertEqual([path.read_bytes() for path in backups], [self.BEFORE])
        if POSIX:
            self.assertEqual(backups[0].stat().st_mode, self.settings.stat().st_mode)
        settings = {**self.read(), "hooks": {}, "later": True}
        self.write(self.settings, json.dumps(settings))
        self.succeed("install")
        self.assertEqual([path for path in self.config.iterdir() if path.is_file()].count(backups[0]), 1)
        self.assertEqual(backups[0].read_bytes(), self.BEFORE)
        self.succeed("uninstall")
        self.assertFalse(backups[0].exists())
        self.assertEqual(self.read()["later"], True)

    def test_without_settings_there_is_nothing_to_back_up(self) -> None:
        self.succeed("install")
        self.assertEqual([path.name for path in self.config.iterdir() if path.is_file()], ["settings.json"])

    def test_an_error_at_any_rename_leaves_the_old_settings_and_no_scraps(self) -> None:
        real = os.replace
        for step in itertools.count():
            with self.subTest(step=step):
                self.fresh_home(self.BEFORE)
                renames = itertools.count()

                def fail(*paths: Any, step: int = step, renames: Iterator[int] = renames) -> None:
                    if next(renames) == step:
                        raise OSError(28, "No space left on device", str(paths[1]))
                    real(*paths)

                with mock.patch("os.replace", fail):
                    done = self.run_command("install")
                if next(renames) <= step:
                    break
                self.assertNotEqual(done.code, 0)
                self.assertRegex(done.err, r"No space left on device: ")
                self.assertEqual(len(done.err.strip().splitlines()), 1)
                self.assertEqual(self.settings.read_bytes(), self.BEFORE)
                left = {path.name for path in self.home.rglob("*") if path.is_file()}
                known = {
                    *SCRIPTS,
                    "prompts.txt",
                    "tool-coach.md",
                    "settings.json",
                    "settings.json.before-toolcall-hooks",
                }
                self.assertLessEqual(left, known)
                self.succeed("install")
                self.assertTrue(ours_in(self.read()))
                self.succeed("uninstall")
                self.assertEqual(self.settings.read_bytes(), self.BEFORE)
        self.assertGreater(step, 4)

    @unittest.skipUnless(hasattr(os, "fork"), "fork")
    def test_a_kill_at_any_rename_leaves_the_old_settings_whole(self) -> None:
        real = os.replace

        def end_at(last: int, renames: Iterator[int], *paths: str) -> None:
            if next(renames) == last:
                os._exit(9)
            real(*paths)

        for step in itertools.count():
            with self.subTest(step=step):
                self.fresh_home(self.BEFORE)
                child = os.fork()
                if not child:
                    renames = itertools.count()
                    with mock.patch("os.replace", partial(end_at, step, renames)):
                        self.run_command("install")
                    os._exit(0)
                if not os.WEXITSTATUS(os.waitpid(child, 0)[1]):
                    break
                self.assertEqual(self.settings.read_bytes(), self.BEFORE)
                self.succeed("install")
                self.assertTrue(ours_in(self.read()))
        self.assertGreater(step, 4)

    @contextlib.contextmanager
    def read_only_home(self) -> Iterator[None]:
        """Take away the right to write to the home; as root by being nobody meanwhile."""
        folders = [self.home, *(path for path in self.home.rglob("*") if path.is_dir())]
        for path in folders:
            path.chmod(0o555)
        if os.geteuid() == 0:
            self.run_command("install", "--dry-run")  # imports what it needs while that can be read
            os.seteuid(NOBODY)
        try:
            yield
        finally:
            if os.getuid() == 0:
                os.seteuid(0)
            for path in folders:
                path.chmod(0o755)

    @unittest.skipUnless(POSIX, "modes")
    def test_a_home_that_cannot_be_written_is_an_error_and_nothing_is_half_done(self) -> None:
        self.write(self.settings, self.BEFORE)
        for command in ("install", "uninstall"):
            with self.subTest(command=command):
                before = tree(self.home)
                with self.read_only_home():
                    error = self.fail_with(command)
                self.assertIn(f"{self.config}/", error)
                self.assertIn("Permission denied", error)
                self.assertEqual(tree(self.home), before)
                self.succeed("install")

    def test_a_file_in_the_place_of_a_folder_is_an_error_that_names_it(self) -> None:
        for place in (".claude", ".claude/hooks", ".claude/commands"):
            with self.subTest(place=place):
                self.fresh_home(None)
                self.write(self.home / place, "not a folder")
                self.assertIn(str(self.home / place), self.fail_with("install"))
                self.assertEqual((self.home / place).read_bytes(), b"not a folder")
                self.assertFalse(self.settings.exists())

    def test_settings_that_are_a_folder_are_an_error_that_names_them(self) -> None:
        self.settings.mkdir(parents=True)
        for command in ("install", "uninstall"):
            self.assertIn(str(self.settings), self.fail_with(command))
        self.assertEqual(list(tree(self.home)), [".claude", ".claude/settings.json"])


class Places(MaintenanceTest):
    def assert_commands_run(self, settings: Path, expected: int = 10) -> None:
        """Check that each registered command starts its script and says nothing."""
        commands = [handler["command"] for _, _, handler in ours_in(self.read(settings))]
        self.assertEqual(len(commands), expected)
        for command in dict.fromkeys(commands):
            done = subprocess.run(command, shell=True, input=NOTHING_TO_DO, capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""), command)

    @unittest.skipUnless(POSIX, "such names")
    def test_a_home_with_blanks_quotes_and_dollar_signs_works(self) -> None:
        names = [
            "my home",
            "it's",
            'a "quoted" one',
            "$HOME",
            "${PATH}",
            "`id`",
            "a$(id)b",
            "a;b&c",
            "é 日本",
            "~",
            "-x",
            "!x",
        ]
        for name in [*names, "100%", "back\\slash"]:
            with self.subTest(name=name):
                home = self.home / name
                config = home / ".claude"
                with mock.patch.dict(os.environ, {"HOME": str(home)}):
                    self.succeed("install")
                    before = tree(home, times=True)
                    self.assert_commands_run(config / "settings.json")
                    self.succeed("install")
                    self.assertEqual(tree(home, times=True), before)
                    self.succeed("uninstall")
                self.assertEqual(list(tree(home)), [".claude", ".claude/settings.json"])

    @unittest.skipUnless(POSIX, "such names")
    def test_a_console_that_lacks_the_letters_of_a_path_does_not_stop_it(self) -> None:
        home = self.home / "日本é"
        self.write(home / ".claude" / "settings.json", '{\n  "language": "日本"\n}\n')
        with mock.patch.dict(os.environ, {"HOME": str(home), "PYTHONIOENCODING": "ascii"}):
            for command in ("install --dry-run", "install", "status --only tool_coach.py", "uninstall"):
                with self.subTest(command=command):
                    done = self.run_process(*command.split())
                    self.assertEqual((done.code, done.err), (0, ""))

    def test_on_windows_the_command_has_plain_slashes_and_the_name_python(self) -> None:
        folder = r"C:\Users\My Name\.claude\hooks"
        with mock.patch.object(self.module.os, "name", "nt"):
            group = self.module.group_of(SCRIPTS[1], "SessionEnd", folder)
        command = f'python -I -S "C:/Users/My Name/.claude/hooks/{SCRIPTS[1]}"'
        self.assertEqual(group, {"hooks": [{"type": "command", "command": command, "timeout": 10}]})
        for form in (command, command.replace("/", "\\"), command.replace('"', "")):
            group["hooks"][0]["command"] = form
            found = list(self.module.registered({"hooks": {"SessionEnd": [group]}}, "path"))
            self.assertEqual([entry[:2] for entry in found], [("SessionEnd", SCRIPTS[1])], form)

    def test_the_config_folder_of_the_environment_is_used_and_no_other(self) -> None:
        config = self.home / "elsewhere" / "config"
        with mock.patch.dict(os.environ, {"CLAUDE_CONFIG_DIR": str(config)}):
            self.succeed("install")
            self.assertFalse(self.config.exists())
            self.assert_commands_run(config / "settings.json")
            self.assertEqual(sorted(path.name for path in config.iterdir()), ["commands", "hooks", "settings.json"])
            self.succeed("uninstall")
        self.assertEqual(list(tree(config)), ["settings.json"])

    def test_only_one_hook_is_installed_and_uninstalled_when_asked(self) -> None:
        for script, other in (SCRIPTS, SCRIPTS[::-1]):
            with self.subTest(script=script):
                self.fresh_home(None)
                self.succeed("install", "--only", script)
                self.assert_commands_run(self.settings, len(self.module.EVENTS[script]))
                self.assertEqual(
                    sorted(str(path.relative_to(self.config)) for path in self.config.rglob("*.*")),
                    ["hooks/prompts.txt", f"hooks/{script}", "settings.json"]
                    if script == SCRIPTS[0]
                    else ["commands/tool-coach.md", f"hooks/{script}", "settings.json"],
                )
                self.succeed("install")
                self.assert_commands_run(self.settings)
                self.write(self.config / "toolcall-hooks.log", "the record\n")
                self.write(self.config / "tool-coach.off", "")
                self.succeed("uninstall", "--only", script)
                self.assertEqual((self.config / "tool-coach.off").exists(), other == SCRIPTS[1])
                self.assertTrue(all(other in handler["command"] for _, _, handler in ours_in(self.read())))
                self.assert_commands_run(self.settings, len(self.module.EVENTS[other]))
                self.assertFalse((self.config / "hooks" / script).exists())
                self.assertEqual((self.config / "commands").exists(), other == SCRIPTS[1])
                self.assertEqual((self.config / "hooks" / "prompts.txt").exists(), other == SCRIPTS[0])
                self.assertTrue((self.config / "toolcall-hooks.log").exists())

    def test_the_settings_of_a_project_are_used_when_asked(self) -> None:
        project = self.project / ".claude" / "settings.json"
        self.succeed("install", "--settings", str(project))
        self.assertFalse(self.settings.exists())
        self.assert_commands_run(project)
        self.succeed("uninstall", "--settings", str(project))
        self.assertEqual(self.read(project), {})
        self.assertFalse((self.config / "hooks").exists())

    def test_a_relative_path_of_settings_is_understood(self) -> None:
        done = self.run_process("install", "--settings", "s.json")
        self.assertEqual((done.code, done.err), (0, ""))
        self.assert_commands_run(self.project / "s.json")

    def test_uninstall_from_a_project_leaves_the_files_that_the_users_settings_still_name(self) -> None:
        project = self.project / ".claude" / "settings.json"
        self.succeed("install")
        self.succeed("install", "--settings", str(project))
        self.write(self.state / "cc-tool-coach-s.json", "{}")
        self.succeed("uninstall", "--settings", str(project))
        self.assertEqual(self.read(project), {})
        self.assert_commands_run(self.settings)
        self.assertTrue((self.config / "commands" / "tool-coach.md").exists())

    def test_uninstall_leaves_the_files_that_the_project_here_still_names(self) -> None:
        for name in ("settings.json", "settings.local.json"):
            with self.subTest(name=name):
                self.fresh_home(None)
                project = self.project / ".claude" / name
                self.succeed("install")
                self.succeed("install", "--settings", str(project), "--only", SCRIPTS[1])
                self.succeed("uninstall")
                self.assertEqual(self.read(), {})
                self.assert_commands_run(project, 7)
                self.assertFalse((self.config / "hooks" / SCRIPTS[0]).exists())
                self.succeed("uninstall", "--settings", str(project))
                self.assertFalse((self.config / "hooks").exists())

    def test_a_script_that_lies_alone_installs_itself_alone(self) -> None:
        alone = self.home / "alone"
        alone.mkdir()
        module = load(Path(shutil.copy(self.source / SCRIPTS[0], alone)))
        self.succeed("install", module=module)
        self.assert_commands_run(self.settings, 3)
        self.assertEqual([path.name for path in (self.config / "hooks").iterdir()], [SCRIPTS[0]])
        self.assertFalse((self.config / "commands").exists())

    def test_the_installed_copy_can_uninstall_itself(self) -> None:
        self.succeed("install")
        done = self.run_process("uninstall", script=self.config / "hooks" / SCRIPTS[0])
        self.assertEqual((done.code, done.err), (0, ""))
        self.assertEqual(list(tree(self.home)), [".claude", ".claude/settings.json"])

    def test_installing_works_as_a_process_too(self) -> None:
        for command in ("install", "install", "uninstall", "uninstall"):
            done = self.run_process(command)
            self.assertEqual((done.code, done.err), (0, ""), command)
            self.assertEqual((self.config / "hooks").exists(), command == "install")


class DryRun(MaintenanceTest):
    def assert_nothing_changes(self, *argv: str, module: ModuleType | None = None) -> str:
        """Run a command with --dry-run; return what it printed."""
        before = tree(self.folder, times=True)
        printed = self.succeed(*argv, "--dry-run", module=module)
        self.assertEqual(tree(self.folder, times=True), before)
        return printed

    def test_an_install_says_what_it_would_write(self) -> None:
        for settings in (None, TheFileItself.BEFORE):
            with self.subTest(settings=settings):
                self.fresh_home(settings)
                printed = self.assert_nothing_changes("install")
                for path in (
                    *(self.config / "hooks" / script for script in SCRIPTS),
                    self.config / "hooks" / "prompts.txt",
                ):
                    self.assertIn(str(path), printed)
                self.assertIn(str(self.config / "commands" / "tool-coach.md"), printed)
                self.assertIn(str(self.settings), printed)
                for event in {**self.module.EVENTS[SCRIPTS[0]], **self.module.EVENTS[SCRIPTS[1]]}:
                    self.assertRegex(printed, rf'(?m)^\+ *"{event}"')

    def test_an_upgrade_says_what_it_would_keep(self) -> None:
        self.succeed("install")
        coach = self.config / "hooks" / SCRIPTS[1]
        text = coach.read_text("utf-8")
        coach.write_text(re.sub(r"(?m)^KEEP_SEC = 600", "KEEP_SEC = 60", text) + "\n# edited\n", "utf-8")
        printed = self.assert_nothing_changes("install")
        self.assertIn("KEEP_SEC", printed)

    def test_an_uninstall_says_what_it_would_remove(self) -> None:
        self.write(self.settings, TheFileItself.BEFORE)
        self.succeed("install")
        self.write(self.state / "cc-recover-s.json", "{}")
        self.write(self.config / "toolcall-hooks.log", "line\n")
        printed = self.assert_nothing_changes("uninstall")
        for path in (
            self.config / "hooks" / SCRIPTS[0],
            self.state / "cc-recover-s.json",
            self.config / "toolcall-hooks.log",
        ):
            self.assertIn(str(path), printed)


@unittest.skipUnless(POSIX, "a client that is a shell script")
class OldClients(MaintenanceTest):
    def test_a_client_before_2_1_104_changes_nothing_and_is_named(self) -> None:
        self.write(self.settings, TheFileItself.BEFORE)
        before = tree(self.home, times=True)
        for version in ("2.1.103", "2.1.30", "2.0.999", "1.0.128", "0.2.9"):
            with self.subTest(version=version):
                self.client(f'echo "{version} (Claude Code)"')
                for more in ([], ["--dry-run"], ["--only", SCRIPTS[1]]):
                    error = self.fail_with("install", *more)
                    self.assertIn(version, error)
                    self.assertIn("2.1.104", error)
                    self.assertEqual(tree(self.home, times=True), before)

    def test_a_newer_client_is_fine(self) -> None:
        for version in ("2.1.104", "2.1.332", "2.2.0", "2.10.1", "3.0.0", "10.0.0"):
            with self.subTest(version=version):
                self.fresh_home(None)
                self.client(f'echo "{version} (Claude Code)"')
                self.succeed("install")
                self.assertTrue(ours_in(self.read()))

    def test_events_that_a_client_does_not_know_follow_after_its_update(self) -> None:
        self.write(self.settings, TheFileItself.BEFORE)
        self.client('echo "2.1.104 (Claude Code)"')
        printed = self.succeed("install")
        events = {event for event, _, _ in ours_in(self.read())}
        late = {"UserPromptExpansion", "PostToolBatch"}
        self.assertEqual(len(events), 8)
        self.assertFalse(events & late)
        for event in late:
            self.assertIn(event, printed)
        before = tree(self.home, times=True)
        self.succeed("install")
        self.assertEqual(tree(self.home, times=True), before)
        self.client('echo "2.1.122 (Claude Code)"')
        self.succeed("install")
        self.assertEqual({event for event, _, _ in ours_in(self.read())}, events | late)
        self.succeed("uninstall")
        self.assertEqual(self.settings.read_bytes(), TheFileItself.BEFORE)

    def test_an_answer_that_names_no_version_is_fine(self) -> None:
        answers = {
            "words": "echo no version here",
            "nothing": ":",
            "an error": "echo oops >&2; exit 3",
            "no text": r"printf '\377\376\000'",
            "two numbers": "echo 2.1",
        }
        for name, body in answers.items():
            with self.subTest(answer=name):
                self.fresh_home(None)
                self.client(body)
                self.succeed("install")
                self.assertTrue(ours_in(self.read()))

    def test_a_client_that_cannot_be_started_is_fine(self) -> None:
        self.client("")
        (self.bin / "claude").write_bytes(b"\0\1\2\3 no program")
        self.succeed("install")
        self.assertTrue(ours_in(self.read()))

    def test_uninstall_works_with_an_old_client(self) -> None:
        self.succeed("install")
        self.client('echo "2.1.103 (Claude Code)"')
        self.succeed("uninstall")
        self.assertEqual(list(tree(self.home)), [".claude", ".claude/settings.json"])


class Upgrades(MaintenanceTest):
    newer: ModuleType

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.newer = load(make_source(cls.folder / "newer", cls.state, newer=True) / SCRIPTS[0])

    def edit(self, script: str, pattern: str, replacement: str) -> str:
        """Edit the installed copy as a user would; return its text then."""
        path = self.config / "hooks" / script
        text, count = re.subn(pattern, lambda match: replacement, path.read_text("utf-8"), count=1, flags=re.M | re.S)
        self.assertEqual(count, 1, pattern)
        compile(text, script, "exec")
        path.write_text(text, "utf-8")
        return text

    def installed(self, script: str) -> ModuleType:
        """Import the installed copy."""
        return load(self.config / "hooks" / script)

    def assert_all_newer(self) -> None:
        """Check that both installed scripts are of the newer version and run."""
        for script in SCRIPTS:
            self.assertTrue(hasattr(self.installed(script), "of_the_newer_version"))

    def test_constants_on_a_line_keep_the_users_values(self) -> None:
        self.succeed("install")
        self.edit(SCRIPTS[0], r"^MAX_RETRIES = 10.*?$", "MAX_RETRIES = 3")
        self.edit(SCRIPTS[0], r"^STREAK_WINDOW_SEC = 600", "STREAK_WINDOW_SEC = 60 * 5")
        self.edit(SCRIPTS[0], r"^ACTION_LOG = [^#]*?#", 'ACTION_LOG = ""  #')
        self.edit(SCRIPTS[1], r"^KEEP_SEC = 600.*?$", "KEEP_SEC = 30  # my own reason")
        self.edit(SCRIPTS[1], r"^HAND_BACK_AFTER = 5", "HAND_BACK_AFTER = 0")
        printed = self.succeed("install", module=self.newer)
        self.assert_all_newer()
        recover, coach = map(self.installed, SCRIPTS)
        self.assertEqual((recover.MAX_RETRIES, recover.STREAK_WINDOW_SEC, recover.ACTION_LOG), (3, 300, ""))
        self.assertEqual((coach.KEEP_SEC, coach.HAND_BACK_AFTER, coach.ACTION_LOG), (30, 0, "toolcall-hooks.log"))
        for name in ("MAX_RETRIES", "STREAK_WINDOW_SEC", "ACTION_LOG", "KEEP_SEC", "HAND_BACK_AFTER"):
            self.assertIn(name, printed)
        for name in ("TAIL_BYTES", "QUOTE_CHARS", "PASSING", "RECOVERY_PROMPTS"):
            self.assertNotIn(name, printed)

    def test_tuples_over_several_lines_keep_the_users_values(self) -> None:
        forms = {
            "as it was": "(\n    r'one',\n    'two',\n)",
            "in one line": "('one', 'two')",
            "with a blank line": "(\n    'one',\n\n    'two',\n)",
            "with a comment at the margin": "(\n    'one',\n# mine\n    'two',\n)",
            "not indented": "(\n'one',\n'two',\n)",
            "closed on the last line": "('one',\n    'two')",
            "a list": "['one',\n\n'two']",
            "a string over lines": "('one',\n'''two''')",
            "with the look of a constant": "(\n'one',\n'''two''',\n)[:\n2]",
        }
        constants = {SCRIPTS[0]: "RECOVERY_PROMPTS", SCRIPTS[1]: "PASSING"}
        for name, form in forms.items():
            with self.subTest(form=name):
                self.fresh_home(None)
                self.succeed("install")
                for script, constant in constants.items():
                    self.edit(script, rf"^{constant} = \(.*?^\)", f"{constant} = {form}")
                printed = self.succeed("install", module=self.newer)
                self.assert_all_newer()
                for script, constant in constants.items():
                    self.assertIn(constant, printed)
                    self.assertEqual(list(getattr(self.installed(script), constant)), ["one", "two"])

    def test_a_constant_that_cannot_be_kept_leaves_the_former_script_beside_the_new_one(self) -> None:
        for name, pattern, edit in (
            ("annotated", r"^MAX_RETRIES = 10", "MAX_RETRIES: int = 3"),
            ("one of the user's own", r"^MAX_RETRIES = 10", "MY_OWN = 3\nMAX_RETRIES = MY_OWN"),
            ("a statement", r"^MAX_RETRIES = 10", "if True:\n    MAX_RETRIES = 3\nMOST = 10"),
            ("two on a line", r"^MAX_RETRIES = 10[^\n]*", "MAX_RETRIES = 10; STREAK_WINDOW_SEC = 30"),
        ):
            with self.subTest(name):
                self.fresh_home(None)
                self.succeed("install")
                text = self.edit(SCRIPTS[0], pattern, edit)
                printed = self.succeed("install", module=self.newer)
                self.assert_all_newer()
                former = self.config / "hooks" / (SCRIPTS[0] + ".old")
                if former.exists():
                    self.assertEqual(former.read_text("utf-8"), text)
                    self.assertIn("keep", printed)
                else:
                    self.assertEqual(self.installed(SCRIPTS[0]).MAX_RETRIES, 3)

    def test_a_script_whose_code_was_edited_is_kept_beside_the_new_one(self) -> None:
        self.succeed("install")
        self.edit(SCRIPTS[1], r"^KEEP_SEC = 600", "KEEP_SEC = 61")
        text = self.edit(SCRIPTS[1], r"^def is_passing", "def mine() -> None: ...\n\n\ndef is_passing")
        printed = self.succeed("install", module=self.newer)
        self.assert_all_newer()
        self.assertEqual((self.config / "hooks" / (SCRIPTS[1] + ".old")).read_text("utf-8"), text)
        self.assertEqual(self.installed(SCRIPTS[1]).KEEP_SEC, 61)
        self.assertFalse(hasattr(self.installed(SCRIPTS[1]), "mine"))
        self.assertRegex(printed, rf"(?m)^keep .*{SCRIPTS[1]}")
        self.succeed("uninstall", module=self.newer)
        self.assertEqual(list(tree(self.home)), [".claude", ".claude/settings.json"])

    def test_a_script_that_is_broken_is_kept_beside_the_new_one(self) -> None:
        whole = (self.source / SCRIPTS[1]).read_text("utf-8")
        cut = whole.replace("KEEP_SEC = 600", "KEEP_SEC = (600")
        for text in ("def broken(", "\0", "KEEP_SEC = (", "", cut, whole.replace("KEEP_SEC = 600", "KEEP_SEC = 600\0")):
            with self.subTest(text=text[:20]):
                self.fresh_home(None)
                self.succeed("install")
                path = self.write(self.config / "hooks" / SCRIPTS[1], text)
                self.succeed("install")
                self.assertEqual(self.installed(SCRIPTS[1]).KEEP_SEC, 600)
                if text:
                    self.assertEqual(path.with_name(path.name + ".old").read_bytes(), text.encode())

    def test_edited_prompts_are_kept(self) -> None:
        self.succeed("install")
        prompts = self.write(self.config / "hooks" / "prompts.txt", "Prompt of mine, é.\r\n")
        printed = self.succeed("install", module=self.newer)
        self.assertEqual(prompts.read_bytes(), "Prompt of mine, é.\r\n".encode())
        self.assertIn(str(prompts), printed)
        before = tree(self.home, times=True)
        self.succeed("install", module=self.newer)
        self.assertEqual(tree(self.home, times=True), before)

    def test_prompts_that_nobody_edited_are_replaced_by_newer_ones(self) -> None:
        source = make_source(self.home / "source", self.state, newer=True)
        newer = self.write(source / "prompts.txt", "A newer prompt.\n")
        script, digest = source / SCRIPTS[0], hashlib.sha256(newer.read_bytes()).hexdigest()
        script.write_text(script.read_text("utf-8").replace(self.module.PROMPTS_SHA256, digest), "utf-8")
        self.succeed("install")
        self.succeed("install", module=load(script))
        prompts = self.config / "hooks" / "prompts.txt"
        self.assertEqual(prompts.read_bytes(), newer.read_bytes())
        self.assertEqual(list(prompts.parent.glob("prompts*")), [prompts])
        self.succeed("uninstall")
        self.assertEqual(list(tree(self.config)), ["settings.json"])

    def test_a_slash_command_that_nobody_edited_is_replaced_by_a_newer_one(self) -> None:
        source = make_source(self.home / "source", self.state, newer=True)
        script = source / SCRIPTS[0]
        script.write_text(script.read_text("utf-8").replace("or show its state", "or see its state"), "utf-8")
        self.succeed("install")
        self.succeed("install", module=load(script))
        command = self.config / "commands" / "tool-coach.md"
        self.assertIn("or see its state", command.read_text("utf-8"))
        self.succeed("uninstall")
        self.assertFalse(command.exists())

    def test_an_upgrade_changes_no_settings_that_are_right(self) -> None:
        self.write(self.settings, TheFileItself.BEFORE)
        self.succeed("install")
        before = self.settings.read_bytes(), self.settings.stat().st_mtime_ns
        self.succeed("install", module=self.newer)
        self.assert_all_newer()
        self.assertEqual((self.settings.read_bytes(), self.settings.stat().st_mtime_ns), before)

    @unittest.skipUnless(POSIX, "modes")
    def test_an_upgrade_can_be_run_again_and_again(self) -> None:
        self.succeed("install")
        self.edit(SCRIPTS[0], r"^MAX_RETRIES = 10", "MAX_RETRIES = 3")
        self.succeed("install", module=self.newer)
        before = tree(self.home, times=True)
        self.succeed("install", module=self.newer)
        self.assertEqual(tree(self.home, times=True), before)


class FilesOfOurs(MaintenanceTest):
    def test_the_slash_command_is_written_and_removed(self) -> None:
        self.succeed("install")
        command = self.config / "commands" / "tool-coach.md"
        self.assertTrue(command.read_text("utf-8").startswith("---\ndescription: "))
        self.succeed("uninstall")
        self.assertFalse(command.parent.exists())

    def test_a_slash_command_of_the_users_own_is_left_alone(self) -> None:
        command = self.write(self.config / "commands" / "tool-coach.md", "my own\n")
        other = self.write(self.config / "commands" / "other.md", "other\n")
        self.succeed("install")
        self.assertEqual(command.read_bytes(), b"my own\n")
        self.succeed("uninstall")
        self.assertEqual((command.read_bytes(), other.read_bytes()), (b"my own\n", b"other\n"))

    def test_uninstall_removes_all_that_is_ours_and_nothing_else(self) -> None:
        theirs = [
            self.write(self.config / "hooks" / "notify.sh", "theirs"),
            self.write(self.config / "hooks" / "tool_coach.py.bak", "theirs"),
            self.write(self.config / "commands" / "commit.md", "theirs"),
            self.write(self.config / "tool-coach.txt", "theirs"),
            self.write(self.config / "toolcall-hooks.log.gz", "theirs"),
            self.write(self.state / "cc-other-s.json", "theirs"),
            self.write(self.state / "my-cc-recover-s.json", "theirs"),
            self.write(self.settings, TheFileItself.BEFORE),
        ]
        before = tree(self.folder)
        self.succeed("install")
        for name in ("tool-coach.off", "toolcall-hooks.log", "toolcall-hooks.log.old"):
            self.write(self.config / name, "ours")
        for name in (
            "recover-s.json",
            "recover-s.a1.json",
            "recover-heartbeat.on",
            "recover-heartbeat.log",
            "tool-coach-s.json",
        ):
            self.write(self.state / f"cc-{name}", "ours")
        printed = self.succeed("uninstall")
        self.assertEqual(tree(self.folder), before)
        for path in theirs[:-1]:
            self.assertNotIn(f"{path}\n", printed)
        self.assertIn("tool-coach.off", printed)

    def test_uninstall_twice_is_no_error_and_changes_nothing_more(self) -> None:
        self.write(self.settings, TheFileItself.BEFORE)
        self.succeed("install")
        self.succeed("uninstall")
        before = tree(self.home, times=True)
        self.succeed("uninstall")
        self.assertEqual(tree(self.home, times=True), before)

    def test_uninstall_where_nothing_was_installed_changes_nothing(self) -> None:
        for settings in (None, TheFileItself.BEFORE, b'{"hooks": {"Stop": []}}'):
            with self.subTest(settings=settings):
                self.fresh_home(settings)
                before = tree(self.home, times=True)
                self.succeed("uninstall")
                self.assertEqual(tree(self.home, times=True), before)

    def test_one_hook_after_the_other_gives_the_exact_bytes_from_before(self) -> None:
        before = (SHAPES / "valid" / "own-hooks-in-the-same-events.json").read_bytes()
        for order in (SCRIPTS, SCRIPTS[::-1]):
            self.fresh_home(before)
            everything = tree(self.home)
            for command in ("install", "uninstall"):
                for script in order:
                    self.succeed(command, "--only", script)
            self.assertEqual(tree(self.home), everything)

    def test_prompts_that_the_user_edited_outlive_uninstall(self) -> None:
        self.succeed("install")
        prompts = self.write(self.config / "hooks" / "prompts.txt", "Prompt of mine.\n")
        self.succeed("install")
        self.assertEqual(list(prompts.parent.glob("prompts*")), [prompts])
        printed = self.succeed("uninstall")
        self.assertEqual(list(prompts.parent.iterdir()), [prompts])
        self.assertEqual(prompts.read_bytes(), b"Prompt of mine.\n")
        self.assertRegex(printed, rf"keep +{re.escape(str(prompts))}")

    def test_a_folder_with_the_name_of_a_state_does_not_stop_uninstall(self) -> None:
        self.succeed("install")
        (self.state / "cc-recover-a.json").mkdir()
        (self.state / "cc-tool-coach-a.json").mkdir()
        self.write(self.state / "cc-tool-coach-s.json", "{}")
        self.succeed("uninstall")
        self.assertEqual(sorted(path.name for path in self.state.iterdir() if path.is_file()), [])
        self.assertEqual(list(tree(self.home)), [".claude", ".claude/settings.json"])

    @unittest.skipUnless(POSIX, "links")
    def test_the_target_of_a_link_with_the_name_of_a_state_is_left_alone(self) -> None:
        self.succeed("install")
        precious = self.write(self.home / "precious", "data")
        (self.state / "cc-recover-s.json").symlink_to(precious)
        self.succeed("uninstall")
        self.assertEqual(precious.read_bytes(), b"data")

    @unittest.skipUnless(hasattr(os, "geteuid") and os.geteuid() == 0, "needs another user")
    def test_the_state_of_another_user_is_left_alone(self) -> None:
        self.succeed("install")
        foreign = self.write(self.state / "cc-recover-s.json", "{}")
        os.chown(foreign, NOBODY, NOBODY)
        self.succeed("uninstall")
        self.assertTrue(foreign.exists())

    def test_the_two_commands_and_their_switches_are_explained(self) -> None:
        done = self.run_process("--help")
        self.assertEqual(done.code, 0)
        for word in ("install", "uninstall", "status", "--only", "--settings", "--dry-run", "--json", "--version"):
            self.assertIn(word, done.out)
        for wrong in (["instal"], ["install", "--onyl"], ["install", "--only", "other.py"]):
            self.assertEqual(self.run_process(*wrong).code, 2)


class Edges(MaintenanceTest):
    def test_a_lone_script_that_installs_over_a_whole_clones_leaves_the_prompts(self) -> None:
        self.succeed("install")
        alone = self.home / "alone"
        alone.mkdir()
        lone = load(Path(shutil.copy(self.source / SCRIPTS[0], alone)))
        before = (self.config / "hooks" / "prompts.txt").read_bytes()
        self.succeed("install", module=lone)
        self.assertEqual((self.config / "hooks" / "prompts.txt").read_bytes(), before)

    def test_a_first_install_keeps_nothing_since_there_is_nothing(self) -> None:
        said = self.succeed("install")
        self.assertNotIn("keep", said)
        self.assertNotIn(".old", said)

    def test_a_script_with_other_line_ends_knows_what_it_installed(self) -> None:
        folder = self.home / "crlf"
        shutil.copytree(self.source, folder)
        script = folder / SCRIPTS[0]
        script.write_bytes(script.read_bytes().replace(b"\n", b"\r\n"))
        module = load(script)
        self.succeed("install", module=module)
        self.assertNotIn("keep", self.succeed("install", module=module))
        self.succeed("uninstall", module=module)
        self.assertFalse((self.config / "commands").exists())

    def test_a_backup_is_not_put_back_where_nothing_was_taken_out(self) -> None:
        self.write(self.settings, '{"a": 1}')
        self.write(self.settings.with_name("settings.json.before-toolcall-hooks"), '{\n  "a": 1\n}\n')
        self.succeed("uninstall")
        self.assertEqual(self.settings.read_bytes(), b'{"a": 1}')

    def test_the_backup_stays_while_one_of_the_hooks_does(self) -> None:
        self.write(self.settings, '{"a": 1}')
        backup = self.settings.with_name("settings.json.before-toolcall-hooks")
        self.succeed("install")
        for script, stays in zip(SCRIPTS, (True, False)):
            self.succeed("uninstall", "--only", script)
            self.assertEqual(backup.exists(), stays)

    def test_a_record_of_another_name_is_removed_too(self) -> None:
        self.succeed("install")
        script = self.config / "hooks" / SCRIPTS[0]
        script.write_text(script.read_text("utf-8").replace('"toolcall-hooks.log"', '"mine.log"'), "utf-8")
        for name in ("mine.log", "mine.log.old", "other.log"):
            self.write(self.config / name, "a line")
        self.succeed("uninstall")
        self.assertEqual([path.name for path in self.config.iterdir() if path.suffix != ".json"], ["other.log"])

    def test_settings_beside_that_cannot_be_read_are_passed_over(self) -> None:
        self.succeed("install")
        (self.project / ".claude" / "settings.json").mkdir(parents=True)
        self.assertIn("passed over", self.succeed("uninstall"))
        self.assertFalse((self.config / "hooks").exists())

    def test_a_script_is_kept_that_a_hook_elsewhere_names_and_not_for_another_mention(self) -> None:
        script = self.config / "hooks" / SCRIPTS[1]
        local = self.project / ".claude" / "settings.local.json"
        for kept, other in (
            (True, {"hooks": {"Stop": [{"hooks": [{"command": f"uv run {script} --x"}]}]}}),
            (True, f'{{"hooks": [broken, "{script}"'),
            (False, {"hooks": {"Stop": [{"hooks": [{"command": "python3 /elsewhere/tool_coach.py --x"}]}]}}),
            (False, {"permissions": {"allow": [f"Bash(python3 {script} on)"]}}),
        ):
            with self.subTest(other):
                self.succeed("install")
                self.write(local, other if isinstance(other, str) else json.dumps(other))
                said = self.succeed("uninstall")
                self.assertEqual((script.exists(), "which settings still name" in said), (kept, kept))

    @unittest.skipUnless(POSIX, "links")
    def test_a_script_with_a_second_name_is_removed_and_its_other_name_stays(self) -> None:
        self.succeed("install")
        other = self.home / "other.py"
        os.link(self.config / "hooks" / SCRIPTS[1], other)
        self.succeed("uninstall")
        self.assertEqual((other.exists(), (self.config / "hooks").exists()), (True, False))

    @unittest.skipUnless(POSIX, "links")
    def test_a_linked_folder_that_gets_empty_stays(self) -> None:
        (self.home / "mine").mkdir()
        self.config.mkdir()
        (self.config / "commands").symlink_to(self.home / "mine")
        self.succeed("install")
        self.succeed("uninstall")
        self.assertEqual(list((self.home / "mine").iterdir()), [])
        self.assertTrue((self.config / "commands").is_symlink())

    @unittest.skipUnless(POSIX, "links")
    def test_what_is_in_a_linked_hooks_folder_is_kept_and_that_is_said(self) -> None:
        (self.home / "mine").mkdir()
        self.config.mkdir()
        (self.config / "hooks").symlink_to(self.home / "mine")
        self.succeed("install")
        self.assertIn("which is a link to a folder of yours", self.succeed("uninstall"))
        self.assertEqual(len(list((self.home / "mine").iterdir())), 3)

    @unittest.skipUnless(POSIX, "a shell script as the client")
    def test_a_client_that_does_not_say_its_version_in_time_is_none(self) -> None:
        self.client("exec sleep 30")
        real = subprocess.run
        with mock.patch("subprocess.run", lambda *args, **fields: real(*args, **{**fields, "timeout": 0.2})):
            self.assertEqual(self.module.client_version(), ((9,), ""))


if __name__ == "__main__":
    unittest.main()

"""The README says what the code does: constants, versions, prompts, events, paths, make targets."""

from __future__ import annotations

import hashlib
import json
import re
import unittest

import recover_malformed_toolcall as recover
import tool_coach as coach
from support import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
SCRIPTS = {"recover_malformed_toolcall.py": recover, "tool_coach.py": coach}


def editable(script: str) -> list[str]:
    """Return the names of the constants that a script lets a user edit."""
    return sorted(recover.constants_of((ROOT / script).read_text(encoding="utf-8")))


class Readme(unittest.TestCase):
    """Every fact of the page that can be held against the code."""

    def test_it_fits_250_lines(self) -> None:
        self.assertLessEqual(len(README.splitlines()), 250)

    def test_the_tables_list_each_constant_with_its_value(self) -> None:
        for script, module in SCRIPTS.items():
            table = README.partition(f"| `{script}` | value | meaning |\n")[2].partition("\n\n")[0]
            rows = dict(re.findall(r"^\| `([A-Z_]+)` \| ([^|]+) \|", table, re.M))
            self.assertEqual(sorted(rows), editable(script))
            for name, shown in rows.items():
                value = getattr(module, name)
                if name == "RECOVERY_PROMPTS":
                    self.assertEqual(shown, f"{len(value)} prompts")
                elif name != "PASSING":
                    self.assertEqual(shown, str(value), name)

    def test_it_counts_the_prompts_right(self) -> None:
        lines = (ROOT / "prompts.txt").read_text(encoding="utf-8").splitlines()
        count = len([line for line in lines if line.strip() and not line.startswith("#")])
        self.assertGreaterEqual(count, 24)
        self.assertIn(f"one of {count} differing prompts", README)
        self.assertIn(f"`prompts.txt` holds {count} prompts", README)

    def test_the_script_knows_the_prompts_that_come_with_it(self) -> None:
        digest = hashlib.sha256((ROOT / "prompts.txt").read_bytes()).hexdigest()
        self.assertEqual(recover.PROMPTS_SHA256, digest)

    def test_the_settings_block_is_what_install_writes(self) -> None:
        block = json.loads(README.partition("```json\n")[2].partition("```")[0])
        wanted: dict[str, list[object]] = {}
        for script, events in recover.EVENTS.items():
            for event in events:
                group = recover.group_of(script, event, "~/.claude/hooks")
                group["hooks"][0]["command"] = (
                    group["hooks"][0]["command"].replace('"', "").replace("python ", "python3 ")
                )
                wanted.setdefault(event, []).append(group)
        self.assertEqual(block, {"hooks": wanted})

    def test_it_names_the_files_that_the_code_writes(self) -> None:
        for path in (
            recover.state_path("recover", "<session>").replace("_session_", "<session>"),
            recover.state_path("tool-coach", "<session>").replace("_session_", "<session>"),
            recover.HEARTBEAT + ".on",
            recover.HEARTBEAT + ".log",
        ):
            self.assertIn(path.replace(recover.STATE_DIR, "/tmp"), README)
        for name in (recover.ACTION_LOG, "tool-coach.off", "commands/tool-coach.md", "settings.json" + recover.BACKUP):
            self.assertIn(name, README)
        self.assertIn(f"rotated at {recover.LOG_MAX_BYTES // 1000} kB", README)

    def test_every_make_target_it_names_exists(self) -> None:
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        targets = set(re.findall(r"^([a-z0-9]+):", makefile, re.M))
        named = set(re.findall(r"make ([a-z0-9]+)", README)) | {"e2e", "compat", "lint", "bench", "fuzz", "mutate"}
        self.assertLessEqual(named, targets)
        self.assertIn("\n    make install\n", README)
        self.assertIn("\n    make test\n", README)

    def test_the_budgets_it_tells_are_the_constants(self) -> None:
        self.assertIn(f"still no good after {recover.MAX_RETRIES} attempts", README)
        self.assertIn(f"goes on all the same, {coach.HAND_BACK_AFTER} times", README)
        self.assertIn(f"is {recover.BLOCK_CAP} blocks in a row", README)

    def test_every_link_leads_to_a_file(self) -> None:
        for target in re.findall(r"\]\(([^)#]+)\)", README):
            self.assertTrue((ROOT / target).exists(), target)

    def test_versions_agree(self) -> None:
        plugin = json.loads((ROOT / ".claude-plugin" / "plugin.json").read_text(encoding="utf-8"))
        changelog = (ROOT / ".github" / "CHANGELOG.md").read_text(encoding="utf-8")
        newest = re.search(r"^## (\S+)", changelog, re.M)
        self.assertEqual({recover.__version__, coach.__version__, plugin["version"]}, {newest[1] if newest else None})

    def test_the_pinned_clients_are_in_its_table(self) -> None:
        harness = (ROOT / "tests" / "e2e" / "harness.py").read_text(encoding="utf-8")
        pinned = re.findall(r'"(2\.1\.\d+)"', harness.partition("VERSIONS")[2].partition(")")[0])
        self.assertGreaterEqual(len(pinned), 12)
        table = README.partition("## Client versions tried")[2].partition("\n## ")[0]
        for version in pinned:
            self.assertIn(version, table)


if __name__ == "__main__":
    unittest.main()

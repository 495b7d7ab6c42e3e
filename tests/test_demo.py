"""The demonstration runs, shows what the hooks really answer, and leaves nothing behind."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import recover_malformed_toolcall as recover
import support
import tool_coach as coach


class TheDemonstration(unittest.TestCase):
    printed: str
    left: list[str]
    states: set[Path]

    @classmethod
    def setUpClass(cls) -> None:
        with tempfile.TemporaryDirectory() as folder:
            before = set(Path(recover.STATE_DIR).glob("cc-*"))
            done = subprocess.run(
                [sys.executable, "-B", str(support.ROOT / "tests" / "demo.py")],
                capture_output=True,
                env={"HOME": folder, "TMPDIR": folder, "PATH": "", "LC_ALL": "C"},
                cwd=folder,
                timeout=30,
                check=True,
            )
            cls.left = [str(path) for path in Path(folder).rglob("*")]
            cls.states = set(Path(recover.STATE_DIR).glob("cc-*")) - before
        cls.printed = done.stdout.decode("utf-8")

    def section(self, title: str) -> str:
        """Return what stands under a title, on one line."""
        found = re.search(rf"(?ms)^  {title}.*?\n(.*?)(?=^  [A-Z]{{3}}|^\d|\Z)", self.printed)
        assert found, title
        return " ".join(found[1].split())

    def test_both_stories_are_told_before_and_after(self) -> None:
        self.assertEqual(self.printed.count("WITHOUT THE HOOK"), 2)
        self.assertEqual(self.printed.count("WITH THE HOOK (event"), 2)
        for words in ("1. A leaked call", "2. A repeated call", "3. What is left", "make install"):
            self.assertIn(words, self.printed)

    def test_the_leaked_call_is_sent_back_in_the_hooks_own_words(self) -> None:
        told = self.section(r"WITH THE HOOK \(event Stop\)")
        self.assertIn("block: the turn goes on", told)
        first = recover.recovery_text("leak", "Read", "", 1, False).partition(" (recovery")[0]
        self.assertIn(" ".join(first.split()), told)
        self.assertRegex(told, rf"\(recovery attempt 1/{recover.MAX_RETRIES}\)")

    def test_the_repeated_call_is_denied_in_the_hooks_own_words(self) -> None:
        told = self.section(r"WITH THE HOOK \(events PostToolUseFailure")
        self.assertIn("deny: the call does not run", told)
        self.assertIn(" ".join(coach.repeat_text("Read", coach.DENIED, "File does not exist.").split()), told)
        self.assertIn("tool-coach: Read call repeated", told)

    def test_what_must_stay_quiet_stays_quiet(self) -> None:
        self.assertIn("nothing: the turn ends as it should", self.section("AND WHEN THE MODEL ONLY SHOWS"))
        self.assertIn("nothing: the same call runs", self.section("AND WHEN SOMETHING HAS CHANGED"))

    def test_the_record_holds_one_line_for_each_action(self) -> None:
        lines = self.printed.partition("3. What is left")[2].splitlines()
        actions = [line.split() for line in lines if re.match(r"  \d{4}-", line)]
        found = [(words[1], words[3], words[4]) for words in actions]
        self.assertEqual(
            found, [("recover", "block", "Read"), ("recover", "recovered", "-"), ("tool-coach", "deny", "Read")]
        )

    def test_the_leaked_call_is_printed_with_look_alike_brackets(self) -> None:
        self.assertIn(f"‹{recover.CALL} name=", self.printed)
        self.assertNotIn("<" + recover.CALL, self.printed)
        self.assertIsNone(recover.find_leaked_call(self.printed))

    def test_nothing_is_left_behind(self) -> None:
        self.assertEqual(self.left, [])
        session = re.search(r"(?m)^  \d{4}-\S+ +recover +(\w{8})", self.printed)
        assert session
        self.assertEqual([path for path in self.states if session[1] in path.name], [])


if __name__ == "__main__":
    unittest.main()

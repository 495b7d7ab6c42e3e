"""The committed picture of before and after: what a reader must be able to see, and what must not stand in it."""

from __future__ import annotations

import html
import re
import unittest
from xml.etree import ElementTree

import tool_coach
from recover_malformed_toolcall import ARGUMENT, CALL, PREFIX, find_leaked_call, read_prompts, recovery_text
from support import ROOT

SOURCE = (ROOT / ".github" / "before-after.svg").read_text("utf-8")
SVG = "{http://www.w3.org/2000/svg}"
STALE = "run `make picture`: the hooks say something else by now"


def texts_of(panel: str) -> list[ElementTree.Element]:
    """Return the text elements of a panel, from top to bottom."""
    found = ElementTree.fromstring(SOURCE).find(f"{SVG}g[@id='{panel}']")
    return [] if found is None else found.findall(f"{SVG}text")


def words_of(panel: str) -> str:
    """Return all that stands in a panel, in one line."""
    return " ".join(text.text or "" for text in texts_of(panel))


class Picture(unittest.TestCase):
    """The picture of before and after"""

    def test_it_shows_what_the_recovery_hook_says_and_that_the_work_goes_on(self) -> None:
        said = recovery_text("leak", "Read", min(read_prompts(), key=len), 1, False)
        self.assertIn(said, words_of("leak-with"), STALE)
        self.assertRegex(words_of("leak-with").partition(said)[2], "Read 1 file ● Found it")

    def test_it_shows_what_the_coach_says_and_that_the_work_goes_on(self) -> None:
        words = words_of("repeat-with")
        self.assertIn(f"this exact Read call {tool_coach.DENIED}", words, STALE)
        self.assertIn("says: tool-coach: Read call repeated after it failed, not run", words, STALE)
        self.assertRegex(words.partition("not run")[2], "Read 1 file ● The server listens on port 8080")

    def test_without_the_hooks_the_call_stays_on_the_screen_above_an_idle_prompt(self) -> None:
        words = words_of("leak-without")
        self.assertRegex(words, rf'‹{CALL} name="Read"› ‹{ARGUMENT} name="file_path"›cart.py‹/{ARGUMENT}› ‹/{CALL}› ✻')
        self.assertTrue(words.endswith(" ❯"), words)

    def test_without_the_hooks_the_same_call_fails_three_times(self) -> None:
        self.assertEqual(words_of("repeat-without").count("1 failed"), 3)

    def test_no_hook_speaks_in_a_panel_without_the_hooks(self) -> None:
        for panel in ("leak-without", "repeat-without"):
            self.assertNotRegex(words_of(panel), "(?i)stop hook|a hook|tool-coach|PreToolUse|recover")

    def test_a_screen_reader_gets_a_title_and_a_description(self) -> None:
        root = ElementTree.fromstring(SOURCE)
        self.assertEqual(root.get("role"), "img")
        for name in (root.get("aria-labelledby") or "").split():
            found = [element for element in root if element.get("id") == name]
            self.assertEqual(len(found), 1, name)
            self.assertGreater(len(found[0].text or ""), 20)
        self.assertEqual(root.get("aria-labelledby"), "title desc")

    def test_it_is_small_and_as_wide_as_it_is_shown_with_no_text_below_12_pixels(self) -> None:
        self.assertLess(len(SOURCE.encode()), 60_000)
        self.assertIn('width="830"', SOURCE.partition(">")[0])
        sizes = [float(size) for size in re.findall(r"font(?:-size)?:([\d.]+)px", SOURCE)]
        self.assertGreater(len(sizes), 1)
        self.assertGreaterEqual(min(sizes), 12)

    def test_no_line_of_a_screen_is_wider_than_its_panel(self) -> None:
        for panel in ("leak-without", "leak-with", "repeat-without", "repeat-with"):
            frame = ElementTree.fromstring(SOURCE).find(f"{SVG}g[@id='{panel}']/{SVG}rect")
            assert frame is not None
            left, right = float(frame.get("x", 0)), float(frame.get("x", 0)) + float(frame.get("width", 0))
            self.assertGreater(len(texts_of(panel)), 10)
            for text in texts_of(panel):
                x, width = float(text.get("x", 0)), float(text.get("textLength", 0))
                self.assertTrue(left < x and x + width < right, (panel, text.text))

    def test_no_tag_of_a_call_stands_in_it(self) -> None:
        for source in (SOURCE, html.unescape(SOURCE)):
            self.assertNotIn(PREFIX, source)
            self.assertNotRegex(source, rf"<\s*/?\s*(?:{CALL}|{ARGUMENT}|function_)")
            self.assertIsNone(find_leaked_call(source))

    def test_no_path_of_the_machine_that_made_it_stands_in_it(self) -> None:
        self.assertNotRegex(SOURCE, r"/(?:tmp|var|root|home|private|Users|opt|usr)/|[A-Z]:\\|toolcall-hooks-home")

    def test_nothing_is_loaded_or_run(self) -> None:
        tags = {element.tag.replace(SVG, "") for element in ElementTree.fromstring(SOURCE).iter()}
        self.assertEqual(tags - {"svg", "title", "desc", "style", "g", "rect", "circle", "path", "text"}, set())
        self.assertNotRegex(SOURCE, r"href|url\(|@import|\bon\w+=")


if __name__ == "__main__":
    unittest.main()

"""Which messages hold a leaked call, and which only show one."""

from __future__ import annotations

import re
import unittest
from collections.abc import Iterator
from pathlib import Path

from recover_malformed_toolcall import ARGUMENT, CALL, PREFIX, find_leaked_call
from support import CASES, ROOT, argument, leak, opener, read_cases

FILES = ("leaks.jsonl", "leak_variations.jsonl")
FIRE = [case for name in FILES for case in read_cases(name) if case["expect"] == "fire"]
QUIET = [case for name in FILES for case in read_cases(name) if case["expect"] == "quiet"]
PROSE = "The parser reads one row at a time. The last good row is kept.\n\n"


def fires(text: str) -> bool:
    """Tell whether a message is taken for a leaked call."""
    return find_leaked_call(text) is not None


def without_brackets(text: str) -> str:
    """Return text fit for a failing test's report: a tag spelled there would be taken for one."""
    return text.replace("<", "\u2039")


def fence_round(text: str, tick: str) -> str:
    """Return text in a fence longer than any run of that character in it."""
    longest = max((len(run) for run in re.findall(f"{tick}+", text)), default=0)
    fence = tick * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def indent(text: str, by: str) -> str:
    """Return text with every line indented."""
    return "\n".join(by + line for line in text.replace("\r\n", "\n").split("\n"))


def pieces_of_a_call(prefix: str) -> tuple[str, str]:
    """Return an Edit call up to its opening tag's end, and all that follows it."""
    values = {
        "file_path": "/srv/a b.md",
        "old_string": "```sh\nmake `x`",
        "new_string": "<p>\n\n    > \u76ee\u6b21</p>",
    }
    whole = leak("Edit", prefix, **values)
    head = opener("Edit", prefix)
    return head, whole[len(head) :]


class Cases(unittest.TestCase):
    def test_every_case_comes_out_as_it_says(self) -> None:
        for name in FILES:
            for case in read_cases(name):
                with self.subTest(case["id"], why=case["why"]):
                    self.assertEqual("fire" if fires(case["text"]) else "quiet", case["expect"])

    def test_the_files_hold_both_kinds_and_no_id_twice(self) -> None:
        for name in FILES:
            cases = read_cases(name)
            self.assertEqual({case["expect"] for case in cases}, {"fire", "quiet"}, name)
            self.assertEqual(len(cases), len({case["id"] for case in cases}), name)
        self.assertGreaterEqual(len(read_cases("leak_variations.jsonl")), 150)

    def test_no_file_of_cases_spells_a_tag(self) -> None:
        for path in filter(Path.is_file, CASES.rglob("*")):
            text = path.read_text("utf-8", "replace")
            self.assertNotIn(PREFIX, text, path.name)
            self.assertNotRegex(text, rf"</?({CALL}|{ARGUMENT})", path.name)


class Shown(unittest.TestCase):
    def test_whatever_fires_is_quiet_in_a_fence(self) -> None:
        for tick in "`~":
            for case in FIRE:
                with self.subTest(case["id"], tick=tick):
                    self.assertFalse(fires(fence_round(case["text"], tick)))
                    self.assertFalse(fires(PROSE + fence_round(case["text"], tick) + "\n\nDone."))

    def test_whatever_fires_is_quiet_in_a_quote_or_a_list_items_fence(self) -> None:
        for case in FIRE:
            with self.subTest(case["id"]):
                self.assertFalse(fires(PROSE + indent(case["text"], "> ")))
                self.assertFalse(fires("- one\n\n" + indent(fence_round(case["text"], "`"), "  ")))
                self.assertFalse(fires("10. one\n\n" + indent(fence_round(case["text"], "~"), "    ")))

    def test_whatever_fires_is_quiet_as_indented_code(self) -> None:
        for by in ("    ", "\t", "      "):
            for case in FIRE:
                with self.subTest(case["id"], by=by):
                    self.assertFalse(fires(PROSE + indent(case["text"], by)))

    def test_whatever_fires_is_quiet_with_its_brackets_escaped_or_replaced(self) -> None:
        for new in ("\\<", "&lt;", "&#60;", "\u2039", "\uff1c"):
            for case in FIRE:
                if re.search(rf"(^|\n)\s*(\S+ )?(?:{PREFIX})?(?:{CALL}|court|{ARGUMENT})\s", case["text"]):
                    continue  # its bracket is lost
                with self.subTest(case["id"], new=new):
                    self.assertFalse(fires(case["text"].replace("<", new)))

    def test_whatever_fires_fires_below_prose_a_list_a_fence_and_a_table(self) -> None:
        before = (
            PROSE,
            "- one\n- two\n\n",
            "1. one\n\n   ```sh\n   make\n   ```\n\n2. two\n\n",
            "~~~~\n```\n~~~~\n\n",
            "> said\n\n",
            "| a | b |\n|---|---|\n| `x` | y |\n\n",
            "One stray ` here.\n\n",
            "# Title\n\n    code\n\n***\n\n",
        )
        for first in before:
            for case in FIRE:
                with self.subTest(case["id"], before=first):
                    self.assertTrue(fires(first + case["text"]))

    def test_whatever_is_quiet_stays_quiet_below_prose(self) -> None:
        for case in QUIET:
            with self.subTest(case["id"]):
                self.assertFalse(fires(PROSE + case["text"]))

    def test_a_code_span_of_any_length_hides_a_call(self) -> None:
        for length in range(1, 30):
            tick = "`" * length
            with self.subTest(length=length):
                self.assertFalse(fires(f"The form {tick}{leak()}{tick} is old."))
                self.assertTrue(fires(f"The form {tick}x{tick} is old.\n{leak()}"))
                self.assertTrue(fires(f"The form {tick}x{tick}` is old.\n\n{leak()}"))

    def test_a_fence_of_any_length_hides_a_call(self) -> None:
        for length in range(3, 40):
            for tick in "`~":
                with self.subTest(length=length, tick=tick):
                    fence = tick * length
                    self.assertFalse(fires(f"{fence} xml\n{leak()}\n{fence}"))
                    self.assertFalse(fires(f"{fence}\n{fence[1:]}\n{leak()}"))
                    self.assertTrue(fires(f"{fence}\nx\n{fence}{tick}\n{leak()}"))


class Cut(unittest.TestCase):
    def cuts(self) -> Iterator[tuple[str, str]]:
        for prefix in ("", PREFIX):
            for before in (
                "",
                "court\n",
                "\u547c\u3073\u51fa\u3057\n",
                "I look at it.\n\n",
                "I look at it. court ",
                "court",
            ):
                head, rest = pieces_of_a_call(prefix)
                for end in range(len(rest) + 1):
                    yield before + head + rest[:end], before

    def test_a_call_cut_anywhere_after_its_opening_tag_fires(self) -> None:
        for text, before in self.cuts():
            if before == "I look at it. court " and text.rstrip().endswith((opener("Edit"), opener("Edit", PREFIX))):
                continue  # a sentence that ends with the tag
            with self.subTest(text=without_brackets(text)):
                self.assertTrue(fires(text))

    def test_a_call_cut_within_its_opening_tag_is_quiet(self) -> None:
        for prefix in ("", PREFIX):
            head, _ = pieces_of_a_call(prefix)
            for end in range(len(head)):
                with self.subTest(end=end):
                    self.assertFalse(fires("court\n" + head[:end]))

    def test_a_second_call_cut_anywhere_does_not_hide_the_first(self) -> None:
        whole = leak() + "\ncall\n" + leak("Read", file_path="/srv/a")
        for end in range(len(leak()), len(whole)):
            with self.subTest(end=end):
                self.assertTrue(fires(whole[:end]))

    def test_a_fenced_call_cut_anywhere_is_quiet(self) -> None:
        text = f"Sample:\n\n```xml\n{leak()}\n```"
        for end in range(len(text)):
            with self.subTest(end=end):
                self.assertFalse(fires(text[:end]))


class LostBrackets(unittest.TestCase):
    def test_the_opening_tag_may_lose_its_bracket_at_the_start_of_a_line(self) -> None:
        for prefix in ("", PREFIX):
            for tool in ("Bash", "mcp__files__run", "\u8aad\u3080"):
                for before in ("", "court\n", "I look at it.\n", "I look at it.\n\n", "  "):
                    for text in (leak(tool, prefix), leak(tool, prefix).replace("\n", "")):
                        with self.subTest(before=before, text=without_brackets(text)):
                            self.assertTrue(fires(before + text[1:]))
                            self.assertTrue(
                                fires(before + text[1:].replace("\n<" + prefix + ARGUMENT, "\n" + prefix + ARGUMENT))
                            )

    def test_the_words_alone_in_a_sentence_are_quiet(self) -> None:
        for prefix in ("", PREFIX):
            for tail in ("", " opens it.", "\n"):
                with self.subTest(prefix=prefix, tail=tail):
                    self.assertFalse(fires("Write " + opener("Bash", prefix)[1:] + tail))


class AnyWord(unittest.TestCase):
    WORDS = (
        "court",
        "call",
        "Count",
        "\u547c\u3073\u51fa\u3057",
        "\u8c03\u7528",
        "\u0432\u044b\u0437\u043e\u0432",
        "\U0001f527",
        "...",
        "ok:",
        "\u2014",
        "x1_y",
        "**go**",
        "tool call",
    )

    def test_any_stray_word_may_stand_before_a_call(self) -> None:
        for word in self.WORDS:
            for between in ("\n", "\n\n", " ", "", "  \n"):
                for call in (
                    leak(),
                    leak(prefix=PREFIX),
                    leak().replace("\n", ""),
                    leak("Read", file_path="/srv/a")[:-9],
                ):
                    with self.subTest(word=word, between=between):
                        self.assertTrue(fires(word + between + call))
                        self.assertTrue(fires("All is ready.\n\n" + word + between + call))

    def test_any_tool_name_is_named_as_it_was_written(self) -> None:
        for tool in ("Bash", "mcp__files__run", "mcp__a-b__c.d", "\u8aad\u3080", "a/b:c", "x" * 200, "two words"):
            for quote in "\"'":
                with self.subTest(tool=tool, quote=quote):
                    text = leak(tool).replace(f'"{tool}"', f"{quote}{tool}{quote}")
                    self.assertEqual(find_leaked_call(text), tool)

    def test_the_first_leaked_call_is_named_not_one_that_is_shown(self) -> None:
        shown = f"```\n{leak('Read', file_path='/a')}\n```\n\nThe tag `{opener('Glob')}` opens it.\n\n"
        self.assertEqual(find_leaked_call(shown + leak("Bash") + "\n" + leak("Edit", file_path="/a")), "Bash")


class OwnDocuments(unittest.TestCase):
    def test_no_document_or_source_of_this_project_is_taken_for_a_leak(self) -> None:
        found = sorted(path for kind in ("*.md", "*.py", "*.txt", "Makefile") for path in ROOT.rglob(kind))
        self.assertGreaterEqual(len(found), 3)
        for path in found:
            with self.subTest(path=path.name):
                self.assertFalse(fires(path.read_text("utf-8", "replace")))

    def test_other_vocabularies_are_quiet_whatever_their_name_and_attributes(self) -> None:
        for word in (CALL + "-async", "remote-" + CALL, "bpel:" + CALL, "x:" + CALL, CALL + ".v2", CALL + "Later"):
            for attributes in ('name="pay"', 'name="pay" id="1"'):
                text = f"<{word} {attributes}>\n{argument('x', '1')}\n</{word}>"
                with self.subTest(text=without_brackets(text)):
                    self.assertFalse(fires(text))
                    self.assertFalse(fires(f"The flow:\n\n{text}\n\nDeploy it."))
        for attributes in (
            'name="pay" id="1"',
            'id="1" name="pay"',
            'id="1"',
            'name="pay" async',
            'name="pay"/',
            'name="pay" /',
        ):
            text = f"<{CALL} {attributes}>\n{argument('x', '1')}\n</{CALL}>"
            with self.subTest(text=without_brackets(text)):
                self.assertFalse(fires(text))


if __name__ == "__main__":
    unittest.main()

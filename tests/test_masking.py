"""Masking Markdown's code, as properties of random documents, and its time on the nastiest ones."""

from __future__ import annotations

import os
import random
import signal
import time
import unittest
from typing import Callable

from recover_malformed_toolcall import ARGUMENT, BLOCK_CODE, CALL, PREFIX, SPAN_CODE, find_leaked_call, mask_code
from support import argument, leak, opener

SEED = 20260101
INDENTS = ["", "", "", "", " ", "  ", "   ", "    ", "     ", "        ", "\t", " \t"]
MARKS = [*[""] * 8, "- ", "* ", "+ ", "1. ", "10) ", "> ", "> > ", "- - ", "-   ", "-\t", "- > ", "> 1. "]
BODIES = [
    *["a few words", "", "words `code` words", "one ` tick", "``", "`` a ` b ``", "\\` x", "`", "x `` y `"] * 3,
    *["```", "~~~", "````", "```xml", "~~~~ x", "``` a`b", "# Title", "Title\n===", "---", "***", "| a | b |"],
    *[opener("Bash"), opener("Read", PREFIX), argument("a", "`"), f"</{CALL}>", "court " + opener("Bash")],
    *[leak(), leak(prefix=PREFIX), leak().replace("\n", ""), "`" + leak() + "`", f'{CALL} name="Bash">'],
]


def document(chooser: random.Random) -> str:
    """Return a small random document of fences, lists, quotes, tabs, backticks, blank lines and leaked calls."""
    lines = [
        chooser.choice(INDENTS) + chooser.choice(MARKS) + chooser.choice(BODIES) for _ in range(chooser.randint(1, 9))
    ]
    return "\n".join(lines)


def prose(chooser: random.Random) -> str:
    """Return paragraphs without Markdown, each ended by a blank line."""
    words = ["the", "parser", "reads", "one", "row", "`keep`", "at", "a", "time,", "(so)", "\u76ee\u6b21", "don't", "5"]
    lines = [" ".join(chooser.choices(words, k=chooser.randint(1, 9))) + chooser.choice([".", ":", "", "?"])]
    return "\n".join(lines * chooser.randint(1, 3)) + "\n\n"


class Properties(unittest.TestCase):
    def documents(self, number: int) -> list[str]:
        chooser = random.Random(SEED)
        return [document(chooser) for _ in range(number)]

    def test_masking_a_masked_text_changes_nothing(self) -> None:
        for text in self.documents(4_000):
            once = mask_code(text)
            self.assertEqual(mask_code(once), once, repr(text))

    def test_masking_keeps_the_number_of_lines(self) -> None:
        for text in [*self.documents(2_000), "", "\n", "\n\n\n", "```", "```\n", "\t", "> "]:
            self.assertEqual(mask_code(text).count("\n"), text.count("\n"), repr(text))

    def test_masking_only_ever_blanks_and_expands_tabs(self) -> None:
        for text in self.documents(2_000):
            for line, masked in zip(text.split("\n"), mask_code(text).split("\n")):
                kept = [
                    (old, new)
                    for old, new in zip(line.expandtabs(4), masked)
                    if new not in (BLOCK_CODE, SPAN_CODE, " ")
                ]
                self.assertTrue(all(old == new for old, new in kept), (line, masked))

    def test_text_inside_a_fence_never_fires(self) -> None:
        chooser = random.Random(SEED)
        for text in self.documents(2_000):
            tick = chooser.choice("`~")
            fence = tick * max(3, 1 + max(map(len, text.replace("\n", " ").replace(tick, tick).split(" "))))
            before, indent = chooser.choice(["", prose(chooser), "- one\n\n"]), ""
            if before.startswith("-"):
                indent = "  "
            lines = [fence + chooser.choice(["", "xml", " md"]), *text.split("\n"), *chooser.choice([[fence], []])]
            shown = before + "\n".join(indent + line for line in lines)
            self.assertIsNone(find_leaked_call(shown), repr(shown))

    def test_text_in_a_quote_never_fires(self) -> None:
        for text in self.documents(2_000):
            shown = "\n".join("> " + line for line in text.split("\n"))
            self.assertIsNone(find_leaked_call(shown), repr(shown))

    def test_text_indented_as_code_never_fires(self) -> None:
        for text in self.documents(2_000):
            for by in ("    ", "\t"):
                shown = "\n".join(by + line for line in text.split("\n"))
                self.assertIsNone(find_leaked_call(shown), repr(shown))

    def test_prose_before_a_leak_never_silences_it(self) -> None:
        chooser = random.Random(SEED)
        loud = [text for text in self.documents(4_000) if find_leaked_call(text) is not None]
        self.assertGreater(len(loud), 500)
        for text in loud:
            before = prose(chooser)
            self.assertIsNotNone(find_leaked_call(before + text), repr(before + text))

    def test_prose_never_makes_a_quiet_text_fire(self) -> None:
        chooser = random.Random(SEED)
        quiet = [text for text in self.documents(4_000) if find_leaked_call(text) is None]
        self.assertGreater(len(quiet), 500)
        for text in quiet:
            before = prose(chooser)
            if not text.startswith((" ", "\t")):
                self.assertIsNone(find_leaked_call(before + text), repr(before + text))

    def test_whatever_comes_before_as_a_closed_document_never_silences_a_leak(self) -> None:
        for text in self.documents(2_000):
            if find_leaked_call(text) is None and not any(mark in text for mark in ("```", "~~~")):
                end = "\n\n# Next\n\ncourt\n" + leak()
                self.assertIsNotNone(find_leaked_call(text + end), repr(text))

    def test_windows_line_ends_make_no_difference(self) -> None:
        for text in self.documents(2_000):
            self.assertEqual(find_leaked_call(text.replace("\n", "\r\n")), find_leaked_call(text), repr(text))

    def test_random_characters_are_never_taken_for_a_leak_and_never_raise(self) -> None:
        chooser = random.Random(SEED)
        alphabet = "`~>#*-+=<>/\\\"' \t\n\r\x00\x01&;:.\u76ee\U0001f527aname1" + "\ud800"
        for _ in range(4_000):
            text = "".join(chooser.choices(alphabet, k=chooser.randint(0, 60)))
            self.assertIsNone(find_leaked_call(text), repr(text))


def growing_runs(size: int) -> str:
    """Return runs of 1, 2, 3, … backticks, none of which has a partner."""
    runs = ["`" * length for length in range(1, int((2 * size) ** 0.5))]
    return " ".join(runs)[:size]


def repeated(piece: str) -> Callable[[int], str]:
    return lambda size: (piece * (size // len(piece) + 1))[:size]


CUT = opener("Bash") + f'<{ARGUMENT} name="c">'
NASTY: dict[str, Callable[[int], str]] = {
    "backtick runs of growing length": growing_runs,
    "single backticks": repeated("`x "),
    "escaped backticks": repeated("\\`"),
    "backslashes": repeated("\\"),
    "backslashes and backticks": repeated("\\\\`\\"),
    "openers without closers": repeated(opener("Bash")),
    "openers with arguments": repeated(CUT),
    "openers behind backticks": repeated("` a b " + CUT),
    "calls in sentences": repeated("the form " + leak().replace("\n", "") + " is old "),
    "openers cut in their name": repeated(f'<{CALL} name="{"x" * 190}'),
    "blanks in an opener": lambda size: f"<{CALL} name" + " " * size + '="Bash">',
    "blanks after an opener": lambda size: opener("Bash") + " " * size,
    "lost brackets": repeated(f'{CALL} name="x">\n'),
    "arguments": lambda size: opener("Bash") + repeated(argument("a", "`"))(size),
    "closers": lambda size: opener("Bash") + repeated(f"</{CALL}>")(size),
    "fences": repeated("```\n"),
    "fences in lists": repeated("- ```\n"),
    "one deep list": repeated("- "),
    "a list in a list": lambda size: "\n".join("  " * depth + "- x" for depth in range(int(size**0.5))),
    "flat lists": repeated("- x\n"),
    "quotes": repeated(">\n"),
    "rules": repeated("- - -\n"),
    "blank lines": repeated("\n"),
    "blanks": repeated(" "),
    "tabs": repeated("\t"),
    "short paragraphs": repeated("a`b\n\n"),
    "one paragraph": repeated("a`b\n"),
    "one huge line": repeated("word "),
}


class Time(unittest.TestCase):
    LARGE = int(os.environ.get("GROWTH_BYTES", "120000"))  # bytes of the larger texts; `make fuzz` says 2 MB

    def seconds(self, text: str) -> float:
        """Return the processor time that judging a text takes in a forked child; a number beyond all if too long."""
        limit = 5 * self.LARGE // 120_000
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(limit)
            start = time.process_time()
            find_leaked_call(text)
            os.write(writer, b"%f" % (time.process_time() - start))
            os._exit(0)
        os.close(writer)
        seconds = os.read(reader, 100)
        os.close(reader)
        os.waitpid(child, 0)
        return float(seconds or limit * 10)

    def test_time_grows_no_faster_than_the_text(self) -> None:
        end = "\n\ncourt\n" + leak()
        for name, build in NASTY.items():
            with self.subTest(name):
                sizes = (self.LARGE // 6, self.LARGE)
                small, large = (self.seconds(build(size) + end) for size in sizes)
                if large > 10 * max(small, 0.01):  # once more: other processes disturb
                    small, large = (min(self.seconds(build(size) + end) for _ in range(3)) for size in sizes)
                self.assertLess(large, self.LARGE / 120_000)
                self.assertLess(large, 14 * max(small, 0.01))


if __name__ == "__main__":
    unittest.main()

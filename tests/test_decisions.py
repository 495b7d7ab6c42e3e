"""Each decision of both scripts on both sides of its edge: what a broken one would let pass (see mutate.py)."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import recover_malformed_toolcall as recover
import support
import tool_coach as coach
from support import GIVE_UP, argument, leak, opener

SCRIPTS = (recover, coach)
ARGUMENT, CALL, PREFIX = recover.ARGUMENT, recover.CALL, recover.PREFIX
ONE_LINE = leak().replace("\n", "")
END = f"</{CALL}>"
CUT = opener("Bash") + f'<{ARGUMENT} name="c">'


def masked(text: str) -> str:
    """Return text masked, "@" for a character of block code and "%" for one of a code span."""
    return recover.mask_code(text).replace(recover.BLOCK_CODE, "@").replace(recover.SPAN_CODE, "%")


def find(text: str) -> str | None:
    return recover.find_leaked_call(text)


class Tags(unittest.TestCase):
    def test_the_words_of_a_tag_are_those_of_the_client(self) -> None:
        words = [word[::-1] for word in (PREFIX, CALL, ARGUMENT)]
        self.assertEqual(words, [":lmt" + "na", "ekov" + "ni", "retem" + "arap"])

    def test_what_an_opening_tag_may_look_like(self) -> None:
        for what, text in {
            "a word of one letter": opener("Bash").replace(CALL, "c") + argument("a", "b") + END,
            "a name of one letter": opener("B"),
            "a name of one letter in single quotes": opener("B").replace('"', "'"),
            "a name of 200 letters": opener("B" * 200),
            "blanks wherever they may be": f'<{CALL}  name = "Bash" >',
        }.items():
            with self.subTest(what):
                self.assertIsNotNone(find(text))
        for what, text in {
            "an empty name": opener(""),
            "an empty name in single quotes": opener("").replace('"', "'"),
            "a name of 201 letters": opener("B" * 201),
            "no blank before the attribute": f'<{CALL}name="Bash">',
            "an unquoted name": f"<{CALL} name=Bash>",
            "quotes of two kinds": f"<{CALL} name=\"Bash'>",
            "an escaped bracket": "\\" + opener("Bash"),
            "that of an argument": f'<{PREFIX}{ARGUMENT} name="a">' + argument("b", "c") + END,
        }.items():
            with self.subTest(what):
                self.assertIsNone(find(text))

    def test_a_lost_bracket_may_have_one_word_before_it(self) -> None:
        lost = leak()[1:]
        for before, found in (("", "Bash"), ("court ", "Bash"), ("x ", "Bash"), ("a b ", None), ("a b\n", "Bash")):
            with self.subTest(before):
                self.assertEqual(find(before + lost), found)

    def test_a_call_reaches_to_its_own_closing_tag(self) -> None:
        call = opener("Bash") + argument("c", "a `b")
        text = f"{END} {call}{END} and a `{END}"
        self.assertEqual(recover.mask_code(text), text)

    def test_a_bare_mark_of_a_quotation_is_none(self) -> None:
        for text, masked in ((">", ">"), ("> ", "> "), ("> a", "\0\0\0"), (">a", "\0\0")):
            self.assertEqual(recover.mask_code(text), masked)

    def test_what_is_no_call_hides_none_behind_it(self) -> None:
        for text in (
            opener("") + argument("a", "b") + END,
            opener(""),
            opener("B" * 201),
            opener("Read") + " opens it",
            '<x name="a">b</x>',
        ):
            self.assertEqual(find(f"{text}\n\n{leak()}"), "Bash", text.replace("<", "\u2039"))

    def test_what_an_argument_may_look_like(self) -> None:
        """Behind a garbled word nothing but an argument tells that it is a call."""
        garbled = opener("Bash", PREFIX).replace(CALL, "court")
        for what, text in {
            "an empty name": argument("", "x"),
            "single quotes": argument("a", "x").replace('"', "'"),
            "cut after the sign of equality": f"<{ARGUMENT} name=",
            "cut within its name": f'<{ARGUMENT} name="comm',
            "cut after its name": f'<{ARGUMENT} name="comm"',
            "no bracket": f'{ARGUMENT} name="a">x',
            "a prefix": f'<{PREFIX}{ARGUMENT} name="a">x',
            "blanks before it": f' \n <{ARGUMENT}  name = "a" >x',
        }.items():
            with self.subTest(what):
                self.assertEqual(find(garbled + text), "Bash")
        for what, text in {
            "no blank before the attribute": f'<{ARGUMENT}name="a">x',
            "no attribute": f"<{ARGUMENT}>x",
            "another attribute": f'<{ARGUMENT} id="a">x',
            "cut before the sign of equality": f"<{ARGUMENT} name",
            "an unquoted name": f"<{ARGUMENT} name=a>x",
            "text before it": "x" + argument("a", "x"),
        }.items():
            with self.subTest(what):
                self.assertIsNone(find(garbled + text))

    def test_behind_a_garbled_word_without_prefix_a_closing_tag_tells(self) -> None:
        garbled = opener("Bash").replace(CALL, "court")
        for text, fires in ((argument("a", "x" * 3000) + END, True), (argument("a", "x"), False), ("x" + END, False)):
            self.assertEqual(find(garbled + text) is not None, fires)

    def test_what_may_follow_a_call_amid_a_sentence(self) -> None:
        for what, text in {
            "an argument": argument("a", "x"),
            "an argument without its bracket": f'\n{ARGUMENT} name="a">x',
            "a closing tag of an argument": f"</{ARGUMENT}> x",
            "a closing tag of a call": END,
            "a closing tag of a block": "</function_calls> x",
            "a closing tag with the prefix": f"</{PREFIX}{ARGUMENT}> x",
            "another tag with the prefix": f"<{PREFIX}x> x",
            "a tag that is cut off": "<x",
            "a bracket at the end": "\n<",
        }.items():
            with self.subTest(what):
                self.assertIsNotNone(find("Now run it with " + opener("Bash") + text))
        for what, text in {
            "nothing": "",
            "blanks": " \n",
            "a word": " opens it",
            "another tag": "<x> y",
            "another closing tag": "</x> y",
        }.items():
            with self.subTest(what):
                self.assertIsNone(find("Now run it with " + opener("Bash") + text))

    def test_a_tag_without_its_bracket_counts_alone_or_before_an_argument(self) -> None:
        bare = opener("Bash")[1:]
        for text in (bare, bare + "\n", "\n" + bare, "Look.\n" + bare, bare + END, bare + f"\n<{PREFIX}x>"):
            self.assertIsNotNone(find(text), text.replace("<", "\u2039"))
        for text in (
            *("word " + bare, "word " + bare + END, bare + " opens it", bare + "<x> y", "<" + CALL + ":" + bare),
            *(bare + "ls -la" + END, bare + "\nls -la\n" + END, "Now run it with " + bare + argument("a", "b") + END),
        ):
            self.assertIsNone(find(text), text.replace("<", "\u2039"))


class Sentences(unittest.TestCase):
    def test_a_call_may_begin_after_the_end_of_a_sentence_or_one_stray_word(self) -> None:
        for end in ".:!?\u2026\u3002\uff1a\uff01\uff1f":
            with self.subTest(end):
                self.assertIsNotNone(find(f"I look at it{end} {opener('Bash')}"))
        for before in ("", "court ", "  court\t", "Two words.\ncourt "):
            with self.subTest(before):
                self.assertIsNotNone(find(before + opener("Bash")))
        for before in ("The file " + "x" * 60 + " ", "I look at it, ", "I look at X ", "Say (so) ", "- a - "):
            with self.subTest(before):
                self.assertIsNone(find(before + opener("Bash")))

    def test_a_call_with_text_in_place_of_arguments(self) -> None:
        for what, text, fires in (
            ("on lines of its own", opener("Bash") + "\nls -la\n" + END, True),
            ("on its line, closed there", opener("Bash") + "ls -la" + END, True),
            ("on its line, closed later", opener("Bash") + "ls -la\n" + END, False),
            ("on its line, not closed", opener("Bash") + "ls -la", False),
            ("on lines of its own amid a sentence", "Now run it with " + opener("Bash") + "\nls -la\n" + END, False),
            ("after a blank line", opener("Bash") + " \n\nls -la\n" + END, True),
            ("after a blank line, not closed", opener("Bash") + " \n\nls -la", False),
        ):
            with self.subTest(what):
                self.assertEqual(find(text) is not None, fires)

    def test_a_whole_call_is_a_mention_if_prose_goes_on_after_it(self) -> None:
        for what, before, call, after, fires in (
            ("small letters after one on a line", "", ONE_LINE, " is old", False),
            ("small letters and no blank", "", ONE_LINE, "is old", False),
            ("a sentence after one on a line", "", ONE_LINE, " Waiting.", True),
            ("blanks after one on a line", "", ONE_LINE, "  \t", True),
            ("a sentence after one in a sentence", "The form is this: ", ONE_LINE, " Waiting.", False),
            ("a sentence after one behind a stray word", "court ", ONE_LINE, " Waiting.", True),
            ("small letters on the next line", "", ONE_LINE, "\nis old", True),
            ("nothing after one in a sentence", "The form is ", ONE_LINE, "", True),
            ("small letters after one on lines", "", leak(), " is old", True),
            ("small letters after one on lines in a sentence", "The form is ", leak(), " is old", False),
            ("a sentence after one on lines in a sentence", "The form is ", leak(), " Waiting.", True),
            ("a tag after one in a sentence", "The form is this: ", ONE_LINE, "</function_calls>", True),
            ("another call after one in a sentence", "The forms are these: ", ONE_LINE, ONE_LINE + " and so on", False),
            ("a figure after one on a line", "", ONE_LINE, " 2 rows", False),
        ):
            with self.subTest(what):
                self.assertEqual(find(before + call + after) is not None, fires)

    def test_is_mention_on_each_side_of_each_condition(self) -> None:
        for words, leads, on_one_line, tail, expected in (
            (0, True, True, "", False),
            (5, False, True, "   ", False),
            (0, True, True, "is old", True),
            (0, True, True, " The", False),
            (1, True, True, "The", False),
            (2, True, True, "The", True),
            (5, False, True, "The", True),
            (0, True, False, "is old", False),
            (5, True, False, "is old", False),
            (5, False, False, "is old", True),
            (5, False, False, " The", False),
            (5, False, False, "</x>", False),
            (5, False, False, f"<{CALL}", True),
            (5, False, False, f"<{PREFIX}{CALL}", True),
            (5, False, False, f"<{PREFIX}x", False),
            (5, False, False, f"a <{PREFIX}x", True),
        ):
            with self.subTest(words=words, leads=leads, on_one_line=on_one_line, tail=tail.replace("<", "\u2039")):
                self.assertEqual(recover.is_mention(words, leads, on_one_line, tail), expected)


class Blocks(unittest.TestCase):
    def test_the_columns_of_the_list_items_that_a_line_opens(self) -> None:
        for line, base, interrupts, columns in (
            ("- a", 0, False, [2]),
            ("  - a", 0, False, [4]),
            ("   - a", 0, False, [5]),
            ("    - a", 0, False, []),
            ("    - a", 2, False, [6]),
            ("      - a", 2, False, []),
            ("- - a", 0, False, [2, 4]),
            ("-  * 1. a", 0, False, [3, 5, 8]),
            ("-a", 0, False, []),
            ("-", 0, False, [2]),
            ("-    ", 0, False, [2]),
            ("-    a", 0, False, [5]),
            ("-     a", 0, False, [2]),
            ("- - - a", 0, False, [2, 4, 6]),
            ("- - -", 0, False, []),
            ("- -", 0, False, [2, 4]),
            ("- * * *", 0, False, [2]),
            ("1. a", 0, False, [3]),
            ("1) a", 0, False, [3]),
            ("1 a", 0, False, []),
            (". a", 0, False, []),
            ("123456789. a", 0, False, [11]),
            ("1234567890. a", 0, False, []),
            ("+ a", 0, True, [2]),
            ("1. a", 0, True, [3]),
            ("01. a", 0, True, [4]),
            ("2. a", 0, True, []),
            ("2. a", 0, False, [3]),
            ("- 2. a", 0, True, [2, 5]),
            ("-", 0, True, []),
            ("-  ", 0, True, []),
            ("- -", 0, True, [2, 4]),
            ("a - b", 0, False, []),
            ("- " * 15 + "a", 0, False, [2 * depth for depth in range(1, 16)]),
        ):
            with self.subTest(line[:20], base=base, interrupts=interrupts):
                self.assertEqual(recover.items_opened(line, base, interrupts), columns)

    def test_what_is_block_code_and_what_is_not(self) -> None:
        for what, text, expected in (
            ("indented code", "    x", "@@@@@"),
            ("three blanks are none", "   x", "   x"),
            ("it cannot interrupt a paragraph", "a\n    x", "a\n    x"),
            ("it follows a blank line", "a\n\n    x", "a\n\n@@@@@"),
            ("it follows a heading", "# a\n    x", "# a\n@@@@@"),
            ("it follows a heading of six", "###### a\n    x", "###### a\n@@@@@"),
            ("seven are no heading", "####### a\n    x", "####### a\n    x"),
            ("a heading without text", "#\n    x", "#\n@@@@@"),
            ("a word with a sign is no heading", "#a\n    x", "#a\n    x"),
            ("it follows an underlined heading", "a\n===\n    x", "a\n===\n@@@@@"),
            ("it follows another underlined heading", "a\n-  \n    x", "a\n-  \n@@@@@"),
            ("an underline under nothing is a paragraph", "===\n    x", "===\n    x"),
            ("an underline beside a mark is a paragraph", "- ===\n      x", "- ===\n      x"),
            ("an underline of two kinds is a paragraph", "a\n=-\n    x", "a\n=-\n    x"),
            ("it follows a rule", "***\n    x", "***\n@@@@@"),
            ("it follows a rule with blanks", "_ _ _ \n    x", "_ _ _ \n@@@@@"),
            ("a rule goes before a list", "- - -\n    x", "- - -\n@@@@@"),
            ("two marks are no rule", "- -\n    x", "- -\n    x"),
            ("two other marks are no rule", "**\n    x", "**\n    x"),
            ("marks of two kinds are no rule", "*-*\n    x", "*-*\n    x"),
            ("in a list item it has four more", "- a\n\n      x", "- a\n\n  @@@@@"),
            ("in a list item three more are text", "- a\n\n     x", "- a\n\n     x"),
            ("beside its mark", "-     x", "- @@@@@"),
            ("beside a mark of its own line", "-\n      x", "-\n  @@@@@"),
            ("a mark without a blank opens no item", "-a\n\n     x", "-a\n\n@@@@@@"),
            ("a number of nine figures opens one", "123456789. a\n\n            x", "123456789. a\n\n            x"),
            ("a number of ten does not", "1234567890. a\n\n            x", "1234567890. a\n\n" + "@" * 13),
            ("no number does not", ". a\n\n     x", ". a\n\n@@@@@@"),
            ("a list item may be indented", "  - a\n\n       x", "  - a\n\n       x"),
            ("text at the margin ends a list", "- a\n\nb\n\n     x", "- a\n\nb\n\n@@@@@@"),
            ("a blank line does not", "- a\n\n\n     x", "- a\n\n\n     x"),
            ("a list item ends the deeper ones", "- a\n  - b\n- c\n\n       x", "- a\n  - b\n- c\n\n  @@@@@@"),
            (
                "text in a list item ends the deeper ones",
                "- a\n  - b\n\n  c\n\n       x",
                "- a\n  - b\n\n  c\n\n  @@@@@@",
            ),
            ("a second item cannot begin in a paragraph", "a\n2. b\n\n     x", "a\n2. b\n\n@@@@@@"),
            ("it can after a blank line", "a\n\n2. b\n\n     x", "a\n\n2. b\n\n     x"),
            (
                "it can after a deeper item's paragraph",
                "- a\n  - b\n  2. c\n\n        x",
                "- a\n  - b\n  2. c\n\n        x",
            ),
            ("it can after a list item's paragraph", "- a\n2. b\n\n     x", "- a\n2. b\n\n     x"),
            ("no underline ends a list item's paragraph", "- a\n===\n    x", "- a\n===\n    x"),
            ("a quotation", "> x\ny", "@@@\ny"),
            ("a mark of quotation alone is none", ">\nx", ">\nx"),
            ("a quotation in a list item", "- a\n  > x", "- a\n  @@@"),
            ("a quotation ends a paragraph", "a `b\n> x\nc` d", "a `b\n@@@\nc` d"),
            ("code that is masked already", "a\n\0\0\n    x", "a\n@@\n@@@@@"),
            ("a line that begins with such", "a\n\0 x", "a\n@@@"),
        ):
            with self.subTest(what):
                self.assertEqual(masked(text), expected)

    def test_where_a_fence_begins_and_ends(self) -> None:
        for what, text, expected in (
            ("of backticks", "```\nx\n```\ny", "@@@\n@\n@@@\ny"),
            ("of tildes", "~~~ a`b\nx\n~~~\ny", "@@@@@@@\n@\n@@@\ny"),
            ("not closed", "```\nx", "@@@\n@"),
            ("two are none", "``\nx\n``\ny", "%%\n%\n%%\ny"),
            ("two tildes are none", "~~\nx", "~~\nx"),
            ("its words hold no backtick", "``` a`\nx\n\ny", "``` a`\nx\n\ny"),
            ("its words hold no span", "``` a\1\nx", "``` a%\nx"),
            ("closed by more", "```\n````\ny", "@@@\n@@@@\ny"),
            ("not closed by fewer", "````\n```\ny", "@@@@\n@@@\n@"),
            ("not closed by others", "```\n~~~\ny", "@@@\n@@@\n@"),
            ("not closed by a line with words", "```\n``` a\ny", "@@@\n@@@@@\n@"),
            ("closed by a line with blanks", "```\n```  \ny", "@@@\n@@@@@\ny"),
            ("closed with three blanks before", "```\n   ```\ny", "@@@\n@@@@@@\ny"),
            ("not closed with four", "```\n    ```\ny", "@@@\n@@@@@@@\n@"),
            ("a blank line in it", "```\n\ny\n```\nz", "@@@\n@\n@\n@@@\nz"),
            ("in a list item", "- ```\n  x\n  ```\n  y", "- @@@\n  @\n  @@@\n  y"),
            ("a blank line in that", "- ```\n\n  x\n  ```\n  y", "- @@@\n  @\n  @\n  @@@\n  y"),
            ("ended with its list item", "- ```\n  x\ny", "- @@@\n  @\ny"),
            ("closed in a list item with three more blanks", "- ```\n     ```\n  y", "- @@@\n  @@@@@@\n  y"),
            ("not closed in a list item with four", "- ```\n      ```\n  y", "- @@@\n  @@@@@@@\n  @"),
            ("in list items of one line", "- - ```\n    x\n    ```\n    y", "- - @@@\n    @\n    @@@\n    y"),
            ("it ends a paragraph", "a `b\n```\nx\n```\nc` d", "a `b\n@@@\n@\n@@@\nc` d"),
            ("four blanks in a paragraph begin none", "a\n    ```\nx", "a\n    ```\nx"),
            ("tabs are blanks", "\t```\nx", "@@@@@@@\nx"),
        ):
            with self.subTest(what):
                self.assertEqual(masked(text), expected)


class Spans(unittest.TestCase):
    def test_which_ticks_are_partners(self) -> None:
        for what, text, expected in (
            ("two of one length", "a `b` c", "a %%% c"),
            ("over a line end", "a `b\nc` d", "a %%\n%% d"),
            ("not over a blank line", "a `b\n\nc` d", "a `b\n\nc` d"),
            ("not of another length", "a ``b` c", "a ``b` c"),
            ("others within", "a `` b ` c `` d", "a %%%%%%%%%%% d"),
            ("the first two of three", "`a` b`", "%%% b`"),
            ("two pairs", "`a` b `c`", "%%% b %%%"),
            ("an escaped tick opens none", "\\`a` b` c", "\\`a%%%% c"),
            ("an escaped tick shortens a run", "\\``a` b", "\\`%%% b"),
            ("an escaped backslash escapes nothing", "\\\\`a` b", "\\\\%%% b"),
            ("an escaped tick closes", "`a\\` b", "%%%% b"),
            ("in a heading", "# `a` b", "# %%% b"),
            ("a heading ends a paragraph", "a `b\n# c` d", "a `b\n# c` d"),
        ):
            with self.subTest(what):
                self.assertEqual(masked(text), expected)

    def test_a_calls_arguments_have_ticks_of_their_own(self) -> None:
        call = leak(command="a `b c").replace("\n", "")
        for what, text, spans in (
            ("none after it", call, 0),
            ("a span after it", call + " c `d` e", 3),
            ("a span right after it", call + "`d` e", 3),
            ("a span before it", "`d` e.\n" + call, 3),
            ("two calls", call + "\n" + call, 0),
            ("a tick after two calls", call + "\n" + call + " d ` e", 0),
            ("a tick after one whose argument begins with a tick", leak(command="`b") + " d ` e", 0),
            ("a span in its arguments", leak(command="`a` b` c"), 3),
            ("not closed, on a line of its own", CUT + "a ` b\nc ` d", len("` b") + len("c `")),
            ("not closed, behind a stray word", "` d\ncourt " + CUT + "a ` b", 0),
            ("not closed, behind two words", "`d, run it " + CUT + "a` b", len("`d, run it a`") + len(CUT)),
            ("not closed, behind two words of a line", "`d\nrun it " + CUT + "a` b", len("`drun it a`") + len(CUT)),
            ("not closed, amid a sentence", "a `b run " + CUT + "c` d", len("`b run c`") + len(CUT)),
            ("closed, amid a sentence", "a `b run it " + call + " d` e", len("`b run it ") + len(call) + len(" d`")),
        ):
            with self.subTest(what):
                self.assertEqual(recover.mask_spans(text).count(recover.SPAN_CODE), spans)

    def test_a_call_right_behind_a_tick_is_what_a_span_begins_with(self) -> None:
        for before, hides in (
            ("`", True),
            ("` ", True),
            ("`c ", True),
            ("`court", False),
            ("`court ", True),
            ("`court  ", True),
            ("`" + "x" * 40 + " ", True),
            ("`" + "x" * 41 + " ", False),
            ("`two words\n", False),
            ("`  ", False),
        ):
            with self.subTest(before):
                self.assertEqual(recover.SPAN_CODE in recover.mask_spans(before + CUT + "x" * 500 + "` x"), hides)


NOW = 1_000_000_000.0


def said(reply: str, *blocks: object, **more: Any) -> dict[str, Any]:
    """Return a transcript's row of the model's."""
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    model = more.pop("model", "x")
    return {"type": "assistant", "message": {"id": reply, "content": content, "model": model}, **more}


def heard(*kinds: str) -> dict[str, Any]:
    """Return a row of the other side: a prompt, or a tool's result."""
    return {"type": "user", "message": {"content": [{"type": kind} for kind in kinds]}}


CALLED = {"type": "tool_use", "id": "t1"}
PROMPT, RESULT = heard("text"), heard("tool_result")
TURN = {"texts": [], "tool_use": False, "synthetic": False, "tool_ran": False, "written": True}


class Turns(unittest.TestCase):
    def test_what_the_transcript_says_of_a_turn(self) -> None:
        for what, rows, expected in (
            ("nothing", [], {"written": False}),
            ("a reply", [PROMPT, said("m", "a")], {"texts": ["a"]}),
            ("blanks around it", [PROMPT, said("m", " a\n")], {"texts": ["a"]}),
            ("two blocks", [said("m", "a", "b")], {"texts": ["a", "b"]}),
            ("two rows of one reply", [said("m", "a"), said("m", "b")], {"texts": ["a", "b"]}),
            ("three rows of one reply", [said("m", "a"), said("m", "b"), said("m", "c")], {"texts": ["a", "b", "c"]}),
            ("two replies", [said("m", "a"), said("n", "b")], {"texts": ["b"]}),
            ("a reply without an id", [said("m", "a"), {"type": "assistant", "message": {}}], {}),
            ("no reply since the prompt", [said("m", "a"), PROMPT], {"written": False}),
            ("no reply since a result", [said("m", "a"), RESULT], {"written": False, "tool_ran": True}),
            (
                "a call whose reply is not there yet",
                [said("m", "a", CALLED), RESULT],
                {"written": False, "tool_ran": True},
            ),
            ("a call in it", [said("m", "a", CALLED)], {"texts": ["a"], "tool_use": True, "tool_ran": True}),
            ("a call before it", [said("m", CALLED), RESULT, said("n", "b")], {"texts": ["b"], "tool_ran": True}),
            ("a call before it, no result", [said("m", CALLED), said("n", "b")], {"texts": ["b"], "tool_ran": True}),
            ("a call before the prompt", [said("m", CALLED), RESULT, PROMPT, said("n", "b")], {"texts": ["b"]}),
            ("a result beside a text", [PROMPT, heard("text", "tool_result"), said("n")], {"tool_ran": True}),
            ("from the client", [said("m", "a", model="<synthetic>")], {"texts": ["a"], "synthetic": True}),
            ("an older one from the client", [said("m", "a", model="<synthetic>"), said("n", "b")], {"texts": ["b"]}),
            ("a subagent's", [said("m", "a"), said("n", "b", isSidechain=True)], {"texts": ["a"]}),
            ("a row of another type", [said("m", "a"), {**said("n", "b"), "type": "system"}], {"texts": ["a"]}),
            ("a message that is none", [said("m", "a"), {"type": "user", "message": "x"}], {"texts": ["a"]}),
            ("a text alone", [{"type": "assistant", "message": {"id": "m", "content": " a "}}], {"texts": ["a"]}),
            ("blocks that are none", [said("m", "a", 1, None, {"type": "text", "text": 5})], {"texts": ["a", ""]}),
            ("another kind of block", [said("m", {"type": "thinking", "text": "a"})], {}),
        ):  # fmt: skip
            with self.subTest(what):
                self.assertEqual(recover.last_turn(rows[::-1], False), {**TURN, **expected})
        rows = [said("m", "a"), said("n", "b", isSidechain=True)]
        self.assertEqual(recover.last_turn(rows[::-1], True)["texts"], ["b"])

    def test_what_a_message_is_judged_to_be(self) -> None:
        leaked, called = leak(), {**TURN, "tool_use": True}
        for what, message, turn, expected in (
            ("nothing", "", None, ("clean", "")),
            ("a leak", leaked, None, ("leak", "Bash")),
            ("prose", "Done.", TURN, ("clean", "")),
            ("the clients sentence, by whom is not known", GIVE_UP, None, ("clean", "")),
            ("the clients sentence, by the model", GIVE_UP, TURN, ("clean", "")),
            ("the clients sentence, by the client", GIVE_UP, {**TURN, "synthetic": True}, ("give-up", "")),
            ("the same in the transcript", "", {**TURN, "texts": [GIVE_UP], "synthetic": True}, ("give-up", "")),
            ("the same among others", "", {**TURN, "texts": ["a", GIVE_UP], "synthetic": True}, ("clean", "")),
            ("blanks around it", f" {GIVE_UP}\n", {**TURN, "synthetic": True}, ("give-up", "")),
            ("a leak in the transcript", "", {**TURN, "texts": ["a", leaked]}, ("leak", "Bash")),
            ("a leak in two blocks", "", {**TURN, "texts": [opener("Glob"), argument("a", "b")]}, ("leak", "Glob")),
            ("a leak beside a call", leaked, {**called, "texts": ["a", leaked]}, ("clean", "")),
            ("a leak beside a call, in the transcript", "", {**called, "texts": [leaked]}, ("clean", "")),
            ("a leak, the call beside another", leaked, {**called, "texts": [leaked, "a"]}, ("leak", "Bash")),
            ("a leak, the call beside nothing", leaked, called, ("leak", "Bash")),
        ):
            with self.subTest(what):
                self.assertEqual(recover.judge(message, turn), expected)

    def test_what_is_spent_and_when_it_is_handed_back(self) -> None:
        for what, state, cap, goes_on, outcome, count, row in (
            ("the first", {}, 8, False, "block", 1, 1),
            ("one more", {"count": 3, "ts": NOW}, 8, False, "block", 4, 1),
            ("the last", {"count": 9, "ts": NOW}, 8, False, "block", 10, 1),
            ("one too many", {"count": 10, "ts": NOW}, 8, False, "hand-back", 0, 0),
            ("at the end of the window", {"count": 3, "ts": NOW - 600}, 8, False, "block", 4, 1),
            ("after the window", {"count": 3, "ts": NOW - 601}, 8, False, "block", 1, 1),
            ("after the window, a full row", {"count": 3, "ts": NOW - 601, "blocks": 8}, 8, True, "block", 1, 1),
            ("after a time to come", {"count": 3, "ts": NOW + 1}, 8, False, "block", 1, 1),
            ("in a row", {"count": 3, "ts": NOW, "blocks": 7}, 8, True, "block", 4, 8),
            ("in a row that is full", {"count": 8, "ts": NOW, "blocks": 8}, 8, True, "hand-back", 0, 0),
            ("in a new row", {"count": 8, "ts": NOW, "blocks": 8}, 8, False, "block", 9, 1),
            ("where a row has no end", {"count": 8, "ts": NOW, "blocks": 90}, 0, True, "block", 9, 0),
            ("in a row of one", {"count": 1, "ts": NOW, "blocks": 1}, 1, True, "hand-back", 0, 0),
            ("a count of another kind", {"count": "3", "ts": NOW}, 8, False, "block", 1, 1),
            ("a count below nothing", {"count": -1, "ts": NOW}, 8, False, "block", 1, 1),
            ("a count that is no number", {"count": float("nan"), "ts": NOW}, 8, False, "block", 1, 1),
            ("a time beyond every float", {"count": 3, "ts": 10**400}, 8, False, "block", 1, 1),
            ("no time", {"count": 3}, 8, False, "block", 1, 1),
        ):
            with self.subTest(what):
                new = {"count": count, "ts": NOW, "last_idx": 5, "blocks": row}
                self.assertEqual(recover.spend({**state, "last_idx": 5}, NOW, cap, goes_on), (outcome, new))

    def test_what_the_model_reads_names_the_tool_if_its_name_is_plain(self) -> None:
        for tool, named in (
            ("Bash", True),
            ("a" * 64, True),
            ("a" * 65, False),
            ("\u00e9", False),
            ("a b", False),
            ("", False),
        ):
            text = recover.recovery_text("leak", tool, "Do it.", 3, False)
            with self.subTest(tool):
                self.assertIn(f"your last {tool if named else 'tool'} call was written out as text,", text)
                self.assertTrue(text.endswith("stop. Do it. (recovery attempt 3/10)"))
        self.assertIn(
            "your last tool call could not be parsed,", recover.recovery_text("give-up", "", "Do it.", 3, False)
        )
        self.assertIn("report in full. Do it.", recover.recovery_text("leak", "Bash", "Do it.", 3, True))
        self.assertNotIn("markup", recover.recovery_text("give-up", "", "Do it.", 3, False))
        self.assertIn("a subagent's tool calls", recover.hand_back_text(True))
        self.assertIn("it ends without them", recover.hand_back_text(True))
        self.assertIn("the model's tool calls", recover.hand_back_text(False))


class Calls(unittest.TestCase):
    def test_which_calls_are_the_same(self) -> None:
        def key(tool: str, given: object, agent: str | None = None) -> str:
            return coach.key_of({"agent_id": agent}, {"tool_name": tool, "tool_input": given})

        one = key("Read", {"a": 1, "b": {"c": 2}})
        self.assertRegex(one, r"^[0-9a-f]{64}$")
        self.assertEqual(one, key("Read", {"b": {"c": 2}, "a": 1}))
        for other in (
            key("Edit", {"a": 1, "b": {"c": 2}}),
            key("Read", {"a": 1, "b": {"c": 3}}),
            key("Read", {"a": "1", "b": {"c": 2}}),
            key("Read", {"a": 1, "b": {"c": 2}, "description": "x"}),
            key("Read", {"a": 1, "b": {"c": 2}}, agent="a1"),
            key("Read", {}),
        ):
            self.assertNotEqual(one, other)
        for tool in ("Agent", "Task", "Monitor"):
            self.assertEqual(key(tool, {"a": 1, "description": "x"}), key(tool, {"a": 1, "description": "y"}))
            self.assertNotEqual(key(tool, {"a": {"description": "x"}}), key(tool, {"a": {"description": "y"}}))
            self.assertNotEqual(key(tool, {"a": 1}), key(tool, {"a": 2}))
            self.assertNotEqual(key(tool, ["description"]), key(tool, ["x"]))
        self.assertNotEqual(key("Read", {"a": 1, "description": "x"}), key("Read", {"a": 1, "description": "y"}))
        inputs: list[object] = [
            None,
            [1, 2],
            "a string",
            7,
            {},
        ]  # the client refuses what is no object, and tells PostToolBatch so
        self.assertEqual(len({key("Read", given) for given in inputs}), len(inputs))

    def test_how_an_error_is_quoted(self) -> None:
        size = coach.QUOTE_CHARS
        for what, error, quoted in (
            ("short", "No such file.", "No such file."),
            ("blanks around it", " \nNo.\n", "No."),
            ("a refusal", "<tool_use_error>No.</tool_use_error>", "No."),
            ("as long as may be", "x" * size, "x" * size),
            ("that long but for what is dropped", "<tool_use_error> " + "x" * size, "x" * size),
            ("one too long", "a" + "x" * size, f"a{'x' * 999}\n[1 characters left out]\n{'x' * 1000}"),
            ("far too long", "a" * 2000 + "b" * 2000, f"{'a' * 1000}\n[2000 characters left out]\n{'b' * 1000}"),
        ):
            with self.subTest(what):
                self.assertEqual(coach.quote(error), quoted)

    def test_when_a_kept_call_would_still_fail(self) -> None:
        for at, look, holds in (
            (NOW, ["/w", 1], True),
            (NOW - coach.KEEP_SEC, ["/w", 1], True),
            (NOW - coach.KEEP_SEC - 1, ["/w", 1], False),
            (NOW + 1, ["/w", 1], False),
            (NOW, ["/x", 1], False),
            (NOW, ["/w", 2], False),
        ):
            with self.subTest(at=at - NOW, look=look):
                self.assertEqual(coach.still_holds({"at": at, "look": look}, NOW, ["/w", 1]), holds)

    def test_what_outlives_a_success(self) -> None:
        kept = {tool: {"tool": tool} for tool in ("Read", "mcp__a__get", "mcp__a_b__get", "mcp__b__get")}
        for tool, left in (
            ("Write", []),
            ("Bash", []),
            ("mcp__a__set", ["Read", "mcp__a_b__get", "mcp__b__get"]),
            ("mcp__a_b__c__set", ["Read", "mcp__a__get", "mcp__b__get"]),
            ("mcp__c__set", list(kept)),
        ):
            with self.subTest(tool):
                self.assertEqual(list(coach.outlive(kept, tool)), left)

    def test_which_calls_of_a_batch_were_refused(self) -> None:
        for what, tool, response, refused in (
            ("a refusal", "Edit", "<tool_use_error>No.</tool_use_error>", True),
            ("blanks before it", "Edit", " \n<tool_use_error>No.", True),
            ("of a call for its neighbour's sake", "Edit", "<tool_use_error>Cancelled: x", False),
            ("of a command", "Bash", "<tool_use_error>No.", False),
            ("of another command", "PowerShell", "<tool_use_error>No.", False),
            ("an error", "Edit", "No such file.", False),
            ("one that quotes a refusal", "Edit", "a <tool_use_error>No.", False),
            ("no text", "Edit", ["<tool_use_error>No."], False),
        ):
            with self.subTest(what):
                self.assertEqual(coach.was_refused({"tool_name": tool, "tool_response": response}), refused)


class Shared(unittest.TestCase):
    """What stands in both scripts."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "file")

    def put(self, data: bytes) -> None:
        with open(self.path, "wb") as file:
            file.write(data)

    def data(self) -> bytes:
        with open(self.path, "rb") as file:
            return file.read()

    def test_a_field_is_found_without_parsing(self) -> None:
        for raw, found in (
            (b'{"a":"b","a":"c"}', "b"),
            (b'{"a" : "b"}', "b"),
            (b'{"a":""}', ""),
            (b'{"a":1,"b":"c"}', ""),
            (b'{"a":null}', ""),
            (b'{"b":"c"}', ""),
            (b'{"a":"b', "b"),
            (b'{"a":', ""),
            (b"", ""),
            (b'{"ab":"c"}', ""),
            (b'{"a":"' + b"x" * 2000 + b'"}', "x" * 998),
            (b'{"a":"b\xffc"}', "b\ufffdc"),
        ):
            for script in SCRIPTS:
                with self.subTest(raw[:30]):
                    self.assertEqual(script.quick_field(raw, "a"), found)

    def test_an_id_names_a_state_in_the_state_folder_whatever_it_holds(self) -> None:
        for ids, name in (
            (("s",), "s"),
            (("aZ0-_",), "aZ0-_"),
            (("s", "a1"), "s.a1"),
            (("s", ""), "s"),
            (("",), ""),
            (("../a.b",), "a.b"),
            (("/etc/passwd", "../a1"), "a1"),
            (("..", ""), ".."),
            (("\u00e9 ~",), "\u00e9 ~"),
        ):
            for script in SCRIPTS:
                with self.subTest(ids=ids):
                    self.assertEqual(script.state_path("h", *ids), f"{script.STATE_DIR}/cc-h-{name}.json")

    def test_a_field_of_an_event_is_a_string_or_none(self) -> None:
        values = [recover.text_of({"a": value}, "a") for value in ("b", 1, None, ["b"])]
        self.assertEqual([*values, recover.text_of({}, "a")], ["b", "", "", "", ""])

    def test_a_state_is_idle_if_there_is_none_or_it_begins_so(self) -> None:
        for script in SCRIPTS:
            self.assertTrue(script.is_idle(self.path + "-missing", b"abc"))
            for data, idle in ((b"", True), (b"abc", True), (b"abcd", True), (b"ab", False), (b"xabc", False)):
                with self.subTest(data):
                    self.put(data)
                    self.assertEqual(script.is_idle(self.path, b"abc"), idle)

    def test_what_a_state_holds(self) -> None:
        for script in SCRIPTS:
            for data, state in (
                (b'{"a": 1}', {"a": 1}),
                (b'{"a": 1}\ntail of a longer one', {"a": 1}),
                (b"[1]", {}),
                (b"", {}),
                (b"{", {}),
                (b"\xff", {}),
                (b"[" * 100_000, {}),
                (b'{"a": "' + b"x" * 3_000_000 + b'"}', {"a": "x" * 3_000_000}),
            ):
                with self.subTest(data[:20]):
                    self.put(data)
                    fd = script.lock_state(self.path)
                    self.assertEqual(script.load_state(fd), state)
                    os.close(fd)

    def test_a_state_is_written_whole_over_a_longer_one(self) -> None:
        for script in SCRIPTS:
            self.put(b"x" * 100)
            fd = script.lock_state(self.path)
            os.read(fd, 10)
            script.store_state(fd, {"a": "\u00e9\ud800"})
            self.assertEqual(self.data(), b'{"a": "\\u00e9\\ud800"}\n')
            with mock.patch.object(script.os, "write", lambda _, data: len(data) - 1):
                self.assertRaises(OSError, script.store_state, fd, {"a": 1})
            os.close(fd)

    def test_a_state_that_is_locked_is_waited_for_until_it_is_free_or_time_is_up(self) -> None:
        for script in SCRIPTS:
            with support.holding(script, self.path) as let_go:
                with mock.patch.object(script, "WAIT_SEC", 0.05):
                    self.assertRaises(OSError, script.lock_state, self.path)
                timer = threading.Timer(0.05, let_go)
                timer.start()
                os.close(script.lock_state(self.path))
                timer.join()

    @unittest.skipUnless(os.name == "posix", "links")
    def test_only_a_regular_file_with_one_name_is_opened(self) -> None:
        for script in SCRIPTS:
            self.put(b"x")
            os.close(script.open_private(self.path, os.O_RDONLY))
            for make in (os.link, os.symlink):
                make(self.path, self.path + "2")
                self.assertRaises(OSError, script.open_private, self.path + "2", os.O_RDONLY)
                os.remove(self.path + "2")
            os.remove(self.path)
            os.close(script.open_private(self.path, os.O_RDWR | os.O_CREAT))
            self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o600)
            os.remove(self.path)
            os.mkfifo(self.path)
            self.assertRaises(OSError, script.open_private, self.path, os.O_RDONLY)
            os.remove(self.path)

    def test_a_line_of_a_log_keeps_its_columns_whatever_the_words(self) -> None:
        for script in SCRIPTS:
            self.put(b"")
            script.append_line(self.path, "a b", "", "c\td\ne\0", "~\x7f\u00e9!", "x" * 101)
            when, *words = self.data().decode("ascii").split("\t")
            self.assertRegex(when, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
            self.assertEqual(words, ["a b", "-", r"c\td\ne\x00", r"~\x7f\xe9!", "x" * 100 + "\n"])
            with mock.patch.object(script, "config_folder", lambda: self.path):
                script.append_line("", "word")

    def test_a_log_is_set_aside_once_it_is_longer_than_it_may_be(self) -> None:
        for script in SCRIPTS:
            line = len("2026-01-01T00:00:00Z\tword\n")
            for size, aside in ((script.LOG_MAX_BYTES, False), (script.LOG_MAX_BYTES + 1, True)):
                with self.subTest(size=size):
                    self.put(b"x" * (size - line))
                    script.append_line(self.path, "word")
                    self.assertEqual(os.path.exists(self.path), not aside)
                    self.assertEqual(os.path.exists(self.path + ".old"), aside)
            os.remove(self.path + ".old")
            script.append_line(self.path + "/no/such/folder", "word")


@unittest.skipUnless(hasattr(os, "fork"), "fork")
class Hooks(unittest.TestCase):
    """Both hooks in forked children, their state in a folder of the test's own."""

    recover: ModuleType
    coach: ModuleType
    folder: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        for name in ("recover", "coach"):
            script = support.RECOVER if name == "recover" else support.COACH
            script = support.copy_script(script, cls.folder, STATE_DIR=str(cls.folder / "state"))
            spec = importlib.util.spec_from_file_location(f"decisions_{name}", script)
            assert spec and spec.loader
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            setattr(cls, name, module)

    def setUp(self) -> None:
        for name in ("state", "home"):
            shutil.rmtree(self.folder / name, True)
            (self.folder / name).mkdir()
        (self.folder / "home" / ".claude").mkdir()
        self.transcript = self.folder / "transcript.jsonl"
        self.transcript.unlink(missing_ok=True)

    def write(self, *rows: object, end: str = "\n") -> None:
        """Write a transcript."""
        self.transcript.write_text("\n".join(json.dumps(row) for row in rows) + end, "utf-8")

    def stop(self, message: str | None, name: str = "Stop", active: bool = False, **fields: Any) -> support.Answer:
        """Send the recovery hook an event."""
        event: support.Event = {"session_id": "s", "transcript_path": str(self.transcript), "hook_event_name": name}
        event.update({} if message is None else {"last_assistant_message": message})
        event.update(stop_hook_active=active, **fields)
        return support.fork_hook(self.recover.main, event, self.folder / "home")

    def state(self, name: str = "recover-s") -> Any:
        """Return a state."""
        return json.loads((self.folder / "state" / f"cc-{name}.json").read_text())

    def heard_beats(self) -> list[list[str]]:
        """Return the heartbeat's lines without their time."""
        lines = (self.folder / "state" / "cc-recover-heartbeat.log").read_text().splitlines()
        return [line.split("\t")[1:] for line in lines]


class Recovery(Hooks):
    def test_which_stops_are_ordinary_without_parsing_them(self) -> None:
        state = self.folder / "state" / "cc-recover-s.json"
        agents = self.folder / "state" / "cc-recover-s.a1.json"
        for what, fields, idle, ordinary in (
            ("a message", {"last_assistant_message": "Done."}, True, True),
            ("no message", {}, True, False),
            ("an empty one", {"last_assistant_message": ""}, True, False),
            ("a call's word", {"last_assistant_message": f"a {CALL} b"}, True, False),
            ("an argument's word", {"last_assistant_message": f"a {ARGUMENT} b"}, True, False),
            ("the client's sentence", {"last_assistant_message": GIVE_UP}, True, False),
            ("in a burst", {"last_assistant_message": "Done."}, False, False),
            (
                "a subagent's, the main loop in a burst",
                {"agent_id": "a1", "last_assistant_message": "Done."},
                False,
                True,
            ),
        ):
            with self.subTest(what):
                state.write_text(json.dumps({"count": 0 if idle else 1, "ts": 1}))
                raw = support.encode({"session_id": "s", **fields})
                self.assertEqual(self.recover.nothing_to_do(raw), ordinary)
        agents.write_text('{"count": 1, "ts": 1}')
        raw = support.encode({"session_id": "s", "agent_id": "a1", "last_assistant_message": "Done."})
        self.assertFalse(self.recover.nothing_to_do(raw))
        raw = support.encode({"session_id": "t", "last_assistant_message": "Done."})
        self.assertTrue(self.recover.nothing_to_do(raw))
        (self.folder / "state" / "cc-recover-heartbeat.on").touch()
        self.assertFalse(self.recover.nothing_to_do(raw))

    def test_a_transcript_is_read_from_its_end_whatever_the_lines(self) -> None:
        rows = [said("m", "x" * number) for number in (10, 70_000, 20, 140_000, 65_000, 30)]
        for end in ("\n", "", "\n\n"):
            self.write(*rows, end=end)
            found = list(self.recover.rows_from_end(str(self.transcript)))
            self.assertEqual(found, rows[::-1])
            with mock.patch.object(self.recover, "TAIL_BYTES", 65_400):
                self.assertEqual(list(self.recover.rows_from_end(str(self.transcript))), rows[:-3:-1])
        size = 65_536 - len(json.dumps(said("m", ""))) - 1
        self.write(rows[0], said("m", "x" * size))  # read in two pieces, cut at a line's end
        self.assertEqual(len(list(self.recover.rows_from_end(str(self.transcript)))), 2)
        self.write(said("m", "x"), said("m", "x" * 60_000), rows[0], said("m", "x" * 60_000))
        with mock.patch.object(self.recover, "TAIL_BYTES", 100_000):
            self.assertEqual(len(list(self.recover.rows_from_end(str(self.transcript)))), 2)
        self.transcript.write_bytes(
            b'{"message": 1}\n{"message": 2\n["message"]\n{"other": 3}\n\xff"message"\n{"message": 4}'
        )
        self.assertEqual(list(self.recover.rows_from_end(str(self.transcript))), [{"message": 4}, {"message": 1}])
        self.transcript.write_bytes(b"")
        self.assertEqual(list(self.recover.rows_from_end(str(self.transcript))), [])

    def test_a_turn_is_waited_for_only_while_it_is_not_there(self) -> None:
        def read(message: str, wait_sec: float = 5) -> Any:
            return self.recover.read_turn(str(self.transcript), False, message, wait_sec)

        self.write(PROMPT, said("m", "a"))
        with mock.patch.object(self.recover.time, "sleep", mock.Mock(side_effect=AssertionError("it waits"))):
            self.assertEqual(read("a")["texts"], ["a"])
            self.assertEqual(read("")["texts"], ["a"])
            self.assertEqual(read("b", 0)["texts"], ["a"])
            self.transcript.unlink()
            self.assertIsNone(read("", 0))
            self.assertIsNone(self.recover.read_turn("a\0b", False, "", 0))

        def later(seconds: float) -> None:
            self.assertLess(seconds, 0.2)
            self.write(PROMPT, said("m", "a"), said("m", "b"))

        for before, message in (((), "b"), ((said("m", "a"),), "b"), ((said("m", "a"), PROMPT), "")):
            self.write(*before)
            with mock.patch.object(self.recover.time, "sleep", later):
                self.assertEqual(read(message)["texts"], ["a", "b"])

    def test_blanks_round_a_message_do_not_hide_the_real_call_beside_it(self) -> None:
        self.write(PROMPT, said("m", leak(), CALLED))
        self.assertEqual(self.stop(f"\n{leak()} \n").raw, b"")
        self.assertNotEqual(self.stop(leak() + "x").raw, b"")

    def test_a_wake_is_no_block_in_the_clients_row(self) -> None:
        self.assertEqual(self.stop(GIVE_UP, "StopFailure").code, 2)
        self.assertEqual((self.state()["count"], self.state()["blocks"]), (1, 0))
        self.stop(leak(), active=True)
        self.assertEqual((self.state()["count"], self.state()["blocks"]), (2, 1))
        self.stop(leak(), active=True)
        self.assertEqual((self.state()["count"], self.state()["blocks"]), (3, 2))
        self.stop(leak(), active=False)
        self.assertEqual((self.state()["count"], self.state()["blocks"]), (4, 1))

    def test_the_heartbeat_says_what_each_stop_was(self) -> None:
        (self.folder / "state" / "cc-recover-heartbeat.on").touch()
        self.write(PROMPT, said("m", "Done.", CALLED))
        self.stop("Done.")
        self.stop(leak())
        self.stop(GIVE_UP, "StopFailure")
        self.stop("Overloaded", "StopFailure")
        self.stop("Done.", "SubagentStop", agent_transcript_path="/nowhere", agent_id="a1")
        self.assertEqual(
            self.heard_beats(),
            [
                ["s", "Stop", "clean", "tool_use=True", "length=5"],
                ["s", "Stop", "leak", "tool_use=True", f"length={len(leak())}"],
                ["s", "StopFailure", "give-up", "tool_use=unknown", f"length={len(GIVE_UP)}"],
                ["s", "StopFailure", "clean", "tool_use=unknown", "length=10"],
                ["s", "SubagentStop", "clean", "tool_use=unknown", "length=5"],
            ],
        )

    def test_the_record_says_what_was_done(self) -> None:
        with mock.patch.object(self.recover, "MAX_RETRIES", 2):
            for message, name in (
                (leak(), "Stop"),
                (GIVE_UP, "StopFailure"),
                (leak(), "Stop"),
                (leak("a b"), "SubagentStop"),
            ):
                self.stop(message, name)
            self.stop("Done.", "SubagentStop")
        lines = (self.folder / "home" / ".claude" / "toolcall-hooks.log").read_text().splitlines()
        self.assertEqual(
            [line.split("\t")[1:] for line in lines],
            [
                ["recover", "s", "block", "Bash", "1"],
                ["recover", "s", "wake", "-", "2"],
                ["recover", "s", "hand-back", "Bash", "2"],
                ["recover", "s", "block", "a b", "1"],
                ["recover", "s", "recovered", "-", "1"],
            ],
        )

    def test_a_burst_that_is_over_leaves_an_idle_state_and_counts_as_recovered_if_it_was_not_too_old(self) -> None:
        path = self.folder / "state" / "cc-recover-s.json"
        for ago, recovered in ((1, 1), (recover.STREAK_WINDOW_SEC + 9, 0)):
            path.write_text(json.dumps({"count": 3, "ts": time.time() - ago, "last_idx": 2, "blocks": 1}))
            path.chmod(0o600)
            self.stop("Done.")
            self.assertTrue(path.read_bytes().startswith(recover.IDLE))
            self.assertEqual(self.state(), {"count": 0, "last_idx": 2})
            log = self.folder / "home" / ".claude" / "toolcall-hooks.log"
            lines = log.read_text().splitlines() if log.exists() else []
            self.assertEqual([line.split("\t")[3:] for line in lines], [["recovered", "-", "3"]] * recovered)
            log.unlink(missing_ok=True)

    def test_a_transcript_that_cannot_be_read_says_nothing(self) -> None:
        self.write(said("m", "a"))
        with mock.patch.object(self.recover, "rows_from_end", mock.Mock(side_effect=PermissionError)):
            self.assertIsNone(self.recover.read_turn(str(self.transcript), False, "", 0))

    def test_a_prompt_does_not_come_again_after_a_recovery(self) -> None:
        (self.folder / "prompts.txt").write_text("First one.\n\n# no\nOther one.\n")
        self.addCleanup((self.folder / "prompts.txt").unlink)
        said_before = ""
        for _ in range(10):
            reason = (self.stop(leak()).out or {})["reason"]
            [prompt] = [words for words in ("First one.", "Other one.") if words in reason]
            self.assertNotEqual(prompt, said_before)
            said_before = prompt
            self.stop("Done.")

    def test_which_lines_of_the_prompts_count(self) -> None:
        file = self.folder / "prompts.txt"
        self.addCleanup(file.unlink, True)
        own = list(self.recover.RECOVERY_PROMPTS)
        self.assertEqual(self.recover.read_prompts(), own)
        for data, prompts in (
            (b"", own),
            (b"# a\n\n  # b\n \t\n", own),
            (b"a\n b \t\r\n#c\nd # e", ["a", "b", "d # e"]),
            (b"\xef\xbb\xbf# a\nb\n", ["b"]),
            (b"a\xffb\n", ["a\ufffdb"]),
            (b"x" * 1000, ["x" * 1000]),
            (b"x" * 1001, ["x" * 1000]),
            (b"a\n" * 100_000 + b"b", ["a"] * 100_000),
        ):
            with self.subTest(data[:20]):
                file.write_bytes(data)
                self.assertEqual(self.recover.read_prompts(), prompts)


READ: dict[str, Any] = {"tool_name": "Read", "tool_input": {"file_path": "/nowhere/a"}, "tool_use_id": "t2"}
REFUSAL = "<tool_use_error>No such text.</tool_use_error>"


class Coaching(Hooks):
    def send(self, name: str, **fields: Any) -> dict[str, Any]:
        """Send the coach an event of a Read call; return its answer, {} for none."""
        event = {"session_id": "s", "transcript_path": str(self.transcript), "cwd": "/w", "hook_event_name": name}
        answer = support.fork_hook(self.coach.main, {**event, **READ, **fields}, self.folder / "home")
        self.assertEqual((answer.code, answer.err), (0, ""))
        return answer.out or {}

    def key(self, agent: str = "", **call: Any) -> str:
        """Return the key of a Read call."""
        return str(self.coach.key_of({"agent_id": agent or None}, {**READ, **call}))

    def put(self, call: dict[str, Any] | None, changed: float = 0.0, turn: object = None) -> None:
        """Put a state there in which a Read call is kept, some of it in another way than usual."""
        usual = {"tool": "Read", "error": "No.", "at": time.time(), "look": ["/w"], "agent": None}
        usual.update(id="t1", denied=0, over=True)
        state = {"kept": {} if call is None else {self.key(): {**usual, **call}}, "turn": turn or {}}
        path = self.folder / "state" / "cc-tool-coach-s.json"
        path.write_text(json.dumps(state) + "\n")
        path.chmod(0o600)
        os.utime(path, (changed, changed))

    def kept(self) -> dict[str, Any] | None:
        """Return the Read call as it is kept, None if it is not."""
        kept: dict[str, Any] | None = self.state("tool-coach-s")["kept"].get(self.key())
        return kept

    def changed(self) -> float:
        """Return the time of the last change."""
        return (self.folder / "state" / "cc-tool-coach-s.json").stat().st_mtime

    def record(self) -> list[list[str]]:
        """Return the record's lines without their time."""
        path = self.folder / "home" / ".claude" / "toolcall-hooks.log"
        return [line.split("\t")[1:] for line in path.read_text().splitlines()] if path.exists() else []

    def test_which_repeats_are_denied(self) -> None:
        now = time.time()
        for what, call, fields, denied in (
            ("the same", {}, {}, True),
            ("another input", {}, {"tool_input": {"file_path": "/nowhere/b"}}, False),
            ("another tool", {}, {"tool_name": "Glob"}, False),
            ("a subagent's", {}, {"agent_id": "a1"}, False),
            ("in another folder", {}, {"cwd": "/v"}, False),
            ("too late", {"at": now - 601}, {}, False),
            ("just in time", {"at": now - 590}, {}, True),
            ("from a time to come", {"at": now + 100}, {}, False),
            ("another look of its path", {"look": ["/w", ["file_path", 1, 2, 3]]}, {}, False),
            ("in the same batch, as far as is known", {"over": False}, {}, False),
        ):
            with self.subTest(what):
                self.put(call)
                answer = self.send("PreToolUse", **fields)
                self.assertEqual("hookSpecificOutput" in answer, denied)

    def test_what_a_denial_says_and_leaves_behind(self) -> None:
        for before, over in ((0, False), (3, False), (4, True), (9, True)):
            self.put({"denied": before}, changed=12345.0, turn={"x": 1})
            answer = self.send("PreToolUse")
            decision = answer["hookSpecificOutput"]
            self.assertEqual((decision["hookEventName"], decision["permissionDecision"]), ("PreToolUse", "deny"))
            self.assertEqual(decision["permissionDecisionReason"], coach.repeat_text("Read", coach.DENIED, "No."))
            self.assertEqual(answer["systemMessage"], "tool-coach: Read call repeated after it failed, not run")
            self.assertEqual("continue" in answer, over)
            if over:
                self.assertIs(answer["continue"], False)
                self.assertEqual(answer["stopReason"], coach.HAND_BACK.format(tool="Read", times=before + 1))
            kept = self.kept() or {}
            self.assertEqual((kept["denied"], kept["id"], kept["over"]), (before + 1, "t2", True))
            self.assertEqual((self.changed(), self.state("tool-coach-s")["turn"]), (12345.0, {"x": 1}))
        self.assertEqual([line[2:] for line in self.record()], [
            ["deny", "Read", "1"], ["deny", "Read", "4"], ["hand-back", "Read", "5"], ["hand-back", "Read", "10"],
        ])  # fmt: skip
        self.assertEqual({(*line[:2],) for line in self.record()}, {("tool-coach", "s")})

    def test_once_denied_a_calls_own_batch_is_over(self) -> None:
        self.write(said("m", {"type": "tool_use", "id": "t1"}))
        self.put({"over": False})
        self.assertIn("hookSpecificOutput", self.send("PreToolUse"))
        self.assertIs((self.kept() or {})["over"], True)

    def test_a_kept_call_that_holds_no_longer_is_dropped_and_nothing_else(self) -> None:
        self.put({"look": ["/v"]}, changed=12345.0, turn={"x": 1})
        self.send("PreToolUse")
        self.assertEqual(self.state("tool-coach-s"), {"kept": {}, "turn": {"x": 1}})
        self.assertEqual(self.changed(), 12345.0)

    def test_which_failures_are_kept(self) -> None:
        for what, fields, kept in (
            ("an error", {}, True),
            ("none that is told", {"error": None}, True),
            ("one that may pass", {"error": "timed out"}, False),
            ("an interruption", {"is_interrupt": True}, False),
            ("no interruption", {"is_interrupt": False}, True),
            ("a question to the person", {"tool_name": "AskUserQuestion"}, False),
            ("a message", {"tool_name": "SendMessage"}, False),
            ("a task's look", {"tool_name": "TaskGet"}, False),
            ("a task's output", {"tool_name": "TaskOutput"}, False),
            ("a task's end", {"tool_name": "TaskStop"}, False),
            ("a task's change", {"tool_name": "TaskUpdate"}, False),
            ("a command", {"tool_name": "Bash"}, False),
            ("another command", {"tool_name": "PowerShell"}, False),
            ("an edit", {"tool_name": "Edit"}, True),
            ("another server's", {"tool_name": "mcp__a__b"}, True),
        ):
            with self.subTest(what):
                self.put(None)
                self.send("PostToolUseFailure", **{"error": "No.", **fields})
                self.assertEqual(len(self.state("tool-coach-s")["kept"]), int(kept))

    def test_what_is_kept_of_a_failure(self) -> None:
        file = self.folder / "home" / "file"
        file.write_text("abc")
        os.utime(file, ns=(5, 7))
        fields = {"tool_input": {"file_path": "file"}, "cwd": str(self.folder / "home"), "agent_id": "a1"}
        before = time.time()
        self.send("PostToolUseFailure", **fields, error=f" {REFUSAL} ", duration_ms=4000)
        [(key, call)] = self.state("tool-coach-s")["kept"].items()
        self.assertEqual(key, self.key("a1", tool_input={"file_path": "file"}))
        self.assertTrue(before - 4 <= call.pop("at") <= time.time() - 4)
        wanted: dict[str, Any] = {
            "tool": "Read",
            "error": "No such text.",
            "agent": "a1",
            "id": "t2",
        }
        wanted.update(look=[str(file.parent), ["file_path", 3, 7, 0o100644]], denied=0, over=False)
        self.assertEqual(call, wanted)
        self.assertEqual(self.state("tool-coach-s")["turn"], {key: 1})

    def test_how_the_paths_of_an_input_look(self) -> None:
        file, home = self.folder / "home" / "file", str(self.folder / "home")
        file.write_text("abc")
        os.utime(file, ns=(5, 7))
        is_file, folder = [3, 7, 0o100644], os.stat(home)
        is_folder = [folder.st_size, folder.st_mtime_ns, folder.st_mode]
        for given, look in (
            ({"file_path": str(file)}, [["file_path", *is_file]]),
            ({"notebook_path": "file", "x": "file"}, [["notebook_path", *is_file]]),
            ({"path": "file"}, [["path", *is_file]]),
            ({"path": "."}, [["path", *is_folder]]),
            ({"path": ""}, []),
            ({"path": "a\0b", "file_path": "missing"}, []),
            ({"path": 5}, []),
            ({"path": "file", "file_path": "file"}, [["file_path", *is_file], ["path", *is_file]]),
        ):
            with self.subTest(given):
                self.assertEqual(self.coach.look_of({"cwd": home, "tool_input": given}), [home, *look])

    def test_a_failure_older_than_the_last_change_is_counted_and_not_kept(self) -> None:
        for seconds, kept in ((-1.0, True), (1.0, False)):
            self.put(None, changed=time.time() + seconds)
            before = self.changed()
            self.send("PostToolUseFailure", error="No.")
            self.assertEqual(self.kept() is not None, kept)
            self.assertEqual(self.state("tool-coach-s")["turn"], {self.key(): 1})
            self.assertEqual(self.changed(), before)

    def test_the_third_failure_in_a_turn_brings_a_note(self) -> None:
        for what, call, turn, failed, noted in (
            ("the second", None, 1, 2, False),
            ("the third", None, 2, 3, True),
            ("the fourth", None, 3, 4, True),
            ("one of a batch, its twin kept", {"over": False}, 2, 2, False),
            ("one of a later batch", {"over": True}, 2, 3, True),
        ):
            with self.subTest(what):
                refused = f"refused {self.key()}"
                self.put(call, turn={self.key(): turn, refused: 5})
                answer = self.send("PostToolUseFailure", error=f" {REFUSAL}", duration_ms=0)
                self.assertEqual(self.state("tool-coach-s")["turn"], {self.key(): failed, refused: 5})
                self.assertEqual(bool(answer), noted)
                if noted:
                    fate = f"failed {failed} times in this turn"
                    text = coach.repeat_text("Read", f"has {fate}", "No such text.")
                    self.assertEqual(answer["hookSpecificOutput"], {
                        "hookEventName": "PostToolUseFailure", "additionalContext": f"tool-coach: {text}",
                    })  # fmt: skip
                    self.assertEqual(answer["systemMessage"], f"tool-coach: Read call {fate}")
                    self.assertNotIn("continue", answer)
        self.assertEqual([line[2:] for line in self.record()], [["note", "Read", "0"]] * 3)

    def test_what_the_end_of_a_batch_means_for_kept_calls(self) -> None:
        now = time.time()
        for what, tool, changed, agent, fate in (
            ("a batch that changes nothing", "Read", now, "", "counts"),
            ("an edit just before the call", "Edit", now - 1.8, "", "goes"),
            ("an edit after the call", "Edit", now + 1, "", "goes"),
            ("an edit long before the call", "Edit", now - 2.2, "", "counts"),
            ("several edits", "MultiEdit", now, "", "goes"),
            ("a file", "Write", now, "", "goes"),
            ("a notebook", "NotebookEdit", now, "", "goes"),
            ("a command", "Bash", now, "", "goes"),
            ("another command", "PowerShell", now, "", "goes"),
            ("another server's tool", "mcp__a__b", now, "", "counts"),
            ("a subagent's batch", "Edit", now, "a1", "stays"),
        ):
            with self.subTest(what):
                self.put({"at": now, "over": False}, changed=changed)
                calls = [READ, {**READ, "tool_name": tool, "tool_use_id": "t3"}]
                self.assertEqual(self.send("PostToolBatch", tool_calls=calls, agent_id=agent or None), {})
                kept = self.kept()
                self.assertEqual("goes" if kept is None else "counts" if kept["over"] else "stays", fate)
                self.assertAlmostEqual(self.changed(), changed, 3)
        self.put({"at": now, "over": True}, changed=now)
        self.send("PostToolBatch", tool_calls=[{**READ, "tool_name": "Edit"}])
        self.assertIsNotNone(self.kept())

    def test_repeated_refusals_bring_a_note_each(self) -> None:
        calls = [
            {**READ, "tool_input": {"n": n}, "tool_response": REFUSAL.replace("text", f"text{n}")} for n in range(6)
        ]
        keys = [self.key(**call) for call in calls]
        refused = [f"refused {key}" for key in keys]
        self.put(None, changed=12345.0, turn={keys[0]: 7, refused[0]: 1, refused[2]: 2})
        answer = self.send("PostToolBatch", tool_calls=[*calls[:3], calls[0], {**READ, "tool_response": "fine"}])
        turn = {keys[0]: 7, refused[0]: 2, refused[2]: 3, refused[1]: 1}
        self.assertEqual((self.state("tool-coach-s")["turn"], self.changed()), (turn, 12345.0))
        notes = [
            "tool-coach: " + coach.repeat_text("Read", f"was refused before it ran, {n} times in this turn", text)
            for n, text in ((2, "No such text0."), (3, "No such text2."))
        ]
        self.assertEqual(answer["hookSpecificOutput"], {
            "hookEventName": "PostToolBatch", "additionalContext": "\n\n".join(notes),
        })  # fmt: skip
        line = "tool-coach: Read call repeated after it was refused"
        self.assertEqual(answer["systemMessage"], line)
        self.assertNotIn("continue", answer)
        self.assertEqual(self.record(), [["tool-coach", "s", "note", "Read", "3"]])

    def test_of_many_refusals_four_are_noted_and_the_most_frequent_ends_the_turn(self) -> None:
        calls = [{**READ, "tool_name": f"T{n}", "tool_response": REFUSAL} for n in range(6)]
        turn = {f"refused {self.key(**call)}": [1, 4, 6, 2, 1, 1][n] for n, call in enumerate(calls)}
        self.put(None, turn=turn)
        answer = self.send("PostToolBatch", tool_calls=calls)
        self.assertEqual(answer["hookSpecificOutput"]["additionalContext"].count("this exact"), 4)
        self.assertEqual(answer["stopReason"], coach.HAND_BACK.format(tool="T2", times=7))
        self.assertIs(answer["continue"], False)
        self.assertEqual(self.record(), [["tool-coach", "s", "hand-back", "T2", "7"]])

    def test_a_batch_with_the_last_denial_ends_the_turn_without_a_second_line_in_the_record(self) -> None:
        for what, call, ids, over in (
            ("the last denial", {"denied": 5, "id": "t2"}, ["t9", "t2"], True),
            ("one beyond", {"denied": 6, "id": "t2"}, ["t2"], True),
            ("one before", {"denied": 4, "id": "t2"}, ["t2"], False),
            ("that of another batch", {"denied": 5, "id": "t2"}, ["t9"], False),
        ):
            with self.subTest(what):
                self.put(call)
                calls = [{**READ, "tool_use_id": one, "tool_response": REFUSAL} for one in ids]
                answer = self.send("PostToolBatch", tool_calls=calls)
                text = coach.HAND_BACK.format(tool="Read", times=call["denied"])
                self.assertEqual(answer, {"continue": False, "stopReason": text} if over else {})
        self.assertEqual(self.record(), [])

    def test_a_success_drops_what_it_makes_doubtful_and_is_the_last_change(self) -> None:
        for tool, left in (("Write", 0), ("mcp__a__set", 1)):
            self.put({}, changed=5.0, turn={"x": 1})
            before = time.time()
            self.send("PostToolUse", tool_name=tool)
            self.assertEqual(len(self.state("tool-coach-s")["kept"]), left)
            self.assertEqual(self.state("tool-coach-s")["turn"], {"x": 1})
            self.assertTrue(before - 0.1 <= self.changed() <= time.time() + 0.1)
        self.put(None, changed=5.0, turn={"x": 1})
        self.send("PostToolUse")
        self.assertEqual(self.state("tool-coach-s")["turn"], {"x": 1})
        self.assertGreater(self.changed(), before - 0.1)

    def test_a_change_where_nothing_is_kept_is_noted_without_parsing(self) -> None:
        path = self.folder / "state" / "cc-tool-coach-s.json"
        self.assertTrue(self.coach.note_change(str(path)))
        self.assertEqual(path.read_bytes(), coach.IDLE)
        os.utime(path, (5, 5))
        self.assertTrue(self.coach.note_change(str(path)))
        self.assertGreater(self.changed(), time.time() - 10)
        self.put({}, changed=5.0)
        self.assertFalse(self.coach.note_change(str(path)))
        self.assertEqual(self.changed(), 5.0)

    def test_a_new_turn_and_the_sessions_end_forget(self) -> None:
        path = self.folder / "state" / "cc-tool-coach-s.json"
        for name, left in (("UserPromptSubmit", True), ("SessionEnd", False)):
            self.send(name)
            self.assertFalse(path.exists())
            self.put({})
            file = path.stat().st_ino
            self.send(name)
            self.assertEqual(path.exists() and path.read_bytes() == b"", left)
            if left:  # in the same file, which another hook may wait for
                self.assertEqual(path.stat().st_ino, file)
            path.unlink(missing_ok=True)
        self.assertEqual(self.record(), [])
        self.put({})
        os.link(path, self.folder / "home" / "other")
        self.send("SessionEnd")
        self.assertTrue(path.exists())

    def test_of_more_than_two_hundred_the_newest_are_kept(self) -> None:
        def many(last: int) -> dict[str, Any]:
            return {str(number): {"agent": "x", "over": True, "tool": "mcp__b__c"} for number in range(last)}

        for number, first in ((200, 0), (201, 1), (300, 100)):
            fd, *_ = self.coach.open_state({"session_id": "s"})
            self.coach.save_state({"session_id": "s"}, fd, many(number), {"x": number}, 5_000_000_000)
            self.assertEqual(list(self.state("tool-coach-s")["kept"]), [str(n) for n in range(first, number)])
            self.assertEqual(self.changed(), 5.0)
            fd, kept, turn, changed = self.coach.open_state({"session_id": "s"})
            os.close(fd)
            self.assertEqual((len(kept), turn, changed), (200, {"x": number}, 5_000_000_000))
        (self.folder / "state" / "cc-tool-coach-s.json").write_bytes(b"")
        fd, *rest = self.coach.open_state({"session_id": "s"})
        os.close(fd)
        self.assertEqual(rest, [{}, {}, 0])

    def test_which_events_concern_nothing_that_is_kept(self) -> None:
        off = self.folder / "home" / ".claude" / "tool-coach.off"
        path = self.folder / "state" / "cc-tool-coach-s.json"
        idle, kept = b'{"kept": {}, "turn": {}}\n', b'{"kept": {"x": 1}}\n'
        with mock.patch.dict(os.environ, {"HOME": str(self.folder / "home")}):
            os.environ.pop("CLAUDE_CONFIG_DIR", None)
            for name, state, fields, nothing in (
                ("PreToolUse", None, {}, True),
                ("PreToolUse", idle, {}, True),
                ("PreToolUse", kept, {}, False),
                ("PostToolBatch", idle, {}, True),
                ("PostToolBatch", kept, {}, False),
                ("PostToolBatch", idle, {"tool_calls": [{"tool_response": REFUSAL}]}, False),
                ("PostToolUseFailure", idle, {}, False),
                ("PostToolUse", idle, {}, True),
                ("PostToolUse", kept, {}, False),
                ("UserPromptSubmit", None, {}, True),
                ("UserPromptSubmit", idle, {}, False),
                ("SessionEnd", None, {}, True),
                ("SessionEnd", idle, {}, False),
                ("UserPromptExpansion", None, {"command_name": "tool-coach"}, False),
                ("UserPromptExpansion", kept, {"command_name": "greet"}, False),
                ("Other", None, {}, False),
            ):
                with self.subTest(name, state=state, fields=fields):
                    path.unlink(missing_ok=True)
                    if state is not None:
                        path.write_bytes(state)
                    raw = support.encode({"session_id": "s", "hook_event_name": name, **fields})
                    self.assertEqual(self.coach.nothing_to_do(raw), nothing)
            off.touch()
            for name in self.coach.HANDLERS:
                path.write_bytes(kept)
                raw = support.encode({"session_id": "s", "hook_event_name": name, "command_name": "tool-coach"})
                command = name == "UserPromptExpansion"
                self.assertEqual((self.coach.nothing_to_do(raw), path.exists()), (not command, command), name)
                path.unlink(missing_ok=True)
                self.assertEqual(self.coach.nothing_to_do(raw), not command, name)

    def test_whether_two_calls_stand_in_one_message(self) -> None:
        def answered(call: str) -> dict[str, Any]:
            return {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": call}]}}

        def called(message: str, call: str) -> dict[str, Any]:
            return said(message, {"type": "tool_use", "id": call})

        one, two = called("m", "t1"), called("m", "t2")
        event = {"tool_use_id": "t2", "transcript_path": str(self.transcript)}
        for what, rows, together in (
            ("both calls", [one, two], True),
            ("in one message with others", [called("m", "t3"), one, two, called("n", "t4")], True),
            ("the first one's result between them", [one, answered("t1"), two], True),
            ("in two messages", [one, answered("t1"), called("n", "t2")], False),
            ("in two messages, the result not there yet", [one, called("n", "t2")], False),
            ("the second not there yet", [one, answered("t1")], False),
            ("the first too long ago", [one, "x" * 1_000_000, two], False),
            ("much before them", ["x" * 1_000_000, one, two], True),
            ("much between them", [one, "x" * 900_000, two], True),
            ("another call", [one, called("m", "t22")], False),
            ("the second in other words", [one, {"toolUseID": "t2"}, answered("t2")], False),
            ("none", [], False),
        ):
            with self.subTest(what):
                self.write(*rows)
                self.assertEqual(self.coach.in_one_message(event, "t1"), together)
        self.transcript.write_bytes(b"\xff\n" + b"".join(map(support.encode, (one, two))))
        self.assertTrue(self.coach.in_one_message(event, "t1"))
        own = self.folder / "transcript" / "subagents" / "agent-a1.jsonl"
        own.parent.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, own.parent.parent)
        for first, together in ((called("n", "t1"), False), (one, True)):
            own.write_text(json.dumps(first) + "\n" + json.dumps(two))
            self.assertEqual(self.coach.in_one_message({**event, "agent_id": "a1"}, "t1"), together)
        self.assertTrue(self.coach.in_one_message({**event, "agent_id": "a2"}, "t1"))
        for path in ("/nowhere", "a\0b", str(self.folder), ""):
            self.assertTrue(self.coach.in_one_message({**event, "transcript_path": path}, "t1"))

    def test_the_command_and_what_it_says(self) -> None:
        off = self.folder / "home" / ".claude" / "tool-coach.off"
        for name, wish, reason, is_off in (
            ("tool-coach", "", "tool-coach is on", False),
            ("tool-coach", "off", "tool-coach is off", True),
            ("tool-coach", "off", "tool-coach is off", True),
            ("tool-coach", "", "tool-coach is off", True),
            ("x:tool-coach", " ON\n", "tool-coach is on", False),
            ("tool-coach", "on", "tool-coach is on", False),
            ("tool-coach", "tool-coach", "tool-coach is on; usage: /tool-coach [on|off]", False),
            ("tool-coach", "x off", "tool-coach is on; usage: /tool-coach [on|off]", False),
        ):
            with self.subTest(name=name, wish=wish):
                answer = self.send("UserPromptExpansion", command_name=name, command_args=wish)
                self.assertEqual(answer, {"decision": "block", "reason": reason})
                self.assertEqual(off.exists(), is_off)
        off.unlink(missing_ok=True)
        os.mkfifo(off)  # whatever stands there, it is off, and nobody waits for a reader
        answer = self.send("UserPromptExpansion", command_name="tool-coach", command_args="off")
        self.assertEqual(answer["reason"], "tool-coach is off")
        off.unlink()
        for name in ("my-tool-coach", "tool-coach:x", ""):
            self.assertEqual(self.send("UserPromptExpansion", command_name=name, command_args="tool-coach off"), {})
        shutil.rmtree(off.parent)
        self.send("UserPromptExpansion", command_name="tool-coach", command_args="off")
        self.assertEqual(off.stat().st_mode & 0o777, 0o600)
        shutil.rmtree(off.parent)
        off.parent.write_text("a file")
        answer = self.send("UserPromptExpansion", command_name="tool-coach", command_args="off")
        self.assertRegex(answer["reason"], "^tool-coach could not be switched off: /.*: [A-Z]")

    def test_the_same_from_the_shell(self) -> None:
        off = self.folder / "home" / ".claude" / "tool-coach.off"
        with mock.patch.dict(os.environ, {"HOME": str(self.folder / "home")}):
            os.environ.pop("CLAUDE_CONFIG_DIR", None)
            for argv, code, said, is_off in (
                (["off"], 0, "tool-coach is off\n", True),
                (["on"], 0, "tool-coach is on\n", False),
                (["-h"], 0, f"{self.coach.__doc__}\n", False),
                (["--help"], 0, f"{self.coach.__doc__}\n", False),
                (["maybe"], 2, f"{self.coach.__doc__}\n", False),
                (["on", "off"], 2, f"{self.coach.__doc__}\n", False),
            ):
                with self.subTest(argv), contextlib.redirect_stdout(io.StringIO()) as out:
                    self.assertEqual(self.coach.main(argv), code)
                    self.assertEqual((out.getvalue(), off.exists()), (said, is_off))
            shutil.rmtree(off.parent)
            off.parent.write_text("a file")
            with self.assertRaisesRegex(SystemExit, "^tool-coach could not be switched off: /.*: [A-Z]"):
                self.coach.main(["off"])

    def test_any_error_of_a_hooks_own_lets_the_call_run_and_stands_in_the_record(self) -> None:
        self.put({"at": "x"})
        self.assertEqual(self.send("PreToolUse"), {})
        self.assertEqual(self.send("PreToolUse", tool_name="Glob"), {})
        self.assertEqual(self.record(), [["tool-coach", "s", "error", "TypeError", "0"]])

    def test_after_how_many_denials_a_turn_ends_can_be_edited(self) -> None:
        for most, ends in ((0, [False, False, False]), (1, [True, True, True]), (2, [False, True, True])):
            with mock.patch.object(self.coach, "HAND_BACK_AFTER", most):
                for before in range(3):
                    self.put({"denied": before})
                    self.assertEqual("continue" in self.send("PreToolUse"), ends[before])
                    self.put({"denied": before + 1, "id": "t2"})
                    self.assertEqual("continue" in self.send("PostToolBatch", tool_calls=[READ]), ends[before])

    def test_without_arguments_a_terminal_gets_the_manual_and_anything_else_is_an_event(self) -> None:
        for script in (self.coach, self.recover):
            with mock.patch("os.isatty", lambda fd: fd == 0), contextlib.redirect_stdout(io.StringIO()) as out:
                self.assertEqual(script.main([]), 0)
            self.assertEqual(out.getvalue(), f"{script.__doc__}\n")

    def test_a_refusal_is_seen_in_the_raw_event_however_its_brackets_are_written(self) -> None:
        event = {"session_id": "s", "hook_event_name": "PostToolBatch", "tool_calls": [{"tool_response": REFUSAL}]}
        raw = support.encode(event)
        with mock.patch.dict(os.environ, {"HOME": str(self.folder / "home")}):
            for data in (raw, raw.replace(b"<", b"\\u003c").replace(b">", b"\\u003e")):
                self.assertFalse(self.coach.nothing_to_do(data))

    def test_an_event_that_is_not_handled_does_nothing_but_stand_in_the_record(self) -> None:
        self.send("Other")
        self.assertEqual(self.stop("a", "Other").raw, b"")
        answer = support.fork_hook(self.coach.main, b"{}\n", self.folder / "home")
        self.assertEqual((answer.code, answer.raw), (0, b""))
        lines = [["tool-coach", session, "error", "KeyError", "0"] for session in ("s", "-")]
        self.assertEqual(self.record(), lines)

    @unittest.skipUnless(os.name == "posix", "a pipe to wait at")
    def test_an_event_on_a_pipe_is_read_up_to_its_end_and_waited_for_if_it_is_not_there(self) -> None:
        def read(pieces: list[bytes]) -> bytes:
            """Return what is read from a pipe to which the pieces are written, one before and one at each wait.

            Checked: after a whole event nobody waits.
            """
            reader, writer = os.pipe()
            left, waits = iter(pieces[1:]), []
            os.write(writer, pieces[0])

            def wait(*_: object) -> tuple[list[int], list[int], list[int]]:
                piece = next(left, None)
                waits.append(piece)
                os.write(writer, piece or b"")
                return [] if piece is None else [0], [], []

            def main(_: list[str]) -> int:
                os.dup2(reader, 0)
                with mock.patch("select.select", wait):
                    data = self.recover.read_stdin()
                os.write(1, json.dumps({"data": data.decode(), "waits": len(waits)}).encode())
                return 0

            answer = support.fork_hook(main, b"", self.folder / "home")
            os.close(reader)
            os.close(writer)
            self.assertEqual(answer.err, "")
            assert answer.out is not None
            self.assertEqual(answer.out["waits"], len(pieces) - pieces[-1].endswith(b"\n"))
            return str(answer.out["data"]).encode()

        for pieces in ([b"{}\n"], [b"", b"{}\n"], [b"{", b"}", b"\n"], [b'{"a":"}\\n', b'"}\n'], [b"{}"], [b""]):
            with self.subTest(pieces):
                self.assertEqual(read(pieces), b"".join(pieces))


class Passing(unittest.TestCase):
    """Each part of the patterns of passing errors, by words that nothing else in them fits."""

    def test_they_are_looked_for_at_both_ends_of_a_long_error(self) -> None:
        for before, after, passing in ((3980, 9999, True), (4000, 9999, False), (9999, 980, True), (9999, 1000, False)):
            with self.subTest(before=before, after=after):
                self.assertEqual(coach.is_passing("x " * (before // 2) + "deadlock" + " x" * (after // 2)), passing)

    def test_each_word_that_tells_a_passing_error(self) -> None:
        lost = [
            f"{noun} was {verb}"
            for noun in ("connection", "socket", "stream", "transport", "channel")
            for verb in ("closed", "reset", "refused", "lost", "dropped", "abort", "aborting", "error")
        ]
        for words in (
            "timeout|timeouts|time out|timed out|times out|time-out|time_out|TimeoutError|TimeoutException|ReadTimeout",
            "deadline exceeded|DeadlineExceeded|upstream connect|broken pipe|fetch failed|socket hang up|socket hangup",
            "ETIMEDOUT|EAI_AGAIN|EPIPE|EBUSY|EAGAIN|EMFILE|ENOTFOUND|ECONNRESET|ENETDOWN|EHOSTUNREACH",
            "net::ERR_NETWORK_CHANGED|ERR_NETWORK|ERR_CONNECTION_RESET|ERR_TIMED_OUT|disconnected|not connected",
            "network error|network is unreachable|" + "|".join(lost),
            "connection " + "x" * 18 + " closed|connection closed",
            "connection terminated|could not connect|cannot connect|unable to connect|failed to connect|quota",
            "resource exhausted|resource_exhausted|ratelimit|rate limit|rate-limit|rate_limit|rate limited",
            "too many requests|too many connections|too many open files|overloaded|overloaded_error|throttled",
            "status 408|status 425|status 429|status 500|status 599|code 503|http 503|http/1.1 503|http/2 503",
            "status code 503|status_code 503|status-code 503|statuscode 503|status, was 503|status of 503",
            "status is 503|still starting|status  = 503",
            "status:503|status=503|status(503|status = 503|408 request time|425 too early|429 too late|500 internal",
            "502 bad gateways|503 service|504 gateway|599 servicefault|error 500|error 599|internal server error",
            "bad gateway|unavailable|ServiceUnavailable|server is busy|server busy|resource is busy|resource busy",
            "is locked|deadlock|lock wait|already in use|in use|not ready|not yet|not quite so ready|in progress",
            "pending|starting up|warming up|initializing|initialising|try again|try later|try in|try after",
            "retry in|re-try in|trying in|retrying in|again later|back later|please retry|please re-try|please wait",
            "temporary|temporarily|cancelled|canceled|interrupted|aborted|AbortError|hook error|blocked by",
            "doesn't want to|was rejected|denied by|permission to use",
        ):
            for word in words.split("|"):
                for text in (word, f"Sorry: {word}.", word.upper(), "x" * 3900 + f"\n{word}", "x" * 9000 + f"\n{word}"):
                    with self.subTest(word):
                        self.assertTrue(coach.is_passing(text))

    def test_words_that_come_near(self) -> None:
        for words in (
            "out of time|timer|time  out|deadline was exceeded|connect|pipe|fetch|ECONN|ENET|EHOST|XEBUSY|EBUSYX",
            "ERR_OTHER|xERR_NETWORK|connected|network|connections closed|connection open|connection. It closed|socket",
            "connection\nclosed|connection " + "x" * 30 + " closed|terminated|my-quota|quotas|misquota|resource",
            "limit|x-rate limit|too many rows|overload|status 404|status 5033|status 50|status|503|503 rows",
            "1503 service|timeoutx|throttl|http/-: 503|status-503|http503|still ing",
            "code|status     503|error 404|error 5000|server error|gateway|busy|locked|a server|wait|use|ready|yet",
            "not "
            + "x" * 40
            + " ready|not so. Ready|progress|still|depending|start up|starting|initial|retry|try|later",
            "please|abort|hook|blocked|want to|rejected|denied|permission|408|request time|No such file.",
            "x" * 4100 + "\nquota\n" + "x" * 1100,
        ):
            for word in words.split("|"):
                with self.subTest(word[:40]):
                    self.assertFalse(coach.is_passing(word))


OURS, HEAD, TAIL = "/h/.claude/hooks/tool_coach.py", "# --- Constants you may edit ---\n", "# --- Constants that follow"


class Maintaining(unittest.TestCase):
    """The pure part of install, uninstall and status."""

    def test_how_settings_are_written(self) -> None:
        value = {"a": {"\u00e9": 1}}
        for what, like, text in (
            ("no file", "", '{\n  "a": {\n    "\u00e9": 1\n  }\n}\n'),
            ("an empty object", "{}", '{\n  "a": {\n    "\u00e9": 1\n  }\n}'),
            ("an empty object with blanks", "\ufeff{ }\r\n", '\ufeff{\r\n  "a": {\r\n    "\u00e9": 1\r\n  }\r\n}\r\n'),
            ("a tab", '{\n\t"b": 1\n}\n', '{\n\t"a": {\n\t\t"\u00e9": 1\n\t}\n}\n'),
            ("four blanks", '{\n    "b": 1\n}\n\n', '{\n    "a": {\n        "\u00e9": 1\n    }\n}\n\n'),
            ("one line", '{"b": 1}\n', '{"a": {"\u00e9": 1}}\n'),
            ("one line without blanks", '{"b":1}', '{"a":{"\u00e9":1}}'),
            ("escapes", '{"b":"\\u00e9"}', '{"a":{"\\u00e9":1}}'),
        ):
            with self.subTest(what):
                self.assertEqual(recover.settings_text(value, like), text)

    def test_which_commands_are_ours(self) -> None:
        for command, ours in (
            (f"python3 {OURS}", True),
            (f'python3 -I -S "{OURS}"', True),
            (f"python3 '{OURS}'  ", True),
            (OURS.replace("/", "\\"), True),
            ("python3 ~/.claude/hooks/recover_malformed_toolcall.py", True),
            ("python3 /src/toolcall-hooks/tool_coach.py", True),
            ("python3 /src/toolcall-hooks-main/sub/tool_coach.py", True),
            ('python3 "${CLAUDE_PLUGIN_ROOT}/tool_coach.py"', True),
            ("python3 /src/tool_coach.py", False),
            ("python3 hooks/tool_coach.py", False),
            ("python3 /h/hooks/my_tool_coach.py", False),
            ("python3 /h/hooks/tool_coachXpy", False),
            (f"python3 {OURS} --verbose", False),
            (f"python3 {OURS}c", False),
            (None, False),
        ):
            with self.subTest(command):
                settings = {"hooks": {"Stop": [{"hooks": [{"command": command}]}]}}
                self.assertEqual(len(list(recover.registered(settings, Path("p")))), int(ours))

    def test_settings_of_a_wrong_shape_are_named(self) -> None:
        wrong: list[Any] = [
            [],
            "x",
            None,
            {"Stop": {}},
            {"Stop": [1]},
            {"Stop": [{"hooks": {}}]},
            {"Stop": [{"hooks": 1}]},
        ]
        for hooks in wrong:
            with self.subTest(hooks), self.assertRaisesRegex(ValueError, '^p: "hooks" has a wrong shape at "(Stop)?";'):
                list(recover.registered({"hooks": hooks}, Path("p")))
        right: list[Any] = [{}, {"Stop": []}, {"Stop": [{}]}, {"Stop": [{"hooks": [1, None, {}, {"command": 5}]}]}]
        for hooks in right:
            self.assertEqual(list(recover.registered({"hooks": hooks}, Path("p"))), [])
        self.assertEqual(list(recover.registered({}, Path("p"))), [])

    def test_the_command_of_a_script_holds_whatever_its_folder_is_called(self) -> None:
        group = recover.group_of("tool_coach.py", "PreToolUse", '/a "b" $c `d` \\e')
        command = 'python3 -I -S "/a \\"b\\" \\$c \\`d\\` \\\\e/tool_coach.py"'
        handler = {"type": "command", "command": command, "timeout": 10}
        self.assertEqual(group, {"matcher": "^(?!(Bash|PowerShell)$)", "hooks": [handler]})
        group = recover.group_of("recover_malformed_toolcall.py", "StopFailure", "/a")
        self.assertEqual((list(group), group["hooks"][0]["asyncRewake"]), (["hooks"], True))

    def test_each_matcher_lets_the_right_names_through(self) -> None:
        for event, right, wrong in (
            ("PreToolUse", ("Read", "BashOutput", "mcp__a__Bash"), ("Bash", "PowerShell")),
            ("PostToolUseFailure", ("Read",), ("Bash", "PowerShell")),
            ("PostToolUse", (*coach.CHANGING, "mcp__a__b"), ("Read", "EditX", "mcp__", "Bash2")),
            ("UserPromptExpansion", ("tool-coach", "toolcall-hooks:tool-coach"), ("x:tool-coach", "tool-coach2")),
        ):
            matcher = recover.EVENTS["tool_coach.py"][event]["matcher"]
            for names, expected in ((right, True), (wrong, False)):
                for name in names:
                    with self.subTest(event, name=name):
                        self.assertEqual(re.search(matcher, name) is not None, expected)

    def test_what_an_upgrade_keeps_of_the_constants(self) -> None:
        new = f"x\n{HEAD}\nA = 1  # a\nB = (\n    1,\n)\nC = 3\n{TAIL}\ny\n"
        for what, edit, kept, whole in (
            ("nothing", ("", ""), [], True),
            ("a number", ("A = 1  # a", "A = 2"), ["A"], True),
            ("a number without blanks", ("A = 1  # a", "A=2"), ["A"], True),
            ("a tuple", ("B = (\n    1,\n)", "B = (\n    2,\n\n)"), ["B"], True),
            ("two", ("A = 1  # a\nB = (\n    1,\n)", "A = 2\nB = ()"), ["A", "B"], True),
            ("one that is missing", ("C = 3\n", ""), [], False),
            ("one more", ("C = 3", "C = 3\nD = 4"), [], False),
            ("one that stands on another", ("C = 3", "C = A"), [], False),
            ("an annotated one", ("C = 3", "C: int = 4"), [], False),
            ("two on a line", ("A = 1  # a", "A = 2; D = 4"), [], False),
            ("two on a line, of which one goes on", ("A = 1  # a", "A = 2; D = (\n4)"), [], False),
            ("code", ("y\n", "z\n"), [], False),
            ("code before", ("x\n", "z\n"), [], False),
            ("no Python", ("C = 3", "C = ("), [], False),
        ):
            with self.subTest(what):
                old = new.replace(*edit) if edit[0] else new
                text, names = recover.upgraded(new, old)
                self.assertEqual((sorted(names), text == old), (kept, whole))
                self.assertEqual(text, old if whole else new)

    def faults_of(self, script: str, places: dict[str, Any], client: tuple[int, ...]) -> list[str]:
        """Return what status finds wrong with how a script is registered, nothing of it run."""
        with mock.patch.dict(os.environ, {"CLAUDE_CONFIG_DIR": "/nowhere"}):
            lines = recover.examine(script, {Path(place): its for place, its in places.items()}, [], client)
        return [line.partition("WRONG: ")[2] for line in lines if "WRONG" in line]

    def test_which_events_a_client_gets(self) -> None:
        late = {"PostToolBatch": (2, 1, 118), "UserPromptExpansion": (2, 1, 116)}
        entry = {"hooks": [{"command": f"python3 {OURS}"}]}
        for version in ((2, 1, 104), (2, 1, 115), (2, 1, 116), (2, 1, 117), (2, 1, 118), (9,)):
            faults = self.faults_of("tool_coach.py", {"p": {"hooks": {"Other": [entry]}}}, version)
            wanted = [event for event in recover.EVENTS["tool_coach.py"] if version >= late.get(event, (0,))]
            self.assertEqual(faults, [f"tool_coach.py is registered 0 times for {event}" for event in wanted])

    def test_which_clients_are_too_old(self) -> None:
        for said, version, old in (
            ("2.1.104 (Claude Code)", (2, 1, 104), False),
            ("2.1.103 (Claude Code)", (2, 1, 103), True),
            ("2.1.1040", (2, 1, 1040), False),
            ("10.0.0", (10, 0, 0), False),
            ("Claude Code 1.0.0", (9,), False),
        ):
            answer = subprocess.CompletedProcess("claude", 0, said, "")
            with self.subTest(said), mock.patch("subprocess.run", return_value=answer):
                found, problem = recover.client_version()
                self.assertEqual(found, version)
                self.assertEqual(problem.startswith(f"claude {said[:7]} is too old: before 2.1.104"), old)
                self.assertEqual(bool(problem), old)

    def test_the_record_in_words(self) -> None:
        lines = [
            *("recover s recovered - 2", "recover s recovered - 2", "recover s block Bash 1", "recover s wake - 1"),
            *("recover s hand-back Bash 10", "recover s error OSError 0", "tool-coach s deny Read 1", "x", ""),
            *("tool-coach s deny Read 2", "tool-coach s deny Edit 1", "tool-coach s note Edit 2"),
            *("tool-coach s hand-back Edit 5", "tool-coach s error TypeError 0"),
        ]
        log = "".join("\t".join(["time", *line.split()]) + "\n" for line in lines)
        counts = {
            "bursts handed back": 1,
            "bursts recovered in 2 attempts": 2,
            "internal errors of recover": 1,
            "internal errors of tool-coach": 1,
            "notes on Edit": 1,
            "repeats of Edit stopped": 1,
            "repeats of Read stopped": 2,
            "turns ended over Edit": 1,
        }
        self.assertEqual(list(recover.record_of(log).items()), list(counts.items()))

    def test_what_is_wrong_with_a_registration(self) -> None:
        script = "recover_malformed_toolcall.py"
        command = f"python3 /h/hooks/{script}"

        def settings(**events: list[dict[str, Any]]) -> dict[str, Any]:
            """Return settings with entries, {event: [what each has besides its command, for group and handler]}."""
            return {
                "hooks": {
                    event: [{**more, "hooks": [{"command": command, **more}]} for more in entries]
                    for event, entries in events.items()
                }
            }

        right: dict[str, Any] = {"Stop": [{}], "SubagentStop": [{}], "StopFailure": [{"asyncRewake": True}]}
        self.assertEqual(self.faults_of(script, {"p": settings(**right)}, (9,)), [])
        self.assertEqual(self.faults_of(script, {"p": settings(**right, Other=[{}])}, (9,)), [])
        other = {"hooks": {"Stop": [{"hooks": [{"command": "python3 /h/hooks/tool_coach.py"}]}]}}
        self.assertEqual(self.faults_of(script, {"p": settings(**right), "q": other}, (9,)), [])
        for change, words in (
            ({"Stop": []}, "is registered 0 times for Stop"),
            ({"Stop": [{}, {}]}, "is registered 2 times for Stop"),
            ({"Stop": [{"matcher": "x"}]}, "for Stop in p is to have matcher None"),
            ({"Stop": [{"asyncRewake": True}]}, "for Stop in p is to have asyncRewake None"),
            ({"StopFailure": [{}]}, "for StopFailure in p is to have asyncRewake True"),
        ):
            with self.subTest(words):
                [fault] = self.faults_of(script, {"p": settings(**{**right, **change})}, (9,))
                self.assertIn(words, fault)
        [fault] = self.faults_of(script, {"p": settings(**right), "q": settings(Stop=[{}])}, (9,))
        self.assertIn("is registered 2 times for Stop", fault)

    def test_what_settings_hold_does_not_depend_on_hook_lists_that_are_empty(self) -> None:
        for settings, same in (
            ({}, {"hooks": {}}),
            ({"hooks": {"Stop": []}, "a": 1}, {"a": 1}),
            ({"hooks": {"Stop": [], "Other": [{}]}}, {"hooks": {"Other": [{}]}}),
        ):
            self.assertEqual(recover.content_of(settings), recover.content_of(same))
        some = {"hooks": {"Stop": [{}]}, "a": 1}
        others: list[dict[str, Any]] = [{"a": 1}, {"hooks": {"Stop": [{}]}}, {"hooks": {"Other": [{}]}, "a": 1}]
        for other in others:
            self.assertNotEqual(recover.content_of(some), recover.content_of(other))


if __name__ == "__main__":
    unittest.main()

"""Each decision of both scripts on both sides of its edge: what a broken one would let pass (see mutate.py)."""

from __future__ import annotations

import unittest

import recover_malformed_toolcall as recover
from support import argument, leak, opener

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
        for text in ("word " + bare, "word " + bare + END, bare + " opens it", bare + "<x> y", "<" + CALL + ":" + bare):
            self.assertIsNone(find(text), text.replace("<", "\u2039"))


class Sentences(unittest.TestCase):
    def test_a_call_may_begin_after_the_end_of_a_sentence_or_one_stray_word(self) -> None:
        for end in ".:!?\u2026\u3002\uff1a\uff01\uff1f":
            with self.subTest(end):
                self.assertIsNotNone(find(f"I look at it{end} {opener('Bash')}"))
        for before in ("", "court ", "  court\t", "Two words.\ncourt "):
            with self.subTest(before):
                self.assertIsNotNone(find(before + opener("Bash")))
        for before in ("I look at it, ", "I look at X ", "Say (so) ", "- a - "):
            with self.subTest(before):
                self.assertIsNone(find(before + opener("Bash")))

    def test_a_call_with_text_in_place_of_arguments(self) -> None:
        for what, text, fires in (
            ("on lines of its own", opener("Bash") + "\nls -la\n" + END, True),
            ("on its line, closed there", opener("Bash") + "ls -la" + END, True),
            ("on its line, closed later", opener("Bash") + "ls -la\n" + END, False),
            ("on its line, not closed", opener("Bash") + "ls -la", False),
            ("on lines of its own amid a sentence", "Now run it with " + opener("Bash") + "\nls -la\n" + END, False),
            ("after a blank line", opener("Bash") + " \n\nls -la", True),
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
            ("- " * 150 + "a", 0, False, [2 * depth for depth in range(1, 101)]),
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
            ("a second item cannot begin in a paragraph", "a\n2. b\n\n     x", "a\n2. b\n\n@@@@@@"),
            ("it can after a blank line", "a\n\n2. b\n\n     x", "a\n\n2. b\n\n     x"),
            ("it can after a list item's paragraph", "- a\n2. b\n\n     x", "- a\n2. b\n\n     x"),
            ("no underline ends a list item's paragraph", "- a\n===\n    x", "- a\n===\n    x"),
            ("a quotation", "> x\ny", "@@@\ny"),
            ("a mark of quotation alone is none", ">\nx", ">\nx"),
            ("a quotation in a list item", "- a\n  > x", "- a\n  @@@"),
            ("a quotation ends a paragraph", "a `b\n> x\nc` d", "a `b\n@@@\nc` d"),
            ("code that is masked already", "a\n\0\0\n    x", "a\n@@\n@@@@@"),
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
            ("not closed, amid a sentence", "a `b run " + CUT + "c` d", len("`b run c`") + len(CUT)),
            ("closed, amid a sentence", "a `b run it " + call + " d` e", len("`b run it ") + len(call) + len(" d`")),
        ):
            with self.subTest(what):
                self.assertEqual(recover.mask_spans(text).count(recover.SPAN_CODE), spans)

    def test_a_call_right_behind_a_tick_is_what_a_span_begins_with(self) -> None:
        for before, hides in (
            ("`", True),
            ("` ", True),
            ("`court ", True),
            ("`court  ", True),
            ("`" + "x" * 40 + " ", True),
            ("`" + "x" * 41 + " ", False),
            ("`two words\n", False),
            ("`  ", False),
        ):
            with self.subTest(before):
                self.assertEqual(recover.SPAN_CODE in recover.mask_spans(before + CUT + "` x"), hides)


if __name__ == "__main__":
    unittest.main()

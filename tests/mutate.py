"""Break each decision of the two scripts, one at a time, and see a test go red.

  python3 tests/mutate.py [--script NAME] [--line N or N-M] [--limit N] [--seed S] [--verbose]

Prints what survives, file:line and the change, and at the end how many were made, killed, survived. A copy of the
repository is broken, never the repository. The tests that concern the broken part run until one fails; one that
fails or is slow without any change is left out. What the shared block says is changed in both scripts at once.

Changed: comparisons, and/or, not, conditions, True and False, numbers (large ones tenfold), short strings, returns,
statements of effect, elements of tables, parts of patterns. Not: what a user may edit (but for the patterns there),
and wording.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RECOVER, COACH = "recover_malformed_toolcall.py", "tool_coach.py"
BEGIN, END = (f"# --- Shared by both scripts, letter for letter: {word} " for word in ("begin", "end"))
# Test modules by the part of the code that they concern; missing ones are left out.
TESTS = {
    "detection": ("test_decisions", "test_leaks", "test_masking"),
    "recovery": ("test_decisions", "test_recover"),
    "coach": ("test_decisions", "test_coach"),
    "shared": ("test_decisions", "test_shared", "test_recover", "test_coach", "test_hostile"),
    "maintenance": ("test_decisions", "test_install", "test_status"),
}
# Tests left out: they take long and repeat others, or measure time, which says little while runs share a machine.
LEFT_OUT = ("with_the_hook_as_a_process", "thirty_two", "time_grows", "takes_long", "at_once_is", "is_short")
SLOW_SEC = 20  # a test that takes longer is left out too
PATTERNS = {
    *("OPENER", "ARGUMENT_OPENER", "CLOSER", "CALL_GOES_ON", "FENCE", "HEADING", "UNDERLINE", "RULE", "LIST_ITEM"),
    *("OURS", "JUDGED", "PASSING"),
}
SKIPPED = ("TYPE_CHECKING", "__version__", "SLASH_COMMAND", "HAND_BACK", "DENIED", "HANDLERS")
COMPARISONS = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",),
    "in": ("not in",), "not in": ("in",), "is": ("is not",), "is not": ("is",),
}  # fmt: skip
NAMES = {"min": "max", "any": "all", "partition": "rpartition", "startswith": "endswith"}
NAMES.update({new: old for old, new in NAMES.items()})
STRIPPING = ("strip", "lstrip", "rstrip", "lower")
# Changes without a difference: why, and which ("function: before -> after").
EQUIVALENT = {
    "it only saves time": (
        "find_leaked_call: not re.search(OPENER, text) -> False",
        "find_leaked_call: return None -> pass",
        'mask_code: rest[0] in "*+-0123456789" -> True',
        'mask_code: rest[0] in "#*-=_" -> rest[0] in "#*-=_X"',
        'mask_code: rest[:1] in ("`", "~") and not indented -> not indented',
        "mask_spans: call.start() < end or not first -> not first",
        'mask_code: rest[0] in "*+-0123456789" -> rest[0] in "*+-0123456789X"',
        r"mask_spans: (?<!\\)(\\*)(`+) -> (\\*)(`+)",
        "mask_spans: closed -> True",
        "mask_spans: closed = closing is not None -> pass",
        "rows_from_end: min(65536, position - stop) -> min(655360, position - stop)",
        "rows_from_end: min(65536, position - stop) -> min(6553, position - stop)",
        "read_turn: time.monotonic() >= deadline -> time.monotonic() > deadline",
        'on_stop: not known or kind == "leak" or os.path.lexists(HEARTBEAT + ".on") -> True',
        "lock_state: time.sleep(0.01) -> pass",
        *(f"read_stdin: 1 << 20 -> {more}" for more in ("2 << 20", "1 << 21", "1 << 19")),
        "on_stop: 0 if known else LAG_WAIT_SEC -> (-1) if known else LAG_WAIT_SEC",
    ),
    "a bound for time's sake, not a decision": (
        "find_leaked_call: opener.end() + 4000 -> opener.end() + 40000",
        "find_leaked_call: opener.start() - 200 -> opener.start() - 2000",
        "mask_spans: call.start() - 200 -> call.start() - 2000",
        *(f"burst_of: 0 <= n < 1e15 -> 0 <= n {end}" for end in ("<= 1e15", "< 1e+16", "< 100000000000000.0")),
        *(f"WAIT_SEC: WAIT_SEC = 2.0 -> WAIT_SEC = {more}" for more in ("3.0", "1.0")),
        "LOG_MAX_BYTES: LOG_MAX_BYTES = 200_000 -> LOG_MAX_BYTES = 20000",
        "load_state: os.read(fd, 4_000_000) -> os.read(fd, 40000000)",
        "items_opened: indent < base + 4 and len(columns) < 20 and not re.match(RULE, rest) -> "
        "indent < base + 4 and not re.match(RULE, rest)",
        "items_opened: len(columns) < 20 -> len(columns) <= 20",
        "items_opened: len(columns) < 20 -> len(columns) < 21",
        "items_opened: len(columns) < 20 -> len(columns) < 19",
        "answer: :9 -> :10",
        "answer: :9 -> :8",
    ),
    "nothing reads it afterwards": (
        'mask_code: "", 0 -> "", 1',
        'mask_code: "", 0 -> "", (-1)',
        "mask_code: end_paragraph(0) -> end_paragraph(1)",
        "mask_code: end_paragraph(0) -> end_paragraph((-1))",
    ),
    "another value does the same": (
        "mask_code: fence[0] -> fence[1]",
        "mask_code: fence[0] -> fence[(-1)]",
        "mask_spans: -1 -> -2",
        "mask_spans: 0, True -> (-1), True",
        "mask_spans: index < len(runs) -> index <= len(runs)",
        "answer: [0] -> [(-1)]",
        "burst_of: 0 <= n < 1e15 -> 0 < n < 1e15",
        "burst_of: 0 <= n < 1e15 -> 1 <= n < 1e15",
        "rows_from_end: file.seek(0, os.SEEK_END) -> file.seek(1, os.SEEK_END)",
        'on_batch: [], "", 0 -> [], "X", 0',
        'on_batch: [], "", 0 -> [], "", 1',
        'on_batch: [], "", 0 -> [], "", (-1)',
        "look_of: continue -> pass",
        'run_hook: raw = b"" -> raw = b"X"',
        'STATE_DIR: os.environ.get("TEMP", ".") -> os.environ.get("TEMP", ".X")',
        *(f"lock_state: 1 << 30 -> {more}" for more in ("2 << 30", "1 << 31", "1 << 29")),
        "main: argv[0] -> argv[(-1)]",
        "in_one_message: max(0, os.path.getsize(path) - TAIL_BYTES) -> max(1, os.path.getsize(path) - TAIL_BYTES)",
        "answer: os.urandom(4) -> os.urandom(5)",
        "answer: os.urandom(4) -> os.urandom(3)",
        'answer: os.environ.get("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "") -> '
        'os.environ.get("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "X")',
        'on_stop_failure: answer(event, "give-up", "", False) -> answer(event, "give-upX", "", False)',
        'on_stop_failure: answer(event, "give-up", "", False) -> answer(event, "give-up", "", True)',
    ),
    "any of those that came as often may be named": ("on_batch: times > most -> times >= most",),
    "nobody sees a nanosecond, or a millisecond where two seconds are allowed for": (
        "on_failure: started * 1e9 > changed -> started * 1e9 >= changed",
        'on_failure: event.get("duration_ms", 0) -> event.get("duration_ms", 1)',
        'on_failure: event.get("duration_ms", 0) -> event.get("duration_ms", (-1))',
        'on_batch: changed > (call["at"] - LATENCY_SEC) * 1e9 -> changed >= (call["at"] - LATENCY_SEC) * 1e9',
    ),
    "nothing else can stand there": (
        "(HEADING, UNDERLINE): #{1,6}(?: |$) -> #{0,6}(?: |$)",
        "(HEADING, UNDERLINE): (?:=+|-+) *$ -> (?:=*|-+) *$",
        "(HEADING, UNDERLINE): (?:=+|-+) *$ -> (?:=+|-*) *$",
        r"PASSING: am|transport|channel)\b[^.\n]{0,20}\b(?:closed|reset|refused| -> "
        r"am|transport|channel)\b[^.\n]{1,20}\b(?:closed|reset|refused|",
        r"PASSING: :already )?in use|not\b[^.\n]{0,30}\b(?:ready|yet)|in progres -> "
        r":already )?in use|not\b[^.\n]{1,30}\b(?:ready|yet)|in progres",
        'quick_field: raw.partition(b\'"%s"\' % name.encode())[2][:1000].lstrip(b": ") -> '
        'raw.partition(b\'"%s"\' % name.encode())[2][:1000].lstrip(b": X")',
    ),
    "the process ends at once": (
        "is_idle: os.close(fd) -> pass",
        "answer: os.close(fd) -> pass",
        "on_stop: os.close(fd) -> pass",
        "open_private: os.close(fd) -> pass",
        "append_line: os.close(fd) -> pass",
    ),
    "one blank is the next alternative's": (
        r"LIST_ITEM: (?:[*+-]|(\d{1,9})[.)])(?: {1,4}(?! |$)| |$) -> "
        r"(?:[*+-]|(\d{1,9})[.)])(?: {2,4}(?! |$)| |$)",
    ),
    "at the line's end nothing follows that could make it a mention": (
        "is_leaked_call: closing.end() <= len(line) -> closing.end() < len(line)",
    ),
}


class Mutant(NamedTuple):
    """A change of one script: what stands from start to end becomes new."""

    script: str
    start: int
    end: int
    new: str
    line: int
    where: str
    change: str
    part: str


class Source:
    """A script's text, as bytes for the positions of its syntax tree."""

    def __init__(self, script: str) -> None:
        self.script, self.data = script, (ROOT / script).read_bytes()
        self.tree = ast.parse(self.data)
        self.starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        text = self.data.decode()
        self.editable = (text.index("# --- Constants you may edit"), text.index("# --- Constants that follow"))
        self.shared = (text.index(BEGIN), text.index(END))
        self.maintenance = text.find("# --- Maintenance")
        self.detection = (text.find("# --- Pure part: finding"), text.find("# --- Pure part: reading"))

    def span(self, node: Any) -> tuple[int, int]:
        """Return where a node begins and ends."""
        start = self.starts[node.lineno - 1] + node.col_offset
        return start, self.starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, start: int, end: int) -> str:
        """Return a piece of the source."""
        return self.data[start:end].decode()

    def where(self, node: ast.AST) -> str:
        """Return the function that a node stands in, or the constant."""
        name, above = "", self.parents.get(node)
        while above is not None:
            if isinstance(above, ast.FunctionDef):
                name = above.name
            elif isinstance(above, (ast.Assign, ast.AnnAssign)) and isinstance(self.parents[above], ast.Module):
                target = above.targets[0] if isinstance(above, ast.Assign) else above.target
                name = target.id if isinstance(target, ast.Name) else ast.unparse(target)
            above = self.parents.get(above)
        return name

    def part(self, start: int, where: str) -> str:
        """Return the part of the code that a place belongs to."""
        if self.shared[0] < start < self.shared[1]:
            return "shared"
        if self.script == COACH:
            return "coach"
        if start > self.maintenance:
            return "maintenance"
        finds = self.detection[0] < start < self.detection[1] or names_pattern(where)
        return "detection" if finds else "recovery"

    def mutant(self, node: ast.AST, span: tuple[int, int], new: str, shown: tuple[int, int] | None = None) -> Mutant:
        """Return the change of a span to new; shown: the piece of source in which it is shown."""
        first, last = shown or span
        before, after = self.text(first, last), self.text(first, span[0]) + new + self.text(span[1], last)
        change = " -> ".join(" ".join(text.split())[:110] for text in (before, after))
        line = self.data.count(b"\n", 0, span[0]) + 1
        return Mutant(self.script, *span, new, line, self.where(node), change, self.part(span[0], self.where(node)))

    def compiles(self, node: ast.AST, mutant: Mutant) -> bool:
        """Tell whether the statement of the module that a node stands in is one still, with a change."""
        while not isinstance(self.parents[node], ast.Module):
            node = self.parents[node]
        start, end = self.span(node)
        try:
            ast.parse(self.text(start, mutant.start) + mutant.new + self.text(mutant.end, end))
        except SyntaxError:
            return False
        return True

    def with_change(self, mutant: Mutant) -> bytes:
        """Return the source with a change."""
        return self.data[: mutant.start] + mutant.new.encode() + self.data[mutant.end :]


def mutants_of(script: str) -> Iterator[Mutant]:
    """Yield every change of a script that still compiles."""
    source = Source(script)
    seen = set()
    for node in ast.walk(source.tree):
        if is_skipped(source, node):
            continue
        for mutant in changes_of(source, node):
            if (mutant.start, mutant.end, mutant.new) in seen or (script == COACH and mutant.part == "shared"):
                continue
            seen.add((mutant.start, mutant.end, mutant.new))
            if source.compiles(node, mutant):
                yield mutant


def is_skipped(source: Source, node: ast.AST) -> bool:
    """Tell whether a node holds no decision: wording, what a user edits, what stands for the type checker alone."""
    if not hasattr(node, "lineno"):
        return True
    start, name = source.span(node)[0], source.where(node)
    if source.editable[0] < start < source.editable[1] and name != "PASSING":
        return True
    above: ast.AST | None = node
    while above is not None:
        higher = source.parents.get(above)
        if isinstance(above, ast.If) and ast.unparse(above.test).startswith(("TYPE_CHECKING", "__name__")):
            return True
        if isinstance(higher, ast.JoinedStr):  # positions in there are wrong before Python 3.12
            return True
        if isinstance(higher, (ast.arg, ast.FunctionDef)) and above in (
            getattr(higher, "annotation", None),
            getattr(higher, "returns", None),
        ):
            return True
        if isinstance(higher, ast.AnnAssign) and above is higher.annotation:
            return True
        above = higher
    return name in SKIPPED or any(isinstance(node, kind) for kind in (ast.Import, ast.ImportFrom))


def changes_of(source: Source, node: Any) -> Iterator[Mutant]:
    """Yield the changes of one node."""
    span = source.span(node)
    if isinstance(node, ast.Compare):
        for left, right in zip([node.left, *node.comparators], node.comparators):
            yield from between(source, node, left, right, COMPARISONS)
    elif isinstance(node, ast.BoolOp):
        for left, right in zip(node.values, node.values[1:]):
            yield from between(source, node, left, right, {"and": ("or",), "or": ("and",)})
        yield from without_each(source, node, node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield source.mutant(node, (span[0], span[0] + 4), "", span)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        if not any(isinstance(side, ast.JoinedStr) or is_text(side) for side in (node.left, node.right)):
            yield from between(source, node, node.left, node.right, {"+": ("-",), "-": ("+",)})
    elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
        for forced in ("True", "False")[isinstance(node, ast.While) :]:
            if not isinstance(node.test, ast.Constant):
                yield source.mutant(node.test, source.span(node.test), forced)
    elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        for test in [test for generator in node.generators for test in generator.ifs]:
            for forced in ("True", "False"):
                yield source.mutant(test, source.span(test), forced, span)
    elif isinstance(node, ast.Constant):
        yield from changes_of_constant(source, node)
    elif isinstance(node, ast.JoinedStr) and is_pattern(source, node):
        yield from changes_of_pattern(source, node)
    elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        above, plain = source.parents[node], (ast.Constant, ast.Starred)
        unpacked = isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Tuple)
        if len(node.elts) > 1 and not unpacked and all(isinstance(element, plain) for element in node.elts):
            yield from without_each(source, node, node.elts)
    elif isinstance(node, ast.Dict):
        pairs = [(key or value, value) for key, value in zip(node.keys, node.values)]
        starts = [source.span(key)[0] - 2 * (key is value) for key, value in pairs]
        for index, (_, value) in enumerate(pairs):
            end = starts[index + 1] if index + 1 < len(pairs) else source.span(value)[1]
            yield source.mutant(node, (starts[index], end), "", (starts[index], source.span(value)[1]))
    elif isinstance(node, ast.Call):
        yield from changes_of_call(source, node)
    elif isinstance(node, ast.stmt):
        yield from changes_of_statement(source, node)


def is_text(node: ast.AST) -> bool:
    """Tell whether a node is a string or bytes."""
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def between(
    source: Source, node: ast.AST, left: ast.AST, right: ast.AST, table: dict[str, tuple[str, ...]]
) -> Iterator[Mutant]:
    """Yield the changes of the operator that stands between two nodes."""
    start, end = source.span(left)[1], source.span(right)[0]
    found = re.search(r"(is\s+not|not\s+in|\b(?:is|in|and|or)\b|[<>!=]=?|[-+])", source.text(start, end))
    if found:
        for new in table.get(" ".join(found[0].split()), ()):
            yield source.mutant(node, (start + found.start(), start + found.end()), new, source.span(node))


def without_each(source: Source, node: ast.AST, elements: list[Any]) -> Iterator[Mutant]:
    """Yield the changes that leave out one of several elements, with the operator or the comma beside it."""
    spans = [source.span(element) for element in elements]
    for index, (start, end) in enumerate(spans):
        whole = (start, spans[index + 1][0]) if index + 1 < len(spans) else (spans[index - 1][1], end)
        gap = source.text(spans[index - 1][1], start) if index + 1 == len(spans) else source.text(end, whole[1])
        if "(" not in gap and ")" not in gap and "#" not in gap:
            yield source.mutant(node, whole, "", source.span(node))


def changes_of_constant(source: Source, node: ast.Constant) -> Iterator[Mutant]:
    """Yield the changes of a constant."""
    span, value = source.span(node), node.value
    around = source.span(source.parents[node]) if hasattr(source.parents[node], "lineno") else span
    shown = around if around[1] - around[0] < 100 else span
    if isinstance(value, bool):
        yield source.mutant(node, span, str(not value), shown)
    elif isinstance(value, (int, float)):
        for new in (value + 1, value - 1) if value < 50 else (value * 10, value // 10):
            yield source.mutant(node, span, f"({new})" if new < 0 else repr(new), shown)
    elif isinstance(value, (str, bytes)):
        if is_pattern(source, node):
            yield from changes_of_pattern(source, node)
        elif isinstance(source.parents[node], ast.Expr):
            return  # a docstring
        elif (len(value.split()) == 1 and len(value) <= 40) or not value:
            quote = source.text(*span)[-1]
            yield source.mutant(node, (span[1] - 1, span[1]), f"X{quote}", shown)


def is_pattern(source: Source, node: ast.AST) -> bool:
    """Tell whether a string is a regular expression."""
    above: Any = source.parents[node]
    while isinstance(above, (ast.BinOp, ast.Tuple)):
        above = source.parents[above]
    if isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and above.args:
        inside = [part for part in ast.walk(above.args[0]) if part is node]
        return ast.unparse(above.func).startswith("re.") and bool(inside)
    return names_pattern(source.where(node))


def names_pattern(where: str) -> bool:
    """Tell whether a constant, or one of several, is a regular expression."""
    return bool(PATTERNS.intersection(re.findall(r"\w+", where)))


def changes_of_pattern(source: Source, node: ast.AST) -> Iterator[Mutant]:
    """Yield the changes of a regular expression, one literal of a concatenation at a time."""
    start, end = source.span(node)
    literals = re.finditer(r"""([rRbBfF]*)(\"\"\"|'''|"|')((?:\\.|(?!\2).)*)\2""", source.text(start, end), re.S)
    for literal in literals:
        at = start + len(source.text(start, end)[: literal.start(3)].encode())
        for first, last, new in pattern_edits(literal[3], "f" in literal[1].lower()):
            place = (at + len(literal[3][:first].encode()), at + len(literal[3][:last].encode()))
            shown = (max(at, place[0] - 30), min(at + len(literal[3].encode()), place[1] + 30))
            if literal[3][first:last] != new:
                yield source.mutant(node, place, new, shown)


def pattern_edits(body: str, formatted: bool) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, replacement) for the parts of a regular expression that can be left out or loosened."""
    open_groups: list[tuple[int, list[int]]] = [(-1, [])]
    at = 0
    while at < len(body):
        token = body[at]
        if token == "\\":
            at += 2
        elif token == "[":
            at = body.index("]", at + 2 + (body[at + 1] == "^")) + 1
        elif token == "{" and formatted and body[at : at + 2] != "{{":
            at = body.index("}", at) + 1
        elif token == "{":
            end = body.index("}", at) + 1 + formatted
            for number in re.finditer(r"\d+", body[at:end]):
                if int(number[0]) < 10:
                    for new in (int(number[0]) + 1, int(number[0]) - 1):
                        yield at + number.start(), at + number.end(), str(max(new, 0))
            at = end
        elif token == "(":
            open_groups.append((at, []))
            at += 3 if body[at + 1 : at + 2] == "?" else 1
        elif token == "|":
            open_groups[-1][1].append(at)
            at += 1
        elif token == ")" and len(open_groups) > 1:
            start, bars = open_groups.pop()
            yield from alternatives(body, start + 1, bars, at)
            if re.match(r"\(\?(?:[=!]|<[=!])", body[start:]):
                yield start, at + 1, ""
            at += 1
        else:
            if token in "?*+" and at and body[at - 1] not in "(|":
                yield at, at + 1, {"?": "", "*": "+", "+": "*"}[token]
            at += 1
    yield from alternatives(body, 0, open_groups[0][1], len(body))


def alternatives(body: str, start: int, bars: list[int], end: int) -> Iterator[tuple[int, int, str]]:
    """Yield the edits that leave out one alternative of a group."""
    if bars:
        head = re.match(r"\?(?:P<\w+>|[:=!]|<[=!])", body[start:end])
        edges = [start + (head.end() if head else 0) - 1, *bars, end]
        for left, right in zip(edges, edges[1:]):
            yield (left, right, "") if left in bars else (left + 1, right + 1, "")


def changes_of_call(source: Source, node: ast.Call) -> Iterator[Mutant]:
    """Yield the changes of a call: another function, no stripping, a keyword less."""
    span, function = source.span(node), node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name in NAMES:
        end = source.span(function)[1]
        yield source.mutant(node, (end - len(name), end), NAMES[name], span)
    if name in STRIPPING and isinstance(function, ast.Attribute):
        yield source.mutant(node, (source.span(function.value)[1], span[1]), "", span)
    if name == "update" and len(node.keywords) > 1:
        for index, keyword in enumerate(node.keywords):
            start, end = source.span(keyword)
            if index + 1 < len(node.keywords):
                yield source.mutant(node, (start, source.span(node.keywords[index + 1])[0]), "", (start, end))
            else:
                yield source.mutant(node, (source.span(node.keywords[index - 1])[1], end), "", (start - 2, end))


def changes_of_statement(source: Source, node: ast.stmt) -> Iterator[Mutant]:
    """Yield a statement of effect left out."""
    above: Any = source.parents[node]
    while above is not None and not isinstance(above, ast.FunctionDef):
        above = source.parents.get(above)
    if above is None:
        return
    dropped = isinstance(node, (ast.AugAssign, ast.Delete, ast.Continue, ast.Break, ast.Raise))
    dropped |= isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)
    dropped |= isinstance(node, ast.Return) and node is not above.body[-1]
    if isinstance(node, ast.Assign):
        targets = [part for target in node.targets for part in ast.walk(target) if isinstance(part, ast.expr)]
        names = {part.id for part in targets if isinstance(part, ast.Name)}
        dropped |= any(isinstance(part, (ast.Subscript, ast.Attribute)) for part in targets)
        set_before = {argument.arg for argument in above.args.args}
        for other in ast.walk(above):
            if isinstance(other, ast.Name) and isinstance(other.ctx, ast.Store) and other.lineno < node.lineno:
                set_before.add(other.id)
        dropped |= names <= set_before
    if dropped:
        yield source.mutant(node, source.span(node), "pass")


# --- Running the tests ------------------------------------------------------------------------------------


class Watch(unittest.TextTestResult):
    """A result that notes how long each test takes, and ends the process if one takes longer than it may."""

    limits: ClassVar[dict[str, float]] = {}
    seconds: ClassVar[dict[str, float]] = {}

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        signal.alarm(int(self.limits.get(test.id(), SLOW_SEC * 10)) + 1)
        self.seconds[test.id()] = time.monotonic()

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        self.seconds[test.id()] = time.monotonic() - self.seconds[test.id()]


def run_tests(job: dict[str, Any]) -> None:
    """In a process of its own: run the tests of a job, and print what became of them.

    job: {"modules": [name]} for all tests of these, or {"limits": {test: seconds}} for these up to the first failure.
    """
    sys.path.insert(0, str(ROOT))
    Watch.limits.update(job.get("limits", {}))
    result = Watch(unittest.runner._WritelnDecorator(io.StringIO()), False, 0)
    result.failfast = bool(Watch.limits)
    names = job.get("modules") or list(Watch.limits)
    for _, group in itertools.groupby(names, lambda name: name.partition(".")[0]):  # a module not needed is not loaded
        if not result.shouldStop:
            unittest.TestLoader().loadTestsFromNames(list(group)).run(result)
    bad = [getattr(test, "test_case", test) for test, _ in [*result.failures, *result.errors]]
    print(json.dumps({"red": sorted({test.id() for test in bad}), "seconds": Watch.seconds}))


class Place:
    """A copy of the repository in which one change at a time is tried."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "copy"
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        shutil.copytree(ROOT, self.folder, ignore=shutil.ignore_patterns(".git", "__pycache__", ".*_cache", "e2e"))

    def run(self, job: dict[str, Any], limit: float) -> dict[str, Any] | None:
        """Run a job; None if it does not end well or not in time."""
        env = {"HOME": str(self.home), "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, str(self.folder / "tests" / "mutate.py"), "--job", json.dumps(job)]
        with subprocess.Popen(
            command, env=env, cwd=self.folder / "tests", start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            try:
                out, _ = process.communicate(timeout=limit)
                answer = json.loads(out.splitlines()[-1])
            except (subprocess.TimeoutExpired, ValueError, LookupError):
                answer = None
                with contextlib.suppress(ProcessLookupError):  # what it started may run still
                    os.killpg(process.pid, signal.SIGKILL)
        return answer if isinstance(answer, dict) else None

    def put(self, sources: dict[str, Source], mutant: Mutant | None) -> None:
        """Write the scripts, with a change or without."""
        for name, source in sources.items():
            data = source.data
            if mutant and mutant.script == name:
                data = source.with_change(mutant)
            elif mutant and mutant.part == "shared":
                changed = sources[mutant.script].with_change(mutant)
                begin, end = sources[mutant.script].shared
                block = changed[begin : end + len(changed) - len(sources[mutant.script].data)]
                data = data[: source.shared[0]] + block + data[source.shared[1] :]
            (self.folder / name).write_bytes(data)


class Pass:
    """One run over many mutants: which tests there are, how long they take, which of them found what."""

    def __init__(self, folder: Path, verbose: bool) -> None:
        self.sources = {name: Source(name) for name in (RECOVER, COACH)}
        self.places = [Place(folder / str(number)) for number in range(2)]
        self.tests: dict[str, list[str]] = {}
        self.seconds: dict[str, float] = {}
        self.found: dict[str, list[str]] = {}
        self.lock = threading.Lock()
        self.verbose = verbose

    def measure(self, parts: set[str]) -> None:
        """Run the tests of some parts without a change; those that are red or slow are left out from now on."""
        modules = list(dict.fromkeys(name for part in sorted(parts) for name in TESTS[part]))
        modules = [name for name in modules if (ROOT / "tests" / f"{name}.py").exists()]
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(self.measure_module, modules))
        for name, answer in zip(modules, answers):
            if answer is None:
                raise SystemExit(f"{name} does not end without any change")
            slow = {test for test, took in answer["seconds"].items() if took > SLOW_SEC}
            left_out = {*answer["red"], *slow}
            for test in sorted(left_out):
                print(f"left out, {'red' if test in answer['red'] else 'slow'} without any change: {test}", flush=True)
            left_out |= {test for test in answer["seconds"] if any(words in test for words in LEFT_OUT)}
            usable = {test: took for test, took in answer["seconds"].items() if test not in left_out}
            self.seconds.update(usable)
            self.tests[name] = list(usable)

    def measure_module(self, name: str) -> dict[str, Any] | None:
        """Run one module of tests without a change."""
        with self.lock:
            place = self.places.pop()
        try:
            return place.run({"modules": [name]}, 900)
        finally:
            self.places.append(place)

    def survives(self, mutant: Mutant) -> bool:
        """Tell whether no test goes red; first run those that found changes in the same function, then the quick."""
        tests = [test for name in TESTS[mutant.part] for test in self.tests.get(name, [])]
        tests.sort(key=lambda test: (not test.startswith("test_decisions."), self.seconds[test]))
        first = [test for test in self.found.get(mutant.where, []) if test in tests]
        order = list(dict.fromkeys([*first, *tests]))
        limits = {test: 10 + 5 * self.seconds[test] for test in order}
        with self.lock:
            place = self.places.pop()
        try:
            place.put(self.sources, mutant)
            answer = place.run({"limits": limits}, 600)
        finally:
            place.put(self.sources, None)
            self.places.append(place)
        if answer and answer["red"]:
            with self.lock:
                found = self.found.setdefault(mutant.where, [])
                found[:] = [*answer["red"], *(test for test in found if test not in answer["red"])][:12]
        if self.verbose:
            fate = "no answer" if answer is None else " ".join(answer["red"]) or "SURVIVES"
            print(f"{mutant.script}:{mutant.line}: {mutant.where}: {mutant.change} | {fate}", flush=True)
        return bool(answer and not answer["red"])


def main(argv: list[str]) -> int:
    """Make the mutants, try them, print what survives; return 1 if any does."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--script", choices=[RECOVER, COACH], help="this one alone")
    parser.add_argument("--part", choices=list(TESTS), help="this part alone")
    parser.add_argument("--line", help="this line alone, or these: 120-180")
    parser.add_argument("--limit", type=int, help="so many, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", metavar="FILE", help="those alone that survive in an earlier run's output")
    parser.add_argument("--verbose", action="store_true", help="print every mutant and the test that found it")
    parser.add_argument("--list", action="store_true", help="print the mutants, and run nothing")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.job:
        run_tests(json.loads(options.job))
        return 0
    mutants = [mutant for name in (RECOVER, COACH) if options.script in (None, name) for mutant in mutants_of(name)]
    if options.line:
        first, _, last = options.line.partition("-")
        mutants = [mutant for mutant in mutants if int(first) <= mutant.line <= int(last or first)]
    mutants = [mutant for mutant in mutants if options.part in (None, mutant.part)]
    if options.again:
        lines = Path(options.again).read_text("utf-8").splitlines()
        survived = {line.partition(": ")[2] for line in lines if " | " not in line or line.endswith(" | SURVIVES")}
        survived = {line[: -len(" | SURVIVES")] if line.endswith(" | SURVIVES") else line for line in survived}
        mutants = [mutant for mutant in mutants if f"{mutant.where}: {mutant.change}" in survived]
    equivalent = {change for changes in EQUIVALENT.values() for change in changes}
    known = [mutant for mutant in mutants if f"{mutant.where}: {mutant.change}" in equivalent]
    mutants = [mutant for mutant in mutants if mutant not in known]
    if options.limit is not None and options.limit < len(mutants):
        mutants = sorted(random.Random(options.seed).sample(mutants, options.limit))
    if options.list:
        print("\n".join(f"{m.script}:{m.line}: {m.where}: {m.change}" for m in mutants))
        print(f"{len(mutants)} mutants, {len(known)} more without a difference")
        return 0
    with tempfile.TemporaryDirectory(prefix="toolcall-hooks-mutate-") as folder:
        this = Pass(Path(folder), options.verbose)
        this.measure({mutant.part for mutant in mutants})
        surviving = 0
        with ThreadPoolExecutor(2) as pool:
            for mutant, survives in zip(mutants, pool.map(this.survives, mutants)):
                if survives:
                    surviving += 1
                    print(f"{mutant.script}:{mutant.line}: {mutant.where}: {mutant.change}", flush=True)
    print(
        f"{len(mutants)} mutants, {len(mutants) - surviving} killed, {surviving} survive; "
        f"{len(known)} more without a difference"
    )
    return 1 if surviving else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

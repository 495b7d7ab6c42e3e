#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The toolcall-hooks authors
# SPDX-License-Identifier: MIT
"""Send Claude Code back to work when a tool call was lost.

Sometimes the model's tool call comes out as plain text (a leaked call), or cannot be parsed and the
client gives up (the give-up). Nothing ran, the turn ends, and the session idles until a person types.

  Stop, SubagentStop   the last message holds a leaked call  ->  block: the model goes on, with a prompt
  StopFailure          the client gave up on a call          ->  wake: exit 2, the prompt on stderr
  Stop, SubagentStop   the retry budget is spent             ->  hand back: a line for the person

Malformed stops at most STREAK_WINDOW_SEC apart are one burst; each spends one of MAX_RETRIES, and no more in a
row than the client lets pass (BLOCK_CAP). A clean Stop ends the burst. Text that shows a call as Markdown code,
or talks about one, is left alone.

Reads   the event on stdin; the last rows of the session's transcript; prompts.txt beside this file
Writes  /tmp/cc-recover-<session>[.<subagent>].json   count, time and last prompt of the burst
        toolcall-hooks.log in the config folder        one line per action; no text of the conversation
        /tmp/cc-recover-heartbeat.log                  only while /tmp/cc-recover-heartbeat.on exists
Never   runs, sends, or repeats anything of a leaked call but the tool's name. Any error of its own: exit 0,
        nothing printed, a line in the record

By hand (client 2.1.104 or newer): copy this file (and prompts.txt) to ~/.claude/hooks, and put into
~/.claude/settings.json:

  {"hooks": {"Stop": [{"hooks": [HOOK]}], "SubagentStop": [{"hooks": [HOOK]}], "StopFailure": [{"hooks": [WAKING]}]}}

  HOOK    {"type": "command", "timeout": 10, "command": "python3 -I -S ~/.claude/hooks/recover_malformed_toolcall.py"}
  WAKING  the same with "asyncRewake": true
"""

import os
import stat
import sys
import time

TYPE_CHECKING = False  # typing is for the type checker alone: importing it would double the start time
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Any

__version__ = "1.0.0"

# --- Constants you may edit; an upgrade keeps your values ---

MAX_RETRIES = 10  # recoveries in one burst, then the person is asked; 0 = only ever hand back
STREAK_WINDOW_SEC = 600  # seconds; malformed stops at most this far apart are one burst
TAIL_BYTES = 2_000_000  # bytes of the transcript looked at, from its end
LAG_WAIT_SEC = 0.5  # seconds to wait for a reply that the client has not yet written to the transcript
ACTION_LOG = "toolcall-hooks.log"  # file in the config folder, one line per action; "" = no record
# Used when there is no prompts.txt beside this file. Describe the format in words: spelled tags get copied.
RECOVERY_PROMPTS = (
    "Check that the call carries the full namespace prefix in every opening and closing tag.",
    "Write nothing before the call; let it be the first thing in your reply.",
    "If the call was long, split the work and begin with a small part.",
    "Use another tool with simpler arguments if one does the same job.",
    "Take the smallest next step that moves the task on.",
)

# --- Constants that follow the client ---

GIVE_UP_SENTENCES = ("The model's tool call could not be parsed (retry also failed).",)  # 2.1.112 to 2.1.332
BLOCK_CAP = 8  # blocks in a row that the client lets pass if CLAUDE_CODE_STOP_HOOK_BLOCK_CAP is unset (2.1.158 on)
IDLE = b'{"count": 0'  # how the state of a session without a burst begins

# Built from parts: a tag spelled out in a file is taken for a call by tools that read the file.
PREFIX, CALL, ARGUMENT = "ant" + "ml:", "inv" + "oke", "para" + "meter"
# A call's opening tag: one attribute, the name. Its "<" may be lost, its word garbled.
OPENER = (
    rf"(?:(?P<less>(?<!\\)<)|(?<![\w\\:.<-]))(?P<prefix>(?:{PREFIX})?)(?P<word>[^\W\d]\w*)\s+name\s*=\s*"
    r"""(?:"(?P<name>[^"<>\n]{1,200})"|'(?P<name2>[^'<>\n]{1,200})')\s*>"""
)
ARGUMENT_OPENER = rf"\s*<?(?:{PREFIX})?{ARGUMENT}\s+name\s*=(?:\s*[\"'][^\"'<>\n]*[\"']\s*>|[^<>]*\Z)"
CLOSER = rf"</(?:{PREFIX})?{CALL}\s*>"
# What else follows a call's opening tag: the end of the message, a closing tag, or a tag cut off there.
CALL_GOES_ON = rf"\s*(?:\Z|</(?:{PREFIX})?(?:{CALL}|{ARGUMENT}|function_)|<{PREFIX}|<[^<>]*\Z)"
# Markdown, at the start of a line without its indentation.
FENCE = r"`{3,}(?=[^`\x01]*$)|~{3,}"
HEADING, UNDERLINE = r"#{1,6}(?: |$)", r"(?:=+|-+) *$"
RULE = r"([*_-])(?: *\1){2,} *$"
LIST_ITEM = r"(?:[*+-]|(\d{1,9})[.)])(?: {1,4}(?! |$)| |$)"
BLOCK_CODE, SPAN_CODE = "\0", "\1"  # what mask_code puts in place of a code line and of a code span


# --- Pure part: finding a leaked call ---


def mask_code(text: str) -> str:
    """Return text with Markdown's code and quotations blanked out as CommonMark reads them; the lines stay as many."""
    import re

    masked: "list[str]" = []
    paragraph: "list[str]" = []
    columns: "list[int]" = []  # where the content of each open list item begins
    fence, fence_column = "", 0

    def end_paragraph(indent: int) -> None:
        if paragraph:
            masked.extend(mask_spans("\n".join(paragraph)).split("\n"))
            paragraph.clear()
        columns[:] = [column for column in columns if column <= indent]

    for line in text.split("\n"):
        line = line.expandtabs(4)
        rest = line.lstrip(" ")
        indent = len(line) - len(rest)
        if fence and (not rest or indent >= fence_column):
            masked.append(line[:fence_column].ljust(fence_column) + BLOCK_CODE * max(1, len(line) - fence_column))
            bare = rest.rstrip(" ")
            if indent < fence_column + 4 and len(bare) >= len(fence) and not bare.strip(fence[0]):
                fence = ""
            continue
        fence = ""
        if not rest:
            end_paragraph(len(text))
            masked.append(line)
            continue
        base = max([column for column in columns if column <= indent], default=0)
        inside = bool(paragraph) and base == max(columns, default=0)  # the open paragraph is this line's container
        items = items_opened(line, base, inside) if rest[0] in "*+-0123456789" else []
        if items:
            end_paragraph(indent)
            columns += items
            base, inside = items[-1], False
            rest = line[base:].lstrip(" ")
            indent = len(line) - len(rest)
        indented = indent >= base + 4
        opening = re.match(FENCE, rest) if rest[:1] in ("`", "~") and not indented else None
        if not rest:
            masked.append(line)
        elif indented and paragraph:
            paragraph.append(line)
        elif indented or opening or rest.startswith(BLOCK_CODE) or (rest[0] == ">" and rest.strip() != ">"):
            end_paragraph(indent)
            masked.append(line[:base] + BLOCK_CODE * (len(line) - base))
            if opening:
                fence, fence_column = opening[0], base
        elif rest[0] in "#*-=_" and (re.match(f"{RULE}|{HEADING}", rest) or (inside and re.match(UNDERLINE, rest))):
            end_paragraph(indent)
            masked.append(mask_spans(line))
        else:
            if not paragraph:
                end_paragraph(indent)
            paragraph.append(line)
    end_paragraph(0)
    return "\n".join(masked)


def items_opened(line: str, base: int, interrupts: bool) -> "list[int]":
    """Return the columns where the contents of the list items that a line opens begin, outermost first.

    base: the column of the container it stands in; interrupts: a paragraph is open there, which only a list's first
    item, and no empty one, can interrupt.
    """
    import re

    columns: "list[int]" = []
    rest = line.lstrip(" ")
    indent = len(line) - len(rest)
    while indent < base + 4 and len(columns) < 20 and not re.match(RULE, rest):
        item = re.match(LIST_ITEM, rest)
        if not item or (interrupts and (int(item[1] or 1) != 1 or not rest[item.end() :].strip())):
            break
        base, interrupts = indent + max(item.end(), len(item[0].rstrip()) + 1), False
        columns.append(base)
        rest, indent = line[base:], base
    return columns


def mask_spans(paragraph: str) -> str:
    """Return one paragraph with its code spans blanked out; the backticks in a leaked call's arguments are its own."""
    import re

    zones: "list[tuple[int, int]]" = []  # from a call's first argument to its closing tag
    argument, closer = re.compile(ARGUMENT_OPENER), re.compile(CLOSER)
    end, closed = 0, True
    for call in re.finditer(OPENER, paragraph):
        first = argument.match(paragraph, call.end())
        if call.start() < end or not first:
            continue
        before = paragraph[max(0, call.start() - 200) : call.start()]
        if not re.search(r"[`\x01](?:\s?|[^\s`\x01]\S{0,39}\s+)\Z", before):  # else the call is what a span begins with
            closing = closer.search(paragraph, first.end()) if closed else None
            closed = closing is not None  # if one has no closing tag, none after it has
            if closing or len(before.rpartition("\n")[2].split()) <= 1:
                end = closing.end() if closing else len(paragraph)
                zones.append((first.end(), end))
    runs: "list[tuple[int, int, int, int]]" = []  # zone, start, end, escaped ticks
    zone = 0
    for run in re.finditer(r"(?<!\\)(\\*)(`+)", paragraph):
        while zone < len(zones) and zones[zone][1] <= run.start():
            zone += 1
        inside = zone < len(zones) and zones[zone][0] <= run.start()
        runs.append((zone if inside else -1, run.start(2), run.end(2), len(run[1]) % 2))
    partner: "dict[int, int]" = {}
    ahead: "dict[tuple[int, int], int]" = {}
    for index in range(len(runs) - 1, -1, -1):
        home, start, end, escaped = runs[index]
        if (home, end - start - escaped) in ahead:
            partner[index] = ahead[home, end - start - escaped]
        ahead[home, end - start] = index
    pieces: "list[str]" = []
    index = done = 0
    while index < len(runs):
        if index in partner:
            start, end = runs[index][1] + runs[index][3], runs[partner[index]][2]
            pieces += [paragraph[done:start], re.sub(r"[^\n]", SPAN_CODE, paragraph[start:end])]
            done, index = end, partner[index]
        index += 1
    return "".join(pieces) + paragraph[done:]


def find_leaked_call(text: str) -> "str | None":
    """Return the name in the first tool call that text holds as plain text, or None if it holds none."""
    import re

    text = text.replace("\r\n", "\n")
    if not re.search(OPENER, text):
        return None
    shown = mask_code(text)
    for opener in re.finditer(OPENER, shown):
        before = shown[max(0, opener.start() - 200) : opener.start()].rpartition("\n")[2]
        after = shown[opener.end() : opener.end() + 4000]
        if is_leaked_call(bool(opener["less"]), bool(opener["prefix"]), opener["word"], before, after):
            return opener["name"] or opener["name2"]
    return None


def is_leaked_call(less: bool, prefix: bool, word: str, before: str, after: str) -> bool:
    """Tell a leaked call from a mention and from other vocabularies.

    word: the opening tag's word, with its "<" (less) and the namespace prefix or without; before: the rest of
    its line before it; after: the text that follows it.
    """
    import re

    line, words = after.partition("\n")[0], before.split()
    leads = len(words) <= 1 or words[-1][-1] in ".:!?\u2026\u3002\uff1a\uff01\uff1f"  # where a call may begin
    argument = re.match(ARGUMENT_OPENER, after)
    goes_on = argument or re.match(CALL_GOES_ON, after)
    closing = re.search(CLOSER, after)
    if not less and not (argument if len(words) == 1 else goes_on and not words):
        return False
    if word != CALL:
        return bool(word != ARGUMENT and argument and (prefix or closing))
    if closing and is_mention(len(words), leads, closing.end() <= len(line), after[closing.end() :].partition("\n")[0]):
        return False
    if goes_on or re.match(r"\s*<", after):
        return bool(goes_on) and (leads or after.strip() != "")
    # Text instead of arguments; with no closing tag behind it, it is rather prose about a tag.
    return leads and closing is not None and (not line.strip() or closing.end() <= len(line))


def is_mention(words_before: int, leads: bool, on_one_line: bool, tail: str) -> bool:
    """Tell whether a whole call is part of a sentence: prose goes on after it; tail: what follows it on its line."""
    import re

    tail = tail.strip()
    if not tail or re.match(rf"<(?!{CALL}|{PREFIX}{CALL})", tail):
        return False
    goes_on = not tail[0].isupper()
    return (goes_on or words_before > 1) if on_one_line else (goes_on and not leads)


# --- Pure part: reading a reply, the budget, the words ---


def text_of(event: "dict[str, Any]", name: str) -> str:
    """Return a field of an event, "" if it is missing or no string."""
    value = event.get(name)
    return value if isinstance(value, str) else ""


def last_turn(rows: "Iterable[dict[str, Any]]", subagent: bool) -> "dict[str, Any]":
    """Return what the transcript says of the turn that ended.

    rows: the transcript's rows, newest first; a reply is one row per content block, joined by message.id. The result:
    written (the last reply is there; up to 2.1.305 it mostly is not yet when Stop fires), texts (of its text blocks),
    tool_use (it holds a real tool call), synthetic (the client wrote it), tool_ran (since the last prompt or block).
    """
    turn: "dict[str, Any]" = {"texts": [], "tool_use": False, "synthetic": False, "tool_ran": False}
    reply, awaited = None, False
    for row in rows:
        message = row.get("message")
        if not isinstance(message, dict) or (row.get("isSidechain") is True and not subagent):
            continue
        content = message.get("content")
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        blocks += [{"type": "text", "text": content}] if isinstance(content, str) else []
        kinds = [block.get("type") for block in blocks]
        if row.get("type") == "assistant":
            reply = reply or (message.get("id"),)
            if reply == (message.get("id"),) and not awaited:
                turn["tool_use"] |= "tool_use" in kinds
                turn["synthetic"] |= message.get("model") == "<synthetic>"
                turn["texts"][:0] = [text_of(block, "text").strip() for block in blocks if block.get("type") == "text"]
            turn["tool_ran"] |= "tool_use" in kinds
        elif row.get("type") == "user":
            awaited = awaited or reply is None  # what follows it is not written yet
            if "tool_result" not in kinds:
                break
            turn["tool_ran"] = True
    return {**turn, "written": reply is not None and not awaited}


def judge(message: str, turn: "dict[str, Any] | None") -> "tuple[str, str]":
    """Return ("give-up", ""), ("leak", tool name) or ("clean", "") for the message that ended a turn, "" if unknown."""
    texts = turn["texts"] if turn else []
    text = message or "\n".join(texts)
    if text.strip() in GIVE_UP_SENTENCES:
        return ("give-up" if turn and turn["synthetic"] else "clean"), ""
    if turn and turn["tool_use"] and (not message or texts[-1:] == [message]):
        return "clean", ""  # a real tool call came with it
    name = find_leaked_call(text)
    return ("clean", "") if name is None else ("leak", name)


def burst_of(state: "dict[str, Any]", now: float) -> "tuple[int, int]":
    """Return (recoveries, blocks in a row) of the burst that is going on, (0, 0) if there is none."""
    numbers = [state.get(name) for name in ("count", "blocks", "ts")]
    count, blocks, ts = (n if isinstance(n, (int, float)) and 0 <= n < 1e15 else 0 for n in numbers)  # no NaN either
    return (int(count), int(blocks)) if 0 <= now - ts <= STREAK_WINDOW_SEC else (0, 0)


def spend(state: "dict[str, Any]", now: float, block_cap: int, nothing_ran: bool) -> "tuple[str, dict[str, Any]]":
    """Return ("block" or "hand-back", the new state) for one more malformed stop.

    block_cap: blocks in a row that the client lets pass, 0 = any number; nothing_ran: nothing ran since the last one.
    """
    count, blocks = burst_of(state, now)
    blocks = blocks if nothing_ran else 0
    used = {"count": count + 1, "ts": now, "last_idx": state.get("last_idx"), "blocks": blocks + 1 if block_cap else 0}
    spent = count >= MAX_RETRIES or 0 < block_cap <= blocks
    return ("hand-back", {**used, "count": 0, "blocks": 0}) if spent else ("block", used)


def recovery_text(kind: str, tool: str, prompt: str, attempt: int, subagent: bool) -> str:
    """Return what the model reads: the facts, one thing to do, a prompt, the attempt. It spells no markup."""
    call = f"{tool} call" if tool.isascii() and tool.isidentifier() and len(tool) <= 64 else "tool call"
    fate = "was written out as text" if kind == "leak" else "could not be parsed"
    shown = "If the markup was only meant to be shown, say so in one line and stop. " if kind == "leak" else ""
    reader = "Your last message is what the caller receives: finish the task and report in full. " if subagent else ""
    return (
        f"recover_malformed_toolcall (a hook): your last {call} {fate}, so nothing ran, and whatever was written about "
        f"its result is unproven. Make the call first and alone. {shown}{reader}{prompt} "
        f"(recovery attempt {attempt}/{MAX_RETRIES})"
    )


def hand_back_text(subagent: bool) -> str:
    """Return what the person reads when the retries are spent."""
    whose, end = ("a subagent's", "it ends without them") if subagent else ("the model's", "it is your turn")
    return (
        f"recover_malformed_toolcall: {whose} tool calls keep coming out malformed and did not run; the retries are "
        f"spent, so {end}. Type continue to try again; if it keeps failing, /rewind to before the failed call."
    )


# --- Effects ---

# --- Shared by both scripts, letter for letter: begin ---

STATE_DIR = "/tmp" if os.name == "posix" else os.environ.get("TEMP", ".")
WAIT_SEC = 2.0  # seconds to wait for an event on a stdin left open, and for another hook that holds the state
LOG_MAX_BYTES = 200_000  # the record is then renamed to <name>.old and begun anew


def read_stdin() -> bytes:
    """Return the event on stdin: one line of JSON (2.1.104 to 2.1.332), or all up to its end."""
    data = bytearray()
    if os.name == "posix":
        os.set_blocking(0, False)  # the event is there already; only if not, select is imported
    while not data.endswith(b"}\n"):
        try:
            chunk = os.read(0, 1 << 20)
            if not chunk:
                break
            data += chunk
        except BlockingIOError:
            import select

            if not select.select([0], [], [], WAIT_SEC)[0]:
                break
    return bytes(data)


def quick_field(raw: bytes, name: str) -> str:
    """Return the first string of that name in raw JSON without parsing it, or "".

    The session's fields stand before all that a model or a person wrote (2.1.104 to 2.1.332).
    """
    value = raw.partition(b'"%s"' % name.encode())[2][:1000].lstrip(b": ")
    return value[1:].partition(b'"')[0].decode("utf-8", "replace") if value[:1] == b'"' else ""


def state_path(hook: str, *ids: str) -> str:
    """Return the path of the state of one session (and subagent); no id leads out of STATE_DIR."""
    name = os.path.basename(".".join(filter(None, ids)))[:200]
    return os.path.join(STATE_DIR, f"cc-{hook}-{name}.json")


def open_private(path: str, flags: int) -> int:
    """Open a regular file that is the user's own and has one name; OSError for anything planted there."""
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
        flags |= getattr(os, name, 0)
    fd = os.open(path, flags, 0o600)
    info = os.fstat(fd)
    user = os.geteuid() if os.name == "posix" else info.st_uid
    if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1 or info.st_uid != user:
        os.close(fd)
        raise PermissionError(f"{path} is not the user's own regular file")
    return fd


def is_idle(path: str, idle: bytes) -> bool:
    """Tell whether the state at path is missing, empty, unreadable, or begins with idle."""
    try:
        fd = open_private(path, os.O_RDONLY)
    except OSError:
        return True
    start = os.read(fd, len(idle))
    os.close(fd)
    return start in (b"", idle)


def lock_state(path: str) -> int:
    """Return a descriptor of the state file, made if missing and locked until closed; OSError if that fails."""
    fd = open_private(path, os.O_RDWR | os.O_CREAT)
    for _ in range(int(WAIT_SEC * 100)):
        try:
            if sys.platform == "win32":
                import msvcrt

                os.lseek(fd, 1 << 30, os.SEEK_SET)
                msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
                os.lseek(fd, 0, os.SEEK_SET)
            else:
                os.lockf(fd, os.F_TLOCK, 0)  # it goes with the first descriptor of the file that is closed
            return fd
        except OSError:
            time.sleep(0.01)
    raise TimeoutError(path)


def load_state(fd: int) -> "dict[str, Any]":
    """Return the state behind a locked descriptor; {} for an empty or unreadable one."""
    import json

    try:
        state = json.loads(os.read(fd, 4_000_000).partition(b"\n")[0])
    except (ValueError, RecursionError):
        return {}
    return state if isinstance(state, dict) else {}


def store_state(fd: int, state: "dict[str, Any]") -> None:
    """Write the state behind a locked descriptor; OSError if it could not be written whole."""
    import json

    data = json.dumps(state).encode() + b"\n"
    os.lseek(fd, 0, os.SEEK_SET)
    if os.write(fd, data) != len(data):
        raise OSError("the state was not written whole")
    os.ftruncate(fd, len(data))


def config_folder() -> str:
    """Return the client's config folder."""
    return os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser(os.path.join("~", ".claude"))


def append_line(log: str, *words: str) -> None:
    """Append a line to a log in the config folder ("" = none): the time and the words, set apart by tabs; rotate a
    full log. Never raises OSError."""
    path = os.path.join(config_folder(), log)
    line = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()).encode()
    for word in words:
        line += b"\t" + (word[:100].encode("unicode_escape") or b"-")
    try:
        fd = open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(fd, line + b"\n")
        os.close(fd)
        if os.path.getsize(path) > LOG_MAX_BYTES:
            os.replace(path, path + ".old")
    except OSError:
        pass


def say(output: "dict[str, Any]") -> int:
    """Print a hook's answer; return the exit code 0."""
    import json

    os.write(1, json.dumps(output).encode() + b"\n")
    return 0


def run_hook(hook: str, nothing_to_do: "Any", handlers: "dict[str, Any]") -> int:
    """Answer the event on stdin; return the exit code. The one catch-all: a hook must never wedge a session."""
    raw = b""
    try:
        raw = read_stdin()
        if nothing_to_do(raw):
            return 0
        import json

        event = json.loads(raw.decode("utf-8", "replace"))
        return int(handlers[event["hook_event_name"]](event))
    except BaseException as error:
        append_line(ACTION_LOG, hook, quick_field(raw, "session_id"), "error", type(error).__name__, "0")
        return 0


# --- Shared by both scripts, letter for letter: end ---

HEARTBEAT = os.path.join(STATE_DIR, "cc-recover-heartbeat")  # .on is the switch, .log the log


def rows_from_end(path: str) -> "Iterator[dict[str, Any]]":
    """Yield the transcript's message rows, newest first, from its last TAIL_BYTES; broken rows are passed over."""
    import json

    with open(path, "rb") as file:
        position = file.seek(0, os.SEEK_END)
        stop, carry = max(0, position - TAIL_BYTES), b""
        while position > stop:
            size = min(65536, position - stop)
            position -= size
            file.seek(position)
            carry, *lines = (file.read(size) + carry).split(b"\n")
            for line in [*lines[::-1], *([carry] if position == 0 else [])]:
                try:
                    row = json.loads(line) if b'"message"' in line else None
                except (ValueError, RecursionError):
                    continue
                if isinstance(row, dict):
                    yield row


def read_turn(path: str, subagent: bool, message: str, wait_sec: float) -> "dict[str, Any] | None":
    """Return last_turn of a transcript, at once if it holds the message, else after wait_sec; None if unreadable."""
    deadline = time.monotonic() + wait_sec
    while True:
        try:
            turn = last_turn(rows_from_end(path), subagent) if os.path.isfile(path) else None
        except OSError:
            turn = None
        there = turn and turn["written"] and (not message or message in turn["texts"])
        if there or time.monotonic() >= deadline:
            return turn
        time.sleep(0.05)


def read_prompts() -> "list[str]":
    """Return the prompts of prompts.txt beside this file, or RECOVERY_PROMPTS."""
    path, text = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts.txt"), ""
    try:
        if os.path.isfile(path):
            with open(path, encoding="utf-8-sig", errors="replace") as file:
                text = file.read(200_000)
    except OSError:
        pass
    prompts = [line.strip()[:1000] for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return prompts or list(RECOVERY_PROMPTS)


def beat(event: "dict[str, Any]", kind: str, turn: "dict[str, Any] | None") -> None:
    """Note an event in the heartbeat's log while the user's own file asks for it."""
    try:
        os.close(open_private(HEARTBEAT + ".on", os.O_RDONLY))
    except OSError:
        return
    tool_use = f"tool_use={turn['tool_use'] if turn else 'unknown'}"
    length = f"length={len(text_of(event, 'last_assistant_message'))}"
    append_line(HEARTBEAT + ".log", text_of(event, "session_id"), event["hook_event_name"], kind, tool_use, length)


def burst_path(event: "dict[str, Any]") -> str:
    """Return the path of the burst's state: of the session, or of its subagent."""
    return state_path("recover", text_of(event, "session_id"), text_of(event, "agent_id"))


def answer(event: "dict[str, Any]", kind: str, tool: str, nothing_ran: bool) -> int:
    """Spend a retry on a malformed stop and say what follows; nothing is said unless it could be counted."""
    name, session, prompts = event["hook_event_name"], text_of(event, "session_id"), read_prompts()
    cap = os.environ.get("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "")
    number = int(cap[:9]) if cap.isascii() and cap.isdigit() else BLOCK_CAP
    block_cap = 0 if name == "StopFailure" else number
    fd = lock_state(burst_path(event))
    former, now = load_state(fd), time.time()
    outcome, state = spend(former, now, block_cap, nothing_ran)
    others = [index for index in range(len(prompts)) if index != state["last_idx"]] or [0]
    state["last_idx"] = others[int.from_bytes(os.urandom(4), "big") % len(others)]
    store_state(fd, state)
    os.close(fd)
    if outcome == "hand-back":
        append_line(ACTION_LOG, "recover", session, "hand-back", tool, str(burst_of(former, now)[0]))
        # What a StopFailure hook prints is shown to nobody (2.1.112 to 2.1.332).
        return 0 if name == "StopFailure" else say({"systemMessage": hand_back_text(name == "SubagentStop")})
    outcome = "wake" if name == "StopFailure" else "block"
    append_line(ACTION_LOG, "recover", session, outcome, tool, str(state["count"]))
    text = recovery_text(kind, tool, prompts[state["last_idx"]], state["count"], name == "SubagentStop")
    if name != "StopFailure":
        return say({"decision": "block", "reason": text})
    os.write(2, text.encode())
    return 2


# --- Handlers: what happens on each event ---


def nothing_to_do(raw: bytes) -> bool:
    """Tell from the raw event alone that it is an ordinary stop outside a burst; parsing costs more than all else."""
    if not quick_field(raw, "last_assistant_message") or os.path.lexists(HEARTBEAT + ".on"):
        return False
    if any(word in raw for word in (CALL.encode(), ARGUMENT.encode(), b"could not be parsed")):
        return False
    return is_idle(state_path("recover", quick_field(raw, "session_id"), quick_field(raw, "agent_id")), IDLE)


def on_stop(event: "dict[str, Any]") -> int:
    """Judge the message that ended the turn; block, hand back, or end the burst."""
    subagent, message = event["hook_event_name"] == "SubagentStop", text_of(event, "last_assistant_message").strip()
    known = bool(message) and message not in GIVE_UP_SENTENCES
    (kind, tool), turn = judge(message, None), None
    if not known or kind == "leak" or os.path.lexists(HEARTBEAT + ".on"):
        path = text_of(event, "agent_transcript_path" if subagent else "transcript_path")
        turn = read_turn(path, subagent, message, 0 if known else LAG_WAIT_SEC)
        kind, tool = judge(message, turn)
    beat(event, kind, turn)
    if kind != "clean":
        return answer(event, kind, tool, event.get("stop_hook_active") is True and not (turn and turn["tool_ran"]))
    if not is_idle(burst_path(event), IDLE):
        fd = lock_state(burst_path(event))
        state = load_state(fd)
        count, _ = burst_of(state, time.time())
        store_state(fd, {"count": 0, "last_idx": state.get("last_idx")})
        os.close(fd)
        if count:
            append_line(ACTION_LOG, "recover", text_of(event, "session_id"), "recovered", "", str(count))
    return 0


def on_stop_failure(event: "dict[str, Any]") -> int:
    """Wake the session after a give-up; other errors are left alone. So is a subagent's give-up: its caller is told
    by the client, and a wake would reach the main session instead (2.1.122 to 2.1.332)."""
    gave_up = text_of(event, "last_assistant_message").strip() in GIVE_UP_SENTENCES and not event.get("agent_id")
    beat(event, "give-up" if gave_up else "clean", None)
    return answer(event, "give-up", "", False) if gave_up else 0


HANDLERS = {"Stop": on_stop, "SubagentStop": on_stop, "StopFailure": on_stop_failure}


# --- Maintenance of both hooks: install, uninstall, status ---

JUDGED = "^(?!(Bash|PowerShell)$)"  # a matcher: for the two left out no process is started
RECOVER, COACH = "recover_malformed_toolcall.py", "tool_coach.py"
EVENTS: "dict[str, dict[str, dict[str, Any]]]" = {
    RECOVER: {"Stop": {}, "SubagentStop": {}, "StopFailure": {"asyncRewake": True}},
    COACH: {
        "PreToolUse": {"matcher": JUDGED},
        "PostToolUseFailure": {"matcher": JUDGED},
        "PostToolUse": {"matcher": "^(Edit|MultiEdit|Write|NotebookEdit|Bash|PowerShell|mcp__.+)$"},
        "PostToolBatch": {},
        "UserPromptSubmit": {},
        "SessionEnd": {},
        "UserPromptExpansion": {"matcher": "^(toolcall-hooks:)?tool-coach$"},
    },
}
# Before 2.1.104 one event that the client does not know silences every hook of a file; later ones warn at each start.
OLDEST_CLIENT, SINCE = (2, 1, 104), {"UserPromptExpansion": (2, 1, 116), "PostToolBatch": (2, 1, 118)}
OURS = (
    r"(?:/hooks|toolcall-hooks[^\"']*|\{CLAUDE_PLUGIN_ROOT\})/(recover_malformed_toolcall\.py|tool_coach\.py)[\"']?\s*$"
)
# Of the prompts.txt that comes with this file: another digest is that of an edited one.
PROMPTS_SHA256 = "7f244ff39750a6c71bb2781cd6e4494ed20e916ce7c031c795aa313cc542a162"
# What comes with a script, in the config folder; and what its hooks leave in STATE_DIR.
COMPANIONS = {RECOVER: "hooks/prompts.txt", COACH: "commands/tool-coach.md"}
STATES = {RECOVER: "cc-recover-*", COACH: "cc-tool-coach-*.json"}
BACKUP = ".before-toolcall-hooks"  # what a settings file's backup is called beside it
SLASH_COMMAND = """---
description: Switch the tool-coach hook, or show its state
argument-hint: "[on|off]"
disable-model-invocation: true
---
The tool-coach hook answers this command itself. That you read this means that the hook did not run: say so.
"""


def config_path(*names: str) -> "Path":
    """Return a path: in the client's config folder, if it is not absolute."""
    from pathlib import Path

    return Path(config_folder(), *names)


def beside(name: str) -> "Path":
    """Return the path of a file that lies, or would lie, beside this one."""
    return config_path(os.path.abspath(__file__)).with_name(name)


def read_text(path: "Path") -> str:
    """Return a file's text as it is, line ends included; "" if there is no file."""
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""


def read_settings(path: "Path") -> "tuple[str, dict[str, Any]]":
    """Return a settings file's text and object, ("", {}) if there is no file; ValueError for any other content."""
    import json

    try:
        data = path.read_bytes()
        text = data.decode()
        settings = json.loads(text.lstrip("\ufeff"))
        json.dumps(settings, allow_nan=False)  # NaN and numbers too large would be written back as no JSON
        if not isinstance(settings, dict):
            raise ValueError("it is another value")
    except FileNotFoundError:
        return "", {}
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 0) or data.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise ValueError(f"{path}:{line}: not a JSON object: {error}; it is left as it is") from None
    registered(settings, path)  # it checks the shape of the hooks
    return text, settings


def registered(settings: "dict[str, Any]", path: "Path") -> "list[tuple[str, str, dict[str, Any], dict[str, Any]]]":
    """Return (event, script, group, handler) of each of our handlers; ValueError for settings of a wrong shape."""
    import re

    found, event = [], ""
    try:  # dict.items, dict.get and list.copy: a TypeError for anything else than a dict or a list
        for event, groups in dict.items(settings.get("hooks", {})):
            for group in list.copy(groups):
                for handler in list.copy(dict.get(group, "hooks", [])):
                    command = str(handler.get("command")) if isinstance(handler, dict) else ""
                    ours = re.search(OURS, command.replace("\\", "/"))
                    if ours:
                        found.append((event, ours[1], group, handler))
    except TypeError:
        raise ValueError(f'{path}: "hooks" has a wrong shape at "{event}"; it is left as it is') from None
    return found


def group_of(script: str, event: str, folder: str) -> "dict[str, Any]":
    """Return the matcher group that registers a script, in folder, for an event; the quoted shell form of a command.

    Not the exec form: before 2.1.139 the client ignores its arguments and runs the event as a program.
    """
    import re

    python, path = "python3", f"{folder}/{script}"
    if os.name == "nt":
        python, path = "python", path.replace("\\", "/")
    path = re.sub(r'["$`\\]', r"\\\g<0>", path)
    handler = {"type": "command", "command": f'{python} -I -S "{path}"', "timeout": 10, **EVENTS[script][event]}
    matcher = {"matcher": handler.pop("matcher")} if "matcher" in handler else {}
    return {**matcher, "hooks": [handler]}


def edited(
    path: "Path", scripts: "list[str]", wanted: "list[tuple[str, dict[str, Any]]]"
) -> "tuple[str, str, dict[str, Any]]":
    """Return a settings file's text, what it is to be, and that as an object: scripts registered as wanted.

    wanted: (event, group) of each entry. One that is there stays in its place; others go, and what gets empty by that.
    """
    text, settings = read_settings(path)
    as_it_is = True
    for event, script, group, handler in registered(settings, path):
        if (event, group) in wanted:
            wanted.remove((event, group))
        elif script in scripts:
            events, as_it_is = settings["hooks"], False
            group["hooks"].remove(handler)
            events[event] = [other for other in events[event] if other is not group or group["hooks"]]
            if not events[event]:
                del events[event]
            if not events:
                del settings["hooks"]
    for event, group in wanted:
        settings.setdefault("hooks", {}).setdefault(event, []).append(group)
    return text, text if as_it_is and not wanted else settings_text(settings, text), settings


def settings_text(settings: "dict[str, Any]", like: str) -> str:
    """Return settings as JSON written the way the text like is: indentation, line ends, escapes, byte order mark."""
    import json
    import re

    indent = re.search(r'\n([ \t]+)"', like)
    width = indent[1] if indent else None if ":" in like else 2
    separators = (",", ":") if not width and '": ' not in like else None
    text = json.dumps(settings, indent=width, separators=separators, ensure_ascii="\\u" in like)
    text = text.replace("\n", "\r\n") if "\r\n" in like else text
    return "\ufeff" * like.startswith("\ufeff") + text + (like[len(like.rstrip()) :] if like else "\n")


def write_files(changes: "list[tuple[Path, str, int]]", dry_run: bool) -> None:
    """Write what changes, each file whole or not at all, and say so; of settings, a dry run shows the lines.

    It is written beside its place, then renamed. A link is followed, a mode kept.
    """
    import difflib
    import tempfile

    for link, text, mode in changes:
        former, path = read_text(link), config_path(os.path.realpath(link))
        if text == former:
            print("as it is", path)
            continue
        print("write   ", path)
        if dry_run:
            if link.suffix == ".json":
                print(*difflib.unified_diff(former.splitlines(), text.splitlines(), lineterm=""), sep="\n")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="toolcall-hooks-", dir=path.parent) as folder:
            new = config_path(folder, path.name)
            new.touch(0o600)
            new.write_bytes(text.encode("utf-8", "surrogateescape"))
            os.chmod(new, stat.S_IMODE(path.stat().st_mode) if former else mode)
            os.replace(new, path)


def remove_files(files: "list[Path]", dry_run: bool) -> None:
    """Remove those of some files that are there, and folders of hooks and commands that get empty by that; say so."""
    import contextlib

    for file in files:
        info = file.lstat() if os.path.lexists(file) else None
        if info and stat.S_ISREG(info.st_mode) and (os.name == "nt" or info.st_uid == os.geteuid()):
            print("remove  ", file)
            if not dry_run:
                file.unlink()
    for folder in () if dry_run else ("hooks", "commands"):
        with contextlib.suppress(OSError):  # it is not empty, or a link
            config_path(folder).rmdir()


def constants_of(source: str) -> "dict[str, str]":
    """Return {name: its lines} of the constants that a user may edit, if their values stand by themselves."""
    import ast

    part = source.partition("# --- Constants you may edit")[2].partition("# --- Constants that follow")[0]
    lines, found = f"#{part}".split("\n"), {}
    try:
        for node in ast.parse("\n".join(lines)).body:
            text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            name = text.partition("=")[0].strip()
            if compile(text, name, "exec").co_names == (name,):  # it names nothing else
                found[name] = text
    except (SyntaxError, ValueError):  # ValueError: a NUL, before 3.11.4
        return {}
    return found


def upgraded(new: str, old: str) -> "tuple[str, list[str]]":
    """Return the source new with the constants that the source old has otherwise, and their names."""
    ours, names = constants_of(new), []
    for name, text in constants_of(old).items():
        if ours.get(name, text) != text:
            new = new.replace(f"\n{ours[name]}\n", f"\n{text}\n", 1)
            names.append(name)
    return new, names


def is_ours(companion: "Path") -> bool:
    """Tell whether a companion is missing, or as this script or the installed one came with it; say so if it is not."""
    import hashlib

    text, sources = read_text(companion), read_text(config_path(__file__)) + read_text(config_path("hooks", RECOVER))
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    if text in ("", SLASH_COMMAND) or digest in sources or f'"""{text}"""' in sources:
        return True
    print("keep    ", companion, "which is yours")
    return False


def client_version() -> "tuple[tuple[int, ...], str]":
    """Return the version of the client on PATH, a high one if there is none, and why it is too old, "" if it is not."""
    import re
    import shutil
    import subprocess

    command, said = [shutil.which("claude") or "claude", "--version"], ""
    try:
        said = subprocess.run(command, check=False, capture_output=True, errors="replace", timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        pass
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", said)
    version = tuple(map(int, found.groups())) if found else (9,)
    reason = "before 2.1.104 one event that it does not know silences every hook of a file"
    return version, f"claude {found[0]} is too old: {reason}" if found and version < OLDEST_CLIENT else ""


def install(scripts: "list[str]", path: "Path", options: "Any") -> int:
    """Copy the scripts that sit beside this one, and register their events in the settings."""
    client, problem = client_version()
    if problem:
        raise ValueError(problem)
    scripts = [script for script in scripts if beside(script).exists()]
    changes: "list[tuple[Path, str, int]]" = []
    wanted = []
    for script in scripts:
        changes += copies(script)
        for event in EVENTS[script]:
            if SINCE.get(event, client) <= client:
                wanted.append((event, group_of(script, event, str(config_path("hooks")))))
            else:
                print("not yet ", event, "which this client does not know; install again after an update")
    text, after, _ = edited(path, scripts, wanted)
    backup = path.with_name(path.name + BACKUP)
    if text and after != text and not backup.exists():
        changes.append((backup, text, stat.S_IMODE(path.stat().st_mode)))
    write_files([*changes, (path, after, 0o600)], options.dry_run)
    return 0


def copies(script: str) -> "list[tuple[Path, str, int]]":
    """Return the changes that put a script and its companion in their places; what the user edited is kept."""
    target, companion = config_path("hooks", script), config_path(COMPANIONS[script])
    old = read_text(target)
    text, names = upgraded(read_text(beside(script)), old)
    changes: "list[tuple[Path, str, int]]" = [(target, text, 0o755)]
    if names:
        print("keep     your", ", ".join(names), "in", target)
    if old not in ("", text):
        print("keep     the former", script, "beside the new one")
        changes.append((target.with_name(script + ".old"), old, 0o755))
    new = SLASH_COMMAND if script == COACH else read_text(beside(companion.name))
    if new and is_ours(companion):
        changes.append((companion, new, 0o644))
    return changes


def uninstall(scripts: "list[str]", path: "Path", options: "Any") -> int:
    """Take our entries out of the settings and remove our files, but for scripts that settings still name:
    a missing script exits with 2, which the client takes for a block of every tool call."""
    import re

    text, after, left = edited(path, scripts, [])
    backup, hooks = path.with_name(path.name + BACKUP), config_path("hooks")
    former, same = read_settings(backup)
    if former and after != text and content_of(same) == content_of(left):
        after = former
    hooked = str(left.get("hooks"))
    for file in settings_files(path)[1:]:
        try:
            hooked += str(read_settings(file)[1].get("hooks")) if file != path else ""
        except ValueError:  # it may be mended later
            hooked += read_text(file)
        except OSError as error:
            print("passed over:", error)
    named = re.findall(r"hooks[/\\]+(recover_malformed_toolcall\.py|tool_coach\.py)[\"'\\\s]", hooked)
    files = [] if registered(left, path) else [backup]
    for script in scripts:
        companion = config_path(COMPANIONS[script])
        if script in named:
            print("keep    ", hooks / script, "which settings still name")
            continue
        files += [hooks / script, hooks / (script + ".old"), *config_path(STATE_DIR).glob(STATES[script])]
        files += [companion] if is_ours(companion) else []
        files += [config_path("tool-coach.off")] if script == COACH else []
    files += [] if named else record_files()
    if hooks.is_symlink():
        print("keep     what is in", hooks, "which is a link to a folder of yours")
        files = [file for file in files if file.parent != hooks]
    write_files([(path, after, 0)], options.dry_run)
    remove_files(files, options.dry_run)
    return 0


def content_of(settings: "dict[str, Any]") -> "dict[str, Any]":
    """Return what settings hold, hook lists that are empty aside."""
    entries = [(event, group) for event, groups in settings.get("hooks", {}).items() for group in groups]
    return {**settings, "hooks": entries}


def record_files() -> "list[Path]":
    """Return the files of the record, by the ACTION_LOG of the installed script."""
    import re

    found = re.search(r'^ACTION_LOG = "([^"]+)"', read_text(config_path("hooks", RECOVER)), re.M)
    name = found[1] if found else ACTION_LOG or "toolcall-hooks.log"
    return [config_path(name), config_path(name + ".old")]


def settings_files(path: "Path") -> "list[Path]":
    """Return the settings files that the client reads here: the one at path, the user's, the project's two."""
    files = config_path("settings.json"), ".claude/settings.json", ".claude/settings.local.json"
    return [path, *(config_path(os.path.realpath(file)) for file in files)]


def status(scripts: "list[str]", path: "Path", options: "Any") -> int:
    """Print what is installed, the proof that it works, the record, and what is wrong; return 1 if anything is."""
    import json

    client, problem = client_version()
    lines, places, files = [f"Python {sys.version.split()[0]}"], {}, settings_files(path)
    if problem:
        lines.append(f"WRONG: {problem}")
    plugin = plugin_files(files)
    for file in dict.fromkeys([*files, *plugin]):
        try:
            places[file] = read_settings(file)[1]
            if places[file].get("disableAllHooks"):
                lines.append(f"WRONG: disableAllHooks is set in {file}")
        except (OSError, ValueError) as error:
            lines.append(f"WRONG: {error}")
    for script in scripts:
        lines += examine(script, places, [*files[:2], *plugin], client)
    if lines.count("  not registered") == len(scripts):
        lines.append("WRONG: no hook is registered")
    if os.path.lexists(config_path("tool-coach.off")):
        lines.append("the coach is switched off")
    record = record_of("".join(map(read_text, record_files())))
    wrong = [line for line in lines if line.startswith("WRONG")]
    if options.json:
        print(json.dumps({"status": lines, "record": record, "wrong": wrong}, indent=2))
    else:
        print(*lines, "the record:" if record else "the record: nothing yet", sep="\n")
        for text, count in record.items():
            print(" ", count, text)
        print("something is WRONG, see above" if wrong else "all is well")
    return 1 if wrong else 0


def examine(
    script: str, places: "dict[Path, dict[str, Any]]", trusted: "list[Path]", client: "tuple[int, ...]"
) -> "list[str]":
    """Return lines that say of a script what is installed, where it is registered, what is WRONG, and the proof.

    trusted: the user's own settings files, two, and the plugin's.
    What only the current folder registers is not run: a hostile repository may have put it there.
    """
    import hashlib

    source, copies = beside(script), [config_path("hooks", script)]
    copies += [place.parent.parent / script for place in trusted[2:]]  # the plugin's
    file = next((copy for copy in copies if copy.exists()), source)
    text = read_text(file)
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    version = text.partition('__version__ = "')[2].partition('"')[0]
    lines = [f"{script} {version} ({digest[:12]}): {file}"]
    if source.exists() and upgraded(read_text(source), text)[0] != text:
        lines.append(f"WRONG: {file} differs from {source} in more than its constants")
    events, commands = [], {}
    for place, settings in places.items():
        for event, name, group, handler in registered(settings, place):
            if name == script:
                events.append(event)
                lines.append(f"  registered for {event} in {place}{'' if place in trusted else ' (not tried)'}")
                if place in trusted:
                    commands[handler["command"]] = place
                right, both = EVENTS[script].get(event, {}), {**group, **handler}
                for key in ("matcher", "asyncRewake"):
                    if both.get(key) != right.get(key):
                        lines.append(f"WRONG: {script} for {event} in {place} is to have {key} {right.get(key)}")
    if not events:
        return [*lines, "  not registered"]
    for event in EVENTS[script]:
        if events.count(event) != 1 and SINCE.get(event, client) <= client:
            lines.append(f"WRONG: {script} is registered {events.count(event)} times for {event}")
    for command, place in commands.items():
        for shows, expected, names, fields in samples(script):
            got = outcome_of(command, names, fields, place)
            fault = f"WRONG: {shows}: {got} instead of {expected}, from {command}"
            lines.append(f"  ok     {shows}" if got == expected else fault)
    return lines


def samples(script: str) -> "Iterator[tuple[str, str, str, dict[str, Any]]]":
    """Yield what a sample shows, the outcome that is right, the events that lead to it, and what is in each of them."""
    leak = f'<{CALL} name="Read">\n</{CALL}>'
    repeat = "PostToolUseFailure PostToolBatch PreToolUse"
    change = "PostToolUseFailure PostToolBatch PostToolUse PreToolUse"
    rows = {
        RECOVER: (
            ("a leaked call is sent back", "block", "Stop", f"I look.\n\n{leak}"),
            ("a give-up is woken", "wake", "StopFailure", GIVE_UP_SENTENCES[0]),
            ("an ordinary answer is left alone", "quiet", "Stop", "All done."),
            ("a call shown as code is left alone", "quiet", "Stop", f"```\n{leak}\n```"),
            ("another API error is left alone", "quiet", "StopFailure", "Overloaded"),
        ),
        COACH: (
            ("a failed call is not run again unchanged", "deny", repeat, "No such file."),
            ("a call refused twice brings a note", "note", "PostToolBatch PostToolBatch", "<tool_use_error>No text."),
            ("a call that did not fail runs", "quiet", "PreToolUse", ""),
            ("a failed call runs again after a change", "quiet", change, "No such file."),
            ("a call whose error may pass runs again", "quiet", repeat, "timed out"),
        ),
    }
    call = {"tool_name": "Edit", "tool_input": {"file_path": "/nowhere/a.txt"}, "tool_use_id": "1"}
    for shows, outcome, events, text in rows[script]:
        said = {"last_assistant_message": text, "error": text, "tool_calls": [{**call, "tool_response": text}]}
        yield shows, outcome, events, {**call, **said}


def outcome_of(command: str, events: str, fields: "dict[str, Any]", place: "Path") -> str:
    """Return the outcome of the last of some events, sent to a hook command as registered; else what went wrong."""
    import glob
    import json
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        session = os.path.basename(folder)
        env = {**os.environ, "CLAUDE_CONFIG_DIR": folder, "CLAUDE_PLUGIN_ROOT": str(place.parent.parent)}
        how: "dict[str, Any]" = {"shell": True, "env": env, "timeout": 20, "capture_output": True, "errors": "replace"}
        try:
            for name in events.split():
                event = {"session_id": session, "cwd": folder, "hook_event_name": name, **fields}
                run = subprocess.run(command, input=json.dumps(event) + "\n", check=False, **how)
            if run.returncode == 2 and "(recovery attempt" in run.stderr:
                return "wake"
            if run.returncode or run.stderr:
                return f"exit code {run.returncode}: {run.stderr.strip()[-200:]}"
            answer = json.loads(run.stdout or "{}")
            answer = {**answer, **answer.get("hookSpecificOutput", {})}
            quiet = "note" if "additionalContext" in answer else "quiet"
            return str(answer.get("permissionDecision") or answer.get("decision") or quiet)
        except (subprocess.TimeoutExpired, ValueError, AttributeError, TypeError) as error:
            return f"no answer: {error}"
        finally:
            for state in glob.glob(state_path("*", session)):
                os.remove(state)


def plugin_files(files: "list[Path]") -> "list[Path]":
    """Return the files in which the plugin registers its hooks, [] if none of some settings files enables it."""
    import json

    try:
        known = json.loads(read_text(config_path("plugins/installed_plugins.json")))["plugins"]
        for file in files:
            for name, enabled in read_settings(file)[1].get("enabledPlugins", {}).items():
                if enabled and name.startswith("toolcall-hooks@"):
                    install = known[name][0] if isinstance(known[name], list) else known[name]
                    return sorted(config_path(install["installPath"], ".claude-plugin").glob("hooks*.json"))
    except (OSError, ValueError, AttributeError, LookupError, TypeError):  # there is none, or it has another shape
        pass
    return []


def record_of(log: str) -> "dict[str, int]":
    """Return how often each thing stands in the record, in words."""
    found: "dict[str, int]" = {}
    for line in log.splitlines():
        _, hook, _, outcome, tool, number, *_ = [*line.split("\t"), *[""] * 6]
        words = {
            "recovered": f"bursts recovered in {number} attempts",
            "hand-back": "bursts handed back" if hook == "recover" else f"turns ended over {tool}",
            "deny": f"repeats of {tool} stopped",
            "note": f"notes on {tool}",
            "error": f"internal errors of {hook}",
        }
        if outcome in words:
            found[words[outcome]] = found.get(words[outcome], 0) + 1
    return dict(sorted(found.items()))


def maintain(argv: "list[str]") -> int:
    """Run a maintenance command; return the exit code."""
    import argparse

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a console may lack the letters of a path
    run = {"install": install, "uninstall": uninstall, "status": status}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("command", choices=run, help="for both hooks, in the config folder")
    parser.add_argument("--only", choices=EVENTS, help="one hook alone")
    parser.add_argument("--settings", metavar="PATH", help="another settings file, a project's for example")
    parser.add_argument("--dry-run", action="store_true", help="say what would be changed, and change nothing")
    parser.add_argument("--json", action="store_true", help="status for a bug report")
    options = parser.parse_args(argv)
    path = config_path(os.path.realpath(options.settings or config_path("settings.json")))
    try:
        return run[options.command]([options.only] if options.only else list(EVENTS), path, options)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from None


def main(argv: "list[str]") -> int:
    """Answer the hook event on stdin (no arguments), or run a maintenance command."""
    if argv:
        return maintain(argv)
    if os.isatty(0):
        print(__doc__)
        return 0
    # A hook has nothing to tidy up, and the interpreter's tidy end is a tenth of its time.
    os._exit(run_hook("recover", nothing_to_do, HANDLERS))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

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
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Handler = Callable[[dict[str, Any]], int]

__version__ = "1.0.0"

# --- Constants you may edit; an upgrade keeps your values -------------------------------------------------

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

# --- Constants that follow the client ---------------------------------------------------------------------

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
ARGUMENT_OPENER = rf"<?(?:{PREFIX})?{ARGUMENT}\s+name\s*=(?:\s*[\"'][^\"'<>\n]*[\"']\s*>|[^<>]*\Z)"
CLOSER = rf"</(?:{PREFIX})?{CALL}\s*>"
# What follows a call's opening tag: an argument, a closing tag, the end of the message, or a tag cut off there.
CALL_GOES_ON = rf"\s*(?:\Z|{ARGUMENT_OPENER}|</(?:{PREFIX})?(?:{CALL}|{ARGUMENT}|function_)|<{PREFIX}|<[^<>]*\Z)"
# Markdown, at the start of a line without its indentation.
FENCE = r"`{3,}(?=[^`\x01]*$)|~{3,}"
HEADING, UNDERLINE = r"#{1,6}(?: |$)", r"(?:=+|-+) *$"
RULE = r"([*_-])(?: *\1){2,} *$"
LIST_ITEM = r"(?:[*+-]|(\d{1,9})[.)])(?: {1,4}(?! |$)| |$)"
BLOCK_CODE, SPAN_CODE = "\0", "\1"  # what mask_code puts in place of a code line and of a code span


# --- Pure part: finding a leaked call ---------------------------------------------------------------------


def mask_code(text: str) -> str:
    """Return text with Markdown's code and quotations blanked out as CommonMark reads them; the lines stay as many."""
    import re

    masked: "list[str]" = []
    paragraph: "list[str]" = []
    columns: "list[int]" = []  # where the content of each open list item begins
    fence, fence_column = "", 0
    is_rule, is_heading, is_fence = (re.compile(pattern).match for pattern in (RULE, HEADING, FENCE))

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
        opening = None if indented else is_fence(rest)
        if not rest:
            masked.append(line)
        elif indented and paragraph:
            paragraph.append(line)
        elif indented or opening or rest.startswith(BLOCK_CODE) or (rest[0] == ">" and rest.strip() != ">"):
            end_paragraph(indent)
            masked.append(line[:base] + BLOCK_CODE * (len(line) - base))
            if opening:
                fence, fence_column = opening[0], base
        elif is_rule(rest) or is_heading(rest) or (inside and re.match(UNDERLINE, rest)):
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
    opener, closer = re.compile(OPENER + r"\s*" + ARGUMENT_OPENER), re.compile(CLOSER)
    call, closed = opener.search(paragraph), True
    while call:
        end = call.end()
        before = paragraph[max(0, call.start() - 200) : call.start()]
        if not re.search(r"[`\x01](?:\s?|[^\s`\x01]\S{0,39}\s+)\Z", before):  # else the call is what a span begins with
            closing = closer.search(paragraph, end) if closed else None
            closed = closing is not None  # if one has no closing tag, none after it has
            if closing or len(before.rpartition("\n")[2].split()) <= 1:
                end = closing.end() if closing else len(paragraph)
                zones.append((call.end(), end))
        call = opener.search(paragraph, end)
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
    argument = re.match(r"\s*" + ARGUMENT_OPENER, after)
    goes_on = re.match(CALL_GOES_ON, after)
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


# --- Pure part: reading a reply, the budget, the words ----------------------------------------------------


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


# --- Effects ----------------------------------------------------------------------------------------------

# --- Shared by both scripts, letter for letter: begin -----------------------------------------------------

STATE_DIR = "/tmp" if os.name == "posix" else os.environ.get("TEMP", ".")
STDIN_WAIT_SEC = 2.0  # some builds of the client do not close stdin
LOCK_WAIT_SEC = 2.0  # seconds to wait for another hook process that holds the state
LOG_MAX_BYTES = 200_000  # the record is then renamed to <name>.old and begun anew


def read_stdin() -> bytes:
    """Return the event on stdin: one line of JSON (2.1.104 to 2.1.332), or all up to its end."""
    chunks: "list[bytes]" = []
    if os.name == "posix":
        os.set_blocking(0, False)  # the event is there already; only if not, select is imported
    while not chunks or not chunks[-1].endswith(b"}\n"):
        try:
            chunks.append(os.read(0, 1 << 20))
        except BlockingIOError:
            import select

            if not select.select([0], [], [], STDIN_WAIT_SEC)[0]:
                break
            continue
        if not chunks[-1]:
            break
    return b"".join(chunks)


def quick_field(raw: bytes, name: str) -> str:
    """Return the first string of that name in raw JSON without parsing it, or "".

    The session's fields stand before all that a model or a person wrote (2.1.104 to 2.1.332).
    """
    value = raw.partition(b'"%s"' % name.encode())[2][:1000].lstrip(b": ")
    return value[1:].partition(b'"')[0].decode("utf-8", "replace") if value[:1] == b'"' else ""


def state_path(hook: str, *ids: str) -> str:
    """Return the path of the state of one session (and subagent); no id leads out of STATE_DIR."""
    safe = ["".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in i[:100]) for i in ids if i]
    return os.path.join(STATE_DIR, f"cc-{hook}-{'.'.join(safe)}.json")


def open_private(path: str, flags: int) -> int:
    """Open a regular file that is the user's own and has one name; OSError for anything planted there."""
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
        flags |= getattr(os, name, 0)
    fd = os.open(path, flags, 0o600)
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1 or (hasattr(os, "geteuid") and info.st_uid != os.geteuid()):
        os.close(fd)
        raise PermissionError(f"{path} is not the user's own regular file")
    return fd


def at_once(path: str, flags: int) -> int:
    """Open a file for open(), which would wait for ever at a pipe without this."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


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
    fd, deadline = open_private(path, os.O_RDWR | os.O_CREAT), time.monotonic() + LOCK_WAIT_SEC
    while True:
        try:
            if sys.platform == "win32":
                import msvcrt

                os.lseek(fd, 1 << 30, os.SEEK_SET)
                msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
                os.lseek(fd, 0, os.SEEK_SET)
            else:
                import fcntl

                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def load_state(fd: int) -> "dict[str, Any]":
    """Return the state behind a locked descriptor; {} for an empty or unreadable one."""
    import json

    try:
        state = json.loads(os.read(fd, 4_000_000).partition(b"\n")[0])
    except (ValueError, RecursionError):
        return {}
    return state if isinstance(state, dict) else {}


def store_state(fd: int, state: "dict[str, Any]") -> None:
    """Write the state behind a locked descriptor and close it; OSError if it could not be written whole."""
    import json

    data = json.dumps(state).encode() + b"\n"
    os.lseek(fd, 0, os.SEEK_SET)
    if os.write(fd, data) != len(data):
        raise OSError("the state was not written whole")
    os.ftruncate(fd, len(data))
    os.close(fd)


def config_folder() -> str:
    """Return the client's config folder."""
    return os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.path.expanduser("~"), ".claude")


def text_of(event: "dict[str, Any]", name: str) -> str:
    """Return a field of an event, "" if it is missing or no string."""
    value = event.get(name)
    return value if isinstance(value, str) else ""


def append_line(path: str, *words: str) -> None:
    """Append a line to a log, its words set apart by tabs, the time first; rotate a full log. Never raises OSError."""
    words = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), *words)
    line = "\t".join("".join(c if " " < c <= "~" else "_" for c in word[:100]) or "-" for word in words)
    try:
        fd = open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        full = os.fstat(fd).st_size > LOG_MAX_BYTES
        os.write(fd, line.encode() + b"\n")
        os.close(fd)
        if full:
            os.replace(path, path + ".old")
    except OSError:
        pass


def log_action(hook: str, event: "dict[str, Any]", outcome: str, tool: str = "", number: int = 0) -> None:
    """Note an action in the record."""
    if ACTION_LOG:
        path = os.path.join(config_folder(), ACTION_LOG)
        append_line(path, hook, text_of(event, "session_id"), outcome, tool, str(number))


def say(output: "dict[str, Any]") -> int:
    """Print a hook's answer; return the exit code 0."""
    import json

    os.write(1, json.dumps(output).encode() + b"\n")
    return 0


def run_hook(hook: str, nothing_to_do: "Callable[[bytes], bool]", handlers: "dict[str, Handler]") -> int:
    """Answer the event on stdin; return the exit code. The one catch-all: a hook must never wedge a session."""
    event: "dict[str, Any]" = {}
    try:
        raw = read_stdin()
        if nothing_to_do(raw):
            return 0
        import json

        event = json.loads(raw.decode("utf-8", "replace"))
        handler = handlers.get(event["hook_event_name"])
        return handler(event) if handler else 0
    except BaseException as error:
        log_action(hook, event if isinstance(event, dict) else {}, "error", type(error).__name__)
        return 0


# --- Shared by both scripts, letter for letter: end -------------------------------------------------------

HEARTBEAT = os.path.join(STATE_DIR, "cc-recover-heartbeat")  # .on is the switch, .log the log


def rows_from_end(path: str) -> "Iterator[dict[str, Any]]":
    """Yield the transcript's message rows, newest first, from its last TAIL_BYTES; broken rows are passed over."""
    import json

    with open(path, "rb", opener=at_once) as file:
        info = os.fstat(file.fileno())
        position = info.st_size if stat.S_ISREG(info.st_mode) else 0
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
            turn = last_turn(rows_from_end(path), subagent)
        except (OSError, ValueError):  # ValueError: a path with a NUL
            turn = None
        there = turn and turn["written"] and (not message or message in turn["texts"])
        if there or time.monotonic() >= deadline:
            return turn
        time.sleep(0.05)


def read_prompts() -> "list[str]":
    """Return the prompts of prompts.txt beside this file, or RECOVERY_PROMPTS."""
    try:
        with open(
            os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts.txt"), "rb", opener=at_once
        ) as file:
            lines = file.read(200_000).decode("utf-8-sig", "replace").splitlines()
    except OSError:
        lines = []
    prompts = [line.strip()[:1000] for line in lines if line.strip() and not line.lstrip().startswith("#")]
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
    name, prompts = event["hook_event_name"], read_prompts()
    cap = os.environ.get("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "")
    number = int(cap[:9]) if cap.isascii() and cap.isdigit() else BLOCK_CAP
    block_cap = 0 if name == "StopFailure" else number
    fd = lock_state(burst_path(event))
    former, now = load_state(fd), time.time()
    outcome, state = spend(former, now, block_cap, nothing_ran)
    others = [index for index in range(len(prompts)) if index != state["last_idx"]] or [0]
    state["last_idx"] = others[int.from_bytes(os.urandom(4), "big") % len(others)]
    store_state(fd, state)
    if outcome == "hand-back":
        log_action("recover", event, "hand-back", tool, burst_of(former, now)[0])
        # What a StopFailure hook prints is shown to nobody (2.1.112 to 2.1.332).
        return 0 if name == "StopFailure" else say({"systemMessage": hand_back_text(name == "SubagentStop")})
    log_action("recover", event, "wake" if name == "StopFailure" else "block", tool, state["count"])
    text = recovery_text(kind, tool, prompts[state["last_idx"]], state["count"], name == "SubagentStop")
    if name != "StopFailure":
        return say({"decision": "block", "reason": text})
    os.write(2, text.encode("utf-8", "replace"))
    return 2


# --- Handlers: what happens on each event -----------------------------------------------------------------


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
        store_state(fd, {"count": 0, "ts": time.time(), "last_idx": state.get("last_idx")})
        if count:
            log_action("recover", event, "recovered", "", count)
    return 0


def on_stop_failure(event: "dict[str, Any]") -> int:
    """Wake the session after a give-up; other errors are left alone. So is a subagent's give-up: its caller is told
    by the client, and a wake would reach the main session instead (2.1.122 to 2.1.332)."""
    gave_up = text_of(event, "last_assistant_message").strip() in GIVE_UP_SENTENCES and not event.get("agent_id")
    beat(event, "give-up" if gave_up else "clean", None)
    return answer(event, "give-up", "", False) if gave_up else 0


HANDLERS: "dict[str, Handler]" = {"Stop": on_stop, "SubagentStop": on_stop, "StopFailure": on_stop_failure}


# --- Maintenance of both hooks: install, uninstall, status ------------------------------------------------

JUDGED = "^(?!(Bash|PowerShell)$)"  # a matcher: for the two left out no process is started
EVENTS: "dict[str, dict[str, dict[str, Any]]]" = {
    "recover_malformed_toolcall.py": {"Stop": {}, "SubagentStop": {}, "StopFailure": {"asyncRewake": True}},
    "tool_coach.py": {
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
BACKUP = ".before-toolcall-hooks"  # what a settings file's backup is called beside it
SLASH_COMMAND = """---
description: Switch the tool-coach hook, or show its state
argument-hint: "[on|off]"
disable-model-invocation: true
---
The tool-coach hook answers this command itself. That you read this means that the hook did not run: say so.
"""


def group_of(script: str, event: str, folder: str) -> "dict[str, Any]":
    """Return the matcher group that registers a script, in folder, for an event; the quoted shell form of a command.

    Not the exec form: before 2.1.139 the client ignores its arguments and runs the event as a program.
    """
    path = f"{folder}/{script}"
    for character in '\\"$`':
        path = path.replace(character, "/" if os.name == "nt" and character == "\\" else "\\" + character)
    python = "python" if os.name == "nt" else "python3"
    handler = {"type": "command", "command": f'{python} -I -S "{path}"', "timeout": 10, **EVENTS[script][event]}
    matcher = {"matcher": handler.pop("matcher")} if "matcher" in handler else {}
    return {**matcher, "hooks": [handler]}


def registered(settings: "dict[str, Any]", path: str) -> "Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]":
    """Yield (event, script, group, handler) of each of our handlers; SystemExit for settings of a wrong shape."""
    import re

    events = settings.get("hooks", {})
    for event, groups in events.items() if isinstance(events, dict) else [("", None)]:
        for group in groups if isinstance(groups, list) else [None]:
            if not isinstance(group, dict) or not isinstance(group.get("hooks", []), list):
                raise SystemExit(f'{path}: "hooks" has a wrong shape at "{event}"; nothing was changed')
            for handler in group.get("hooks", []):
                command = handler.get("command") if isinstance(handler, dict) else None
                found = re.search(OURS, command.replace("\\", "/")) if isinstance(command, str) else None
                if found:
                    yield event, found[1], group, handler


def without_ours(settings: "dict[str, Any]", path: str, scripts: "Iterable[str]", keep: "list[Any]") -> None:
    """Take our scripts' handlers out of settings, and what gets empty by that; groups to keep stay."""
    for event, script, group, handler in list(registered(settings, path)):
        if script in scripts and not any(group is kept for kept in keep):
            events = settings["hooks"]
            group["hooks"] = [other for other in group["hooks"] if other is not handler]
            if not group["hooks"]:
                events[event] = [other for other in events[event] if other is not group]
            if not events[event]:
                del events[event]
            if not events:
                del settings["hooks"]


def with_ours(settings: "dict[str, Any]", path: str, wanted: "dict[tuple[str, str], Any]") -> None:
    """Register {(script, event): group} in settings; an entry that is right stays, others of ours are replaced."""
    scripts, wanted, keep = {script for script, _ in wanted}, dict(wanted), []
    for event, script, group, _ in registered(settings, path):
        if group == wanted.get((script, event)):
            del wanted[script, event]
            keep.append(group)
    without_ours(settings, path, scripts, keep)
    for (_, event), group in wanted.items():
        settings.setdefault("hooks", {}).setdefault(event, []).append(group)


def read_settings(path: str) -> "tuple[str, dict[str, Any]]":
    """Return a settings file's text ("" if there is none) and its object; SystemExit if it holds no JSON object."""
    import json

    try:
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
        settings = json.loads(text.lstrip("\ufeff"))
        json.dumps(settings, allow_nan=False)  # NaN and numbers too large would be written back as no JSON
    except FileNotFoundError:
        return "", {}
    except json.JSONDecodeError as error:
        raise SystemExit(f"{path}:{error.lineno}: not JSON: {error.msg}; nothing was changed") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SystemExit(f"{path}:{line}: not UTF-8; nothing was changed") from None
    except (OSError, ValueError, RecursionError) as error:
        raise SystemExit(f"{path}: cannot be read: {error}; nothing was changed") from None
    if not isinstance(settings, dict):
        raise SystemExit(f"{path}:1: not a JSON object; nothing was changed")
    list(registered(settings, path))
    return text, settings


def settings_text(settings: "dict[str, Any]", like: str) -> str:
    """Return settings as JSON written the way the text like is: indentation, line ends, escapes, byte order mark."""
    import json
    import re

    indent = re.search(r'\n([ \t]+)"', like)
    compact = indent is None and like.strip("\ufeff{} \r\n") != ""
    separators = (",", ":") if compact and '": ' not in like else None
    width = None if compact else indent[1] if indent else 2
    text = json.dumps(settings, indent=width, separators=separators, ensure_ascii="\\u" in like)
    text = text.replace("\n", "\r\n") if "\r\n" in like else text
    return "\ufeff" * like.startswith("\ufeff") + text + (like[len(like.rstrip()) :] if like else "\n")


def replace_file(path: str, text: str, mode: int, say_only: bool) -> None:
    """Write a file whole or not at all: beside its place, then renamed. A link is followed."""
    path = os.path.realpath(path)
    print(f"write    {path}")
    if not say_only:
        new = f"{path}.{os.getpid()}.new"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            private = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(private, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
                file.write(text)
            os.chmod(new, mode)
            os.replace(new, path)
        finally:
            if os.path.lexists(new):
                os.remove(new)


def read_text(path: str) -> str:
    """Return a file's text, "" if there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def constants_of(source: str) -> "tuple[dict[str, str], str]":
    """Return {name: source} of the constants that a user may edit, and the rest of the source; SyntaxError."""
    import ast

    before, begin, part = source.partition("# --- Constants you may edit")
    part, end, after = part.partition("# --- Constants that follow")
    lines, found = ("#" + part).split("\n"), {}
    for node in reversed(ast.parse("\n".join(lines)).body):
        place = slice(node.lineno - 1, node.end_lineno)
        alone = len(ast.parse("\n".join(lines[place])).body) == 1 and isinstance(node, ast.Assign)
        names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
        if alone and len(names) == 1:  # a value that stands by itself
            found[names[0]] = "\n".join(lines[place])
            lines[place] = names
    return found, "".join([before, begin, *lines, end, after])


def upgraded(new: str, old: str) -> "tuple[str, list[str], bool]":
    """Return new with the constants that old has otherwise, their names, and whether nothing else of old is lost."""
    try:
        (ours, rest), (theirs, old_rest) = constants_of(new), constants_of(old)
    except (SyntaxError, ValueError):  # ValueError: a NUL, before 3.11.4
        return new, [], False
    names = [name for name in ours if theirs.get(name, ours[name]) != ours[name]]
    for name in names:
        new = new.replace(f"\n{ours[name]}\n", f"\n{theirs[name]}\n", 1)
    return new, names, rest == old_rest


def is_shipped(prompts: str) -> bool:
    """Tell whether this script, or the installed one, came with just these prompts."""
    import hashlib

    installed = read_text(os.path.join(config_folder(), "hooks", "recover_malformed_toolcall.py"))
    digest = hashlib.sha256(prompts.encode("utf-8", "surrogateescape")).hexdigest()
    return digest == PROMPTS_SHA256 or f'PROMPTS_SHA256 = "{digest}"' in installed


def copy_script(source: str, target: str, say_only: bool) -> None:
    """Copy a script, or the prompts, to the hooks folder; what the user edited there is kept."""
    new, old = read_text(source), read_text(target)
    mode = 0o755 if target.endswith(".py") else 0o644
    if old and old != new and not target.endswith(".py"):
        if not is_shipped(old):
            print(f"keep     {target}, which you edited; the new one goes beside it")
            target += ".new"
    elif old:
        new, names, whole = upgraded(new, old)
        if names:
            print(f"keep     your {', '.join(names)} in {target}")
        if not whole:
            print(f"keep     the former {os.path.basename(target)} beside the new one")
            replace_file(target + ".old", old, mode, say_only)
    if read_text(target) != new:
        replace_file(target, new, mode, say_only)


def client_version() -> "tuple[int, ...]":
    """Return the version of the client on PATH, or that of a new one if there is none."""
    import re
    import shutil
    import subprocess

    try:
        command = [shutil.which("claude") or "true", "--version"]
        said = subprocess.run(command, check=False, capture_output=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        said = b""
    found = re.match(rb"(\d+)\.(\d+)\.(\d+)", said)
    return tuple(map(int, found.groups())) if found else (9,)


def events_of(script: str, client: "tuple[int, ...]") -> "list[str]":
    """Return the events to register a script for: those that the client knows."""
    return [event for event in EVENTS[script] if SINCE.get(event, OLDEST_CLIENT) <= client]


def client_problem(client: "tuple[int, ...]") -> str:
    """Return why a client is too old for any of it, "" if it is not."""
    version = ".".join(map(str, client))
    reason = "before 2.1.104 one event that it does not know silences every hook of a file"
    return f"claude {version} is too old: {reason}" if client < OLDEST_CLIENT else ""


def install(scripts: "list[str]", path: str, say_only: bool) -> None:
    """Copy the scripts that sit beside this one, and register their events in the settings."""
    import copy
    import difflib

    client = client_version()
    if client_problem(client):
        raise SystemExit(f"{client_problem(client)}; nothing was changed")
    here, folder = os.path.dirname(os.path.abspath(__file__)), os.path.join(config_folder(), "hooks")
    text, settings = read_settings(path)
    before = copy.deepcopy(settings)
    scripts = [script for script in scripts if os.path.exists(os.path.join(here, script))]
    with_ours(settings, path, {(s, e): group_of(s, e, folder) for s in scripts for e in events_of(s, client)})
    for name in [*scripts, *(["prompts.txt"] if "recover_malformed_toolcall.py" in scripts else [])]:
        if os.path.exists(os.path.join(here, name)) and os.path.realpath(here) != os.path.realpath(folder):
            copy_script(os.path.join(here, name), os.path.join(folder, name), say_only)
    command = os.path.join(config_folder(), "commands", "tool-coach.md")
    if "tool_coach.py" in scripts and not read_text(command):
        replace_file(command, SLASH_COMMAND, 0o644, say_only)
    left_out = [event for script in scripts for event in EVENTS[script] if event not in events_of(script, client)]
    if left_out:
        print(f"not yet  {', '.join(left_out)}: this client does not know it; install again after an update")
    if settings == before:
        print(f"as it is {path}")
        return
    after, mode = settings_text(settings, text), stat.S_IMODE(os.stat(path).st_mode) if text else 0o600
    if text and not os.path.exists(os.path.realpath(path) + BACKUP):
        replace_file(os.path.realpath(path) + BACKUP, text, mode, say_only)
    replace_file(path, after, mode, say_only)
    if say_only:
        print("\n".join(difflib.unified_diff(text.splitlines(), after.splitlines(), path, path, lineterm="")))


def uninstall(scripts: "list[str]", path: str, say_only: bool) -> None:
    """Take our entries out of the settings and remove our files, but for scripts that other settings name still:
    a missing script exits with 2, which the client takes for a block of every tool call."""
    import copy

    text, settings = read_settings(path)
    before = copy.deepcopy(settings)
    without_ours(settings, path, scripts, [])
    named = {script for _, script, _, _ in registered(settings, path)}
    for other in settings_files(path)[1:]:
        try:
            others = read_settings(other)[1] if other != os.path.realpath(path) else {}
            named |= {script for _, script, _, _ in registered(others, other)}
        except SystemExit as error:
            print(f"passed over: {str(error).partition(';')[0]}")
    backup = os.path.realpath(path) + BACKUP
    if settings != before:
        former, same = read_settings(backup)
        unchanged = without_empty(same) == without_empty(settings)
        after = former if former and unchanged else settings_text(settings, text)
        replace_file(path, after, stat.S_IMODE(os.stat(path).st_mode), say_only)
    folder = os.path.join(config_folder(), "hooks")
    files = files_of([script for script in scripts if script not in named])
    if os.path.islink(folder):
        print(f"keep     what is in {folder}: it is a link to a folder of yours")
        files = [file for file in files if os.path.dirname(file) != folder]
    files += [record_path() + end for end in ("", ".old") if not named]
    for file in [*files, *([] if any(registered(settings, path)) else [backup])]:
        info = os.lstat(file) if os.path.lexists(file) else None
        if info and stat.S_ISREG(info.st_mode) and (not hasattr(os, "geteuid") or info.st_uid == os.geteuid()):
            print(f"remove   {file}")
            if not say_only:
                os.remove(file)
    for empty in (folder, os.path.join(config_folder(), "commands")):
        if not say_only and os.path.isdir(empty) and not os.path.islink(empty) and not os.listdir(empty):
            os.rmdir(empty)


def files_of(scripts: "list[str]") -> "list[str]":
    """Return the files that scripts consist of and write, the record aside; prompts that a user edited are not ours."""
    import glob

    config = config_folder()
    files = [os.path.join(config, "hooks", script + end) for script in scripts for end in ("", ".old")]
    if "tool_coach.py" in scripts:
        command = os.path.join(config, "commands", "tool-coach.md")
        files += [os.path.join(config, "tool-coach.off"), *([command] if read_text(command) == SLASH_COMMAND else [])]
        files += glob.glob(os.path.join(STATE_DIR, "cc-tool-coach-*.json"))
    if "recover_malformed_toolcall.py" in scripts:
        prompts = os.path.join(config, "hooks", "prompts.txt")
        files += [prompts + ".new", *glob.glob(os.path.join(STATE_DIR, "cc-recover-*"))]
        if is_shipped(read_text(prompts)):
            files.append(prompts)
        elif os.path.exists(prompts):
            print(f"keep     {prompts}, which you edited")
    return files


def record_path() -> str:
    """Return the path of the record, by the ACTION_LOG of the installed script."""
    import re

    installed = read_text(os.path.join(config_folder(), "hooks", "recover_malformed_toolcall.py"))
    found = re.search(r'^ACTION_LOG = "([^"]+)"', installed, re.M)
    return os.path.join(config_folder(), found[1] if found else ACTION_LOG or "toolcall-hooks.log")


def without_empty(settings: "dict[str, Any]") -> "dict[str, Any]":
    """Return settings without hook lists that are empty."""
    hooks = {event: groups for event, groups in settings.get("hooks", {}).items() if groups}
    return {
        **{name: value for name, value in settings.items() if name != "hooks"},
        **({"hooks": hooks} if hooks else {}),
    }


def settings_files(path: str) -> "list[str]":
    """Return the settings files that the client reads here: the one at path, the user's, the project's two."""
    names = [os.path.join(".claude", "settings.json"), os.path.join(".claude", "settings.local.json")]
    return list(map(os.path.realpath, [path, os.path.join(config_folder(), "settings.json"), *names]))


def samples(script: str) -> "Iterator[tuple[str, str, list[dict[str, Any]]]]":
    """Yield what a sample shows, the outcome that is right, and the events that lead to it."""
    leak = f'<{CALL} name="Read">\n<{ARGUMENT} name="file_path">a.txt</{ARGUMENT}>\n</{CALL}>'
    stop, gave_up = {"hook_event_name": "Stop"}, {"hook_event_name": "StopFailure"}
    read = {"tool_name": "Read", "tool_input": {"file_path": "/nowhere/a.txt"}, "tool_use_id": "1"}
    call, change = {"hook_event_name": "PreToolUse", **read}, {"hook_event_name": "PostToolUse", "tool_name": "Write"}
    failure = {"hook_event_name": "PostToolUseFailure", **read, "error": "File does not exist."}
    batch = {"hook_event_name": "PostToolBatch", "tool_calls": [read]}
    refusal = {**batch, "tool_calls": [{**read, "tool_response": "<tool_use_error>No such file.</tool_use_error>"}]}
    if script == "recover_malformed_toolcall.py":
        yield "a leaked call is sent back", "block", [{**stop, "last_assistant_message": f"I look.\n\n{leak}"}]
        yield "a give-up is woken", "wake", [{**gave_up, "last_assistant_message": GIVE_UP_SENTENCES[0]}]
        yield "an ordinary answer is left alone", "quiet", [{**stop, "last_assistant_message": "All done."}]
        yield "a call shown as code is left alone", "quiet", [{**stop, "last_assistant_message": f"```\n{leak}\n```"}]
        yield "another API error is left alone", "quiet", [{**gave_up, "last_assistant_message": "Overloaded"}]
    else:
        yield "a failed call is not run again unchanged", "deny", [failure, batch, call]
        yield "a call refused twice brings a note", "note", [refusal, refusal]
        yield "a call that did not fail runs", "quiet", [call]
        yield "a failed call runs again after a change", "quiet", [failure, batch, change, call]
        yield "a call whose error may pass runs again", "quiet", [{**failure, "error": "timed out"}, batch, call]


def outcome_of(command: str, events: "list[dict[str, Any]]", plugin: str) -> str:
    """Return the outcome of the last of some events, sent to a hook command as registered; else what went wrong."""
    import json
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        session = f"status-{os.path.basename(folder)}"
        env = {**os.environ, "CLAUDE_CONFIG_DIR": folder, "CLAUDE_PLUGIN_ROOT": plugin}
        try:
            for event in events:
                sent = json.dumps({"session_id": session, "cwd": folder, **event}).encode() + b"\n"
                run = subprocess.run(
                    command, shell=True, check=False, input=sent, capture_output=True, env=env, timeout=20
                )
        except subprocess.TimeoutExpired:
            return "no answer in 20 seconds"
    for state in (state_path("recover", session), state_path("tool-coach", session)):
        if os.path.exists(state):
            os.remove(state)
    if run.returncode == 2 and b"(recovery attempt" in run.stderr:
        return "wake"
    try:
        answer = json.loads(run.stdout or b"{}")
        answer.update(answer.get("hookSpecificOutput", {}))
        outcome = answer.get("permissionDecision") or answer.get("decision")
        quiet = "note" if "additionalContext" in answer else "quiet"
    except (ValueError, AttributeError, TypeError):
        return f"an answer that is none: {run.stdout[:200]!r}"
    error = f"exit code {run.returncode}: {run.stderr.decode('utf-8', 'replace').strip()[-200:]}"
    return error if run.returncode or run.stderr else str(outcome or quiet)


def plugin_folder(settings: "Iterable[dict[str, Any]]") -> str:
    """Return the folder of the plugin if one of some settings enables it, else ""."""
    try:
        known = read_settings(os.path.join(config_folder(), "plugins", "installed_plugins.json"))[1]
        for name, places in known["plugins"].items():
            if name.startswith("toolcall-hooks@") and any(its.get("enabledPlugins", {}).get(name) for its in settings):
                return str((places[0] if isinstance(places, list) else places)["installPath"])
    except (SystemExit, AttributeError, LookupError, TypeError):
        pass
    return ""


def record_of(log: str) -> "dict[str, int]":
    """Return how often each thing stands in the record, in words."""
    words = {
        "recovered": "bursts recovered in {number} attempts",
        "deny": "repeats of {tool} stopped",
        "note": "notes on {tool}",
        "error": "internal errors of {hook}",
    }
    found: "dict[str, int]" = {}
    for line in log.splitlines():
        _, hook, _, outcome, tool, number = [*line.split("\t"), *[""] * 6][:6]
        handed_back = "bursts handed back" if hook == "recover" else "turns ended over {tool}"
        text = (handed_back if outcome == "hand-back" else words.get(outcome, "")).format(
            tool=tool, number=number, hook=hook
        )
        found[text] = found.get(text, 0) + 1
    return {text: found[text] for text in sorted(found) if text}


def wiring_faults(script: str, entries: "list[tuple[Any, ...]]", client: "tuple[int, ...]") -> "list[str]":
    """Return what is wrong with how a script is registered; entries: (file, event, script, group, handler)."""
    wrong = []
    for event in events_of(script, client):
        right = group_of(script, event, "")
        mine = [entry for entry in entries if entry[1] == event]
        if len(mine) != 1:
            wrong.append(f"{script} is registered {len(mine)} times for {event}")
        for place, _, _, group, handler in mine:
            if group.get("matcher") != right.get("matcher"):
                wrong.append(f"{script} has another matcher for {event} than {right.get('matcher')}, in {place}")
            if handler.get("asyncRewake") != right["hooks"][0].get("asyncRewake"):
                wrong.append(
                    f"{script} for {event}, in {place}: asyncRewake is to be true for StopFailure, and only there"
                )
    return wrong


def examine(script: str, entries: "list[tuple[Any, ...]]", path: str, plugin: str) -> "tuple[list[str], list[str]]":
    """Return what to say of a script, with the proof of what its entries run, and what is wrong with it.

    What only the current folder registers is not run: a hostile repository may have put it there.
    """
    import hashlib

    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), script)
    copy = os.path.join(config_folder(), "hooks", script)
    file = copy if os.path.exists(copy) else os.path.join(plugin, script) if plugin else source
    text, places = read_text(file), {entry[0]: 1 for entry in entries}
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    version = text.partition('__version__ = "')[2].partition('"')[0]
    said = [f"{script} {version} ({digest}): {file}"]
    for place in places:
        said.append(f"  registered for {', '.join(entry[1] for entry in entries if entry[0] == place)} in {place}")
    differs = os.path.exists(source) and not upgraded(read_text(source), text)[2]
    wrong = [f"{file} differs from {source} in more than its constants"] if differs else []
    tried = [entry for entry in entries if entry[0] in settings_files(path)[:2] or (plugin and plugin in entry[0])]
    said += [f"  not tried: what {place} names" for place in places if all(entry[0] != place for entry in tried)]
    for command in {entry[4]["command"]: 1 for entry in tried}:
        for label, expected, events in samples(script):
            got = outcome_of(command, events, plugin)
            said.append(f"  {'ok     ' if got == expected else 'WRONG  '}{label}")
            wrong += [] if got == expected else [f"{label}: {got} instead of {expected}, from {command}"]
    return said, wrong


def status(scripts: "list[str]", path: str, as_json: bool) -> int:
    """Print what is installed, the proof that it works, the record, and what is wrong; return 1 if anything is."""
    import glob
    import json

    client, config = client_version(), config_folder()
    places: "dict[str, dict[str, Any]]" = {}
    wrong = [client_problem(client)] if client_problem(client) else []

    def look_into(files: "Iterable[str]") -> None:
        for file in files:
            try:
                places[file] = read_settings(file)[1]
            except SystemExit as error:
                wrong.append(str(error).replace("; nothing was changed", ""))

    look_into(dict.fromkeys(settings_files(path)))
    plugin = plugin_folder(list(places.values()))
    look_into(glob.glob(os.path.join(plugin, ".claude-plugin", "hooks*.json")) if plugin else [])
    found = [(place, *entry) for place, settings in places.items() for entry in registered(settings, place)]
    said = [f"Python {sys.version.split()[0]}"]
    wrong += [] if found else ["no hook is registered"]
    wrong += [f"disableAllHooks is set in {place}" for place in places if places[place].get("disableAllHooks")]
    for script in scripts:
        entries = [entry for entry in found if entry[2] == script]
        wrong += wiring_faults(script, entries, client) if entries else []
        more, bad = examine(script, entries, path, plugin)
        said, wrong = said + more, wrong + bad
    said += ["the coach is switched off"] if os.path.lexists(os.path.join(config, "tool-coach.off")) else []
    record = record_of(read_text(record_path() + ".old") + read_text(record_path()))
    if as_json:
        print(json.dumps({"status": said, "record": record, "wrong": wrong}, indent=2))
    else:
        said += ["the record:", *([f"  {count} {text}" for text, count in record.items()] or ["  nothing yet"])]
        print("\n".join([*said, *(f"WRONG: {text}" for text in wrong or []), *([] if wrong else ["all is well"])]))
    return 1 if wrong else 0


def maintain(argv: "list[str]") -> int:
    """Run a maintenance command; return the exit code."""
    import argparse
    import io

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a console may lack the letters of a path
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument(
        "command", choices=["install", "uninstall", "status"], help="for both hooks, in the config folder"
    )
    parser.add_argument("--only", choices=list(EVENTS), help="one hook alone")
    parser.add_argument("--settings", metavar="PATH", help="another settings file, a project's for example")
    parser.add_argument("--dry-run", action="store_true", help="say what would be changed, and change nothing")
    parser.add_argument("--json", action="store_true", help="status for a bug report")
    options = parser.parse_args(argv)
    scripts = [options.only] if options.only else list(EVENTS)
    path = os.path.abspath(options.settings or os.path.join(config_folder(), "settings.json"))
    try:
        if options.command == "status":
            return status(scripts, path, options.json)
        (install if options.command == "install" else uninstall)(scripts, path, options.dry_run)
    except OSError as error:
        raise SystemExit(f"{error.filename}: {error.strerror}") from None
    return 0


def main(argv: "list[str]") -> int:
    """Answer the hook event on stdin (no arguments), or run a maintenance command."""
    if argv:
        return maintain(argv)
    if sys.stdin and sys.stdin.isatty():
        print(__doc__)
        return 0
    # A hook has nothing to tidy up, and the interpreter's tidy end is a tenth of its time.
    os._exit(run_hook("recover", nothing_to_do, HANDLERS))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

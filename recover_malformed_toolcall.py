#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The toolcall-hooks authors
# SPDX-License-Identifier: MIT
"""Send Claude Code back to work when a tool call was lost.

Sometimes the model's tool call comes out as plain text (a leaked call), or cannot be parsed and the
client gives up (the give-up). Nothing ran, the turn ends, and the session idles until a person types.

  Stop, SubagentStop   the last message holds a leaked call  ->  block: the model goes on, with a prompt
  StopFailure          the client gave up on a call          ->  wake: exit 2, the prompt on stderr
  all three            the retry budget is spent             ->  hand back: a line for the person

Malformed stops at most STREAK_WINDOW_SEC apart are one burst; each spends one of MAX_RETRIES. A clean
Stop ends the burst. Text that shows a call as Markdown code, or talks about one, is left alone.

Reads   the event on stdin; the last rows of the session's transcript; prompts.txt beside this file
Writes  /tmp/cc-recover-<session>[.<subagent>].json   count, time and last prompt of the burst
        toolcall-hooks.log in the config folder        one line per action; no text of the conversation
        /tmp/cc-recover-heartbeat.log                  only while /tmp/cc-recover-heartbeat.on exists
Never   runs, sends, or repeats anything of the leaked call but the tool's name. Any error: exit 0, silent.

By hand: copy this file (and prompts.txt) to ~/.claude/hooks, and put into ~/.claude/settings.json:

  {"hooks": {
    "Stop": [{"hooks": [{"type": "command", "timeout": 10,
      "command": "python3 -I -S ~/.claude/hooks/recover_malformed_toolcall.py"}]}],
    "SubagentStop": [{"hooks": [{"type": "command", "timeout": 10,
      "command": "python3 -I -S ~/.claude/hooks/recover_malformed_toolcall.py"}]}],
    "StopFailure": [{"hooks": [{"type": "command", "timeout": 10, "asyncRewake": true,
      "command": "python3 -I -S ~/.claude/hooks/recover_malformed_toolcall.py"}]}]}}
"""
import os
import stat
import sys
import time

TYPE_CHECKING = False  # typing is for the type checker alone: importing it would double the start time
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator

    Handler = Callable[[dict[str, Any]], int]

__version__ = "1.0.0"

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
    "Build the call from nothing but the tool's description, with the required arguments only.",
    "Use another tool with simpler arguments if one does the same job.",
    "Take the smallest next step that moves the task on.",
)

# The client's own words when it gives up on a call (2.1.112 to 2.1.332).
GIVE_UP_SENTENCES = ("The model's tool call could not be parsed (retry also failed).",)
BLOCK_CAP = 8  # blocks in a row after which the client cuts off, if CLAUDE_CODE_STOP_HOOK_BLOCK_CAP is unset
IDLE = b'{"count": 0'  # how the state of a session without a burst begins

# Built from parts: a tag spelled out in a file is taken for a call by tools that read the file.
PREFIX = "ant" + "ml:"
CALL = "inv" + "oke"
ARGUMENT = "para" + "meter"
# A call's opening tag: one attribute, the name. The "<" may be lost; the word itself may be garbled.
OPENER = (
    rf"(?:(?P<less>(?<!\\)<)|(?<![\w\\:.<-]))(?P<prefix>(?:{PREFIX})?)(?P<word>[^\W\d]\w*)\s+name\s*=\s*"
    r"""(?:"(?P<name>[^"<>\n]{1,200})"|'(?P<name2>[^'<>\n]{1,200})')\s*>"""
)
ARGUMENT_OPENER = rf"<?(?:{PREFIX})?{ARGUMENT}\s+name\s*="
CLOSER = rf"</(?:{PREFIX})?{CALL}\s*>"
# What follows a call's opening tag: an argument, a closing tag, the end of the message, or a tag cut off there.
CALL_GOES_ON = rf"\s*(?:\Z|</|{ARGUMENT_OPENER}|<{PREFIX}|<[^<>]*\Z)"
# Markdown, at the start of a line without its indentation.
FENCE = r"(`{3,}(?=[^`]*$)|~{3,})"
HEADING = r"#{1,6}(?: |$)|(?:=+|-+) *$"
RULE = r"(?:[*_-] *){3,}$"
LIST_ITEM = r"(?:[*+-]|\d{1,9}[.)])(?: {1,4}(?! |$)| |$)"
BLOCK_CODE, SPAN_CODE = "\0", "\1"  # what mask_code puts in place of a code line and of a code span


# --- Pure part: finding a leaked call ---------------------------------------------------------------------


def mask_code(text: str) -> str:
    """Return text with code and quotations blanked out the way CommonMark reads them; same number of lines.

    Fences (unclosed and in lists too), indented code, code spans. Idempotent, linear in time.
    """
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
        while indent < base + 4 and len(columns) < 100 and not re.match(RULE, rest):
            item = re.match(LIST_ITEM, rest)
            if not item:
                break
            end_paragraph(indent)
            base = indent + item.end()
            columns.append(base)
            rest = line[base:].lstrip(" ")
            indent = len(line) - len(rest)
        opening = re.match(FENCE, rest)
        if indent >= base + 4:
            if paragraph:
                paragraph.append(line)
                continue
            end_paragraph(indent)
            masked.append(line[:base] + BLOCK_CODE * (len(line) - base))
        elif rest.startswith((BLOCK_CODE, ">")) or opening:
            end_paragraph(indent)
            masked.append(line[:base] + BLOCK_CODE * (len(line) - base))
            if opening:
                fence, fence_column = opening[1], base
        elif re.match(RULE, rest) or re.match(HEADING, rest):
            end_paragraph(indent)
            masked.append(mask_spans(line))
        else:
            if not paragraph:
                end_paragraph(indent)
            paragraph.append(line)
    end_paragraph(0)
    return "\n".join(masked)


def mask_spans(paragraph: str) -> str:
    """Return one paragraph with its code spans blanked out; the backticks in a leaked call's arguments are its own."""
    import re

    zones: "list[tuple[int, int]]" = []  # from a call's first argument to its closing tag
    opener, closer = re.compile(OPENER + r"\s*" + ARGUMENT_OPENER), re.compile(CLOSER)
    call = opener.search(paragraph)
    while call:
        end = call.end()
        if not re.search(r"`\s*(?:\S{1,40}\s+)?\Z", paragraph[max(0, call.start() - 80) : call.start()]):
            closing = closer.search(paragraph, end)
            end = closing.end() if closing else len(paragraph)
            zones.append((call.end(), end))
        call = opener.search(paragraph, end)
    runs: "list[tuple[int, int, int, int]]" = []  # zone, start, end, escaped ticks
    zone = 0
    for run in re.finditer(r"(\\*)(`+)", paragraph):
        while zone < len(zones) and zones[zone][1] <= run.start(2):
            zone += 1
        inside = zone < len(zones) and zones[zone][0] <= run.start(2)
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

    line = after.partition("\n")[0]
    words = before.split()
    leads = len(words) <= 1 or words[-1][-1] in ".:!?\u2026\u3002\uff1a\uff01\uff1f"  # where a call may begin
    argument = re.match(r"\s*" + ARGUMENT_OPENER, after)
    goes_on = re.match(CALL_GOES_ON, after)
    closing = re.search(CLOSER, line)
    if not less and not (argument if len(words) == 1 else goes_on and not words):
        return False
    if word != CALL:
        return bool(word != ARGUMENT and argument and (prefix or re.search(CLOSER, after)))
    if closing and is_mention(len(words), line[closing.end() :].strip()):
        return False
    if goes_on:
        return leads or bool(after.strip())
    if line.strip():  # bare text where the arguments should be
        return leads and closing is not None
    return leads and not re.match(r"\s*<", after)


def is_mention(words_before: int, tail: str) -> bool:
    """Tell whether a whole call on one line is part of a sentence; tail: what follows it on the line."""
    import re

    if not tail or re.match(rf"<(?!{CALL}|{PREFIX}{CALL})", tail):
        return False
    return words_before > 1 or not tail[0].isupper()


# --- Pure part: reading a reply, the budget, the words ----------------------------------------------------


def last_turn(rows: "Iterable[dict[str, Any]]", subagent: bool) -> "dict[str, Any] | None":
    """Return what the transcript says of the reply that ended the turn; None if it is not written yet.

    rows: the transcript's rows, newest first. The result: texts (its text blocks), tool_use (the reply
    holds a real tool call), synthetic (the client wrote it), tool_ran (a call ran since the last prompt or block;
    its result may be missing still when Stop fires, up to 2.1.122). A reply is one row per content block, joined by message.id (2.1.104 to 2.1.332).
    """
    turn: "dict[str, Any]" = {"texts": [], "tool_use": False, "synthetic": False, "tool_ran": False}
    reply_id = None
    for row in rows:
        message = row.get("message")
        if not isinstance(message, dict) or (row.get("isSidechain") is True and not subagent):
            continue
        content = message.get("content")
        blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
        if isinstance(content, str):
            blocks = [{"type": "text", "text": content}]
        kinds = [block.get("type") for block in blocks]
        if row.get("type") == "assistant":
            reply_id = reply_id or message.get("id") or "unnamed"
            if (message.get("id") or "unnamed") != reply_id:
                turn["tool_ran"] = turn["tool_ran"] or "tool_use" in kinds
            else:
                turn["tool_use"] = turn["tool_use"] or "tool_use" in kinds
                turn["synthetic"] = turn["synthetic"] or message.get("model") == "<synthetic>"
                texts = [b["text"] for b in blocks if b.get("type") == "text" and isinstance(b.get("text"), str)]
                turn["texts"] = texts + turn["texts"]
        elif row.get("type") == "user":
            if reply_id is None:
                return None
            if "tool_result" not in kinds:
                break
            turn["tool_ran"] = True
    return turn if reply_id else None


def judge(message: "str | None", turn: "dict[str, Any] | None") -> "tuple[str, str]":
    """Return ("give-up", ""), ("leak", tool name) or ("clean", "") for the message that ended a turn."""
    texts = turn["texts"] if turn else []
    text = message if message is not None else "\n".join(texts)
    if text.strip() in GIVE_UP_SENTENCES:
        return ("give-up" if turn and turn["synthetic"] else "clean"), ""
    same = bool(texts) and (message is None or texts[-1].strip() == message.strip())
    if turn and turn["tool_use"] and same:
        return "clean", ""  # a real tool call came with it
    name = find_leaked_call(text)
    return ("clean", "") if name is None else ("leak", name)


def spend(state: "dict[str, Any]", now: float, row_cap: int, row_goes_on: bool) -> "tuple[str, dict[str, Any]]":
    """Return ("block" or "hand-back", the new state) for one more malformed stop.

    row_cap: blocks in a row that the client lets pass, 0 = any number; row_goes_on: nothing ran since the last one.
    """
    count, row, ts = state.get("count"), state.get("row"), state.get("ts")
    alive = isinstance(ts, (int, float)) and 0 <= now - ts <= STREAK_WINDOW_SEC
    count = count if alive and isinstance(count, int) and count > 0 else 0
    row = row if count and row_goes_on and isinstance(row, int) else 0
    spent = count >= MAX_RETRIES or 0 < row_cap <= row
    used = {"count": 0 if spent else count + 1, "ts": now, "last_idx": state.get("last_idx")}
    return ("hand-back", used) if spent else ("block", {**used, "row": row + 1 if row_cap else 0})


def pick_prompt(count: int, last: object, chance: int) -> int:
    """Return the index of one of count prompts (at least 1), another than the last; chance: any number."""
    if not isinstance(last, int) or not 0 <= last < count or count == 1:
        return chance % count
    index = chance % (count - 1)
    return index + (index >= last)


def recovery_text(kind: str, tool: str, prompt: str, attempt: int, subagent: bool) -> str:
    """Return what the model reads: the facts, one thing to do, a prompt, the attempt. It spells no markup."""
    call = f"{tool} call" if tool.isascii() and tool.isidentifier() and len(tool) <= 64 else "tool call"
    fate = "was written out as text" if kind == "leak" else "could not be parsed"
    parts = [
        f"recover_malformed_toolcall (a hook): your last {call} {fate}, so nothing ran, and whatever your message says "
        "about its result is unproven. Make the call first and alone. If the markup was only meant to be shown, say so "
        "in one line and stop."
    ]
    if subagent:
        parts.append("Your last message is what the caller receives, so finish the task and report in full.")
    return " ".join([*parts, prompt, f"(recovery attempt {attempt}/{MAX_RETRIES})"])


HAND_BACK = (
    "recover_malformed_toolcall: the model's tool calls keep coming out malformed and did not run; the retries are "
    "spent, so it is your turn. Type continue to try again; if it keeps failing, /rewind to before the failed call."
)


# --- Effects ----------------------------------------------------------------------------------------------

# --- Shared by both scripts, letter for letter: begin -----------------------------------------------------

STATE_DIR = "/tmp" if os.name == "posix" else os.environ.get("TEMP", ".")
STDIN_WAIT_SEC = 5.0  # seconds to wait for the event; some builds never close stdin
LOCK_WAIT_SEC = 2.0  # seconds to wait for another hook process that holds the state
LOG_MAX_BYTES = 200_000  # the record is then kept as <name>.old and begun anew


def read_stdin() -> bytes:
    """Return the event on stdin: all up to its end, or what came when nothing more follows a closing brace."""
    data, deadline = [b""], time.monotonic() + STDIN_WAIT_SEC
    while True:
        if os.name == "posix":
            import select

            wait = 0.2 if data[-1].rstrip().endswith(b"}") else max(0.0, deadline - time.monotonic())
            if not select.select([0], [], [], wait)[0]:
                break
        data.append(os.read(0, 1 << 20))
        if not data[-1]:
            break
    return b"".join(data)


def quick_field(raw: bytes, name: str) -> str:
    """Return the first string of that name in raw JSON without parsing it, or "".

    The session's fields come before all that a model or a person wrote (2.1.104 to 2.1.332).
    """
    value = raw.partition(b'"%s"' % name.encode())[2][:1000].lstrip(b": ")
    return value[1:].partition(b'"')[0].decode("ascii", "replace") if value[:1] == b'"' else ""


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


def is_idle(path: str, idle: bytes) -> bool:
    """Tell whether there is no state at path, or one that begins with idle; True for what cannot be read."""
    try:
        fd = open_private(path, os.O_RDONLY)
    except OSError:
        return True
    start = os.read(fd, len(idle))
    os.close(fd)
    return start in (b"", idle)


def lock_state(path: str) -> int:
    """Return a descriptor of the state file, made if missing, locked until closed; OSError if that fails."""
    fd, deadline = open_private(path, os.O_RDWR | os.O_CREAT), time.monotonic() + LOCK_WAIT_SEC
    while True:
        try:
            if sys.platform == "win32":
                import msvcrt

                os.lseek(fd, 1 << 30, os.SEEK_SET)
                msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except OSError:
            if time.monotonic() > deadline:
                os.close(fd)
                raise
            time.sleep(0.01)


def load_state(fd: int) -> "dict[str, Any]":
    """Return the state behind a locked descriptor; {} for an empty or unreadable one."""
    import json

    os.lseek(fd, 0, os.SEEK_SET)
    try:
        state = json.loads(os.read(fd, 4_000_000).partition(b"\n")[0])
    except (ValueError, RecursionError):
        return {}
    return state if isinstance(state, dict) else {}


def store_state(fd: int, state: "dict[str, Any]") -> None:
    """Write the state behind a locked descriptor; OSError if it does not fit on the disk."""
    import json

    data = json.dumps(state).encode() + b"\n"
    os.lseek(fd, 0, os.SEEK_SET)
    if os.write(fd, data) != len(data):
        raise OSError("the state was not written whole")
    os.ftruncate(fd, len(data))


def config_folder() -> str:
    """Return the client's config folder."""
    return os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.path.expanduser("~"), ".claude")


def text_of(event: "dict[str, Any]", name: str) -> str:
    """Return a field of an event, "" if it is missing or no string."""
    value = event.get(name)
    return value if isinstance(value, str) else ""


def log_action(hook: str, event: "dict[str, Any]", outcome: str, tool: str, number: int) -> None:
    """Append one action to the record: time, hook, session, outcome, tool, number, by tabs. Never raises OSError."""
    if not ACTION_LOG:
        return
    path, now = os.path.join(config_folder(), ACTION_LOG), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    words = [now, hook, text_of(event, "session_id"), outcome, tool, str(number)]
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

        event, _ = json.JSONDecoder().raw_decode(raw.decode("utf-8", "replace").lstrip())
        return handlers[event["hook_event_name"]](event)
    except BaseException as error:
        log_action(hook, event if isinstance(event, dict) else {}, "error", type(error).__name__, 0)
        return 0


# --- Shared by both scripts, letter for letter: end -------------------------------------------------------


def rows_from_end(path: str) -> "Iterator[dict[str, Any]]":
    """Yield the transcript's message rows, newest first, from its last TAIL_BYTES; broken rows are passed over."""
    import json

    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        info = os.fstat(fd)
        position = info.st_size if stat.S_ISREG(info.st_mode) else 0
        stop, carry = max(0, position - TAIL_BYTES), b""
        while position > stop:
            start = max(stop, position - 65536)
            os.lseek(fd, start, os.SEEK_SET)
            carry, *lines = (os.read(fd, position - start) + carry).split(b"\n")
            position = start
            for line in reversed([carry, *lines] if position == 0 else lines):
                if b'"message"' in line:
                    try:
                        row = json.loads(line)
                    except (ValueError, RecursionError):
                        continue
                    if isinstance(row, dict):
                        yield row
    finally:
        os.close(fd)


def read_turn(path: object, subagent: bool, message: "str | None", wait_sec: float) -> "dict[str, Any] | None":
    """Return last_turn of a transcript, once it holds the message; after wait_sec what there is, None if nothing."""
    deadline = time.monotonic() + wait_sec
    while isinstance(path, str):
        try:
            turn = last_turn(rows_from_end(path), subagent)
        except OSError:
            turn = None
        there = turn and (message is None or message.strip() in [text.strip() for text in turn["texts"]])
        if there or time.monotonic() >= deadline:
            return turn
        time.sleep(0.05)
    return None


def read_prompts() -> "list[str]":
    """Return the prompts of prompts.txt beside this file, or RECOVERY_PROMPTS."""
    try:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts.txt")
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        lines = os.read(fd, 200_000).decode("utf-8-sig", "replace").splitlines()
        os.close(fd)
    except OSError:
        lines = []
    found = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return found or list(RECOVERY_PROMPTS) or ["Try again with a simpler call."]


def heartbeat_is_on() -> bool:
    """Tell whether the user asked for the heartbeat; a file that somebody else made does not count."""
    try:
        os.close(open_private(os.path.join(STATE_DIR, "cc-recover-heartbeat.on"), os.O_RDONLY))
    except OSError:
        return False
    return True


def beat(event: "dict[str, Any]", kind: str, turn: "dict[str, Any] | None", length: int) -> None:
    """Append one event to the heartbeat's log: what was judged, and by what. Never raises OSError."""
    tool_use = ("yes" if turn["tool_use"] else "no") if turn else "unknown"
    now, session = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), text_of(event, "session_id")
    line = f"{now} {session} {event['hook_event_name']} malformed={kind} tool_use={tool_use} length={length}\n"
    try:
        fd = open_private(os.path.join(STATE_DIR, "cc-recover-heartbeat.log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(fd, line.encode("ascii", "replace"))
        os.close(fd)
    except OSError:
        pass


def burst_path(event: "dict[str, Any]") -> str:
    """Return the path of the burst's state: of the session, or of its subagent."""
    return state_path("recover", text_of(event, "session_id"), text_of(event, "agent_id"))


def answer(event: "dict[str, Any]", kind: str, tool: str, row_goes_on: bool) -> int:
    """Spend one retry on a malformed stop and say what follows; nothing is said unless it could be counted."""
    name = event["hook_event_name"]
    cap = os.environ.get("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "")
    row_cap = 0 if name == "StopFailure" else int(cap) if cap.isascii() and cap.isdigit() else BLOCK_CAP
    prompts = read_prompts()
    fd = lock_state(burst_path(event))
    try:
        state = load_state(fd)
        outcome, state = spend(state, time.time(), row_cap, row_goes_on)
        if outcome == "block":
            chance = int.from_bytes(os.urandom(4), "big")
            state["last_idx"] = pick_prompt(len(prompts), state["last_idx"], chance)
        store_state(fd, state)
    finally:
        os.close(fd)
    if outcome == "hand-back":
        log_action("recover", event, "hand-back", tool, MAX_RETRIES)
        return 0 if name == "StopFailure" else say({"systemMessage": HAND_BACK})  # nobody would see it there
    text = recovery_text(kind, tool, prompts[state["last_idx"]], state["count"], name == "SubagentStop")
    log_action("recover", event, "wake" if name == "StopFailure" else "block", tool, state["count"])
    if name == "StopFailure":
        os.write(2, text.encode("utf-8", "replace"))
        return 2
    return say({"decision": "block", "reason": text})


# --- Handlers: what happens on each event -----------------------------------------------------------------


def on_stop(event: "dict[str, Any]") -> int:
    """Judge the message that ended the turn; block, hand back, or end the burst."""
    subagent = event["hook_event_name"] == "SubagentStop"
    message = event.get("last_assistant_message")
    message = message if isinstance(message, str) and message.strip() else None
    leaked = message is not None and find_leaked_call(message) is not None
    unsure = message is None or message.strip() in GIVE_UP_SENTENCES
    kind, tool, turn, beating = "clean", "", None, heartbeat_is_on()
    if leaked or unsure or beating:
        path = event.get("agent_transcript_path" if subagent else "transcript_path")
        turn = read_turn(path, subagent, message, LAG_WAIT_SEC if unsure else 0)
        kind, tool = judge(message, turn)
    if beating:
        beat(event, "no" if kind == "clean" else kind, turn, len(message or ""))
    if kind != "clean":
        goes_on = event.get("stop_hook_active") is True and not (turn and turn["tool_ran"])
        return answer(event, kind, tool, goes_on)
    if not is_idle(burst_path(event), IDLE):
        end_burst(event)
    return 0


def end_burst(event: "dict[str, Any]") -> None:
    """Note a recovery in the record, and begin the count anew."""
    fd = lock_state(burst_path(event))
    try:
        state = load_state(fd)
        store_state(fd, {"count": 0, "ts": time.time(), "last_idx": state.get("last_idx")})
    finally:
        os.close(fd)
    if isinstance(state.get("count"), int) and state["count"] > 0:
        log_action("recover", event, "recovered", "", state["count"])


def on_stop_failure(event: "dict[str, Any]") -> int:
    """Wake the session after a give-up. Other API errors are left alone, and so is a subagent's give-up:
    its caller is told by the client, and a wake would reach the main session instead (2.1.122 to 2.1.332)."""
    message = event.get("last_assistant_message")
    gave_up = isinstance(message, str) and message.strip() in GIVE_UP_SENTENCES and not event.get("agent_id")
    if heartbeat_is_on():
        beat(event, "give-up" if gave_up else "no", None, len(text_of(event, "last_assistant_message")))
    return answer(event, "give-up", "", False) if gave_up else 0


HANDLERS = {"Stop": on_stop, "SubagentStop": on_stop, "StopFailure": on_stop_failure}


def nothing_to_do(raw: bytes) -> bool:
    """Tell from the raw event alone that it is an ordinary stop outside a burst; parsing costs more than all else."""
    if not quick_field(raw, "last_assistant_message") or os.path.lexists(f"{STATE_DIR}/cc-recover-heartbeat.on"):
        return False
    if any(word in raw for word in (CALL.encode(), ARGUMENT.encode(), b"could not be parsed")):
        return False
    return is_idle(state_path("recover", quick_field(raw, "session_id"), quick_field(raw, "agent_id")), IDLE)


def main(argv: "list[str]") -> int:
    """Answer one hook event on stdin (no arguments), or run a maintenance command."""
    if argv or sys.stdin is None or sys.stdin.isatty():
        return maintain(argv)
    return run_hook("recover", nothing_to_do, HANDLERS)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

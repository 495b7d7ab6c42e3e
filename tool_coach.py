#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The toolcall-hooks authors
# SPDX-License-Identifier: MIT
"""Stop Claude Code's model from repeating a tool call that just failed.

  PostToolUseFailure   a call ran and failed: it is kept with its error; from the third failure of one call in a
                       turn on the model gets a note
  PreToolUse           the very same call again: denied, quoting that error, until something has changed
  PostToolUse          an edit, a command, an MCP call succeeded: what was kept before it is dropped
  PostToolBatch        calls refused before they ran (wrong schema, text to replace not found) show only here:
                       from the second identical refusal in a turn on the model gets a note
  UserPromptSubmit     a new turn: everything is dropped
  SessionEnd           the state is removed
  UserPromptExpansion  /tool-coach [on|off], answered without a request to the model

After HAND_BACK_AFTER denials or refusals of one call the turn ends. Bash and PowerShell are never judged: a failed
command often runs again for good reason. `python3 tool_coach.py on|off` switches as /tool-coach does.

Reads   the event on stdin; size, time and mode of a path in a failed call's input; the transcript's tail,
        while no PostToolBatch has told which calls belong together
Writes  /tmp/cc-tool-coach-<session>.json        kept calls: error, path's look, digest of the input; its
                                                 modification time is the time of the last change
        tool-coach.off in the config folder      while switched off
        toolcall-hooks.log in the config folder  one line per action; no inputs, no errors
Never   runs, opens or sends anything. Any error of its own: the call runs, a line in the record.

By hand: copy this file to ~/.claude/hooks, and put into ~/.claude/settings.json (for client 2.1.104 or newer; an
older one drops every hook of a file that names an event it does not know):

  {"hooks": {
    "PreToolUse": [{"matcher": "^(?!(Bash|PowerShell)$)", "hooks": [HOOK]}],
    "PostToolUseFailure": [{"matcher": "^(?!(Bash|PowerShell)$)", "hooks": [HOOK]}],
    "PostToolUse": [{"matcher": "^(Edit|MultiEdit|Write|NotebookEdit|Bash|PowerShell|mcp__.+)$", "hooks": [HOOK]}],
    "PostToolBatch": [{"hooks": [HOOK]}],
    "UserPromptSubmit": [{"hooks": [HOOK]}],
    "SessionEnd": [{"hooks": [HOOK]}],
    "UserPromptExpansion": [{"matcher": "^(toolcall-hooks:)?tool-coach$", "hooks": [HOOK]}]}}

  HOOK  {"type": "command", "timeout": 10, "command": "python3 -I -S ~/.claude/hooks/tool_coach.py"}
"""

import os
import stat
import sys
import time

TYPE_CHECKING = False  # typing is for the type checker alone: importing it would double the start time
if TYPE_CHECKING:
    from typing import Any

__version__ = "1.0.0"

# --- Constants you may edit; an upgrade keeps your values ---

KEEP_SEC = 600  # seconds that a failed call is kept
HAND_BACK_AFTER = 5  # denials or refusals of one call, then the turn ends; 0 = never
QUOTE_CHARS = 2000  # characters of an error that are quoted; a longer one by head and tail
ACTION_LOG = "toolcall-hooks.log"  # file in the config folder, one line per action; "" = no record
# Errors that may pass by themselves, or that say nothing about the call: it is not kept. A number counts as a
# status only beside a word that makes it one, so that a row of data with a 503 in it does not.
PASSING = (
    r"\w*time[sd]?[-_ ]?out(?:s|error|exception)?|deadline ?exceeded|upstream connect|broken pipe|fetch failed",
    r"E(?:AI_AGAIN|PIPE|BUSY|AGAIN|MFILE|NOTFOUND|CONN\w+|NET\w+|HOST\w+)|socket hang ?up",
    r"(?:net::)?ERR_(?:NETWORK|CONNECTION)\w*|(?:dis|not )connected|network (?:error|is unreachable)",
    r"(?:connection|socket|stream|transport|channel)\b[^.\n]{0,20}\b(?:closed|reset|refused|lost|dropped|abort\w*|error)",
    r"connection terminated|(?:could not|cannot|unable to|failed to) connect|quota|resource[ _]exhausted",
    r"rate[-_ ]?limit\w*|too many (?:requests|connections|open files)|overloaded\w*|throttl\w+",
    r"(?:status|code|http(?:/[\d.]+)?)(?:[ _-]?code)?\W?(?: of| was| is)?[ :=(]{1,3}(?:408|425|429|5\d\d)",
    r"(?:408|425|429|5\d\d) (?:request time|too |internal|bad gateway|service|gateway)\w*|error 5\d\d",
    r"internal server error|bad gateway|\w*unavailable|(?:server|resource) (?:is )?busy|is locked|deadlock",
    r"lock wait|(?:already )?in use|not\b[^.\n]{0,30}\b(?:ready|yet)|in progress|still \w+ing|pending",
    r"(?:start|warm)ing up|initiali[sz]ing|(?:re-?)?try(?:ing)? (?:again|later|in|after)|(?:again|back) later",
    r"please (?:re-?try|wait)|temporar(?:y|ily)|cancell?ed|interrupted|abort(?:ed|error)",
    r"hook error|blocked by|doesn't want to|was rejected|denied by|permission to use",
)

# --- Constants that follow the client ---

LABELLED = ("Agent", "Task", "Monitor")  # their description only labels the call and is not compared
NOT_JUDGED = ("Bash", "PowerShell")
# Never kept: what these answer hangs on a person or on other tasks, of which the hooks see nothing.
NOT_KEPT = (*NOT_JUDGED, "AskUserQuestion", "SendMessage", "TaskGet", "TaskOutput", "TaskStop", "TaskUpdate")
CHANGING = ("Edit", "MultiEdit", "Write", "NotebookEdit", *NOT_JUDGED)
PATH_FIELDS = ("file_path", "notebook_path", "path")
SWITCH = "tool-coach.off"  # file in the config folder that is there while the coach is off
LATENCY_SEC = 2.0  # seconds that a hook may start late, so that times of calls in one batch can be mixed up
KEEP_MOST = 200  # failed calls kept per session
TAIL_BYTES = 1_000_000  # bytes of the transcript searched for a batch
IDLE = b'{"kept": {}'  # how the state of a session with nothing kept begins
REFUSED = "<tool_use_error>"  # what the client puts before a refusal (2.1.122 to 2.1.332)


# --- Pure part ---


def is_passing(error: str) -> bool:
    """Tell whether an error may be gone at the next try, or says nothing about the call."""
    import re

    ends = error[:4000] + "\n" + error[-1000:]
    return bool(re.search(rf"(?<![\w-])(?:{'|'.join(PASSING)})(?![\w-])", ends, re.I))


def key_of(event: "dict[str, Any]", call: "dict[str, Any]") -> str:
    """Return what two calls of one agent share if they are the same: the tool and the values, in any key order."""
    import hashlib
    import json

    tool, tool_input = call["tool_name"], call["tool_input"]
    if tool in LABELLED and isinstance(tool_input, dict):
        tool_input = {**tool_input, "description": ""}
    what = json.dumps([event.get("agent_id"), tool, tool_input], sort_keys=True)
    return hashlib.sha256(what.encode()).hexdigest()


def quote(error: str) -> str:
    """Return an error as it is quoted: without the refusal's element, a long one by head and tail."""
    error = error.replace(REFUSED, "").replace("</" + REFUSED[1:], "").strip()
    half = QUOTE_CHARS // 2
    if len(error) > QUOTE_CHARS:
        error = f"{error[:half]}\n[{len(error) - 2 * half} characters left out]\n{error[-half:]}"
    return error


def still_holds(call: "dict[str, Any]", now: float, look: "list[Any]") -> bool:
    """Tell whether a kept call would still fail as it did: not too old, and everything looks the same."""
    return 0 <= now - call["at"] <= KEEP_SEC and bool(call["look"] == look)


def outlive(kept: "dict[str, Any]", tool: str) -> "dict[str, Any]":
    """Return the kept calls that a success of tool says nothing of: an MCP tool's speaks for its server only."""
    touched = "__".join(tool.split("__")[:2]) + "__" if tool.startswith("mcp__") else ""
    return {key: call for key, call in kept.items() if not call["tool"].startswith(touched)}


def was_refused(call: "dict[str, Any]") -> bool:
    """Tell whether the client refused a call of a batch before it ran, for its own fault."""
    error = str(call.get("tool_response")).lstrip()
    own = error.startswith(REFUSED) and not error.startswith(REFUSED + "Cancelled")
    return own and call["tool_name"] not in NOT_JUDGED


def repeat_text(tool: str, fate: str, error: str) -> str:
    """Return what the model reads of a repeated call."""
    return f"this exact {tool} call {fate}. Its error was:\n{error}\nRead the error, change the input, and call again."


DENIED = "failed a moment ago, and no file or command has changed anything since, so it would fail the same way"
HAND_BACK = (
    "tool-coach: the model repeated one failing {tool} call {times} times, so the turn was ended. Say what it should "
    "do instead, or type continue. /tool-coach off lets such calls run."
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


def path_of(event: "dict[str, Any]") -> str:
    """Return the path of the session's state."""
    return state_path("tool-coach", event["session_id"])


def switch(wish: str) -> str:
    """Switch the coach "on" or "off" for every session; say what it is, or why the config folder does not take it."""
    path = os.path.join(config_folder(), SWITCH)
    try:
        if wish == "off" and not os.path.lexists(path):
            os.makedirs(config_folder(), exist_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        elif wish == "on" and os.path.lexists(path):
            os.remove(path)
    except OSError as error:
        return f"tool-coach could not be switched {wish}: {error.filename}: {error.strerror}"
    return "tool-coach is " + ("off" if os.path.lexists(path) else "on")


def look_of(event: "dict[str, Any]") -> "list[Any]":
    """Return how things look to a call: its working directory; size, time, mode of each path in its input that is
    there."""
    looks: "list[Any]" = [event.get("cwd", "")]
    for name in PATH_FIELDS:
        try:
            info = os.stat(os.path.join(looks[0], event["tool_input"].get(name) or "\0"))
            looks.append([name, info.st_size, info.st_mtime_ns, info.st_mode])
        except (OSError, ValueError, TypeError):
            continue
    return looks


def in_one_message(event: "dict[str, Any]", other: str) -> bool:
    """Tell whether a call stands in one message with another of its agent; True if the transcript can't be read.

    Asked where no PostToolBatch has told. Both calls' rows are there when the second of two serial calls is about to
    run, with the message's id (2.1.104 to 2.1.332); the first one's result may be there, too.
    """
    import json

    path, own = event.get("transcript_path", ""), event.get("tool_use_id")
    if event.get("agent_id"):
        path = f"{path[:-6]}/subagents/agent-{event['agent_id']}.jsonl"
    if not os.path.isfile(path):
        return True
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - TAIL_BYTES))
        tail = file.read(TAIL_BYTES).decode("utf-8", "replace").replace('": "', '":"')
    rows = [row for row in tail.split("\n") if f'"id":"{own}"' in row or f'"id":"{other}"' in row]
    return len(rows) > 1 and len({json.loads(row)["message"]["id"] for row in rows}) == 1


def open_state(event: "dict[str, Any]") -> "tuple[int, dict[str, Any], dict[str, Any], int]":
    """Return the locked descriptor, the kept calls by key, how often each failed ("refused KEY": was refused) in this
    turn, and the time of the last change in nanoseconds (0 = none)."""
    fd = lock_state(path_of(event))
    info, state = os.fstat(fd), load_state(fd)
    return fd, state.get("kept", {}), state.get("turn", {}), info.st_mtime_ns if info.st_size else 0


def save_state(event: "dict[str, Any]", fd: int, kept: "dict[str, Any]", turn: "dict[str, Any]", changed: int) -> int:
    """Write all of it, of the kept calls the newest, and let others go on; return the exit code 0."""
    store_state(fd, {"kept": dict([*kept.items()][-KEEP_MOST:]), "turn": turn})
    os.utime(path_of(event), ns=(changed, changed))
    os.close(fd)
    return 0


def note_change(path: str) -> bool:
    """Note the time of a change; False if something is kept, which the caller then has to drop."""
    fd = lock_state(path)
    idle = os.read(fd, len(IDLE)) in (b"", IDLE)
    if idle:
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, IDLE)  # what stands behind it stays, the modification time is new
    os.close(fd)
    return idle


def tell(event: "dict[str, Any]", answer: "dict[str, str]", line: str, tool: str, times: int) -> int:
    """Answer the model and show the person a line; end the turn if the call came too often. Return the exit code."""
    outcome = "note" if "additionalContext" in answer else "deny"
    answer["hookEventName"] = event["hook_event_name"]
    output: "dict[str, Any]" = {"hookSpecificOutput": answer, "systemMessage": f"tool-coach: {tool} call {line}"}
    if 0 < HAND_BACK_AFTER <= times:
        outcome = "hand-back"
        output.update({"continue": False, "stopReason": HAND_BACK.format(tool=tool, times=times)})
    append_line(ACTION_LOG, "tool-coach", event["session_id"], outcome, tool, str(times))
    return say(output)


# --- Handlers: what happens on each event ---


def nothing_to_do(raw: bytes) -> bool:
    """Tell from the raw event alone that nothing is kept that it concerns; parsing costs more than all else."""
    name, path = quick_field(raw, "hook_event_name"), state_path("tool-coach", quick_field(raw, "session_id"))
    if os.path.lexists(os.path.join(config_folder(), SWITCH)) and name != "UserPromptExpansion":
        if os.path.lexists(path):
            os.remove(path)  # while off nobody notes changes, so what was kept is worth nothing when it is on again
        return True
    if name == "PostToolUse":
        return note_change(path)
    if name in ("UserPromptSubmit", "SessionEnd"):
        return not os.path.lexists(path)
    return name in ("PreToolUse", "PostToolBatch") and b"tool_use_error" not in raw and is_idle(path, IDLE)


def on_call(event: "dict[str, Any]") -> int:
    """Deny a call that is kept as failed, if nothing has changed since and it was not sent together with it."""
    tool, key = event["tool_name"], key_of(event, event)
    fd, kept, turn, changed = open_state(event)
    call = kept.get(key)
    if not call:
        return 0
    if not still_holds(call, time.time(), look_of(event)):
        del kept[key]
        return save_state(event, fd, kept, turn, changed)
    if not call["over"] and in_one_message(event, call["id"]):
        return 0
    call.update(denied=call["denied"] + 1, id=event.get("tool_use_id"), over=True)
    save_state(event, fd, kept, turn, changed)
    answer = {"permissionDecision": "deny", "permissionDecisionReason": repeat_text(tool, DENIED, call["error"])}
    return tell(event, answer, "repeated after it failed, not run", tool, call["denied"])


def on_failure(event: "dict[str, Any]") -> int:
    """Keep a call that ran and failed, unless its error may pass or is older than the last change; note the third."""
    tool, error = event["tool_name"], event.get("error") or ""
    if tool in NOT_KEPT or event.get("is_interrupt") or is_passing(error):
        return 0
    key, started = key_of(event, event), time.time() - event.get("duration_ms", 0) / 1000  # not in 2.1.104
    call = {"tool": tool, "error": quote(error), "at": started, "look": look_of(event), "agent": event.get("agent_id")}
    call.update(id=event.get("tool_use_id"), denied=0, over=False)
    fd, kept, turn, changed = open_state(event)
    twin = key in kept and not kept[key]["over"]  # one in the same batch, which counts already
    failed = turn[key] = turn.get(key, 0) + (not twin)
    if started * 1e9 > changed:
        kept[key] = call
    save_state(event, fd, kept, turn, changed)
    if failed < 3:
        return 0
    fate = f"failed {failed} times in this turn"
    note = "tool-coach: " + repeat_text(tool, "has " + fate, quote(error))
    return tell(event, {"additionalContext": note}, fate, tool, 0)


def on_batch(event: "dict[str, Any]") -> int:
    """After a batch of calls: its failures count from now on, repeated refusals bring a note; end what goes on for
    ever (beside a denial the client only does so from 2.1.221 on, here from 2.1.122 on)."""
    ids, changing, refused, ending = [], False, {}, {}
    for call in event["tool_calls"]:
        ids.append(call.get("tool_use_id"))
        changing |= call["tool_name"] in CHANGING
        if was_refused(call):
            refused[key_of(event, call)] = call
    fd, kept, turn, changed = open_state(event)
    for key, call in [*kept.items()]:
        if call["id"] in ids and 0 < HAND_BACK_AFTER <= call["denied"]:
            ending = {"continue": False, "stopReason": HAND_BACK.format(tool=call["tool"], times=call["denied"])}
        if call["agent"] == event.get("agent_id") and not call["over"]:
            call["over"] = True
            if changing and changed > (call["at"] - LATENCY_SEC) * 1e9:
                del kept[key]  # it may have started before the change in its own batch
    notes, tool, most = [], "", 0
    for key, call in refused.items():
        times = turn["refused " + key] = turn.get("refused " + key, 0) + 1
        if times > 1:
            fate = f"was refused before it ran, {times} times in this turn"
            notes.append("tool-coach: " + repeat_text(call["tool_name"], fate, quote(call["tool_response"])))
        if times > most:
            tool, most = call["tool_name"], times
    save_state(event, fd, kept, turn, changed)
    if ending:
        return say(ending)  # the record has it already, from the denial
    if not notes:
        return 0
    answer = {"additionalContext": "\n\n".join(notes[:4])}
    return tell(event, answer, "repeated after it was refused", tool, most)


def on_success(event: "dict[str, Any]") -> int:
    """Drop what a change makes doubtful."""
    fd, kept, turn, _ = open_state(event)
    return save_state(event, fd, outlive(kept, event["tool_name"]), turn, time.time_ns())


def on_new_turn(event: "dict[str, Any]") -> int:
    """Forget everything; with the session its state goes, too."""
    fd = lock_state(path_of(event))
    os.truncate(fd, 0)
    os.close(fd)
    if event["hook_event_name"] == "SessionEnd":
        os.remove(path_of(event))
    return 0


def on_command(event: "dict[str, Any]") -> int:
    """Answer /tool-coach [on|off]; the model never sees it."""
    if event["command_name"].rpartition(":")[2] != "tool-coach":
        return 0
    wish = event.get("command_args", "").strip().lower()
    usage = "" if wish in ("", "on", "off") else "; usage: /tool-coach [on|off]"
    return say({"decision": "block", "reason": switch(wish) + usage})


HANDLERS = {
    "PreToolUse": on_call,
    "PostToolUseFailure": on_failure,
    "PostToolBatch": on_batch,
    "PostToolUse": on_success,
    "UserPromptSubmit": on_new_turn,
    "SessionEnd": on_new_turn,
    "UserPromptExpansion": on_command,
}


def main(argv: "list[str]") -> int:
    """Answer one hook event on stdin (no arguments), or switch the coach: on, off."""
    if not argv and not os.isatty(0):
        # A hook has nothing to tidy up, and the interpreter's tidy end is a tenth of its time.
        os._exit(run_hook("tool-coach", nothing_to_do, HANDLERS))
    if argv not in (["on"], ["off"]):
        print(__doc__)
        return 0 if argv in ([], ["-h"], ["--help"]) else 2
    said = switch(argv[0])
    if not said.endswith(argv[0]):
        raise SystemExit(said)
    print(said)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""The client's side of the coach: histories of tool calls, played as events through the hook as a process."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import tool_coach
from recover_malformed_toolcall import EVENTS
from support import COACH, Answer, Event, fork_hook, run_hook

REFUSALS = "|".join(
    (
        r"InputValidationError",
        r"^String to replace not found",
        r"^Found \d+ matches",
        r"^File has not been read yet",
        r"^No such tool available",
    )
)

tool_coach.is_passing("")  # its patterns are compiled here, not in every forked child


def is_registered(event: str, subject: str) -> bool:
    """Tell whether the installed settings start the coach for an event of a tool (or of a command)."""
    registration = EVENTS[COACH.name].get(event)
    return registration is not None and re.search(registration.get("matcher", ""), subject) is not None


def is_refusal(call: Event) -> bool:
    """Tell whether the client refuses a call of a history before it runs."""
    return call.get("result") == "cancelled" or bool(re.search(REFUSALS, call.get("error", "")))


def shifted_clock(script: Path, folder: Path, seconds: float) -> Path:
    """Copy a script into a folder, its clock ahead by some seconds."""
    text = script.read_text("utf-8")
    for name, unit in (("time", 1), ("time_ns", 10**9)):
        shift = f"time.{name} = (lambda real: lambda: real() + {int(seconds * unit)})(time.{name})\n"
        text = text.replace("import time\n", "import time\n" + shift, 1)
    folder.mkdir(exist_ok=True)
    copy = folder / script.name
    copy.write_text(text, "utf-8")
    return copy


class Player:
    """A client that plays one session.

    script: run as a process; None = the coach in a forked child, which is quicker. parallel: the calls of one message
    start together. batches: PostToolBatch fires (from 2.1.122 on).
    """

    def __init__(
        self, home: Path, session: str, script: Path | None = COACH, *, parallel: bool = False, batches: bool = True
    ) -> None:
        self.home, self.session, self.script = home, session, script
        self.parallel, self.batches = parallel, batches
        self.folder = home / "w"
        self.folder.mkdir(exist_ok=True)
        self.transcript = home / "transcript.jsonl"
        self.ids = self.clock = 0
        self.answers: list[Answer] = []

    def fire(self, name: str, subject: str = "", agent: str = "", cwd: str = "", **fields: Any) -> Event:
        """Fire an event; return the hook's answer, {} for none or if the hook is not registered for it."""
        if not is_registered(name, subject):
            return {}
        event: Event = {"session_id": self.session, "transcript_path": str(self.transcript)}
        event["cwd"] = cwd or str(self.folder)
        if agent not in ("", "main"):
            event.update(agent_id=agent, agent_type="general-purpose")
        event.update(hook_event_name=name, **fields)
        if self.script:
            answer = run_hook(self.script, event, self.home)
        else:
            answer = fork_hook(tool_coach.main, event, self.home, clock=self.clock)
        if answer.code or answer.err:
            raise AssertionError(f"{name}: exit code {answer.code}, {answer.err}")
        self.answers.append(answer)
        return answer.out or {}

    def call(self, tool: str, tool_input: object, error: str = "", **more: Any) -> list[Event]:
        """Play one call as a message of its own: it succeeds, or fails with an error; return all answers."""
        return self.message(
            [{"call": tool, "input": tool_input, "result": "error" if error else "ok", "error": error, **more}]
        )

    def denied(self, tool: str, tool_input: object, **more: Any) -> bool:
        """Tell whether a call would be denied now."""
        return any("permissionDecision" in text for text in map(json.dumps, self.call(tool, tool_input, "-", **more)))

    def message(self, calls: list[Event]) -> list[Event]:
        """Play the calls of one message of the model; return the answers that were not empty."""
        for call in calls:
            if not call.get("finishes_pending"):
                self.ids += 1
                call["id"] = f"toolu_{self.ids}"
        self.write_rows(
            "assistant", [{"type": "tool_use", "id": c["id"], "name": c["call"]} for c in calls if "id" in c]
        )
        for call in calls:
            call.setdefault("id", calls[0].get("id"))
        before = [(call, "before") for call in calls]
        after = [(call, "after") for call in calls]
        steps = before + after if self.parallel else [step for pair in zip(before, after) for step in pair]
        answers = []
        for call, when in steps:
            answers.append(self.step(call, when))
            if when == "after" and not self.parallel:
                self.write_rows("user", [{"type": "tool_result", "tool_use_id": call["id"]}])
        if self.batches:
            results = [self.result_of(call) for call in calls if call.get("result") != "pending"]
            answers.append(self.fire("PostToolBatch", **self.place(calls[0]), tool_calls=results))
        if self.parallel:
            self.write_rows("user", [{"type": "tool_result", "tool_use_id": call["id"]} for call in calls])
        return [answer for answer in answers if answer]

    def place(self, call: Event) -> Event:
        """Return the agent and the working directory of a call."""
        return {"agent": call.get("agent", ""), "cwd": call.get("cwd", "")}

    def facts(self, call: Event) -> Event:
        """Return what every event of a call holds."""
        fields = {"subject": call["call"], "tool_name": call["call"], "tool_input": call["input"]}
        return {**self.place(call), **fields, "tool_use_id": call["id"]}

    def step(self, call: Event, when: str) -> Event:
        """Fire the event before a call, or the one after it; a refused call has neither."""
        result = call.get("result", "ok")
        if is_refusal(call):
            return {}
        if when == "before":
            if call.get("finishes_pending"):
                return {}
            answer = self.fire("PreToolUse", **self.facts(call))
            if answer.get("hookSpecificOutput", {}).get("permissionDecision") == "deny":
                call["result"] = "denied"
                call["error"] = f"PreToolUse:{call['call']} hook error: -"
            return answer
        if result == "ok":
            self.change_the_disk(call)
            return self.fire("PostToolUse", **self.facts(call), tool_response={}, duration_ms=1)
        if result in ("error", "interrupted"):
            duration = 60_000 if call.get("finishes_pending") else 1
            fields = {"error": call["error"], "is_interrupt": result == "interrupted", "duration_ms": duration}
            return self.fire("PostToolUseFailure", **self.facts(call), **fields)
        return {}

    def result_of(self, call: Event) -> Event:
        """Return a call as PostToolBatch lists it: a refusal inside its element."""
        response = call.get("error", "ok")
        if is_refusal(call):
            response = f"<tool_use_error>{response}</tool_use_error>"
        fields = {"tool_name": call["call"], "tool_input": call["input"], "tool_use_id": call["id"]}
        return {**fields, "tool_response": response}

    def change_the_disk(self, call: Event) -> None:
        """Do what a successful call would do at its path."""
        path = call["input"].get("file_path") or call["input"].get("path") if isinstance(call["input"], dict) else None
        if call["call"] == "Write" or call["call"].startswith("mcp__sheets"):
            Path(str(path)).parent.mkdir(parents=True, exist_ok=True)
            Path(str(path)).write_text("x", "utf-8")

    def write_rows(self, kind: str, blocks: list[Event]) -> None:
        """Append a message to the transcript, one row a block."""
        with self.transcript.open("a", encoding="utf-8") as file:
            for block in blocks:
                message = {"id": f"msg_{self.ids}", "role": kind, "content": [block]}
                file.write(json.dumps({"type": kind, "message": message}) + "\n")

    def happen(self, event: Event) -> None:
        """Let something happen that is no tool call."""
        if event.get("turn") or "bg_done" in event:
            self.fire("UserPromptSubmit", prompt="go on")
        elif event.get("end"):
            self.fire("SessionEnd", reason="other")
        elif "wait_s" in event:
            self.clock += event["wait_s"]
            self.script = self.script and shifted_clock(COACH, self.home / "later", self.clock)
        elif "/tool-coach" in event.get("external", ""):
            wish = event["external"].rpartition(" ")[2]
            fields = {"command_name": "tool-coach", "command_args": wish, "prompt": f"/tool-coach {wish}"}
            self.fire("UserPromptExpansion", subject="tool-coach", **fields)
        elif "external" in event:
            self.other_program(event["external"])

    def other_program(self, words: str) -> None:
        """Change the disk as another program would: the verb and the path stand in the words."""
        path = Path(re.search(r"/\S+", words)[0])  # type: ignore[index]
        if words.startswith("remove"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        elif words.startswith("folder"):
            path.mkdir(parents=True)
        elif words.startswith("touch"):
            os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))
        else:
            with path.open("a", encoding="utf-8") as file:
                file.write("x")


def play(case: Event, player: Player, last: Path | None = None) -> str:
    """Play a history; return what becomes of its last call: deny, note, or run.

    last: the script to run as a process for the last message, whatever the player runs before.

    Without a result of its own the last call is let through by the client, or, if a note is expected, refused again.
    """
    events = json.loads(json.dumps(case["events"]).replace("/w/", f"{player.folder}/"))
    answers: list[Event] = []
    while events:
        if "call" not in events[0]:
            player.happen(events.pop(0))
            continue
        calls = [events.pop(0)]
        while calls[0].get("batch") is not None and events and events[0].get("batch") == calls[0]["batch"]:
            calls.append(events.pop(0))
        if not events and "result" not in calls[-1]:
            refused = [e["error"] for e in case["events"][:-1] if e.get("call") == calls[-1]["call"] and is_refusal(e)]
            calls[-1].update(
                {"result": "error", "error": refused[-1]} if case["expect"] == "note" else {"result": "unknown"}
            )
        if not events and last:
            player.script = shifted_clock(last, player.home / "later", player.clock) if player.clock else last
        answers = player.message(calls)
    if any("permissionDecision" in answer.get("hookSpecificOutput", {}) for answer in answers):
        return "deny"
    if any("additionalContext" in answer.get("hookSpecificOutput", {}) for answer in answers):
        return "note"
    return "run" if not answers else f"{calls[-1]['call']}: {answers}"

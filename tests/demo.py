"""Show both hooks at work, without the client: a leaked call and a repeated call, before and after.

The real scripts answer the events that the client would send. The leaked call is printed with look-alike brackets.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
import textwrap
import uuid
from pathlib import Path

import support

LOOK_ALIKE = str.maketrans("<>", "‹›")


def tell(label: str, text: str) -> None:
    """Print a paragraph under a label."""
    lines = [line for part in text.splitlines() for line in textwrap.wrap(part, 82) or [""]]
    print("\n".join(f"  {label if number == 0 else '':18}{line}".rstrip() for number, line in enumerate(lines)))


class Demo:
    """One session in a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home, self.session = home, str(uuid.uuid4())

    def send(self, script: Path, name: str, **fields: object) -> support.Event:
        """Send an event to a hook; return its answer, {} for silence."""
        event = {"session_id": self.session, "cwd": str(self.home), "hook_event_name": name, **fields}
        answer = support.run_hook(script, event, self.home)
        if answer.code or answer.err:
            raise SystemExit(f"{script.name}: exit code {answer.code}: {answer.err}")
        return answer.out or {}

    def leaked_call(self) -> None:
        """Show a call that came out as text."""
        message = "I will look at the file.\n\n" + support.leak("Read", file_path="src/app.py")
        print("1. A leaked call: the model meant to call a tool, and wrote the call out as text\n")
        tell("the model writes", message.translate(LOOK_ALIKE))
        tell("the client sees", "plain text and the end of the turn. No tool runs.")
        print("\n  WITHOUT THE HOOK")
        tell("what happens", "nothing. The session waits until a person types: continue")
        print("\n  WITH THE HOOK (event Stop)")
        answer = self.send(support.RECOVER, "Stop", stop_hook_active=False, last_assistant_message=message)
        tell("the hook answers", f"{answer['decision']}: the turn goes on")
        tell("the model reads", str(answer["reason"]))
        tell("the person sees", "the same text in the session, as the feedback of a stop hook; nothing to type")
        shown = f"The call looks like this:\n\n```\n{support.leak('Read', file_path='src/app.py')}\n```\n"
        quiet = self.send(support.RECOVER, "Stop", stop_hook_active=True, last_assistant_message=shown)
        print("\n  AND WHEN THE MODEL ONLY SHOWS SUCH A CALL, AS CODE")
        tell("the hook answers", "something" if quiet else "nothing: the turn ends as it should")

    def repeated_call(self) -> None:
        """Show a call that is made again after it failed."""
        path, error = str(self.home / "confg.json"), "File does not exist."
        call = {"tool_name": "Read", "tool_input": {"file_path": path}, "tool_use_id": "toolu_1"}
        print("\n\n2. A repeated call: a tool call failed, and the model makes the very same call again\n")
        tell("the model calls", "Read of confg.json")
        tell("the tool answers", error)
        tell("the model calls", "Read of confg.json, once more")
        print("\n  WITHOUT THE HOOK")
        tell("what happens", f"the tool runs again and answers again: {error} Some models go on like that for long.")
        print("\n  WITH THE HOOK (events PostToolUseFailure, PostToolBatch, PreToolUse)")
        self.send(support.COACH, "PostToolUseFailure", **call, error=error, is_interrupt=False)
        self.send(support.COACH, "PostToolBatch", tool_calls=[{**call, "tool_response": error}])
        answer = self.send(support.COACH, "PreToolUse", **call)
        decision = answer["hookSpecificOutput"]
        tell("the hook answers", f"{decision['permissionDecision']}: the call does not run")
        tell("the model reads", str(decision["permissionDecisionReason"]))
        tell("the person sees", str(answer["systemMessage"]))
        written = {"tool_name": "Write", "tool_input": {"file_path": path, "content": "{}"}, "tool_response": "fine"}
        self.send(support.COACH, "PostToolUse", **written, tool_use_id="toolu_2")
        quiet = self.send(support.COACH, "PreToolUse", **call)
        print("\n  AND WHEN SOMETHING HAS CHANGED SINCE: THE MODEL WROTE THE FILE")
        tell("the hook answers", "something" if quiet else "nothing: the same call runs")

    def record(self) -> None:
        """Show what the hooks noted."""
        print("\n\n3. What is left of it: one line per action, no text of the conversation\n")
        log = self.home / ".claude" / "toolcall-hooks.log"
        for line in log.read_text("utf-8").splitlines():
            print("  " + line.expandtabs(2).replace(self.session, self.session[:8]))


def main() -> int:
    """Show all of it."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # a console of another encoding has no look-alike brackets
    demo = Demo(Path(tempfile.mkdtemp(prefix="toolcall-hooks-demo-")))
    try:
        (demo.home / ".claude").mkdir()
        demo.leaked_call()
        demo.repeated_call()
        demo.record()
    finally:
        shutil.rmtree(demo.home, True)
        support.remove_state(demo.session)
    print("\nTo have them in your own sessions: make install")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

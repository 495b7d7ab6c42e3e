"""A hook that notes what it got and answers what it is told: dump_hook.py FOLDER LABEL.

Appends one JSON line to FOLDER/events.jsonl (see `Home.dumped` in harness.py). The answer is taken from the first of
FOLDER/answer-LABEL.0001.json, .0002.json, … that is still there, which is then removed, or else from
FOLDER/answer-LABEL.json, or else it is empty and the exit code 0.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from typing import Any

STDIN_SECONDS = 3.0  # how long to wait for the end of standard input


def read_stdin() -> tuple[bytes, bool]:
    """All of standard input, and whether it was closed within STDIN_SECONDS."""
    data = b""
    deadline = time.monotonic() + STDIN_SECONDS
    while select.select([0], [], [], max(0.0, deadline - time.monotonic()))[0]:
        chunk = os.read(0, 1 << 16)
        if not chunk:
            return data, True
        data += chunk
    return data, False


def take_answer(folder: str, label: str) -> dict[str, Any]:
    """The answer to give; {} if there is none. A numbered one goes to one process alone, even when several ask."""
    prefix = f"answer-{label}."
    for name in sorted(os.listdir(folder)):
        if name.startswith(prefix) and name != prefix + "json" and name.endswith(".json"):
            mine = os.path.join(folder, f"taken-{name}-{os.getpid()}")
            try:
                os.rename(os.path.join(folder, name), mine)
            except FileNotFoundError:
                continue
            return load(mine)
    return load(os.path.join(folder, prefix + "json"))


def load(path: str) -> dict[str, Any]:
    """The JSON object in the file; {} if there is no such file."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except FileNotFoundError:
        return {}
    return value if isinstance(value, dict) else {}


def main(folder: str, label: str) -> int:
    """Note, answer, and return the exit code."""
    started = time.time()
    os.makedirs(folder, exist_ok=True)
    raw, closed = read_stdin()
    try:
        event = json.loads(raw)
    except ValueError:
        event = None
    path = event.get("transcript_path") if isinstance(event, dict) else None
    answer = take_answer(folder, label)
    row = {
        "label": label,
        "started": started,
        "stdin": raw.decode(errors="replace"),
        "input": event,
        "stdin_closed": closed,
        "transcript_size": os.path.getsize(path) if path and os.path.exists(path) else -1,
        "env": {name: value for name, value in os.environ.items() if name != "ANTHROPIC_API_KEY"},
        "cwd": os.getcwd(),
        "pid": os.getpid(),
    }
    time.sleep(float(answer.get("sleep", 0)))
    row["ended"] = time.time()
    with open(os.path.join(folder, "events.jsonl"), "ab", buffering=0) as file:
        file.write(json.dumps(row).encode() + b"\n")
    sys.stdout.write(str(answer.get("stdout", "")))
    sys.stderr.write(str(answer.get("stderr", "")))
    return int(answer.get("exit", 0))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], sys.argv[2]))

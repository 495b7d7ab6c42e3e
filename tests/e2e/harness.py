"""Drive the real Claude Code client against a scripted Messages API on loopback.

Nothing here talks to a model: `ScriptedApi` answers each request of the client with the next reply of a script, `Home`
is a throwaway home directory, and `one_shot`, `Session` and `Terminal` are the three ways to run the client in it.
Every wait has a deadline in seconds and raises `TimeoutError` with what was seen so far. Linux only (it reads /proc).
`on_each_version` runs a test on every selected version, and `SINCE` says what the older ones lack.

    script = [Reply([tool_use("Read", {"file_path": "/nowhere"})]), Reply([text("bye")])]
    with ScriptedApi(script) as api, Home() as home:
        home.hook("Stop", "python3 /path/to/hook.py")
        result = one_shot(NEWEST, home, api, "read it")
        assert result.exit_code == 0 and len(api.main_requests()) == 2
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar, Union, final

VERSIONS = (
    "2.1.104",
    "2.1.112",
    "2.1.122",
    "2.1.139",
    "2.1.158",
    "2.1.178",
    "2.1.197",
    "2.1.221",
    "2.1.240",
    "2.1.266",
    "2.1.283",
    "2.1.305",
    "2.1.332",
)
OLDEST = VERSIONS[0]
NEWEST = VERSIONS[-1]
DEFAULT_VERSIONS = (OLDEST, "2.1.122", NEWEST)
FIRST_BINARY_VERSION = "2.1.113"  # older ones are a JavaScript program for node

# What a client must have for a test to make sense on it -> the first version that has it.
SINCE = {
    "giving up on a call it cannot parse": "2.1.112",
    "UserPromptExpansion": "2.1.116",
    "PostToolBatch": "2.1.118",
    "a cap on blocks in a row": "2.1.158",
    "ending the turn from PreToolUse": "2.1.221",
    "rows for a hook's message to the person": "2.1.240",
}

HERE = Path(__file__).resolve().parent
REPO = HERE.parent.parent
DUMMY_KEY = "sk-ant-api03-" + "0" * 40
LOOP_TOOLS = frozenset({"Read", "Bash", "Edit"})  # a request that offers one of these belongs to a conversation
STATE_FILES = ("/tmp/cc-recover-{}*", "/tmp/cc-tool-coach-{}*")

JsonObject = dict[str, Any]
T = TypeVar("T")
Test = TypeVar("Test", bound=unittest.TestCase)


def version_number(version: str) -> tuple[int, ...]:
    """'2.1.104' -> (2, 1, 104), for comparing."""
    return tuple(int(part) for part in version.split("."))


def selected_versions() -> tuple[str, ...]:
    """The client versions to test on: CLIENT_VERSIONS (space separated), or the default three."""
    return tuple(os.environ.get("CLIENT_VERSIONS", "").split()) or DEFAULT_VERSIONS


def has(version: str, capability: str) -> bool:
    """Whether this client version has a capability of `SINCE`."""
    return version_number(version) >= version_number(SINCE[capability])


def on_each_version(
    needs: str = "", workers: int = 2
) -> Callable[[Callable[[Test, str], None]], Callable[[Test], None]]:
    """Make a test of (self, version) run on each selected version, as a subtest; some at once, as they mostly wait.

    Versions without the capability that it `needs` are skipped.
    """

    def decorate(body: Callable[[Test, str], None]) -> Callable[[Test], None]:
        def on_one_version(test: Test, version: str) -> None:
            if needs and not has(version, needs):
                raise unittest.SkipTest(f"client {version} lacks {needs} (from {SINCE[needs]} on)")
            body(test, version)

        @functools.wraps(body)
        def on_all(test: Test) -> None:
            with ThreadPoolExecutor(workers) as pool:
                futures = {version: pool.submit(on_one_version, test, version) for version in selected_versions()}
            for version, future in futures.items():
                with test.subTest(version=version):
                    future.result()

        return on_all

    return decorate


def wait_until(look: Callable[[], T | None], timeout: float, what: str, seen: Callable[[], object] = lambda: "") -> T:
    """Poll `look` until it gives something true and return that; TimeoutError after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {what} within {timeout} s; seen: {seen()}")
        time.sleep(0.02)


# --- the client ------------------------------------------------------------------------------------------------------


def client_cache() -> Path:
    """The folder that holds one folder per client version. Never inside the repository: a client is up to 400 MB."""
    own = os.environ.get("TOOLCALL_HOOKS_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "toolcall-hooks", "client")


def client_command(version: str) -> list[str]:
    """The command that starts this client version, fetched with `npm pack` if it is not in the cache yet.

    Safe when several processes ask at once: one fetches, under a lock, and a half-fetched folder is never seen.
    Raises RuntimeError when npm cannot fetch it.
    """
    binary = version_number(version) >= version_number(FIRST_BINARY_VERSION)
    program = client_cache() / version / "package" / ("claude" if binary else "cli.js")
    if not program.exists():
        _fetch_client(version, "claude-code-linux-x64" if binary else "claude-code")
    if not program.exists():
        raise RuntimeError(f"the package of client {version} holds no {program.name}")
    return [str(program)] if binary else [shutil.which("node") or "node", str(program)]


def _fetch_client(version: str, package: str) -> None:
    cache = client_cache()
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / f"{version}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (cache / version / "package").exists():
            return
        work = Path(tempfile.mkdtemp(prefix=f"{version}.", dir=cache))
        try:
            fetch = ["npm", "pack", "--silent", "--cache", str(work / "npm"), f"@anthropic-ai/{package}@{version}"]
            done = subprocess.run(fetch, cwd=work, capture_output=True, text=True, timeout=900, check=False)
            archives = list(work.glob("*.tgz"))
            if done.returncode != 0 or len(archives) != 1:
                raise RuntimeError(f"could not fetch client {version}: {done.stdout}{done.stderr}")
            (work / "unpacked").mkdir()
            subprocess.run(["tar", "-xzf", str(archives[0]), "-C", str(work / "unpacked")], timeout=300, check=True)
            os.rename(work / "unpacked", cache / version)
        finally:
            shutil.rmtree(work, ignore_errors=True)


# --- replies ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """One content block of a reply: the block as it starts, and the deltas that fill it."""

    start: JsonObject
    deltas: tuple[JsonObject, ...] = ()

    def opening(self) -> JsonObject:
        """The block as it starts, a tool call with its id: the client drops a call whose id it has seen before."""
        made_up = {"id": f"toolu_{uuid.uuid4().hex[:24]}"} if self.start.get("id") == "" else {}
        return {**self.start, **made_up}


def text(words: str) -> Block:
    """A text block."""
    return Block({"type": "text", "text": ""}, ({"type": "text_delta", "text": words},))


def tool_use(name: str, tool_input: JsonObject, tool_id: str = "") -> Block:
    """A well-formed tool call; each time that it is sent it gets an id of its own, unless one is given."""
    return raw_tool_use(name, json.dumps(tool_input), tool_id)


def raw_tool_use(name: str, input_json: str, tool_id: str = "") -> Block:
    """A tool call whose input is sent as the text `input_json`, parsable or not."""
    start = {"type": "tool_use", "id": tool_id, "name": name, "input": {}}
    return Block(start, ({"type": "input_json_delta", "partial_json": input_json},))


@dataclass(frozen=True)
class Reply:
    """What the API answers to one request: content blocks, stop reason, and a delay in seconds before the first byte.

    The stop reason is `tool_use` if a block is a tool call and `end_turn` if none is, unless given. Any HTTP status but
    200 makes it an error reply, without the blocks.
    """

    blocks: Sequence[Block] = ()
    stop_reason: str = ""
    delay: float = 0.0
    status: int = 200

    def reason(self) -> str:
        """The stop reason that is sent."""
        if self.stop_reason:
            return self.stop_reason
        return "tool_use" if any(block.start["type"] == "tool_use" for block in self.blocks) else "end_turn"


def leaked_call(tool: str, **arguments: str) -> str:
    """A tool call as the model writes it when it comes out as text. Built from parts: nothing may spell such tags."""
    prefix, call, argument = "ant" + "ml:", "inv" + "oke", "para" + "meter"
    lines = [f'<{prefix}{argument} name="{name}">{value}</{prefix}{argument}>' for name, value in arguments.items()]
    return "\n".join([f'<{prefix}{call} name="{tool}">', *lines, f"</{prefix}{call}>"])


def give_up(words: str) -> Reply:
    """The reply of the give-up path: stop reason `tool_use`, but text only.

    The client retries it by itself (once up to 2.1.305, twice in 2.1.332): see `GIVE_UP_REPLIES`.
    """
    return Reply([text(words)], "tool_use")


GIVE_UP_REPLIES = 5  # a script that answers this many requests with `give_up` outlasts every client's own retries


@dataclass
class Request:
    """One request that the client made: `kind` is 'main', 'subagent' or 'side' (titles, probes)."""

    path: str
    body: JsonObject
    at: float
    kind: str = "side"
    agent: str = ""

    def messages(self) -> list[JsonObject]:
        """The conversation that the model got to read, oldest first."""
        found = self.body.get("messages")
        return found if isinstance(found, list) else []

    def tool_results(self) -> list[ToolResult]:
        """All tool results in the conversation, oldest first."""
        return [
            ToolResult(str(block.get("tool_use_id")), bool(block.get("is_error")), "\n".join(_texts(block)))
            for message in self.messages()
            for block in _blocks(message)
            if block.get("type") == "tool_result"
        ]

    def last_texts(self) -> list[str]:
        """The texts of the messages after the last assistant message: what is new to the model in this request."""
        new: list[str] = []
        for message in self.messages():
            if message.get("role") == "assistant":
                new = []
            else:
                new += _texts(message)
        return new

    def told(self) -> str:
        """What is new to the model in this request, as one text."""
        return "\n".join(self.last_texts())


@dataclass(frozen=True)
class ToolResult:
    """A tool's result as the model reads it."""

    tool_use_id: str
    is_error: bool
    text: str


def texts_of(request: Request) -> list[str]:
    """Every text in the request's messages, tool results included, oldest first."""
    return [words for message in request.messages() for words in _texts(message)]


def _blocks(message: JsonObject) -> list[JsonObject]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _texts(message: JsonObject) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [words for block in _blocks(message) for words in ([block["text"]] if "text" in block else _texts(block))]


Step = Union[Reply, Callable[[Request], Reply]]
Script = Union[Sequence[Step], Callable[[Request], Reply]]


# --- the API ---------------------------------------------------------------------------------------------------------


@final
class ScriptedApi:
    """A Messages API on loopback that answers from a script. Use it as a context manager.

    `script`: for the main conversation, a list of replies (or of functions of the request), or one function for all
    requests. `subagents`: a script for each subagent, by a text that its first user message holds.
    A script that is used up answers the plain text "done".
    """

    def __init__(self, script: Script = (), subagents: Mapping[str, Script] | None = None) -> None:
        self.requests: list[Request] = []
        self._scripts: dict[str, Callable[[Request], Reply] | list[Step]] = {}
        self._lock = threading.Lock()
        self._load("", script)
        for prompt, sub_script in (subagents or {}).items():
            self._load(prompt, sub_script)
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def _load(self, agent: str, script: Script) -> None:
        self._scripts[agent] = script if callable(script) else list(script)

    def add(self, *steps: Step) -> None:
        """Append to the main conversation's list of replies."""
        with self._lock:
            script = self._scripts[""]
            assert isinstance(script, list)
            script.extend(steps)

    def main_requests(self) -> list[Request]:
        """The requests of the main conversation, oldest first."""
        return [request for request in list(self.requests) if request.kind == "main"]

    def subagent_requests(self, agent: str) -> list[Request]:
        """The requests of the subagent with this prompt, oldest first."""
        return [request for request in list(self.requests) if request.agent == agent and request.kind == "subagent"]

    def wait_for_request(self, count: int, timeout: float = 60.0) -> Request:
        """Wait until the main conversation made `count` requests, and return that one."""
        return wait_until(
            lambda: self.main_requests()[count - 1] if len(self.main_requests()) >= count else None,
            timeout,
            f"request {count} of the main conversation",
            lambda: [request.last_texts() for request in self.main_requests()],
        )

    def answer(self, path: str, body: JsonObject) -> Reply:
        """Note the request and give the reply to send."""
        request = Request(path, body, time.time())
        tools = body.get("tools")
        names = {tool.get("name") for tool in tools} if isinstance(tools, list) else set()
        if names & LOOP_TOOLS:
            request.agent = self._agent_of(request)
            request.kind = "subagent" if request.agent else "main"
        with self._lock:
            self.requests.append(request)
            if request.kind == "side":
                return Reply([text("ok")])
            script = self._scripts[request.agent]
            step: Step = script if callable(script) else script.pop(0) if script else Reply([text("done")])
        return step(request) if callable(step) else step

    def _agent_of(self, request: Request) -> str:
        first = "\n".join(_texts(request.messages()[0])) if request.messages() else ""
        return next((agent for agent in self._scripts if agent and agent in first), "")

    def __enter__(self) -> ScriptedApi:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, api: ScriptedApi) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.api = api

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up early is no news; anything else is."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        except ValueError:
            body = {}
        path = self.path.split("?")[0]
        if path.endswith("/count_tokens"):
            self._send_json({"input_tokens": 10})
        elif path.endswith("/v1/messages"):
            reply = self.server.api.answer(path, body)
            time.sleep(reply.delay)
            model = str(body.get("model", "scripted"))
            if reply.status != 200:
                error = {"type": "invalid_request_error", "message": "the request could not be parsed"}
                self._send_json({"type": "error", "error": error}, reply.status)
            elif body.get("stream"):
                self._send("text/event-stream", b"".join(_events(reply, model)))
            else:
                self._send_json(_message(reply, model))
        else:
            self._send_json({})

    def do_GET(self) -> None:
        self._send_json({"data": []})

    def do_HEAD(self) -> None:
        self._send_json({})

    def _send_json(self, value: JsonObject, status: int = 200) -> None:
        self._send("application/json", json.dumps(value).encode(), status)

    def _send(self, kind: str, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


def _events(reply: Reply, model: str) -> Iterator[bytes]:
    def event(kind: str, **fields: object) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()

    start: JsonObject = {"id": f"msg_{uuid.uuid4().hex[:24]}", "type": "message", "role": "assistant", "model": model}
    usage = {"input_tokens": 10, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    start.update(content=[], stop_reason=None, stop_sequence=None, usage=usage)
    yield event("message_start", message=start)
    for index, block in enumerate(reply.blocks):
        yield event("content_block_start", index=index, content_block=block.opening())
        for delta in block.deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    stop = {"stop_reason": reply.reason(), "stop_sequence": None}
    yield event("message_delta", delta=stop, usage={"output_tokens": 20})
    yield event("message_stop")


def _message(reply: Reply, model: str) -> JsonObject:
    content = []
    for block in reply.blocks:
        filled = block.opening()
        for delta in block.deltas:
            if delta["type"] == "text_delta":
                filled["text"] = filled.get("text", "") + delta["text"]
            elif delta["type"] == "input_json_delta":
                filled["input"] = json.loads(delta["partial_json"])
        content.append(filled)
    return {
        "id": f"msg_{uuid.uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": reply.reason(),
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 20},
    }


# --- the home --------------------------------------------------------------------------------------------------------


@final
@dataclass
class Home:
    """A throwaway home directory with a project folder in it. Use it as a context manager.

    On leaving, every process that was started with this HOME is killed, and the folder and the hooks' state files of
    the sessions started here are removed. `extra_env` reaches the client, and through it the hooks. `name` begins the
    folder's name. `config_name` is the config folder in it; another than the client's own goes into CLAUDE_CONFIG_DIR.
    """

    extra_env: dict[str, str] = field(default_factory=dict)
    settings: JsonObject = field(default_factory=dict)
    name: str = "claude-home."
    config_name: str = ".claude"
    session_ids: list[str] = field(default_factory=list)
    mcp_config: Path | None = None

    def __post_init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=self.name))
        self.project = self.path / "project"
        self.project.mkdir()
        self.config = self.path / self.config_name
        self.config.mkdir()
        self.write_settings()
        trust = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        config = {
            "hasCompletedOnboarding": True,
            "bypassPermissionsModeAccepted": True,
            "theme": "dark",
            "numStartups": 5,
            "customApiKeyResponses": {"approved": [DUMMY_KEY[-20:]], "rejected": []},
            "projects": {str(self.project): trust},
        }
        own = self.config_name == ".claude"
        (self.path if own else self.config).joinpath(".claude.json").write_text(json.dumps(config), encoding="utf-8")

    def __enter__(self) -> Home:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill what still runs in this home; remove it, its sessions' state files, the client's own files in /tmp."""
        self.kill_all()
        for session_id in self.session_ids:
            remove_state_files(session_id)
        folder_name = re.sub("[^A-Za-z0-9]", "-", str(self.project))  # how the client names a project's folder
        for path in [str(self.path), *glob.glob(f"/tmp/claude-*/{folder_name}")]:
            shutil.rmtree(path, ignore_errors=True)

    def kill_all(self) -> None:
        """Kill every process that has this folder as HOME: clients, their hooks, tmux."""
        for _ in range(20):
            found = running_in(self)
            if not found:
                return
            for pid in found:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)

    def write_settings(self, **changes: Any) -> None:
        """Write the config folder's settings.json, with these top-level keys set first.

        Whatever else wrote to that file is lost, so register hooks here before `install`, not after.
        """
        self.settings.setdefault("skipDangerousModePermissionPrompt", True)
        self.settings.update(changes)
        (self.config / "settings.json").write_text(json.dumps(self.settings, indent=1), encoding="utf-8")

    def hook(self, event: str, command: str, matcher: str | None = None, **fields: Any) -> None:
        """Register a command hook in the settings; `fields` (timeout, asyncRewake, …) stand beside its command."""
        group: JsonObject = {"hooks": [{"type": "command", "command": command, **fields}]}
        if matcher is not None:
            group["matcher"] = matcher
        self.settings.setdefault("hooks", {}).setdefault(event, []).append(group)
        self.write_settings()

    def dump_hook(self, event: str, matcher: str | None = None, label: str = "", **fields: Any) -> None:
        """Register dump_hook.py on an event: see `dumped` and `answer`."""
        words = ["python3", "-I", "-S", str(HERE / "dump_hook.py"), str(self.path / "dump"), label or event]
        self.hook(event, shlex.join(words), matcher, **fields)

    def dumped(self, label: str = "") -> list[JsonObject]:
        """What dump_hook.py noted, oldest first, of all events or of those with this label.

        Each: label, started and ended (seconds since 1970), stdin (text), input (parsed), stdin_closed (bool),
        transcript_size (bytes at the start, -1 if none), env (CLAUDE* and a few more).
        """
        try:
            lines = (self.path / "dump" / "events.jsonl").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        rows: list[JsonObject] = sorted((json.loads(line) for line in lines), key=lambda row: float(row["started"]))
        return [row for row in rows if label in ("", row["label"])]

    def answer(
        self, label: str, out: object = "", *, err: str = "", code: int = 0, sleep: float = 0.0, nth: int | None = None
    ) -> None:
        """What dump_hook.py with this label answers: always, or on its nth run with an own answer (from 1, each once).

        `out` is printed as it is if a string, else as JSON. `sleep` is in seconds, before the answer.
        """
        words = out if isinstance(out, str) else json.dumps(out)
        name = f"answer-{label}.json" if nth is None else f"answer-{label}.{nth:04}.json"
        folder = self.path / "dump"
        folder.mkdir(exist_ok=True)
        spec = {"stdout": words, "stderr": err, "exit": code, "sleep": sleep}
        (folder / name).write_text(json.dumps(spec), encoding="utf-8")

    def add_mcp_server(self) -> None:
        """Offer mcp_server.py to the clients started from now on: tools mcp__probe__works and mcp__probe__fails."""
        self.mcp_config = self.path / "mcp.json"
        server = {"type": "stdio", "command": sys.executable, "args": [str(HERE / "mcp_server.py")]}
        self.mcp_config.write_text(json.dumps({"mcpServers": {"probe": server}}), encoding="utf-8")

    def new_session_id(self) -> str:
        """A session id whose state files are removed with this home."""
        session_id = str(uuid.uuid4())
        self.session_ids.append(session_id)
        return session_id

    def run(self, *words: str, timeout: float = 120.0) -> str:
        """Run a command in the project folder, as a person with this home would, and return its output.

        RuntimeError if it fails.
        """
        done = subprocess.run(
            words,
            cwd=self.project,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{shlex.join(words)}: exit code {done.returncode}: {done.stdout}")
        return done.stdout

    def add_client_to_path(self, version: str) -> None:
        """Make `claude`, as a person would type it, this version of the client."""
        program = self.path / "bin" / "claude"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec {shlex.join(client_command(version))} "$@"\n', encoding="utf-8")
        program.chmod(0o755)

    def install(self) -> Home:
        """Install both hooks with the recovery script's own command, and return this home."""
        self.maintain("install")
        return self

    def maintain(self, *words: str) -> str:
        """Run a maintenance command of the recovery script, and return its output."""
        return self.run(sys.executable, str(REPO / "recover_malformed_toolcall.py"), *words)

    def record(self, hook: str = "") -> list[str]:
        """What the hooks (or one of them) noted in their record, oldest first: "outcome tool number" of each line."""
        try:
            lines = (self.config / "toolcall-hooks.log").read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            return []
        rows = [line.split("\t") for line in lines]
        return [" ".join(row[3:]) for row in rows if hook in ("", row[1])]

    def environment(self, api: ScriptedApi | None = None) -> dict[str, str]:
        """All that the client gets as its environment. `python3` is the Python that runs this."""
        python, own = Path(sys.executable).parent, self.path / "bin"
        if not (python / "python3").exists() and not (own / "python3").exists():
            own.mkdir(exist_ok=True)
            (own / "python3").symlink_to(sys.executable)
        return {
            "HOME": str(self.path),
            "PATH": f"{own}:{python}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(self.path),  # for the client's sockets, else left over in /tmp/cc-socks
            "ANTHROPIC_BASE_URL": api.url if api else "http://127.0.0.1:9",  # nobody listens there
            "ANTHROPIC_API_KEY": DUMMY_KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
            **({} if self.config_name == ".claude" else {"CLAUDE_CONFIG_DIR": str(self.config)}),
            **self.extra_env,
        }

    def arguments(self, session_id: str) -> list[str]:
        """The client's arguments that all three ways to run it share."""
        words = ["--dangerously-skip-permissions", "--session-id", session_id]
        words += ["--debug-file", str(self.debug_file(session_id))]
        return words + (["--mcp-config", str(self.mcp_config)] if self.mcp_config else [])

    def debug_file(self, session_id: str) -> Path:
        """Where the client of this session writes its debug log."""
        return self.path / f"debug-{session_id}.txt"

    def transcript_path(self, session_id: str) -> Path | None:
        """The session's transcript file, or None if there is none yet."""
        found = sorted((self.config / "projects").glob(f"*/{session_id}.jsonl"))
        return found[0] if found else None

    def transcript(self, session_id: str) -> list[JsonObject]:
        """The session's transcript rows; [] if there is no file yet."""
        path = self.transcript_path(session_id)
        return _json_lines(path.read_bytes()) if path else []


def running_in(home: Home) -> list[int]:
    """The ids of the processes that were started with this home as HOME."""
    own = f"HOME={home.path}".encode()
    return [pid for pid in _pids() if own in _environment(pid)]


def state_files(session_id: str) -> list[str]:
    """The paths of what the two hooks keep in /tmp for this session."""
    return sorted(path for pattern in STATE_FILES for path in glob.glob(pattern.format(session_id)))


def remove_state_files(session_id: str) -> None:
    """Remove what the two hooks keep in /tmp for this session."""
    for path in state_files(session_id):
        with contextlib.suppress(OSError):
            os.unlink(path)


def _json_lines(data: bytes) -> list[JsonObject]:
    """The JSON objects among the lines; a line that is none, or half written, is left out."""
    rows = []
    for line in data.split(b"\n"):
        with contextlib.suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict):
                rows.append(row)
    return rows


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


# --- three ways to run the client ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """A finished one-shot run: exit code, parsed stdout rows, stderr, debug log, session id."""

    exit_code: int
    rows: list[JsonObject]
    stderr: str
    debug: str
    session_id: str

    def final(self) -> JsonObject:
        """The row of type 'result'; {} if there is none."""
        return next((row for row in reversed(self.rows) if row.get("type") == "result"), {})


def notices(rows: list[JsonObject]) -> list[str]:
    """What the rows say to the person beside the conversation, oldest first: "Stop says: …" and the like."""
    return [str(row["content"]) for row in rows if row.get("subtype") == "informational"]


STREAM_OUTPUT = ("--output-format", "stream-json", "--verbose")


def one_shot(
    version: str, home: Home, api: ScriptedApi, prompt: str, *, arguments: Sequence[str] = (), timeout: float = 120.0
) -> Result:
    """Run `claude -p PROMPT` to its end; TimeoutError, and the client killed, after `timeout` seconds."""
    session_id = home.new_session_id()
    command = [*client_command(version), "-p", prompt, *STREAM_OUTPUT, *home.arguments(session_id), *arguments]
    process = subprocess.Popen(
        command,
        cwd=home.project,
        env=home.environment(api),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        home.kill_all()
        out, err = process.communicate(timeout=10)
        raise TimeoutError(f"client {version} still ran after {timeout} s; it printed {out!r} {err!r}") from None
    debug = home.debug_file(session_id)
    log = debug.read_text(encoding="utf-8", errors="replace") if debug.exists() else ""
    return Result(process.returncode, _json_lines(out), err.decode(errors="replace"), log, session_id)


@final
class Session:
    """A client with its stream-json input kept open. Use it as a context manager, which kills it on leaving."""

    def __init__(self, version: str, home: Home, api: ScriptedApi, arguments: Sequence[str] = ()) -> None:
        self.home = home
        self.session_id = home.new_session_id()
        self.rows: list[JsonObject] = []
        command = [*client_command(version), "-p", "--input-format", "stream-json", *STREAM_OUTPUT]
        self._stderr = open(home.path / f"stderr-{self.session_id}.txt", "w+b")  # closed in kill
        self.process = subprocess.Popen(
            [*command, *home.arguments(self.session_id), *arguments],
            cwd=home.project,
            env=home.environment(api),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.rows += _json_lines(line)

    def send(self, words: str) -> None:
        """Send a user message."""
        assert self.process.stdin is not None
        row = {"type": "user", "message": {"role": "user", "content": words}}
        self.process.stdin.write(json.dumps(row).encode() + b"\n")
        self.process.stdin.flush()

    def wait(self, look: Callable[[list[JsonObject]], T | None], timeout: float = 60.0, what: str = "row") -> T:
        """Wait until `look`, given all rows so far, finds something true, and return that."""
        return wait_until(lambda: look(list(self.rows)), timeout, what, self.summary)

    def wait_for_results(self, count: int, timeout: float = 60.0) -> JsonObject:
        """Wait until `count` turns have ended, and return the last one's result row."""

        def look(rows: list[JsonObject]) -> JsonObject | None:
            found = [row for row in rows if row.get("type") == "result"]
            return found[count - 1] if len(found) >= count else None

        return self.wait(look, timeout, f"{count} result rows")

    def summary(self) -> str:
        """What came out so far, shortened, for a failure message."""
        self._stderr.seek(0)
        rows = "\n".join(json.dumps(row)[:300] for row in self.rows)
        return f"{rows}\n{self._stderr.read().decode(errors='replace')[-2000:]}"

    def close(self, timeout: float = 20.0) -> int:
        """Close the input, wait for the client to end, and return its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(timeout)
        self._reader.join(timeout)
        return code

    def kill(self) -> None:
        """End the client, whatever it does."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        self._reader.join(10)
        for stream in (self.process.stdin, self.process.stdout, self._stderr):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


@final
class Terminal:
    """The client's terminal UI under a tmux server of its own. A context manager, which kills it on leaving."""

    def __init__(
        self,
        version: str,
        home: Home,
        api: ScriptedApi,
        arguments: Sequence[str] = (),
        size: tuple[int, int] = (160, 50),
    ) -> None:
        self.home = home
        self.session_id = home.new_session_id()
        self.settings_warning = ""
        self._environment = {**home.environment(api), "TERM": "xterm-256color"}
        command = [*client_command(version), *home.arguments(self.session_id), *arguments]
        self._tmux(
            *("-f", "/dev/null", "new-session", "-d", "-x", str(size[0]), "-y", str(size[1])),
            *("-c", str(home.project), "exec " + shlex.join(command)),
        )

    def _tmux(self, *words: str) -> str:
        socket = str(self.home.path / f"tmux-{self.session_id[:8]}")
        done = subprocess.run(
            ["tmux", "-S", socket, *words],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"tmux {words[0]}: {done.stderr}")
        return done.stdout

    def keys(self, *names: str) -> None:
        """Press keys by their tmux names: 'Enter', 'Escape', 'C-c'."""
        self._tmux("send-keys", *names)

    def type(self, words: str) -> None:
        """Type text, as it is, without Enter."""
        self._tmux("send-keys", "-l", "--", words)

    def submit(self, words: str) -> None:
        """Type text into the prompt and send it."""
        self.type(words)
        wait_until(lambda: words[-10:] in self.screen(), 60, f"typed {words!r} on the screen", self.screen)
        time.sleep(0.3)  # text and Enter in one burst would be taken for a paste
        self.keys("Enter")

    def screen(self, escapes: bool = False) -> str:
        """What the terminal shows, scrolled-off lines included; with colours as escape sequences if asked."""
        return self._tmux("capture-pane", "-p", "-S", "-", *(["-e"] if escapes else []))

    def wait_for(self, words: str, timeout: float = 60.0) -> str:
        """Wait until the screen shows these words, wrapped in any way, and return the screen, unwrapped."""
        return wait_until(
            lambda: screen if words in (screen := self.unwrapped()) else None, timeout, f"{words!r}", self.screen
        )

    def unwrapped(self) -> str:
        """What the terminal shows, with one space for all space and line ends in a row."""
        return " ".join(self.screen().split())

    def wait_ready(self, timeout: float = 60.0) -> str:
        """Wait until the client takes typed input, and return the screen.

        A "Settings Warning" that fills the screen first is confirmed and noted in `settings_warning`: up to 2.1.112
        there is one, at each start, for the events PostToolBatch and UserPromptExpansion.
        """

        def look() -> str:
            screen = self.screen()
            if "Settings Warning" in screen:
                self.settings_warning = screen
                self.keys("Enter")
                time.sleep(0.5)
                return ""
            return screen if "❯" in screen else ""

        return wait_until(look, timeout, "prompt", self.screen)

    def kill(self) -> None:
        """End tmux and the client."""
        with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
            self._tmux("kill-server")

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def main(arguments: list[str]) -> int:
    """Run the newest pinned client with arguments in a throwaway home; return its exit code."""
    with Home() as home:
        return subprocess.run(
            [*client_command(NEWEST), *arguments], env=home.environment(), timeout=120, check=False
        ).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""A tiny MCP server on standard input and output: tool `works` succeeds, tool `fails` always answers an error."""

from __future__ import annotations

import json
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}}
TOOLS = [
    {"name": "works", "description": "Gives the word back.", "inputSchema": SCHEMA},
    {"name": "fails", "description": "Always fails.", "inputSchema": SCHEMA},
]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request, or None for an unknown method."""
    if method == "initialize":
        info = {"name": "probe", "version": "1"}
        version = params.get("protocolVersion", "2024-11-05")
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        word = str(params.get("arguments", {}).get("word", ""))
        failed = params.get("name") != "works"
        return {"content": [{"type": "text", "text": f"failed: {word}" if failed else word}], "isError": failed}
    return {} if method == "ping" else None


def main() -> int:
    """Answer one JSON-RPC request a line until standard input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue  # a notification
        result = answer(request.get("method", ""), request.get("params") or {})
        response: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        if result is None:
            response["error"] = {"code": -32601, "message": "no such method"}
        else:
            response["result"] = result
        print(json.dumps(response), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

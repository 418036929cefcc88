"""Real clients for the tests: the SDK's over stdio, and a bare one that sees every byte of the wire."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from mcp import Client, StdioServerParameters

PATIENCE_SECONDS = 30.0
CAKE = [sys.executable, "-m", "cake_mcp"]


@asynccontextmanager
async def over_stdio(workspace: Path, *options: str, mode: Literal["legacy", "auto"] = "auto") -> AsyncIterator[Client]:
    """An SDK client of a server in a process of its own."""
    parameters = StdioServerParameters(
        command=CAKE[0], args=[*CAKE[1:], "serve", "--workspace", str(workspace), *options], env={**os.environ}
    )
    async with Client(parameters, mode=mode) as client:
        yield client


class BareServer:
    """A server on pipes, spoken to in raw JSON-RPC (the handshake of 2025-11-25)."""

    def __init__(self, workspace: Path, **environment: str) -> None:
        self.process = subprocess.Popen(
            [*CAKE, "serve", "--workspace", str(workspace)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )
        self.lines: list[bytes] = []
        self._id = 0
        self.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}})
        self.notify("notifications/initialized")

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        self.send({"method": method, **({"params": params} if params is not None else {})})

    def begin(self, method: str, params: dict[str, Any] | None = None) -> int:
        self._id += 1
        self.send({"id": self._id, "method": method, "params": params or {}})
        return self._id

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        watchdog = threading.Timer(PATIENCE_SECONDS, self.process.kill)
        watchdog.start()
        line = self.process.stdout.readline()
        watchdog.cancel()
        assert line, "the server closed its output, or did not answer in time"
        self.lines.append(line)
        return json.loads(line)

    def answer_to(self, identifier: int) -> dict[str, Any]:
        while True:
            message = self.read()
            if message.get("id") == identifier and "method" not in message:
                return message

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return self.answer_to(self.begin(method, params))

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.request("tools/call", {"name": tool, "arguments": arguments})["result"]

    def close(self) -> int:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.lines += self.process.stdout.readlines()
        self.process.stdout.close()
        return self.process.wait(timeout=20)

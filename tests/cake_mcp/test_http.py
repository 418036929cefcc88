"""The server over HTTP: streamable and SSE, on loopback, guarded by Host and Origin checks and, where configured, a token."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.sse import sse_client

TOKEN = "a-token-of-some-length"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}},
}
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@contextmanager
def serving(workspace: Path, transport: str, **environment: str) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "cake_mcp", "serve", "--transport", transport, "--port", str(port), "--workspace", str(workspace)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environment})
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=20)


def test_streamable_http_serves_the_same_tools_and_survives_a_restart(tmp_path: Path) -> None:
    async def propose(url: str) -> str:
        async with Client(f"{url}/mcp") as client:
            assert {tool.name for tool in (await client.list_tools()).tools} >= {"verify", "propose_candidate"}
            answer = (await client.call_tool("propose_candidate", {"text": "x = ("})).structured_content
            assert answer is not None and answer["verdict"] == "fail"
            return answer["candidate_id"]

    async def verify(url: str, candidate: str) -> None:
        async with Client(f"{url}/mcp") as client:
            answer = (await client.call_tool("verify", {"candidate_id": candidate})).structured_content
            assert answer is not None and answer["candidate_id"] == candidate

    with serving(tmp_path / ".cake", "http") as url:
        candidate = anyio.run(propose, url)
    with serving(tmp_path / ".cake", "http") as url:
        anyio.run(verify, url, candidate)


def test_sse_serves_old_clients(tmp_path: Path) -> None:
    async def session(url: str) -> None:
        async with Client(sse_client(f"{url}/sse"), mode="legacy") as client:
            answer = (await client.call_tool("verify", {"text": "x = ("})).structured_content
            assert answer is not None and answer["verdict"] == "fail"

    with serving(tmp_path / ".cake", "sse") as url:
        anyio.run(session, url)


def test_foreign_hosts_and_origins_are_refused(tmp_path: Path) -> None:
    with serving(tmp_path / ".cake", "http") as url, httpx2.Client() as http:
        assert http.post(f"{url}/mcp", json=INITIALIZE, headers=HEADERS).status_code == 200
        assert http.post(f"{url}/mcp", json=INITIALIZE, headers={**HEADERS, "Host": "evil.example"}).status_code == 421
        assert http.post(f"{url}/mcp", json=INITIALIZE, headers={**HEADERS, "Origin": "http://evil.example"}).status_code == 403


def test_a_configured_token_is_demanded(tmp_path: Path) -> None:
    with serving(tmp_path / ".cake", "http", CAKE_TOKEN=TOKEN) as url, httpx2.Client() as http:
        assert http.post(f"{url}/mcp", json=INITIALIZE, headers=HEADERS).status_code == 401
        wrong = {**HEADERS, "Authorization": "Bearer another-token-of-length"}
        assert http.post(f"{url}/mcp", json=INITIALIZE, headers=wrong).status_code == 401
        right = {**HEADERS, "Authorization": f"Bearer {TOKEN}"}
        assert http.post(f"{url}/mcp", json=INITIALIZE, headers=right).status_code == 200


@pytest.mark.parametrize(
    ("options", "environment", "message"),
    [
        (["--transport", "http", "--host", "0.0.0.0"], {}, "reachable from other machines"),
        (["--transport", "sse", "--host", "example.org"], {}, "reachable from other machines"),
        (["--transport", "http"], {"CAKE_TOKEN": "short"}, "at least 16 characters"),
    ],
)
def test_an_open_door_is_refused_at_start(tmp_path: Path, options: list[str], environment: dict[str, str], message: str) -> None:
    command = [sys.executable, "-m", "cake_mcp", "serve", "--workspace", str(tmp_path / ".cake"), *options]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, **environment}, timeout=60)
    assert done.returncode == 3 and message in done.stderr

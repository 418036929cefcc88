"""The client's side: a connection to a server process, and calls that show themselves."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from .transcript import Transcript, WrongAnswer

_SHOWN_LINES = 12


class Agent:
    """Calls tools over a real MCP session."""

    def __init__(self, client: Client, transcript: Transcript) -> None:
        self._client = client
        self._transcript = transcript

    async def tools(self) -> list[str]:
        """Names of the server's tools."""
        return [tool.name for tool in (await self._client.list_tools()).tools]

    async def call(self, tool: str, /, *, _quiet: bool = False, **arguments: Any) -> dict[str, Any]:
        """Call a tool; its structured answer. Raises `WrongAnswer` for an error."""
        if not _quiet:
            self._transcript.ask(tool, arguments)
        result = await self._client.call_tool(tool, arguments)
        text = getattr(result.content[0], "text", "") if result.content else ""
        if result.is_error or result.structured_content is None:
            raise WrongAnswer(f"{tool} is an error: {text}")
        if not _quiet:
            self._transcript.answer(text.splitlines()[:_SHOWN_LINES])
        return dict(result.structured_content)


@asynccontextmanager
async def connected(workspace: Path, transcript: Transcript) -> AsyncIterator[Agent]:
    """An agent connected to a new server process on that workspace."""
    command = [sys.executable, "-m", "cake_mcp", "serve", "--workspace", str(workspace)]
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with Client(parameters) as client:
        yield Agent(client, transcript)

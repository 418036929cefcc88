"""What all calls of one server share. There is no current candidate, target or device: every call names its own."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from .workspace import Workspace

if TYPE_CHECKING:
    from .jobs.dispatcher import Dispatcher


@dataclass(frozen=True)
class ServerState:
    """The workspace and the dispatcher of its jobs."""

    workspace: Workspace
    proposer: str = field(default="mcp")

    @cached_property
    def dispatcher(self) -> "Dispatcher":
        """Looks after the workspace's jobs; made when first asked for."""
        from .jobs.dispatcher import Dispatcher

        return Dispatcher(self.workspace)

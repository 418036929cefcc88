"""Resources: the language, the codes, the targets, and what is stored. A bonus: the tools alone are enough."""

import importlib.resources
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from .cleaning import clip_all
from .state import ServerState

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from cake_backend.task import Task

_RECORD_TEXT = 60_000


def register(server: "MCPServer[ServerState]", state: ServerState) -> None:
    """Add every resource to the server."""

    @server.resource(
        "cake://language", title="Cake IR", description="The language: declarations, operations, rules, examples", mime_type="text/markdown"
    )
    async def language() -> str:
        return await anyio.to_thread.run_sync(_language)

    @server.resource(
        "cake://targets", title="Targets", description="What each architecture allows: limits and features", mime_type="text/markdown"
    )
    async def targets() -> str:
        return await anyio.to_thread.run_sync(_targets)

    @server.resource(
        "cake://tasks",
        title="Tasks",
        description="What kernels can be judged on: tensors, axes, shapes, tolerances",
        mime_type="application/json",
    )
    async def tasks() -> str:
        return await anyio.to_thread.run_sync(_tasks, state)

    @server.resource("cake://tactics", title="Tactics", description="Edits that pay, with their evidence", mime_type="application/json")
    async def tactics() -> str:
        return await anyio.to_thread.run_sync(_tactics, state)

    @server.resource(
        "cake://tactics/{name}", title="Tactic", description="One tactic, with a schedule before and after", mime_type="text/markdown"
    )
    async def tactic(name: str) -> str:
        return await anyio.to_thread.run_sync(_found, "tactic", name, lambda: _tactic(state, name))

    @server.resource(
        "cake://facts/schema", title="Facts", description="The tables that a proposed check may query", mime_type="text/markdown"
    )
    async def facts() -> str:
        from cake_verify.facts import SCHEMA_TEXT

        return SCHEMA_TEXT

    @server.resource(
        "cake://codes/{code}",
        title="Diagnostic code",
        description="What a code means, why it matters, what to write instead",
        mime_type="text/markdown",
    )
    async def code(code: str) -> str:
        return await anyio.to_thread.run_sync(_found, "code", code, lambda: _page(state, code))

    @server.resource(
        "cake://candidate/{id}",
        title="Candidate",
        description="Text, parameters, lineage, verdict, failures and runs of a candidate",
        mime_type="application/json",
    )
    async def candidate(id: str) -> str:
        return await anyio.to_thread.run_sync(_found, "candidate", id, lambda: _candidate(state, id))

    @server.resource(
        "cake://run/{id}", title="Run", description="The whole record of a run, with the artefacts' paths", mime_type="application/json"
    )
    async def run(id: str) -> str:
        return await anyio.to_thread.run_sync(_found, "run", id, lambda: _run(state, id))

    @server.resource(
        "cake://run/{id}/{artefact}",
        title="Artefact of a run",
        description="Generated CUDA, manifest or log of a run, by its file name",
        mime_type="text/plain",
    )
    async def artefact(id: str, artefact: str) -> str:
        return await anyio.to_thread.run_sync(_found, "artefact", f"{id}/{artefact}", lambda: _artefact(state, id, artefact))


def _found(kind: str, name: str, read: "Callable[[], str | None]") -> str:
    text = read()
    if text is None:
        raise ResourceNotFoundError(f"no {kind} {name[:80]}")
    return text


def _language() -> str:
    packaged = importlib.resources.files("cake_mcp") / "language.md"
    if packaged.is_file():
        return packaged.read_text("utf-8")
    return (Path(__file__).resolve().parents[1] / "docs" / "language.md").read_text("utf-8")


def _targets() -> str:
    from cake_ir.targets.markdown import page

    return page()


def _tasks(state: ServerState) -> str:
    from .operations import tasks
    from .store.encoding import plain

    return json.dumps(plain({name: _task(task) for name, task in tasks.known(state.workspace).items()}), indent=1)


def _task(task: "Task") -> dict[str, object]:
    return {
        "doc": task.doc, "axes": task.axes, "shapes": [(s.name, s.kind, s.axes) for s in task.shapes],
        "tensors": {name: {"dims": t.dims, "dtype": t.dtype, "mode": t.mode} for name, t in task.tensors.items()},
        "scalars": {name: {"dtype": s.dtype, "value": s.value} for name, s in task.scalars.items()},
        "tolerances": {name: t.to_json() for name, t in task.tolerances.items()}, "peers": [p.name for p in task.peers],
    }  # fmt: skip


def _tactics(state: ServerState) -> str:
    from .operations import tactics

    shown = {
        t.name: {"title": t.title, "when": t.when, "effect": t.effect, "evidence": t.evidence}
        for t in tactics.known(state.workspace).values()
    }
    return json.dumps(shown, ensure_ascii=False, indent=1)


def _tactic(state: ServerState, name: str) -> str | None:
    from .operations import tactics

    found = tactics.known(state.workspace).get(name)
    return None if found is None else f"When: {found.when}\n\nEffect: {found.effect}\n\nEvidence: {found.evidence}\n\n{found.text}\n"


def _page(state: ServerState, code: str) -> str | None:
    import cake_verify

    from .operations import rules

    return cake_verify.explain(code.upper()) or rules.page(state.workspace, code.upper())


def _candidate(state: ServerState, identifier: str) -> str | None:
    from .store.encoding import plain

    store = state.workspace.store
    found = store.candidates.get(identifier)
    if found is None:
        return None
    verdict = store.verdicts.latest(identifier)
    shown = {
        "id": found.id, "text": found.text, "params": found.params, "target": found.target, "task": found.task, "content_hash": found.content_hash,
        "lineage": [{"parent": d.parent, "edits": d.edits, "rationale": d.rationale} for d in store.candidates.descent(identifier)],
        "children": store.candidates.children(identifier)[:100], "verdict": verdict.body if verdict else None,
        "failures": [{"id": f.id, "stage": f.stage, "code": f.code, "message": f.message, "line": f.line} for f in store.failures.of(identifier)],
        "runs": [{"id": r.id, "status": r.status, "evidence": r.evidence, "task": r.task} for r in store.runs.of(identifier)],
    }  # fmt: skip
    return json.dumps(plain(shown), ensure_ascii=False, indent=1)


def _run(state: ServerState, identifier: str) -> str | None:
    from .store.encoding import plain

    found = state.workspace.store.runs.get(identifier)
    if found is None:
        return None
    files = sorted(p.name for p in Path(found.folder).iterdir() if p.is_file()) if found.folder and Path(found.folder).is_dir() else []
    shown = {
        "id": found.id, "candidate": found.candidate, "task": found.task, "device": found.device, "status": found.status,
        "evidence": found.evidence, "record": clip_all(found.body, 8_000, 200), "artefacts": [f"cake://run/{identifier}/{name}" for name in files],
    }  # fmt: skip
    return json.dumps(plain(shown), ensure_ascii=False, indent=1)


def _artefact(state: ServerState, identifier: str, name: str) -> str | None:
    found = state.workspace.store.runs.get(identifier)
    if found is None or not found.folder or Path(name).name != name:
        return None
    path = Path(found.folder) / name
    if not path.is_file():
        return None
    data = path.read_bytes()[: 4 * _RECORD_TEXT]
    return (
        clip_all(data.decode("utf-8", "replace"), _RECORD_TEXT)
        if b"\0" not in data
        else f"{path.stat().st_size} bytes of binary data in {path.name}"
    )

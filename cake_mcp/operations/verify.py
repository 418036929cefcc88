"""Ask the gates about a text, then the rules that this workspace has approved."""

import time
from collections.abc import Mapping
from typing import Any, cast

from .. import workspace as workspaces

_ORDER = {"fail": 2, "undecided": 1, "pass": 0}


def verify_text(
    text: str,
    *,
    params: Mapping[str, Any] | None = None,
    target: str | None = None,
    extents: Mapping[str, int] | None = None,
    filename: str = "<text>",
    strict: bool = False,
    workspace: "workspaces.Workspace | None" = None,
) -> dict[str, Any]:
    """The verdict contract's object for `text`, with every finding, the `distilled` gate of the workspace included.

    `target` is what to verify for, whatever the schedules name; schedules that name none otherwise use the workspace's default.
    """
    import cake_verify

    verdict = cake_verify.verify_text(
        text,
        params=dict(params or {}),
        target=target,
        default_target=workspace.settings.target if workspace is not None else None,
        extents=dict(extents or {}),
        filename=filename,
        strict=strict,
    )
    body = cast(dict[str, Any], verdict.to_json(None))
    if workspace is not None and not _stops(body):
        from . import rules

        approved = rules.approved(workspace)
        if approved:
            started = time.perf_counter()
            found = rules.apply(approved, text, params=params, target=target, default_target=workspace.settings.target)
            if found:
                body["diagnostics"] = [*body["diagnostics"], *found]
                if any(d["severity"] == "error" for d in found):
                    body["verdict"] = "fail"
            body["elapsed_ms"] = round(body["elapsed_ms"] + (time.perf_counter() - started) * 1e3, 3)
    return body


def question(*, target: str | None, extents: Mapping[str, int] | None, task: str | None, rules: tuple[str, ...]) -> str:
    """What a verdict answers, as a key: the gates' version, target, extents, task and the rules in force."""
    from ..store.identity import canonical_json
    from .version import engine_version

    return canonical_json({"cake": engine_version(), "target": target, "extents": dict(extents or {}), "task": task, "rules": rules})


def worst(verdicts: list[str]) -> str:
    """fail before undecided before pass."""
    return max(verdicts, key=lambda verdict: _ORDER[verdict], default="pass")


def _stops(body: dict[str, Any]) -> bool:
    """Whether the text has no program that a rule could look at."""
    return any(d["severity"] == "error" and d["gate"] in ("construct", "conformance", "consistency") for d in body["diagnostics"])

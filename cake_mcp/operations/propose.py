"""Take a proposal into the store, whatever the gates say of it, and ask them at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..store import Candidate
from ..workspace import Workspace
from . import programs, tasks
from .edits import Edit, apply_edits
from .misuse import Misuse, unknown
from .verify import question, verify_text

MAX_TEXT = 2 * 1024 * 1024  # characters; the gates refuse a text long before this, with a located diagnostic


@dataclass(frozen=True, slots=True)
class Proposal:
    """A whole text; or a parent with other parameters; or a parent with edits. `None` parameters take the text's default again."""

    text: str = ""
    parent: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    edits: Sequence[Edit] = ()
    target: str = ""
    task: str = ""
    rationale: str = ""
    proposer: str = ""


@dataclass(frozen=True, slots=True)
class Proposed:
    """What became of a proposal: the stored candidate, the verdict contract's object, and what the program is like."""

    candidate: Candidate
    new: bool
    verdict: dict[str, Any]
    outline: programs.Outline
    same_program_as: list[str]


def propose(workspace: Workspace, proposal: Proposal) -> Proposed:
    """Store the proposal, verify it, and remember verdict and failures. Raises `Misuse` for a request that names no text."""
    store = workspace.store
    parent = get_candidate(workspace, proposal.parent) if proposal.parent else None
    text = _text_of(proposal, parent)
    params = {**(parent.params if parent else {}), **proposal.params}
    params = {name: value for name, value in params.items() if value is not None}
    task = proposal.task or (parent.task if parent else None) or None
    if task is not None:
        tasks.get(workspace, task)
    candidate, new = store.candidates.add(
        text,
        params,
        target=proposal.target or (parent.target if parent else None) or None,
        task=task,
        parent=parent.id if parent else None,
        edits=[_edit_row(edit) for edit in proposal.edits],
        rationale=proposal.rationale,
        proposer=proposal.proposer,
    )
    verdict, outline = judge_text(workspace, candidate)
    return Proposed(
        store.candidates.get(candidate.id) or candidate,
        new,
        verdict,
        outline,
        store.candidates.same_program(outline.content_hash, candidate.id) if outline.content_hash else [],
    )


def judge_text(
    workspace: Workspace,
    candidate: Candidate,
    *,
    target: str | None = None,
    extents: Mapping[str, int] | None = None,
    task: str | None = None,
) -> tuple[dict[str, Any], programs.Outline]:
    """Ask the gates about a stored candidate and remember what they said, its failures and its program's hash included."""
    from . import rules

    target = target or candidate.target
    default = workspace.settings.target
    store = workspace.store
    task = task or candidate.task
    body = verify_text(
        candidate.text,
        params=candidate.params,
        target=target,
        extents=extents,
        filename=candidate.id,
        workspace=workspace,
        task=tasks.get(workspace, task) if task else None,
    )
    outline = programs.outline(candidate.text, params=candidate.params, target=target, default_target=default)
    asked = question(target=target or default, extents=extents, task=task, rules=tuple(rule.code for rule in rules.approved(workspace)))
    with store.database.write():
        store.verdicts.record(candidate.id, asked, body)
        store.candidates.describe(candidate.id, content_hash=outline.content_hash, title=", ".join(outline.schedules) or None)
        for found in body["diagnostics"]:
            if found["severity"] == "error":
                store.failures.record(
                    candidate.id, stage=found["gate"], code=found["code"], message=found["message"], line=found["span"]["line"],
                    environment={"asked": asked}, body=found,
                )  # fmt: skip
    return body, outline


def get_candidate(workspace: Workspace, identifier: str) -> Candidate:
    """The stored candidate. Raises `Misuse`, naming the nearest ids, if there is none."""
    candidate = workspace.store.candidates.get(identifier)
    if candidate is None:
        recent = [c.id for c in workspace.store.candidates.recent(200)]
        raise unknown("candidate", identifier, recent, then="ids come from `propose_candidate`")
    return candidate


def _text_of(proposal: Proposal, parent: Candidate | None) -> str:
    if proposal.text and (proposal.edits or (parent and proposal.text == parent.id)):
        raise Misuse("send either a whole `text`, or a `parent` with `edits` or `params`; this call has both")
    if proposal.text:
        text = proposal.text
    elif parent is None:
        raise Misuse("nothing was proposed: send a whole `text`, or a `parent` with `params` or `edits`")
    elif proposal.edits:
        text = apply_edits(parent.text, proposal.edits)
        if text == parent.text and not proposal.params:
            raise Misuse("the edits leave the parent's text as it is")
    elif proposal.params or proposal.target or proposal.task:
        text = parent.text
    else:
        raise Misuse(f"nothing was changed: give `params`, `edits`, `target` or `task` with the parent {parent.id}")
    if len(text) > MAX_TEXT:
        raise Misuse(f"the text has {len(text):,} characters; at most {MAX_TEXT:,} are taken")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise Misuse(f"the text is not Unicode: half of a surrogate pair on line {line}") from error
    return text


def _edit_row(edit: Edit) -> dict[str, Any]:
    return {name: getattr(edit, name) for name in edit.__slots__}

"""The parts that several tools' arguments and answers are made of."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..cleaning import clip, clip_all
from ..operations.edits import Edit, FindEdit, SpanEdit
from ..operations.misuse import Misuse

Verdict = Literal["pass", "fail", "undecided"]
Scalar = int | float | bool | str | None
CandidateId = Annotated[str, Field(description="Candidate id (c_...) from propose_candidate", max_length=80)]
TargetName = Annotated[
    str, Field(description="Architecture such as sm_90a, sm_80, sm_100a; default: the schedule's own, then the workspace's", max_length=40)
]
DeviceName = Annotated[
    str, Field(description="Board whose calibration to use, such as H200-SXM; default: the workspace's, then the GPU found", max_length=60)
]
TaskName = Annotated[
    str, Field(description="Task to judge on, such as gemm, kmeans_assign, rmsnorm; default: the candidate's", max_length=80)
]
Params = Annotated[
    dict[str, Scalar],
    Field(description='Values of compile-time parameters by name, for example {"STAGES": 3}; null restores the default', max_length=64),
]

_TEXT = 1_200
_LIST = 40


class Part(BaseModel):
    """Base of nested objects; what the engine adds to them later stays in the answer."""

    model_config = ConfigDict(extra="allow")


class Span(Part):
    """A half-open range of characters; lines and columns count from 1."""

    line: int = Field(description="First line")
    column: int = Field(description="First column")
    end_line: int = Field(description="Last line")
    end_column: int = Field(description="Column behind the last character")


class TextEdit(BaseModel):
    """One edit: `span` and `text` as a diagnostic's fix carries them, or `find` and `replace`."""

    model_config = ConfigDict(extra="forbid")
    span: Span | None = Field(default=None, description="Range of the parent's text to replace (with `text`)")
    text: str | None = Field(default=None, description="New text for `span`")
    find: str | None = Field(default=None, description="Text that stands exactly once in the parent (with `replace`)")
    replace: str | None = Field(default=None, description="New text for `find`")

    def to_edit(self) -> Edit:
        """The edit itself. Raises `Misuse` for a mixture of the two forms."""
        if self.span is not None and self.text is not None and self.find is None and self.replace is None:
            return SpanEdit(self.span.line, self.span.column, self.span.end_line, self.span.end_column, self.text)
        if self.find is not None and self.replace is not None and self.span is None and self.text is None:
            return FindEdit(self.find, self.replace)
        raise Misuse("an edit is either {span, text} or {find, replace}")


class Related(Part):
    """Another place that has to do with a diagnostic."""

    span: Span = Field(description="Where")
    note: str = Field(description="What it has to do with it")


class FixEdit(Part):
    """A replacement that a fix makes."""

    span: Span = Field(description="Range to replace")
    text: str = Field(description="New text")


class Fix(Part):
    """Edits that belong together; send them back as `edits` with the candidate as `parent`."""

    edits: list[FixEdit] = Field(description="Edits, all referring to the present text")
    grade: str = Field(description="certain (keeps the meaning and removes the error), likely, or idea")


class Repair(Part):
    """What a search for edits found."""

    fixes: list[dict[str, Any]] = Field(
        description="At most three fixes under which every gate passes, likeliest first: {edits: [{span, text}], grade, title}; send `edits` back"
    )
    tried: int = Field(description="How many edits were verified")
    stopped: str = Field(description="found; exhausted (nothing left to try); or limit (of time or tries)")
    caveat: str = Field(description="What was not checked")


class Diagnostic(Part):
    """One finding of the gates."""

    code: str = Field(description="Stable code; cake://codes/CODE explains it")
    gate: str = Field(description="construct, conformance, consistency, safety, schedule or distilled")
    severity: str = Field(description="error, warning or note")
    message: str = Field(description="What was found and what was expected, in the text's own names")
    span: Span = Field(description="Where")
    related: list[Related] = Field(default_factory=list, description="Other places that matter")
    trace: list[Any] = Field(default_factory=list, description="Shortest run that shows the fault")
    help: str | None = Field(default=None, description="What to do")
    fixes: list[Fix] = Field(default_factory=list, description="Edits that can be applied as they are")


class Counts(Part):
    """How many findings there are, whether or not they are shown."""

    errors: int = Field(description="Errors")
    warnings: int = Field(description="Warnings")
    notes: int = Field(description="Notes")


def diagnostics_page(found: list[dict[str, Any]], limit: int, offset: int = 0) -> tuple[list[Diagnostic], Counts, int | None]:
    """The page of findings from `offset`, errors first; the counts of all; the next offset, if there is more."""
    order = {"error": 0, "warning": 1, "note": 2}
    ranked = sorted(found, key=lambda d: order.get(d["severity"], 3))
    page = [Diagnostic.model_validate(clip_all(d, _TEXT, _LIST)) for d in ranked[offset : offset + limit]]
    severities = [d["severity"] for d in found]
    counts = Counts(errors=severities.count("error"), warnings=severities.count("warning"), notes=severities.count("note"))
    return page, counts, offset + limit if offset + limit < len(ranked) else None


def diagnostics_text(diagnostics: list[Diagnostic]) -> list[str]:
    """One line a finding, and its help under it."""
    lines = []
    for d in diagnostics:
        lines.append(f"{d.severity}[{d.code}] {d.span.line}:{d.span.column} {clip(d.message, 300)}")
        if d.help:
            lines.append(f"  help: {clip(d.help, 300)}")
    return lines


def repair_of(body: dict[str, Any]) -> Repair | None:
    """The search of a verdict, where there was one."""
    found = body.get("repair")
    return Repair.model_validate(clip_all(found, _TEXT, _LIST)) if found else None


def repair_text(repair: Repair | None) -> list[str]:
    """One line on a search, and one a fix."""
    if repair is None:
        return []
    if not repair.fixes:
        return [f"repair: none of {repair.tried} edits makes it verify ({repair.stopped})"]
    shown = [f"  {i}: {clip(str(fix.get('title', '')), 200)}" for i, fix in enumerate(repair.fixes)]
    return [f"repair: {len(repair.fixes)} of {repair.tried} edits make it verify; {repair.caveat}", *shown]


def with_next(lines: list[str], next_actions: list[str]) -> str:
    """The text twin: the lines, then what to do next."""
    return "\n".join([*lines, *(f"next: {action}" for action in next_actions)])

"""`propose_rule`: turn a failure into a check that catches it next time, for a person to decide on."""

from typing import Annotated, Any, Literal

import anyio.to_thread
from pydantic import Field

from ..binding import Answer, Arguments, Reporter, ToolSpec
from ..cleaning import clip, clip_all
from ..operations.misuse import Misuse
from ..state import ServerState
from . import shapes


class ProposeRuleArguments(Arguments):
    """The check and its evidence."""

    kind: Annotated[
        Literal["check", "calibration", "tactic", "primitive"],
        Field(description="check: a query over a program's facts; the other kinds are not in this build"),
    ] = "check"
    title: Annotated[str, Field(description="The rule in a few words, one line", min_length=1, max_length=120)]
    statement: Annotated[str, Field(description="What must hold, and why the hardware wants it", max_length=2000)]
    sql: Annotated[
        str,
        Field(
            description="One SELECT over the facts (cake://facts/schema) that returns line, column, detail for every violation",
            max_length=8192,
        ),
    ]
    message: Annotated[
        str, Field(description="The diagnostic's sentence; {detail} is replaced by the row's detail", min_length=1, max_length=300)
    ]
    help: Annotated[str, Field(description="What to write instead", max_length=600)] = ""
    severity: Annotated[Literal["error", "warning"], Field(description="error rejects, warning only says so")] = "error"
    targets: Annotated[list[str], Field(description="Architectures the rule is for; empty for all", max_length=8)] = Field(
        default_factory=list
    )
    evidence: Annotated[
        list[str], Field(description="Ids of failed candidates, runs or failures that the check must reject", min_length=1, max_length=20)
    ]
    near_misses: Annotated[
        list[str],
        Field(
            description="Ids of passing candidates like the evidence that it must not reject; parents and children are tried anyway",
            max_length=20,
        ),
    ] = Field(default_factory=list)


class ProposeRuleAnswer(Answer):
    """How the check stood its trial."""

    summary: str = Field(description="One sentence")
    ok: bool = Field(description="Whether it stood the trial and waits for review")
    rule_id: str | None = Field(default=None, description="Id (p_...) of the pending proposal")
    state: str = Field(description="pending, approved, rejected (decided earlier), or not_stored")
    report: dict[str, Any] = Field(description="What it hit: evidence, near misses, corpus, stored candidates; time; problems and remarks")
    next_actions: list[str] = Field(description="What to do next")


async def run(state: ServerState, arguments: ProposeRuleArguments, report: Reporter) -> ProposeRuleAnswer:
    """Try it in a worker thread."""
    await report(0.0, "trying the check on the corpus and all stored candidates")
    return await anyio.to_thread.run_sync(_propose, state, arguments, abandon_on_cancel=True)


def _propose(state: ServerState, arguments: ProposeRuleArguments) -> ProposeRuleAnswer:
    from ..operations import rules

    if arguments.kind != "check":
        raise Misuse(f"kind `{arguments.kind}` is known, and not in this build: only a `check` can be proposed")
    check = rules.check_from(arguments.model_dump(include={"title", "statement", "sql", "message", "help", "severity", "targets"}))
    rule, report = rules.propose(state.workspace, check, arguments.evidence, arguments.near_misses)
    problems = report["problems"]
    if rule is None:
        summary = f"not stored: {problems[0]}" + (f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else "")
        actions = ["change the query and propose again", "read cake://facts/schema"]
    else:
        tried = f"{report['corpus']} schedules of the corpus and {report['candidates']} stored candidates"
        summary = f"{rule.id} {rule.state}: rejects its evidence and nothing that passed, tried on {tried}"
        actions = [f"a person decides with `cake review {rule.id}`; nothing changes until then"] if rule.state == "pending" else []
    return ProposeRuleAnswer(
        summary=clip(summary, 300),
        ok=rule is not None and rule.state != "rejected",
        rule_id=rule.id if rule else None,
        state=rule.state if rule else "not_stored",
        report=clip_all(report, 600, 40),
        next_actions=actions,
    )


def text(answer: ProposeRuleAnswer) -> str:
    """The text twin."""
    lines = [answer.summary, *(f"problem: {p}" for p in answer.report["problems"][1:]), *(f"remark: {r}" for r in answer.report["remarks"])]
    return shapes.with_next([clip(line, 400) for line in lines], answer.next_actions)


TOOL = ToolSpec(
    name="propose_rule",
    title="Propose a check",
    description=(
        "Distils a failure into a check, so that the next kernel with the same fault is rejected before it is compiled. A check is one SQL "
        "SELECT over the facts of a program (cake://facts/schema) that returns a row for every violation.\n"
        "It is tried at once on its evidence (which it must reject), on its near misses, on the corpus and on every stored candidate: it must "
        "reject nothing that passed. The report says what it hit. If it stands the trial it is stored as pending; a person approves or rejects "
        "it with `cake review`, no tool can. Approved checks run as the last gate (codes R###).\n"
        "Use it after diagnose says that the gates missed something. Rules can only reject or warn."
    ),
    arguments=ProposeRuleArguments,
    answer=ProposeRuleAnswer,
    text=text,
    run=run,
    read_only=False,
    idempotent=True,
)

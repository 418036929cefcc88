"""H001: every operation and declared resource exists on the target."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault, Fix
from cake_ir.ops import spec_of
from cake_ir.program import Op, Program
from cake_ir.span import Span
from cake_ir.targets import target
from cake_verify.analyses.sites import sites
from cake_verify.analyses.wording import FEATURE, INSTEAD, exists_on
from cake_verify.rule import Page
from cake_verify.rules.examples import SYNC_MMA, TENSOR_MEMORY, edit

PAGE = Page(
    code="H001",
    title="the target has no such hardware",
    statement="An operation or a declared resource may be used only on a target whose hardware has it.",
    why="The instruction sets of GPU architectures are no chain of supersets: tensor memory exists on sm_100a and sm_103a and is gone on sm_120a, wgmma exists "
    "on sm_90a alone. Such a kernel does not assemble, or traps when an image for a sibling chip is loaded.",
    failing=edit(TENSOR_MEMORY, ("sm_100a", "sm_120a")),
    passing=SYNC_MMA,
    limits="One message a feature; its other uses are listed with it. Features that only some operand types need are checked by H004 and H016.",
    sources=("HW000",),
)

_SAME = {"TMEM": "TCGEN05", "MBARRIER_TX": "TMA"}
"""Features that no target has one without the other: one cause, one message."""
_FOR_KIND = {"wgmma": "WGMMA", "tcgen05": "TCGEN05"}


def check(program: Program) -> Iterator[Fault]:
    if not program.target:
        return
    t = target(program.target)
    uses: dict[str, list[tuple[Span, str]]] = {}
    for feature, span, what in _uses(program):
        if not t.has(feature):
            uses.setdefault(_SAME.get(feature, feature), []).append((span, what if isinstance(what, str) else _called(what)))
    for feature, places in uses.items():
        span, what = places[0]
        others = tuple((s, f"{w} needs it too") for s, w in places[1:4])
        reason = t.narrower.get(feature) or exists_on(feature)
        yield Fault(
            "H001", f"{what} needs {FEATURE.get(feature, feature)}, which {t.name} does not have; {reason}", span, others, _help(feature, t.name),
            _fixes(program, feature), {"feature": feature, "target": t.name, "uses": len(places)},
        )  # fmt: skip


def _uses(program: Program) -> Iterator[tuple[str, Span, str | Op]]:
    """(feature, where, what in words or the operation) of everything that needs one, declarations first."""
    for d in program.tmems.values():
        yield "TMEM", d.span, f"`{d.name}`"
    for r in program.roles.values():
        if r.regs is not None:
            yield "SETMAXNREG", r.spans.get("regs", r.span), f"`regs` of `{r.name}`"
    for s in program.schedulers.values():
        if s.kind == "clc":
            yield "CLC", s.spans.get("kind", s.span), f"`{s.name}`"
    for site in sites(program).ops:
        op = site.op
        feature = _FOR_KIND.get(str(op.attrs.get("kind"))) if op.name == "mma" else spec_of(op).needs
        if feature is not None and feature != "CLUSTER":  # clusters are H005's
            yield feature, op.span, op
    for b in program.barriers.values():
        if b.arrive == "tx":
            yield "MBARRIER_TX", b.span, f"`{b.name}`"
        elif b.arrive == "mma":
            yield "TCGEN05", b.span, f"`{b.name}`"


def _called(op: Op) -> str:
    return f"`{'lm' if spec_of(op).on == 'lm' else 'view'}.{op.name}`" + (" on shared-memory views" if op.attrs.get("kind") == "wgmma" else "")


def _help(feature: str, name: str) -> str:
    if feature == "WGMMA":
        t = target(name)
        if t.has("TCGEN05"):
            return "accumulate in tensor memory: `acc = lm.tmem(cols=0, width=.., shape=(128, ..), dtype=lm.f32)`, and `lm.commit(..)` in place of `lm.mma_wait(..)`"
        return "load the operands as fragments: `view.ldmatrix(form=\"a\", like=acc)` and `form=\"b\"`, then `lm.mma`"
    return INSTEAD.get(feature, "")


def _fixes(program: Program, feature: str) -> tuple[Fix, ...]:
    if feature == "SETMAXNREG":
        from cake_ir.fault import Edit

        edits = tuple(Edit(r.spans["regs"], "None") for r in program.roles.values() if r.regs is not None and "regs" in r.spans)
        return (Fix(edits, "certain", "keep the registers that every thread starts with"),)
    return ()

"""Q013: what a request asks for as an output is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cake_ir.fault import Fault
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Issue, Touch
from cake_ir.program import For, If, Param, Program
from cake_verify.analyses.coverage import hole
from cake_verify.analyses.coverage_cases import one_case
from cake_verify.analyses.sites import sites
from cake_verify.analyses.tensors import read_tensors
from cake_verify.analyses.trips import spoken
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE

PAGE = Page(
    code="Q013",
    title="an output that nothing writes",
    statement="Every tensor that a request names as an output, as a task does, is written by some operation, and every element of it by some store; where branches divide tiles among outputs, "
    "the part of each fits its extent, and where memory decides, an output is stored in the cases in which another one is.",
    why="What nothing writes stays as it was before the launch: a store has been left out, or a condition or a loop around it leaves too much out.",
    failing=TILE,
    passing=TILE,
    limits="An output of which only a part is written is refused where its extents are declared, it is neither read nor `.inout` nor `.zeroed`, stores alone write it, and no execution of any of them, tried on small arguments that keep every `lm.assume`, "
    "covers an element; conditions, coordinates and counts that depend on memory are taken to cover most. Where a condition is about what moves the stores, which places are written is the author's choice: then only places of which another store covers a part are asked for, unless both of its arms store and "
    "`lm.assume` says what the extent is. A case of what memory holds is asked for where another output is stored outside of the condition, or in both of its arms and not just a number in each, at places of the same tile. Outputs come with the request, or from its task; a tensor that nothing names is otherwise a warning (Q003). Said where nothing else is wrong, of texts with one schedule and no plan.",
)


def check_outputs(program: Program, outputs: Mapping[str, str]) -> Iterator[Fault]:
    """The tensors of the schedule among `outputs` (with what each is, in words) that no operation writes."""
    written: dict[str, bool] = {}
    for op in program.ops:
        for e in effects_of(op, program):
            touches = e.touches if isinstance(e, Issue) else (e,) if isinstance(e, Touch) else ()
            if any(t.space == "gmem" and "w" in t.mode for t in touches):
                name = str(op.attrs.get("tensor"))
                written[name] = written.get(name, True) and op.name in _STORES
    stored = next((op for op in reversed(program.ops) if op.attrs.get("tensor") in written and op.name in ("store", "tma_store", "bulk_store", "atomic", "tma_reduce")), None)
    related = ((stored.span, f"the last store, to `{stored.attrs['tensor']}`"),) if stored is not None else ()
    for name, what in outputs.items():
        if name in program.tensors and name not in written:
            yield Fault("Q013", f"nothing writes `{name}`, {what}", program.tensors[name].span, related, "store it", (), {"tensor": name})
        elif written.get(name) and (fault := _part(program, program.tensors[name], what) or _case(program, program.tensors[name], what, outputs)) is not None:
            yield fault


_STORES = ("store", "tma_store", "bulk_store")


def _part(program: Program, tensor: Param, what: str) -> Fault | None:
    """An output of which something is left out."""
    if not tensor.extents or tensor.inout or tensor.zeroed or tensor.name in read_tensors(program):
        return None
    stores = [s for s in sites(program).of(*_STORES) if s.op.attrs.get("tensor") == tensor.name]
    found = hole(program, stores, tensor)
    if found is None:
        return None
    at = ", ".join(map(str, found.element))
    given = ", ".join(f"{n} = {found.args[n]}" for n in sorted(found.names) if n in found.args)
    when = f" in round {found.round} of the tiles of a block" if found.round is not None else ""
    message = f"nothing writes element ({at}) of `{tensor.name}`, {what}{when}{f', for {given}' if given else ''}"
    s = found.nearest
    span, related = s.op.span, []
    for p, arm in s.branches():
        other = p.orelse if arm else p.then
        if found.round is not None and other:
            last = other[-1].span
            span, related = last, [(s.op.span, "what the other arm stores"), (p.head, "for this condition")]
    if span is s.op.span:
        related = [(p.head, "in this loop" if isinstance(p, For) else "under this condition") for p in reversed(s.path)][:2]
    return Fault("Q013", message, span, (*related, (tensor.span, f"`{tensor.name}` is declared here")), "store all of it, or declare it `.inout` where the rest keeps what it held", (),
                 {"role": s.role.name, "tensor": tensor.name, "element": list(found.element)})  # fmt: skip


def _case(program: Program, tensor: Param, what: str, outputs: Mapping[str, str]) -> Fault | None:
    """An output that one case of what memory holds leaves as it was."""
    stores = [s for s in sites(program).of(*_STORES) if s.op.attrs.get("tensor") == tensor.name]
    if tensor.inout or tensor.zeroed or not any(isinstance(p, If) for s in stores for p in s.path) or tensor.name in read_tensors(program):
        return None
    found = one_case(program, stores, tensor, outputs)
    if found is None:
        return None
    s, cond, other = found.store, spoken(found.branch.cond), str(found.always.op.attrs["tensor"])
    message = f"nothing writes `{tensor.name}`, {what}, of a tile for which `{cond}` is {'false' if found.arm else 'true'}, and `{other}` is written for it"
    where = "is in the other arm" if found.branch in found.always.path else "stands outside of it"
    related = ((found.branch.head, "under this condition"), (found.always.op.span, f"{call(found.always.op)} {where}"), (tensor.span, f"`{tensor.name}` is declared here"))
    return Fault("Q013", message, s.op.span, related, f"store to `{tensor.name}` in the other case too, or declare it `.inout` where it keeps what it held", (),
                 {"role": s.role.name, "tensor": tensor.name, "condition": cond})  # fmt: skip

"""Findings that the schedule's text shows: bank conflicts, uncoalesced stores, masks in steady loops, early waits, one-slot rings."""

from __future__ import annotations

from dataclasses import replace

from cake_backend.cost.demand import Demand, Piece
from cake_backend.cost.pipes import count
from cake_backend.diagnose.finding import Finding, Gain
from cake_backend.diagnose.what_if import WhatIf
from cake_ir.derive.structure import Site, sites
from cake_ir.program import Expr, Program
from cake_ir.types import ViewT

_HOW = "re-simulation without it"


def schedule_findings(what_if: WhatIf) -> list[Finding]:
    """Findings from text and reading; each with a bound by re-simulation."""
    program = what_if.setting.subject.program
    return [*_conflicts(what_if, program), *_stores(what_if, program), *_masks(what_if, program), *_early_waits(what_if, program), *_single_slots(what_if, program)]


def _demand(what_if: WhatIf, site: Site) -> Demand:
    return what_if.setting.subject.demands[site.op.id]


def _conflicts(what_if: WhatIf, program: Program) -> list[Finding]:
    out = []
    for site in sites(program):
        worst = max((p.factor for p in _demand(what_if, site).pieces if p.kind == "smem"), default=1.0)
        if worst <= 1:
            continue
        view = site.op.operands.get("view")
        name = view.type.view if isinstance(view, Expr) and isinstance(view.type, ViewT) else site.op.name
        swizzle = program.views[name].swizzle if name in program.views else None
        gain = what_if.with_pieces(lambda d, p, op=site.op.id: replace(p, factor=1.0) if d.op.id == op and p.kind == "smem" else p)
        out.append(Finding("B24", f"`{name}` is accessed with {worst:g}-way bank conflicts (swizzle {swizzle or 'none'})", "candidate",
                           f'declare `{name}` with `swizzle="128b"` if its rows are whole multiples of 128 bytes, else the widest that fits',
                           "the profiler counts no conflicts for this access", line=site.op.span.line, role=site.role,
                           numbers={"conflict": worst, "swizzle": swizzle}, basis=("predicted",), gain=Gain(gain, _HOW), absent=("bank-conflict counters",)))  # fmt: skip
    return out


def _stores(what_if: WhatIf, program: Program) -> list[Finding]:
    out = []
    for site in sites(program):
        for p in _demand(what_if, site).pieces:
            ideal = max(1.0, p.size / 32)
            if p.kind != "gmem" or p.read or p.factor <= 1.5 * ideal:
                continue
            gain = what_if.with_pieces(lambda d, q, op=site.op.id: replace(q, factor=max(1.0, q.size / 32)) if d.op.id == op and q.kind == "gmem" else q)
            out.append(Finding("B27", f"the store to `{p.name}` writes parts of {p.factor:.0f} sectors where {ideal:.0f} would do", "candidate",
                               "stage the tile: `view.store` into a swizzled view, `lm.fence_proxy()`, `lm.sync`, then `view.tma_store`",
                               "the profiler shows the ideal sectors a request", line=site.op.span.line, role=site.role,
                               numbers={"sectors": p.factor, "ideal": ideal}, basis=("predicted",), gain=Gain(gain, _HOW)))  # fmt: skip
    return out


def _mask(e: Expr) -> Expr | None:
    """A selection under a condition on coordinates, anywhere in a tree."""
    for x in e.parts():
        if x.op == "where" and any(y.op in ("iota", "in_bounds") for y in x.args[0].parts()):
            return x
    return None


def _masks(what_if: WhatIf, program: Program) -> list[Finding]:
    """Masks of full tiles, evaluated in every pass of a loop with MMAs, that only the last pass needs."""
    in_loop = {id(loop) for s in sites(program) if _demand(what_if, s).tensor for loop in s.loops if loop.kind == "range"}
    out = []
    for site in sites(program):
        value = site.op.operands.get("value")
        if site.op.name != "compute" or not isinstance(value, Expr) or not any(id(loop) in in_loop for loop in site.loops):
            continue
        mask = _mask(value)
        if mask is None or getattr(mask.type, "form", "") in ("rowvec", "colvec", "scalar"):
            continue
        warps = program.roles[site.role].member_warps
        work = count(mask, warps)
        inner = count(mask.args[1], warps)

        def lighter(d: Demand, p: Piece, op: int = site.op.id, less: float = work.alu - inner.alu) -> Piece:
            if d.op.id == op and p.kind == "pipes":
                return replace(p, count=replace(p.count, alu=max(0.0, p.count.alu - less)))
            return p

        gain = what_if.with_pieces(lighter)
        out.append(Finding("B35", f"every pass of the loop masks a whole tile at line {site.op.span.line}, only the last pass needs it", "candidate",
                           "mask the vector that enters the tile (the norms, a bias) instead of the tile, or peel the last pass",
                           "the machine code has the selection under a uniform branch that full tiles skip", line=site.op.span.line, role=site.role,
                           numbers={"ALU instructions a warp": round(work.alu - inner.alu)}, basis=("predicted",), gain=Gain(gain, _HOW), absent=("machine code",)))  # fmt: skip
    return out


def _early_waits(what_if: WhatIf, program: Program) -> list[Finding]:
    """`mma_wait(pending=0)` in a loop whose tensor core is not busy all the time."""
    busy = what_if.reading.busy["tensor"] / max(1.0, what_if.reading.cycles)
    if busy >= 0.95:
        return []
    out = []
    for site in sites(program):
        drains = [p for p in _demand(what_if, site).pieces if p.kind == "drain" and p.name == "wgmma" and p.pending == 0]
        if not drains or not any(loop.kind == "range" for loop in site.loops) or _needed_at_once(program, site):
            continue
        gain = what_if.with_pieces(lambda d, p, op=site.op.id: replace(p, pending=1) if d.op.id == op and p.kind == "drain" else p)
        if gain >= 0.01:
            out.append(Finding("B31", f"`{site.role}` waits for all of its MMA groups at line {site.op.span.line} while the tensor core is {busy:.0%} busy", "candidate",
                               "`lm.mma_wait(pending=1)`, and release the slot of the pass before (`s.prev()`)", "the group's result is needed at once",
                               line=site.op.span.line, role=site.role, numbers={"tensor busy": round(busy, 3)}, basis=("predicted",), gain=Gain(gain, _HOW)))  # fmt: skip
    return out


def _needed_at_once(program: Program, wait: Site) -> bool:
    """Whether some operation of the same loop reads an accumulator that this loop's MMAs write."""
    inside = [s for s in sites(program) if s.role == wait.role and wait.loops[-1] in s.loops]
    written = {_name(s.op.operands.get("acc")) for s in inside if s.op.name == "mma"} - {None}
    for s in inside:
        for operand in s.op.operands.values() if s.op.name != "mma" else ():
            if isinstance(operand, Expr) and any(_name(x) in written for x in operand.parts()):
                return True
    return False


def _name(e: object) -> object:
    return e.attrs.get("name") if isinstance(e, Expr) and e.op == "var" else None


def _single_slots(what_if: WhatIf, program: Program) -> list[Finding]:
    """Rings of one slot whose consumers wait for a load at every tile."""
    out = []
    for ring in program.rings.values():
        if ring.stages != 1:
            continue
        names = {b.name for b in program.barriers.values() if b.pipeline == ring.name and b.arrive == "tx"}
        ops = {s.op.id for s in sites(program) if s.op.attrs.get("barrier") in names and any(p.kind == "wait" for p in _demand(what_if, s).pieces)}
        share = max((sum(w for op, w in m.waits.items() if op in ops) / max(1.0, m.cycles) for m in what_if.reading.members), default=0.0)
        if share > 0.02:
            out.append(Finding("B28", f"ring `{ring.name}` has one slot: its readers wait {share:.0%} of their time when a tile begins", "candidate",
                               f"give `{ring.name}` and its views a second stage, so that the next tile is loaded during this one",
                               "the wait is as long with two slots", line=ring.span.line, numbers={"wait": round(share, 4)}, basis=("predicted",),
                               gain=Gain(share, "the predicted wait itself")))  # fmt: skip
    return out

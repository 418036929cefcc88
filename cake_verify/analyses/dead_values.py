"""Fragments whose contents reach nothing: no store, no uniform value, no other role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from cake_ir.derive.mentions import beside, mentions
from cake_ir.derive.structure import Site, nodes, sites
from cake_ir.fault import Fault
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Drain, Issue, Touch
from cake_ir.program import Assign, Expr, Op, Program
from cake_ir.types import FragT, ListT, PairT, ScalarT


@dataclass(slots=True)
class _Flow:
    """One operation between registers: what it reads, what it writes, whether anything outside depends on it."""

    site: Site
    reads: frozenset[str]
    writes: frozenset[str]
    sink: bool
    source: bool = field(default=False)

    @property
    def mask(self) -> bool:
        """Whether it makes a mask that has a name."""
        t = self.site.op.type
        return isinstance(t, FragT) and t.dtype == "bool" and any(not n.startswith(("_", "tmp")) for n in self.writes)


_NO_PLACES = frozenset[str]()
_MEETINGS = frozenset({"wait", "arrive", "sync"})
"""Operations that name no fragment."""


def _places(found: Iterable[Expr]) -> frozenset[str]:
    """The fragments among nodes that an operation names."""
    return frozenset([str(n.attrs["name"]) for n in found if n.op == "var" and isinstance(n.type, (FragT, PairT, ListT))])


def _beside(op: Op, skip: str) -> Iterator[Expr]:
    """The nodes of all operands but one."""
    for name, operand in op.operands.items():
        for e in operand if isinstance(operand, tuple) else (operand,):
            if name != skip and e is not None:
                yield from e.parts()


def _flow(site: Site, program: Program, inside: tuple[Expr, ...]) -> _Flow:
    """`inside` has all nodes of the operation."""
    op = site.op
    if op.name in _MEETINGS:
        return _Flow(site, _NO_PLACES, _NO_PLACES, True)
    targets = frozenset(site.stmt.targets) if isinstance(site.stmt, Assign) and isinstance(op.type, (FragT, PairT, ListT)) else frozenset[str]()
    if op.name == "mma":
        acc = op.operands["acc"]
        held = _places(acc.parts()) if isinstance(acc, Expr) else frozenset[str]()
        return _Flow(site, _places(_beside(op, "acc")), held, not held, True)
    effects = effects_of(op, program)
    if not effects:  # between registers, as most are
        return _Flow(site, _places(inside), targets, isinstance(op.type, ScalarT) or not targets)
    touched = [t for e in effects for t in (e.touches if isinstance(e, Issue) else (e,) if isinstance(e, Touch) else ())]
    writes_memory = any(["w" in t.mode and t.space != "reg" and t.operand != "scratch" for t in touched])
    return _Flow(site, _places(inside), targets, writes_memory or isinstance(op.type, ScalarT) or not targets, any(["r" in t.mode and t.space in ("smem", "gmem", "tmem") for t in touched]))


def unused_results(program: Program) -> Iterator[Fault]:
    """One fault a role at most: the last operation that writes what nobody uses."""
    by_role: dict[str, list[_Flow]] = {}
    of_op = nodes(program)
    for site in sites(program):
        by_role.setdefault(site.role, []).append(_flow(site, program, of_op[site.op.id]))
    used = {s.op.attrs.get("tensor") for s in sites(program)}
    idle = [p.name for p in program.tensors.values() if not p.const and p.name not in used]
    for role, flows in by_role.items():
        live: set[str] = set()
        for f in flows:
            if f.sink:
                live |= f.reads
        grown = True
        while grown:
            grown = False
            for f in reversed(flows):  # who writes mostly stands in front of who reads
                if not f.reads <= live and not f.writes.isdisjoint(live):
                    live |= f.reads
                    grown = True
        dead = [f for f in flows if f.writes and not f.writes & live and not f.sink]
        lost = next((f for f in dead if f.source and any(not n.startswith("_") for n in f.writes)), None)
        mask = next((f for f in dead if f.mask), None)
        if lost is None and mask is not None:
            yield _unused_mask(mask)
            continue
        if lost is not None:
            yield _fault(program, role, flows, dead, lost, idle)
        elif idle:
            named = [f for f in flows if f.writes - live and not f.sink and any(not n.startswith("_") for n in f.writes - live)]
            if named:
                yield _fault(program, role, flows, named, named[-1], idle)


def unused_numbers(program: Program) -> Iterator[Fault]:
    """Tensors of which nothing is read but numbers that nobody uses: what they hold decides nothing."""
    reads: dict[str, list[Site]] = {}
    for s in sites(program):
        if s.op.name == "ld" and (name := str(s.op.attrs.get("tensor"))) in program.tensors:
            reads.setdefault(name, []).append(s)
    if not reads:
        return
    otherwise = {s.op.attrs.get(k) for s in sites(program) if s.op.name != "ld" for k in _TENSORS}
    asked = {name: found for name, found in reads.items() if name not in otherwise and not any(name in (d.offsets, d.counter, d.fetch) for d in program.schedulers.values())}
    if not asked:
        return
    used = {str(n.attrs["name"]) for n in (*mentions(program).get("var", ()), *(n for n in beside(program) if n.op == "var"))}
    told = {n.attrs.get("tensor") for n in (*mentions(program).get("ld", ()), *(n for n in beside(program) if n.op == "ld"))}
    for name, found in asked.items():
        targets = [t for s in found if isinstance(s.stmt, Assign) for t in s.stmt.targets]
        if targets and name not in told and not used & set(targets):
            message = f"the number in `{targets[0].rpartition('_')[0] if targets[0].rpartition('_')[2].isdigit() else targets[0]}` is never used, and nothing else is read from `{name}`"
            yield Fault("Q003", message, found[-1].op.span, ((program.tensors[name].span, "declared here"),), "compute with it, or leave the tensor out", (), {"role": found[-1].role, "place": targets[0]}, severity="warning")
            return


_TENSORS = frozenset({"tensor", "flags"})


def _unused_mask(f: _Flow) -> Fault:
    name = next(iter(sorted(f.writes)))
    return Fault("S036", f"the mask `{name}` is never used: nothing keeps out what it is to keep out", f.site.op.span, (), f"select by it, `lm.where({name}, .., ..)`, load or store with it, `mask={name}`, or leave it out", (),
                 {"role": f.site.role, "place": name})  # fmt: skip


def _fault(program: Program, role: str, flows: list[_Flow], dead: list[_Flow], lost: _Flow, idle: list[str]) -> Fault:
    names = {n for f in dead for n in f.writes if not n.startswith("tmp")}
    last = dead[-1].site
    for f in flows:  # a wait that makes a dead product complete stands nearer to where it should have been used
        if f.site.op.id > last.op.id and any(isinstance(e, Drain) and e.engine == "wgmma" for e in effects_of(f.site.op, program)) and any(x.site.op.name == "mma" for x in dead):
            last = f.site
            break
    name = next((n for n in sorted(dead[-1].writes) if n in names), next(iter(sorted(names)), "the result"))
    what = "product" if lost.site.op.name == "mma" else "value"
    message = f"the {what} in `{name}` is never used: nothing stores it or computes a stored value from it"
    related = [(lost.site.op.span, f"`{name}` gets its {what} here")] if lost.site.op is not last.op else []
    related += [(program.tensors[n].span, "nothing writes this tensor") for n in idle[:1]]
    following = next((f.site for f in flows if f.site.op.id > last.op.id), None)
    if following is not None:
        related.append((following.op.span, "not used up to here, nor later"))
    return Fault("S036", message, last.op.span, tuple(related), "store it, or leave the work out", (), {"role": role, "place": name})

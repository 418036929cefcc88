"""Q005: asynchronous work is waited for."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.acting import acting
from cake_ir.fault import Edit, Fault, Fix
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Arrive, Commit, Drain, Effect, Issue, Wait
from cake_ir.program import Expr, Program
from cake_ir.span import Span
from cake_ir.targets import target
from cake_ir.types import TmemT
from cake_verify.analyses.sites import Site, sites
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

STANDS_IN = True

PAGE = Page(
    code="Q005",
    title="asynchronous work that nobody waits for",
    statement="A role that starts wgmma groups, bulk stores, cp.async copies or tensor-memory moves waits for them; tcgen05 work is committed to a barrier; a barrier that copies complete is "
    "waited on by somebody.",
    why="The result of work that is never waited for may be read too early or not at all, and a block must not end while a copy still reads its shared memory.",
    failing=edit(TILE, ("        lm.mma_wait(pending=0)\n", "")),
    passing=TILE,
    limits="Speaks where there is no such wait at all, and only while the safety gate is skipped because an earlier gate refuses the text: that gate decides the same (S004, S005, S025) and whether each wait is strong enough.",
    sources=("HW041", "HW063", "HW087"),
)

_WAIT = {"wgmma": "lm.mma_wait(pending=0)", "bulk": "lm.store_wait(pending=0)", "cp_async": "lm.cp_wait(pending=0)", "tmem_ld": 'lm.tmem_wait("ld")', "tmem_st": 'lm.tmem_wait("st")'}
_NEEDS = {"wgmma": "WGMMA", "tcgen05": "TCGEN05", "tmem_ld": "TCGEN05", "tmem_st": "TCGEN05", "bulk": "TMA"}
_WHAT = {"wgmma": "this MMA group", "bulk": "this bulk store", "cp_async": "this copy", "tmem_ld": "this read of tensor memory", "tmem_st": "this write of tensor memory"}


def check(program: Program) -> Iterator[Fault]:
    found = sites(program)
    issuing = acting(program).get(Issue, ())
    waited = {str(s.op.attrs["barrier"]) for s in acting(program).get(Wait, ())}
    open_ended = {s.role for s in issuing if any([isinstance(e, Issue) and e.done in _OPEN for e in effects_of(s.op, program)])}
    for role in program.roles:
        if role in open_ended:
            effects = {s.op.id: each for s in found.of_role(role) if (each := effects_of(s.op, program))}
            yield from _role(program, [s for s in found.of_role(role) if s.op.id in effects], effects)
    told: set[str] = set()
    for s in issuing:
        for e in effects_of(s.op, program):
            name = str(s.op.attrs.get("barrier"))
            if isinstance(e, Issue) and e.done == "tx" and name in program.barriers and name not in waited and name not in told:
                told.add(name)
                cons = program.barriers[name].cons
                yield Fault("Q005", f"nobody waits on `{name}`, which this copy completes", s.op.span, ((program.barriers[name].span, f"consumed by {', '.join(cons)}"),),
                            f"`{cons[0]}` waits before it reads: `lm.wait({name}, stage=s)`", (), {"barrier": name})  # fmt: skip


_OPEN = ("group", "commit")
"""How work ends that somebody has to wait for, or hand to a barrier."""


def _role(program: Program, body: list[Site], effects: dict[int, tuple[Effect, ...]]) -> Iterator[Fault]:
    open_work: dict[str, Site] = {}
    for s in body:
        for e in effects[s.op.id]:
            if isinstance(e, Issue) and e.done in _OPEN:
                open_work[e.engine] = s
            elif open_work:
                open_work.pop(_ends(program, s, e) or "", None)
    for engine, s in list(open_work.items()):
        if program.target and not target(program.target).has(_NEEDS.get(engine, "CP_ASYNC")):
            continue  # H001 says that there is no such work
        # A wait in front of the work counts where a loop brings it round again behind it.
        if any(_ends(program, o, e) == engine and _comes_round(s, o) for o in body for e in effects[o.op.id]):
            continue
        yield _fault(program, s, engine)


def _ends(program: Program, s: Site, e: Effect) -> str | None:
    """The engine whose work an effect waits for, or hands to a barrier."""
    if isinstance(e, Drain):
        return e.engine
    if isinstance(e, Commit) and e.engine != "cp_async":  # closing a group of copies waits for nothing
        return e.engine
    barrier = program.barriers.get(str(s.op.attrs.get("barrier")))
    return "cp_async" if isinstance(e, Arrive) and barrier is not None and barrier.arrive == "cp_async" else None


def _comes_round(work: Site, wait: Site) -> bool:
    return any(loop in wait.loops for loop in work.loops)


def _fault(program: Program, s: Site, engine: str) -> Fault:
    if engine == "tcgen05":
        acc = s.op.operands.get("acc") or s.op.operands.get("t")
        name = _tmem(acc) if isinstance(acc, Expr) else ""
        what = f"the {'copy to' if s.op.name == 'tmem_copy' else 'product in'} `{name}`" if name else "this tensor-core work"
        read = name and any(_tmem(e) == name for op in program.ops if op.name not in ("mma", "tmem_copy") for e in op.operands.values() if isinstance(e, Expr))
        return Fault("Q005", f"{what} is never committed" + ("" if read or not name else " and never stored"), s.op.span, _declared(program, name),
                     "commit it to a barrier that its reader waits on: `lm.commit(done, stage=d)`" + ("" if read else "; then `lm.tmem_load(..)` and store"),
                     facts={"engine": engine, "tmem": name})  # fmt: skip
    at = s.op.span
    indent = " " * (at.column - 1)
    inside = bool(s.path)
    fix = Fix((Edit(at.end(), f"\n{indent}{_WAIT[engine]}"),), "likely" if engine == "bulk" or not inside else "idea", f"add `{_WAIT[engine]}`")
    return Fault("Q005", f"{_WHAT[engine]} is never waited for", at, (), f"wait before its result is used, and before the role ends: `{_WAIT[engine]}`",
                 (fix,) if not s.targets else (), {"engine": engine, "role": s.role.name})  # fmt: skip


def _tmem(e: Expr) -> str:
    return next((str(x.attrs["tmem"]) for x in e.parts() if x.op == "tmem" and isinstance(x.type, TmemT)), "")


def _declared(program: Program, name: str) -> tuple[tuple[Span, str], ...]:
    return ((program.tmems[name].span, "declared here"),) if name in program.tmems else ()

"""Tensor memory as the machine executes it: moves to and from registers, accumulators, and operands that are read until a commit has arrived."""

from __future__ import annotations

from typing import Any

from cake_ir.derive.pairs import of_pair
from cake_ir.ops.effects import Issue
from cake_ir.program import Expr, Op
from cake_ir.types import ScalesT, TmemT
from cake_verify.analyses.plan import Plan, Step
from cake_verify.analyses.state import Found, Member, both


def tensor_operands(plan: Plan, op: Op) -> Step | None:
    """The reads of a product's operands in tensor memory; None where it has none there. Comes behind the step that issues the product."""
    index = plan.code.ops[op.id].index
    reads = []
    for name in ("a", "b", "scale_a", "scale_b"):
        e = op.operands.get(name)
        if isinstance(e, Expr) and isinstance(e.type, (TmemT, ScalesT)) and name in index:
            reads.append((index[name], plan.columns(e.type)))
    if not reads:
        return None
    acc = op.operands["acc"]
    assert isinstance(acc, Expr) and isinstance(acc.type, TmemT)
    result, at = plan.columns(acc.type), index["acc"]
    paired, copies = of_pair(plan.program, op), _copies(plan)

    def step(m: Member, v: tuple[Any, ...]) -> Any:
        unknown, later = ~m.K, ~(m.K | m.tc)
        bit = 1 << (m.clock.top - 1)
        for c, (i, atoms) in [(c, r) for c in (both(m) if paired else (m.cta,)) for r in reads]:
            region = atoms[v[i]]
            written = set(result[v[at]])
            for a in region:
                if a in written:
                    raise Found("S007", cta=c, atom=a)
                if not c.W[a]:
                    raise Found("S027", cta=c, atom=a)
                if c.W[a] & (later if c.O[a] in copies else unknown):  # a thread's copies are done before its later products begin
                    raise Found("S004", cta=c, atom=a, missing=c.W[a])
                c.R[a] |= bit
                m.world.used.add(c.O[a])
        return None

    return step


def tensor_memory(plan: Plan, op: Op, effect: Issue) -> Step:
    """Moves between tensor memory and registers: a group of the member until `lm.tmem_wait`."""
    load = effect.engine == "tmem_ld"
    touch = plan.registers[op.id]
    mask = touch.writes if load else touch.reads
    registers = mask if isinstance(mask, int) else 0
    engine, number = effect.engine, op.id
    e = op.operands["t"]
    assert isinstance(e, Expr) and isinstance(e.type, TmemT)
    atoms, at = plan.columns(e.type), plan.code.ops[op.id].index["t"]

    def step(m: Member, v: tuple[Any, ...]) -> Any:
        if not load and registers & ~m.defined:
            raise Found("S029", places=registers & ~m.defined)
        bit = m.clock.bit()
        m.tmem.append((bit, registers, engine, number))
        m.tmem_busy |= registers
        c, unknown = m.cta, ~(m.K | m.L)  # a warp reaches its own lanes only
        for a in atoms[v[at]]:
            if load:
                if not c.W[a]:
                    raise Found("S027", cta=c, atom=a)
                if c.W[a] & unknown:
                    raise Found("S004", cta=c, atom=a, missing=c.W[a])
                c.R[a] |= bit
            else:
                if (c.W[a] | c.R[a]) & unknown:
                    raise Found("S003", cta=c, atom=a, missing=(c.W[a] | c.R[a]) & unknown)
                c.W[a], c.R[a], c.O[a] = bit, 0, number
        if load:
            m.defined |= registers
        return None

    return step


def _copies(plan: Plan) -> frozenset[int]:
    """The operations that copy shared memory to tensor memory."""
    return frozenset([op.id for op in plan.program.ops if op.name == "tmem_copy"])


def copied(plan: Plan, op: Op) -> Step:
    """The columns that a copy fills. It comes behind its thread's earlier copies, and behind the operand reads of its earlier products, not behind
    their results: these, and whatever others do there, have to be over. Comes behind the step that issues the copy."""
    e = op.operands["t"]
    assert isinstance(e, Expr) and isinstance(e.type, TmemT)
    atoms, at, number, copies = plan.columns(e.type), plan.code.ops[op.id].index["t"], op.id, _copies(plan)
    paired = of_pair(plan.program, op)

    def step(m: Member, v: tuple[Any, ...]) -> Any:
        unknown, other = ~m.K, ~(m.K | m.tc)
        bit = 1 << (m.clock.top - 1)
        for c in both(m) if paired else (m.cta,):
            for a in atoms[v[at]]:
                missing = (c.W[a] & (other if c.O[a] in copies else unknown)) | (c.R[a] & other)
                if missing:
                    raise Found("S003", cta=c, atom=a, missing=missing)
                c.W[a], c.R[a], c.O[a] = bit, 0, number
        return None

    return step


def accumulator(plan: Plan, op: Op) -> Step:
    """The accumulator of a tensor-core MMA: its issuer's MMAs follow each other in order, everybody else has to have let go of it."""
    e = op.operands["acc"]
    assert isinstance(e, Expr) and isinstance(e.type, TmemT)
    atoms, at, number = plan.columns(e.type), plan.code.ops[op.id].index["acc"], op.id
    init, start = plan.code.ops[op.id].index.get("init"), op.operands.get("init")
    fresh = isinstance(start, Expr) and start.op == "const" and bool(start.attrs["value"])
    paired = of_pair(plan.program, op)

    def step(m: Member, v: tuple[Any, ...]) -> Any:
        unknown = ~(m.K | m.tc)
        keeps = not (fresh or (init is not None and v[init]))
        for c in both(m) if paired else (m.cta,):
            for a in atoms[v[at]]:
                if keeps and not c.W[a]:
                    raise Found("S027", cta=c, atom=a)
                if (c.W[a] | c.R[a]) & unknown:
                    raise Found("S003", cta=c, atom=a, missing=(c.W[a] | c.R[a]) & unknown)
                c.W[a], c.R[a], c.O[a] = 1 << (m.clock.top - 1), 0, number
        return None

    return step

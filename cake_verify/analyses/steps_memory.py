"""Memory accesses as the machine executes them: ordinary ones, and those of the copy engine and the tensor cores."""

from __future__ import annotations

from typing import Any

from cake_ir.derive.issue import hands_over, meets_to_issue
from cake_ir.derive.mma_groups import mma_groups
from cake_ir.derive.pairs import of_pair
from cake_ir.dtypes import DTYPES
from cake_ir.ops.effects import Issue
from cake_ir.program import Expr, Op
from cake_ir.types import FragT, ViewT
from cake_verify.analyses.lookups import Lookup
from cake_verify.analyses.places import Mask
from cake_verify.analyses.plan import Plan, Step, view_type
from cake_verify.analyses.state import Cta, Found, Member, both, complete, credit, join_lanes, open_epoch
from cake_verify.analyses.steps_atomic import updates

Values = tuple[Any, ...]


def read(cta: Cta, atom: int, known: int, visible: int | None, op: int) -> None:
    """Check that the last write of an atom is known, and where `visible` is given fenced; raise what is wrong."""
    w = cta.W[atom]
    if not w:
        raise Found("S027", cta=cta, atom=atom)
    if not w & known:
        raise Found("S004", cta=cta, atom=atom, missing=w)
    if visible is not None and cta.G[atom] & ~visible:
        raise Found("S006", cta=cta, atom=atom, missing=w, write=False)


def generic_read(plan: Plan, op: Op, operand: str, where: Lookup | None = None) -> Step:
    """All lanes of the member read through the generic proxy."""
    atoms = plan.lookup(op, operand) if where is None else where
    at, number = plan.code.ops[op.id].index[operand], op.id
    kind = _mapping(op, operand)

    def step(m: Member, v: Values) -> Any:
        bit = m.cur or open_epoch(m)
        c, known = m.cta, m.K
        W, R, Y = c.W, c.R, c.Y
        for a in atoms[v[at]]:
            if not W[a] & known:
                _own_or_raise(m, c, a, kind, "S004", number)
            elif Y[a] != kind:
                if Y[a] is not None and updates(Y[a]) & ~known:
                    raise Found("S004", cta=c, atom=a, missing=updates(Y[a]) & ~known)
                Y[a] = None if R[a] & ~known else kind
            R[a] |= bit
        return None

    return step


def _own_or_raise(m: Member, c: Cta, a: int, kind: Any, code: str, number: int) -> None:
    """An access of bytes that this member's own lanes touched last is safe where every lane meets only its own bytes."""
    w = c.W[a]
    if code == "S004" and not w:
        raise Found("S027", cta=c, atom=a)
    missing = (w if code == "S004" else w | c.R[a]) & ~m.K
    if not missing & ~(m.gw | m.L) and kind is not None and (c.Y[a] == kind or (code == "S003" and _same_warp(c.Y[a], kind))):
        return
    raise Found(code, cta=c, atom=a, missing=missing)


class Together(tuple[Any, ...]):
    """How a matrix load maps lanes to bytes; all lanes of a warp execute it together."""

    __slots__ = ()


def _same_warp(before: Any, now: Any) -> bool:
    """Whether each warp writes what only it has read with a matrix load, which all its lanes execute together before any goes on."""
    return isinstance(before, Together) and before[0] == now[0] and before[2] == now[2] is not None and before[2][1] == 1 and {before[1], now[1]} <= {"a", "acc"}


def _mapping(op: Op, operand: str) -> Any:
    """What decides which lane touches which byte of a rectangle; None where that is not known."""
    t = view_type(op, operand)
    x = op.operands.get("x")
    frag = op.type if isinstance(op.type, FragT) else x.type if isinstance(x, Expr) and isinstance(x.type, FragT) else None
    if frag is None or frag.form in ("rowvec", "colvec", "scalar"):
        return None
    mapping = (t, frag.form, frag.warps, frag.chunk)
    return Together(mapping) if op.name == "ldmatrix" else mapping


def generic_write(plan: Plan, op: Op, operand: str, where: Lookup | None = None) -> Step:
    """All lanes of the member write through the generic proxy."""
    atoms = plan.lookup(op, operand) if where is None else where
    at, number = plan.code.ops[op.id].index[operand], op.id
    kind = _mapping(op, operand)

    def step(m: Member, v: Values) -> Any:
        bit = m.cur or open_epoch(m)
        m.gw |= bit
        c, w = m.cta, m.world
        W, R, by, unknown = c.W, c.R, c.O, ~m.K
        for a in atoms[v[at]]:
            if (W[a] | R[a]) & unknown:
                _own_or_raise(m, c, a, kind, "S003", number)
            if R[a]:
                w.used.add(by[a])
                R[a] = 0
            W[a] = c.G[a] = bit
            by[a] = number
            c.Y[a] = kind
        w.wrote.add(number)
        return None

    return step


def copy_in(plan: Plan, op: Op, role: str) -> Step:
    """cp.async: all lanes start copies into shared memory that belong to the open group."""
    atoms = plan.lookup(op, "view")
    at, number = plan.code.ops[op.id].index["view"], op.id

    def step(m: Member, v: Values) -> Any:
        w = m.world
        bit = m.clock.bit()
        c, unknown = m.cta, ~m.K
        W, R, by = c.W, c.R, c.O
        for a in atoms[v[at]]:
            if (W[a] | R[a]) & unknown:
                raise Found("S003", cta=c, atom=a, missing=(W[a] | R[a]) & unknown)
            if R[a]:
                w.used.add(by[a])
                R[a] = 0
            W[a] = c.G[a] = bit
            by[a] = number
            c.Y[a] = None
        w.wrote.add(number)
        m.cp_open.append((bit, number))
        return None

    return step


def load_tx(plan: Plan, op: Op, role: str) -> Step:
    """An asynchronous load that completes by bytes: it writes slots of one or several CTAs and pays into their barriers."""
    share = plan.share(op, role)
    b, stages = share.barrier, share.stages
    t = view_type(op, "view")
    index = plan.code.ops[op.id].index
    at, slot, number = index["view"], index.get("stage"), op.id
    coords = index.get("coords", 0)
    group = plan.set_of[op.id]
    total, first = group.bytes, group.loads[0].op.id
    key = (b, first)
    axis = op.attrs.get("multicast")
    if axis and plan.ranks > 1:
        receivers = plan.multicast(str(axis))
        parts = len(receivers[0])
        rows = t.rows // parts if t.rank > 1 else t.rows
        slices = tuple(plan.lookup(op, "view", row=i * rows, rows=rows) for i in range(parts)) if t.rank > 1 else tuple(
            plan.lookup(op, "view", col=i * (t.cols // parts), cols=t.cols // parts) for i in range(parts))  # fmt: skip
    else:
        receivers, parts, slices = tuple((r,) for r in range(plan.ranks)), 1, (plan.lookup(op, "view"),)
    share_bytes = t.rows * t.cols * DTYPES[t.dtype].bits // 8 // parts
    landings = plan.landings(str(op.attrs["barrier"]))
    meets, whole = hands_over(op) or (number == first and meets_to_issue(plan.program, role)), slices[0]

    def alone(m: Member, v: Values) -> Any:
        """The same as `step` where the copy stays in its CTA, as most do."""
        n = 0 if slot is None else v[slot]
        if n < 0:
            raise Found("S031", slot=n)
        if meets:
            join_lanes(m)
        w, c = m.world, m.cta
        known, bar = m.K | m.E, c.bars[b][n % stages]
        if m.armed.get(key) == n:
            region = whole[v[at]]
            if bar.token & ~known:
                credit(bar, known)
        else:
            m.armed[key] = n
            if not bar.pend:
                raise Found("S022", bar=bar, phase=bar.n, units=1)
            if bar.token & ~known:
                credit(bar, known)
            bar.cm |= m.cur or open_epoch(m)
            bar.pend -= 1
            bar.tx += total
            m.cur = m.wcur = 0
            region = whole[v[at]]
        bit = bar.cb
        if not bit:
            clock = m.clock
            bit = bar.cb = 1 << clock.top
            clock.top += 1
        bar.loaded |= 1 << bar.n
        W, R, G = c.W, c.R, c.G
        for a in region:
            reads = R[a]
            if (W[a] | reads) & ~known:
                raise Found("S003", cta=c, atom=a, missing=(W[a] | reads) & ~known)
            if G[a]:
                if G[a] & ~m.P:
                    raise Found("S006", cta=c, atom=a, missing=G[a], write=True)
                G[a] = 0
            if reads:
                w.used.add(c.O[a])
                R[a] = 0
            W[a] = bit
            c.O[a] = number
            c.Y[a] = None
        bar.ak |= known
        left = bar.tx = bar.tx - share_bytes
        if not left and not bar.pend:
            bar.coords = {}
            complete(bar, m.clock)
        w.wrote.add(number)
        return None

    if plan.ranks == 1:
        return alone

    def step(m: Member, v: Values) -> Any:
        n = 0 if slot is None else v[slot]
        if n < 0:
            raise Found("S031", slot=n)
        if meets:
            join_lanes(m)
        w, mine, s = m.world, m.cta.rank, n % stages
        known = m.K | m.E
        if m.armed.get(key) != n:
            m.armed[key] = n
            bar = w.ctas[landings[mine]].bars[b][s]
            if not bar.pend:
                raise Found("S022", bar=bar, phase=bar.n, units=1)
            if bar.token & ~known:
                credit(bar, known)
            bit = m.cur or open_epoch(m)
            bar.pend -= 1
            bar.tx += total
            bar.cm |= bit
            m.cur = m.wcur = 0
        ranks = receivers[mine]
        region = slices[ranks.index(mine)][v[at]]
        unknown, unseen = ~known, ~m.P
        for r in ranks:
            c, bar = w.ctas[r], w.ctas[landings[r]].bars[b][s]
            if bar.token & ~known:
                credit(bar, known)
            bit = bar.cb
            if not bit:
                bit = bar.cb = m.clock.bit()
            bar.loaded |= 1 << bar.n
            if parts > 1:
                was = bar.coords.setdefault(number, v[coords])
                if was != v[coords]:
                    raise Found("S030", bar=bar, coords=v[coords], other=was)
            W, R, G, by = c.W, c.R, c.G, c.O
            for a in region:
                if (W[a] | R[a]) & unknown:
                    raise Found("S003", cta=c, atom=a, missing=(W[a] | R[a]) & unknown)
                if G[a] & unseen:
                    raise Found("S006", cta=c, atom=a, missing=G[a], write=True)
                if R[a]:
                    w.used.add(by[a])
                    R[a] = 0
                W[a], G[a], by[a] = bit, 0, number
                c.Y[a] = None
            bar.ak |= known
            bar.tx -= share_bytes
            if not bar.pend and not bar.tx:
                bar.coords = {}
                complete(bar, m.clock)
        w.wrote.add(number)
        return None

    return step


def store_bulk(plan: Plan, op: Op) -> Step:
    """A bulk store: the elected thread lets the copy engine read the view; one call is one group."""
    atoms = plan.lookup(op, "view")
    at, number = plan.code.ops[op.id].index["view"], op.id

    def step(m: Member, v: Values) -> Any:
        bit = m.clock.bit()
        c, known, unseen = m.cta, m.K | m.E, ~m.P
        W, G, R = c.W, c.G, c.R
        for a in atoms[v[at]]:
            if not W[a] & known or G[a] & unseen:
                read(c, a, known, m.P, number)
            R[a] |= bit
        m.bulk.append((bit, number))
        return None

    return step


def mma_async(plan: Plan, op: Op, effect: Issue) -> Step:
    """A wgmma group, a tensor-core MMA or a copy to tensor memory: shared memory is read through the async proxy until it is retired."""
    index = plan.code.ops[op.id].index
    views = [(index[n], plan.lookup(op, n)) for n in ("a", "b", "view") if n in index and isinstance(op.operands[n].type, ViewT)]  # type: ignore[union-attr]  # an operand at an index is an expression
    number = op.id
    touch = plan.registers[op.id]
    init, start = index.get("init"), op.operands.get("init")
    fresh = isinstance(start, Expr) and start.op == "const" and bool(start.attrs["value"])
    reads, acc, held = touch.reads, touch.acc, touch.held
    wgmma = effect.engine == "wgmma"
    joins = number not in mma_groups(plan.program).opens
    paired = of_pair(plan.program, op)

    if wgmma and isinstance(reads, int) and isinstance(acc, int) and isinstance(held, int) and not paired:
        return _group(number, views, (reads, acc, held), index.get("init"), fresh, joins)

    def step(m: Member, v: Values) -> Any:
        clock = m.clock
        bit = 1 << clock.top
        clock.top += 1
        if wgmma:
            r, d, h = _now(reads, v), _now(acc, v), _now(held, v)
            if r & m.acc:
                raise Found("S005", places=r & m.acc, write=False)
            if d & m.held:
                raise Found("S005", places=d & m.held, write=True)
            need = r if fresh or (init is not None and v[init]) else r | d
            if need & ~m.defined:
                raise Found("S029", places=need & ~m.defined)
            m.defined |= d
            # all warps have issued once the group retires, so all have returned from what they waited for before
            if joins and m.mma:
                before = m.mma.pop()
                m.mma.append((before[0] | bit | m.waited, before[1] | d, before[2] | h, number))
            else:
                m.mma.append((bit | m.waited, d, h, number))
            m.wcur = 0
            m.acc |= d
            m.held |= h
        else:
            m.tc |= bit
            m.tc_open.append((bit, number))
        known, unseen = m.K, ~m.P
        for c in both(m) if paired else (m.cta,):
            W, G, R = c.W, c.G, c.R
            for i, atoms in views:
                for a in atoms[v[i]]:
                    if not W[a] & known or G[a] & unseen:
                        read(c, a, known, m.P, number)
                    R[a] |= bit
        return None

    return step


def _group(number: int, views: list[tuple[int, Lookup]], registers: tuple[int, int, int], init: int | None, fresh: bool, joins: bool) -> Step:
    """A wgmma whose registers (those that it reads, its accumulator, what it holds) are the same whenever it is executed, as they nearly always are."""
    reads, acc, held = registers

    def step(m: Member, v: Values) -> Any:
        clock = m.clock
        bit = 1 << clock.top
        clock.top += 1
        if reads & m.acc:
            raise Found("S005", places=reads & m.acc, write=False)
        if acc & m.held:
            raise Found("S005", places=acc & m.held, write=True)
        need = reads if fresh or (init is not None and v[init]) else reads | acc
        if need & ~m.defined:
            raise Found("S029", places=need & ~m.defined)
        m.defined |= acc
        groups = m.mma
        if joins and groups:
            before = groups[-1]
            groups[-1] = (before[0] | bit | m.waited, before[1] | acc, before[2] | held, number)
        else:
            groups.append((bit | m.waited, acc, held, number))
        m.wcur = 0
        m.acc |= acc
        m.held |= held
        c, known, unseen = m.cta, m.K, ~m.P
        W, G, R = c.W, c.G, c.R
        for i, atoms in views:
            for a in atoms[v[i]]:
                if not W[a] & known or G[a] & unseen:
                    read(c, a, known, m.P, number)
                R[a] |= bit
        return None

    return step


def _now(mask: Mask, v: Values) -> int:
    """The registers that an event names: where an element of an array is chosen at run time, by its values."""
    return mask(v) if callable(mask) else mask

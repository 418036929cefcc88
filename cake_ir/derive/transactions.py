"""Byte counts of asynchronous loads: which of them share a phase, what they bring, and where the expectation is armed.

All loads of one role that name the same barrier and the same slot value form a set. One thread arrives and announces the bytes of the
whole set in front of the first load, so set and bytes have to be the same on every path.
"""

from __future__ import annotations

from cake_ir.derive.acting import tx_loads
from cake_ir.derive.structure import Site
from cake_ir.dtypes import DTYPES
from cake_ir.fact import fact
from cake_ir.fault import Fault
from cake_ir.program import Assign, Expr, For, If, Op, Program, Stmt, op_of
from cake_ir.record import record
from cake_ir.types import ViewT


@record(eq=False)
class TxSet:
    """The loads of one phase by one role, in text order; `bytes` is what each receiving CTA's barrier expects, multicast slices whole."""

    barrier: str
    role: str
    loads: tuple[Site, ...]
    bytes: int


def load_bytes(op: Op) -> int:
    """Bytes that one load brings to a CTA: the whole rectangle, also where a multicast cuts it into slices."""
    t = op.operands["view"].type  # type: ignore[union-attr]  # asynchronous loads have a view
    assert isinstance(t, ViewT)
    return t.rows * t.cols * DTYPES[t.dtype].bits // 8


def _slot_key(e: object, site: Site) -> object:
    """What tells slot values apart: the binding of a variable, the text of anything else."""
    if not isinstance(e, Expr):
        return None
    if e.op == "var":
        return ("var", e.attrs["name"])
    if e.op == "const":
        return ("const", e.attrs["value"])
    return (e.op, *(_slot_key(a, site) for a in e.args), *sorted((k, str(v)) for k, v in e.attrs.items()))


def _assigns(body: tuple[Stmt, ...], name: object) -> bool:
    return any(isinstance(s, Assign) and name in s.targets for s in body)


def _home(program: Program, site: Site, key: object) -> tuple[Stmt, ...]:
    """The statement list in which the slot value is bound: one pass through it is one phase."""
    name = key[1] if isinstance(key, tuple) and key[0] == "var" else None
    blocks = [b for b in program.body if b.role == site.role]
    block = blocks[0] if len(blocks) == 1 else next(b for b in blocks if _within(b.body, site.op))
    if name is not None:
        for s, arm in reversed(site.around):
            inner = s.body if isinstance(s, For) else s.then if arm else s.orelse
            if _assigns(inner, name) or (isinstance(s, For) and s.var == name):
                return inner
        return block.body
    if site.around:
        s, arm = site.around[-1]
        return s.body if isinstance(s, For) else s.then if arm else s.orelse
    return block.body


def _binding(home: tuple[Stmt, ...], site: Site, stage: object) -> int:
    """Which binding of its slot a load reads: how often one pass has bound a name in the slot, or stepped the ring that it is on, in front of the load."""
    if not isinstance(stage, Expr):
        return 0
    leaves = (stage,) if stage.op in ("var", "at") else stage.parts()
    count, around = 0, [x for x, _ in site.around]
    for s in home:
        if s is site.stmt or s in around:
            break
        if isinstance(s, Assign):
            for e in leaves:
                if e.op == "var":
                    count += e.attrs["name"] in s.targets
                elif e.op == "at" and isinstance(s.value, Expr) and s.value.op == "step":
                    count += s.value.attrs["ring"] == e.attrs["ring"]
    return count


def _within(body: tuple[Stmt, ...], op: Op) -> bool:
    for s in body:
        if op_of(s) is op:
            return True
        if isinstance(s, For) and _within(s.body, op):
            return True
        if isinstance(s, If) and (_within(s.then, op) or _within(s.orelse, op)):
            return True
    return False


class _Uneven(Exception):
    def __init__(self, stmt: For | If, one: int | None, other: int | None) -> None:
        self.stmt, self.one, self.other = stmt, one, other


def _path_bytes(body: tuple[Stmt, ...], ids: dict[int, int]) -> int:
    total = 0
    for s in body:
        op = op_of(s)
        if op is not None:
            total += ids.get(op.id, 0)
        elif isinstance(s, For):
            once = _path_bytes(s.body, ids)
            if once:
                if s.lo is None or s.hi is None or s.lo.op != "const" or s.hi.op != "const":
                    raise _Uneven(s, once, None)
                total += once * max(0, int(s.hi.attrs["value"]) - int(s.lo.attrs["value"]))  # type: ignore[arg-type]  # trip counts are integers
        elif isinstance(s, If):
            a, b = _path_bytes(s.then, ids), _path_bytes(s.orelse, ids)
            if a != b and a and b:
                raise _Uneven(s, a, b)
            if a != b and sum(ids.values()) != max(a, b):
                raise _Uneven(s, a, b)
            total += max(a, b)
    return total


@fact
def transactions(program: Program) -> tuple[tuple[TxSet, ...], tuple[Fault, ...]]:
    """Every transaction set, and faults where the bytes of a phase depend on the path taken."""
    groups: dict[tuple[str, str, object, int, int], list[Site]] = {}
    homes: dict[int, tuple[Stmt, ...]] = {}
    for site in tx_loads(program).values():
        key = _slot_key(site.op.operands.get("stage"), site)
        home = _home(program, site, key)
        homes[id(home)] = home
        groups.setdefault((str(site.op.attrs["barrier"]), site.role, key, id(home), _binding(home, site, site.op.operands.get("stage"))), []).append(site)
    sets, faults = [], []
    for (barrier, role, _, home_id, _), loads in groups.items():
        ids = {s.op.id: load_bytes(s.op) for s in loads}
        home = homes[home_id]
        try:
            total = sum(ids.values()) if all([s.stmt in home for s in loads]) else _path_bytes(home, ids)  # mostly nothing is between a slot and its loads
        except _Uneven as uneven:
            total = sum(ids.values())
            faults.append(_uneven(barrier, loads, uneven))
        sets.append(TxSet(barrier, role, tuple(loads), total))
    return tuple(sets), tuple(faults)


def _uneven(barrier: str, loads: list[Site], uneven: _Uneven) -> Fault:
    related = tuple((s.op.span, f"brings {load_bytes(s.op)} bytes to `{barrier}`") for s in loads)
    if isinstance(uneven.stmt, For):
        message = f"the bytes that a phase of `{barrier}` expects depend on a trip count that is not constant"
        return Fault("S018", message, uneven.stmt.head, related, help="step the ring inside the loop, one slot a load, or make the trip count a tunable",
                     facts={"barrier": barrier, "bytes_per_iteration": uneven.one})  # fmt: skip
    message = f"a phase of `{barrier}` gets {uneven.one} bytes on one path and {uneven.other} on the other, it can expect only one number"
    return Fault("S018", message, uneven.stmt.head, related, help="issue the same loads on both paths, or put each path's loads on a barrier of their own",
                 facts={"barrier": barrier, "expected": uneven.one, "found": uneven.other})  # fmt: skip

"""How many asynchronous MMA instructions the schedule asks for, by instruction shape: what the machine code is counted against.

The assembler has merged neighbouring wgmma with equal operands (one product lost, no message), so a build is believed only where the
machine code holds as many as were printed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import gcd

from cake_backend.cuda.wgmma import K_OF
from cake_ir.program import Expr, For, If, Op, Program, Stmt, op_of
from cake_ir.span import Span
from cake_ir.types import FragT, ViewT


@dataclass(slots=True)
class Asked:
    """Instructions of one shape: the fewest that any compilation keeps, what divides every count, and the operations that ask for them."""

    least: int = 0
    unit: int = 0
    spans: list[Span] = field(default_factory=list)


def asked_mmas(program: Program) -> dict[str, Asked]:
    """By shape such as "64x256x16".

    A loop counts once (copies that the compiler makes of its body come whole), an unrolled one as often as it runs. Of a branch counts the arm
    with fewer: equal arms may become one, and a condition may be known to the compiler.
    """
    found: dict[str, Asked] = {}
    for block in program.body:
        for shape, n in _least(block.body, found).items():
            found[shape].least += n
    return found


def _least(body: Iterable[Stmt], found: dict[str, Asked]) -> dict[str, int]:
    out: dict[str, int] = {}
    for s in body:
        if isinstance(s, For):
            inside = _least(s.body, found)
            times = _trips(s)
            counts = {shape: n * times for shape, n in inside.items()}
        elif isinstance(s, If):
            then, orelse = _least(s.then, found), _least(s.orelse, found)
            counts = {shape: min(then.get(shape, 0), orelse.get(shape, 0)) for shape in then | orelse}
        else:
            counts = _one(op_of(s), found)
        for shape, n in counts.items():
            out[shape] = out.get(shape, 0) + n
    return out


def _trips(s: For) -> int:
    """How often a body is certain to be printed: as often as it runs where it is unrolled, once where it may run, never where it cannot."""
    ends = [e.attrs["value"] if isinstance(e, Expr) and e.op == "const" else None for e in (s.lo, s.hi)]
    if isinstance(ends[0], int) and isinstance(ends[1], int):
        runs = max(0, ends[1] - ends[0])
        return runs if s.kind == "static" else min(runs, 1)
    return 1


def _one(op: Op | None, found: dict[str, Asked]) -> dict[str, int]:
    if op is None or op.attrs.get("kind") != "wgmma":
        return {}
    acc, a, b = (e.type if isinstance(e, Expr) else None for e in (op.operands[n] for n in ("acc", "a", "b")))
    if not isinstance(acc, FragT) or not isinstance(a, FragT | ViewT) or not isinstance(b, ViewT) or a.dtype not in K_OF:
        return {}
    k = K_OF[a.dtype]
    count = acc.rows // 64 * (b.shape[1] // k)
    asked = found.setdefault(f"64x{acc.cols}x{k}", Asked())
    asked.unit = gcd(asked.unit, count)
    asked.spans.append(op.span)
    return {f"64x{acc.cols}x{k}": count}

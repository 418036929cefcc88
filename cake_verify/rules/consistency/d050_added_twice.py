"""D050: what a sum starts with is not added to it again by the first round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from cake_ir.fault import Fault
from cake_ir.program import Assign, Do, Expr, For, If, Op, Program, Stmt, statements
from cake_verify.analyses import edits
from cake_verify.analyses.fixed_scalars import in_place
from cake_verify.analyses.running_sums import EXPONENTIALS
from cake_verify.analyses.sites import sites
from cake_verify.analyses.tensors import written_tensors
from cake_verify.analyses.trips import canonical, linear, resolver_of, spoken, written
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.consistency.d040_stands_still import MODELS
from cake_verify.rules.examples import edit

_SUMS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def sums(lm, X: LM.gmem2d[LM.f32, "R", "N"], Y: LM.gmem2d[LM.f32, "R", 256], R: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N % 256 == 0 and N > 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            total = lm.load(X, coords=(0, t.r), shape=(256,))
            for p in lm.range(1, N // 256):
                total = total + lm.load(X, coords=(p * 256, t.r), shape=(256,))
            lm.store(Y, total, coords=(0, t.r))
'''

PAGE = Page(
    code="D050",
    title="a part that a sum takes twice",
    statement="A running sum that starts with the part of a tensor or view that was read in front of a loop does not read that part again in the loop's first round.",
    why="The first part is counted twice. For a maximum that makes no difference, which is why the loop looks right beside one.",
    failing=edit(_SUMS, ("lm.range(1, N // 256)", "lm.range(0, N // 256)")),
    passing=_SUMS,
    limits="Decided where both reads differ in nothing but the loop's variable, stand in one body of statements with their sum, and the sum is `x + ..` of itself, or of itself by an exponential. "
    "What is multiplied by zero in front of the loop, or averaged in it, is left alone.",
)

_READS = frozenset({"load", "ld"})
_MEETS = frozenset({"sync", "wait", "step", "cp_wait"})


def check(program: Program) -> Iterator[Fault]:
    roles = _read_twice(program)
    for block in program.body if roles else ():
        if block.role in roles:
            yield from _body(program, block.role, block.body)


def _read_twice(program: Program) -> set[str]:
    """The roles that read a tensor or view in a loop of numbers and, in the same shape, outside of that loop too."""
    reads = sites(program).of(*_READS)
    inside = {(s.role.name, _shape(s.op)) for s in reads if s.loops and s.loops[-1].kind != "tiles"} if len(reads) > 1 else set()
    count = Counter((s.role.name, _shape(s.op)) for s in reads) if inside else {}
    return {key[0] for key in inside if count[key] > 1}


def _shape(op: Op) -> tuple[object, ...]:
    return op.name, op.attrs.get("tensor"), op.attrs.get("shape"), str(op.type) if "view" in op.operands else ""


def _body(program: Program, role: str, body: tuple[Stmt, ...]) -> Iterator[Fault]:
    """The loops of a body, with what was read in front of them there."""
    holds: dict[str, set[int]] = {}
    """By name the reads that its value is made from."""
    reads: dict[int, Op] = {}
    for s in body:
        if isinstance(s, If):
            yield from _body(program, role, s.then)
            yield from _body(program, role, s.orelse)
        elif isinstance(s, For):
            if reads and s.kind != "tiles" and s.lo is not None:
                fault = _loop(program, role, s, holds, reads)
                if fault is not None:
                    yield fault
            yield from _body(program, role, s.body)
        elif isinstance(s, Assign):
            _assigned(s, holds, reads)
        if isinstance(s, Do) and (s.op.name in _MEETS or "view" in s.op.operands):
            reads = {k: op for k, op in reads.items() if "tensor" in op.attrs}  # shared memory may hold something else from here on


def _assigned(s: Assign, holds: dict[str, set[int]], reads: dict[int, Op]) -> None:
    """Follow what a statement binds."""
    if isinstance(s.value, Op) and s.value.name in _READS:
        reads[s.value.id] = s.value
        made = {s.value.id}
    elif reads:
        made = {r for e in _values(s) for name in _added(e) for r in holds.get(name, ())}
    else:
        return
    for name in s.targets:
        holds[name] = made


def _values(s: Assign) -> Iterator[Expr]:
    operands: Iterable[object] = s.value.operands.values() if isinstance(s.value, Op) else (s.value,)
    return (e for e in operands if isinstance(e, Expr))


def _added(e: Expr) -> frozenset[str]:
    """The names of which a value has something: nothing of what is multiplied by zero, or a model."""
    if e.op == "var":
        return frozenset((str(e.attrs["name"]),))
    made: dict[int, frozenset[str]] = {}
    for n in e.parts():  # operands first
        if n.op == "var":
            made[id(n)] = frozenset((str(n.attrs["name"]),))
        elif n.op in MODELS or (n.op == "mul" and any(a.op == "const" and not a.attrs["value"] for a in n.args)):
            made[id(n)] = frozenset()
        else:
            made[id(n)] = frozenset[str]().union(*[made[id(a)] for a in n.args])
    return made[id(e)]


def _loop(program: Program, role: str, loop: For, holds: dict[str, set[int]], reads: dict[int, Op]) -> Fault | None:
    """The sum that the first round of a loop adds again to what it holds."""
    bound = {t for s in statements(loop.body) if isinstance(s, Assign) for t in s.targets}
    inner: dict[str, set[int]] = {}
    by: dict[int, Op] = {}
    for s in loop.body:
        if not isinstance(s, Assign):
            continue
        value = s.value.operands.get("value") if isinstance(s.value, Op) else s.value
        if isinstance(s.value, Op) and s.value.name in _READS:
            same = {k for k, op in reads.items() if _same(program, role, op, s.value, loop, bound)}
            by.update(dict.fromkeys(same, s.value))
            made = same
        else:
            for name in s.targets if isinstance(value, Expr) and value.op == "add" and by else ():
                twice = _twice(value, name, inner, holds) if isinstance(value, Expr) else None
                if twice is not None:
                    return _fault(program, role, loop, s, reads[twice], by[twice])
            made = {r for e in _values(s) for name in _added(e) for r in inner.get(name, ())}
        for name in s.targets:
            inner[name] = made
    return None


def _twice(e: Expr, name: str, inner: dict[str, set[int]], holds: dict[str, set[int]]) -> int | None:
    """The read that `name` holds and that `e` adds to it."""
    for own, other in (e.args, e.args[::-1]):
        kept = own.op == "var" and own.attrs["name"] == name
        scaled = own.op == "mul" and any(a.op == "var" and a.attrs["name"] == name for a in own.args) and any(n.op in EXPONENTIALS for n in own.parts())
        names = _added(other)
        if (kept or scaled) and name not in names:
            both = {r for n in names for r in inner.get(n, ())} & holds.get(name, set())
            if both:
                return min(both)
    return None


def _same(program: Program, role: str, before: Op, inside: Op, loop: For, bound: set[str]) -> bool:
    """Whether the first round of a loop reads what was read in front of it, and later ones other parts."""
    if before.name != inside.name or before.attrs.get("tensor") != inside.attrs.get("tensor") or before.attrs.get("shape") != inside.attrs.get("shape"):
        return False
    tensor = inside.attrs.get("tensor")
    if isinstance(tensor, str) and tensor in written_tensors(program):
        return False
    assert loop.lo is not None  # asked by the caller
    resolve, moves = resolver_of(program, role), False
    lo = resolve(loop.lo)
    for key in ("view", "coords", "i"):
        mine, theirs = (x if isinstance(x, tuple) else (x,) for x in (inside.operands.get(key), before.operands.get(key)))
        if len(mine) != len(theirs):
            return False
        for a, b in zip(mine, theirs, strict=True):
            if not isinstance(a, Expr) or not isinstance(b, Expr):
                if a is not b:
                    return False
                continue
            a, b = resolve(a), resolve(b)
            names = {str(n.attrs["name"]) for n in a.parts() if n.op == "var"}
            if names & bound:
                return False
            moves |= loop.var in names
            if not _alike(in_place(a, loop.var, lo), b, key == "view"):
                return False
    return moves


def _alike(a: Expr, b: Expr, view: bool) -> bool:
    """Whether two places are one: numbers that come to the same, and parts of one view that start there."""
    if not view:
        return linear(a) == linear(b)
    if a.op in ("rows", "cols") and a.op == b.op and a.attrs == b.attrs:
        return linear(a.args[1]) == linear(b.args[1]) and _alike(a.args[0], b.args[0], True)
    return canonical(a) == canonical(b)


def _fault(program: Program, role: str, loop: For, s: Assign, before: Op, inside: Op) -> Fault:
    assert loop.lo is not None  # asked by the caller of `_loop`
    name, var = written(s.targets[0]), written(loop.var)
    at = s.value.span if isinstance(s.value, Op) else s.span
    message = f"`{name}` starts with what {call(before)} has read, and the round `{var}` = {spoken(loop.lo)} adds it once more"
    first, end = loop.lo, loop.hi
    number = first.attrs["value"] if first.op == "const" else None
    later = str(number + 1) if isinstance(number, int) else f"{spoken(first)} + 1"
    fixes = (edits.replace(first.span, f"lm.{'static_range' if loop.kind == 'static' else 'range'}({later}, {spoken(end)})"),) if isinstance(number, int) and end is not None and first.span.line else ()
    return Fault("D050", message, loop.head, ((before.span, "read in front of the loop"), (inside.span, "and by its first round"), (at, "added here")), f"let the loop begin at {later}, or the sum at zero", fixes,
                 {"name": name, "role": role})  # fmt: skip

"""D042: a sum of no terms is not divided by."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Assign, Expr, For, If, Op, Program, Stmt, op_of, statements
from cake_verify.analyses import ranges
from cake_verify.analyses.positions import TooMany, arguments, around, declared_values, parameters, positions
from cake_verify.analyses.running_offsets import prefix_tensors
from cake_verify.analyses.runs import defined
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import resolver_of
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_MEANS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def means(lm, X: LM.gmem3d[LM.f32, "B", "T", 128], W: LM.gmem2d[LM.f32, "B", "T"], LEN: LM.gmem1d[LM.i32, "B"].const, Y: LM.gmem2d[LM.f32, "B", 128], B: LM.i32, T: LM.i32):
    lm.launch(grid="tiles")
    lm.assume_values(LEN, 0, T + 1)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            total = lm.frag(shape=(128,), dtype=lm.f32, form="vec", init=0.0)
            weight = lm.frag(shape=(128,), dtype=lm.f32, form="vec", init=0.0)
            for i in lm.range(lm.ld(LEN, t.b)):
                x = lm.load(X, coords=(0, i, t.b), shape=(128,))
                e = lm.exp2(x)
                total = total + e * x
                weight = weight + e
            lm.store(Y, lm.where(weight > 0.0, total * lm.rcp(weight), 0.0), coords=(0, t.b))
'''

PAGE = Page(
    code="D042",
    title="a division by a sum that may be empty",
    statement="What starts from zero and is added to in a loop is only divided by, or a logarithm taken of it, where the loop has rounds or a choice or a branch asks for it.",
    why="A sequence of length 0, or a split that begins behind the end, leaves the sum at 0: its reciprocal is infinite, and zero times that is not a number in every element of a row.",
    failing=edit(_MEANS, ("lm.where(weight > 0.0, total * lm.rcp(weight), 0.0)", "total * lm.rcp(weight)")),
    passing=_MEANS,
    limits="Decided for loops in the body in which the sum starts and is divided by, with bounds in which one number is read, or two neighbouring offsets that decide nothing else, within what `lm.assume_values` says of it; tried on small arguments that keep every `lm.assume`. A choice (`lm.where`) that depends on the sum, on another thing that the loop changes or on what its bounds are made of counts as one that is right, also where it comes behind the division; a branch counts where it is not taken without rounds, and so does a maximum that starts at minus infinity plus a logarithm: minus infinity is the logarithm of no exponentials. Of loops between two offsets a warning, since nothing declares that offsets grow.",
)

_KEEPING = frozenset({"store", "tma_store", "bulk_store", "tma_reduce", "atomic", "send"})
_DEPTH = 4
_DIVIDING = frozenset({"rcp", "div", "log2", "log", "rsqrt"})


def check(program: Program) -> Iterator[Fault]:
    if _DIVIDING.isdisjoint(mentions(program)) or not sites(program).of("ld"):
        return
    for block in program.body:
        if any(s.op.name == "ld" for s in sites(program).of_role(block.role)):
            yield from _body(program, block.role, block.body)


def _body(program: Program, role: str, body: tuple[Stmt, ...]) -> Iterator[Fault]:
    zeros: set[str] = set()
    empty: dict[str, For] = {}
    """Sums that a loop without rounds would leave at zero, with the loop."""
    for s in body:
        if isinstance(s, For):
            yield from _body(program, role, s.body)
            sums = [name for name in zeros if _added(s, name)] if s.kind == "range" else []
            empty.update(dict.fromkeys(sums, s))
        elif isinstance(s, If):
            zeros -= {t for x in statements((*s.then, *s.orelse)) if isinstance(x, Assign) for t in x.targets}  # a first round by itself may have added to them
            if not empty:
                yield from _body(program, role, s.then)
                yield from _body(program, role, s.orelse)
                continue
            for inner in (*s.then, *s.orelse):
                op = op_of(inner)
                found = _divided(program, role, op, empty) if op is not None else None
                if found is not None:
                    yield found
                    return
                for name in inner.targets if isinstance(inner, Assign) else ():
                    empty.pop(name, None)
        else:
            op = op_of(s)
            if op is None:
                continue
            found = _divided(program, role, op, empty) if empty else None
            if found is not None:
                yield found
                return
            value = op.operands.get("value")
            for name in s.targets if isinstance(s, Assign) else ():
                if not (isinstance(value, Expr) and value.op == "finish" and value.args[0].attrs.get("name") == name):
                    empty.pop(name, None)
                zeros.discard(name)
                if isinstance(value, Expr) and value.op in ("rowvec", "colvec", "frag") and value.attrs.get("init") == 0:
                    zeros.add(name)


def _added(loop: For, name: str) -> bool:
    """Whether a loop's own body adds to a place."""
    for s in loop.body:
        value = s.value.operands.get("value") if isinstance(s, Assign) and name in s.targets and isinstance(s.value, Op) else None
        if isinstance(value, Expr):
            return value.op == "add" and any(n.op == "var" and n.attrs["name"] == name for n in value.parts())
    return False


def _divided(program: Program, role: str, op: Op, empty: dict[str, For]) -> Fault | None:
    """The first division in an operation by a sum that is empty for some arguments; sums that never are go out of `empty`."""
    site = next(s for s in sites(program).of_role(role) if s.op is op)
    for e in (op.operands.get("value"), op.operands.get("x")):
        if isinstance(e, Expr) and _of_nothing(program, role, e, empty):
            continue
        left = dict(empty)
        while isinstance(e, Expr) and (at := _unasked(program, role, e, left, set())) is not None:
            name, where = at
            loop = empty[name]
            given, declared = _no_rounds(program, site, loop)
            if not given or _asked_later(program, site, left):
                left.pop(name)
                if not given and not site.branches():
                    del empty[name]
                continue
            span = where.span if where.span.line else op.span
            return Fault("D042", f"`{name}` may still be 0 here: the loop that adds to it has no rounds for {given}", span, ((loop.head, f"adds to `{name}`"),),
                         f"choose what an empty sum gives: `lm.where({name} > 0.0, .., 0.0)`", (), {"sum": name}, severity="error" if declared else "warning")  # fmt: skip
    return None


def _asked_later(program: Program, site: Site, empty: dict[str, For]) -> bool:
    """Whether what an operation makes is only read in arms of choices that ask: `inv = lm.rcp(total)`, then `lm.where(total > 0.0, x * inv, 0.0)`."""
    role, names = site.role.name, set(site.targets)
    read = [e for s in sites(program).of_role(role) if s is not site for o in s.op.operands.values() for e in (o if isinstance(o, tuple) else (o,)) if isinstance(e, Expr)]
    reading = [e for e in read if any(n.op == "var" and n.attrs["name"] in names for n in e.parts())]
    return bool(names and reading) and not any(_bare_read(program, role, e, names, empty) for e in reading)


def _bare_read(program: Program, role: str, e: Expr, names: set[str], empty: dict[str, For]) -> bool:
    """Whether an expression reads a name outside of every choice that asks."""
    if e.op == "var":
        return e.attrs["name"] in names
    if e.op in ("where", "select") and _asks(program, role, e.args[0], empty):
        return _bare_read(program, role, e.args[0], names, empty)
    return any(_bare_read(program, role, a, names, empty) for a in e.args)


def _asks(program: Program, role: str, cond: Expr, empty: dict[str, For]) -> bool:
    """Whether a condition depends on what tells that a loop has had no rounds: a name that it changes, or its bounds."""
    resolve = resolver_of(program, role)
    known = {t for loop in empty.values() for s in sites(program).of_role(role) if any(x is loop for x in s.loops) for t in s.targets}
    bounds = [e for loop in empty.values() for e in (loop.lo, loop.hi) if e is not None]
    tables = {n.attrs["tensor"] for e in bounds for n in resolve(e).parts() if n.op == "ld"}
    for n in _followed(program, role, cond, _DEPTH):
        if n.op == "var" and n.attrs["name"] in known:
            return True
        if n.op == "ld" and n.attrs["tensor"] in tables:
            return True
    return any(n.op == "ld" and n.attrs["tensor"] in tables for n in resolve(cond).parts())


def _followed(program: Program, role: str, e: Expr, depth: int) -> Iterator[Expr]:
    """The parts of an expression, and of what names in it are bound to once."""
    for n in e.parts():
        yield n
        if n.op == "var" and depth and (made := defined(program, role, n)) is not n:
            yield from _followed(program, role, made, depth - 1)


def _of_nothing(program: Program, role: str, e: Expr, empty: dict[str, For]) -> bool:
    """Whether a value is a maximum that starts at minus infinity plus the logarithm of an empty sum: minus infinity, the logarithm of no exponentials at all."""
    e = _bare(e)
    if e.op != "add":
        return False
    for most, log in (e.args, e.args[::-1]):
        most, log = _bare(most), _bare(log)
        of = log.args[0] if log.op in ("log", "log2") else None
        while of is not None and of.op == "finish":
            of = of.args[0]
        if of is None or of.op != "var" or str(of.attrs["name"]) not in empty or most.op != "var":
            continue
        bound = sites(program).results.get((role, str(most.attrs["name"])), ())
        start = bound[0].op.operands.get("value") if bound else None
        init = start.attrs.get("init") if isinstance(start, Expr) and start.op in ("rowvec", "colvec", "frag") else None
        if isinstance(init, float) and init == -float("inf"):
            return True
    return False


def _bare(e: Expr) -> Expr:
    """What a positive number multiplies, or what is cast."""
    while e.op == "cast" or (e.op == "mul" and any(a.op == "const" and isinstance(v := a.attrs["value"], float) and v > 0 for a in e.args)):
        e = e.args[0] if e.op == "cast" or e.args[0].op != "const" else e.args[1]
    return e


def _unasked(program: Program, role: str, e: Expr, empty: dict[str, For], seen: set[int]) -> tuple[str, Expr] | None:
    """A sum that is divided by outside of every choice that asks whether it is empty, and where."""
    if id(e) in seen:
        return None
    seen.add(id(e))
    if e.op in ("where", "select") and _asks(program, role, e.args[0], empty):
        return None
    if e.op in _DIVIDING:
        by = e.args[-1]
        if by.op == "finish":
            by = by.args[0]
        if by.op == "var" and str(by.attrs["name"]) in empty:
            return str(by.attrs["name"]), e
    return next((found for a in e.args if (found := _unasked(program, role, a, empty, seen)) is not None), None)


def _shared(program: Program, site: Site, loop: For, tensor: str) -> bool:
    """Whether two neighbours among running offsets bound a loop whose result is stored whatever they are: at places that no offset decides."""
    if tensor not in prefix_tensors(program):
        return False
    resolve = resolver_of(program, site.role.name)
    behind = [s for s in sites(program).of_role(site.role.name) if s.order > site.order and s.op.name in _KEEPING and not any(x is loop for x in s.loops)]
    places = [e for s in behind for key, o in s.op.operands.items() if key not in ("x", "view", "value") for e in (o if isinstance(o, tuple) else (o,)) if isinstance(e, Expr)]
    asked = [defined(program, site.role.name, e) for e in places] + [p.cond for s in (site, *behind) for p in s.path if isinstance(p, If)]
    return not any(n.op == "ld" and n.attrs["tensor"] == tensor for e in asked for n in resolve(e).parts())


def _no_rounds(program: Program, site: Site, loop: For) -> tuple[str, bool]:
    """For what arguments, tile and numbers in memory a loop has no rounds and what is divided behind it is, empty where none are found; and whether `lm.assume_values` could have said that there are none.

    Nothing can say of offsets that they grow: a host that hands out no empty list would be refused for nothing.
    """
    resolve = resolver_of(program, site.role.name)
    if loop.lo is None or loop.hi is None or any(x.kind == "tiles" and program.schedulers[str(x.scheduler)].kind == "grouped" for x in site.loops):
        return "", False
    bounds = (resolve(loop.lo), resolve(loop.hi))
    read = {(str(n.attrs["tensor"]), id(n)) for e in bounds for n in e.parts() if n.op == "ld"}
    if len({tensor for tensor, _ in read}) != 1:
        return "", False
    tensor = next(iter(read))[0]
    if len(read) > 1 and not _shared(program, site, loop, tensor):
        return "", False
    stated, length = declared_values(program, tensor), bounds[1].args[0] if bounds[1].op == "cdiv" else bounds[1]
    if stated is None or (length.op == "ld" and bounds[0].op == "const" and bounds[0].attrs["value"] == 0 and (ranges.of(program, None, stated.lo).exact or 0) > 0):
        return "", False
    node = next(n for e in bounds for n in e.parts() if n.op == "ld")
    names = parameters(program, [*bounds, *around(site, program)])
    for args in arguments(program, names, (2,), 2):
        try:
            for p in positions(program, site, args):  # the shortest sequences there are
                lo, hi = p.values(bounds)
                if isinstance(lo, int) and isinstance(hi, int) and hi <= lo and p.inside:
                    return f"{p.shown(names)}{', ' if p.shown(names) else ''}{tensor}[..] = {p.value(node)}", len(read) == 1
        except TooMany:
            return "", False
    return "", False

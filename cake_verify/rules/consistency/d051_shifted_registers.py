"""D051: registers that shift start with what the rounds before the first would have read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cake_ir.fault import Fault, Fix
from cake_ir.program import Assign, Expr, For, Op, Program, Scheduler
from cake_ir.types import TileT
from cake_verify.analyses import edits
from cake_verify.analyses.positions import Position
from cake_verify.analyses.shift_registers import Chain, Conds, Place, Start, chains, place, place_before
from cake_verify.analyses.sites import sites
from cake_verify.analyses.trips import canonical, linear, resolver_of, spoken, written
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_SMOOTH = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def smooth(lm, X: LM.gmem2d[LM.f32, "T", 256], Y: LM.gmem2d[LM.f32, "T", 256], T: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(T > 2)
    work = lm.role(warps=[0])
    one = lm.scheduler(kind="grid", tiles=(1,), names=("x",))
    with work:
        for t in lm.tiles(one):
            above = lm.load(X, coords=(0, 0), shape=(256,))
            here = lm.load(X, coords=(0, 1), shape=(256,))
            for i in lm.range(T - 2):
                below = lm.load(X, coords=(0, i + 2), shape=(256,))
                lm.store(Y, above + here + below, coords=(0, i + 1))
                above = here
                here = below
'''

PAGE = Page(
    code="D051",
    title="registers that shift and start elsewhere",
    statement="Names that a loop hands on from one to the next (`above = here`, `here = below`) start with what the rounds before the first would have read, in every tile that has rows before it, and with one number where there are none; they are not used between the two.",
    why="The first rounds combine rows that do not follow each other: the history of a convolution or of a stencil is another one at the edges of tiles, or one row stands for two.",
    failing=edit(_SMOOTH, ("here = lm.load(X, coords=(0, 1)", "here = lm.load(X, coords=(0, 0)")),
    passing=_SMOOTH,
    limits="Decided where the name starts with a read of the tensor or view that the loop reads, at places that are sums of numbers, tile fields and the member. Numbers and other tensors may stand for what is "
    "before the first tile: they are refused in a later tile of the axis that the rows lie along where a condition on the tile brings the rows themselves in other tiles, or where another tensor is read at the same place in all of them.",
)

_TILES = 3
"""Tiles behind the first that are looked at."""


def check(program: Program) -> Iterator[Fault]:
    for role, chain in chains(program):
        fault = _between(chain) or _elsewhere(program, role, chain) or _history(program, role, chain) or _unlike(program, role, chain)
        if fault is not None:
            yield fault


def _between(chain: Chain) -> Fault | None:
    """An expression that reads two neighbours between the statements that shift them: one value under both names."""
    body, names = chain.loop.body, (chain.name, *chain.names)
    for k, shift in enumerate(chain.shifts[1:], 1):
        newer, older = names[k], names[k + 1]
        first, last = body.index(shift), body.index(chain.shifts[k - 1])
        for s in body[first + 1 : last]:
            op = s.value if isinstance(s, Assign) else getattr(s, "op", None)
            operands = op.operands.values() if isinstance(op, Op) else (op,)
            for e in operands:
                read = {str(n.attrs["name"]) for n in e.parts() if n.op == "var"} if isinstance(e, Expr) else set()
                if {newer, older} <= read:
                    message = f"`{written(older)}` and `{written(newer)}` are one value here: `{written(older)} = {written(newer)}` stands in front, and `{written(newer)}` moves on behind"
                    return Fault("D051", message, op.span if isinstance(op, (Op, Expr)) else s.span, ((shift.span, "shifted here"), (chain.shifts[k - 1].span, "and here")),
                                 "shift at the end of the round", (), {"names": [written(older), written(newer)]})  # fmt: skip
    return None


def _elsewhere(program: Program, role: str, chain: Chain) -> Fault | None:
    """A name that starts, whatever the tile, with another row of what the loop reads."""
    for back, (name, starts) in enumerate(zip(chain.names, chain.starts, strict=True), 1):
        if len(starts) == 1 and not starts[0].conds and starts[0].read is not None:
            fault = _other(program, role, chain, back, name, starts[0].read, "")
            if fault is not None:
                return fault
    return None


def _other(program: Program, role: str, chain: Chain, back: int, name: str, read: Op, where: str) -> Fault | None:
    wanted, found = _wanted(program, role, chain, back), place(program, role, read)
    if wanted is None or found is None or wanted.of != found.of or len(wanted.at) != len(found.at):
        return None
    axis = _axis(program, role, chain)
    if axis is None or any(a != b for k, (a, b) in enumerate(zip(wanted.at, found.at, strict=True)) if k != axis):
        return None
    a, b = wanted.at[axis], found.at[axis]
    if a == b or any("(" in t and not t.startswith("role_index") for t in {*a[1], *b[1]}) or _later(program, role, chain, read):
        return None
    message = f"`{written(name)}` starts with what lies at `{spoken(found.exprs[axis])}`{where}, and the rounds hand on to it what lies {back} before `{_round(program, role, chain, axis)}`"
    return Fault("D051", message, read.span, ((chain.newest.span, "each round reads the next one here"), (chain.shifts[back - 1].span, f"handed on to `{written(name)}` here")),
                 f"start with what lies {back} before the first round's", _moved(program, read, found, wanted, axis), {"name": written(name), "role": role})  # fmt: skip


def _moved(program: Program, read: Op, found: Place, wanted: Place, axis: int) -> tuple[Fix, ...]:
    """The read at the other place."""
    constant, terms = wanted.at[axis]
    names = {canonical(n): spoken(edits.named(program, n)) for n in wanted.exprs[axis].parts() if n.op in ("field", "var", "param", "role_index")}
    if any(t not in names for t in terms):
        return ()
    parts = [names[t] if n == 1 else f"{n} * {names[t]}" for t, n in terms.items()]
    text = " + ".join(parts) + (f" + {constant}" if constant > 0 else f" - {-constant}" if constant else "") if parts else str(constant)
    coords = read.operands.get("coords")
    if not isinstance(coords, tuple):
        span = found.exprs[axis].span
        return (edits.replace(span, text),) if span.line else ()
    texts = [text if k == axis else spoken(edits.named(program, e)) for k, e in enumerate(coords)]
    return (edits.replace(read.spans["coords"], f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"),) if "coords" in read.spans else ()


def _round(program: Program, role: str, chain: Chain, axis: int) -> str:
    """Where a round reads."""
    here = place(program, role, chain.newest)
    return spoken(here.exprs[axis]) if here is not None else "?"


def _later(program: Program, role: str, chain: Chain, read: Op) -> bool:
    """Whether a name in the places is bound again on the way: the same text then means another place."""
    names = {str(n.attrs["name"]) for op in (chain.newest, read) for k in ("view", "coords", "i") for e in _exprs(op.operands.get(k)) for n in resolver_of(program, role)(e).parts() if n.op == "var"}
    return any(len(sites(program).bindings.get((role, n), ())) + len(sites(program).results.get((role, n), ())) > 1 for n in names)


def _exprs(operand: object) -> Sequence[Expr]:
    return [e for e in (operand if isinstance(operand, tuple) else (operand,)) if isinstance(e, Expr)]


def _wanted(program: Program, role: str, chain: Chain, back: int) -> Place | None:
    """Where the round so many before the first would have read."""
    return place_before(program, role, chain.newest.id, chain.loop.var, back)


def _axis(program: Program, role: str, chain: Chain) -> int | None:
    """The one axis along which the rounds move their read."""
    here = place(program, role, chain.newest)
    moved = [k for k, (_, terms) in enumerate(here.at) if any(f"?{chain.loop.var}" in t for t in terms)] if here is not None else []
    return moved[0] if len(moved) == 1 and here is not None and here.at[moved[0]][1].get(f"?{chain.loop.var}") else None


def _unlike(program: Program, role: str, chain: Chain) -> Fault | None:
    """Numbers that stand for rows before the first one, of which one is another than the rest."""
    numbers = {name: held for name, starts in zip(chain.names, chain.starts, strict=True) for held in (w.number for w in starts) if isinstance(held, (int, float))}
    if len(set(numbers.values())) < 2:
        return None
    held = list(numbers.values())
    odd = min(numbers, key=lambda name: (held.count(numbers[name]), numbers[name] == 0))
    other = next(name for name in numbers if numbers[name] != numbers[odd])
    start = sites(program).results.get((role, odd), ())
    span = start[0].op.span if start else chain.loop.head
    message = f"`{written(odd)}` starts from {numbers[odd]} and `{written(other)}` from {numbers[other]}: both stand for rows before the first one, which hold the same"
    return Fault("D051", message, span, ((chain.newest.span, "each round reads the next row here"), (chain.loop.head, "in this loop")), f"start from {numbers[other]}, too", (), {"name": written(odd), "role": role})


# ------------------------------------------------------------------ tiles behind the first


def _history(program: Program, role: str, chain: Chain) -> Fault | None:
    """A tile with rows before it that starts with something else than those."""
    axis, here = _axis(program, role, chain), place(program, role, chain.newest)
    if axis is None or here is None:
        return None
    found = _along(program, role, chain, here, axis)
    if found is None:
        return None
    tile, field, count = found
    for back, (name, starts) in enumerate(zip(chain.names, chain.starts, strict=True), 1):
        wanted = _wanted(program, role, chain, back)
        rows = any(w.read is not None and wanted is not None and (p := place(program, role, w.read)) is not None and p.of == wanted.of for w in starts)
        for m in range(1, count + 1):
            way = [w for w in starts if _taken(program, role, w.conds, tile, field, m)]
            if len(way) != 1:
                break
            start = way[0]
            fault = _tile(program, role, chain, back, name, start, f"`{written(tile)}.{field}` = {m}", rows, field)
            if fault is not None:
                return fault
    return None


def _along(program: Program, role: str, chain: Chain, here: Place, axis: int) -> tuple[str, str, int] | None:
    """The tile and the field that cut the axis of a chain's rows into tiles of as many rows as the loop has rounds at most."""
    terms = here.at[axis][1]
    loops = [x for s in sites(program).of_role(role) if s.op is chain.newest for x in s.loops if x.kind == "tiles" and isinstance(x.var_type, TileT)]
    for loop in loops:
        d = program.schedulers[str(loop.scheduler)]
        if d.kind == "grouped":
            return (loop.var, "m", _TILES) if terms.get("tile.row0") == 1 else None
        for field, tiles in zip(d.names, d.tiles, strict=True):
            step = terms.get(f"tile.{field}")
            if step and step > 1 and _cut(program, d, tiles, step) and _rounds(program, role, chain.loop, step):
                return loop.var, field, _TILES
    return None


def _cut(program: Program, d: Scheduler, tiles: Expr, step: int) -> bool:
    e = resolver_of(program, "")(tiles)
    return e.op in ("cdiv", "floordiv") and e.args[1].op == "const" and e.args[1].attrs["value"] == step


def _rounds(program: Program, role: str, loop: For, step: int) -> bool:
    """Whether the rounds of a loop are those rows of a tile."""
    assert loop.lo is not None and loop.hi is not None  # as of every loop of numbers
    resolve = resolver_of(program, role)
    constant, terms = linear(Expr("sub", (resolve(loop.hi), resolve(loop.lo))))
    if not terms:
        return constant == step
    hi = resolve(loop.hi)
    return hi.op == "min" and any(a.op == "const" and a.attrs["value"] == step for a in hi.args) and linear(resolve(loop.lo)) == (0, {})


def _taken(program: Program, role: str, conds: Conds, tile: str, field: str, m: int) -> bool:
    """Whether a way is taken in a tile, as far as that field decides; what something else decides is not."""
    resolve = resolver_of(program, role)
    for cond, arm in conds:
        held = Position(program, {}, {tile: {field: m}}).value(resolve(cond))
        if held is None or bool(held) is not arm:
            return False
    return True


def _tile(program: Program, role: str, chain: Chain, back: int, name: str, start: Start, where: str, rows: bool, field: str) -> Fault | None:
    """What is wrong with what a name starts with in a tile that has rows before it."""
    if start.read is not None and (found := place(program, role, start.read)) is not None:
        wanted = _wanted(program, role, chain, back)
        if wanted is not None and wanted.of == found.of:
            return _other(program, role, chain, back, name, start.read, f" in the tile at {where}") if start.conds else None
        if any(f"tile.{field}" in t or "tile.row0" in t for _, terms in found.at for t in terms):
            return None  # a history of its own for each tile
        held, at = f"what {call(start.read)} reads from `{start.read.attrs.get('tensor')}`, the same for every tile", start.read.span
    elif start.number is not None and rows:
        held, at = str(start.number), start.conds[0][0].span if start.conds else chain.loop.head
    else:
        return None
    axis = _axis(program, role, chain)
    assert axis is not None  # asked by the caller
    message = f"the tile at {where} starts `{written(name)}` with {held}, though the rows before it are there: the rounds read at `{_round(program, role, chain, axis)}`, and `{written(name)}` is what lies {back} before"
    related = ((chain.newest.span, "each round reads the next row here"), *(((c.span, "this condition decides"),) if (c := start.conds[0][0] if start.conds else None) is not None and c.span.line and c.span != at else ()))
    return Fault("D051", message, at, related, "start with the rows before the tile in every tile but the first of its axis", (), {"name": written(name), "role": role, "field": field})

"""D036: what lies behind a length read from memory does not win a maximum or minimum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cake_ir.derive.mentions import mentions
from cake_ir.derive.structure import conjuncts
from cake_ir.fault import Fault, Fix
from cake_ir.program import Assign, Expr, For, If, Op, Program, Stmt, op_of
from cake_ir.types import FragT
from cake_verify.analyses import edits
from cake_verify.analyses.left_out import without_offset
from cake_verify.analyses.runs import defined, run_of
from cake_verify.analyses.sites import sites
from cake_verify.analyses.trips import canonical, linear, resolver_of, rounded_up, spoken, written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_SCORES = '''
@cake.schedule(target="sm_90a")
def best(lm, Q: LM.tma2d[LM.bf16, 64, 64], K: LM.tma3d[LM.bf16, "PAGES", 128, 64], TABLE: LM.gmem1d[LM.i32].const, LEN: LM.gmem1d[LM.i32].const, Y: LM.gmem1d[LM.f32], PAGES: LM.i32):
    lm.assume_values(TABLE, 0, PAGES)
    pool = lm.smem(40960)
    q = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    k = pool.view(offset=8192, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    once = lm.pipeline(stages=1)
    there = lm.barrier(pipeline=once, prod=[load], cons=[math], arrive="tx")
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    with load:
        o = lm.step(once)
        q.tma_load(Q, coords=(0, 0), stage=o, barrier=there)
        for j in lm.range(lm.cdiv(lm.ld(LEN, 0), 128)):
            page = lm.ld(TABLE, j)
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            k.tma_load(K, coords=(0, 0, page), stage=s, barrier=full)
    with math:
        n = lm.ld(LEN, 0)
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        top = lm.rowvec(acc, init=-1e30)
        lm.wait(there, stage=lm.step(once))
        for j in lm.range(lm.cdiv(n, 128)):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.mma(acc, q, k[s], init=True)
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=s)
            x = lm.where(lm.iota(acc, axis=1, base=j * 128) < n, acc, -lm.inf)
            top = lm.max(top, lm.reduce(x, "max", axis=1))
        lm.store(Y, top, coords=(0,))
'''

PAGE = Page(
    code="D036",
    title="columns behind a length read from memory",
    statement="In a loop over as many tiles as a length read from memory needs, the columns of the last tile that lie behind the length are masked before a minimum, a maximum or an argmin, also one over all warps of a role, runs over a product's columns, "
    "by positions that follow the tile.",
    why="A tile of a page holds what somebody left there, and no value of an operand is neutral for a maximum of products: one key too many changes every row.",
    failing=edit(_SCORES, ("lm.where(lm.iota(acc, axis=1, base=j * 128) < n, acc, -lm.inf)", "acc * 1.0")),
    passing=_SCORES,
    limits="Decided for `lm.cdiv(n, B)` rounds from 0 with n read from memory, a part of them that ends at an `lm.min` of it or begins in a tile of as many columns, or every so many of them from one's own on, over accumulators that start from zero in the loop and whose columns are B, or B over the role's members. "
    "Any mask other than `lm.iota(x, axis=1, base=b) < m` (or `b + lm.iota(x, axis=1) < m`) counts as one that is right, and so does one by another number.",
)

_SELECTS = frozenset({"argmin", "argmax", "topk", "reduce"})
_MASKING = frozenset({"where", "select"})


@dataclass(frozen=True, slots=True)
class _Length:
    """The length that a loop's tiles of `tile` columns make up, and the tile that its round 0 is, where it is not the first; each round is `apart` tiles on."""

    length: Expr
    tile: int
    first: Expr | None
    apart: int = 1


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of a product made in `loop`, and the masks that they went through with the first column of each; `other`: a mask that is not read."""

    loop: For
    masks: tuple[tuple[Expr, Expr], ...] = ()
    other: bool = False


def check(program: Program) -> Iterator[Fault]:
    found = sites(program)
    if "reduce_across" not in found.named and mentions(program).keys().isdisjoint(_SELECTS):
        return
    multiplying = {s.role.name for s in found.of("mma")}
    for block in program.body:
        if block.role in multiplying and any([s.op.name == "ld" for s in found.of_role(block.role)]):
            yield from _Flow(program, block.role).run(block.body, None)


def _least(e: Expr) -> list[Expr]:
    """The numbers of which a bound is the least: a part of the tiles ends where all of them do."""
    found: dict[int, Expr] = {}
    waiting = [e]
    while waiting:
        n = waiting.pop()
        if id(n) not in found:
            found[id(n)] = n
            if n.op == "min":
                waiting += n.args[::-1]
    return [n for n in found.values() if n.op != "min"]


class _Flow:
    """The places of a role in text order: which hold columns of a product of the loop that they stand in."""

    def __init__(self, program: Program, role: str) -> None:
        self.program, self.role, self.resolve = program, role, resolver_of(program, role)
        self.members = program.roles[role].members
        self.state: dict[str, _Columns] = {}
        self.zeros: dict[str, For] = {}
        self.lengths: dict[int, tuple[_Length | None, For]] = {}
        self.found: list[Fault] = []

    def run(self, body: tuple[Stmt, ...], loop: For | None) -> list[Fault]:
        for s in body:
            if isinstance(s, For):
                self.run(s.body, s if self._ragged(s) is not None else loop if s.kind == "static" else None)
            elif isinstance(s, If):
                self.run(s.then, loop)
                self.run(s.orelse, loop)
            else:
                op = op_of(s)
                if op is not None:
                    self.op(op, s.targets if isinstance(s, Assign) else (), loop)
        return self.found

    def _ragged(self, loop: For) -> _Length | None:
        """The length and the tile of a loop over as many tiles as a length read from memory needs, or over a part of them."""
        if loop.kind != "range" or loop.lo is None or loop.hi is None:
            return None
        known = self.lengths.get(id(loop))
        if known is None:
            known = self.lengths[id(loop)] = self._length(loop.lo, self.resolve(loop.hi)), loop
        return known[0]

    def _length(self, lo: Expr, hi: Expr) -> _Length | None:
        dealt = self._dealt(lo, hi)
        if dealt is not None:
            return dealt
        if hi.op == "cdiv" and (lo.op != "const" or lo.attrs["value"] != 0):
            start = self.resolve(lo)  # a window begins in the tile of its first column
            if start.op != "floordiv" or start.args[1].attrs.get("value") != hi.args[1].attrs.get("value"):
                return None
        for e in _least(hi):
            tiles, before = (e.args if e.op == "sub" else (e, None))
            tile = tiles.args[1].attrs.get("value") if tiles.op == "cdiv" else None
            made_of = {n.op for n in tiles.args[0].parts()} if isinstance(tile, int) else set()
            if not isinstance(tile, int) or "ld" not in made_of or "cdiv" in made_of:  # of tiles, a split takes a part
                continue
            if before is None:
                return _Length(tiles.args[0], tile, None)
            if before.op == "min" and any(canonical(a) == canonical(tiles) for a in before.args) and lo.op == "const" and lo.attrs["value"] == 0:
                return _Length(tiles.args[0], tile, before)  # rounds from the first tile of a part that begins inside
        return None

    def _dealt(self, lo: Expr, hi: Expr) -> _Length | None:
        """Every so many tiles of a length, from one's own on, as ranks or splits take turns: `lm.cdiv(lm.cdiv(n, B) - rank, RANKS)` rounds."""
        dealt = rounded_up(hi)
        if dealt is None or lo.op != "const" or lo.attrs["value"] != 0 or dealt[0].op != "sub":
            return None
        (tiles, before), apart = dealt[0].args, dealt[1]
        length = rounded_up(tiles)
        made_of = {n.op for n in length[0].parts()} if length is not None else set()
        if length is None or "ld" not in made_of or "cdiv" in made_of or before.op == "const":
            return None
        return _Length(length[0], length[1], before, apart)

    def op(self, op: Op, targets: tuple[str, ...], loop: For | None) -> None:
        if op.name == "mma":
            acc, init = op.operands["acc"], op.operands.get("init")
            if isinstance(acc, Expr) and acc.op == "var":
                name = str(acc.attrs["name"])
                self.state.pop(name, None)
                fresh = isinstance(init, Expr) and init.op == "const" and init.attrs["value"]
                if loop is not None and (fresh or self.zeros.get(name) is loop):
                    self.state[name] = _Columns(loop)
            return
        if op.name == "reduce_across" and op.attrs.get("axis") == 1 and op.attrs["op"] in ("max", "min") and isinstance(x := op.operands["x"], Expr):
            columns = self.value(x, op, loop)
            if columns is not None and columns.loop is loop and isinstance(x.type, FragT):
                self._select(x, op, columns, x.type.cols, str(op.attrs["op"]))
        value = op.operands.get("value")
        result = self.value(value, op, loop) if op.name == "compute" and isinstance(value, Expr) else None
        zero = loop is not None and isinstance(value, Expr) and value.op == "frag" and value.attrs.get("init") == 0
        for name in targets:
            self.state.pop(name, None)
            self.zeros.pop(name, None)
            if result is not None:
                self.state[name] = result
            elif zero and loop is not None:
                self.zeros[name] = loop

    def value(self, e: Expr, op: Op, loop: For | None) -> _Columns | None:
        """The columns in `e`; reports where a selection runs over them unmasked."""
        if e.op == "var":
            return self.state.get(str(e.attrs["name"]))
        parts = [p for a in e.args if (p := self.value(a, op, loop)) is not None]
        if e.op in _SELECTS:
            kind = str(e.attrs.get("op", "max"))
            t = e.args[0].type
            if parts and kind in ("max", "min") and e.attrs.get("axis", 1) == 1 and parts[0].loop is loop and isinstance(t, FragT):
                self._select(e, op, parts[0], t.cols)
            return None
        if not parts:
            return None
        masks = tuple(m for p in parts for m in p.masks)
        if e.op in _MASKING:
            read = [self._mask(c) for c in conjuncts(defined(self.program, self.role, e.args[0]))]
            found = tuple(m for m in read if m is not None)
            return _Columns(parts[0].loop, (*masks, *found), len(found) < len(read) or any(p.other for p in parts))
        return _Columns(parts[0].loop, masks, any(p.other for p in parts))

    def _mask(self, e: Expr) -> tuple[Expr, Expr] | None:
        """A comparison of column numbers with a number, and the first of them; None for any other mask."""
        e = defined(self.program, self.role, e)
        if e.op not in ("lt", "le") or isinstance(e.args[1].type, FragT):
            return None
        t = e.args[0].type
        run = run_of(self.program, self.role, e.args[0]) if isinstance(t, FragT) and t.form == "colvec" else None
        return None if run is None else (e, run[0])

    def _select(self, e: Expr, op: Op, columns: _Columns, cols: int, over: str = "") -> None:
        found = self._ragged(columns.loop)
        if found is None or found.tile not in (cols, cols * self.members):
            return
        length, tile = found.length, found.tile
        what = over or str(e.attrs.get("op", e.op))
        name = spoken(columns.loop.hi.args[0]) if columns.loop.hi is not None and columns.loop.hi.op == "cdiv" and found.apart == 1 else spoken(length)
        related = ((columns.loop.head, f"the last round has fewer than {tile} of them"),)
        facts = {"role": self.role, "reduction": what}
        if not columns.masks:
            if columns.other:
                return
            base = _from(found, columns.loop)
            self.found.append(Fault("D036", f"columns behind `{name}`, a length read from memory, reach this {what}: nothing masks them", e.span if e.span.line else op.span, related,
                                    f"mask first: `lm.where(lm.iota(x, axis=1, base={base}) < {name}, x, {'lm.inf' if what == 'min' else '-lm.inf'})`", (), facts))  # fmt: skip
            return
        for mask, base in columns.masks:
            wrong = self._wrong(mask, base, found, columns.loop, columns.other)
            if wrong:
                text, fixes = wrong
                self.found.append(Fault("D036", f"{text}: columns behind `{name}`, a length read from memory, reach a {what}", mask.span if mask.span.line else op.span,
                                        ((e.span if e.span.line else op.span, "over these columns"), *related), f"count columns from `{_from(found, columns.loop)}` on, and let those below `{name}` through", fixes, facts))  # fmt: skip
                return

    def _wrong(self, mask: Expr, base: Expr, of: _Length, loop: For, other: bool) -> tuple[str, tuple[Fix, ...]] | None:
        """What is wrong with a mask that compares with the length of the loop."""
        end = self.resolve(mask.args[1])
        if _still(base) and (_plain(end, loop) or canonical(end) == canonical(of.length)):
            return f"this mask does not follow the tile: its base moves by 0 a round, the tiles by {of.tile * of.apart}", ()
        if other:
            return None
        first = Expr("mul", (of.first, Expr("const", (), {"value": of.tile}))) if of.first is not None else Expr("const", (), {"value": 0})
        constant, live = linear(Expr("sub", (Expr("add", (Expr("sub", (end, of.length)), first)), base)))
        step = live.pop(f"?{loop.var}", 0)
        if any("role_index" not in t for t in live) or any(n > 0 for n in live.values()):
            return None
        if step == 0:
            return f"this mask does not follow the tile: its base moves by 0 a round, the tiles by {of.tile * of.apart}", ()
        more = constant + (mask.op == "le")
        if step == -of.tile * of.apart and more > 0:
            fixes = without_offset(mask.args[1]) if mask.op == "lt" and more == 1 else (edits.replace(mask.span, f"{spoken(mask.args[0])} < {spoken(mask.args[1])}", "idea"),)
            return f"this mask lets {more} column{'s' if more > 1 else ''} too many through", fixes
        return None


def _from(found: _Length, loop: For) -> str:
    """Where the columns of a round start, as an author would write it."""
    i = written(loop.var) if found.apart == 1 else f"{written(loop.var)} * {found.apart}"
    return f"{i} * {found.tile}" if found.first is None else f"({spoken(found.first)} + {i}) * {found.tile}"


def _still(e: Expr) -> bool:
    """Whether a number is the same in all rounds of a loop."""
    return all(n.op in ("const", "param", "add", "sub", "mul", "neg", "role_index") for n in e.parts())


def _plain(e: Expr, loop: For) -> bool:
    """Whether a number is a length as memory or the arguments give it, and not what is left of one."""
    return all(n.op in ("const", "param", "add", "sub") for n in e.parts()) or (e.op == "ld" and not any(n.op == "var" and n.attrs["name"] == loop.var for n in e.parts()))

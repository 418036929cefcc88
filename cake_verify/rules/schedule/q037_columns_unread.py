"""Q037: columns that products fill in tensor memory are read, where the rest is read part by part."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.types import TmemT
from cake_verify.analyses.sites import Site, constant_rounds, sites
from cake_verify.analyses.trips import linear, resolver_of
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_HALVES = '''
@cake.schedule(target="sm_100a")
def halves(lm, A: LM.tma2d[LM.bf16, 128, 64], B: LM.tma2d[LM.bf16, 128, 64], C: LM.gmem2d[LM.f32, 128, 128]):
    lm.launch(grid="tiles")
    pool = lm.smem(2 * 128 * 64 * 2)
    a = pool.view(offset=0, shape=(128, 64), dtype=lm.bf16, swizzle="128b")
    b = pool.view(offset=128 * 64 * 2, shape=(128, 64), dtype=lm.bf16, swizzle="128b")
    acc = lm.tmem(cols=0, width=128, shape=(128, 128), dtype=lm.f32)
    epi = lm.role(warps=range(0, 8), members=2)
    work = lm.role(warps=range(8, 9))
    ring, end = lm.pipeline(stages=1), lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="tx")
    done = lm.barrier(pipeline=end, prod=[work], cons=[epi], arrive="mma")
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            a.tma_load(A, coords=(0, 0), stage=s, barrier=full)
            b.tma_load(B, coords=(0, 0), stage=s, barrier=full)
            lm.wait(full, stage=s)
            lm.mma(acc, a[s], b[s], init=True)
            lm.commit(done, stage=lm.step(end))
    with epi:
        for t in lm.tiles(sched):
            lm.wait(done, stage=lm.step(end))
            for c in lm.static_range(2):
                x = lm.tmem_load(acc.cols(64 * epi.index + 32 * c, 32))
                lm.tmem_wait("ld")
                lm.store(C, x, coords=(64 * epi.index + 32 * c, 0))
'''

PAGE = Page(
    code="Q037",
    title="columns of a result that nobody reads",
    statement="Where rounds of an unrolled loop, or members, read a product's columns in tensor memory by parts, each reads other ones, and together they read all up to the last of them.",
    why="A part that stands still is read again and again in place of its neighbours: the same numbers leave for several places of the output, and the others never do.",
    failing=edit(_HALVES, ("acc.cols(64 * epi.index + 32 * c, 32)", "acc.cols(64 * epi.index, 32)")),
    passing=_HALVES,
    limits="Decided for regions whose products and reads start at columns that follow from constants, members, unrolled loops and one slot, of which something is read twice while other columns of the product are not read, or columns in front of others that are. "
    "Columns at the end that reads leave out, as those that only fill up an instruction's width, are nobody's business.",
)

_Columns = tuple[tuple[int, ...], list[int], int]
"""What a slot moves a part by, its first columns (members and rounds in order) relative to that, its width."""


def check(program: Program) -> Iterator[Fault]:
    loads = sites(program).of("tmem_load") if program.tmems else ()
    if not loads:
        return
    by_region: dict[str, list[Site]] = {}
    for s in loads:
        e = s.op.operands["t"]
        if isinstance(e, Expr) and isinstance(e.type, TmemT):
            by_region.setdefault(e.type.tmem, []).append(s)
    for region, reads in by_region.items():
        mmas = [s for s in sites(program).of("mma") if isinstance(e := s.op.operands["acc"], Expr) and isinstance(e.type, TmemT) and e.type.tmem == region]
        if not mmas or _shared(program, region):
            continue
        parts = [_columns(program, s, "t") for s in reads]
        made = [_columns(program, s, "acc") for s in mmas]
        moved = {p[0] for p in (*parts, *made) if p is not None}
        if None in parts or None in made or len(moved) > 1:
            continue
        taken = [range(lo, lo + p[2]) for p in parts if p is not None for lo in p[1]]
        filled = {c for p in made if p is not None for lo in p[1] for c in range(lo, lo + p[2])}
        read = {c for r in taken for c in r}
        left = sorted(filled - read)
        inside = next((c for p in made if p is not None for lo in p[1] for c in left if lo <= c < lo + p[2] and any(d in read for d in range(c + 1, lo + p[2]))), None)
        again = next((s for s, p in zip(reads, parts, strict=True) if p is not None and len(set(p[1])) < len(p[1])), None)
        if inside is not None and again is None:
            yield Fault("Q037", f"nobody reads column {inside} of `{region}`, which a product fills and beyond which others are read", reads[0].op.spans.get("t", reads[0].op.span),
                        ((mmas[0].op.span, "multiplied here"), (program.tmems[region].span, "declared here")), "go on to where the next part begins", (), {"role": reads[0].role.name, "region": region, "column": inside})  # fmt: skip
        if left and again is not None and filled & read:
            message = f"{call(again.op)} reads the same columns of `{region}` again, and nobody reads column {left[0]}{f' to {left[-1]}' if len(left) > 1 else ''} of the product"
            yield Fault("Q037", message, again.op.spans.get("t", again.op.span), ((mmas[0].op.span, "multiplied here"), (program.tmems[region].span, "declared here")),
                        "let the part follow the round and the member", (), {"role": again.role.name, "region": region, "column": left[0]})  # fmt: skip


def _shared(program: Program, region: str) -> bool:
    """Whether the columns of a region are seen under another name, too, or are an operand."""
    t = program.tmems[region]
    beside = any(o.name != region and o.col < t.col + t.width and t.col < o.col + o.width for o in program.tmems.values())
    return beside or any(isinstance(e := s.op.operands.get("a"), Expr) and isinstance(e.type, TmemT) and e.type.tmem == region for s in sites(program).of("mma"))


def _columns(program: Program, s: Site, operand: str) -> _Columns | None:
    """The columns that an operand starts at in every round and for every member; None where something else moves it."""
    e = s.op.operands[operand]
    assert isinstance(e, Expr) and isinstance(e.type, TmemT)
    width = e.type.cols if not isinstance(n := s.op.attrs.get("cols"), int) else n
    constant, terms = 0, dict[str, int]()
    while e.op == "tmem_cols":
        more, found = linear(resolver_of(program, s.role.name)(e.args[1]))
        constant += more
        for name, c in found.items():
            terms[name] = terms.get(name, 0) + c
        e = e.args[0]
    if e.op != "tmem":
        return None
    rounds = [(f"?{x.var}", n) for x in s.loops if x.kind == "static" and x.lo is not None and x.lo.attrs.get("value") == 0 and (n := constant_rounds(x)) is not None]
    ranges = [(name, n) for name, n in (("member", s.role.members), *rounds)]
    steps = [terms.pop(name, 0) if name != "member" else sum([terms.pop(k) for k in [*terms] if k.startswith("role_index")]) for name, _ in ranges]
    if any(name.startswith("?") for name in terms):
        return None
    return tuple(sorted(terms.values())), [constant + sum([a * b for a, b in zip(at, steps, strict=True)]) for at in product(*(range(n) for _, n in ranges))], width

"""Q035: what a copy takes out of shared memory was put there for the same tile."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import If, Program
from cake_verify.analyses.sites import Site, on_view, sites, view_writers
from cake_verify.analyses.trips import canonical, resolver_of, spoken
from cake_verify.analyses.value_alias import shared
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_KINDS = '''
@cake.schedule(target="sm_90a")
def kinds(lm, X: LM.gmem2d[LM.f32, "R", "W"], Q: LM.tma2d[LM.bf16, "R", "QW"], V: LM.tma2d[LM.bf16, "R", "VW"], R: LM.i32, W: LM.i32, QW: LM.i32, VW: LM.i32, HQ: LM.i32, HV: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(QW == HQ * 64 and VW == HV * 64 and W == QW + VW and HQ > 0 and HV > 0)
    pool = lm.smem(64 * 64 * 2)
    out = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(HQ + HV, lm.cdiv(R, 64)), names=("h", "r"))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.h * 64, t.r * 64), shape=(64, 64), form="acc", clip=True)
            lm.store_wait(pending=0)
            lm.sync(own)
            if t.h < HQ:
                out.store(lm.cast(x * 0.5, lm.bf16))
            else:
                out.store(lm.cast(x, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            if t.h < HQ:
                out.tma_store(Q, coords=(t.h * 64, t.r * 64))
            else:
                out.tma_store(V, coords=((t.h - HQ) * 64, t.r * 64))
        lm.store_wait(pending=0)
'''

PAGE = Page(
    code="Q035",
    title="a copy of what an earlier tile left",
    statement="A copy out of shared memory that runs for one kind of tiles finds there what was stored for that kind: not every store into the view stands under a condition that is false for those tiles.",
    why="A branch that fills a staging tile has an arm that does not. The copy behind it then writes the numbers of the tile before to this one's place, and they look as they should.",
    failing=edit(_KINDS, ("                out.store(lm.cast(x, lm.bf16))", "                pass")),
    passing=_KINDS,
    limits="Decided for copies into tensors of views that share their bytes with no other and are written by the same role in the same round alone, where the conditions compare fields of the tile with arguments and numbers and are spelled alike.",
)
YIELDS = True

_OUT = ("tma_store", "bulk_store", "tma_reduce")
_OF_TILE = frozenset({"const", "param", "var", "field", "lt", "le", "gt", "ge", "eq", "ne", "add", "sub", "mul", "floordiv", "cdiv", "and", "or", "not"})


def check(program: Program) -> Iterator[Fault]:
    for s in sites(program).of(*_OUT):
        if not s.arms:
            continue
        name = on_view(s.op)
        writers = view_writers(program).get(name, ())
        kinds = _kinds(program, s)
        if not kinds or not writers or name in shared(program):
            continue
        apart = [_apart(kinds, _arms(program, w)) if w.role is s.role and w.loops == s.loops else None for w in writers]
        last = apart[-1]
        if last is not None and None not in apart:
            text, branch = last
            cond = spoken(branch.cond)
            message = f"{call(s.op)} takes out of `{name}` what an earlier tile left: it runs where `{cond}` is {'true' if kinds[text] else 'false'}, and `{name}` is written where it is {'false' if kinds[text] else 'true'}"
            related = (*((w.op.span, "written here") for w in writers[:2]), (branch.head, "under this condition"))
            yield Fault("Q035", message, s.op.span, related, f"store to `{name}` for these tiles, too", (), {"role": s.role.name, "view": name})
            return


def _apart(kinds: dict[str, bool], arms: list[tuple[str, tuple[bool, If]]]) -> tuple[str, If] | None:
    """The condition that keeps an operation from the tiles of another one's kinds, with its branch."""
    for text, (arm, branch) in arms:
        if kinds.get(text, arm) != arm:
            return text, branch
    return None


def _kinds(program: Program, s: Site) -> dict[str, bool]:
    """The conditions on tiles under which an operation runs, and whether they hold."""
    return {text: arm for text, (arm, _) in _arms(program, s)}


def _arms(program: Program, s: Site) -> list[tuple[str, tuple[bool, If]]]:
    found = []
    for p, arm in s.branches():
        cond = resolver_of(program, s.role.name)(p.cond)
        parts = cond.parts()
        of_tile = {id(n.args[0]) for n in parts if n.op == "field"}
        if of_tile and all(n.op in _OF_TILE and (n.op != "var" or id(n) in of_tile) for n in parts):
            found.append((canonical(cond), (arm, p)))
    return found

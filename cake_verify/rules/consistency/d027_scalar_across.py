"""D027: a scalar summed over warps that hold the same value."""

from cake_verify.rule import Page

_GOOD = '''@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32]):
    lm.launch(grid="tiles")
    pool = lm.smem(32)
    part = pool.view(offset=0, shape=(8,), dtype=lm.f32)
    work = lm.role(warps=range(0, 8), members=8)
    cta = lm.named_barrier(work)
    with work:
        x = lm.load(X, coords=(128 * work.index,), shape=(128,), form="vec")
        s = lm.reduce(x, "add")
        total = lm.reduce(s, "add", across=work, scratch=part, sync=cta)
        lm.store(Y, x * total, coords=(128 * work.index,))
'''

PAGE = Page(
    code="D027",
    title="a scalar summed over warps that hold the same value",
    statement="`across=` takes one value from every warp of the role; a scalar is equal on all warps of its member.",
    why="A member of several warps would count its value once a warp, so a sum comes out too large by that factor.",
    failing=_GOOD.replace("members=8", "members=4").replace("128 * work.index", "256 * work.index").replace("shape=(128,)", "shape=(256,)").replace(
        's = lm.reduce(x, "add")', 's = lm.reduce(x, "add", across=work, scratch=part, sync=cta)'
    ),
    passing=_GOOD,
)

"""Guided decoding: logits of tokens whose bit is not set in the grammar's mask become minus infinity, in place."""
import cake
from cake import LM, lm


@cake.schedule(target=("sm_89", "sm_90a"))
def token_bitmask(lm, LOGITS: LM.gmem2d[LM.f32, "B", "V"], MASK: LM.gmem2d[LM.i32, "NM", "W"].const, ROW: LM.gmem1d[LM.i32, "B"].const, B: LM.i32, V: LM.i32, W: LM.i32, NM: LM.i32, *, BLOCK=1024, WARPS=8):
    lm.launch(grid="tiles")
    lm.assume(W == lm.cdiv(V, 32))
    lm.assume_values(ROW, -1, NM)
    work = lm.role(warps=range(0, WARPS))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(V, BLOCK), B), names=("c", "b"))
    with work:
        for t in lm.tiles(sched):
            r = lm.ld(ROW, t.b)
            if r >= 0:
                x = lm.load(LOGITS, coords=(t.c * BLOCK, t.b), shape=(BLOCK,), form="vec", clip=True)
                token = lm.iota(x, 0, base=t.c * BLOCK)
                word = lm.load(MASK, coords=(token // 32, r), shape=(BLOCK,), form="vec", like=x, mask=token < V)
                allowed = (word >> (token % 32)) & 1
                lm.store(LOGITS, lm.where(allowed == 1, x, -lm.inf), coords=(t.c * BLOCK, t.b), clip=True)

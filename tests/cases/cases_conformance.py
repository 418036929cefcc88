"""Reported cases of hardware conformance: what exists on which target, and how much of it."""

from __future__ import annotations

from cases_consistency import PLAIN, TILE
from reported import Bad, Case, Good, edit

TENSOR_MEMORY = '''
@cake.schedule(target="sm_100a")
def tile(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32]):
    pool = lm.smem(32768)
    a = pool.view(offset=0, shape=(128, 64), dtype=lm.bf16, swizzle="128b")
    b = pool.view(offset=16384, shape=(128, 64), dtype=lm.bf16, swizzle="128b")
    acc = lm.tmem(cols=0, width=128, shape=(128, 128), dtype=lm.f32)
    out = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    mma = lm.role(warps=[5])
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[mma], arrive="tx")
    done = lm.barrier(pipeline=ring, prod=[mma], cons=[out], arrive="mma")
    with load:
        s = lm.step(ring)
        a.tma_load(A, coords=(0, 0), stage=s, barrier=full)
        b.tma_load(B, coords=(0, 0), stage=s, barrier=full)
    with mma:
        s = lm.step(ring)
        lm.wait(full, stage=s)
        lm.mma(acc, a, b, init=True)
        lm.commit(done, stage=s)
    with out:
        s = lm.step(ring)
        lm.wait(done, stage=s)
        x = lm.tmem_load(acc)
        lm.tmem_wait("ld")
        lm.store(C, x, coords=(0, 0))
'''
INT8 = edit(
    TENSOR_MEMORY,
    ("A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32]", "A: LM.tma2d[LM.i8], B: LM.tma2d[LM.i8], C: LM.gmem2d[LM.i32]"),
    ("a = pool.view(offset=0, shape=(128, 64), dtype=lm.bf16", "a = pool.view(offset=0, shape=(128, 128), dtype=lm.i8"),
    ("b = pool.view(offset=16384, shape=(128, 64), dtype=lm.bf16", "b = pool.view(offset=16384, shape=(128, 128), dtype=lm.i8"),
    ("shape=(128, 128), dtype=lm.f32", "shape=(128, 128), dtype=lm.i32"),
)  # fmt: skip
REDUCING = edit(TENSOR_MEMORY, ('x = lm.tmem_load(acc)', 'x = lm.tmem_load_reduce(acc, "min")'))

FRAGMENTS = '''
@cake.schedule(target="sm_121a")
def f(lm, A: LM.gmem2d[LM.e2m1], B: LM.gmem2d[LM.e2m1], C: LM.gmem2d[LM.f32]):
    work = lm.role(warps=[0])
    with work:
        acc = lm.frag(shape=(16, 8), dtype=lm.f32, form="acc", init=0.0)
        a = lm.load(A, coords=(0, 0), shape=(16, 64), form="a", like=acc)
        b = lm.load(B, coords=(0, 0), shape=(8, 64), form="b", like=acc)
        lm.mma(acc, a, b)
        lm.store(C, acc, coords=(0, 0))
'''
SCALED = edit(
    FRAGMENTS,
    ("C: LM.gmem2d[LM.f32]", "SA: LM.gmem1d[LM.u32], SB: LM.gmem1d[LM.u32], C: LM.gmem2d[LM.f32]"),
    ("        lm.mma(acc, a, b)", '        sa = lm.scales(lm.load(SA, coords=(0,), shape=(16,), form="rowvec", like=a), block=16, dtype=lm.e4m3, layout="frag_row")\n'
     '        sb = lm.scales(lm.load(SB, coords=(0,), shape=(8,), form="rowvec", like=b), block=16, dtype=lm.e4m3, layout="frag_row")\n        lm.mma(acc, a, b, scale_a=sa, scale_b=sb)'),
)  # fmt: skip

RING = '''
@cake.schedule(target="sm_120a")
def f(lm, A: LM.gmem2d[LM.bf16], B: LM.gmem2d[LM.bf16], C: LM.gmem2d[LM.f32], KT: LM.i32, *, STAGES=3):
    pool = lm.smem(STAGES * 26624)
    a = pool.view(offset=0, shape=(128, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    b = pool.view(offset=STAGES * 16384, shape=(80, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    ring = lm.pipeline(stages=STAGES)
    with work:
        acc = lm.frag(shape=(128, 80), dtype=lm.f32, form="acc", init=0.0)
        for k in lm.range(KT):
            s = lm.step(ring)
            lm.sync(cta)
            a.cp_async(A, coords=(k * 64, 0), stage=s)
            b.cp_async(B, coords=(k * 64, 0), stage=s)
            lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.sync(cta)
            for j in lm.static_range(4):
                x = a[s].cols(16 * j, 16).ldmatrix(form="a", like=acc)
                y = b[s].cols(16 * j, 16).ldmatrix(form="b", like=acc)
                lm.mma(acc, x, y)
        lm.store(C, acc, coords=(0, 0))
'''
"""26,624 bytes a stage."""

POOL = '''
@cake.schedule(target="sm_89")
def f(lm, X: LM.gmem2d[LM.bf16], Y: LM.gmem2d[LM.bf16]):
    pool = lm.smem(65536)
    x = pool.view(offset=57344, shape=(64, 64), dtype=lm.bf16)
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    with work:
        x.store(lm.load(X, coords=(0, 0), shape=(64, 64)))
        lm.sync(cta)
        lm.store(Y, x.load(form="vec"), coords=(0, 0))
'''
FULL = edit(POOL, ("sm_89", "sm_90a"), ("lm.smem(65536)", "lm.smem(232448)"))

FP8_SYNC = '''
@cake.schedule(target="sm_89")
def f(lm, A: LM.gmem2d[LM.e4m3], B: LM.gmem2d[LM.e4m3], C: LM.gmem2d[LM.f32]):
    pool = lm.smem(12288)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.e4m3, swizzle="64b")
    b = pool.view(offset=4096, shape=(128, 64), dtype=lm.e4m3, swizzle="64b")
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    with work:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", warps=(2, 2), init=0.0)
        a.cp_async(A, coords=(0, 0))
        b.cp_async(B, coords=(0, 0))
        lm.cp_commit()
        lm.cp_wait(pending=0)
        lm.sync(cta)
        for k in lm.static_range(2):
            x = a.cols(32 * k, 32).ldmatrix(form="a", like=acc)
            y = b.cols(32 * k, 32).ldmatrix(form="b", like=acc)
            lm.mma(acc, x, y)
        lm.store(C, acc, coords=(0, 0))
'''


def named(n: int) -> str:
    """A schedule of n roles with a named barrier each."""
    roles = "".join(f"    r{i} = lm.role(warps=[{i}])\n    b{i} = lm.named_barrier(r{i})\n" for i in range(n))
    blocks = "".join(f"    with r{i}:\n        lm.sync(b{i})\n" for i in range(n))
    return f'@cake.schedule(target="sm_90a")\ndef f(lm, X: LM.gmem1d[LM.f32].const):\n{roles}{blocks}'


GRID = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem2d[LM.f32], Y: LM.gmem2d[LM.f32], N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N > 0 and N <= 8192)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(8, N * 64), names=("c", "r"))
    with work:
        for t in lm.tiles(sched):
            lm.store(Y, lm.load(X, coords=(t.c * 128, t.r), shape=(1, 128)), coords=(t.c * 128, t.r))
'''

FP8 = edit(
    TILE,
    ("A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16]", "A: LM.tma2d[LM.e4m3], B: LM.tma2d[LM.e4m3]"),
    ("shape=(64, 64), dtype=lm.bf16", "shape=(64, 128), dtype=lm.e4m3"),
    ("shape=(128, 64), dtype=lm.bf16", "shape=(128, 128), dtype=lm.e4m3"),
)  # fmt: skip
N_MAJOR = edit(TILE, ("shape=(128, 64), dtype=lm.bf16", "shape=(64, 128), dtype=lm.bf16"), ("lm.mma(acc, a, b,", "lm.mma(acc, a, b.T,"))

CASES = (
    Case("C069", "conformance", "openxla/xla#40118, HazyResearch/ThunderKittens#203",
         "tensor memory on sm_120a and sm_121a", "on sm_100a and sm_103a",
         (Bad(TENSOR_MEMORY, "H001", "acc = lm.tmem", "sm_120a"), Bad(TENSOR_MEMORY, "H001", "acc = lm.tmem", "sm_121a")), (Good(TENSOR_MEMORY), Good(TENSOR_MEMORY, "sm_103a"))),
    Case("C071", "conformance", "nunchux-ai/nunchaku#849, vllm-project/vllm#43214",
         "a warp-level fp4 MMA, plain and block-scaled, on sm_100a and sm_103a", "both on sm_121a and sm_120a",
         (Bad(FRAGMENTS, "H004", "lm.mma(", "sm_100a"), Bad(FRAGMENTS, "H004", "lm.mma(", "sm_103a"), Bad(SCALED, "H004", "lm.mma(", "sm_100a")), (Good(FRAGMENTS), Good(FRAGMENTS, "sm_120a"), Good(SCALED), Good(SCALED, "sm_120a"))),
    Case("C073", "conformance", "pytorch/FBGEMM#6151, NVIDIA/TensorRT-LLM#18831, HazyResearch/ThunderKittens#203",
         "a candidate for sm_100a on an sm_90 device", "one for sm_90a", (), (Good(TENSOR_MEMORY),), outcome="result",
         remark="verify knows no device: the run is refused before anything is launched"),
    Case("C075", "conformance", "sgl-project/sglang#17908, flashinfer-ai/flashinfer#2655",
         "106,496 bytes on a target that grants 101,376", "one stage fewer; the same on sm_90a",
         (Bad(edit(RING, ("*, STAGES=3", "*, STAGES=4")), "H002", "pool = "),), (Good(RING), Good(edit(RING, ("*, STAGES=3", "*, STAGES=4")), "sm_90a"))),
    Case("C076", "conformance", "Avarok-Cybersecurity/atlas#903",
         "64 KB, above the ceiling of static arrays", "dynamic shared memory, whatever the size", (), (Good(POOL), Good(POOL, "sm_121a")), outcome="derived"),
    Case("C077", "conformance", "NVIDIA/Fuser#4644",
         "one byte more than the block's maximum", "exactly the maximum", (Bad(edit(FULL, ("232448", "232449")), "H002", "pool = "),), (Good(FULL),)),
    Case("C079", "conformance", "measured with the assembler",
         "integer tensor-core MMA on sm_103a; the reducing load on sm_100a", "the integer MMA on sm_100a",
         (Bad(INT8, "H004", "lm.mma(", "sm_103a"), Bad(REDUCING, "N028", "lm.tmem_load_reduce")), (Good(INT8),),
         remark="the reducing load is not in the vocabulary, on any target"),
    Case("C081", "conformance", "NVIDIA/Fuser#3624, measured with the assembler",
         "TMA on sm_89; fp8 MMA on sm_80", "cp.async and fp8 mma.sync on sm_89",
         (Bad(PLAIN, "H001", "x.tma_load", "sm_89"), Bad(FP8_SYNC, "H004", "lm.mma(", "sm_80")), (Good(FP8_SYNC),)),
    Case("C083", "conformance", "tile-ai/tilelang#605, measured with the assembler",
         "sixteen named barriers; an id by hand; a count by hand", "fifteen",
         (Bad(named(16), "H010", "b15 = "), Bad(edit(named(2), ("b0 = lm.named_barrier(r0)", "b0 = lm.named_barrier(r0, id=15)")), "N048", "b0 = "),
          Bad(edit(named(2), ("b0 = lm.named_barrier(r0)", "b0 = lm.named_barrier(r0, count=48)")), "N048", "b0 = ")), (Good(named(15)),),
         remark="ids and counts are derived; twenty barriers whose lifetimes do not overlap are refused too, ids are not shared"),
    Case("C084", "conformance", "fla-org/flash-linear-attention#1077",
         "2^32 blocks", "more than 65,535 along the second axis: the grid is one-dimensional",
         (Bad(edit(GRID, ("(8, N * 64)", "(8, 2**29)"), ("    lm.assume(N > 0 and N <= 8192)\n", ""), (", N: LM.i32", "")), "H007", "sched = "),), (Good(GRID),),
         remark="with run-time tile counts the launcher checks"),
    Case("C085", "conformance", "tile-ai/tilelang#3223, triton-lang/triton#6875, triton-lang/triton#4405",
         "an fp8 operand read N-major by wgmma", "bf16 N-major; fp8 K-major",
         (Bad(edit(FP8, ("lm.mma(acc, a, b,", "lm.mma(acc, a, b.T,")), "H004", "lm.mma("),), (Good(N_MAJOR), Good(FP8))),
)  # fmt: skip

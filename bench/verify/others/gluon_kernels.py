"""Three kernels in Gluon with a mutation chosen by name: the same algorithms, stage for stage, as the schedules in `twins`.

Needs Triton 3.6. What the mutations are called is in `twins.MUTATIONS`; the empty name is the right kernel.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma, warpgroup_mma, warpgroup_mma_wait

TILE = 64
BYTES = gl.constexpr(TILE * TILE * 2)


@gluon.jit
def ring_load(a_desc, b_desc, a_ring, b_ring, full, empty, count, STAGES: gl.constexpr, MUT: gl.constexpr):
    row, column = gl.program_id(0) * 64, gl.program_id(1) * 64
    steps = count
    if MUT == "one load more":
        steps = count + 1
    for k in range(steps):
        s = k % STAGES
        to = s
        if MUT == "loads to the next stage":
            to = (k + 1) % STAGES
        phase = (k // STAGES) & 1
        if MUT == "not primed":
            mbarrier.wait(empty.index(s), phase)
        elif MUT != "no wait for empty":
            mbarrier.wait(empty.index(s), phase ^ 1)
        if MUT == "expects more bytes":
            mbarrier.expect(full.index(s), 2 * BYTES + 128)
        elif MUT == "expects fewer bytes":
            mbarrier.expect(full.index(s), BYTES)
        else:
            mbarrier.expect(full.index(s), 2 * BYTES)
        tma.async_copy_global_to_shared(a_desc, [row, k * 64], full.index(s), a_ring.index(to))
        if MUT != "no copy of B":
            tma.async_copy_global_to_shared(b_desc, [column, k * 64], full.index(s), b_ring.index(to))


@gluon.jit
def ring_multiply(a_ring, b_ring, full, empty, out, count, width, STAGES: gl.constexpr, MUT: gl.constexpr):
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16])
    acc = gl.zeros((64, 64), gl.float32, layout)
    for k in range(count):
        s = k % STAGES
        use = s
        if MUT == "reads the next stage":
            use = (k + 1) % STAGES
        phase = (k // STAGES) & 1
        if MUT == "waits for the other parity":
            mbarrier.wait(full.index(s), phase ^ 1)
        elif MUT != "no wait for full":
            mbarrier.wait(full.index(s), phase)
        product = warpgroup_mma(a_ring.index(use), b_ring.index(use).permute((1, 0)), acc, is_async=True)
        if MUT == "releases before the product ends":
            mbarrier.arrive(empty.index(s), count=1)
        if MUT == "waits for one product less":
            acc = warpgroup_mma_wait(num_outstanding=1, deps=[product])
        else:
            acc = warpgroup_mma_wait(num_outstanding=0, deps=[product])
        if MUT == "releases the next stage":
            mbarrier.arrive(empty.index((k + 1) % STAGES), count=1)
        elif MUT != "no release" and MUT != "releases before the product ends":
            mbarrier.arrive(empty.index(s), count=1)
        if MUT == "releases twice":
            mbarrier.arrive(empty.index(s), count=1)
    acc = warpgroup_mma_wait(num_outstanding=0, deps=[acc])
    rows = gl.program_id(0) * 64 + gl.arange(0, 64, layout=gl.SliceLayout(1, layout))
    columns = gl.program_id(1) * 64 + gl.arange(0, 64, layout=gl.SliceLayout(0, layout))
    gl.store(out + rows[:, None] * width + columns[None, :], acc.to(gl.float16))


@gluon.jit
def ring_gemm(a_desc, b_desc, out, count, width, STAGES: gl.constexpr, MUT: gl.constexpr):
    a_ring = gl.allocate_shared_memory(gl.float16, [STAGES, 64, 64], a_desc.layout)
    b_ring = gl.allocate_shared_memory(gl.float16, [STAGES, 64, 64], b_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        if MUT == "empty counts two":
            mbarrier.init(empty.index(i), count=2)
        else:
            mbarrier.init(empty.index(i), count=1)
    if MUT != "no fence after init":
        fence_async_shared()
    gl.warp_specialize(
        [(ring_multiply, (a_ring, b_ring, full, empty, out, count, width, STAGES, MUT)), (ring_load, (a_desc, b_desc, a_ring, b_ring, full, empty, count, STAGES, MUT))],
        [4], [40],
    )  # fmt: skip


@gluon.jit
def staged_double(in_desc, out_desc, count, STAGES: gl.constexpr, MUT: gl.constexpr):
    """Y = X + X along a row of tiles: loads STAGES - 1 ahead, tiles updated in place, stores in flight."""
    ring = gl.allocate_shared_memory(gl.float16, [STAGES, 64, 64], in_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    row = gl.program_id(0) * 64
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
    fence_async_shared()
    for i in gl.static_range(STAGES - 1):
        if i < count:
            mbarrier.expect(full.index(i), BYTES)
            tma.async_copy_global_to_shared(in_desc, [row, i * 64], full.index(i), ring.index(i))
    for i in range(count):
        r = i % STAGES
        if MUT != "no wait for full":
            mbarrier.wait(full.index(r), (i // STAGES) & 1)
        x = ring.index(r).load(layout)
        ring.index(r).store(x + x)
        if MUT != "no fence":
            fence_async_shared()
        if MUT == "stores the next stage":
            tma.async_copy_shared_to_global(out_desc, [row, i * 64], ring.index((i + 1) % STAGES))
        else:
            tma.async_copy_shared_to_global(out_desc, [row, i * 64], ring.index(r))
        if i + STAGES - 1 < count:
            if MUT == "waits for one store less":
                tma.store_wait(2)
            elif MUT != "no wait for stores":
                tma.store_wait(1)
            w = (i + STAGES - 1) % STAGES
            mbarrier.expect(full.index(w), BYTES)
            tma.async_copy_global_to_shared(in_desc, [row, (i + STAGES - 1) * 64], full.index(w), ring.index(w))
    if MUT != "leaves with stores in flight":
        tma.store_wait(0)


@gluon.jit
def copy_ring(a, b, out, count, depth, width, STAGES: gl.constexpr, MUT: gl.constexpr):
    """C = A B, cp.async groups STAGES - 1 ahead, warp-level products; A (M, K), B (K, N)."""
    BK: gl.constexpr = 32
    mma: gl.constexpr = gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[2, 2], instr_shape=[16, 8])
    rows_layout: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0])
    wide_layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    a_ring = gl.allocate_shared_memory(gl.float16, [STAGES, 64, BK], gl.SwizzledSharedLayout(8, 2, 4, [1, 0]))
    b_ring = gl.allocate_shared_memory(gl.float16, [STAGES, BK, 64], gl.SwizzledSharedLayout(8, 1, 8, [1, 0]))
    a_rows = gl.program_id(0) * 64 + gl.arange(0, 64, layout=gl.SliceLayout(1, rows_layout))
    a_columns = gl.arange(0, BK, layout=gl.SliceLayout(0, rows_layout))
    b_rows = gl.arange(0, BK, layout=gl.SliceLayout(1, wide_layout))
    b_columns = gl.program_id(1) * 64 + gl.arange(0, 64, layout=gl.SliceLayout(0, wide_layout))
    a_at = a + a_rows[:, None] * depth + a_columns[None, :]
    b_at = b + b_rows[:, None] * width + b_columns[None, :]
    for i in gl.static_range(STAGES - 1):
        if i < count:
            async_copy.async_copy_global_to_shared(a_ring.index(i), a_at + i * BK)
            async_copy.async_copy_global_to_shared(b_ring.index(i), b_at + i * BK * width)
        async_copy.commit_group()
    acc = gl.zeros((64, 64), gl.float32, mma)
    for k in range(count):
        if MUT == "waits for one group less":
            async_copy.wait_group(STAGES - 1)
        elif MUT != "no wait" and MUT != "waits after reading":
            async_copy.wait_group(STAGES - 2)
        r = k % STAGES
        w = (k + STAGES - 1) % STAGES
        if MUT == "fills the stage being read":
            w = r
        left = a_ring.index(r).load(gl.DotOperandLayout(0, mma, 2))
        right = b_ring.index(r).load(gl.DotOperandLayout(1, mma, 2))
        if MUT == "waits after reading":
            async_copy.wait_group(STAGES - 2)
        acc = mma_v2(left, right, acc)
        if k + STAGES - 1 < count:
            async_copy.async_copy_global_to_shared(a_ring.index(w), a_at + (k + STAGES - 1) * BK)
            async_copy.async_copy_global_to_shared(b_ring.index(w), b_at + (k + STAGES - 1) * BK * width)
        if MUT != "no commit":
            async_copy.commit_group()
    async_copy.wait_group(0)
    rows = gl.program_id(0) * 64 + gl.arange(0, 64, layout=gl.SliceLayout(1, mma))
    columns = gl.program_id(1) * 64 + gl.arange(0, 64, layout=gl.SliceLayout(0, mma))
    gl.store(out + rows[:, None] * width + columns[None, :], acc)

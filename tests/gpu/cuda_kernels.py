"""Small CUDA kernels with one property each, for judging the judge on a real device. All double a vector unless said."""

HEAD = """
typedef unsigned int u32; typedef unsigned long long u64;
#define I (blockIdx.x * blockDim.x + threadIdx.x)
"""
SIGNATURE = 'extern "C" __global__ void kernel(float* X, float* Y, int N, u32* hang)'

HONEST = HEAD + SIGNATURE + "{ if (I < N) Y[I] = 2.0f * X[I]; }"
SILENT = HEAD + SIGNATURE + "{ }"
TAIL_DROPPED = HEAD + SIGNATURE + "{ if (I < N / 128 * 128) Y[I] = 2.0f * X[I]; }"
OUT_OF_BOUNDS = HEAD + SIGNATURE + "{ if (I < N + 3) Y[I] = I < N ? 2.0f * X[I] : 1.0f; }"
WRITES_INPUT = HEAD + SIGNATURE + "{ if (I < N) { Y[I] = 2.0f * X[I]; if (I == 5) X[I] = 1.0f; } }"
ILLEGAL_ADDRESS = HEAD + SIGNATURE + "{ if (I == 0) *(float*)0x10 = X[0]; if (I < N) Y[I] = 2.0f * X[I]; }"
ENDLESS = HEAD + SIGNATURE + "{ volatile float* x = X; if (I < N) { Y[I] = 2.0f * X[I]; while (x[0] == x[0]) ; } }"
UNSTEADY = (
    HEAD
    + SIGNATURE
    + '{ u32 t; asm volatile("mov.u32 %0, %%clock;" : "=r"(t)); if (I < N) Y[I] = 2.0f * X[I] * (1.0f + (t & 255) * 2e-7f); }'
)
# One warp of each CTA reports a wait that did not end, as generated code does, then traps.
HANGING = (
    HEAD
    + SIGNATURE
    + """{
  if (threadIdx.x == 32) {
    volatile u32* r = hang + ((u64)blockIdx.x * (blockDim.x >> 5) + 1) * 16;
    r[1] = 1; r[2] = 0; r[3] = 2; r[4] = 1; r[5] = 9; r[6] = 4; r[7] = blockIdx.x; r[8] = threadIdx.x;
    __threadfence_system(); r[0] = 0xCA4E0001u; __threadfence_system();
    u64 t0, t; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t0));
    do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)); } while (t - t0 < 50000000ull);
    asm volatile("trap;");
  }
}"""
)
# Every CTA of a cluster of two writes through its peer's rank, so a launch without the cluster gives other numbers.
CLUSTERED = (
    HEAD
    + SIGNATURE
    + """{
  u32 n, r; asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(n)); asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  u32 other = (blockIdx.x ^ 1u) * blockDim.x + threadIdx.x;
  if (n == 2 && r == (blockIdx.x & 1) && other < N) Y[other] = 2.0f * X[other];
}"""
)
# Copies 32 x 64 boxes of a bf16 matrix through shared memory with the copy engine, in and out (no arithmetic).
TMA_COPY = """
typedef unsigned int u32; typedef unsigned long long u64;
struct alignas(64) Map { u64 opaque[16]; };
extern "C" __global__ void kernel(const __grid_constant__ Map in, const __grid_constant__ Map out, int columns) {
  extern __shared__ unsigned char raw[];
  const u32 base = ((u32)__cvta_generic_to_shared(raw) + 1023) & ~1023u, bar = base + 4096;
  const int x = (blockIdx.x % columns) * 64, y = (blockIdx.x / columns) * 32;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\\nfence.mbarrier_init.release.cluster;" :: "r"(bar) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" :: "r"(bar) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
      :: "r"(base), "l"(&in), "r"(x), "r"(y), "r"(bar) : "memory");
    u32 ok = 0;
    while (!ok)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
        : "=r"(ok) : "r"(bar) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];\\ncp.async.bulk.commit_group;\\n"
      "cp.async.bulk.wait_group 0;" :: "l"(&out), "r"(base), "r"(x), "r"(y) : "memory");
  }
}
"""

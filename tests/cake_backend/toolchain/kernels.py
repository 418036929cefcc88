"""Small CUDA kernels that provoke what the reader of compiler logs must find."""

SAXPY = """
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""

_WGMMA = """
typedef unsigned long long u64;
__device__ __forceinline__ void mma(float (&d)[4], u64 a, u64 b, int go) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0;\\n"
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, p, 1, 1, 0, 0; }"
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b), "r"(go));
}
"""

# One group in flight at a time, read only after its wait: nothing for the assembler to complain about.
CLEAN_WGMMA = _WGMMA + """
extern "C" __global__ void __launch_bounds__(128, 1) clean(u64 a, u64 b, float* out, int k) {
  float d[4] = {0, 0, 0, 0};
  for (int i = 0; i < k; i++) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    mma(d, a + 2 * i, b + 2 * i, 1);
    mma(d, a + 2 * i + 1, b + 2 * i + 1, 1);
    asm volatile("wgmma.commit_group.sync.aligned;\\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = d[i];
}
"""

# The accumulator is changed by an ordinary instruction while its group is in flight.
SERIALISED_WGMMA = _WGMMA + """
extern "C" __global__ void __launch_bounds__(128, 1) serialised(u64 a, u64 b, float* out, int k) {
  float d[4] = {0, 0, 0, 0};
  for (int i = 0; i < k; i++) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    mma(d, a + 2 * i, b + 2 * i, 1);
    d[0] *= 2.0f; d[1] *= 2.0f;
    mma(d, a + 2 * i + 1, b + 2 * i + 1, 1);
    asm volatile("wgmma.commit_group.sync.aligned;\\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = d[i];
}
"""

# Forty values live across a barrier in a kernel that may use 24 registers.
SPILLS = """
extern "C" __global__ void spills(const float* x, float* y) {
  float v[40];
#pragma unroll
  for (int i = 0; i < 40; i++) v[i] = x[i * 32 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 40; i++) y[((i * 7) % 40) * 32 + threadIdx.x] = v[i] * v[(i + 11) % 40];
}
"""

# The same product twice with nothing between: the assembler keeps one (measured on an H200: the sum then lacks a product).
MERGED_WGMMA = _WGMMA + """
extern "C" __global__ void __launch_bounds__(128, 1) merged(u64 a, u64 b, const float* in, float* out) {
  float d[4];
  for (int i = 0; i < 4; i++) d[i] = in[threadIdx.x * 4 + i];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  mma(d, a, b, 1);
  mma(d, a, b, 1);
  asm volatile("wgmma.commit_group.sync.aligned;\\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = d[i];
}
"""

# What each launch bound does to a change of the register count; `{bounds}` is to be filled in.
BUDGETS = """
extern "C" __global__ void __launch_bounds__({bounds}) budgets(float* out, const float* in) {{
  if (threadIdx.x < 128) {{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    out[threadIdx.x] = in[0];
  }} else {{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    out[threadIdx.x] = in[threadIdx.x] * 2;
  }}
}}
"""

# One box for two CTAs of a cluster; the assembler takes it on boards without multicast, and says so.
MULTICAST = """
extern "C" __global__ void multicast(unsigned long long from) {
  extern __shared__ char s[];
  unsigned to = (unsigned)__cvta_generic_to_shared(s);
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 16, [%2], %3;"
               :: "r"(to), "l"(from), "r"(to + 64), "h"((unsigned short)3) : "memory");
}
"""

_ONE_GROUP = _WGMMA + """
extern "C" __global__ void __launch_bounds__(128, 1) group(u64 a, u64 b, const float* in, float* out) {
  float d[4];
  for (int i = 0; i < 4; i++) d[i] = in[threadIdx.x * 4 + i];
  BODY
  for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = d[i];
}
"""
_FENCE = 'asm volatile("wgmma.fence.sync.aligned;" ::: "memory");'
_COMMIT = 'asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");'
_WAIT = 'asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");'

# Groups that the assembler repairs, by what it puts in; each body stands on one line.
REPAIRED_WGMMA = {
    "C7519": _ONE_GROUP.replace("BODY", f"mma(d, a, b, 1); {_COMMIT} {_WAIT}"),  # no fence behind the writes of the accumulator
    "C7517": _ONE_GROUP.replace("BODY", f"{_FENCE} mma(d, a, b, 1); {_COMMIT}"),  # no wait in front of its reads
}

// softmax for sm_90a, lowered from Cake IR
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef signed char i8; typedef long long i64;
#define DEVICE static __device__ __forceinline__

DEVICE void pdl_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
DEVICE void pdl_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
DEVICE void load_global_128_keep(u32& r0, u32& r1, u32& r2, u32& r3, const void* p) {
  asm volatile("{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0; ld.global.L1::evict_last.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], policy; }" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "l"(p) : "memory");
}
DEVICE float unpack_bf16(u32 x, int i) { return __uint_as_float(i ? x & 0xffff0000u : x << 16); }
DEVICE void store_shared_f32(u32 address, float x) { asm volatile("st.shared.f32 [%0], %1;" :: "r"(address), "f"(x) : "memory"); }
DEVICE float load_shared_f32(u32 address) { float x; asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(address) : "memory"); return x; }
template <int ID, int THREADS> DEVICE void named_sync() { asm volatile("bar.sync %0, %1;" :: "n"(ID), "n"(THREADS) : "memory"); }
DEVICE float exp2_approx(float x) { float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
DEVICE float rcp_approx(float x) { float r; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
DEVICE u32 pack_bf16(float lo, float hi) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(lo), "f"(hi)); return r; }
DEVICE void store_global_128(void* p, u32 r0, u32 r1, u32 r2, u32 r3) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" :: "l"(p), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}
DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

extern "C" __global__ void __launch_bounds__(256, 4)
softmax(const u16* X, u64 X_stride0, u16* Y, u64 Y_stride0, int ROWS) {
  extern __shared__ __align__(16) u8 smem_raw[];
  const u32 pool = shared_address(smem_raw);
  const u32 tops = pool;                                                                             // L15: tops = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32, stage=2)
  const u32 sums = pool + 64u;                                                                       // L16: sums = pool.view(offset=2 * WARPS * 4, shape=(WARPS,), dtype=lm.f32, stage=2)
  const int sched_r = ROWS;                                                                          // L20: sched = lm.scheduler(kind="grid" if ONCE else "static", tiles=(ROWS,), names=("r",))
  const int sched_tiles = sched_r;                                                                   // L20
  const u32 thread = threadIdx.x;                                                                    // L23: with work:
  const u32 warp = thread >> 5;                                                                      // L23
  const u32 lane = thread & 31u;                                                                     // L23
  u32 ring_n = 0;                                                                                    // L23
  pdl_launch();                                                                                      // L25: lm.pdl_launch()
  pdl_wait();                                                                                        // L26: lm.pdl_wait()
  const int t = (int)blockIdx.x;                                                                     // L27: for t in lm.tiles(sched):
  if (t < sched_tiles) {                                                                             // L27
    u32 x[8];                                                                                        // L28: x = lm.load(X, coords=(0, t.r), shape=(N,), form="vec", cache="keep" if KEEP else "stream" if STREAM else None)
    #pragma unroll
    for (int i_ = 0; i_ < 2; ++i_) {                                                                 // L28
      const int at_ = (i_ * 256 + (int)thread) * 8;                                                  // L28
      load_global_128_keep(x[4 * i_], x[4 * i_ + 1], x[4 * i_ + 2], x[4 * i_ + 3], X + (u64)(t) * X_stride0 + at_); // L28
    }
    const u32 s = ring_n++;                                                                          // L29: s = lm.step(ring)
    float p[16];                                                                                     // L35: p = lm.cast(x, lm.f32)
    #pragma unroll
    for (int i_ = 0; i_ < 8; ++i_) {                                                                 // L35
      p[2 * i_] = unpack_bf16(x[i_], 0);                                                             // L35
      p[2 * i_ + 1] = unpack_bf16(x[i_], 1);                                                         // L35
    }
    float top[1];                                                                                    // L36: top = lm.reduce(p, "max", across=work, scratch=tops[s], sync=cta)
    {
      float even = p[0], odd = p[1];                                                                 // L36
      #pragma unroll
      for (int i_ = 1; i_ < 8; ++i_) {                                                               // L36
        even = fmaxf(even, p[2 * i_]);                                                               // L36
        odd = fmaxf(odd, p[2 * i_ + 1]);                                                             // L36
      }
      top[0] = fmaxf(even, odd);                                                                     // L36
    }
    top[0] = fmaxf(top[0], __shfl_xor_sync(0xffffffffu, top[0], 16));                                // L36
    top[0] = fmaxf(top[0], __shfl_xor_sync(0xffffffffu, top[0], 8));                                 // L36
    top[0] = fmaxf(top[0], __shfl_xor_sync(0xffffffffu, top[0], 4));                                 // L36
    top[0] = fmaxf(top[0], __shfl_xor_sync(0xffffffffu, top[0], 2));                                 // L36
    top[0] = fmaxf(top[0], __shfl_xor_sync(0xffffffffu, top[0], 1));                                 // L36
    if (lane == 0) store_shared_f32(tops + 32u * (s % 2u) + 4u * warp, top[0]);                      // L36
    named_sync<1, 256>();                                                                            // L36
    top[0] = load_shared_f32(tops + 32u * (s % 2u));                                                 // L36
    #pragma unroll
    for (int i_ = 1; i_ < 8; ++i_) {                                                                 // L36
      top[0] = fmaxf(top[0], load_shared_f32(tops + 32u * (s % 2u) + 4u * i_));                      // L36
    }
    float once[1];                                                                                   // L37: p = lm.exp2(p * log2e - top * log2e)
    once[0] = __fmul_rn(top[0], 1.4426950408889634f);                                                // L37
    #pragma unroll
    for (int i_ = 0; i_ < 16; ++i_) {                                                                // L37
      p[i_] = exp2_approx(__fmaf_rn(1.4426950408889634f, p[i_], -once[0]));                          // L37
    }
    float total[1];                                                                                  // L38: total = lm.reduce(p, "add", across=work, scratch=sums[s], sync=cta)
    {
      float even = p[0], odd = p[1];                                                                 // L38
      #pragma unroll
      for (int i_ = 1; i_ < 8; ++i_) {                                                               // L38
        even = even + p[2 * i_];                                                                     // L38
        odd = odd + p[2 * i_ + 1];                                                                   // L38
      }
      total[0] = even + odd;                                                                         // L38
    }
    total[0] = total[0] + __shfl_xor_sync(0xffffffffu, total[0], 16);                                // L38
    total[0] = total[0] + __shfl_xor_sync(0xffffffffu, total[0], 8);                                 // L38
    total[0] = total[0] + __shfl_xor_sync(0xffffffffu, total[0], 4);                                 // L38
    total[0] = total[0] + __shfl_xor_sync(0xffffffffu, total[0], 2);                                 // L38
    total[0] = total[0] + __shfl_xor_sync(0xffffffffu, total[0], 1);                                 // L38
    if (lane == 0) store_shared_f32(sums + 32u * (s % 2u) + 4u * warp, total[0]);                    // L38
    named_sync<1, 256>();                                                                            // L38
    total[0] = load_shared_f32(sums + 32u * (s % 2u));                                               // L38
    #pragma unroll
    for (int i_ = 1; i_ < 8; ++i_) {                                                                 // L38
      total[0] = total[0] + load_shared_f32(sums + 32u * (s % 2u) + 4u * i_);                        // L38
    }
    float y[16];                                                                                     // L39: y = p * lm.rcp(total)
    float once_1[1];                                                                                 // L39
    once_1[0] = rcp_approx(total[0]);                                                                // L39
    #pragma unroll
    for (int i_ = 0; i_ < 16; ++i_) {                                                                // L39
      y[i_] = __fmul_rn(p[i_], once_1[0]);                                                           // L39
    }
    #pragma unroll
    for (int i_ = 0; i_ < 2; ++i_) {                                                                 // L40: lm.store(Y, lm.cast(y, lm.bf16), coords=(0, t.r), cache="stream" if STREAM else None)
      const int at_ = (i_ * 256 + (int)thread) * 8;                                                  // L40
      store_global_128(Y + (u64)(t) * Y_stride0 + at_, pack_bf16(y[8 * i_], y[8 * i_ + 1]), pack_bf16(y[8 * i_ + 2], y[8 * i_ + 3]), pack_bf16(y[8 * i_ + 4], y[8 * i_ + 5]), pack_bf16(y[8 * i_ + 6], y[8 * i_ + 7])); // L40
    }
  }
}

// add_rmsnorm for sm_90a, lowered from Cake IR
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef signed char i8; typedef long long i64;
#define DEVICE static __device__ __forceinline__

DEVICE void pdl_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
DEVICE void load_global_128_const_keep(u32& r0, u32& r1, u32& r2, u32& r3, const void* p) {
  asm("{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0; ld.global.nc.L1::evict_last.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], policy; }" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "l"(p));
}
DEVICE void pdl_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
DEVICE void load_global_128_keep(u32& r0, u32& r1, u32& r2, u32& r3, const void* p) {
  asm volatile("{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0; ld.global.L1::evict_last.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], policy; }" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "l"(p) : "memory");
}
DEVICE float unpack_bf16(u32 x, int i) { return __uint_as_float(i ? x & 0xffff0000u : x << 16); }
DEVICE u32 pack_bf16(float lo, float hi) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(lo), "f"(hi)); return r; }
DEVICE void store_global_128(void* p, u32 r0, u32 r1, u32 r2, u32 r3) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" :: "l"(p), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}
DEVICE void store_shared_f32(u32 address, float x) { asm volatile("st.shared.f32 [%0], %1;" :: "r"(address), "f"(x) : "memory"); }
DEVICE float load_shared_f32(u32 address) { float x; asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(address) : "memory"); return x; }
template <int ID, int THREADS> DEVICE void named_sync() { asm volatile("bar.sync %0, %1;" :: "n"(ID), "n"(THREADS) : "memory"); }
DEVICE float rsqrt_approx(float x) { float r; asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

extern "C" __global__ void __launch_bounds__(512, 2)
add_rmsnorm(const u16* X, u64 X_stride0, u16* R, u64 R_stride0, const u16* __restrict__ W, u16* Y, u64 Y_stride0, int ROWS, float eps) {
  extern __shared__ __align__(16) u8 smem_raw[];
  const u32 pool = shared_address(smem_raw);
  const u32 part = pool;                                                                             // L14: part = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32, stage=2)
  const int sched_r = ROWS;                                                                          // L18: sched = lm.scheduler(kind="grid" if ONCE else "static", tiles=(ROWS,), names=("r",))
  const int sched_tiles = sched_r;                                                                   // L18
  const u32 thread = threadIdx.x;                                                                    // L20: with work:
  const u32 warp = thread >> 5;                                                                      // L20
  const u32 lane = thread & 31u;                                                                     // L20
  u32 ring_n = 0;                                                                                    // L20
  pdl_launch();                                                                                      // L22: lm.pdl_launch()
  u32 w[4];                                                                                          // L24: w = lm.load(W, coords=(0,), shape=(D,), form="vec", cache="keep")
  #pragma unroll
  for (int i_ = 0; i_ < 1; ++i_) {                                                                   // L24
    const int at_ = (int)thread * 8 + 8 * i_;                                                        // L24
    load_global_128_const_keep(w[4 * i_], w[4 * i_ + 1], w[4 * i_ + 2], w[4 * i_ + 3], W + at_);     // L24
  }
  pdl_wait();                                                                                        // L25: lm.pdl_wait()
  const int t = (int)blockIdx.x;                                                                     // L26: for t in lm.tiles(sched):
  if (t < sched_tiles) {                                                                             // L26
    u32 x[4];                                                                                        // L27: x = lm.load(X, coords=(0, t.r), shape=(D,), form="vec", cache="keep" if KEEP else None)
    #pragma unroll
    for (int i_ = 0; i_ < 1; ++i_) {                                                                 // L27
      const int at_ = (int)thread * 8 + 8 * i_;                                                      // L27
      load_global_128_keep(x[4 * i_], x[4 * i_ + 1], x[4 * i_ + 2], x[4 * i_ + 3], X + (u64)(t) * X_stride0 + at_); // L27
    }
    u32 r[4];                                                                                        // L28: r = lm.load(R, coords=(0, t.r), shape=(D,), form="vec", cache="keep" if KEEP else None)
    #pragma unroll
    for (int i_ = 0; i_ < 1; ++i_) {                                                                 // L28
      const int at_ = (int)thread * 8 + 8 * i_;                                                      // L28
      load_global_128_keep(r[4 * i_], r[4 * i_ + 1], r[4 * i_ + 2], r[4 * i_ + 3], R + (u64)(t) * R_stride0 + at_); // L28
    }
    u32 h[4];                                                                                        // L29: h = lm.cast(lm.cast(x, lm.f32) + lm.cast(r, lm.f32), lm.bf16)
    #pragma unroll
    for (int i_ = 0; i_ < 4; ++i_) {                                                                 // L29
      h[i_] = pack_bf16((unpack_bf16(x[i_], 0) + unpack_bf16(r[i_], 0)), (unpack_bf16(x[i_], 1) + unpack_bf16(r[i_], 1))); // L29
    }
    #pragma unroll
    for (int i_ = 0; i_ < 1; ++i_) {                                                                 // L30: lm.store(R, h, coords=(0, t.r))
      const int at_ = (int)thread * 8 + 8 * i_;                                                      // L30
      store_global_128(R + (u64)(t) * R_stride0 + at_, h[4 * i_], h[4 * i_ + 1], h[4 * i_ + 2], h[4 * i_ + 3]); // L30
    }
    float hf[8];                                                                                     // L31: hf = lm.cast(h, lm.f32)
    #pragma unroll
    for (int i_ = 0; i_ < 4; ++i_) {                                                                 // L31
      hf[2 * i_] = unpack_bf16(h[i_], 0);                                                            // L31
      hf[2 * i_ + 1] = unpack_bf16(h[i_], 1);                                                        // L31
    }
    const u32 s = ring_n++;                                                                          // L32: s = lm.step(ring)
    float ss[1];                                                                                     // L33: ss = lm.reduce(hf * hf, "add", across=work, scratch=part[s], sync=cta)
    {
      float even = __fmul_rn(hf[0], hf[0]), odd = __fmul_rn(hf[1], hf[1]);                           // L33
      #pragma unroll
      for (int i_ = 1; i_ < 4; ++i_) {                                                               // L33
        even = even + __fmul_rn(hf[2 * i_], hf[2 * i_]);                                             // L33
        odd = odd + __fmul_rn(hf[2 * i_ + 1], hf[2 * i_ + 1]);                                       // L33
      }
      ss[0] = even + odd;                                                                            // L33
    }
    ss[0] = ss[0] + __shfl_xor_sync(0xffffffffu, ss[0], 16);                                         // L33
    ss[0] = ss[0] + __shfl_xor_sync(0xffffffffu, ss[0], 8);                                          // L33
    ss[0] = ss[0] + __shfl_xor_sync(0xffffffffu, ss[0], 4);                                          // L33
    ss[0] = ss[0] + __shfl_xor_sync(0xffffffffu, ss[0], 2);                                          // L33
    ss[0] = ss[0] + __shfl_xor_sync(0xffffffffu, ss[0], 1);                                          // L33
    if (lane == 0) store_shared_f32(part + 64u * (s % 2u) + 4u * warp, ss[0]);                       // L33
    named_sync<1, 512>();                                                                            // L33
    ss[0] = load_shared_f32(part + 64u * (s % 2u));                                                  // L33
    #pragma unroll
    for (int i_ = 1; i_ < 16; ++i_) {                                                                // L33
      ss[0] = ss[0] + load_shared_f32(part + 64u * (s % 2u) + 4u * i_);                              // L33
    }
    float y[8];                                                                                      // L36: y = hf * lm.rsqrt(ss * (1.0 / D) + eps) * lm.cast(w, lm.f32)
    float once[1];                                                                                   // L36
    once[0] = rsqrt_approx(__fmaf_rn(0.000244140625f, ss[0], eps));                                  // L36
    #pragma unroll
    for (int i_ = 0; i_ < 4; ++i_) {                                                                 // L36
      y[2 * i_] = __fmul_rn(__fmul_rn(hf[2 * i_], once[0]), unpack_bf16(w[i_], 0));                  // L36
      y[2 * i_ + 1] = __fmul_rn(__fmul_rn(hf[2 * i_ + 1], once[0]), unpack_bf16(w[i_], 1));          // L36
    }
    #pragma unroll
    for (int i_ = 0; i_ < 1; ++i_) {                                                                 // L37: lm.store(Y, lm.cast(y, lm.bf16), coords=(0, t.r))
      const int at_ = (int)thread * 8 + 8 * i_;                                                      // L37
      store_global_128(Y + (u64)(t) * Y_stride0 + at_, pack_bf16(y[8 * i_], y[8 * i_ + 1]), pack_bf16(y[8 * i_ + 2], y[8 * i_ + 3]), pack_bf16(y[8 * i_ + 4], y[8 * i_ + 5]), pack_bf16(y[8 * i_ + 6], y[8 * i_ + 7])); // L37
    }
  }
}

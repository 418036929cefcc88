// silu_mul_quant_rows for sm_90a, lowered from Cake IR
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef signed char i8; typedef long long i64;
#define DEVICE static __device__ __forceinline__

DEVICE int cdiv(int a, int b) { const int q = a / b; return q + (a % b > 0); }  // b > 0
DEVICE void pdl_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
DEVICE void load_global_128(u32& r0, u32& r1, u32& r2, u32& r3, const void* p) {
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "l"(p) : "memory");
}
DEVICE float unpack_bf16(u32 x, int i) { return __uint_as_float(i ? x & 0xffff0000u : x << 16); }
DEVICE float exp2_approx(float x) { float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
DEVICE float rcp_approx(float x) { float r; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
DEVICE float sigmoid(float x) { return rcp_approx(1.0f + exp2_approx(__fmul_rn(x, -1.4426950408889634f))); }
DEVICE float silu(float x) { return __fmul_rn(x, sigmoid(x)); }
DEVICE float amax_scale_f32_e4m3(float amax) { return __fmul_rn(fmaxf(amax, __int_as_float(0x04e00000)), 0.002232142857142857f); }
DEVICE u32 pack_e4m3(float a, float b, float c, float d) {
  u32 r;
  asm("{ .reg .b16 lo, hi; cvt.rn.satfinite.e4m3x2.f32 lo, %2, %1; cvt.rn.satfinite.e4m3x2.f32 hi, %4, %3; mov.b32 %0, {lo, hi}; }"
      : "=r"(r) : "f"(a), "f"(b), "f"(c), "f"(d));
  return r;
}
DEVICE void store_global_64(void* p, u32 r0, u32 r1) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" :: "l"(p), "r"(r0), "r"(r1) : "memory");
}
DEVICE void pdl_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

extern "C" __global__ void __launch_bounds__(128, 8)
silu_mul_quant_rows(const u16* X, u64 X_stride0, u64 X_stride1, u8* Q, u64 Q_stride0, float* SCALE, u64 SCALE_stride0, int M, int N, int G) {
  const int sched_c = cdiv(N, 2048);                                                                 // L12: sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(N, width), M), names=("c", "m"))
  const int sched_m = M;                                                                             // L12
  const int sched_tiles = sched_c * sched_m;                                                         // L12
  const u32 thread = threadIdx.x;                                                                    // L14: with work:
  const u32 lane = thread & 31u;                                                                     // L14
  pdl_wait();                                                                                        // L17: lm.pdl_wait()
  const int t = (int)blockIdx.x;                                                                     // L18: for t in lm.tiles(sched):
  if (t < sched_tiles) {                                                                             // L18
    const int t_c = t % sched_c;                                                                     // L18
    const int t_m = t / sched_c;                                                                     // L18
    u32 gate[8];                                                                                     // L19: gate = lm.load(X, coords=(t.c * width, 0, t.m), shape=(width,), form="vec", cache="keep" if KEEP else "stream" if STREAM else None, clip=True)
    #pragma unroll
    for (int i_ = 0; i_ < 8; ++i_) {                                                                 // L19
      gate[i_] = 0u;                                                                                 // L19
    }
    #pragma unroll
    for (int i_ = 0; i_ < 2; ++i_) {                                                                 // L19
      const int at_ = (i_ * 128 + (int)thread) * 8;                                                  // L19
      if ((t_c * 2048 + at_) < N) {                                                                  // L19
        load_global_128(gate[4 * i_], gate[4 * i_ + 1], gate[4 * i_ + 2], gate[4 * i_ + 3], X + (u64)(t_m) * X_stride0 + (t_c * 2048) + at_); // L19
      }
    }
    u32 up[8];                                                                                       // L20: up = lm.load(X, coords=(t.c * width, 1, t.m), shape=(width,), form="vec", cache="keep" if KEEP else "stream" if STREAM else None, clip=True)
    #pragma unroll
    for (int i_ = 0; i_ < 8; ++i_) {                                                                 // L20
      up[i_] = 0u;                                                                                   // L20
    }
    #pragma unroll
    for (int i_ = 0; i_ < 2; ++i_) {                                                                 // L20
      const int at_ = (i_ * 128 + (int)thread) * 8;                                                  // L20
      if ((t_c * 2048 + at_) < N) {                                                                  // L20
        load_global_128(up[4 * i_], up[4 * i_ + 1], up[4 * i_ + 2], up[4 * i_ + 3], X + (u64)(t_m) * X_stride0 + (u64)(1) * X_stride1 + (t_c * 2048) + at_); // L20
      }
    }
    float v[16];                                                                                     // L21: v = lm.silu(lm.cast(gate, lm.f32)) * lm.cast(up, lm.f32)
    #pragma unroll
    for (int i_ = 0; i_ < 8; ++i_) {                                                                 // L21
      v[2 * i_] = __fmul_rn(silu(unpack_bf16(gate[i_], 0)), unpack_bf16(up[i_], 0));                 // L21
      v[2 * i_ + 1] = __fmul_rn(silu(unpack_bf16(gate[i_], 1)), unpack_bf16(up[i_], 1));             // L21
    }
    float scale[2];                                                                                  // L22: scale = lm.max(lm.amax_scale(v, axis=1, block=128), 1e-4 / 448.0)
    float once[2];                                                                                   // L22
    #pragma unroll
    for (int r_ = 0; r_ < 2; ++r_) {                                                                 // L22
      float even = fabsf(v[8 * r_]), odd = fabsf(v[8 * r_ + 1]);                                     // L22
      #pragma unroll
      for (int j_ = 1; j_ < 4; ++j_) {                                                               // L22
        even = fmaxf(even, fabsf(v[8 * r_ + 2 * j_]));                                               // L22
        odd = fmaxf(odd, fabsf(v[8 * r_ + 2 * j_ + 1]));                                             // L22
      }
      once[r_] = fmaxf(even, odd);                                                                   // L22
    }
    #pragma unroll
    for (int i_ = 0; i_ < 2; ++i_) {                                                                 // L22
      once[i_] = fmaxf(once[i_], __shfl_xor_sync(0xffffffffu, once[i_], 8));                         // L22
      once[i_] = fmaxf(once[i_], __shfl_xor_sync(0xffffffffu, once[i_], 4));                         // L22
      once[i_] = fmaxf(once[i_], __shfl_xor_sync(0xffffffffu, once[i_], 2));                         // L22
      once[i_] = fmaxf(once[i_], __shfl_xor_sync(0xffffffffu, once[i_], 1));                         // L22
    }
    #pragma unroll
    for (int i_ = 0; i_ < 2; ++i_) {                                                                 // L22
      once[i_] = amax_scale_f32_e4m3(once[i_]);                                                      // L22
    }
    #pragma unroll
    for (int i_ = 0; i_ < 2; ++i_) {                                                                 // L22
      scale[i_] = fmaxf(once[i_], 2.2321428571428574e-07f);                                          // L22
    }
    float once_1[2];                                                                                 // L23: lm.store(Q, lm.cast(v * lm.rcp(scale), lm.e4m3), coords=(t.c * width, t.m), cache="stream" if STREAM else None, clip=True)
    #pragma unroll
    for (int i_ = 0; i_ < 2; ++i_) {                                                                 // L23
      once_1[i_] = rcp_approx(scale[i_]);                                                            // L23
    }
    #pragma unroll
    for (int i_ = 0; i_ < 2; ++i_) {                                                                 // L23
      const int at_ = (i_ * 128 + (int)thread) * 8;                                                  // L23
      if ((t_c * 2048 + at_) < N) {                                                                  // L23
        store_global_64(Q + (u64)(t_m) * Q_stride0 + (t_c * 2048) + at_, pack_e4m3(__fmul_rn(v[8 * i_], once_1[i_]), __fmul_rn(v[8 * i_ + 1], once_1[i_]), __fmul_rn(v[8 * i_ + 2], once_1[i_]), __fmul_rn(v[8 * i_ + 3], once_1[i_])), pack_e4m3(__fmul_rn(v[8 * i_ + 4], once_1[i_]), __fmul_rn(v[8 * i_ + 5], once_1[i_]), __fmul_rn(v[8 * i_ + 6], once_1[i_]), __fmul_rn(v[8 * i_ + 7], once_1[i_]))); // L23
      }
    }
    #pragma unroll
    for (int i_ = 0; i_ < 2; ++i_) {                                                                 // L24: lm.store(SCALE, scale, coords=(t.c * (width // 128), t.m), clip=True)
      if ((lane & 15u) == 0 && (t_c * 16 + ((128 * i_ + (int)thread) / 16)) < G) (SCALE + (u64)(t_m) * SCALE_stride0 + (t_c * 16))[(128 * i_ + (int)thread) / 16] = scale[i_]; // L24
    }
  }
  pdl_launch();                                                                                      // L26: lm.pdl_launch()
}

// kmeans_assign for sm_90a, lowered from Cake IR
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef signed char i8; typedef long long i64;
#define DEVICE static __device__ __forceinline__
struct alignas(64) TensorMap { u64 opaque[16]; };

DEVICE int cdiv(int a, int b) { const int q = a / b; return q + (a % b > 0); }  // b > 0
template <int N> DEVICE void setmaxnreg_dec() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(N)); }
DEVICE bool elect_one() {
  u32 chosen;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(chosen));
  return chosen != 0;
}
DEVICE bool mbarrier_try(u32 bar, u32 parity) {
  u32 complete;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(complete) : "r"(bar), "r"(parity) : "memory");
  return complete != 0;
}
DEVICE void mbarrier_wait(u32 bar, u32 parity) {
  if (mbarrier_try(bar, parity)) return;
  asm volatile("{ .reg .pred p, q; .reg .u32 n; mov.u32 n, 0;\n"
               "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nadd.u32 n, n, 1;\nsetp.eq.u32 q, n, 0x4000000;\n@q trap;\nbra AGAIN;\nDONE: }"
               :: "r"(bar), "r"(parity) : "memory");
}
DEVICE void mbarrier_expect_tx(u32 bar, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory"); }
DEVICE void tma_load_3d(u32 dst, const TensorMap* map, int x, int y, int z, u32 bar) { asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" :: "r"(dst), "l"(map), "r"(x), "r"(y), "r"(z), "r"(bar) : "memory"); }
DEVICE void tma_load_2d(u32 dst, const TensorMap* map, int x, int y, u32 bar) { asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" :: "r"(dst), "l"(map), "r"(x), "r"(y), "r"(bar) : "memory"); }
template <int N> DEVICE void setmaxnreg_inc() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(N)); }
DEVICE u32 descriptor_low(u32 address, u32 leading) { return (address & 0x3ffffu) >> 4 | (leading >> 4) << 16; }
DEVICE u64 descriptor(u32 high, u32 low) { return (u64)high << 32 | low; }
template <int N> DEVICE void pin(float* x) {
  #pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(x[i]) :: "memory");
}
DEVICE void wgmma_m64n256k16_f32_bf16_ss(float* d, u64 a, u64 b, int accumulate) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %130, 0;\n"
    "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 0; }"
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
    : "l"(a), "l"(b), "r"(accumulate));
}
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
DEVICE void load_shared_f32x2(float& x, float& y, u32 address) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(address) : "memory");
}
template <int N> DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory"); }
DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void mbarrier_arrive(u32 bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory"); }
template <int N> DEVICE void pin_int(int* x) {
  #pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(x[i]) :: "memory");
}
DEVICE void prefetch_map(const TensorMap* map) { asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory"); }
DEVICE void mbarrier_init(u32 bar, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory"); }
DEVICE void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

extern "C" __global__ void __launch_bounds__(384, 1)
kmeans_assign(const __grid_constant__ TensorMap X_map, const __grid_constant__ TensorMap MU_map, const __grid_constant__ TensorMap MU_SQ_map, int* IDX, u64 IDX_stride0, float* DIST, u64 DIST_stride0, int NB, int NP, int NK) {
  extern __shared__ __align__(16) u8 smem_raw[];
  const u32 pool = (shared_address(smem_raw) + 1023u) & ~1023u;
  const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
  const u32 smem_x = pool;                                                                           // L15: smem_x = pool.view(offset=0, shape=(BM, D), dtype=lm.bf16, stage=XSTAGES, swizzle="128b")
  const u32 smem_c = pool + 65536u;                                                                  // L16: smem_c = pool.view(offset=x_bytes, shape=(BN, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
  const u32 smem_n = pool + 196608u;                                                                 // L17: smem_n = pool.view(offset=x_bytes + c_bytes, shape=(BN,), dtype=lm.f32, stage=STAGES)
  const u32 x_full = pool + 198656u;                                                                 // L22: x_full = lm.barrier(pipeline=xp, prod=[load], cons=[math], arrive="tx")
  const u32 x_empty = pool + 198672u;                                                                // L23: x_empty = lm.barrier(pipeline=xp, prod=[math], cons=[load], arrive="member", primed=True)
  const u32 c_full = pool + 198688u;                                                                 // L25: c_full = lm.barrier(pipeline=cp, prod=[load], cons=[math], arrive="tx")
  const u32 c_empty = pool + 198704u;                                                                // L26: c_empty = lm.barrier(pipeline=cp, prod=[math], cons=[load], arrive="warp", primed=True)
  const int sched_m = cdiv(NP, 128);                                                                 // L27: sched = lm.scheduler(kind="static", tiles=(lm.cdiv(NP, BM), NB), names=("m", "b"))
  const int sched_b = NB;                                                                            // L27
  const int sched_tiles = sched_m * sched_b;                                                         // L27
  const int kt = cdiv(NK, 256);                                                                      // L28: kt = lm.cdiv(NK, BN)
  if (threadIdx.x == 0) {
    prefetch_map(&X_map);
    prefetch_map(&MU_map);
    prefetch_map(&MU_SQ_map);
    #pragma unroll
    for (u32 i = 0; i < 2; ++i) mbarrier_init(x_full + 8u * i, 1u);                                  // L22: x_full = lm.barrier(pipeline=xp, prod=[load], cons=[math], arrive="tx")
    #pragma unroll
    for (u32 i = 0; i < 2; ++i) mbarrier_init(x_empty + 8u * i, 2u);                                 // L23: x_empty = lm.barrier(pipeline=xp, prod=[math], cons=[load], arrive="member", primed=True)
    #pragma unroll
    for (u32 i = 0; i < 2; ++i) mbarrier_init(c_full + 8u * i, 1u);                                  // L25: c_full = lm.barrier(pipeline=cp, prod=[load], cons=[math], arrive="tx")
    #pragma unroll
    for (u32 i = 0; i < 2; ++i) mbarrier_init(c_empty + 8u * i, 8u);                                 // L26: c_empty = lm.barrier(pipeline=cp, prod=[math], cons=[load], arrive="warp", primed=True)
    fence_mbarrier_init();
  }
  __syncthreads();
  if (warpgroup == 2) {                                                                              // L30: with load:
    setmaxnreg_dec<40>();                                                                            // L30
    u32 xp_n = 0;                                                                                    // L30
    u32 cp_n = 0;                                                                                    // L30
    if ((threadIdx.x >> 5) == 8 && elect_one()) {                                                    // L30
      #pragma unroll 1
      for (int t = (int)blockIdx.x; t < sched_tiles; t += (int)gridDim.x) {                          // L31: for t in lm.tiles(sched):
        const int t_m = t % sched_m;                                                                 // L31
        const int t_b = t / sched_m;                                                                 // L31
        const u32 sx = xp_n++;                                                                       // L32: sx = lm.step(xp)
        mbarrier_wait(x_empty + 8u * (sx % 2u), ((sx / 2u) & 1u) ^ 1u);                              // L33: lm.wait(x_empty, stage=sx)
        mbarrier_expect_tx(x_full + 8u * (sx % 2u), 32768u);                                         // L34: smem_x.tma_load(X, coords=(0, t.m * BM, t.b), stage=sx, barrier=x_full)
        tma_load_3d(smem_x + 32768u * (sx % 2u), &X_map, 0, t_m * 128, t_b, x_full + 8u * (sx % 2u)); // L34
        tma_load_3d(smem_x + 32768u * (sx % 2u) + 16384u, &X_map, 64, t_m * 128, t_b, x_full + 8u * (sx % 2u)); // L34
        #pragma unroll 1
        for (int k = 0; k < kt; ++k) {                                                               // L35: for k in lm.range(kt):
          const u32 s = cp_n++;                                                                      // L36: s = lm.step(cp)
          mbarrier_wait(c_empty + 8u * (s % 2u), ((s / 2u) & 1u) ^ 1u);                              // L37: lm.wait(c_empty, stage=s)
          mbarrier_expect_tx(c_full + 8u * (s % 2u), 66560u);                                        // L38: smem_c.tma_load(MU, coords=(0, k * BN, t.b), stage=s, barrier=c_full)
          tma_load_3d(smem_c + 65536u * (s % 2u), &MU_map, 0, k * 256, t_b, c_full + 8u * (s % 2u)); // L38
          tma_load_3d(smem_c + 65536u * (s % 2u) + 32768u, &MU_map, 64, k * 256, t_b, c_full + 8u * (s % 2u)); // L38
          tma_load_2d(smem_n + 1024u * (s % 2u), &MU_SQ_map, k * 256, t_b, c_full + 8u * (s % 2u));  // L39: smem_n.tma_load(MU_SQ, coords=(k * BN, t.b), stage=s, barrier=c_full)
        }
      }
    }
    __syncwarp();                                                                                    // L30: with load:
  } else {                                                                                           // L41: with math:
    setmaxnreg_inc<232>();                                                                           // L41
    const int math_index = warpgroup;                                                                // L41
    const u32 thread = threadIdx.x & 127u;                                                           // L41
    const u32 warp = thread >> 5;                                                                    // L41
    const u32 lane = thread & 31u;                                                                   // L41
    u32 xp_n = 0;                                                                                    // L41
    u32 cp_n = 0;                                                                                    // L41
    float acc[128];                                                                                  // L42: acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
    #pragma unroll 1
    for (int t = (int)blockIdx.x; t < sched_tiles; t += (int)gridDim.x) {                            // L43: for t in lm.tiles(sched):
      const int t_m = t % sched_m;                                                                   // L43
      const int t_b = t / sched_m;                                                                   // L43
      const int row0 = t_m * 128 + 64 * math_index;                                                  // L44: row0 = t.m * BM + 64 * math.index
      const u32 sx = xp_n++;                                                                         // L45: sx = lm.step(xp)
      mbarrier_wait(x_full + 8u * (sx % 2u), (sx / 2u) & 1u);                                        // L46: lm.wait(x_full, stage=sx)
      const u32 x = smem_x + 32768u * (sx % 2u) + 8192u * math_index;                                // L47: x = smem_x[sx].rows(64 * math.index, 64)
      float best_value[4];                                                                           // L48: best = (lm.rowvec(acc, init=lm.inf), lm.rowvec(acc, init=0))
      int best_index[4];                                                                             // L48
      #pragma unroll
      for (int i_ = 0; i_ < 4; ++i_) {                                                               // L48
        best_value[i_] = __int_as_float(0x7f800000);                                                 // L48
      }
      #pragma unroll
      for (int i_ = 0; i_ < 4; ++i_) {                                                               // L48
        best_index[i_] = 0;                                                                          // L48
      }
      #pragma unroll 1
      for (int k = 0; k < kt; ++k) {                                                                 // L49: for k in lm.range(kt):
        const u32 s = cp_n++;                                                                        // L50: s = lm.step(cp)
        mbarrier_wait(c_full + 8u * (s % 2u), (s / 2u) & 1u);                                        // L51: lm.wait(c_full, stage=s)
        pin<128>(acc);                                                                               // L52: lm.mma(acc, x, smem_c[s], init=True)
        {
          const u32 a_ = descriptor_low(x, 16u), b_ = descriptor_low(smem_c, 16u) + 4096u * (s % 2u); // L52
          wgmma_fence();                                                                             // L52
          #pragma unroll
          for (int k_ = 0; k_ < 8; ++k_) {                                                           // L52
            wgmma_m64n256k16_f32_bf16_ss(acc, descriptor(0x40000040u, a_ + 1024u * (k_ / 4) + 2u * (k_ % 4)), descriptor(0x40000040u, b_ + 2048u * (k_ / 4) + 2u * (k_ % 4)), k_ != 0); // L52
          }
          wgmma_commit();                                                                            // L52
        }
        float nrm[64];                                                                               // L53: nrm = smem_n[s].load(form="colvec", like=acc)
        #pragma unroll
        for (int i_ = 0; i_ < 32; ++i_) {                                                            // L53
          load_shared_f32x2(nrm[2 * i_], nrm[2 * i_ + 1], smem_n + 1024u * (s % 2u) + (8u * i_ + 2u * (lane & 3u)) * 4u); // L53
        }
        if (k * 256 + 255 >= NK) {                                                                   // L54: nrm = lm.where(lm.iota(acc, axis=1, base=k * BN) < NK, nrm, lm.inf)
          #pragma unroll
          for (int i_ = 0; i_ < 64; ++i_) {                                                          // L54
            nrm[i_] = ((k * 256 + 8 * (i_ / 2) + (i_ % 2) + 2 * (int)(lane & 3u)) < NK) ? nrm[i_] : __int_as_float(0x7f800000); // L54
          }
        }
        wgmma_wait<0>();                                                                             // L55: lm.mma_wait(pending=0)
        pin<128>(acc);                                                                               // L55
        fence_proxy_async();                                                                         // L56: lm.arrive(c_empty, stage=s)
        __syncwarp();                                                                                // L56
        if (lane == 0) mbarrier_arrive(c_empty + 8u * (s % 2u));                                     // L56
        {
          float best[2], kept[2][3];                                                                 // L57: best = lm.argmin(nrm - 2.0 * acc, axis=1, base=k * BN, into=best)
          int group[2], column[2];                                                                   // L57
          #pragma unroll
          for (int r_ = 0; r_ < 2; ++r_) {                                                           // L57
            const float x_[4] = {__fmaf_rn(-2.0f, acc[2 * r_], nrm[0]), __fmaf_rn(-2.0f, acc[2 * r_ + 1], nrm[1]), __fmaf_rn(-2.0f, acc[2 * r_ + 4], nrm[2 * 1]), __fmaf_rn(-2.0f, acc[2 * r_ + 5], nrm[2 * 1 + 1])}; // L57
            const float top = fminf(fminf(x_[0], x_[1]), fminf(x_[2], x_[3]));                       // L57
            best[r_] = fminf(top, __int_as_float(0x7f800000));                                       // L57
            group[r_] = 0;                                                                           // L57
            kept[r_][0] = x_[0];                                                                     // L57
            kept[r_][1] = x_[1];                                                                     // L57
            kept[r_][2] = x_[2];                                                                     // L57
          }
          #pragma unroll
          for (int j_ = 1; j_ < 16; ++j_) {                                                          // L57
            #pragma unroll
            for (int r_ = 0; r_ < 2; ++r_) {                                                         // L57
              const float x_[4] = {__fmaf_rn(-2.0f, acc[8 * j_ + 2 * r_], nrm[2 * (2 * j_)]), __fmaf_rn(-2.0f, acc[8 * j_ + 2 * r_ + 1], nrm[2 * (2 * j_) + 1]), __fmaf_rn(-2.0f, acc[8 * j_ + 2 * r_ + 4], nrm[2 * (2 * j_ + 1)]), __fmaf_rn(-2.0f, acc[8 * j_ + 2 * r_ + 5], nrm[2 * (2 * j_ + 1) + 1])}; // L57
              const float top = fminf(fminf(x_[0], x_[1]), fminf(x_[2], x_[3]));                     // L57
              const bool wins = top < best[r_];                                                      // L57
              best[r_] = fminf(best[r_], top);                                                       // L57
              group[r_] = wins ? 16 * j_ : group[r_];                                                // L57
              kept[r_][0] = wins ? x_[0] : kept[r_][0];                                              // L57
              kept[r_][1] = wins ? x_[1] : kept[r_][1];                                              // L57
              kept[r_][2] = wins ? x_[2] : kept[r_][2];                                              // L57
            }
          }
          #pragma unroll
          for (int r_ = 0; r_ < 2; ++r_) {                                                           // L57
            column[r_] = group[r_] + (kept[r_][0] == best[r_] ? 0 : kept[r_][1] == best[r_] ? 1 : kept[r_][2] == best[r_] ? 8 : 9); // L57
          }
          #pragma unroll
          for (int i_ = 0; i_ < 2; ++i_) {                                                           // L57
            const bool wins = best[i_] < best_value[2 * i_];                                         // L57
            best_value[2 * i_] = wins ? best[i_] : best_value[2 * i_];                               // L57
            best_index[2 * i_] = wins ? (k * 256) + 2 * (int)(lane & 3u) + column[i_] : best_index[2 * i_]; // L57
          }
        }
        pin<4>(best_value);                                                                          // L49: for k in lm.range(kt):
        pin_int<4>(best_index);                                                                      // L49
      }
      if (thread == 0) mbarrier_arrive(x_empty + 8u * (sx % 2u));                                    // L58: lm.arrive(x_empty, stage=sx)
      float pair_value[2];                                                                           // L59: val, idx = lm.finish(best)
      int pair_index[2];                                                                             // L59
      #pragma unroll
      for (int i_ = 0; i_ < 2; ++i_) {                                                               // L59
        pair_value[i_] = best_value[2 * i_];                                                         // L59
        pair_index[i_] = best_index[2 * i_];                                                         // L59
        {
          const float w_ = best_value[2 * i_ + 1];                                                   // L59
          const int at_ = best_index[2 * i_ + 1];                                                    // L59
          if (w_ < pair_value[i_] || (w_ == pair_value[i_] && at_ < pair_index[i_])) { pair_value[i_] = w_; pair_index[i_] = at_; } // L59
        }
        {
          const float w_ = __shfl_xor_sync(0xffffffffu, pair_value[i_], 1);                          // L59
          const int at_ = __shfl_xor_sync(0xffffffffu, pair_index[i_], 1);                           // L59
          if (w_ < pair_value[i_] || (w_ == pair_value[i_] && at_ < pair_index[i_])) { pair_value[i_] = w_; pair_index[i_] = at_; } // L59
        }
        {
          const float w_ = __shfl_xor_sync(0xffffffffu, pair_value[i_], 2);                          // L59
          const int at_ = __shfl_xor_sync(0xffffffffu, pair_index[i_], 2);                           // L59
          if (w_ < pair_value[i_] || (w_ == pair_value[i_] && at_ < pair_index[i_])) { pair_value[i_] = w_; pair_index[i_] = at_; } // L59
        }
      }
      float val[2];                                                                                  // L59
      #pragma unroll
      for (int i_ = 0; i_ < 2; ++i_) {                                                               // L59
        val[i_] = pair_value[i_];                                                                    // L59
      }
      int idx[2];                                                                                    // L59
      #pragma unroll
      for (int i_ = 0; i_ < 2; ++i_) {                                                               // L59
        idx[i_] = pair_index[i_];                                                                    // L59
      }
      #pragma unroll
      for (int i_ = 0; i_ < 2; ++i_) {                                                               // L61: lm.store(IDX, idx, coords=(row0, t.b), mask=rows < NP)
        if ((lane & 3u) == 0 && ((row0 + 16 * (int)warp + 8 * i_ + (int)(lane >> 2)) < NP)) (IDX + (u64)(t_b) * IDX_stride0 + row0)[16 * (int)warp + 8 * i_ + (int)(lane >> 2)] = idx[i_]; // L61
      }
      #pragma unroll
      for (int i_ = 0; i_ < 2; ++i_) {                                                               // L62: lm.store(DIST, val, coords=(row0, t.b), mask=rows < NP)
        if ((lane & 3u) == 0 && ((row0 + 16 * (int)warp + 8 * i_ + (int)(lane >> 2)) < NP)) (DIST + (u64)(t_b) * DIST_stride0 + row0)[16 * (int)warp + 8 * i_ + (int)(lane >> 2)] = val[i_]; // L62
      }
    }
  }
}

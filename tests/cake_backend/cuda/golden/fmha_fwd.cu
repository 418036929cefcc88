// fmha_fwd for sm_90a, lowered from Cake IR
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
DEVICE void tma_load_4d(u32 dst, const TensorMap* map, int x, int y, int z, int u, u32 bar) { asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" :: "r"(dst), "l"(map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(bar) : "memory"); }
template <int N> DEVICE void setmaxnreg_inc() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(N)); }
template <int ID, int THREADS> DEVICE void named_arrive() { asm volatile("bar.arrive %0, %1;" :: "n"(ID), "n"(THREADS) : "memory"); }
DEVICE u64 descriptor(u32 high, u32 low) { return (u64)high << 32 | low; }
template <int N> DEVICE void pin(float* x) {
  #pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(x[i]) :: "memory");
}
DEVICE void wgmma_m64n128k16_f32_bf16_ss(float* d, u64 a, u64 b, int accumulate) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0;\n"
    "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 0; }"
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
    : "l"(a), "l"(b), "r"(accumulate));
}
DEVICE u32 descriptor_low(u32 address, u32 leading) { return (address & 0x3ffffu) >> 4 | (leading >> 4) << 16; }
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory"); }
DEVICE void mbarrier_arrive(u32 bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory"); }
DEVICE float exp2_approx(float x) { float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
DEVICE u32 pack_bf16(float lo, float hi) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(lo), "f"(hi)); return r; }
template <int N> DEVICE void pin_u32(u32* x) {
  #pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(x[i]) :: "memory");
}
template <int ID, int THREADS> DEVICE void named_sync() { asm volatile("bar.sync %0, %1;" :: "n"(ID), "n"(THREADS) : "memory"); }
DEVICE void wgmma_m64n128k16_f32_bf16_rs_tb(float* d, u32 a0, u32 a1, u32 a2, u32 a3, u64 b, int accumulate) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %69, 0;\n"
    "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, p, 1, 1, 1; }"
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
    : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate));
}
DEVICE float rcp_approx(float x) { float r; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
DEVICE void stmatrix_x4(u32 address, u32 r0, u32 r1, u32 r2, u32 r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               :: "r"(address), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}
DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
DEVICE void tma_store_4d(const TensorMap* map, u32 src, int x, int y, int z, int u) { asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" :: "l"(map), "r"(src), "r"(x), "r"(y), "r"(z), "r"(u) : "memory"); }
DEVICE float log2_approx(float x) { float r; asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
template <int N> DEVICE void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(N) : "memory"); }
DEVICE void prefetch_map(const TensorMap* map) { asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory"); }
DEVICE void mbarrier_init(u32 bar, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory"); }
DEVICE void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
DEVICE void demand(bool holds) { if (!holds) asm volatile("trap;"); }

extern "C" __global__ void __launch_bounds__(384, 1)
fmha_fwd(const __grid_constant__ TensorMap Q_map, const __grid_constant__ TensorMap K_map, const __grid_constant__ TensorMap V_map, const __grid_constant__ TensorMap O_map, float* LSE, u64 LSE_stride0, u64 LSE_stride1, int B, int H, int S, float scale_log2) {
  extern __shared__ __align__(1024) u8 smem_raw[];
  const u32 pool = shared_address(smem_raw);
  demand((pool & 1023u) == 0);
  const u32 pool_low = (pool & 0x3ffffu) >> 4;
  const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
  const u32 smem_q = pool;                                                                           // L12: smem_q = pool.view(offset=0, shape=(BM, D), dtype=lm.bf16, swizzle="128b")
  const u32 smem_k = pool + 32768u;                                                                  // L13: smem_k = pool.view(offset=q_bytes, shape=(BN, D), dtype=lm.bf16, stage=2, swizzle="128b")
  const u32 smem_v = pool + 98304u;                                                                  // L14: smem_v = pool.view(offset=q_bytes + kv_bytes, shape=(BN, D), dtype=lm.bf16, stage=2, swizzle="128b")
  const u32 q_full = pool + 163840u;                                                                 // L20: q_full = lm.barrier(pipeline=qp, prod=[load], cons=[math], arrive="tx")
  const u32 q_empty = pool + 163848u;                                                                // L21: q_empty = lm.barrier(pipeline=qp, prod=[math], cons=[load], arrive="warp", primed=True)
  const u32 k_full = pool + 163856u;                                                                 // L23: k_full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
  const u32 k_empty = pool + 163872u;                                                                // L24: k_empty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="warp", primed=True)
  const u32 v_full = pool + 163888u;                                                                 // L25: v_full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
  const u32 v_empty = pool + 163904u;                                                                // L26: v_empty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="warp", primed=True)
  const int sched_m = cdiv(S, 128);                                                                  // L29: sched = lm.scheduler(kind="static", tiles=(lm.cdiv(S, BM), H, B), raster="heavy_first",
  const int sched_h = H;                                                                             // L29
  const int sched_b = B;                                                                             // L29
  const int sched_tiles = sched_m * sched_h * sched_b;                                               // L29
  if (threadIdx.x == 0) {
    prefetch_map(&Q_map);
    prefetch_map(&K_map);
    prefetch_map(&V_map);
    prefetch_map(&O_map);
    mbarrier_init(q_full, 1u);                                                                       // L20: q_full = lm.barrier(pipeline=qp, prod=[load], cons=[math], arrive="tx")
    mbarrier_init(q_empty, 8u);                                                                      // L21: q_empty = lm.barrier(pipeline=qp, prod=[math], cons=[load], arrive="warp", primed=True)
    #pragma unroll
    for (u32 i = 0; i < 2; ++i) mbarrier_init(k_full + 8u * i, 1u);                                  // L23: k_full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    #pragma unroll
    for (u32 i = 0; i < 2; ++i) mbarrier_init(k_empty + 8u * i, 8u);                                 // L24: k_empty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="warp", primed=True)
    #pragma unroll
    for (u32 i = 0; i < 2; ++i) mbarrier_init(v_full + 8u * i, 1u);                                  // L25: v_full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    #pragma unroll
    for (u32 i = 0; i < 2; ++i) mbarrier_init(v_empty + 8u * i, 8u);                                 // L26: v_empty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="warp", primed=True)
    fence_mbarrier_init();
  }
  __syncthreads();
  if (warpgroup == 2) {                                                                              // L32: with load:
    setmaxnreg_dec<24>();                                                                            // L32
    u32 qp_n = 0;                                                                                    // L32
    u32 kv_n = 0;                                                                                    // L32
    if ((threadIdx.x >> 5) == 8 && elect_one()) {                                                    // L32
      #pragma unroll 1
      for (int t = (int)blockIdx.x; t < sched_tiles; t += (int)gridDim.x) {                          // L33: for t in lm.tiles(sched):
        const int t_h = t % sched_h;                                                                 // L33
        const int t_b = t / sched_h % sched_b;                                                       // L33
        const int t_m = sched_m - 1 - t / sched_h / sched_b;                                         // L33
        const int nblk = min(cdiv((t_m + 1) * 128, 128), cdiv(S, 128));                              // L34: nblk = lm.min(lm.cdiv((t.m + 1) * BM, BN), lm.cdiv(S, BN)) if CAUSAL else lm.cdiv(S, BN)
        const u32 sq = qp_n++;                                                                       // L35: sq = lm.step(qp)
        mbarrier_wait(q_empty, (sq & 1u) ^ 1u);                                                      // L36: lm.wait(q_empty, stage=sq)
        mbarrier_expect_tx(q_full, 32768u);                                                          // L37: smem_q.tma_load(Q, coords=(0, t.m * BM, t.h, t.b), stage=sq, barrier=q_full)
        tma_load_4d(smem_q, &Q_map, 0, t_m * 128, t_h, t_b, q_full);                                 // L37
        tma_load_4d(smem_q + 16384u, &Q_map, 64, t_m * 128, t_h, t_b, q_full);                       // L37
        #pragma unroll 1
        for (int j = 0; j < nblk; ++j) {                                                             // L38: for j in lm.range(nblk):
          const u32 s = kv_n++;                                                                      // L39: s = lm.step(kv)
          const int row = (nblk - 1 - j) * 128;                                                      // L40: row = (nblk - 1 - j) * BN
          mbarrier_wait(k_empty + 8u * (s % 2u), ((s / 2u) & 1u) ^ 1u);                              // L41: lm.wait(k_empty, stage=s)
          mbarrier_expect_tx(k_full + 8u * (s % 2u), 32768u);                                        // L42: smem_k.tma_load(K, coords=(0, row, t.h, t.b), stage=s, barrier=k_full)
          tma_load_4d(smem_k + 32768u * (s % 2u), &K_map, 0, row, t_h, t_b, k_full + 8u * (s % 2u)); // L42
          tma_load_4d(smem_k + 32768u * (s % 2u) + 16384u, &K_map, 64, row, t_h, t_b, k_full + 8u * (s % 2u)); // L42
          mbarrier_wait(v_empty + 8u * (s % 2u), ((s / 2u) & 1u) ^ 1u);                              // L43: lm.wait(v_empty, stage=s)
          mbarrier_expect_tx(v_full + 8u * (s % 2u), 32768u);                                        // L44: smem_v.tma_load(V, coords=(0, row, t.h, t.b), stage=s, barrier=v_full)
          tma_load_4d(smem_v + 32768u * (s % 2u), &V_map, 0, row, t_h, t_b, v_full + 8u * (s % 2u)); // L44
          tma_load_4d(smem_v + 32768u * (s % 2u) + 16384u, &V_map, 64, row, t_h, t_b, v_full + 8u * (s % 2u)); // L44
        }
      }
    }
    __syncwarp();                                                                                    // L32: with load:
  } else {                                                                                           // L46: with math:
    setmaxnreg_inc<240>();                                                                           // L46
    const int math_index = warpgroup;                                                                // L46
    const u32 thread = threadIdx.x & 127u;                                                           // L46
    const u32 warp = thread >> 5;                                                                    // L46
    const u32 lane = thread & 31u;                                                                   // L46
    u32 qp_n = 0;                                                                                    // L46
    u32 kv_slot = 0, kv_phase = 0;                                                                   // L46
    u32 kv_last = 0, kv_last_phase = 0;                                                              // L46
    if (math_index == 1) named_arrive<3, 256>();                                                     // L46
    #pragma unroll 1
    for (int t = (int)blockIdx.x; t < sched_tiles; t += (int)gridDim.x) {                            // L47: for t in lm.tiles(sched):
      const int t_h = t % sched_h;                                                                   // L47
      const int t_b = t / sched_h % sched_b;                                                         // L47
      const int t_m = sched_m - 1 - t / sched_h / sched_b;                                           // L47
      const int nblk = min(cdiv((t_m + 1) * 128, 128), cdiv(S, 128));                                // L48: nblk = lm.min(lm.cdiv((t.m + 1) * BM, BN), lm.cdiv(S, BN)) if CAUSAL else lm.cdiv(S, BN)
      const int row0 = t_m * 128 + 64 * math_index;                                                  // L49: row0 = t.m * BM + 64 * math.index
      float sc[64];                                                                                  // L50: sc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
      float o[64];                                                                                   // L51: o = lm.frag(shape=(64, D), dtype=lm.f32, form="acc", init=0.0)
      #pragma unroll
      for (int i_ = 0; i_ < 64; ++i_) {                                                              // L51
        o[i_] = 0.0f;                                                                                // L51
      }
      const u32 sq = qp_n++;                                                                         // L52: sq = lm.step(qp)
      mbarrier_wait(q_full, sq & 1u);                                                                // L53: lm.wait(q_full, stage=sq)
      const u32 q = smem_q + 8192u * math_index;                                                     // L54: q = smem_q[sq].rows(64 * math.index, 64)
      u32 s = kv_slot;                                                                               // L57: s = lm.step(kv)
      u32 s_2_phase = kv_phase;                                                                      // L57
      kv_slot = s == 1u ? 0u : s + 1u;                                                               // L57
      kv_phase ^= s == 1u;                                                                           // L57
      kv_last = s;                                                                                   // L57
      kv_last_phase = s_2_phase;                                                                     // L57
      mbarrier_wait(k_full + 8u * s, s_2_phase);                                                     // L58: lm.wait(k_full, stage=s)
      pin<64>(sc);                                                                                   // L59: lm.mma(sc, q, smem_k[s], init=True)
      {
        const u32 a_ = descriptor_low(q, 16u), b_ = pool_low + 67584u + 2048u * s;                   // L59
        wgmma_fence();                                                                               // L59
        #pragma unroll
        for (int k_ = 0; k_ < 8; ++k_) {                                                             // L59
          wgmma_m64n128k16_f32_bf16_ss(sc, descriptor(0x40000040u, a_ + 1024u * (k_ / 4) + 2u * (k_ % 4)), descriptor(0x40000040u, b_ + 1024u * (k_ / 4) + 2u * (k_ % 4)), k_ != 0); // L59
        }
        wgmma_commit();                                                                              // L59
      }
      wgmma_wait<0>();                                                                               // L60: lm.mma_wait(pending=0)
      pin<64>(sc);                                                                                   // L60
      __syncwarp();                                                                                  // L61: lm.arrive(k_empty, stage=s)
      if (lane == 0) mbarrier_arrive(k_empty + 8u * s);                                              // L61
      float x[64];                                                                                   // L66: x = lm.where(ok, sc, -lm.inf)
      #pragma unroll
      for (int i_ = 0; i_ < 64; ++i_) {                                                              // L66
        x[i_] = sc[i_];                                                                              // L66
      }
      if ((nblk - 1) * 128 + 127 >= S || (nblk - 1) * 128 + 127 > row0) {                            // L66
        #pragma unroll
        for (int i_ = 0; i_ < 64; ++i_) {                                                            // L66
          x[i_] = ((((nblk - 1) * 128 + 8 * (i_ / 4) + (i_ & 1) + 2 * (int)(lane & 3u)) < S) && (((nblk - 1) * 128 + 8 * (i_ / 4) + (i_ & 1) + 2 * (int)(lane & 3u)) <= (row0 + 16 * (int)warp + 8 * ((i_ >> 1) & 1) + (int)(lane >> 2)))) ? x[i_] : __int_as_float(0xff800000); // L66
        }
      }
      float m[2];                                                                                    // L67: m = lm.reduce(x, "max", axis=1)
      #pragma unroll
      for (int r_ = 0; r_ < 2; ++r_) {                                                               // L67
        float even = x[2 * r_], odd = x[2 * r_ + 1];                                                 // L67
        #pragma unroll
        for (int j_ = 1; j_ < 16; ++j_) {                                                            // L67
          even = fmaxf(even, x[4 * j_ + 2 * r_]);                                                    // L67
          odd = fmaxf(odd, x[4 * j_ + 2 * r_ + 1]);                                                  // L67
        }
        m[r_] = fmaxf(even, odd);                                                                    // L67
      }
      #pragma unroll
      for (int i_ = 0; i_ < 2; ++i_) {                                                               // L67
        m[i_] = fmaxf(m[i_], __shfl_xor_sync(0xffffffffu, m[i_], 1));                                // L67
        m[i_] = fmaxf(m[i_], __shfl_xor_sync(0xffffffffu, m[i_], 2));                                // L67
      }
      float p[64];                                                                                   // L68: p = lm.exp2(x * scale_log2 - m * scale_log2)
      float once[2];                                                                                 // L68
      #pragma unroll
      for (int i_ = 0; i_ < 2; ++i_) {                                                               // L68
        once[i_] = __fmul_rn(m[i_], scale_log2);                                                     // L68
      }
      #pragma unroll
      for (int i_ = 0; i_ < 64; ++i_) {                                                              // L68
        p[i_] = exp2_approx(__fmaf_rn(x[i_], scale_log2, -once[(i_ >> 1) & 1]));                     // L68
      }
      float l[2];                                                                                    // L69: l = lm.reduce(p, "add", axis=1, partial=True)
      #pragma unroll
      for (int r_ = 0; r_ < 2; ++r_) {                                                               // L69
        float even = p[2 * r_], odd = p[2 * r_ + 1];                                                 // L69
        #pragma unroll
        for (int j_ = 1; j_ < 16; ++j_) {                                                            // L69
          even = even + p[4 * j_ + 2 * r_];                                                          // L69
          odd = odd + p[4 * j_ + 2 * r_ + 1];                                                        // L69
        }
        l[r_] = even + odd;                                                                          // L69
      }
      u32 pa[32];                                                                                    // L70: pa = lm.cast(p, lm.bf16, form="a")
      #pragma unroll
      for (int i_ = 0; i_ < 32; ++i_) {                                                              // L70
        pa[i_] = pack_bf16(p[2 * i_], p[2 * i_ + 1]);                                                // L70
      }
      pin<64>(x);                                                                                    // L72: for j in lm.range(1, nblk):
      pin<2>(m);                                                                                     // L72
      pin<64>(p);                                                                                    // L72
      pin<2>(l);                                                                                     // L72
      pin_u32<32>(pa);                                                                               // L72
      #pragma unroll 1
      for (int j = 1; j < nblk; ++j) {                                                               // L72
        const u32 sv = kv_last;                                                                      // L73: sv = lm.at(kv)
        const u32 sv_phase = kv_last_phase;                                                          // L73
        s = kv_slot;                                                                                 // L74: s = lm.step(kv)
        s_2_phase = kv_phase;                                                                        // L74
        kv_slot = s == 1u ? 0u : s + 1u;                                                             // L74
        kv_phase ^= s == 1u;                                                                         // L74
        kv_last = s;                                                                                 // L74
        kv_last_phase = s_2_phase;                                                                   // L74
        mbarrier_wait(k_full + 8u * s, s_2_phase);                                                   // L75: lm.wait(k_full, stage=s)
        if (math_index == 0) named_sync<3, 256>(); else named_sync<4, 256>();                        // L76: lm.wait(turn)
        pin<64>(sc);                                                                                 // L77: lm.mma(sc, q, smem_k[s], init=True)
        {
          const u32 a_ = descriptor_low(q, 16u), b_ = pool_low + 67584u + 2048u * s;                 // L77
          wgmma_fence();                                                                             // L77
          #pragma unroll
          for (int k_ = 0; k_ < 8; ++k_) {                                                           // L77
            wgmma_m64n128k16_f32_bf16_ss(sc, descriptor(0x40000040u, a_ + 1024u * (k_ / 4) + 2u * (k_ % 4)), descriptor(0x40000040u, b_ + 1024u * (k_ / 4) + 2u * (k_ % 4)), k_ != 0); // L77
          }
          wgmma_commit();                                                                            // L77
        }
        mbarrier_wait(v_full + 8u * sv, sv_phase);                                                   // L78: lm.wait(v_full, stage=sv)
        pin<64>(o);                                                                                  // L79: lm.mma(o, pa, smem_v[sv].T)
        pin_u32<32>(pa);                                                                             // L79
        {
          const u32 b_ = pool_low + 67115008u + 2048u * sv;                                          // L79
          wgmma_fence();                                                                             // L79
          #pragma unroll
          for (int k_ = 0; k_ < 8; ++k_) {                                                           // L79
            wgmma_m64n128k16_f32_bf16_rs_tb(o, pa[4 * k_], pa[4 * k_ + 1], pa[4 * k_ + 2], pa[4 * k_ + 3], descriptor(0x40000040u, b_ + 128u * k_), 1); // L79
          }
          wgmma_commit();                                                                            // L79
        }
        if (math_index == 0) named_arrive<4, 256>(); else named_arrive<3, 256>();                    // L80: lm.arrive(turn)
        wgmma_wait<1>();                                                                             // L81: lm.mma_wait(pending=1)
        pin<64>(sc);                                                                                 // L81
        __syncwarp();                                                                                // L82: lm.arrive(k_empty, stage=s)
        if (lane == 0) mbarrier_arrive(k_empty + 8u * s);                                            // L82
        float m_new[2];                                                                              // L83: m_new = lm.max(m, lm.reduce(sc, "max", axis=1))
        float reduced[2];                                                                            // L83
        #pragma unroll
        for (int r_ = 0; r_ < 2; ++r_) {                                                             // L83
          float even = sc[2 * r_], odd = sc[2 * r_ + 1];                                             // L83
          #pragma unroll
          for (int j_ = 1; j_ < 16; ++j_) {                                                          // L83
            even = fmaxf(even, sc[4 * j_ + 2 * r_]);                                                 // L83
            odd = fmaxf(odd, sc[4 * j_ + 2 * r_ + 1]);                                               // L83
          }
          reduced[r_] = fmaxf(even, odd);                                                            // L83
        }
        #pragma unroll
        for (int i_ = 0; i_ < 2; ++i_) {                                                             // L83
          reduced[i_] = fmaxf(reduced[i_], __shfl_xor_sync(0xffffffffu, reduced[i_], 1));            // L83
          reduced[i_] = fmaxf(reduced[i_], __shfl_xor_sync(0xffffffffu, reduced[i_], 2));            // L83
        }
        #pragma unroll
        for (int i_ = 0; i_ < 2; ++i_) {                                                             // L83
          m_new[i_] = fmaxf(m[i_], reduced[i_]);                                                     // L83
        }
        float once_1[2];                                                                             // L84: p = lm.exp2(sc * scale_log2 - m_new * scale_log2)
        #pragma unroll
        for (int i_ = 0; i_ < 2; ++i_) {                                                             // L84
          once_1[i_] = __fmul_rn(m_new[i_], scale_log2);                                             // L84
        }
        #pragma unroll
        for (int i_ = 0; i_ < 64; ++i_) {                                                            // L84
          p[i_] = exp2_approx(__fmaf_rn(sc[i_], scale_log2, -once_1[(i_ >> 1) & 1]));                // L84
        }
        float fix[2];                                                                                // L85: fix = lm.exp2(m * scale_log2 - m_new * scale_log2)
        #pragma unroll
        for (int i_ = 0; i_ < 2; ++i_) {                                                             // L85
          fix[i_] = exp2_approx(__fmaf_rn(m[i_], scale_log2, -__fmul_rn(m_new[i_], scale_log2)));    // L85
        }
        float reduced_1[2];                                                                          // L86: l = l * fix + lm.reduce(p, "add", axis=1, partial=True)
        #pragma unroll
        for (int r_ = 0; r_ < 2; ++r_) {                                                             // L86
          float even = p[2 * r_], odd = p[2 * r_ + 1];                                               // L86
          #pragma unroll
          for (int j_ = 1; j_ < 16; ++j_) {                                                          // L86
            even = even + p[4 * j_ + 2 * r_];                                                        // L86
            odd = odd + p[4 * j_ + 2 * r_ + 1];                                                      // L86
          }
          reduced_1[r_] = even + odd;                                                                // L86
        }
        #pragma unroll
        for (int i_ = 0; i_ < 2; ++i_) {                                                             // L86
          l[i_] = __fmaf_rn(l[i_], fix[i_], reduced_1[i_]);                                          // L86
        }
        wgmma_wait<0>();                                                                             // L87: lm.mma_wait(pending=0)
        pin<64>(o);                                                                                  // L87
        pin_u32<32>(pa);                                                                             // L87
        __syncwarp();                                                                                // L88: lm.arrive(v_empty, stage=sv)
        if (lane == 0) mbarrier_arrive(v_empty + 8u * sv);                                           // L88
        #pragma unroll
        for (int i_ = 0; i_ < 64; ++i_) {                                                            // L89: o = o * fix
          o[i_] = __fmul_rn(o[i_], fix[(i_ >> 1) & 1]);                                              // L89
        }
        #pragma unroll
        for (int i_ = 0; i_ < 32; ++i_) {                                                            // L90: pa = lm.cast(p, lm.bf16, form="a")
          pa[i_] = pack_bf16(p[2 * i_], p[2 * i_ + 1]);                                              // L90
        }
        #pragma unroll
        for (int i_ = 0; i_ < 2; ++i_) {                                                             // L91: m = m_new
          m[i_] = m_new[i_];                                                                         // L91
        }
        pin<2>(l);                                                                                   // L72: for j in lm.range(1, nblk):
        pin<64>(o);                                                                                  // L72
        pin_u32<32>(pa);                                                                             // L72
        pin<2>(m);                                                                                   // L72
      }
      u32 s_2 = kv_last;                                                                             // L93: s = lm.at(kv)
      u32 s_2_phase_1 = kv_last_phase;                                                               // L93
      mbarrier_wait(v_full + 8u * s_2, s_2_phase_1);                                                 // L94: lm.wait(v_full, stage=s)
      pin<64>(o);                                                                                    // L95: lm.mma(o, pa, smem_v[s].T)
      pin_u32<32>(pa);                                                                               // L95
      {
        const u32 b_ = pool_low + 67115008u + 2048u * s_2;                                           // L95
        wgmma_fence();                                                                               // L95
        #pragma unroll
        for (int k_ = 0; k_ < 8; ++k_) {                                                             // L95
          wgmma_m64n128k16_f32_bf16_rs_tb(o, pa[4 * k_], pa[4 * k_ + 1], pa[4 * k_ + 2], pa[4 * k_ + 3], descriptor(0x40000040u, b_ + 128u * k_), 1); // L95
        }
        wgmma_commit();                                                                              // L95
      }
      wgmma_wait<0>();                                                                               // L96: lm.mma_wait(pending=0)
      pin<64>(o);                                                                                    // L96
      pin_u32<32>(pa);                                                                               // L96
      __syncwarp();                                                                                  // L97: lm.arrive(v_empty, stage=s)
      if (lane == 0) mbarrier_arrive(v_empty + 8u * s_2);                                            // L97
      float l_1[2];                                                                                  // L99: l = lm.finish(l)
      #pragma unroll
      for (int i_ = 0; i_ < 2; ++i_) {                                                               // L99
        l_1[i_] = l[i_];                                                                             // L99
      }
      #pragma unroll
      for (int i_ = 0; i_ < 2; ++i_) {                                                               // L99
        l_1[i_] = l_1[i_] + __shfl_xor_sync(0xffffffffu, l_1[i_], 1);                                // L99
        l_1[i_] = l_1[i_] + __shfl_xor_sync(0xffffffffu, l_1[i_], 2);                                // L99
      }
      float once_1[2];                                                                               // L100: q.store(lm.cast(o * lm.rcp(l), lm.bf16))
      #pragma unroll
      for (int i_ = 0; i_ < 2; ++i_) {                                                               // L100
        once_1[i_] = rcp_approx(l_1[i_]);                                                            // L100
      }
      #pragma unroll
      for (int g_ = 0; g_ < 8; ++g_) {                                                               // L100
        const u32 row_ = 16u * warp + (lane & 15u), chunk_ = 2u * g_ + (lane >> 4);                  // L100
        stmatrix_x4(q + chunk_ / 8 * 16384u + row_ * 128u + ((chunk_ % 8 ^ (row_ & 7u)) << 4), pack_bf16(__fmul_rn(o[8 * g_], once_1[0]), __fmul_rn(o[8 * g_ + 1], once_1[0])), pack_bf16(__fmul_rn(o[8 * g_ + 2], once_1[1]), __fmul_rn(o[8 * g_ + 3], once_1[1])), pack_bf16(__fmul_rn(o[8 * g_ + 4], once_1[0]), __fmul_rn(o[8 * g_ + 5], once_1[0])), pack_bf16(__fmul_rn(o[8 * g_ + 6], once_1[1]), __fmul_rn(o[8 * g_ + 7], once_1[1]))); // L100
      }
      fence_proxy_async();                                                                           // L101: lm.fence_proxy()
      if (math_index == 0) named_sync<1, 128>(); else named_sync<2, 128>();                          // L102: lm.sync(own)
      if (thread == 0) {                                                                             // L103: q.tma_store(O, coords=(0, row0, t.h, t.b))
        tma_store_4d(&O_map, q, 0, row0, t_h, t_b);                                                  // L103
        tma_store_4d(&O_map, q + 16384u, 64, row0, t_h, t_b);                                        // L103
        bulk_commit();                                                                               // L103
      }
      #pragma unroll
      for (int i_ = 0; i_ < 2; ++i_) {                                                               // L104: lm.store(LSE, m * scale_log2 + lm.log2(l), coords=(row0, t.h, t.b), mask=lm.iota(o, axis=0, base=row0) < S)
        if ((lane & 3u) == 0 && ((row0 + 16 * (int)warp + 8 * i_ + (int)(lane >> 2)) < S)) (LSE + (u64)(t_b) * LSE_stride0 + (u64)(t_h) * LSE_stride1 + row0)[16 * (int)warp + 8 * i_ + (int)(lane >> 2)] = __fmaf_rn(m[i_], scale_log2, log2_approx(l_1[i_])); // L104
      }
      if (thread == 0) bulk_wait_read<0>();                                                          // L105: lm.store_wait(pending=0)
      if (math_index == 0) named_sync<1, 128>(); else named_sync<2, 128>();                          // L106: lm.sync(own)
      __syncwarp();                                                                                  // L107: lm.arrive(q_empty, stage=sq)
      if (lane == 0) mbarrier_arrive(q_empty);                                                       // L107
    }
    if (math_index == 0) named_sync<3, 256>();                                                       // L46: with math:
  }
}

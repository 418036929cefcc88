// gemm_nn for sm_90a, lowered from Cake IR
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
DEVICE void pdl_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
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
DEVICE void tma_load_2d(u32 dst, const TensorMap* map, int x, int y, u32 bar) { asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" :: "r"(dst), "l"(map), "r"(x), "r"(y), "r"(bar) : "memory"); }
DEVICE void tma_load_2d_multicast(u32 dst, const TensorMap* map, int x, int y, u32 bar, u16 ctas) { asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" :: "r"(dst), "l"(map), "r"(x), "r"(y), "r"(bar), "h"(ctas) : "memory"); }
template <int N> DEVICE void setmaxnreg_inc() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(N)); }
DEVICE void pdl_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
DEVICE u32 descriptor_low(u32 address, u32 leading) { return (address & 0x3ffffu) >> 4 | (leading >> 4) << 16; }
DEVICE u64 descriptor(u32 high, u32 low) { return (u64)high << 32 | low; }
DEVICE void wgmma_m64n160k16_f32_bf16_ss_tb(float* d, u64 a, u64 b, int accumulate) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %82, 0;\n"
    "wgmma.mma_async.sync.aligned.m64n160k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79}, %80, %81, p, 1, 1, 0, 1; }"
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79])
    : "l"(a), "l"(b), "r"(accumulate));
}
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory"); }
DEVICE void mbarrier_arrive_remote(u32 bar, u32 cta) { asm volatile("{ .reg .b32 r; mapa.shared::cluster.u32 r, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [r]; }" :: "r"(bar), "r"(cta) : "memory"); }
template <int N> DEVICE void pin(float* x) {
  #pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(x[i]) :: "memory");
}
template <int N> DEVICE void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(N) : "memory"); }
template <int ID, int THREADS> DEVICE void named_sync() { asm volatile("bar.sync %0, %1;" :: "n"(ID), "n"(THREADS) : "memory"); }
DEVICE u32 pack_bf16(float lo, float hi) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(lo), "f"(hi)); return r; }
DEVICE void stmatrix_x4(u32 address, u32 r0, u32 r1, u32 r2, u32 r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               :: "r"(address), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}
DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
DEVICE void tma_store_2d(const TensorMap* map, u32 src, int x, int y) { asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" :: "l"(map), "r"(src), "r"(x), "r"(y) : "memory"); }
DEVICE void cluster_sync() { asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory"); }
DEVICE void prefetch_map(const TensorMap* map) { asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory"); }
DEVICE void mbarrier_init(u32 bar, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory"); }
DEVICE void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
DEVICE u32 cluster_rank() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_nn(const __grid_constant__ TensorMap A_map, const __grid_constant__ TensorMap B_map, const __grid_constant__ TensorMap C_map, int M, int N, int K) {
  extern __shared__ __align__(16) u8 smem_raw[];
  const u32 pool = (shared_address(smem_raw) + 1023u) & ~1023u;
  const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
  const u32 cluster_cta = cluster_rank();
  const u32 smem_a = pool;                                                                           // L21: smem_a = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
  const u32 smem_b = pool + 81920u;                                                                  // L22: smem_b = pool.view(offset=a_bytes, shape=(BK, BW), dtype=lm.bf16, stage=STAGES,
  const u32 smem_c = pool + 184320u;                                                                 // L24: smem_c = pool.view(offset=a_bytes + b_bytes, shape=(BM, CW), dtype=lm.bf16, stage=CSTAGES,
  const u32 ab_full = pool + 200704u;                                                                // L31: ab_full = lm.barrier(pipeline=ab, prod=[load], cons=[math], arrive="tx")
  const u32 ab_empty = pool + 200744u;                                                               // L32: ab_empty = lm.barrier(pipeline=ab, prod=[math], cons=[load], arrive="member", primed=True, scope="cluster" if CLUSTER > 1 else "cta")
  const int sched_m = cdiv(cdiv(M, 128), 2);                                                         // L35: sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), cluster=(CLUSTER, 1), raster="m", swizzle=GROUP)
  const int sched_n = cdiv(N, 160);                                                                  // L35
  const int sched_tiles = sched_m * sched_n;                                                         // L35
  const int kt = cdiv(K, 64);                                                                        // L36: kt = lm.cdiv(K, BK)
  if (threadIdx.x == 0) {
    prefetch_map(&A_map);
    prefetch_map(&B_map);
    prefetch_map(&C_map);
    #pragma unroll
    for (u32 i = 0; i < 5; ++i) mbarrier_init(ab_full + 8u * i, 1u);                                 // L31: ab_full = lm.barrier(pipeline=ab, prod=[load], cons=[math], arrive="tx")
    #pragma unroll
    for (u32 i = 0; i < 5; ++i) mbarrier_init(ab_empty + 8u * i, 4u);                                // L32: ab_empty = lm.barrier(pipeline=ab, prod=[math], cons=[load], arrive="member", primed=True, scope="cluster" if CLUSTER > 1 else "cta")
    fence_mbarrier_init();
  }
  cluster_sync();
  if (warpgroup == 2) {                                                                              // L38: with load:
    setmaxnreg_dec<40>();                                                                            // L38
    u32 ab_slot = 0, ab_phase = 0;                                                                   // L38
    if ((threadIdx.x >> 5) == 8 && elect_one()) {                                                    // L38
      pdl_wait();                                                                                    // L40: lm.pdl_wait()
      #pragma unroll 1
      for (int t = (int)blockIdx.x / 2; t < sched_tiles; t += (int)gridDim.x / 2) {                  // L41: for t in lm.tiles(sched):
        const int t_span = 8 * sched_n;                                                              // L41
        const int t_first = t / t_span * 8;                                                          // L41
        const int t_width = min(8, sched_m - t_first);                                               // L41
        const int t_within = t % t_span;                                                             // L41
        const int t_m = (t_first + t_within % t_width) * 2 + (int)cluster_cta;                       // L41
        const int t_n = t_within / t_width;                                                          // L41
        #pragma unroll 1
        for (int k = 0; k < kt; ++k) {                                                               // L42: for k in lm.range(kt):
          const u32 s = ab_slot;                                                                     // L43: s = lm.step(ab)
          const u32 s_phase = ab_phase;                                                              // L43
          ab_slot = s == 4u ? 0u : s + 1u;                                                           // L43
          ab_phase ^= s == 4u;                                                                       // L43
          mbarrier_wait(ab_empty + 8u * s, s_phase ^ 1u);                                            // L44: lm.wait(ab_empty, stage=s)
          mbarrier_expect_tx(ab_full + 8u * s, 36864u);                                              // L45: smem_a.tma_load(A, coords=(k * BK, t.m * BM), stage=s, barrier=ab_full)
          tma_load_2d(smem_a + 16384u * s, &A_map, k * 64, t_m * 128, ab_full + 8u * s);             // L45
          tma_load_2d_multicast(smem_b + 20480u * s + 2048u * cluster_cta, &B_map, t_n * 160, k * 64 + 32 * (int)cluster_cta, ab_full + 8u * s, 3); // L46: smem_b.tma_load(B, coords=(t.n * BN, k * BK), stage=s, barrier=ab_full, multicast="m" if CLUSTER > 1 else None)
          tma_load_2d_multicast(smem_b + 20480u * s + 4096u + 2048u * cluster_cta, &B_map, t_n * 160 + 32, k * 64 + 32 * (int)cluster_cta, ab_full + 8u * s, 3); // L46
          tma_load_2d_multicast(smem_b + 20480u * s + 8192u + 2048u * cluster_cta, &B_map, t_n * 160 + 64, k * 64 + 32 * (int)cluster_cta, ab_full + 8u * s, 3); // L46
          tma_load_2d_multicast(smem_b + 20480u * s + 12288u + 2048u * cluster_cta, &B_map, t_n * 160 + 96, k * 64 + 32 * (int)cluster_cta, ab_full + 8u * s, 3); // L46
          tma_load_2d_multicast(smem_b + 20480u * s + 16384u + 2048u * cluster_cta, &B_map, t_n * 160 + 128, k * 64 + 32 * (int)cluster_cta, ab_full + 8u * s, 3); // L46
        }
      }
    }
    __syncwarp();                                                                                    // L38: with load:
  } else {                                                                                           // L48: with math:
    setmaxnreg_inc<232>();                                                                           // L48
    const int math_index = warpgroup;                                                                // L48
    const u32 thread = threadIdx.x & 127u;                                                           // L48
    const u32 warp = thread >> 5;                                                                    // L48
    const u32 lane = thread & 31u;                                                                   // L48
    u32 ab_slot = 0, ab_phase = 0;                                                                   // L48
    u32 cring_n = 0;                                                                                 // L48
    pdl_launch();                                                                                    // L50: lm.pdl_launch()
    pdl_wait();                                                                                      // L51: lm.pdl_wait()
    float acc[80];                                                                                   // L52: acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
    #pragma unroll 1
    for (int t = (int)blockIdx.x / 2; t < sched_tiles; t += (int)gridDim.x / 2) {                    // L53: for t in lm.tiles(sched):
      const int t_span = 8 * sched_n;                                                                // L53
      const int t_first = t / t_span * 8;                                                            // L53
      const int t_width = min(8, sched_m - t_first);                                                 // L53
      const int t_within = t % t_span;                                                               // L53
      const int t_m = (t_first + t_within % t_width) * 2 + (int)cluster_cta;                         // L53
      const int t_n = t_within / t_width;                                                            // L53
      #pragma unroll 1
      for (int k = 0; k < kt; ++k) {                                                                 // L54: for k in lm.range(kt):
        const u32 s = ab_slot;                                                                       // L55: s = lm.step(ab)
        const u32 s_2_phase = ab_phase;                                                              // L55
        ab_slot = s == 4u ? 0u : s + 1u;                                                             // L55
        ab_phase ^= s == 4u;                                                                         // L55
        mbarrier_wait(ab_full + 8u * s, s_2_phase);                                                  // L56: lm.wait(ab_full, stage=s)
        {
          const u32 a_ = descriptor_low(smem_a, 16u) + 1024u * s + 512u * math_index, b_ = descriptor_low(smem_b, 4096u) + 1280u * s; // L57: lm.mma(acc, smem_a[s].rows(64 * math.index, 64), smem_b[s].cols(0, BN).T, init=(k == 0))
          wgmma_fence();                                                                             // L57
          #pragma unroll
          for (int k_ = 0; k_ < 4; ++k_) {                                                           // L57
            wgmma_m64n160k16_f32_bf16_ss_tb(acc, descriptor(0x40000040u, a_ + 2u * k_), descriptor(0x80000020u, b_ + 64u * k_), k_ != 0 || k != 0); // L57
          }
          wgmma_commit();                                                                            // L57
        }
        wgmma_wait<1>();                                                                             // L58: lm.mma_wait(pending=DEPTH)
        if (k > 0) {                                                                                 // L61: elif k > 0:
          if (thread < 2) mbarrier_arrive_remote(ab_empty + 8u * (s < 1u ? s + 4u : s - 1u), thread); // L62: lm.arrive(ab_empty, stage=s.prev())
        }
      }
      wgmma_wait<0>();                                                                               // L63: lm.mma_wait(pending=0)
      pin<80>(acc);                                                                                  // L63
      if (thread < 2) mbarrier_arrive_remote(ab_empty + 8u * (ab_slot < 1u ? ab_slot + 4u : ab_slot - 1u), thread); // L65: lm.arrive(ab_empty, stage=lm.at(ab))
      #pragma unroll
      for (int j = 0; j < 5; ++j) {                                                                  // L66: for j in lm.static_range(BN // CW):
        const u32 c = cring_n++;                                                                     // L67: c = lm.step(cring)
        if (thread == 0) bulk_wait_read<1>();                                                        // L68: lm.store_wait(pending=CSTAGES - 1)
        if (math_index == 0) named_sync<1, 128>(); else named_sync<2, 128>();                        // L69: lm.sync(epi)
        const u32 half = smem_c + 8192u * (c % 2u) + 4096u * math_index;                             // L70: half = smem_c[c].rows(64 * math.index, 64)
        #pragma unroll
        for (int g_ = 0; g_ < 2; ++g_) {                                                             // L71: half.store(lm.cast(acc.cols(CW * j, CW), lm.bf16))
          const u32 row_ = 16u * warp + (lane & 15u), chunk_ = 2u * g_ + (lane >> 4);                // L71
          stmatrix_x4(half + row_ * 64u + ((chunk_ ^ ((row_ >> 1) & 3u)) << 4), pack_bf16(acc[8 * g_ + 16 * j], acc[8 * g_ + 1 + 16 * j]), pack_bf16(acc[8 * g_ + 2 + 16 * j], acc[8 * g_ + 3 + 16 * j]), pack_bf16(acc[8 * g_ + 4 + 16 * j], acc[8 * g_ + 5 + 16 * j]), pack_bf16(acc[8 * g_ + 6 + 16 * j], acc[8 * g_ + 7 + 16 * j])); // L71
        }
        fence_proxy_async();                                                                         // L72: lm.fence_proxy()
        if (math_index == 0) named_sync<1, 128>(); else named_sync<2, 128>();                        // L73: lm.sync(epi)
        if (thread == 0) {                                                                           // L74: half.tma_store(C, coords=(t.n * BN + CW * j, t.m * BM + 64 * math.index))
          tma_store_2d(&C_map, half, t_n * 160 + 32 * j, t_m * 128 + 64 * math_index);               // L74
          bulk_commit();                                                                             // L74
        }
      }
    }
    if (thread == 0) bulk_wait_read<0>();                                                            // L75: lm.store_wait(pending=0)
  }
  cluster_sync();
}

// gemm_fp8_halves for sm_90a, lowered from Cake IR
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
template <int N> DEVICE void setmaxnreg_inc() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(N)); }
DEVICE void pdl_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
DEVICE void store_shared_128(u32 address, u32 r0, u32 r1, u32 r2, u32 r3) { asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" :: "r"(address), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory"); }
template <int ID, int THREADS> DEVICE void named_sync() { asm volatile("bar.sync %0, %1;" :: "n"(ID), "n"(THREADS) : "memory"); }
DEVICE int floor_div(int a, int b) { const int q = a / b, r = a % b; return q - (r != 0 && (r < 0) != (b < 0)); }
DEVICE float load_shared_f32(u32 address) { float x; asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(address) : "memory"); return x; }
DEVICE u32 descriptor_low(u32 address, u32 leading) { return (address & 0x3ffffu) >> 4 | (leading >> 4) << 16; }
DEVICE u64 descriptor(u32 high, u32 low) { return (u64)high << 32 | low; }
template <int N> DEVICE void pin(float* x) {
  #pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(x[i]) :: "memory");
}
DEVICE void wgmma_m64n128k32_f32_e4m3_ss(float* d, u64 a, u64 b, int accumulate) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0;\n"
    "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1; }"
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
    : "l"(a), "l"(b), "r"(accumulate));
}
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
DEVICE u32 load_shared_element_32(u32 address) { u32 x; asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(address) : "memory"); return x; }
DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
template <int N> DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory"); }
DEVICE void mbarrier_arrive(u32 bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory"); }
template <int N> DEVICE void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(N) : "memory"); }
DEVICE u32 pack_bf16(float lo, float hi) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(lo), "f"(hi)); return r; }
DEVICE void stmatrix_x4(u32 address, u32 r0, u32 r1, u32 r2, u32 r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               :: "r"(address), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}
DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
DEVICE void tma_store_2d(const TensorMap* map, u32 src, int x, int y) { asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" :: "l"(map), "r"(src), "r"(x), "r"(y) : "memory"); }
DEVICE void prefetch_map(const TensorMap* map) { asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory"); }
DEVICE void mbarrier_init(u32 bar, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory"); }
DEVICE void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_fp8_halves(const __grid_constant__ TensorMap A_map, const __grid_constant__ TensorMap B_map, const __grid_constant__ TensorMap SA_map, const __grid_constant__ TensorMap C_map, const float* __restrict__ SB, int M, int N, int KB, int NB) {
  extern __shared__ __align__(16) u8 smem_raw[];
  const u32 pool = __shfl_sync(0xffffffffu, (shared_address(smem_raw) + 1023u) & ~1023u, 0);
  const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
  const u32 qa = pool;                                                                               // L16: qa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
  const u32 qb = pool + 49152u;                                                                      // L17: qb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
  const u32 smem_c = pool + 147456u;                                                                 // L18: smem_c = pool.view(offset=a_bytes + b_bytes, shape=(BM, BN), dtype=lm.bf16, swizzle="128b")
  const u32 scale_a = pool + 212992u;                                                                // L19: scale_a = pool.view(offset=a_bytes + b_bytes + c_bytes, shape=(BM,), dtype=lm.f32, stage=STAGES)
  const u32 scale_left = pool + 214528u;                                                             // L20: scale_left = pool.view(offset=a_bytes + b_bytes + c_bytes + s_bytes, shape=(MEMBERS * KMAX,), dtype=lm.f32)
  const u32 scale_right = pool + 216576u;                                                            // L21: scale_right = pool.view(offset=a_bytes + b_bytes + c_bytes + s_bytes + MEMBERS * KMAX * 4, shape=(MEMBERS * KMAX,), dtype=lm.f32)
  const u32 full = pool + 218624u;                                                                   // L26: full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
  const u32 empty = pool + 218648u;                                                                  // L27: empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True, scope="cluster" if CLUSTER > 1 else "cta")
  const int sched_m = cdiv(M, 128);                                                                  // L31: sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), cluster=(CLUSTER, 1), raster="m", swizzle=GROUP)
  const int sched_n = cdiv(N, 256);                                                                  // L31
  const int sched_tiles = sched_m * sched_n;                                                         // L31
  if (threadIdx.x == 0) {
    prefetch_map(&A_map);
    prefetch_map(&B_map);
    prefetch_map(&SA_map);
    prefetch_map(&C_map);
    #pragma unroll
    for (u32 i = 0; i < 3; ++i) mbarrier_init(full + 8u * i, 1u);                                    // L26: full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    #pragma unroll
    for (u32 i = 0; i < 3; ++i) mbarrier_init(empty + 8u * i, 8u);                                   // L27: empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True, scope="cluster" if CLUSTER > 1 else "cta")
    fence_mbarrier_init();
  }
  __syncthreads();
  if (warpgroup == 2) {                                                                              // L33: with load:
    setmaxnreg_dec<40>();                                                                            // L33
    u32 ring_slot = 0, ring_phase = 0;                                                               // L33
    if ((threadIdx.x >> 5) == 8 && elect_one()) {                                                    // L33
      pdl_wait();                                                                                    // L34: lm.pdl_wait()
      #pragma unroll 1
      for (int t = (int)blockIdx.x; t < sched_tiles; t += (int)gridDim.x) {                          // L35: for t in lm.tiles(sched):
        const int t_span = 8 * sched_n;                                                              // L35
        const int t_first = t / t_span * 8;                                                          // L35
        const int t_width = min(8, sched_m - t_first);                                               // L35
        const int t_within = t % t_span;                                                             // L35
        const int t_m = t_first + t_within % t_width;                                                // L35
        const int t_n = t_within / t_width;                                                          // L35
        #pragma unroll 1
        for (int k = 0; k < KB; ++k) {                                                               // L36: for k in lm.range(KB):
          const u32 s = ring_slot;                                                                   // L37: s = lm.step(ring)
          const u32 s_phase = ring_phase;                                                            // L37
          ring_slot = s == 2u ? 0u : s + 1u;                                                         // L37
          ring_phase ^= s == 2u;                                                                     // L37
          mbarrier_wait(empty + 8u * s, s_phase ^ 1u);                                               // L38: lm.wait(empty, stage=s)
          mbarrier_expect_tx(full + 8u * s, 49664u);                                                 // L39: qa.tma_load(A, coords=(k * 128, t.m * BM), stage=s, barrier=full)
          tma_load_2d(qa + 16384u * s, &A_map, k * 128, t_m * 128, full + 8u * s);                   // L39
          tma_load_2d(qb + 32768u * s, &B_map, k * 128, t_n * 256, full + 8u * s);                   // L40: qb.tma_load(B, coords=(k * 128, t.n * BN), stage=s, barrier=full, multicast="m" if CLUSTER > 1 else None)
          tma_load_2d(scale_a + 512u * s, &SA_map, t_m * 128, k, full + 8u * s);                     // L41: scale_a.tma_load(SA, coords=(t.m * BM, k), stage=s, barrier=full)
        }
      }
    }
    __syncwarp();                                                                                    // L33: with load:
  } else {                                                                                           // L43: with math:
    setmaxnreg_inc<232>();                                                                           // L43
    const int math_index = warpgroup;                                                                // L43
    const u32 thread = threadIdx.x & 127u;                                                           // L43
    const u32 warp = thread >> 5;                                                                    // L43
    const u32 lane = thread & 31u;                                                                   // L43
    u32 ring_slot = 0, ring_phase = 0;                                                               // L43
    pdl_launch();                                                                                    // L44: lm.pdl_launch()
    float part[64];                                                                                  // L46: part = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
    #pragma unroll 1
    for (int t = (int)blockIdx.x; t < sched_tiles; t += (int)gridDim.x) {                            // L47: for t in lm.tiles(sched):
      const int t_span = 8 * sched_n;                                                                // L47
      const int t_first = t / t_span * 8;                                                            // L47
      const int t_width = min(8, sched_m - t_first);                                                 // L47
      const int t_within = t % t_span;                                                               // L47
      const int t_m = t_first + t_within % t_width;                                                  // L47
      const int t_n = t_within / t_width;                                                            // L47
      float left[64];                                                                                // L48: left = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", init=0.0)
      #pragma unroll
      for (int i_ = 0; i_ < 64; ++i_) {                                                              // L48
        left[i_] = 0.0f;                                                                             // L48
      }
      float right[64];                                                                               // L49: right = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", init=0.0)
      #pragma unroll
      for (int i_ = 0; i_ < 64; ++i_) {                                                              // L49
        right[i_] = 0.0f;                                                                            // L49
      }
      float found[4];                                                                                // L50: found = lm.load(SB, coords=(t.n * 2 * KB,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
      #pragma unroll
      for (int i_ = 0; i_ < 4; ++i_) {                                                               // L50
        const int at_ = (int)thread * 4 + i_;                                                        // L50
        found[i_] = (at_ < 256 && (((int)thread * 4 + i_) < KB) ? (SB + (t_n * 2 * KB))[at_] : 0.0f); // L50
      }
      float found_right[4];                                                                          // L51: found_right = lm.load(SB, coords=(lm.min(t.n * 2 + 1, NB - 1) * KB,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
      #pragma unroll
      for (int i_ = 0; i_ < 4; ++i_) {                                                               // L51
        const int at_ = (int)thread * 4 + i_;                                                        // L51
        found_right[i_] = (at_ < 256 && (((int)thread * 4 + i_) < KB) ? (SB + (min(t_n * 2 + 1, NB - 1) * KB))[at_] : 0.0f); // L51
      }
      #pragma unroll
      for (int i_ = 0; i_ < 1; ++i_) {                                                               // L52: scale_left.cols(KMAX * math.index, KMAX).store(found)
        const u32 at_ = (u32)((int)thread * 4 + 4 * i_) / 4u;                                        // L52
        if (at_ < 64u) {                                                                             // L52
          store_shared_128(scale_left + 0u * 2048u + (((256 * math_index) / 4) + at_) * 16u, __float_as_uint(found[4 * i_]), __float_as_uint(found[4 * i_ + 1]), __float_as_uint(found[4 * i_ + 2]), __float_as_uint(found[4 * i_ + 3])); // L52
        }
      }
      #pragma unroll
      for (int i_ = 0; i_ < 1; ++i_) {                                                               // L53: scale_right.cols(KMAX * math.index, KMAX).store(found_right)
        const u32 at_ = (u32)((int)thread * 4 + 4 * i_) / 4u;                                        // L53
        if (at_ < 64u) {                                                                             // L53
          store_shared_128(scale_right + 0u * 2048u + (((256 * math_index) / 4) + at_) * 16u, __float_as_uint(found_right[4 * i_]), __float_as_uint(found_right[4 * i_ + 1]), __float_as_uint(found_right[4 * i_ + 2]), __float_as_uint(found_right[4 * i_ + 3])); // L53
        }
      }
      if (math_index == 0) named_sync<1, 128>(); else named_sync<2, 128>();                          // L54: lm.sync(own)
      #pragma unroll 1
      for (int k = 0; k < floor_div(KB, 4); ++k) {                                                   // L55: for k in lm.range(KB // UNROLL):
        #pragma unroll
        for (int u = 0; u < 4; ++u) {                                                                // L56: for u in lm.static_range(UNROLL):
          const u32 s = ring_slot;                                                                   // L57: s = lm.step(ring)
          const u32 s_2_phase = ring_phase;                                                          // L57
          ring_slot = s == 2u ? 0u : s + 1u;                                                         // L57
          ring_phase ^= s == 2u;                                                                     // L57
          const float tmp = load_shared_f32(scale_left + (256 * math_index + (u32)(k * 4 + u)) * 4u); // L58: left_sb, right_sb = scale_left.cols(KMAX * math.index, KMAX).ld(k * UNROLL + u), scale_right.cols(KMAX * math.index, KMAX).ld(k * UNROLL + u)
          const float tmp_2 = load_shared_f32(scale_right + (256 * math_index + (u32)(k * 4 + u)) * 4u); // L58: left_sb, right_sb = scale_left.cols(KMAX * math.index, KMAX).ld(k * UNROLL + u), scale_right.cols(KMAX * math.index, KMAX).ld(k * UNROLL + u)
          const float left_sb = tmp;                                                                 // L58: left_sb, right_sb = scale_left.cols(KMAX * math.index, KMAX).ld(k * UNROLL + u), scale_right.cols(KMAX * math.index, KMAX).ld(k * UNROLL + u)
          const float right_sb = tmp_2;                                                              // L58
          mbarrier_wait(full + 8u * s, s_2_phase);                                                   // L59: lm.wait(full, stage=s)
          pin<64>(part);                                                                             // L61: lm.mma(part, qa[s].rows(64 * math.index, 64), qb[s].rows(0, 128), init=True)
          {
            const u32 a_ = descriptor_low(qa, 16u) + 1024u * s + 512u * math_index, b_ = descriptor_low(qb, 16u) + 2048u * s; // L61
            wgmma_fence();                                                                           // L61
            #pragma unroll
            for (int k_ = 0; k_ < 4; ++k_) {                                                         // L61
              wgmma_m64n128k32_f32_e4m3_ss(part, descriptor(0x40000040u, a_ + 2u * k_), descriptor(0x40000040u, b_ + 2u * k_), k_ != 0); // L61
            }
            wgmma_commit();                                                                          // L61
          }
          float sa[2];                                                                               // L66: sa = scale_a[s].cols(64 * math.index, 64).load(form="rowvec", like=left)
          #pragma unroll
          for (int i_ = 0; i_ < 2; ++i_) {                                                           // L66
            sa[i_] = __uint_as_float(load_shared_element_32(scale_a + 512u * s + (64 * math_index + (u32)(16 * (int)warp + 8 * i_ + (int)(lane >> 2))) * 4u)); // L66
          }
          fence_proxy_async();                                                                       // L67: lm.fence_proxy()
          wgmma_wait<0>();                                                                           // L71: lm.mma_wait(pending=0)
          pin<64>(part);                                                                             // L71
          float once[2];                                                                             // L72: left = left + part * (sa * left_sb)
          #pragma unroll
          for (int i_ = 0; i_ < 2; ++i_) {                                                           // L72
            once[i_] = __fmul_rn(sa[i_], left_sb);                                                   // L72
          }
          #pragma unroll
          for (int i_ = 0; i_ < 64; ++i_) {                                                          // L72
            left[i_] = __fmaf_rn(part[i_], once[(i_ >> 1) & 1], left[i_]);                           // L72
          }
          pin<64>(left);                                                                             // L74: lm.mma(part, qa[s].rows(64 * math.index, 64), qb[s].rows(128, 128), init=True)
          pin<64>(part);                                                                             // L74
          {
            const u32 a_ = descriptor_low(qa, 16u) + 1024u * s + 512u * math_index, b_ = descriptor_low(qb, 16u) + 2048u * s + 1024u; // L74
            wgmma_fence();                                                                           // L74
            #pragma unroll
            for (int k_ = 0; k_ < 4; ++k_) {                                                         // L74
              wgmma_m64n128k32_f32_e4m3_ss(part, descriptor(0x40000040u, a_ + 2u * k_), descriptor(0x40000040u, b_ + 2u * k_), k_ != 0); // L74
            }
            wgmma_commit();                                                                          // L74
          }
          wgmma_wait<0>();                                                                           // L82: lm.mma_wait(pending=0)
          pin<64>(part);                                                                             // L82
          __syncwarp();                                                                              // L83: lm.arrive(empty, stage=s)
          if (lane == 0) mbarrier_arrive(empty + 8u * s);                                            // L83
          float once_1[2];                                                                           // L84: right = right + part * (sa * right_sb)
          #pragma unroll
          for (int i_ = 0; i_ < 2; ++i_) {                                                           // L84
            once_1[i_] = __fmul_rn(sa[i_], right_sb);                                                // L84
          }
          #pragma unroll
          for (int i_ = 0; i_ < 64; ++i_) {                                                          // L84
            right[i_] = __fmaf_rn(part[i_], once_1[(i_ >> 1) & 1], right[i_]);                       // L84
          }
          pin<64>(right);                                                                            // L56: for u in lm.static_range(UNROLL):
        }
      }
      if (thread == 0) bulk_wait_read<0>();                                                          // L85: lm.store_wait(pending=0)
      if (math_index == 0) named_sync<1, 128>(); else named_sync<2, 128>();                          // L86: lm.sync(own)
      const u32 mine = smem_c + 8192u * math_index;                                                  // L87: mine = smem_c.rows(64 * math.index, 64)
      #pragma unroll
      for (int g_ = 0; g_ < 8; ++g_) {                                                               // L88: mine.cols(0, 128).store(lm.cast(left, lm.bf16))
        const u32 row_ = 16u * warp + (lane & 15u), chunk_ = 2u * g_ + (lane >> 4);                  // L88
        stmatrix_x4(mine + chunk_ / 8 * 16384u + row_ * 128u + ((chunk_ % 8 ^ (row_ & 7u)) << 4), pack_bf16(left[8 * g_], left[8 * g_ + 1]), pack_bf16(left[8 * g_ + 2], left[8 * g_ + 3]), pack_bf16(left[8 * g_ + 4], left[8 * g_ + 5]), pack_bf16(left[8 * g_ + 6], left[8 * g_ + 7])); // L88
      }
      #pragma unroll
      for (int g_ = 0; g_ < 8; ++g_) {                                                               // L89: mine.cols(128, 128).store(lm.cast(right, lm.bf16))
        const u32 row_ = 16u * warp + (lane & 15u), chunk_ = 2u * g_ + (lane >> 4);                  // L89
        stmatrix_x4(mine + (16 + chunk_) / 8 * 16384u + row_ * 128u + (((16 + chunk_) % 8 ^ (row_ & 7u)) << 4), pack_bf16(right[8 * g_], right[8 * g_ + 1]), pack_bf16(right[8 * g_ + 2], right[8 * g_ + 3]), pack_bf16(right[8 * g_ + 4], right[8 * g_ + 5]), pack_bf16(right[8 * g_ + 6], right[8 * g_ + 7])); // L89
      }
      fence_proxy_async();                                                                           // L90: lm.fence_proxy()
      if (math_index == 0) named_sync<1, 128>(); else named_sync<2, 128>();                          // L91: lm.sync(own)
      pdl_wait();                                                                                    // L92: lm.pdl_wait()
      if (thread == 0) {                                                                             // L93: mine.tma_store(C, coords=(t.n * BN, t.m * BM + 64 * math.index))
        tma_store_2d(&C_map, mine, t_n * 256, t_m * 128 + 64 * math_index);                          // L93
        tma_store_2d(&C_map, mine + 16384u, t_n * 256 + 64, t_m * 128 + 64 * math_index);            // L93
        tma_store_2d(&C_map, mine + 32768u, t_n * 256 + 128, t_m * 128 + 64 * math_index);           // L93
        tma_store_2d(&C_map, mine + 49152u, t_n * 256 + 192, t_m * 128 + 64 * math_index);           // L93
        bulk_commit();                                                                               // L93
      }
    }
    if (thread == 0) bulk_wait_read<0>();                                                            // L94: lm.store_wait(pending=0)
  }
}

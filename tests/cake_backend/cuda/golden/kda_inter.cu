// kda_inter for sm_90a, lowered from Cake IR
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef signed char i8; typedef long long i64;
#define DEVICE static __device__ __forceinline__
struct alignas(64) TensorMap { u64 opaque[16]; };

template <int N> DEVICE void setmaxnreg_dec() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(N)); }
DEVICE bool elect_one() {
  u32 chosen;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(chosen));
  return chosen != 0;
}
DEVICE int cdiv(int a, int b) { const int q = a / b; return q + (a % b > 0); }  // b > 0
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
DEVICE void load_global_64(u32& r0, u32& r1, const void* p) {
  asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(r0), "=r"(r1) : "l"(p) : "memory");
}
DEVICE u32 pack_bf16(float lo, float hi) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(lo), "f"(hi)); return r; }
DEVICE u32 descriptor_low(u32 address, u32 leading) { return (address & 0x3ffffu) >> 4 | (leading >> 4) << 16; }
DEVICE u64 descriptor(u32 high, u32 low) { return (u64)high << 32 | low; }
template <int N> DEVICE void pin_u32(u32* x) {
  #pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(x[i]) :: "memory");
}
template <int N> DEVICE void pin(float* x) {
  #pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(x[i]) :: "memory");
}
DEVICE void wgmma_m64n64k16_f32_bf16_rs(float* d, u32 a0, u32 a1, u32 a2, u32 a3, u64 b, int accumulate) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %37, 0;\n"
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, p, 1, 1, 0; }"
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
    : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate));
}
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
DEVICE void ldmatrix_x4_trans(u32& r0, u32& r1, u32& r2, u32& r3, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(address) : "memory");
}
DEVICE void load_shared_f32x2(float& x, float& y, u32 address) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(address) : "memory");
}
template <int N> DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory"); }
DEVICE float unpack_bf16(u32 x, int i) { return __uint_as_float(i ? x & 0xffff0000u : x << 16); }
DEVICE void wgmma_m64n128k16_f32_bf16_rs_tb(float* d, u32 a0, u32 a1, u32 a2, u32 a3, u64 b, int accumulate) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %69, 0;\n"
    "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, p, 1, 1, 1; }"
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
    : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate));
}
template <int N> DEVICE void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(N) : "memory"); }
template <int ID, int THREADS> DEVICE void named_sync() { asm volatile("bar.sync %0, %1;" :: "n"(ID), "n"(THREADS) : "memory"); }
DEVICE void stmatrix_x4_trans(u32 address, u32 r0, u32 r1, u32 r2, u32 r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
               :: "r"(address), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}
DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
DEVICE void tma_store_3d(const TensorMap* map, u32 src, int x, int y, int z) { asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" :: "l"(map), "r"(src), "r"(x), "r"(y), "r"(z) : "memory"); }
DEVICE void mbarrier_arrive(u32 bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory"); }
DEVICE void store_global_64(void* p, u32 r0, u32 r1) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" :: "l"(p), "r"(r0), "r"(r1) : "memory");
}
DEVICE void prefetch_map(const TensorMap* map) { asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory"); }
DEVICE void mbarrier_init(u32 bar, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory"); }
DEVICE void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

extern "C" __global__ void __launch_bounds__(384, 1)
kda_inter(const __grid_constant__ TensorMap KD_map, const __grid_constant__ TensorMap V_map, const __grid_constant__ TensorMap INV_map, const __grid_constant__ TensorMap BETA_map, const __grid_constant__ TensorMap QD_map, const __grid_constant__ TensorMap MQK_map, const __grid_constant__ TensorMap KR_map, const __grid_constant__ TensorMap GT_map, const __grid_constant__ TensorMap O_map, const __grid_constant__ TensorMap O_map_1, const float* S0, u64 S0_stride0, u64 S0_stride1, float* S1, u64 S1_stride0, u64 S1_stride1, const int* CU, const int* CHUNK0, int H, int NSEQ) {
  extern __shared__ __align__(16) u8 smem_raw[];
  const u32 pool = (shared_address(smem_raw) + 1023u) & ~1023u;
  const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
  const u32 smem_kd = pool;                                                                          // L20: smem_kd = pool.view(offset=off[0], shape=(C, DK), dtype=lm.bf16, stage=2, swizzle="128b")
  const u32 smem_qd = pool + 32768u;                                                                 // L21: smem_qd = pool.view(offset=off[1], shape=(C, DK), dtype=lm.bf16, stage=2, swizzle="128b")
  const u32 smem_kr = pool + 65536u;                                                                 // L22: smem_kr = pool.view(offset=off[2], shape=(C, DK), dtype=lm.bf16, stage=2, swizzle="128b")
  const u32 smem_v = pool + 98304u;                                                                  // L23: smem_v = pool.view(offset=off[3], shape=(C, DV), dtype=lm.bf16, stage=2, swizzle="128b")
  const u32 smem_inv = pool + 131072u;                                                               // L24: smem_inv = pool.view(offset=off[4], shape=(C, C), dtype=lm.bf16, stage=2, swizzle="128b")
  const u32 smem_mqk = pool + 147456u;                                                               // L25: smem_mqk = pool.view(offset=off[5], shape=(C, C), dtype=lm.bf16, stage=2, swizzle="128b")
  const u32 smem_gt = pool + 163840u;                                                                // L26: smem_gt = pool.view(offset=off[6], shape=(DK,), dtype=lm.f32, stage=2)
  const u32 smem_beta = pool + 164864u;                                                              // L27: smem_beta = pool.view(offset=off[6] + 1024, shape=(C,), dtype=lm.f32, stage=2)
  const u32 smem_o = pool + 165888u;                                                                 // L28: smem_o = pool.view(offset=off[6] + 2048, shape=(C, DV), dtype=lm.bf16, stage=2, swizzle="128b")
  const u32 full = pool + 198656u;                                                                   // L33: full = lm.barrier(pipeline=inp, prod=[load], cons=[math], arrive="tx")
  const u32 empty = pool + 198672u;                                                                  // L34: empty = lm.barrier(pipeline=inp, prod=[math], cons=[load], arrive="warp", primed=True)
  const int sched_h = H;                                                                             // L37: sched = lm.scheduler(kind="grid", tiles=(H, NSEQ), names=("h", "seq"))
  const int sched_seq = NSEQ;                                                                        // L37
  const int sched_tiles = sched_h * sched_seq;                                                       // L37
  if (threadIdx.x == 0) {
    prefetch_map(&KD_map);
    prefetch_map(&V_map);
    prefetch_map(&INV_map);
    prefetch_map(&BETA_map);
    prefetch_map(&QD_map);
    prefetch_map(&MQK_map);
    prefetch_map(&KR_map);
    prefetch_map(&GT_map);
    prefetch_map(&O_map);
    prefetch_map(&O_map_1);
    #pragma unroll
    for (u32 i = 0; i < 2; ++i) mbarrier_init(full + 8u * i, 1u);                                    // L33: full = lm.barrier(pipeline=inp, prod=[load], cons=[math], arrive="tx")
    #pragma unroll
    for (u32 i = 0; i < 2; ++i) mbarrier_init(empty + 8u * i, 8u);                                   // L34: empty = lm.barrier(pipeline=inp, prod=[math], cons=[load], arrive="warp", primed=True)
    fence_mbarrier_init();
  }
  __syncthreads();
  if (warpgroup == 2) {                                                                              // L39: with load:
    setmaxnreg_dec<40>();                                                                            // L39
    u32 inp_n = 0;                                                                                   // L39
    if ((threadIdx.x >> 5) == 8 && elect_one()) {                                                    // L39
      const int t = (int)blockIdx.x;                                                                 // L40: for t in lm.tiles(sched):
      if (t < sched_tiles) {                                                                         // L40
        const int t_h = t % sched_h;                                                                 // L40
        const int t_seq = t / sched_h;                                                               // L40
        const int tmp = CU[t_seq];                                                                   // L41: bos, eos = lm.ld(CU, t.seq), lm.ld(CU, t.seq + 1)
        const int tmp_2 = CU[t_seq + 1];                                                             // L41: bos, eos = lm.ld(CU, t.seq), lm.ld(CU, t.seq + 1)
        const int bos = tmp;                                                                         // L41: bos, eos = lm.ld(CU, t.seq), lm.ld(CU, t.seq + 1)
        const int eos = tmp_2;                                                                       // L41
        #pragma unroll 1
        for (int i = 0; i < cdiv(eos - bos, 64); ++i) {                                              // L42: for i in lm.range(lm.cdiv(eos - bos, C)):
          const u32 s = inp_n++;                                                                     // L43: s = lm.step(inp)
          const int tmp_3 = CHUNK0[t_seq];                                                           // L44: w = (lm.ld(CHUNK0, t.seq) + i) * H + t.h
          const int w = (tmp_3 + i) * H + t_h;                                                       // L44: w = (lm.ld(CHUNK0, t.seq) + i) * H + t.h
          mbarrier_wait(empty + 8u * (s % 2u), ((s / 2u) & 1u) ^ 1u);                                // L45: lm.wait(empty, stage=s)
          mbarrier_expect_tx(full + 8u * (s % 2u), 82688u);                                          // L46: smem_kd.tma_load(KD, coords=(0, 0, w), stage=s, barrier=full)
          tma_load_3d(smem_kd + 16384u * (s % 2u), &KD_map, 0, 0, w, full + 8u * (s % 2u));          // L46
          tma_load_3d(smem_kd + 16384u * (s % 2u) + 8192u, &KD_map, 64, 0, w, full + 8u * (s % 2u)); // L46
          tma_load_3d(smem_v + 16384u * (s % 2u), &V_map, 0, t_h, bos + i * 64, full + 8u * (s % 2u)); // L47: smem_v.tma_load(V, coords=(0, t.h, bos + i * C), stage=s, barrier=full, box=(DV, 1, C))
          tma_load_3d(smem_v + 16384u * (s % 2u) + 8192u, &V_map, 64, t_h, bos + i * 64, full + 8u * (s % 2u)); // L47
          tma_load_3d(smem_inv + 8192u * (s % 2u), &INV_map, 0, 0, w, full + 8u * (s % 2u));         // L48: smem_inv.tma_load(INV, coords=(0, 0, w), stage=s, barrier=full)
          tma_load_2d(smem_beta + 256u * (s % 2u), &BETA_map, 0, w, full + 8u * (s % 2u));           // L49: smem_beta.tma_load(BETA, coords=(0, w), stage=s, barrier=full)
          tma_load_3d(smem_qd + 16384u * (s % 2u), &QD_map, 0, 0, w, full + 8u * (s % 2u));          // L50: smem_qd.tma_load(QD, coords=(0, 0, w), stage=s, barrier=full)
          tma_load_3d(smem_qd + 16384u * (s % 2u) + 8192u, &QD_map, 64, 0, w, full + 8u * (s % 2u)); // L50
          tma_load_3d(smem_mqk + 8192u * (s % 2u), &MQK_map, 0, 0, w, full + 8u * (s % 2u));         // L51: smem_mqk.tma_load(MQK, coords=(0, 0, w), stage=s, barrier=full)
          tma_load_3d(smem_kr + 16384u * (s % 2u), &KR_map, 0, 0, w, full + 8u * (s % 2u));          // L52: smem_kr.tma_load(KR, coords=(0, 0, w), stage=s, barrier=full)
          tma_load_3d(smem_kr + 16384u * (s % 2u) + 8192u, &KR_map, 64, 0, w, full + 8u * (s % 2u)); // L52
          tma_load_2d(smem_gt + 512u * (s % 2u), &GT_map, 0, w, full + 8u * (s % 2u));               // L53: smem_gt.tma_load(GT, coords=(0, w), stage=s, barrier=full)
        }
      }
    }
    __syncwarp();                                                                                    // L39: with load:
  } else {                                                                                           // L55: with math:
    setmaxnreg_inc<232>();                                                                           // L55
    const int math_index = warpgroup;                                                                // L55
    const u32 thread = threadIdx.x & 127u;                                                           // L55
    const u32 warp = thread >> 5;                                                                    // L55
    const u32 lane = thread & 31u;                                                                   // L55
    u32 inp_n = 0;                                                                                   // L55
    u32 oring_n = 0;                                                                                 // L55
    const int t = (int)blockIdx.x;                                                                   // L56: for t in lm.tiles(sched):
    if (t < sched_tiles) {                                                                           // L56
      const int t_h = t % sched_h;                                                                   // L56
      const int t_seq = t / sched_h;                                                                 // L56
      const int tmp = CU[t_seq];                                                                     // L57: bos, eos = lm.ld(CU, t.seq), lm.ld(CU, t.seq + 1)
      const int tmp_5 = CU[t_seq + 1];                                                               // L57: bos, eos = lm.ld(CU, t.seq), lm.ld(CU, t.seq + 1)
      const int bos = tmp;                                                                           // L57: bos, eos = lm.ld(CU, t.seq), lm.ld(CU, t.seq + 1)
      const int eos = tmp_5;                                                                         // L57
      const int n = cdiv(eos - bos, 64);                                                             // L58: n = lm.cdiv(eos - bos, C)
      const int v0 = 64 * math_index;                                                                // L59: v0 = 64 * math.index
      float st[64];                                                                                  // L60: st = lm.load(S0, coords=(0, v0, t.seq * H + t.h), shape=(64, DK), form="acc")
      #pragma unroll
      for (int i_ = 0; i_ < 32; ++i_) {                                                              // L60
        load_global_64((u32&)st[2 * i_], (u32&)st[2 * i_ + 1], S0 + (u64)(t_seq * H + t_h) * S0_stride0 + (u64)(v0) * S0_stride1 + (u64)(16 * (int)warp + 8 * (i_ & 1) + (int)(lane >> 2)) * S0_stride1 + 8 * (i_ / 2) + 2 * (int)(lane & 3u)); // L60
      }
      #pragma unroll 1
      for (int i = 0; i < n; ++i) {                                                                  // L61: for i in lm.range(n):
        const u32 s = inp_n++;                                                                       // L62: s = lm.step(inp)
        mbarrier_wait(full + 8u * (s % 2u), (s / 2u) & 1u);                                          // L63: lm.wait(full, stage=s)
        u32 sa[32];                                                                                  // L64: sa = lm.cast(st, lm.bf16, form="a")
        #pragma unroll
        for (int i_ = 0; i_ < 32; ++i_) {                                                            // L64
          sa[i_] = pack_bf16(st[2 * i_], st[2 * i_ + 1]);                                            // L64
        }
        float u[32];                                                                                 // L65: u = lm.frag(shape=(64, C), dtype=lm.f32, form="acc")
        float ot[32];                                                                                // L66: ot = lm.frag(shape=(64, C), dtype=lm.f32, form="acc")
        pin_u32<32>(sa);                                                                             // L67: lm.mma(u, sa, smem_kd[s], init=True)
        pin_u32<32>(sa);                                                                             // L67
        pin<32>(u);                                                                                  // L67
        {
          const u32 b_ = descriptor_low(smem_kd, 16u) + 1024u * (s % 2u);                            // L67
          wgmma_fence();                                                                             // L67
          #pragma unroll
          for (int k_ = 0; k_ < 8; ++k_) {                                                           // L67
            wgmma_m64n64k16_f32_bf16_rs(u, sa[4 * k_], sa[4 * k_ + 1], sa[4 * k_ + 2], sa[4 * k_ + 3], descriptor(0x40000040u, b_ + 512u * (k_ / 4) + 2u * (k_ % 4)), k_ != 0); // L67
          }
          wgmma_commit();                                                                            // L67
        }
        pin<32>(ot);                                                                                 // L68: lm.mma(ot, sa, smem_qd[s], init=True)
        {
          const u32 b_ = descriptor_low(smem_qd, 16u) + 1024u * (s % 2u);                            // L68
          wgmma_fence();                                                                             // L68
          #pragma unroll
          for (int k_ = 0; k_ < 8; ++k_) {                                                           // L68
            wgmma_m64n64k16_f32_bf16_rs(ot, sa[4 * k_], sa[4 * k_ + 1], sa[4 * k_ + 2], sa[4 * k_ + 3], descriptor(0x40000040u, b_ + 512u * (k_ / 4) + 2u * (k_ % 4)), k_ != 0); // L68
          }
          wgmma_commit();                                                                            // L68
        }
        u32 vt[16];                                                                                  // L69: vt = smem_v[s].cols(v0, 64).T.load(form="acc")
        #pragma unroll
        for (int g_ = 0; g_ < 4; ++g_) {                                                             // L69
          const u32 row_ = 8u * (2u * g_) + (lane & 7u) + 8u * (lane >> 4), chunk_ = (16u * warp) / 8u + ((lane >> 3) & 1u); // L69
          ldmatrix_x4_trans(vt[4 * g_], vt[4 * g_ + 1], vt[4 * g_ + 2], vt[4 * g_ + 3], smem_v + 16384u * (s % 2u) + (((v0) / 8) + chunk_) / 8 * 8192u + row_ * 128u + (((((v0) / 8) + chunk_) % 8 ^ (row_ & 7u)) << 4)); // L69
        }
        float beta[16];                                                                              // L70: beta = smem_beta[s].load(form="colvec")
        #pragma unroll
        for (int i_ = 0; i_ < 8; ++i_) {                                                             // L70
          load_shared_f32x2(beta[2 * i_], beta[2 * i_ + 1], smem_beta + 256u * (s % 2u) + (8u * i_ + 2u * (lane & 3u)) * 4u); // L70
        }
        wgmma_wait<1>();                                                                             // L71: lm.mma_wait(pending=1)
        pin<32>(u);                                                                                  // L71
        u32 ua[16];                                                                                  // L72: ua = lm.cast((vt - u) * beta, lm.bf16, form="a")
        #pragma unroll
        for (int i_ = 0; i_ < 16; ++i_) {                                                            // L72
          ua[i_] = pack_bf16(__fmul_rn((unpack_bf16(vt[i_], 0) - u[2 * i_]), beta[2 * (i_ / 2)]), __fmul_rn((unpack_bf16(vt[i_], 1) - u[2 * i_ + 1]), beta[2 * (i_ / 2) + 1])); // L72
        }
        float u2[32];                                                                                // L73: u2 = lm.frag(shape=(64, C), dtype=lm.f32, form="acc")
        pin<32>(u2);                                                                                 // L74: lm.mma(u2, ua, smem_inv[s], init=True)
        pin_u32<16>(ua);                                                                             // L74
        {
          const u32 b_ = descriptor_low(smem_inv, 16u) + 512u * (s % 2u);                            // L74
          wgmma_fence();                                                                             // L74
          #pragma unroll
          for (int k_ = 0; k_ < 4; ++k_) {                                                           // L74
            wgmma_m64n64k16_f32_bf16_rs(u2, ua[4 * k_], ua[4 * k_ + 1], ua[4 * k_ + 2], ua[4 * k_ + 3], descriptor(0x40000040u, b_ + 2u * k_), k_ != 0); // L74
          }
          wgmma_commit();                                                                            // L74
        }
        wgmma_wait<0>();                                                                             // L75: lm.mma_wait(pending=0)
        pin<32>(ot);                                                                                 // L75
        pin_u32<32>(sa);                                                                             // L75
        pin<32>(u2);                                                                                 // L75
        pin_u32<16>(ua);                                                                             // L75
        u32 ub[16];                                                                                  // L76: ub = lm.cast(u2, lm.bf16, form="a")
        #pragma unroll
        for (int i_ = 0; i_ < 16; ++i_) {                                                            // L76
          ub[i_] = pack_bf16(u2[2 * i_], u2[2 * i_ + 1]);                                            // L76
        }
        pin_u32<16>(ub);                                                                             // L77: lm.mma(ot, ub, smem_mqk[s])
        pin<32>(ot);                                                                                 // L77
        pin_u32<16>(ub);                                                                             // L77
        {
          const u32 b_ = descriptor_low(smem_mqk, 16u) + 512u * (s % 2u);                            // L77
          wgmma_fence();                                                                             // L77
          #pragma unroll
          for (int k_ = 0; k_ < 4; ++k_) {                                                           // L77
            wgmma_m64n64k16_f32_bf16_rs(ot, ub[4 * k_], ub[4 * k_ + 1], ub[4 * k_ + 2], ub[4 * k_ + 3], descriptor(0x40000040u, b_ + 2u * k_), 1); // L77
          }
          wgmma_commit();                                                                            // L77
        }
        float tmp_6[32];                                                                             // L78: st = st * smem_gt[s].load(form="colvec")
        #pragma unroll
        for (int i_ = 0; i_ < 16; ++i_) {                                                            // L78
          load_shared_f32x2(tmp_6[2 * i_], tmp_6[2 * i_ + 1], smem_gt + 512u * (s % 2u) + (8u * i_ + 2u * (lane & 3u)) * 4u); // L78
        }
        #pragma unroll
        for (int i_ = 0; i_ < 64; ++i_) {                                                            // L78: st = st * smem_gt[s].load(form="colvec")
          st[i_] = __fmul_rn(st[i_], tmp_6[2 * (i_ / 4) + (i_ & 1)]);                                // L78
        }
        pin<64>(st);                                                                                 // L79: lm.mma(st, ub, smem_kr[s].T)
        pin<64>(st);                                                                                 // L79
        {
          const u32 b_ = descriptor_low(smem_kr, 8192u) + 1024u * (s % 2u);                          // L79
          wgmma_fence();                                                                             // L79
          #pragma unroll
          for (int k_ = 0; k_ < 4; ++k_) {                                                           // L79
            wgmma_m64n128k16_f32_bf16_rs_tb(st, ub[4 * k_], ub[4 * k_ + 1], ub[4 * k_ + 2], ub[4 * k_ + 3], descriptor(0x40000040u, b_ + 128u * k_), 1); // L79
          }
          wgmma_commit();                                                                            // L79
        }
        wgmma_wait<1>();                                                                             // L80: lm.mma_wait(pending=1)
        pin<32>(ot);                                                                                 // L80
        const u32 so = oring_n++;                                                                    // L81: so = lm.step(oring)
        if (thread == 0) bulk_wait_read<1>();                                                        // L82: lm.store_wait(pending=1)
        named_sync<1, 256>();                                                                        // L83: lm.sync(both)
        #pragma unroll
        for (int g_ = 0; g_ < 4; ++g_) {                                                             // L84: smem_o[so].cols(v0, 64).T.store(lm.cast(ot, lm.bf16))
          const u32 row_ = 8u * (2u * g_) + (lane & 7u) + 8u * (lane >> 4), chunk_ = (16u * warp) / 8u + ((lane >> 3) & 1u); // L84
          stmatrix_x4_trans(smem_o + 16384u * (so % 2u) + (((v0) / 8) + chunk_) / 8 * 8192u + row_ * 128u + (((((v0) / 8) + chunk_) % 8 ^ (row_ & 7u)) << 4), pack_bf16(ot[8 * g_], ot[8 * g_ + 1]), pack_bf16(ot[8 * g_ + 2], ot[8 * g_ + 3]), pack_bf16(ot[8 * g_ + 4], ot[8 * g_ + 5]), pack_bf16(ot[8 * g_ + 6], ot[8 * g_ + 7])); // L84
        }
        fence_proxy_async();                                                                         // L85: lm.fence_proxy()
        named_sync<1, 256>();                                                                        // L86: lm.sync(both)
        const int rows = min(64, eos - bos - i * 64);                                                // L87: rows = lm.min(C, eos - bos - i * C)
        if (math_index == 0) {                                                                       // L88: if math.index == 0:
          if (thread == 0) {                                                                         // L89: smem_o[so].tma_store(O, coords=(0, t.h, bos + i * C), box=(DV, 1, C), rows=rows)
            if (rows == 64) {                                                                        // L89
              tma_store_3d(&O_map, smem_o + 16384u * (so % 2u), 0, t_h, bos + i * 64);               // L89
              tma_store_3d(&O_map, smem_o + 16384u * (so % 2u) + 8192u, 64, t_h, bos + i * 64);      // L89
            } else {                                                                                 // L89
              #pragma unroll 1
              for (int row_ = 0; row_ < rows; ++row_) {                                              // L89
                tma_store_3d(&O_map_1, smem_o + 16384u * (so % 2u) + 128u * row_, 0, t_h, bos + i * 64 + row_); // L89
                tma_store_3d(&O_map_1, smem_o + 16384u * (so % 2u) + 8192u + 128u * row_, 64, t_h, bos + i * 64 + row_); // L89
              }
            }
            bulk_commit();                                                                           // L89
          }
        }
        wgmma_wait<0>();                                                                             // L90: lm.mma_wait(pending=0)
        pin<64>(st);                                                                                 // L90
        pin_u32<16>(ub);                                                                             // L90
        __syncwarp();                                                                                // L91: lm.arrive(empty, stage=s)
        if (lane == 0) mbarrier_arrive(empty + 8u * (s % 2u));                                       // L91
      }
      #pragma unroll
      for (int i_ = 0; i_ < 32; ++i_) {                                                              // L92: lm.store(S1, st, coords=(0, v0, t.seq * H + t.h))
        store_global_64(S1 + (u64)(t_seq * H + t_h) * S1_stride0 + (u64)(v0) * S1_stride1 + (u64)(16 * (int)warp + 8 * (i_ & 1) + (int)(lane >> 2)) * S1_stride1 + 8 * (i_ / 2) + 2 * (int)(lane & 3u), __float_as_uint(st[2 * i_]), __float_as_uint(st[2 * i_ + 1])); // L92
      }
    }
    if (thread == 0) bulk_wait_read<0>();                                                            // L93: lm.store_wait(pending=0)
  }
}

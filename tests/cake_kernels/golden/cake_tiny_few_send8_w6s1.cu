// tiny_gemm_few_send for sm_90a, lowered from Cake IR
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef signed char i8; typedef long long i64;
#define DEVICE static __device__ __forceinline__
struct alignas(64) TensorMap { u64 opaque[16]; };

DEVICE int cdiv(int a, int b) { const int q = a / b; return q + (a % b > 0); }  // b > 0
DEVICE bool elect_one() {
  u32 chosen;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(chosen));
  return chosen != 0;
}
DEVICE void pdl_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
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
DEVICE u64 policy_evict_first() {
  u64 policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
DEVICE void tma_load_2d_hint(u32 dst, const TensorMap* map, int x, int y, u32 bar, u64 policy) { asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" :: "r"(dst), "l"(map), "r"(x), "r"(y), "r"(bar), "l"(policy) : "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
DEVICE void pdl_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
DEVICE u64 policy_evict_last() {
  u64 policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
DEVICE void ldmatrix_x4(u32& r0, u32& r1, u32& r2, u32& r3, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(address) : "memory");
}
DEVICE void ldmatrix_x2(u32& r0, u32& r1, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r0), "=r"(r1) : "r"(address) : "memory");
}
DEVICE void mma_m16n8k16_f32_bf16(float* d, const u32* a, const u32* b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void mbarrier_arrive(u32 bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory"); }
DEVICE void store_shared_f32x2(u32 address, float x, float y) { asm volatile("st.shared.v2.f32 [%0], {%1, %2};" :: "r"(address), "f"(x), "f"(y) : "memory"); }
template <int ID, int THREADS> DEVICE void named_sync() { asm volatile("bar.sync %0, %1;" :: "n"(ID), "n"(THREADS) : "memory"); }
DEVICE void load_shared_f32x2(float& x, float& y, u32 address) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(address) : "memory");
}
DEVICE u32 cluster_rank() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
DEVICE u32 map_shared(u32 address, u32 cta) {  // the same place in a CTA of the cluster
  u32 r;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(address), "r"(cta));
  return r;
}
DEVICE void send_64(u32 address, u32 bar, u32 r0, u32 r1) { asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%2, %3}, [%1];" :: "r"(address), "r"(bar), "r"(r0), "r"(r1) : "memory"); }
DEVICE bool mbarrier_try_cluster(u32 bar, u32 parity) {
  u32 complete;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(complete) : "r"(bar), "r"(parity) : "memory");
  return complete != 0;
}
DEVICE void mbarrier_wait_cluster(u32 bar, u32 parity) {
  if (mbarrier_try_cluster(bar, parity)) return;
  asm volatile("{ .reg .pred p, q; .reg .u32 n; mov.u32 n, 0;\n"
               "AGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nadd.u32 n, n, 1;\nsetp.eq.u32 q, n, 0x4000000;\n@q trap;\nbra AGAIN;\nDONE: }"
               :: "r"(bar), "r"(parity) : "memory");
}
DEVICE u32 pack_bf16(float lo, float hi) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(lo), "f"(hi)); return r; }
DEVICE float round_bf16(float x) { return __uint_as_float(pack_bf16(x, 0.0f) << 16); }
DEVICE void prefetch_map(const TensorMap* map) { asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory"); }
DEVICE void mbarrier_init(u32 bar, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory"); }
DEVICE void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

extern "C" __global__ void __launch_bounds__(256, 1)
tiny_gemm_few_send(const __grid_constant__ TensorMap W_map, const __grid_constant__ TensorMap X_map, u16* Y, u64 Y_stride0, int M, int N, int K) {
  extern __shared__ __align__(16) u8 smem_raw[];
  const u32 pool = (shared_address(smem_raw) + 1023u) & ~1023u;
  const int cta_warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
  const u32 cluster_cta = cluster_rank();
  const u32 xs = pool;                                                                               // L16: xs = pool.view(offset=0, shape=(8, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
  const u32 ws = pool + 6144u;                                                                       // L17: ws = pool.view(offset=x_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
  const u32 partial = pool + 18432u;                                                                 // L18: partial = pool.view(offset=x_bytes + w_bytes, shape=(BN, 8), dtype=lm.f32, stage=WARPS)
  const u32 inbox = pool + 21504u;                                                                   // L19: inbox = pool.view(offset=x_bytes + w_bytes + p_bytes, shape=(BN * SPLIT, 8), dtype=lm.f32)
  const u32 full = pool + 25600u;                                                                    // L25: full = lm.barrier(pipeline=ring, prod=[load_w, load_x], cons=[math], arrive="tx")
  const u32 empty = pool + 25608u;                                                                   // L26: empty = lm.barrier(pipeline=ring, prod=[math], cons=[load_w, load_x], arrive="warp", primed=True)
  const u32 arrived = pool + 25616u;                                                                 // L29: arrived = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="tx", scope="cluster")
  const int sched_k = 1;                                                                             // L30: sched = lm.scheduler(kind="grid", tiles=(SPLIT, lm.cdiv(N, BN)), names=("k", "n"), cluster=(SPLIT, 1))
  const int sched_n = cdiv(N, 16);                                                                   // L30
  const int sched_tiles = sched_k * sched_n;                                                         // L30
  const int kt = cdiv(K, 3072);                                                                      // L31: kt = lm.cdiv(K, BK * SPLIT)
  if (threadIdx.x == 0) {
    prefetch_map(&W_map);
    prefetch_map(&X_map);
    mbarrier_init(full, 2u);                                                                         // L25: full = lm.barrier(pipeline=ring, prod=[load_w, load_x], cons=[math], arrive="tx")
    mbarrier_init(empty, 6u);                                                                        // L26: empty = lm.barrier(pipeline=ring, prod=[math], cons=[load_w, load_x], arrive="warp", primed=True)
    mbarrier_init(arrived, 1u);                                                                      // L29: arrived = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="tx", scope="cluster")
    #pragma unroll
    for (u32 i = 0; i < 1; ++i) mbarrier_expect_tx(arrived + 8u * i, 4096u);                         // L29
    fence_mbarrier_init();
  }
  cluster_arrive();
  __syncthreads();
  if (cta_warp == 6) {                                                                               // L33: with load_w:
    u32 ring_n = 0;                                                                                  // L33
    if ((threadIdx.x >> 5) == 6 && elect_one()) {                                                    // L33
      pdl_launch();                                                                                  // L35: lm.pdl_launch()
      const int t = (int)blockIdx.x / 8;                                                             // L36: for t in lm.tiles(sched):
      if (t < sched_tiles) {                                                                         // L36
        const int t_k = (t % sched_k) * 8 + (int)cluster_cta;                                        // L36
        const int t_n = t / sched_k;                                                                 // L36
        #pragma unroll 1
        for (int k = 0; k < kt; ++k) {                                                               // L37: for k in lm.range(kt):
          const u32 s = ring_n++;                                                                    // L38: s = lm.step(ring)
          mbarrier_wait(empty, (s & 1u) ^ 1u);                                                       // L39: lm.wait(empty, stage=s)
          mbarrier_expect_tx(full, 12288u);                                                          // L40: ws.tma_load(W, coords=((t.k * kt + k) * BK, t.n * BN), stage=s, barrier=full, cache="stream")
          tma_load_2d_hint(ws, &W_map, (t_k * kt + k) * 384, t_n * 16, full, policy_evict_first());  // L40
          tma_load_2d_hint(ws + 2048u, &W_map, (t_k * kt + k) * 384 + 64, t_n * 16, full, policy_evict_first()); // L40
          tma_load_2d_hint(ws + 4096u, &W_map, (t_k * kt + k) * 384 + 128, t_n * 16, full, policy_evict_first()); // L40
          tma_load_2d_hint(ws + 6144u, &W_map, (t_k * kt + k) * 384 + 192, t_n * 16, full, policy_evict_first()); // L40
          tma_load_2d_hint(ws + 8192u, &W_map, (t_k * kt + k) * 384 + 256, t_n * 16, full, policy_evict_first()); // L40
          tma_load_2d_hint(ws + 10240u, &W_map, (t_k * kt + k) * 384 + 320, t_n * 16, full, policy_evict_first()); // L40
        }
      }
    }
    __syncwarp();                                                                                    // L33: with load_w:
    cluster_wait();                                                                                  // L33
  } else if (cta_warp == 7) {                                                                        // L42: with load_x:
    u32 ring_n = 0;                                                                                  // L42
    if ((threadIdx.x >> 5) == 7 && elect_one()) {                                                    // L42
      pdl_wait();                                                                                    // L43: lm.pdl_wait()
      const int t = (int)blockIdx.x / 8;                                                             // L44: for t in lm.tiles(sched):
      if (t < sched_tiles) {                                                                         // L44
        const int t_k = (t % sched_k) * 8 + (int)cluster_cta;                                        // L44
        #pragma unroll 1
        for (int k = 0; k < kt; ++k) {                                                               // L45: for k in lm.range(kt):
          const u32 s = ring_n++;                                                                    // L46: s = lm.step(ring)
          mbarrier_wait(empty, (s & 1u) ^ 1u);                                                       // L47: lm.wait(empty, stage=s)
          mbarrier_expect_tx(full, 6144u);                                                           // L48: xs.tma_load(X, coords=((t.k * kt + k) * BK, 0), stage=s, barrier=full, cache="keep")
          tma_load_2d_hint(xs, &X_map, (t_k * kt + k) * 384, 0, full, policy_evict_last());          // L48
          tma_load_2d_hint(xs + 1024u, &X_map, (t_k * kt + k) * 384 + 64, 0, full, policy_evict_last()); // L48
          tma_load_2d_hint(xs + 2048u, &X_map, (t_k * kt + k) * 384 + 128, 0, full, policy_evict_last()); // L48
          tma_load_2d_hint(xs + 3072u, &X_map, (t_k * kt + k) * 384 + 192, 0, full, policy_evict_last()); // L48
          tma_load_2d_hint(xs + 4096u, &X_map, (t_k * kt + k) * 384 + 256, 0, full, policy_evict_last()); // L48
          tma_load_2d_hint(xs + 5120u, &X_map, (t_k * kt + k) * 384 + 320, 0, full, policy_evict_last()); // L48
        }
      }
    }
    __syncwarp();                                                                                    // L42: with load_x:
    cluster_wait();                                                                                  // L42
  } else {                                                                                           // L50: with math:
    cluster_wait();                                                                                  // L50
    const int math_index = cta_warp;                                                                 // L50
    const u32 thread = threadIdx.x & 31u;                                                            // L50
    const u32 lane = thread & 31u;                                                                   // L50
    u32 ring_n = 0;                                                                                  // L50
    u32 mail_n = 0;                                                                                  // L50
    const int t = (int)blockIdx.x / 8;                                                               // L51: for t in lm.tiles(sched):
    if (t < sched_tiles) {                                                                           // L51
      const int t_k = (t % sched_k) * 8 + (int)cluster_cta;                                          // L51
      const int t_n = t / sched_k;                                                                   // L51
      float acc[4];                                                                                  // L52: acc = lm.frag(shape=(BN, 8), dtype=lm.f32, form="acc", init=0.0)
      #pragma unroll
      for (int i_ = 0; i_ < 4; ++i_) {                                                               // L52
        acc[i_] = 0.0f;                                                                              // L52
      }
      #pragma unroll 1
      for (int k = 0; k < kt; ++k) {                                                                 // L53: for k in lm.range(kt):
        const u32 s = ring_n++;                                                                      // L54: s = lm.step(ring)
        mbarrier_wait(full, s & 1u);                                                                 // L55: lm.wait(full, stage=s)
        #pragma unroll
        for (int kk = 0; kk < 4; ++kk) {                                                             // L56: for kk in lm.static_range(4):
          u32 a[4];                                                                                  // L57: a = ws[s].cols(64 * math.index + 16 * kk, 16).ldmatrix(form="a", like=acc)
          {
            const u32 row_ = (lane & 15u), chunk_ = (lane >> 4);                                     // L57
            ldmatrix_x4(a[0], a[1], a[2], a[3], ws + (((64 * math_index + 16 * kk) / 8) + chunk_) / 8 * 2048u + row_ * 128u + (((((64 * math_index + 16 * kk) / 8) + chunk_) % 8 ^ (row_ & 7u)) << 4)); // L57
          }
          u32 b[2];                                                                                  // L58: b = xs[s].cols(64 * math.index + 16 * kk, 16).ldmatrix(form="b", like=acc)
          {
            const u32 row_ = (lane & 7u), chunk_ = ((lane >> 3) & 1u);                               // L58
            ldmatrix_x2(b[0], b[1], xs + (((64 * math_index + 16 * kk) / 8) + chunk_) / 8 * 1024u + row_ * 128u + (((((64 * math_index + 16 * kk) / 8) + chunk_) % 8 ^ (row_ & 7u)) << 4)); // L58
          }
          mma_m16n8k16_f32_bf16(acc, a, b);                                                          // L59: lm.mma(acc, a, b)
        }
        fence_proxy_async();                                                                         // L60: lm.arrive(empty, stage=s)
        __syncwarp();                                                                                // L60
        if (lane == 0) mbarrier_arrive(empty);                                                       // L60
      }
      #pragma unroll
      for (int j_ = 0; j_ < 1; ++j_) {                                                               // L61: partial[math.index].store(acc)
        const u32 row0_ = (lane >> 2);                                                               // L61
        store_shared_f32x2(partial + 512u * (u32)(math_index) + row0_ * 32u + (2u * j_ + ((lane >> 1) & 1u)) * 16u + 8u * (lane & 1u), acc[4 * j_], acc[4 * j_ + 1]); // L61
        const u32 row1_ = 8u + (lane >> 2);                                                          // L61
        store_shared_f32x2(partial + 512u * (u32)(math_index) + row1_ * 32u + (2u * j_ + ((lane >> 1) & 1u)) * 16u + 8u * (lane & 1u), acc[4 * j_ + 2], acc[4 * j_ + 3]); // L61
      }
      named_sync<1, 192>();                                                                          // L62: lm.sync(sums)
      if (math_index == 0) {                                                                         // L63: if math.index == 0:
        #pragma unroll
        for (int i = 1; i < 6; ++i) {                                                                // L64: for i in lm.static_range(1, WARPS):
          float tmp[4];                                                                              // L65: acc = acc + partial[i].load(form="acc", like=acc)
          #pragma unroll
          for (int j_ = 0; j_ < 1; ++j_) {                                                           // L65
            const u32 row0_ = (lane >> 2);                                                           // L65
            load_shared_f32x2(tmp[4 * j_], tmp[4 * j_ + 1], partial + 512u * (u32)(i) + row0_ * 32u + (2u * j_ + ((lane >> 1) & 1u)) * 16u + 8u * (lane & 1u)); // L65
            const u32 row1_ = 8u + (lane >> 2);                                                      // L65
            load_shared_f32x2(tmp[4 * j_ + 2], tmp[4 * j_ + 3], partial + 512u * (u32)(i) + row1_ * 32u + (2u * j_ + ((lane >> 1) & 1u)) * 16u + 8u * (lane & 1u)); // L65
          }
          #pragma unroll
          for (int i_ = 0; i_ < 4; ++i_) {                                                           // L65: acc = acc + partial[i].load(form="acc", like=acc)
            acc[i_] = acc[i_] + tmp[i_];                                                             // L65
          }
        }
        const u32 box = mail_n++;                                                                    // L66: box = lm.step(mail)
        {
          const u32 cta_ = (u32)(0);                                                                 // L67: inbox.rows(BN * lm.cta_rank(), BN).send(acc, cta=0, barrier=arrived, stage=box)
          const u32 peer_ = map_shared(inbox + 512u * (int)cluster_rank(), cta_);                    // L67
          const u32 landed_ = map_shared(arrived, cta_);                                             // L67
          #pragma unroll
          for (int j_ = 0; j_ < 1; ++j_) {                                                           // L67
            const u32 row0_ = (lane >> 2);                                                           // L67
            send_64(peer_ + row0_ * 32u + (2u * j_ + ((lane >> 1) & 1u)) * 16u + 8u * (lane & 1u), landed_, __float_as_uint(acc[4 * j_]), __float_as_uint(acc[4 * j_ + 1])); // L67
            const u32 row1_ = 8u + (lane >> 2);                                                      // L67
            send_64(peer_ + row1_ * 32u + (2u * j_ + ((lane >> 1) & 1u)) * 16u + 8u * (lane & 1u), landed_, __float_as_uint(acc[4 * j_ + 2]), __float_as_uint(acc[4 * j_ + 3])); // L67
          }
        }
        if (t_k == 0) {                                                                              // L68: if t.k == 0:
          mbarrier_wait_cluster(arrived, box & 1u);                                                  // L69: lm.wait(arrived, stage=box)
          if (thread == 0 && math_index == 0) mbarrier_expect_tx(arrived, 4096u);                    // L69
          float total[4];                                                                            // L70: total = inbox.rows(0, BN).load(form="acc", like=acc)
          #pragma unroll
          for (int j_ = 0; j_ < 1; ++j_) {                                                           // L70
            const u32 row0_ = (lane >> 2);                                                           // L70
            load_shared_f32x2(total[4 * j_], total[4 * j_ + 1], inbox + row0_ * 32u + (2u * j_ + ((lane >> 1) & 1u)) * 16u + 8u * (lane & 1u)); // L70
            const u32 row1_ = 8u + (lane >> 2);                                                      // L70
            load_shared_f32x2(total[4 * j_ + 2], total[4 * j_ + 3], inbox + row1_ * 32u + (2u * j_ + ((lane >> 1) & 1u)) * 16u + 8u * (lane & 1u)); // L70
          }
          #pragma unroll
          for (int i = 1; i < 8; ++i) {                                                              // L71: for i in lm.static_range(1, SPLIT):
            float tmp[4];                                                                            // L72: total = total + inbox.rows(BN * i, BN).load(form="acc", like=acc)
            #pragma unroll
            for (int j_ = 0; j_ < 1; ++j_) {                                                         // L72
              const u32 row0_ = (lane >> 2);                                                         // L72
              load_shared_f32x2(tmp[4 * j_], tmp[4 * j_ + 1], inbox + 512u * i + row0_ * 32u + (2u * j_ + ((lane >> 1) & 1u)) * 16u + 8u * (lane & 1u)); // L72
              const u32 row1_ = 8u + (lane >> 2);                                                    // L72
              load_shared_f32x2(tmp[4 * j_ + 2], tmp[4 * j_ + 3], inbox + 512u * i + row1_ * 32u + (2u * j_ + ((lane >> 1) & 1u)) * 16u + 8u * (lane & 1u)); // L72
            }
            #pragma unroll
            for (int i_ = 0; i_ < 4; ++i_) {                                                         // L72: total = total + inbox.rows(BN * i, BN).load(form="acc", like=acc)
              total[i_] = total[i_] + tmp[i_];                                                       // L72
            }
          }
          pdl_wait();                                                                                // L75: lm.pdl_wait()
          int once[2];                                                                               // L76: lm.store(Y, lm.cast(total, lm.bf16), coords=(n + 0 * m, m + 0 * n), mask=lm.in_bounds(total, N - t.n * BN, M))
          #pragma unroll
          for (int i_ = 0; i_ < 2; ++i_) {                                                           // L76
            once[i_] = 0 * (i_ + 2 * (int)(lane & 3u));                                              // L76
          }
          int once_1[2];                                                                             // L76
          #pragma unroll
          for (int i_ = 0; i_ < 2; ++i_) {                                                           // L76
            once_1[i_] = 0 * (t_n * 16 + 8 * i_ + (int)(lane >> 2));                                 // L76
          }
          #pragma unroll
          for (int i_ = 0; i_ < 4; ++i_) {                                                           // L76
            if (((8 * ((i_ >> 1) & 1) + (int)(lane >> 2)) < (N - t_n * 16) && ((i_ & 1) + 2 * (int)(lane & 3u)) < M)) *(Y + (u64)(((i_ & 1) + 2 * (int)(lane & 3u)) + once_1[(i_ >> 1) & 1]) * Y_stride0 + ((t_n * 16 + 8 * ((i_ >> 1) & 1) + (int)(lane >> 2)) + once[(i_ & 1)])) = (u16)pack_bf16(round_bf16(total[i_]), 0.0f); // L76
          }
        }
      }
    }
  }
}

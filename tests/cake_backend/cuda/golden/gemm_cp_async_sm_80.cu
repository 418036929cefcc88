// gemm_cp_async for sm_80, lowered from Cake IR
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef signed char i8; typedef long long i64;
#define DEVICE static __device__ __forceinline__

DEVICE int cdiv(int a, int b) { const int q = a / b; return q + (a % b > 0); }  // b > 0
DEVICE void cp_async_16(u32 dst, const void* src, u32 bytes) { asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(dst), "l"(src), "r"(bytes) : "memory"); }
DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void cp_async_wait() { asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory"); }
template <int ID, int THREADS> DEVICE void named_sync() { asm volatile("bar.sync %0, %1;" :: "n"(ID), "n"(THREADS) : "memory"); }
DEVICE void ldmatrix_x4(u32& r0, u32& r1, u32& r2, u32& r3, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(address) : "memory");
}
DEVICE void mma_m16n8k16_f32_bf16(float* d, const u32* a, const u32* b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
DEVICE void store_shared_32(u32 address, u32 r0) { asm volatile("st.shared.u32 [%0], %1;" :: "r"(address), "r"(r0) : "memory"); }
DEVICE u32 pack_bf16(float lo, float hi) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(lo), "f"(hi)); return r; }
DEVICE void load_shared_128(u32& r0, u32& r1, u32& r2, u32& r3, u32 address) { asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(address) : "memory"); }
DEVICE void store_global_128(void* p, u32 r0, u32 r1, u32 r2, u32 r3) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" :: "l"(p), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}
DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

extern "C" __global__ void __launch_bounds__(256, 1)
gemm_cp_async(const u16* A, u64 A_stride0, const u16* B, u64 B_stride0, u16* C, u64 C_stride0, int M, int N, int K) {
  extern __shared__ __align__(16) u8 smem_raw[];
  const u32 pool = (shared_address(smem_raw) + 1023u) & ~1023u;
  const u32 smem_a = pool;                                                                           // L13: smem_a = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="64b")
  const u32 smem_b = pool + 32768u;                                                                  // L14: smem_b = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="64b")
  const u32 smem_c = pool;                                                                           // L15: smem_c = pool.view(offset=0, shape=(BM, BN), dtype=lm.bf16, swizzle="128b")
  const int sched_m = cdiv(M, 128);                                                                  // L19: sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), raster="m", swizzle=GROUP)
  const int sched_n = cdiv(N, 128);                                                                  // L19
  const int sched_tiles = sched_m * sched_n;                                                         // L19
  const int kt = cdiv(K, 32);                                                                        // L20: kt = lm.cdiv(K, BK)
  const u32 thread = threadIdx.x;                                                                    // L22: with work:
  const u32 warp = thread >> 5;                                                                      // L22
  const u32 lane = thread & 31u;                                                                     // L22
  u32 ab_n = 0;                                                                                      // L22
  const int t = (int)blockIdx.x;                                                                     // L23: for t in lm.tiles(sched):
  if (t < sched_tiles) {                                                                             // L23
    const int t_span = 8 * sched_n;                                                                  // L23
    const int t_first = t / t_span * 8;                                                              // L23
    const int t_width = min(8, sched_m - t_first);                                                   // L23
    const int t_within = t % t_span;                                                                 // L23
    const int t_m = t_first + t_within % t_width;                                                    // L23
    const int t_n = t_within / t_width;                                                              // L23
    float acc[64];                                                                                   // L24: acc = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc", warps=(2, 4), init=0.0)
    #pragma unroll
    for (int i_ = 0; i_ < 64; ++i_) {                                                                // L24
      acc[i_] = 0.0f;                                                                                // L24
    }
    #pragma unroll
    for (int k = 0; k < 3; ++k) {                                                                    // L25: for k in lm.static_range(STAGES - 1):
      const u32 s = ab_n++;                                                                          // L26: s = lm.step(ab)
      if (k < kt) {                                                                                  // L27: if k < kt:
        {
          const int first_row_ = t_m * 128, first_col_ = k * 32;                                     // L28: smem_a.cp_async(A, coords=(k * BK, t.m * BM), stage=s)
          #pragma unroll
          for (int i_ = 0; i_ < 2; ++i_) {                                                           // L28
            const u32 id_ = thread + 256u * i_, row_ = id_ / 4u, chunk_ = id_ % 4u;                  // L28
            const int at_row_ = first_row_ + (int)row_, at_col_ = first_col_ + 8 * (int)chunk_;      // L28
            cp_async_16(smem_a + 8192u * (s % 4u) + row_ * 64u + ((chunk_ ^ ((row_ >> 1) & 3u)) << 4), A + (u64)at_row_ * A_stride0 + at_col_, at_row_ < M && at_col_ < K ? 16u : 0u); // L28
          }
        }
        {
          const int first_row_ = t_n * 128, first_col_ = k * 32;                                     // L29: smem_b.cp_async(B, coords=(k * BK, t.n * BN), stage=s)
          #pragma unroll
          for (int i_ = 0; i_ < 2; ++i_) {                                                           // L29
            const u32 id_ = thread + 256u * i_, row_ = id_ / 4u, chunk_ = id_ % 4u;                  // L29
            const int at_row_ = first_row_ + (int)row_, at_col_ = first_col_ + 8 * (int)chunk_;      // L29
            cp_async_16(smem_b + 8192u * (s % 4u) + row_ * 64u + ((chunk_ ^ ((row_ >> 1) & 3u)) << 4), B + (u64)at_row_ * B_stride0 + at_col_, at_row_ < N && at_col_ < K ? 16u : 0u); // L29
          }
        }
      }
      cp_async_commit();                                                                             // L30: lm.cp_commit()
    }
    #pragma unroll 1
    for (int k = 0; k < kt; ++k) {                                                                   // L31: for k in lm.range(kt):
      cp_async_wait<2>();                                                                            // L32: lm.cp_wait(pending=STAGES - 2)
      named_sync<1, 256>();                                                                          // L33: lm.sync(cta)
      const u32 w = ab_n++;                                                                          // L34: w = lm.step(ab)
      if (k + 4 - 1 < kt) {                                                                          // L35: if k + STAGES - 1 < kt:
        {
          const int first_row_ = t_m * 128, first_col_ = (k + 4 - 1) * 32;                           // L36: smem_a.cp_async(A, coords=((k + STAGES - 1) * BK, t.m * BM), stage=w)
          #pragma unroll
          for (int i_ = 0; i_ < 2; ++i_) {                                                           // L36
            const u32 id_ = thread + 256u * i_, row_ = id_ / 4u, chunk_ = id_ % 4u;                  // L36
            const int at_row_ = first_row_ + (int)row_, at_col_ = first_col_ + 8 * (int)chunk_;      // L36
            cp_async_16(smem_a + 8192u * (w % 4u) + row_ * 64u + ((chunk_ ^ ((row_ >> 1) & 3u)) << 4), A + (u64)at_row_ * A_stride0 + at_col_, at_row_ < M && at_col_ < K ? 16u : 0u); // L36
          }
        }
        {
          const int first_row_ = t_n * 128, first_col_ = (k + 4 - 1) * 32;                           // L37: smem_b.cp_async(B, coords=((k + STAGES - 1) * BK, t.n * BN), stage=w)
          #pragma unroll
          for (int i_ = 0; i_ < 2; ++i_) {                                                           // L37
            const u32 id_ = thread + 256u * i_, row_ = id_ / 4u, chunk_ = id_ % 4u;                  // L37
            const int at_row_ = first_row_ + (int)row_, at_col_ = first_col_ + 8 * (int)chunk_;      // L37
            cp_async_16(smem_b + 8192u * (w % 4u) + row_ * 64u + ((chunk_ ^ ((row_ >> 1) & 3u)) << 4), B + (u64)at_row_ * B_stride0 + at_col_, at_row_ < N && at_col_ < K ? 16u : 0u); // L37
          }
        }
      }
      cp_async_commit();                                                                             // L38: lm.cp_commit()
      const u32 r = (w - 3u);                                                                        // L39: r = w.prev(STAGES - 1)
      #pragma unroll
      for (int kk = 0; kk < 2; ++kk) {                                                               // L40: for kk in lm.static_range(BK // 16):
        u32 a[16];                                                                                   // L41: a = smem_a[r].cols(16 * kk, 16).ldmatrix(form="a", like=acc)
        #pragma unroll
        for (int m_ = 0; m_ < 4; ++m_) {                                                             // L41
          {
            const u32 row_ = 64u * (warp % 2u) + 16u * m_ + (lane & 15u), chunk_ = (lane >> 4);      // L41
            ldmatrix_x4(a[4 * m_], a[4 * m_ + 1], a[4 * m_ + 2], a[4 * m_ + 3], smem_a + 8192u * (r % 4u) + row_ * 64u + (((((16 * kk) / 8) + chunk_) ^ ((row_ >> 1) & 3u)) << 4)); // L41
          }
        }
        u32 b[8];                                                                                    // L42: b = smem_b[r].cols(16 * kk, 16).ldmatrix(form="b", like=acc)
        #pragma unroll
        for (int g_ = 0; g_ < 2; ++g_) {                                                             // L42
          const u32 row_ = 32u * (warp / 2u) + 16u * g_ + (lane & 7u) + 8u * (lane >> 4), chunk_ = ((lane >> 3) & 1u); // L42
          ldmatrix_x4(b[4 * g_], b[4 * g_ + 1], b[4 * g_ + 2], b[4 * g_ + 3], smem_b + 8192u * (r % 4u) + row_ * 64u + (((((16 * kk) / 8) + chunk_) ^ ((row_ >> 1) & 3u)) << 4)); // L42
        }
        #pragma unroll
        for (int m_ = 0; m_ < 4; ++m_) {                                                             // L43: lm.mma(acc, a, b)
          #pragma unroll
          for (int n_ = 0; n_ < 4; ++n_) {                                                           // L43
            mma_m16n8k16_f32_bf16(acc + 4 * (4 * m_ + n_), a + 4 * (1 * m_), b + 2 * (1 * n_));      // L43
          }
        }
      }
    }
    cp_async_wait<0>();                                                                              // L44: lm.cp_wait(pending=0)
    named_sync<1, 256>();                                                                            // L45: lm.sync(cta)
    #pragma unroll
    for (int m_ = 0; m_ < 4; ++m_) {                                                                 // L46: smem_c.store(lm.cast(acc, lm.bf16))
      #pragma unroll
      for (int j_ = 0; j_ < 4; ++j_) {                                                               // L46
        const u32 row0_ = 64u * (warp % 2u) + 16u * m_ + (lane >> 2);                                // L46
        store_shared_32(smem_c + (4u * (warp / 2u) + j_) / 8 * 16384u + row0_ * 128u + (((4u * (warp / 2u) + j_) % 8 ^ (row0_ & 7u)) << 4) + 4u * (lane & 3u), pack_bf16(acc[16 * m_ + 4 * j_], acc[16 * m_ + 4 * j_ + 1])); // L46
        const u32 row1_ = 64u * (warp % 2u) + 16u * m_ + 8u + (lane >> 2);                           // L46
        store_shared_32(smem_c + (4u * (warp / 2u) + j_) / 8 * 16384u + row1_ * 128u + (((4u * (warp / 2u) + j_) % 8 ^ (row1_ & 7u)) << 4) + 4u * (lane & 3u), pack_bf16(acc[16 * m_ + 4 * j_ + 2], acc[16 * m_ + 4 * j_ + 3])); // L46
      }
    }
    named_sync<1, 256>();                                                                            // L47: lm.sync(cta)
    u32 v[32];                                                                                       // L48: v = smem_c.load(form="vec")
    #pragma unroll
    for (int i_ = 0; i_ < 8; ++i_) {                                                                 // L48
      const u32 at_ = (u32)((i_ * 256 + (int)thread) * 8) / 8u;                                      // L48
      const u32 row_ = at_ / 16u, chunk_ = at_ % 16u;                                                // L48
      load_shared_128(v[4 * i_], v[4 * i_ + 1], v[4 * i_ + 2], v[4 * i_ + 3], smem_c + chunk_ / 8 * 16384u + row_ * 128u + ((chunk_ % 8 ^ (row_ & 7u)) << 4)); // L48
    }
    #pragma unroll
    for (int i_ = 0; i_ < 8; ++i_) {                                                                 // L49: lm.store(C, v, coords=(t.n * BN, t.m * BM), mask=lm.in_bounds(v, rows=M - t.m * BM, cols=N - t.n * BN))
      const int at_ = (i_ * 256 + (int)thread) * 8;                                                  // L49
      const int row_ = at_ / 128, col_ = at_ % 128;                                                  // L49
      if (row_ < (M - t_m * 128) && col_ < (N - t_n * 128)) {                                        // L49
        store_global_128(C + (u64)(t_m * 128) * C_stride0 + (t_n * 128) + (u64)row_ * C_stride0 + col_, v[4 * i_], v[4 * i_ + 1], v[4 * i_ + 2], v[4 * i_ + 3]); // L49
      }
    }
  }
}

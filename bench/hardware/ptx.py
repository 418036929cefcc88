"""The instructions that the questions are about, as small device functions, in front of every question's kernels."""

HEAD = r"""
typedef unsigned int u32; typedef unsigned long long u64; typedef unsigned char u8; typedef unsigned short u16;
struct alignas(64) Map { u64 opaque[16]; };
#define DEVICE static __device__ __forceinline__
#define KERNEL extern "C" __global__ void
extern __shared__ __align__(1024) u8 raw[];
DEVICE u32 shared_of(const void* p) { return (u32)__cvta_generic_to_shared(p); }
DEVICE u32 pool() { return (shared_of(raw) + 1023u) & ~1023u; }
DEVICE u64 now() { u64 t; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)); return t; }
DEVICE void spend(u64 ns) { const u64 end = now() + ns; while (now() < end) __nanosleep(200); }
DEVICE void st(u32 a, u32 v) { asm volatile("st.shared.u32 [%0], %1;" :: "r"(a), "r"(v) : "memory"); }
DEVICE u32 ld(u32 a) { u32 v; asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(a) : "memory"); return v; }
DEVICE u32 ld_global(const u32* p) { u32 v; asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
DEVICE void sync(u32 id, u32 n) { asm volatile("barrier.sync %0, %1;" :: "r"(id), "r"(n) : "memory"); }
DEVICE void arrive(u32 id, u32 n) { asm volatile("barrier.arrive %0, %1;" :: "r"(id), "r"(n) : "memory"); }
DEVICE void mb_init(u32 bar, u32 n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(n) : "memory"); }
DEVICE void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void mb_arrive(u32 bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory"); }
DEVICE void mb_expect(u32 bar, u32 n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(n) : "memory"); }
DEVICE bool mb_test(u32 bar, u32 parity) {
  u32 ok;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(ok) : "r"(bar), "r"(parity) : "memory");
  return ok;
}
DEVICE bool mb_wait(u32 bar, u32 parity, u64 ns = 20000000ull) {
  const u64 end = now() + ns;
  while (!mb_test(bar, parity)) if (now() > end) return false;
  return true;
}
DEVICE void bulk_load(u32 dst, const void* src, u32 bytes, u32 bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(dst), "l"(src), "r"(bytes), "r"(bar) : "memory");
}
DEVICE void bulk_store(void* dst, u32 src, u32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(dst), "r"(src), "r"(bytes) : "memory");
}
DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
DEVICE void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
DEVICE void bulk_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
DEVICE void tma_load(u32 dst, const Map* map, int x, int y, u32 bar) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
    :: "r"(dst), "l"(map), "r"(x), "r"(y), "r"(bar) : "memory");
}
DEVICE void tma_store(const Map* map, u32 src, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" :: "l"(map), "r"(src), "r"(x), "r"(y) : "memory");
}
DEVICE u64 descriptor(u32 a, u32 lbo, u32 sbo, u32 mode, u32 base = 0u) {
  return (u64)((a & 0x3ffffu) >> 4) | ((u64)(lbo & 0x3fffu) << 16) | ((u64)(sbo & 0x3fffu) << 32) | ((u64)base << 49) | ((u64)mode << 62);
}
DEVICE void wgmma_n8(float* d, u64 a, u64 b) {
  asm volatile("wgmma.fence.sync.aligned;\n"
    "{ .reg .pred p; setp.ne.b32 p, 0, 1; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }\n"
    "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b) : "memory");
}
DEVICE u32 rank() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
DEVICE u32 peer(u32 a, u32 cta) { u32 r; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(cta)); return r; }
DEVICE void cluster_sync() { asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory"); }
"""

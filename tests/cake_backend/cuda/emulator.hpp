// A CUDA block (or cluster) on one CPU thread: every GPU thread is a fiber that runs until it meets a barrier or a collective.
// Generated kernels are compiled against this header instead of their own asm functions, so that their index arithmetic, descriptors,
// byte counts and phases are executed as printed. Asynchronous work is done at issue: races are not what this looks for.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <ucontext.h>
#include <vector>
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef signed char i8; typedef long long i64;
#define __device__
#define __forceinline__ inline
#define __global__
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__
#define DEVICE static inline
struct alignas(64) TensorMap { u64 opaque[16]; };
struct float2 { float x, y; };

namespace emu {
struct Dim { unsigned x = 1, y = 1, z = 1; };
struct Map { char* base; int rank, elem; long dim[5], stride[5]; int box[5]; int span; char kind; };
struct Barrier { long pending = 0, count = 0, tx = 0; unsigned phase = 0; bool live = false; };
struct Meet { int arrived = 0; unsigned generation = 0; void* args[128]; };
struct Cta {
  std::vector<u8> smem; std::map<u32, Barrier> barriers; std::map<int, Meet> named; std::vector<Meet> warps, groups; Meet all; unsigned rank = 0, block = 0;
};
struct Fiber { ucontext_t context; std::vector<u8> stack; Cta* cta; unsigned tid; bool done = false; unsigned joined = 0; };
static std::vector<Cta> cluster; static std::vector<Fiber> fibers; static Fiber* cur; static ucontext_t main_context; static long steps, changes, last_change;
static Meet cluster_meet; static Dim block_dim, grid_dim;
static void (*body)();
static void fail(const char* what) { std::fprintf(stderr, "emulator: %s (block %u thread %u)\n", what, cur->cta->block, cur->tid); std::exit(3); }
static void yield() {
  if (++steps - last_change > 40l * (long)fibers.size() * 100) fail("deadlock");
  size_t i = cur - fibers.data();
  do i = (i + 1) % fibers.size(); while (fibers[i].done);
  Fiber* from = cur; cur = &fibers[i];
  if (from != cur) swapcontext(&from->context, &cur->context);
}
static void progress() { last_change = steps; }
static void entry() {
  body(); cur->done = true; progress();
  for (auto& f : fibers) if (!f.done) { cur = &f; setcontext(&f.context); }
  setcontext(&main_context);
}
template <class F> void meet(Meet& m, int slot, int size, void* arg, F last) {
  m.args[slot % 128] = arg; unsigned g = m.generation;
  if (++m.arrived == size) { last(m.args); m.arrived = 0; m.generation++; progress(); }
  else while (m.generation == g) yield();
}
static void run_cluster(unsigned first_block, unsigned ctas, unsigned threads, unsigned smem) {
  cluster.assign(ctas, {}); fibers.assign((size_t)ctas * threads, {}); cluster_meet = {}; steps = last_change = 0;
  for (unsigned c = 0; c < ctas; c++) {
    Cta& cta = cluster[c]; cta.smem.assign(smem + 4096, 0x7f); cta.rank = c; cta.block = first_block + c; cta.warps.resize(threads / 32); cta.groups.resize((threads + 127) / 128);
    for (unsigned t = 0; t < threads; t++) {
      Fiber& f = fibers[c * threads + t]; f.stack.resize(1 << 16); f.cta = &cta; f.tid = t; getcontext(&f.context);
      f.context.uc_stack.ss_sp = f.stack.data(); f.context.uc_stack.ss_size = f.stack.size(); f.context.uc_link = nullptr; makecontext(&f.context, entry, 0);
    }
  }
  cur = &fibers[0]; swapcontext(&main_context, &cur->context);
}
static u8* at(u32 address, size_t n) { auto& s = cur->cta->smem; if (address < 1024 || address - 1024 + n > s.size()) fail("shared memory address out of range"); return s.data() + address - 1024; }
static Barrier& barrier_of(Cta& c, u32 a) { Barrier& b = c.barriers[a]; if (!b.live) fail("mbarrier used before its initialisation"); return b; }
static void settle(Barrier& b) { if (b.pending < 0) fail("more arrivals than the barrier expects"); if (b.pending == 0 && b.tx == 0) { b.pending = b.count; b.phase++; } progress(); }
static void arrive(Cta& c, u32 a, long n) { Barrier& b = barrier_of(c, a); b.pending -= n; settle(b); }
static float bf16(u16 x) { u32 u = (u32)x << 16; float f; std::memcpy(&f, &u, 4); return f; }
static u16 to_bf16(float f) { u32 u; std::memcpy(&u, &f, 4); if ((u & 0x7fffffff) > 0x7f800000) return 0x7fff; return (u16)((u + 0x7fff + ((u >> 16) & 1)) >> 16); }
static float f16(u16 x) { _Float16 h; std::memcpy(&h, &x, 2); return (float)h; }
static u16 to_f16(float f) { _Float16 h = (_Float16)f; u16 x; std::memcpy(&x, &h, 2); return x; }
static float e4m3(u8 x) { int e = x >> 3 & 15, m = x & 7; float v = e ? std::ldexp(1.0f + m / 8.0f, e - 7) : std::ldexp((float)m, -9); if ((x & 0x7f) == 0x7f) v = NAN; return x & 0x80 ? -v : v; }
static float e5m2(u8 x) { return f16((u16)(x << 8)); }
static u8 narrow(float x, float (*wide)(u8), u8 largest) {
  if (std::isnan(x)) return 0x7f;
  u8 best = 0; float m = std::fabs(x);
  for (int i = 0; i <= largest; i++) { float d = std::fabs(wide((u8)i) - m), b = std::fabs(wide(best) - m); if (d < b || (d == b && !(i & 1))) best = (u8)i; }
  return std::signbit(x) ? best | 0x80 : best;
}
static u32 pack8(float (*wide)(u8), u8 largest, float a, float b, float c, float d) {
  return narrow(a, wide, largest) | (u32)narrow(b, wide, largest) << 8 | (u32)narrow(c, wide, largest) << 16 | (u32)narrow(d, wide, largest) << 24;
}
enum Kind { BF16, F16, E4M3, E5M2, TF32, I8, U8 };
static float value(Kind k, const u8* p) {
  if (k == I8 || k == U8) return k == I8 ? (float)(i8)*p : (float)*p;
  u16 h; float f; std::memcpy(&h, p, 2);
  switch (k) { case BF16: return bf16(h); case F16: return f16(h); case E4M3: return e4m3(*p); case E5M2: return e5m2(*p); default: std::memcpy(&f, p, 4); return f; }
}
static int size_of(Kind k) { return k == TF32 ? 4 : k == E4M3 || k == E5M2 || k == I8 || k == U8 ? 1 : 2; }
static u32 swizzled(u32 a, int span) { u32 mask = span == 128 ? 0x70 : span == 64 ? 0x30 : span == 32 ? 0x10 : 0; return a ^ ((a >> 3) & mask); }
struct Operand { u32 start, lbo, sbo; int span; };
static Operand decode(u64 d) { static const int spans[4] = {0, 128, 64, 32}; return {(u32)(d & 0x3fff) << 4, (u32)(d >> 16 & 0x3fff) << 4, (u32)(d >> 32 & 0x3fff) << 4, spans[d >> 62]}; }
static float fetch(u64 desc, Kind kind, bool mn_major, int mn, int k) {
  Operand o = decode(desc); int size = size_of(kind); u32 a = o.start;
  if (!mn_major) a += mn / 8 * o.sbo + mn % 8 * o.span + k * size;
  else { int per = o.span / size; a += mn / per * o.lbo + k / 8 * o.sbo + k % 8 * o.span + mn % per * size; }
  return value(kind, at(swizzled(a, o.span), size));
}
struct Wgmma { float* d; u64 a, b; u32 r[4]; int accumulate; };
static void wgmma(float* d, u64 a, const u32* regs, u64 b, int accumulate, int n, int k, Kind kind, Kind other, bool rs, bool ta, bool tb) {
  Wgmma w{d, a, b, {0, 0, 0, 0}, accumulate}; if (rs) std::memcpy(w.r, regs, 16);
  unsigned t = cur->tid % 128;
  meet(cur->cta->groups[cur->tid / 128], t, 128, &w, [&](void** args) {
    std::vector<float> A(64 * k), B(n * k);
    auto lane = [&](int i) { return (Wgmma*)args[i]; };
    for (int i = 1; i < 128; i++) if (lane(i)->b != lane(0)->b || lane(i)->a != lane(0)->a || !lane(i)->accumulate != !lane(0)->accumulate) fail("a warpgroup disagrees on a wgmma's operands");
    int size = size_of(kind), per = 4 / size;
    for (int i = 0; i < 128; i++) if (rs) for (int q = 0; q < 4; q++) for (int j = 0; j < per; j++)
      A[(16 * (i / 32) + 8 * (q & 1) + i % 32 / 4) * k + 4 * per * (q >> 1) + per * (i % 4) + j] = value(kind, (u8*)&lane(i)->r[q] + j * size);
    if (!rs) for (int m = 0; m < 64; m++) for (int kk = 0; kk < k; kk++) A[m * k + kk] = fetch(lane(0)->a, kind, ta, m, kk);
    for (int j = 0; j < n; j++) for (int kk = 0; kk < k; kk++) B[j * k + kk] = fetch(lane(0)->b, other, tb, j, kk);
    for (int i = 0; i < 128; i++) for (int e = 0; e < n / 2; e++) {
      int row = 16 * (i / 32) + 8 * (e >> 1 & 1) + i % 32 / 4, col = 8 * (e >> 2) + 2 * (i % 4) + (e & 1); float s = lane(i)->accumulate ? lane(i)->d[e] : 0.0f;
      for (int kk = 0; kk < k; kk++) s += A[row * k + kk] * B[col * k + kk];
      lane(i)->d[e] = s;
    }
  });
}
// Accumulators of other types than f32: as floats while the product is formed.
template <class F> void with_floats(int* d, int n, F f) { std::vector<float> t(d, d + n); f(t.data()); for (int i = 0; i < n; i++) d[i] = (int)t[i]; }
template <class F> void with_floats(u32* d, int n, F f) {
  std::vector<float> t(n); for (int i = 0; i < n; i++) t[i] = f16((u16)(d[i / 2] >> (16 * (i & 1))));
  f(t.data()); for (int i = 0; i < n; i += 2) d[i / 2] = to_f16(t[i]) | (u32)to_f16(t[i + 1]) << 16;
}
template <class F> void with_floats(float* d, int, F f) { f(d); }
struct Mma { float* d; const u32 *a, *b; };
static void mma(float* d, const u32* a, const u32* b, int k, Kind kind, Kind other) {
  Mma m{d, a, b};
  meet(cur->cta->warps[cur->tid / 32], cur->tid % 32, 32, &m, [&](void** args) {
    float A[16][32], B[8][32]; int size = size_of(kind), per = 4 / size;
    for (int i = 0; i < 32; i++) for (int q = 0; q < 4; q++) for (int j = 0; j < per; j++) {
      A[i / 4 + 8 * (q & 1)][4 * per * (q >> 1) + per * (i % 4) + j] = value(kind, (u8*)&((Mma*)args[i])->a[q] + j * size);
      if (q < 2) B[i / 4][4 * per * q + per * (i % 4) + j] = value(other, (u8*)&((Mma*)args[i])->b[q] + j * size);
    }
    for (int i = 0; i < 32; i++) for (int e = 0; e < 4; e++) for (int kk = 0; kk < k; kk++) ((Mma*)args[i])->d[e] += A[i / 4 + 8 * (e >> 1)][kk] * B[2 * (i % 4) + (e & 1)][kk];
  });
}
struct Scaled { Mma m; u32 sa, sb; int byte; };
static void mma_scaled(float* d, const u32* a, const u32* b, u32 sa, u32 sb, int byte, Kind kind, Kind other) {
  Scaled s{{d, a, b}, sa, sb, byte};
  meet(cur->cta->warps[cur->tid / 32], cur->tid % 32, 32, &s, [&](void** args) {
    float A[16][32], B[8][32], of_a[16], of_b[8];
    auto lane = [&](int i) { return (Scaled*)args[i]; };
    auto power = [&](u32 word) { u32 e = word >> (8 * byte) & 255; return e == 255 ? NAN : std::ldexp(1.0f, (int)e - 127); };
    for (int i = 1; i < 32; i++) if (lane(i)->byte != byte) fail("the lanes of a warp take scales from different bytes");
    for (int r = 0; r < 16; r++) of_a[r] = power(lane(4 * (r % 8) + r / 8)->sa);
    for (int n = 0; n < 8; n++) of_b[n] = power(lane(4 * n)->sb);
    for (int i = 0; i < 32; i++) for (int q = 0; q < 4; q++) for (int j = 0; j < 4; j++) {
      A[i / 4 + 8 * (q & 1)][16 * (q >> 1) + 4 * (i % 4) + j] = value(kind, (u8*)&lane(i)->m.a[q] + j);
      if (q < 2) B[i / 4][16 * q + 4 * (i % 4) + j] = value(other, (u8*)&lane(i)->m.b[q] + j);
    }
    for (int i = 0; i < 32; i++) for (int e = 0; e < 4; e++) {
      int r = i / 4 + 8 * (e >> 1), c = 2 * (i % 4) + (e & 1); float sum = 0;
      for (int kk = 0; kk < 32; kk++) sum += A[r][kk] * B[c][kk];
      lane(i)->m.d[e] += sum * of_a[r] * of_b[c];
    }
  });
}
struct Matrix { u32 address; u32* r; };
static void matrix(u32 address, u32* r, int count, bool trans, bool store) {
  Matrix m{address, r};
  meet(cur->cta->warps[cur->tid / 32], cur->tid % 32, 32, &m, [&](void** args) {
    for (int q = 0; q < count; q++) for (int row = 0; row < 8; row++) for (int col = 0; col < 8; col++) {
      u8* p = at(((Matrix*)args[8 * q + row])->address, 16) + 2 * col;
      int lane = trans ? col * 4 + row / 2 : row * 4 + col / 2, half = trans ? row & 1 : col & 1;
      u8* reg = (u8*)&((Matrix*)args[lane])->r[q] + 2 * half;
      std::memcpy(store ? p : reg, store ? reg : p, 2);
    }
  });
}
static void movmatrix(u32 x, u32* r) {
  struct A { u32 x; u32* r; } a{x, r};
  meet(cur->cta->warps[cur->tid / 32], cur->tid % 32, 32, &a, [](void** args) {
    u16 m[8][8];
    for (int i = 0; i < 32; i++) for (int p = 0; p < 2; p++) m[i / 4][2 * (i % 4) + p] = (u16)(((A*)args[i])->x >> (16 * p));
    for (int i = 0; i < 32; i++) *((A*)args[i])->r = m[2 * (i % 4)][i / 4] | (u32)m[2 * (i % 4) + 1][i / 4] << 16;
  });
}
template <class T> T combined(T a, T b, int op) { return op == 1 ? a + b : op == 2 ? (a < b ? a : b) : op == 3 ? (a > b ? a : b) : op == 4 ? (a >= b ? T(0) : T(a + 1)) : a; }
static void combine(u8* g, const u8* p, int elem, char kind, int op) {  // kind: the first letter of the element type's name (f, b, i, u)
  if (elem == 4 && kind == 'f') { float x, y; std::memcpy(&x, g, 4); std::memcpy(&y, p, 4); x = combined(x, y, op); std::memcpy(g, &x, 4); return; }
  if (elem == 2) { u16 x, y; std::memcpy(&x, g, 2); std::memcpy(&y, p, 2); x = kind == 'b' ? to_bf16(combined(bf16(x), bf16(y), op)) : to_f16(combined(f16(x), f16(y), op)); std::memcpy(g, &x, 2); return; }
  u32 x, y; std::memcpy(&x, g, 4); std::memcpy(&y, p, 4);
  x = op == 5 ? x & y : op == 6 ? x | y : op == 7 ? x ^ y : kind == 'i' ? (u32)combined((int)x, (int)y, op) : combined(x, y, op); std::memcpy(g, &x, 4);
}
static void tensor_copy(const TensorMap* map, u32 smem, const int* c, bool load, const std::vector<Cta*>& to, int reduce = 0) {
  const Map& m = *(const Map*)map->opaque[0]; long n = 1; int inner = m.box[0];
  if (smem % 128) fail("a TMA box does not land on a multiple of 128 bytes");
  for (int i = 0; i < m.rank; i++) n *= m.box[i];
  for (long e = 0; e < n; e++) {
    long rest = e, off = 0; bool inside = true;
    for (int i = 0; i < m.rank; i++) { long x = rest % m.box[i] + c[i]; rest /= m.box[i]; inside = inside && x >= 0 && x < m.dim[i]; off += x * m.stride[i]; }
    u32 a = smem + (u32)(e / inner * inner + e % inner) * m.elem; a = swizzled(a, m.span);
    for (Cta* cta : to) {
      u8* p = cta->smem.data() + a - 1024; char* g = m.base + off * m.elem;
      if (load) { if (inside) std::memcpy(p, g, m.elem); else std::memset(p, 0, m.elem); }
      else if (inside && !reduce) std::memcpy(g, p, m.elem);
      else if (inside) combine((u8*)g, p, m.elem, m.kind, reduce);
    }
  }
  if (load) for (Cta* cta : to) { (void)cta; }
}
static long box_bytes(const TensorMap* map) { const Map& m = *(const Map*)map->opaque[0]; long n = m.elem; for (int i = 0; i < m.rank; i++) n *= m.box[i]; return n; }
static void tensor_load(u32 dst, const TensorMap* map, const int* c, u32 bar, unsigned mask) {
  std::vector<Cta*> to; for (auto& cta : cluster) if (mask >> cta.rank & 1) to.push_back(&cta);
  tensor_copy(map, dst, c, true, to);
  for (Cta* cta : to) { Barrier& b = barrier_of(*cta, bar); b.tx -= box_bytes(map); settle(b); }
}
static u32 shuffle(u32 x, unsigned from_lane) {
  struct A { u32 x; unsigned from; u32 out; } a{x, from_lane, 0};
  meet(cur->cta->warps[cur->tid / 32], cur->tid % 32, 32, &a, [](void** args) { for (int i = 0; i < 32; i++) ((A*)args[i])->out = ((A*)args[((A*)args[i])->from % 32])->x; });
  return a.out;
}
// Atomic updates: one fiber runs at a time, so that reading and writing back is one step.
struct As_f32 { typedef float T; }; struct As_s32 { typedef int T; }; struct As_u32 { typedef u32 T; }; struct As_b32 { typedef u32 T; };
struct As_f16x2 {}; struct As_bf16x2 {}; struct As_f16 {}; struct As_bf16 {};
template <class K, class F> void update(u8* p, typename K::T x, F f) { typename K::T old; std::memcpy(&old, p, 4); old = f(old, x); std::memcpy(p, &old, 4); }
#define EMU_UPDATE(NAME, EXPRESSION) template <class X, class K> void update_##NAME(u8* p, X x, K) { update<K>(p, x, [](auto a, auto b) { return EXPRESSION; }); }
EMU_UPDATE(add, a + b) EMU_UPDATE(min, a < b ? a : b) EMU_UPDATE(max, a > b ? a : b) EMU_UPDATE(inc, a >= b ? 0 : a + 1)
template <class K, class F> void update_bits(u8* p, u32 x, F f) { u32 old; std::memcpy(&old, p, 4); old = f(old, x); std::memcpy(p, &old, 4); }
static void update_and(u8* p, u32 x, As_b32) { update_bits<As_b32>(p, x, [](u32 a, u32 b) { return a & b; }); }
static void update_or(u8* p, u32 x, As_b32) { update_bits<As_b32>(p, x, [](u32 a, u32 b) { return a | b; }); }
static void update_xor(u8* p, u32 x, As_b32) { update_bits<As_b32>(p, x, [](u32 a, u32 b) { return a ^ b; }); }
static void add_half(u8* p, u16 x, bool bf) { u16 old; std::memcpy(&old, p, 2); old = bf ? to_bf16(bf16(old) + bf16(x)) : to_f16(f16(old) + f16(x)); std::memcpy(p, &old, 2); }
static void update_add(u8* p, u32 x, As_f16) { add_half(p, (u16)x, false); }
static void update_add(u8* p, u32 x, As_bf16) { add_half(p, (u16)x, true); }
static void update_add(u8* p, u32 x, As_f16x2) { add_half(p, (u16)x, false); add_half(p + 2, (u16)(x >> 16), false); }
static void update_add(u8* p, u32 x, As_bf16x2) { add_half(p, (u16)x, true); add_half(p + 2, (u16)(x >> 16), true); }
}  // namespace emu
#define threadIdx (emu::Dim{emu::cur->tid, 0, 0})
#define blockIdx (emu::Dim{emu::cur->cta->block, 0, 0})
#define gridDim (emu::grid_dim)
#define blockDim (emu::block_dim)
template <class T> static T __shfl_sync(unsigned, T x, int lane) { u32 u; std::memcpy(&u, &x, 4); u = emu::shuffle(u, lane); std::memcpy(&x, &u, 4); return x; }
template <class T> static T __shfl_xor_sync(unsigned, T x, int m) { return __shfl_sync(0, x, (int)(emu::cur->tid % 32) ^ m); }
template <class T> static T __shfl_up_sync(unsigned, T x, int d) { int l = emu::cur->tid % 32; return __shfl_sync(0, x, l >= d ? l - d : l); }
static int __any_sync(unsigned, int x) { int any = 0; for (int l = 0; l < 32; l++) any |= __shfl_sync(0, x != 0 ? 1 : 0, l); return any; }
static void __syncwarp() { emu::meet(emu::cur->cta->warps[emu::cur->tid / 32], emu::cur->tid % 32, 32, nullptr, [](void**) {}); }
static void __syncthreads() { emu::meet(emu::cur->cta->all, emu::cur->tid, emu::block_dim.x, nullptr, [](void**) {}); }
static u32 __byte_perm(u32 x, u32 y, u32 s) { u8 b[8]; std::memcpy(b, &x, 4); std::memcpy(b + 4, &y, 4); u32 r = 0; for (int i = 0; i < 4; i++) r |= (u32)b[s >> (4 * i) & 7] << (8 * i); return r; }
static u32 movmatrix(u32 x) { u32 r; emu::movmatrix(x, &r); return r; }
static float __fmaf_rn(float a, float b, float c) { return std::fmaf(a, b, c); }
static float __fmul_rn(float a, float b) { volatile float r = a * b; return r; }
static float __fdiv_rn(float a, float b) { volatile float r = a / b; return r; }
static float __int_as_float(int x) { float f; std::memcpy(&f, &x, 4); return f; }
static float __uint_as_float(u32 x) { float f; std::memcpy(&f, &x, 4); return f; }
static u32 __float_as_uint(float f) { u32 x; std::memcpy(&x, &f, 4); return x; }
static int __float_as_int(float f) { int x; std::memcpy(&x, &f, 4); return x; }
static float __int2float_rn(int x) { return (float)x; }
static float __uint2float_rn(u32 x) { return (float)x; }
template <class T> T emu_whole(float x) {  // conversions to integers saturate, NaN is zero
  typedef std::numeric_limits<T> L;
  return std::isnan(x) ? 0 : (double)x <= (double)L::min() ? L::min() : (double)x >= (double)L::max() ? L::max() : (T)x;
}
static int __float2int_rn(float x) { return emu_whole<int>(std::nearbyint(x)); }
static int __ffs(int x) { return __builtin_ffs(x); }
static int __float2int_rz(float x) { return emu_whole<int>(std::trunc(x)); }
static int __float2int_rd(float x) { return emu_whole<int>(std::floor(x)); }
static int __float2int_ru(float x) { return emu_whole<int>(std::ceil(x)); }
static u32 __float2uint_rn(float x) { return emu_whole<u32>(std::nearbyint(x)); }
static i64 __float2ll_rn(float x) { return emu_whole<i64>(std::nearbyint(x)); }
static u64 __float2ull_rn(float x) { return emu_whole<u64>(std::nearbyint(x)); }
static float __ll2float_rn(i64 x) { return (float)x; }
static float __ull2float_rn(u64 x) { return (float)x; }
template <class A, class B> static auto min(A a, B b) -> decltype(a + b) { return a < b ? a : b; }
template <class A, class B> static auto max(A a, B b) -> decltype(a + b) { return a > b ? a : b; }

static u32 shared_address(const void* p) { return (u32)(u64)p; }
static bool elect_one() { return emu::cur->tid % 32 == 0; }
template <int N> static void setmaxnreg_inc() {}
template <int N> static void setmaxnreg_dec() {}
static void demand(bool holds) { if (!holds) std::abort(); }
template <int ID, int N> static void named_sync() { emu::meet(emu::cur->cta->named[ID], 0, N, nullptr, [](void**) {}); }
static void named_sync_at(int id, int n) { emu::meet(emu::cur->cta->named[id], 0, n, nullptr, [](void**) {}); }
static void named_arrive_at(int id, int n) { emu::Meet& m = emu::cur->cta->named[id]; if (++m.arrived == n) { m.arrived = 0; m.generation++; } emu::progress(); }
template <int ID, int N> static void named_arrive() { emu::Meet& m = emu::cur->cta->named[ID]; if (++m.arrived == N) { m.arrived = 0; m.generation++; } emu::progress(); }
static void cluster_sync() { emu::meet(emu::cluster_meet, 0, (int)emu::fibers.size(), nullptr, [](void**) {}); }
static void cluster_arrive() { emu::Meet& m = emu::cluster_meet; emu::cur->joined = m.generation; if (++m.arrived == (int)emu::fibers.size()) { m.arrived = 0; m.generation++; } emu::progress(); }
static void cluster_wait() { while (emu::cluster_meet.generation == emu::cur->joined) emu::yield(); }
static u32 cluster_rank() { return emu::cur->cta->rank; }
static void pdl_wait() {}
static void pdl_launch() {}
template <int N, class T> static void pin(T*) {}
template <int N, class T> static void pin_u32(T*) {}
template <int N, class T> static void pin_int(T*) {}
static void mbarrier_init(u32 a, u32 count) { emu::Barrier& b = emu::cur->cta->barriers[a]; b.live = true; b.count = b.pending = count; if (a % 8) emu::fail("a misaligned mbarrier"); }
static void fence_mbarrier_init() {}
static void mbarrier_expect_tx(u32 a, u32 bytes) { emu::Barrier& b = emu::barrier_of(*emu::cur->cta, a); b.tx += bytes; emu::arrive(*emu::cur->cta, a, 1); }
static void mbarrier_arrive(u32 a) { emu::arrive(*emu::cur->cta, a, 1); }
static void mbarrier_arrive_many(u32 a, u32 n) { emu::arrive(*emu::cur->cta, a, n); }
static void mbarrier_arrive_remote(u32 a, u32 cta) { emu::arrive(emu::cluster[cta], a, 1); }
static void mbarrier_arrive_remote_release(u32 a, u32 cta) { emu::arrive(emu::cluster[cta], a, 1); }
static void cp_async_arrive(u32 a) { emu::arrive(*emu::cur->cta, a, 1); }
static void mbarrier_wait(u32 a, u32 parity, ...) { while ((emu::barrier_of(*emu::cur->cta, a).phase & 1) == parity) emu::yield(); }
static void mbarrier_wait_cluster(u32 a, u32 parity, ...) { mbarrier_wait(a, parity); }
static int draw_tile(int* counter) { return (*counter)++; }
static int drawn_tile(int* counter, int drawn, int total, int clusters) { if (drawn == total - 1) *counter = 0; return drawn + clusters; }
static void put_tile(u32 slot, int tile) { std::memcpy(emu::at(slot, 4), &tile, 4); }
static void put_tile_remote(u32 slot, int tile, u32 cta) { std::memcpy(emu::cluster[cta].smem.data() + slot - 1024, &tile, 4); }
static int get_tile(u32 slot) { int tile; std::memcpy(&tile, emu::at(slot, 4), 4); return tile; }
static u32 map_shared(u32 a, u32 cta) { if (cta >= emu::cluster.size()) emu::fail("a CTA outside the cluster"); return a | (cta + 1) << 24; }
static void emu_send(u32 a, u32 bar, const u32* v, int n) {
  if (a % n) emu::fail("a misaligned send"); emu::Cta& c = emu::cluster[(a >> 24) - 1]; std::memcpy(c.smem.data() + (a & 0xffffff) - 1024, v, n);
  emu::Barrier& b = emu::barrier_of(c, bar & 0xffffff); b.tx -= n; emu::settle(b);
}
static void send_32(u32 a, u32 bar, u32 x) { emu_send(a, bar, &x, 4); }
static void send_64(u32 a, u32 bar, u32 x, u32 y) { u32 v[2] = {x, y}; emu_send(a, bar, v, 8); }
static void send_128(u32 a, u32 bar, u32 x, u32 y, u32 z, u32 w) { u32 v[4] = {x, y, z, w}; emu_send(a, bar, v, 16); }
static void flag_signal(int* flag, int value) { *flag = value; emu::progress(); }
static void flag_spin(const int* flag, int value) { while (*flag < value) emu::yield(); }
static void fence_proxy_async_global() {}
static void prefetch_map(const TensorMap*) {}
static void fence_proxy_async() {}
static void bulk_commit() {}
template <int N> static void bulk_wait_read() {}
template <int N> static void bulk_wait() {}
static void bulk_load(u32 dst, const void* src, u32 bytes, u32 bar) { std::memcpy(emu::at(dst, bytes), src, bytes); emu::Barrier& b = emu::barrier_of(*emu::cur->cta, bar); b.tx -= bytes; emu::settle(b); }
static void bulk_store(void* dst, u32 src, u32 bytes) { std::memcpy(dst, emu::at(src, bytes), bytes); }
static void cp_async_16(u32 dst, const void* src, u32 bytes) { u8* p = emu::at(dst, 16); if (dst % 16) emu::fail("a misaligned cp.async"); std::memset(p, 0, 16); if (bytes) std::memcpy(p, src, bytes); }
static void cp_async_commit() {}
template <int N> static void cp_async_wait() {}
static void wgmma_fence() {}
static void wgmma_commit() {}
template <int N> static void wgmma_wait() {}
static u32 pack_bf16(float lo, float hi) { return emu::to_bf16(lo) | (u32)emu::to_bf16(hi) << 16; }
static u32 pack_f16(float lo, float hi) { return emu::to_f16(lo) | (u32)emu::to_f16(hi) << 16; }
static float unpack_f16(u32 x, int i) { return emu::f16((u16)(i ? x >> 16 : x)); }
static u32 pack_e4m3(float a, float b, float c, float d) { return emu::pack8(emu::e4m3, 0x7e, a, b, c, d); }
static u32 pack_e5m2(float a, float b, float c, float d) { return emu::pack8(emu::e5m2, 0x7b, a, b, c, d); }
static float unpack_e4m3(u32 x, int i) { return emu::e4m3((u8)(x >> (8 * i))); }
static float unpack_e5m2(u32 x, int i) { return emu::e5m2((u8)(x >> (8 * i))); }
static float emu_flush(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }
template <class F> float emu_approx(float x, F f) { return emu_flush((float)f((double)emu_flush(x))); }
static float exp2_approx(float x) { return emu_approx(x, [](double y) { return std::exp2(y); }); }
static float log2_approx(float x) { return emu_approx(x, [](double y) { return std::log2(y); }); }
static float rcp_approx(float x) { return emu_approx(x, [](double y) { return 1.0 / y; }); }
static float rsqrt_approx(float x) { return emu_approx(x, [](double y) { return 1.0 / std::sqrt(y); }); }
static float sqrt_approx(float x) { return emu_approx(x, [](double y) { return std::sqrt(y); }); }
static float tanh_approx(float x) { return (float)std::tanh((double)x); }
static float truncate_f16(float x) {  // towards zero: one step back where rounding went further away
  u16 h = emu::to_f16(x); if (std::fabs(emu::f16(h)) > std::fabs(x)) h--; return emu::f16(h);
}
static float round_tf32(float x) { u32 u = __float_as_uint(x); return __uint_as_float((u + 0x1000) & ~0x1fffu); }
static void load_shared_f32x2(float& x, float& y, u32 a) { if (a % 8) emu::fail("misaligned"); std::memcpy(&x, emu::at(a, 8), 4); std::memcpy(&y, emu::at(a, 8) + 4, 4); }
static void store_shared_f32x2(u32 a, float x, float y) { std::memcpy(emu::at(a, 8), &x, 4); std::memcpy(emu::at(a, 8) + 4, &y, 4); }
static float load_shared_f32(u32 a) { float x; std::memcpy(&x, emu::at(a, 4), 4); return x; }
static int load_shared_i32(u32 a) { int x; std::memcpy(&x, emu::at(a, 4), 4); return x; }
static void store_shared_i32(u32 a, int x) { std::memcpy(emu::at(a, 4), &x, 4); }
static void store_shared_f32(u32 a, float x) { std::memcpy(emu::at(a, 4), &x, 4); }
static void emu_load(void* p, u32 a, int n) { if (a % n) emu::fail("a misaligned shared load"); std::memcpy(p, emu::at(a, n), n); }
static u32 load_shared_element_8(u32 a) { return *emu::at(a, 1); }
static u32 load_shared_element_16(u32 a) { u16 x; emu_load(&x, a, 2); return x; }
static u32 load_shared_element_32(u32 a) { u32 x; emu_load(&x, a, 4); return x; }
static void store_shared_element_8(u32 a, u32 x) { *emu::at(a, 1) = (u8)x; }
static void store_shared_element_16(u32 a, u32 x) { u16 h = (u16)x; if (a % 2) emu::fail("a misaligned shared store"); std::memcpy(emu::at(a, 2), &h, 2); }
static void store_shared_element_32(u32 a, u32 x) { if (a % 4) emu::fail("a misaligned shared store"); std::memcpy(emu::at(a, 4), &x, 4); }
static u64 load_shared_element_64(u32 a) { u64 x; emu_load(&x, a, 8); return x; }
static void store_shared_element_64(u32 a, u64 x) { if (a % 8) emu::fail("a misaligned shared store"); std::memcpy(emu::at(a, 8), &x, 8); }
static void load_shared_32(u32& x, u32 a) { emu_load(&x, a, 4); }
static void load_shared_64(u32& x, u32& y, u32 a) { u32 v[2]; emu_load(v, a, 8); x = v[0]; y = v[1]; }
static void load_shared_128(u32& x, u32& y, u32& z, u32& w, u32 a) { u32 v[4]; emu_load(v, a, 16); x = v[0]; y = v[1]; z = v[2]; w = v[3]; }
static void store_shared_16(u32 a, u32 x) { u16 h = (u16)x; std::memcpy(emu::at(a, 2), &h, 2); }
static void store_shared_32(u32 a, u32 x) { std::memcpy(emu::at(a, 4), &x, 4); }
static void store_shared_64(u32 a, u32 x, u32 y) { u32 v[2] = {x, y}; std::memcpy(emu::at(a, 8), v, 8); }
static void store_shared_128(u32 a, u32 x, u32 y, u32 z, u32 w) { u32 v[4] = {x, y, z, w}; if (a % 16) emu::fail("a misaligned shared store"); std::memcpy(emu::at(a, 16), v, 16); }
static void emu_global(const void* p, int n) { if ((uintptr_t)p % n) emu::fail("a misaligned global access"); }
static void emu_load_global(u32* r, const void* p, int n) { emu_global(p, n); std::memcpy(r, p, n); }

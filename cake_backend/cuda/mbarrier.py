"""mbarrier instructions: initialisation, arrivals, transaction bytes, bounded waits with and without a report."""

from __future__ import annotations

from cake_backend.cuda.preamble import Device, asm_call

TRAP_AFTER_POLLS = 0x4000000
"""Polls of a trap-only wait before it gives up: about a second at the fastest polling rate, far beyond any legitimate wait."""

REPORT_AFTER_CYCLES = 400_000_000
"""Clock cycles of a reporting wait before it writes its record: about 0.2 s."""

RECORD_WORDS = 16
"""32-bit words of a hang record; one record a (block, warp)."""

RECORD_MAGIC = 0xCA4E0001
"""Word 0 of a record that has been written completely."""

RECORD_FIELDS = ("magic", "role", "barrier", "stage", "parity", "position", "tile", "block", "thread")
"""Names of a record's first words; `role` and `barrier` number the program's declarations from 0."""

INIT = asm_call("mbarrier_init", "u32 bar, u32 count", "mbarrier.init.shared::cta.b64 [%0], %1;", '"r"(bar), "r"(count)')
FENCE_INIT = asm_call("fence_mbarrier_init", "", "fence.mbarrier_init.release.cluster;", "")
EXPECT_TX = asm_call(
    "mbarrier_expect_tx", "u32 bar, u32 bytes", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;", '"r"(bar), "r"(bytes)'
)
ARRIVE = asm_call("mbarrier_arrive", "u32 bar", "mbarrier.arrive.shared::cta.b64 _, [%0];", '"r"(bar)')
ARRIVE_MANY = asm_call(
    "mbarrier_arrive_many", "u32 bar, u32 count", "mbarrier.arrive.shared::cta.b64 _, [%0], %1;", '"r"(bar), "r"(count)'
)
ARRIVE_SM80 = asm_call(
    "mbarrier_arrive", "u32 bar", "{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }", '"r"(bar)'
)
CP_ASYNC_ARRIVE = asm_call("cp_async_arrive", "u32 bar", "cp.async.mbarrier.arrive.noinc.shared.b64 [%0];", '"r"(bar)')

# The default form carries no cluster-wide fence: right for a slot that only the tensor core read. `.release.cluster` orders generic
# accesses at cluster scope too, and puts a device-wide memory barrier into the loop: 1.26x slower in a GEMM.
ARRIVE_REMOTE = asm_call(
    "mbarrier_arrive_remote",
    "u32 bar, u32 cta",
    "{ .reg .b32 r; mapa.shared::cluster.u32 r, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [r]; }",
    '"r"(bar), "r"(cta)',
)
ARRIVE_REMOTE_RELEASE = asm_call(
    "mbarrier_arrive_remote_release",
    "u32 bar, u32 cta",
    "{ .reg .b32 r; mapa.shared::cluster.u32 r, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r]; }",
    '"r"(bar), "r"(cta)',
)


def _test(name: str, instruction: str) -> Device:
    return Device(
        name,
        f"""
DEVICE bool {name}(u32 bar, u32 parity) {{
  u32 complete;
  asm volatile("{{ .reg .pred p; {instruction} p, [%1], %2; selp.u32 %0, 1, 0, p; }}"
               : "=r"(complete) : "r"(bar), "r"(parity) : "memory");
  return complete != 0;
}}""",
    )


TRY_WAIT = "mbarrier.try_wait.parity.shared::cta.b64"
TRY_WAIT_CLUSTER = "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"
TEST_WAIT_SM80 = "mbarrier.test_wait.parity.shared.b64"
TRY = _test("mbarrier_try", TRY_WAIT)
TRY_CLUSTER = _test("mbarrier_try_cluster", TRY_WAIT_CLUSTER)
TEST_SM80 = _test("mbarrier_try", TEST_WAIT_SM80)

NANOSECONDS = Device(
    "global_nanoseconds", 'DEVICE u64 global_nanoseconds() { u64 t; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)); return t; }'
)

REPORT = Device(
    "hang_report",
    f"""
DEVICE void hang_report(volatile u32* hang, u32 role, u32 barrier, u32 stage, u32 parity, u32 position, u32 tile) {{
  if (hang == nullptr) {{ asm volatile("trap;"); __builtin_unreachable(); }}
  volatile u32* record = hang + ((u64)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5)) * {RECORD_WORDS};
  record[1] = role; record[2] = barrier; record[3] = stage; record[4] = parity; record[5] = position; record[6] = tile;
  record[7] = blockIdx.x; record[8] = threadIdx.x;
  __threadfence_system();
  record[0] = 0x{RECORD_MAGIC:X}u;
  __threadfence_system();
  const u64 start = global_nanoseconds();
  while (global_nanoseconds() - start < 300000000ull) __nanosleep(1000000);  // let the other waiters report too
  asm volatile("trap;");
  __builtin_unreachable();
}}""",
    (NANOSECONDS,),
)


def wait(*, report: bool, cluster: bool = False, sm80: bool = False) -> Device:
    """A bounded wait for the phase of `parity`; it never returns without it.

    The exit that does not return is not only for hangs: without it ptxas serialises wgmma around the loop. The polls are one asm statement:
    as a loop in C++ they made ptxas spill where an unrolled round waits between products. The first try stands apart, so that arithmetic
    moves between it and its branch. `cluster` acquires at cluster scope, for barriers whose arrivals are released at cluster scope.
    """
    test, instruction = (TEST_SM80, TEST_WAIT_SM80) if sm80 else (TRY_CLUSTER, TRY_WAIT_CLUSTER) if cluster else (TRY, TRY_WAIT)
    name = "mbarrier_wait_cluster" if cluster else "mbarrier_wait"
    if report:
        return Device(
            name,
            f"""
DEVICE void {name}(u32 bar, u32 parity, u32* hang, u32 role, u32 barrier, u32 stage, u32 position, u32 tile) {{
  if ({test.name}(bar, parity)) return;
  const u64 start = clock64();
  while (!{test.name}(bar, parity))
    if (clock64() - start > {REPORT_AFTER_CYCLES}ull) hang_report(hang, role, barrier, stage, parity, position, tile);
}}""",
            (test, REPORT),
        )
    return Device(
        name,
        f"""
DEVICE void {name}(u32 bar, u32 parity) {{
  if ({test.name}(bar, parity)) return;
  asm volatile("{{ .reg .pred p, q; .reg .u32 n; mov.u32 n, 0;\\n"
               "AGAIN: {instruction} p, [%0], %1;\\n@p bra DONE;\\nadd.u32 n, n, 1;\\nsetp.eq.u32 q, n, 0x{TRAP_AFTER_POLLS:x};\\n@q trap;\\nbra AGAIN;\\nDONE: }}"
               :: "r"(bar), "r"(parity) : "memory");
}}""",
        (test,),
    )

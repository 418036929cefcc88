"""What the answers of the hardware say, in a few sentences a question; `page` prints them above the figures."""

from __future__ import annotations

FINDINGS: dict[str, str] = {
    "barrier_visibility": "Inside one CTA, 42,240 barriers were seen by the copy engine without the init fence. Across a cluster, an arrival that comes before the "
    "peer's init is lost, every time: the cluster barrier behind the inits is needed, and derived.",
    "dependent_launch": "Behind a trigger that comes before the writes, 95 % of the dependent blocks read old values; none with the wait. A trigger behind the writes, or none, showed "
    "no old value here, and promises nothing: S016 stays as it is.",
    "expected_bytes": "A barrier that expects nothing completes at once, with the data (here a few words of it) still missing, and the phase behind it does not complete then. Where 64 KiB arrive "
    "in a phase that expects other bytes and another arrival follows in the phase that stays open, the kernel ends with a launch failure.",
    "fill_and_clip": "A box that lies wholly outside is filled, and its bytes count in full.",
    "hand_over_to_copies": "Without a fence the copy reads old words as soon as stores wait in a queue: 28 % with all lanes on one bank. With the fence by the writers there is none, and "
    "none with a fence by the issuing thread behind the meeting. The language keeps asking for the writers' fence (S006): a failure of the other order has been reported from practice.",
    "hand_over_to_products": "The same for wgmma, which reads shared memory through the async proxy as well: a quarter of the results is wrong without a fence when stores queue.",
    "leaving_with_a_store": "No word of 30,000 blocks that left under a running bulk store was wrong, though others overwrote the shared memory at once: the device seems to keep it until the copy "
    "has read it. No document promises that, so S011 stays an error at the end of a role.",
    "map_limits": "The encoder's limits are those of HW043, with three notes: a map of rank 1 needs a stride pointer although no stride is read (the launcher gave none: fixed); "
    "strides below the row, also 0, are accepted; interleave 32B is accepted without its swizzle. NaN fill is refused for integers.",
    "overwrite_after_reading": "An mbarrier arrival does not wait for loads in flight (machine code shows it), and the copy engine does not queue behind them: with loads that conflict on a bank, one word in "
    "seven was the refill's; without conflicts none. The lowering therefore puts a proxy fence in front of such arrivals (decision 0003). That the fence is enough where loads queue "
    "follows from its definition and was not timed out on the device.",
    "reduce_types": "`add` takes u32, i32, u64, f16, bf16, f32 and f64 (a tf32 map counts as f32), `min` and `max` u32, i32, u64, i64, f16 and bf16, `inc` u32 alone, `dec` u32 of those tried. "
    "Everything else tried is an illegal instruction. The language's list (no f32 `min`, no 8- or 16-bit integers) is a subset.",
    "merged_products": "The assembler (13.0) drops one of several equal wgmma only in the kernel's first straight-line block: behind any branch, loop or wait, or with a fence between, all "
    "are there. Kernels printed from schedules branch into roles first, so they are not affected; the build gate's count of HGMMA stays, for text that is not.",
}

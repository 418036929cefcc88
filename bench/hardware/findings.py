"""What the answers of the hardware say, in a few sentences a question; `page` prints them above the figures."""

from __future__ import annotations

FINDINGS: dict[str, str] = {
    "barrier_visibility": "Inside one CTA, 42,240 barriers were seen by the copy engine without the init fence. Across a cluster, an arrival that comes before the "
    "peer's init is lost, every time: the cluster barrier behind the inits is needed, and derived.",
    "dependent_launch": "Behind a trigger that comes before the writes, 95 % of the dependent blocks read old values; none with the wait. A trigger behind the writes, or none, showed "
    "no old value here, and promises nothing: S016 stays as it is.",
    "expected_bytes": "A barrier that expects nothing completes at once, with the data (here a few words of it) still missing, and the phase behind it does not complete then. One that expects half completes early, "
    "one that expects 16 bytes more, 16 less, or twice as much never does. Where 64 KiB arrive in a phase that expects other bytes and another arrival follows in the phase that stays open, the kernel ends with a launch failure.",
    "fill_and_clip": "Loads fill what lies outside, on every side, and its bytes count in full; the NaN fill is 0x7ff7 in each half word, in f32 too. Stores and reductions skip what lies behind the far end. A box of a store or a reduction "
    "that starts in front of the tensor along any axis is an illegal instruction (S033); so is a start between two multiples of 16 bytes (H024).",
    "hand_over_to_copies": "Without a fence the copy reads old words as soon as stores wait in a queue: 28 % with all lanes on one bank. With the fence by the writers there is none, and "
    "none with a fence by the issuing thread behind the meeting. The language keeps asking for the writers' fence (S006): a failure of the other order has been reported from practice.",
    "hand_over_to_products": "The same for wgmma, which reads shared memory through the async proxy as well: a quarter of the results is wrong without a fence when stores queue, and none with one, by the writers or behind the meeting.",
    "leaving_with_a_store": "No word of 30,000 blocks that left under a running bulk store was wrong, though others overwrote the shared memory at once, also with global memory busy or half a MiB of prefetches in the copy engine ahead of the store: the device seems to keep it until the copy "
    "has read it. No document promises that, so S011 stays an error at the end of a role.",
    "leaving_with_a_load": "Nor did a word change in the shared memory of blocks that took the place of others whose loads were still to come, also where these came late: the device seems to keep that memory until they have landed. "
    "No document promises that either (S025).",
    "overwrite_under_a_product": "Up to four m64n256k16 products in flight ended before another warp had been told and had written; with six or more every round multiplied what the refill brought, by stores or by a copy, and none did "
    "once the group was waited for, also where one thread of the four warps tells the others (S005).",
    "overwrite_under_a_store": "Threads that write on without the wait changed four fifths of the words of a store of 8 KiB, and 98 % where the copy engine had other work first; behind the wait none (S011). The wait took 366 cycles, "
    "and up to 8,687 with other work ahead. A load into the same bytes that one thread issues behind its store never overtook it: the copy engine worked in order here, which no document promises.",
    "warps_of_a_product": "No product began before the last of the four warps had come to it, also where one came 2 us late: the device makes them meet. PTX promises that of the threads of a warp only, so S004 stays.",
    "box_placement": "A box lands on 128 bytes, anything else is a misaligned address. Inside a pattern the chunks are exchanged by their address, not by their place in the box, for all three swizzles: what HW044 had inferred.",
    "bytes_in_flight": "A phase counts up to 2^20 bytes, one more than documented, and the kernel ends with a launch failure from 17 loads of 64 KiB on (H009 keeps to the documented bound).",
    "cluster_sizes": "Up to 8 blocks start as they are, 9 to 16 with the opt-in only, with 200 KiB of shared memory a block too; 32 never.",
    "map_limits": "The encoder's limits are those of HW043, with three notes: a map of rank 1 needs a stride pointer although no stride is read (the launcher gave none: fixed); "
    "strides below the row, also 0, are accepted; interleave 32B is accepted without its swizzle. NaN fill is refused for integers.",
    "overwrite_after_reading": "An mbarrier arrival does not wait for loads in flight (machine code shows it), and the copy engine does not queue behind them: with loads that conflict on a bank, one word in "
    "eighteen to one in seven was the refill's; without conflicts none. With a proxy fence in front of the arrival none of 2.2 thousand million words is, at 24 cycles a round; a memory barrier or an instruction that really needs "
    "the loaded value do as well. A branch that needs it and is never taken does not: the assembler may move it. The lowering puts the proxy fence there (decision 0003).",
    "refill_after_reading": "Loads in flight when their thread arrives are overtaken by whoever refills the stage from another CTA: where the loads conflict on a bank, one word in sixteen was a peer's next `st.async`, "
    "one in 36 its next plain store. Stores of another warp and `cp.async` on the same SM queue behind them: none in 405 million. A proxy fence in front of the arrival closes it, so does an arrival that releases at cluster "
    "scope, and so does a barrier of the cluster; an instruction that needs the last value does for plain stores and not for `st.async`. The lowering puts the fence in front of arrivals that free what a peer sends into (decision 0003).",
    "reduce_types": "`add` takes u32, i32, u64, f16, bf16, f32 and f64 (a tf32 map counts as f32), `min` and `max` u32, i32, u64, i64, f16 and bf16, `inc` and `dec` u32, `and`, `or` and `xor` u32, i32 and u64. "
    "Everything else is an illegal instruction. The language's list (no f32 `min`, no 8- or 16-bit integers) is a subset.",
    "arrivals": "Arrivals beyond the count go to the next phase: a barrier of 2 shows its first phase complete after three and the second after four, so that a waiter on the first one "
    "does not pass. One arrival that takes more than is left of a phase, and a phase whose bytes are missing when the count is used up again, end the kernel.",
    "clusters_at_once": "The driver's count is what runs. With one block an SM an H200 holds 66 clusters of 2, 39 of 3, 30 of 4, 22 of 5, 17 of 6, 15 of 7 or 8, 7 of 12 or 16: SMs lie in unequal groups, and a cluster stays in one. "
    "Two, three and four blocks an SM hold about as many times more. The cost model counts waves with these (H200).",
    "copy_start": "Loads and stores start on 16 bytes, in every rank and for both widths: a start between is an illegal instruction, on either side of the tensor's edge. A load may start in front of the tensor "
    "if that is a multiple of 16 bytes; a store may not start there at all (S033). H024 asks for just that.",
    "named_barriers": "Whole warps are counted: a half of a warp that comes counts as all of it, and the halves may come at two places. A count of 0 is the whole block; one that is no multiple of 32, or that participants do "
    "not agree on, is an illegal instruction; one above the block or above 1,024 never completes. An id of 16 or 17 in a register passes, as some other id. A warp too few never completes, and of one too many it is "
    "left waiting. Two arrivals of a producer complete a phase of two warps without the consumer, who then waits for good: one id carries no second hand-over before the first is over, also where a producer merely runs ahead "
    "(S010, turns with an id a member). The barrier of the whole block counts only warps that still run.",
    "leaving_the_cluster": "Reading, writing, arriving at, copying or multicasting to a block that has left ends the kernel, each of them, and works while the block is there: the cluster barrier at the end, which is derived, is needed.",
    "wgmma_descriptors": "With the 128-byte swizzle the leading offset is not read, the stride between atoms is. Without swizzle the leading offset runs along K and the stride along the rows. A tile that starts inside an atom needs no base offset if its chunks "
    "are exchanged by their address (what the copy engine writes), and the row within the atom where they are exchanged by the row of the tile.",
    "merged_products": "The assembler (13.0) drops one of several equal wgmma only in the kernel's first straight-line block: behind any branch, loop or wait, or with a fence between, all "
    "are there. Kernels printed from schedules branch into roles first, so they are not affected; the build gate's count of HGMMA stays, for text that is not.",
}

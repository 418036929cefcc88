"""Why silicon shows nothing of what simulator or verifier object to, and why a verifier may pass what silicon shows: one sentence a cause.

A cause is found by the kind of disagreement, what the simulator found, and the verifier's first code. What has no entry is unexplained,
and a test holds that the recorded run has none of those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NOT_SHOWN: Mapping[tuple[str, str], str] = {
    ("X001", "S005"): "the elected warp releases the slot before the other three are through their wait, and by the documents they may miss the phase; here the four "
    "warps of a warpgroup start a product together",
    ("X001", "Q006"): "the early arrival frees the slot of the round before, and the loader had passed its wait for that slot by then; a loader that comes later waits for a phase that is gone",
    ("X002", "S010"): "the role that is declared to meet there has as many threads as the one that does, and the barrier only counts: the machine code is the same; with roles of two sizes it waits for ever",
    ("numbers", "S003"): "the slot is released ahead of the product that reads it, and the copy that refills it lands later than that product ends; one that lands sooner brings another round's rows",
    ("X003", "S011"): "the block ends under a running store: in 30,000 such blocks whose shared memory was overwritten at once no word was wrong "
    "(docs/hardware.md), also with the copy engine busy ahead of the store, so the device seems to hold it; no document says that it must",
    ("X003", "S025"): "the block ends under loads or copy arrivals that nobody waits for: in 300 million words of blocks that took their place none "
    "changed (docs/hardware.md), so the device seems to hold the memory until they have landed; no document says that it must",
    ("X004", "S003"): "the second copy writes the bytes of the first again and the barrier waits for both, so a reader sees the right ones; with other data it would not",
    ("X007", "S004"): "what the other warps wrote was there before this one came to it; nothing makes it wait for them",
    ("X007", "D009"): "what the registers of a fragment without values hold is the compiler's choice; the maximum that starts from it saw nothing above the data",
    ("X008", "S004"): "copies of a group that was left open had landed before anybody read them; no wait covers them",
    ("X004", "H012"): "as where the slot is released early: the product has ended before the refill lands",
    ("X004", "S004"): "the product reads a tile whose copy was issued ahead of one that the member does wait for, and copies of one thread landed in order",
    ("X004", "S005"): "a product of at most 64 x 256 x 64 ends before whoever refills the slot has been told and has written: four products of 64 x 256 x 16 in flight showed nothing, "
    "and six showed the refill in every round (docs/hardware.md, HW063)",
    ("X004", "S011"): "a store has read its 4 to 16 KiB before threads have made the next values; where they write at once, 84 % of the words stored are the next ones (docs/hardware.md, HW041)",
    ("X005", "S005"): "the assembler noticed (C7517, C7519) and waits after every product: right numbers, several times slower, refused as such by the build gate",
    ("X006", "D014"): "the launch rounds shared memory up, the bytes behind the pool exist and belong to nobody",
    ("X006", "D031"): "the number behind the table is read, which is there in this run, and the row that it names lies outside the output, where the copy engine drops it; in a program perhaps no memory at all",
    ("X006", "S033"): "rows behind the tensor are read and stored nowhere; here they are a guard band, in a program perhaps no memory at all",
    ("X006", "S032"): "the missing slot's bytes lie in the pool behind the view and nothing else is there",
    ("X008", "S006"): "stores had left the queue before the copy or the product read: with a queue of conflicting stores the same code without the fence reads "
    "28 % old words, with it none (docs/hardware.md, HW070)",
    ("X009", "Q001"): "the next group's own tile wrote its rows afterwards; the order of the two is luck",
    ("X009", "S013"): "the next sequence's own tile wrote its rows afterwards; the order of the two is luck",
    ("X014", "S016"): "the experiment has no predecessor whose data could be old; between two kernels 95 % of the blocks read old values (docs/hardware.md, HW101)",
    ("X015", "D014"): "view and copies moved together by a multiple of 128 bytes, so both permute alike; an MMA on it would not",
    ("X015", "D015"): "only ordinary accesses touch the view and all use one permutation; a copy or an MMA on it would not",
}
ALARMS: Mapping[str, str] = {
    "S003": "what a warp sends depends on what it has read, and every warp waits for what all have sent, so that nobody is a tile ahead of a read; by the documents a send orders nothing that its thread did before it",
    "S004": "a product starts when the four warps of its group have come, in the simulator and on the device; PTX lets only the threads of one warp wait for each other there (docs/hardware.md, HW064), so that what a "
    "product reads of other warps' stores still needs a meeting",
    "S008": "what is released in one round only is not waited for again: these lengths have no more rounds than the ring has slots and one; with a round more the loader stays",
    "Q006": "a position one before its step names the slot of the round before; with one slot, or slots of equal content, that is the same place",
    "S031": "a position one before the ring's first step has the number -1; the ring has one slot, which is the same place",
    "D031": "the entry behind the table is read, which is there in this run, and what it names is masked",
    "D014": "the slot that reaches behind the pool is never used",
    "H024": "the coordinate that is no multiple of 16 bytes is 0 with these arguments (one head); with others the copy engine ends the kernel (docs/hardware.md)",
    "Q001": "both members store the same values to the same place",
    "S015": "a turn that is passed on without having been held arrives at the next member's barrier all the same: with turns of equal length the counts still fit; where a member falls a "
    "round behind, two arrivals complete a phase alone and the waiter stays (docs/hardware.md, HW075)",
    "Q007": "launch and scheduler disagree about the cluster; with these tile counts every tile is still walked",
    "H005": "the lowering takes an axis that the cluster does not have for its first one; the language knows no such name",
    "H006": "the assembler refuses the register count as well",
    "H012": "two products in flight on one path and one on the other: right numbers, but the assembler may serialise all",
}
VALUES = "the schedule is safe and computes something else: a mask, a base or an operand that only an oracle can know"
FIXED: Mapping[str, str] = {
    "prefill_paged_loaders/drop-bounds/1": "a miss of the verifier, found here: rows placed by a vector of numbers and masked by it, one too many: the row behind the last sequence was written over; a vector's base and "
    "what its mask lets through are added up since (S033)",
    "edge_softmax/wrong-tile/1": "a miss of the verifier, found here: the mask counts what is left from one round and the load starts a round later, so that the last of them read behind the end of a list; the two are added up "
    "since, also where the end is read from memory and the mask is `lm.in_bounds` (S033)",
    "allgather_ring/drop-step/1": "a fault of the lowering, found here: a ring that steps twice uses one slot only, which is safe, but an arrival does not wait for loads in flight and what a peer sends does not queue behind "
    "them; with the proxy fence in front of the arrival eight copies were clean in 300 runs each, without it none (decision 0003)",
    "allgather_ring/multicast/3": "launch and scheduler disagree about the cluster's shape, which Q007 refuses: the simulator gives each block the tile of its rank, the generated text that of its place in the launch's cluster",
    "segment_mean/swizzle/2": "a fault of the lowering, found here: rows that start inside a swizzle had no turn of their own; fixed, with tests on the emulator and on addresses, and clean in 20 runs with swizzles of 32, 64 and 128 bytes",
}
ELSEWHERE: Mapping[str, str] = {
    "chunk_scores/swap-adjacent/8": "a fence by the issuing side after the meeting gave right words in 3.2 thousand million tries (docs/hardware.md); the language demands the writer's fence "
    "before it, as NVIDIA's libraries do, and a reported failure of the other order is among the handed cases",
    "retrieve_topk/drop-fill-mask/0": "zeros of filled columns win where every score is below zero; in this run's arguments none was (the cases have such scores since)",
    "retrieve_topk/wrong-base/0": "zeros of filled columns win where every score is below zero; in this run's arguments none was (the cases have such scores since)",
    "mla_decode_split/drop-output/1": "the question did not name the second output among those that must be written: only who compares it can tell",
    "transpose_quant/named-participants/1": "both roles have four warps, and the hardware counts the threads that come and not which they are",
    "mla_two_groups/wrong-guard/1": "registers that nothing has written are scaled, and the product behind starts from zero: whatever they hold is gone; it is refused as a read of nothing",
    "mlp_one_launch/drop-sync/2": "a warp may write the next tile before the copy engine has read this one; here a whole loop of products lies in between",
    "paged_decode_gqa/drop-fill-mask/3": "the logarithm of a sum of nothing is minus infinity, which is what is wanted here of a request without keys",
    "gemm_deep/drop-fence/0": "shown in another run: without delays it stored old words on its first launch (bench/results/verify-others.json, `alone`)",
}


def explained(m: Mapping[str, Any]) -> str:
    """The cause of a disagreement of the report; empty where none is known."""
    for known in (FIXED, ELSEWHERE):
        if m["key"] in known:
            return known[m["key"]]
    if m["kind"] == "values only":
        return VALUES
    code = m["codes"][0] if m["codes"] else ""
    if m["kind"] == "alarm unconfirmed":
        return ALARMS.get(code, "")
    if m["kind"] != "not shown":
        return ""
    kind = m["truth"].get("kind", "") if isinstance(m["truth"], Mapping) else m["truth_kind"]
    if kind == "X005" and not m["serialised"]:
        return ""
    return NOT_SHOWN.get((kind, code), "")

"""The hardware rules that diagnostics cite as their source: what must hold, where, and what happens otherwise.

The assembler checks how an instruction is spelled. It does not check addresses, descriptors, counts held in registers,
convergence, ordering, lifetimes or the register pool; ``assembler`` says what it does about each rule. ``measured`` marks
the rules whose violation was run on a GPU (an H200); the others are documented or implied by documents.
"""

from __future__ import annotations

from functools import lru_cache

from cake_ir.record import record
from cake_ir.targets import TARGETS, target


@record()
class Contract:
    """One rule. ``scope`` is a group of targets (a key of ``SCOPES``); ``outcome`` what a violation does: hang, silent,
    illegal, misaligned, fault, launch, compile, slow or undefined."""

    id: str
    scope: str
    rule: str
    outcome: str
    assembler: str = "silent"
    measured: bool = False

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that the rule applies to, oldest first."""
        return SCOPES[self.scope]


SCOPES: dict[str, tuple[str, ...]] = {
    "all": TARGETS,
    "89+": TARGETS[1:],
    "90+": tuple(n for n in TARGETS if target(n).has("TMA")),
    "90a": ("sm_90a",),
    "setmaxnreg": tuple(n for n in TARGETS if target(n).has("SETMAXNREG")),
    "tcgen05": tuple(n for n in TARGETS if target(n).has("TCGEN05")),
    "100+": tuple(n for n in TARGETS if target(n).has("CLC")),
    "120": ("sm_120a", "sm_121a"),
    "cluster": tuple(n for n in TARGETS if target(n).has("CLUSTER")),
}

# fmt: off
CONTRACTS: dict[str, Contract] = {c.id: c for c in (
    # resources
    Contract("HW000", "all", "an instruction form is used only on the targets that have it; suffixed targets are not supersets of each other", "compile", "rejects"),
    Contract("HW001", "all", "static and dynamic shared memory plus 1,024 reserved bytes fit the SM, and one block stays below the opt-in maximum", "launch", "checks static memory only", True),
    Contract("HW002", "all", "a block has at most 1,024 threads in whole warps, and its registers fit each of the four sub-partitions", "launch", "warns and ignores bounds it cannot meet"),
    Contract("HW003", "all", "the grid, the block and the kernel parameters (32,764 bytes) stay within limits; tensor maps are 64-byte aligned grid constants", "launch", "checks the parameter size"),
    Contract("HW004", "90+", "hardware barriers are a pool of the SM, and an id in a register counts as sixteen", "slow"),
    # mma.sync and shared access
    Contract("HW010", "all", "an mma.sync has a shape and dtypes of the table, both 16-bit operands of one type", "compile", "rejects"),
    Contract("HW011", "89+", "fp8 mma.sync needs sm_89, fp6 and fp4 kinds and block scales sm_120a or sm_121a", "compile", "rejects"),
    Contract("HW012", "120", "block-scale selectors and vector sizes match the kind, and fp4 and fp6 operands sit in bytes unless block-scaled fp4", "silent", "checks the selectors"),
    Contract("HW020", "all", "every row address of a matrix load or store is a multiple of 16 bytes in shared memory", "misaligned", "silent", True),
    Contract("HW021", "all", "the eight 16-byte rows of one phase fall on different banks, by an odd pitch or a swizzle", "slow"),
    Contract("HW100", "all", "a vector access is aligned to its whole size; 32 bytes exist only for global memory on sm_100a and later", "misaligned", "rejects 32-byte shared accesses"),
    # copies
    Contract("HW030", "all", "cp.async moves 4, 8 or 16 bytes between addresses aligned to that size", "misaligned", "checks the size"),
    Contract("HW031", "all", "cp.async groups belong to a thread: others read only after its wait and a barrier, and every iteration commits", "silent"),
    Contract("HW040", "90+", "a bulk copy moves a positive multiple of 16 bytes between 16-byte aligned addresses", "hang", "checks an immediate size", True),
    Contract("HW041", "90+", "loads complete on a barrier, stores on a bulk group; the read wait frees the source, only the full wait makes the writes complete", "silent", "rejects mixtures", measured=True),
    Contract("HW042", "90+", "a bulk reduction uses an operation and type of the table; there is no f32 min or max", "illegal", "checks 1-D forms", True),
    Contract("HW043", "90+", "a tensor map has a 16-byte aligned base, outer strides that are multiples of 16 bytes, boxes of at most 256 per axis and one swizzle span wide", "launch", "cannot see it", True),
    Contract("HW044", "90+", "a box lands on a multiple of 128 bytes, and swizzled stages start where the pattern repeats (1,024, 512 or 256 bytes)", "misaligned", measured=True),
    Contract("HW045", "90+", "a tensor copy has as many coordinates as the map has axes; gather and scatter of four rows use a 2-D map", "illegal", "checks the forms"),
    Contract("HW046", "90+", "the bytes expected in a phase are the full boxes of all its loads, out-of-bounds elements included, announced once", "hang", "silent", True),
    Contract("HW047", "cluster", "a multicast lands at the same offset in every destination, each of which expects its own bytes", "hang", "warns off target", True),
    Contract("HW048", "90+", "elements outside the tensor are filled on load and skipped behind the far end on store", "silent", "silent", True),
    Contract("HW049", "90+", "a tensor map changed on the device is published by a proxy fence and acquired before use", "silent"),
    # barriers
    Contract("HW050", "all", "a barrier object is 8-byte aligned, initialised once with a count of 1 to 1,048,575, and touched by barrier operations only", "misaligned", "silent", True),
    Contract("HW051", "90+", "barrier initialisation is fenced and followed by a block or cluster barrier before anyone else uses it", "hang", measured=True),
    Contract("HW052", "90+", "at most 1,048,575 bytes are in flight on one barrier", "fault", measured=True),
    Contract("HW053", "all", "the arrivals of a phase equal the initial count, and no phase runs ahead of its waiters", "hang", "silent", True),
    Contract("HW054", "cluster", "a peer's barrier may be arrived on, not waited for or initialised", "compile", "rejects"),
    Contract("HW055", "all", "parities alternate: consumers wait for phase 0 first, producers of an empty slot for the phase before it", "hang"),
    # wgmma and register reallocation
    Contract("HW060", "90a", "wgmma has M 64, K of 32 bytes and N of 8 to 256 in steps of 8; only 16-bit operands in shared memory may be transposed", "compile", "rejects"),
    Contract("HW061", "90a", "a matrix descriptor states the swizzle the tile was written with and the strides of its atoms", "silent", "silent", True),
    Contract("HW062", "90a", "wgmma.fence precedes the first wgmma and follows every register write to its operands", "slow", "injects it and remarks"),
    Contract("HW063", "90a", "accumulator, A registers and shared operands are untouched until the group that uses them is waited for", "silent", "injects a wait for registers and remarks", True),
    Contract("HW064", "90a", "a wgmma is executed by the four warps of an aligned warpgroup, converged", "undefined"),
    Contract("HW065", "setmaxnreg", "setmaxnreg takes 24 to 256 in steps of 8, by whole warpgroups, with both launch bounds stated", "slow", "drops it with a remark when a bound is missing", True),
    Contract("HW066", "setmaxnreg", "in each sub-partition the registers asked for fit the pool that the launch allocated, and raises do not wait on lowerings that wait on them", "hang", "silent", True),
    Contract("HW067", "90a", "two neighbouring wgmma with equal operands have a fence between them, or one may be dropped (13.0: in a kernel's first straight-line block)", "silent", "drops one", True),
    # proxies and convergence
    Contract("HW070", "90+", "shared memory written by threads is fenced by the writers before the barrier that hands it to a bulk copy or tensor core", "silent", "silent", True),
    Contract("HW071", "90+", "what a bulk copy or tensor core wrote is visible once its completion is observed; readers fence their ordinary loads and then release the slot", "silent", "silent", True),
    Contract("HW072", "all", "the scope of a release or acquire covers both ends: block, cluster or device", "silent"),
    Contract("HW073", "all", "a named barrier has id 0 to 15 and a count that is a multiple of 32 and agreed by all participants", "hang", "checks immediates", measured=True),
    Contract("HW074", "all", "a barrier of a whole warp is reached converged, never inside a branch that some participants skip", "hang", measured=True),
    Contract("HW075", "all", "one named barrier does not carry two overlapping hand-overs", "hang", measured=True),
    Contract("HW076", "all", "a collective instruction runs with its whole warp, warpgroup or block converged; the thread that issued an MMA commits it", "undefined"),
    # tensor memory
    Contract("HW080", "tcgen05", "tensor memory is allocated by one warp in powers of two from 32 to 512 columns, shared by the blocks of an SM", "hang", "checks immediates"),
    Contract("HW081", "tcgen05", "what was allocated is freed before exit, after all accesses are complete", "hang"),
    Contract("HW082", "tcgen05", "nothing is allocated after the permit is given up", "hang"),
    Contract("HW083", "tcgen05", "a pair allocates and frees with one warp in each block, both alive", "hang"),
    Contract("HW084", "tcgen05", "a warp reaches only its quarter of the lanes, so a reader of all lanes is an aligned warpgroup", "silent", "checks register counts"),
    Contract("HW085", "tcgen05", "loads are waited for before their columns are overwritten, stores before an MMA reads them", "silent"),
    Contract("HW086", "tcgen05", "copies of scale factors use the replicated shape that the MMA expects", "silent", "checks qualifiers"),
    Contract("HW087", "tcgen05", "an MMA's result and its operands are free only after a commit by the issuing thread has arrived", "silent"),
    Contract("HW088", "tcgen05", "M, N and K are in the table of the kind and pairing", "illegal", "checks the kind, not the descriptor"),
    Contract("HW089", "tcgen05", "descriptors use this family's encoding, which differs from wgmma's", "silent"),
    Contract("HW090", "cluster", "a remote store and the barrier that counts it are in the same block, which expects its bytes", "silent"),
    Contract("HW091", "tcgen05", "operands are K-major where the kind demands it: tf32 and block-scaled fp4", "silent"),
    Contract("HW092", "tcgen05", "all MMA of a kernel pair blocks or none do, and the leader issues for both", "hang", "rejects mixtures"),
    # clusters, launch, arithmetic
    Contract("HW093", "cluster", "a cluster has at most 8 blocks (16 with an opt-in) and divides the grid", "launch", measured=True),
    Contract("HW094", "cluster", "no block touches a peer before it has started or exits while a peer may still reach it", "fault", "silent", True),
    Contract("HW095", "cluster", "every thread of the cluster arrives once and waits once a phase", "hang"),
    Contract("HW101", "90+", "a dependent launch waits before its first access to what the previous kernel writes", "silent", "silent", True),
    Contract("HW102", "100+", "a cancelled launch is queried after its 16 bytes arrived, and none is asked for after a refusal", "hang"),
    Contract("HW103", "all", "packed and narrow arithmetic exists where the table says", "compile", "rejects"),
    Contract("HW104", "all", "the waits of all roles form no cycle without credit, and matching loops run equally often", "hang"),
)}
# fmt: on


@lru_cache(maxsize=16)
def contracts_for(target_name: str) -> tuple[Contract, ...]:
    """The rules that apply on ``target_name``, in the order of the table."""
    return tuple(c for c in CONTRACTS.values() if target_name in c.targets)

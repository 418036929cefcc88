"""Mutation classes: each module makes the mutants of one kind of mistake.

What cannot be said in the language cannot be mutated either. These classes of faults in hand-written kernels are impossible by
construction, because the thing is derived and no text states it:
"""

from __future__ import annotations

from bench.verify.mutate import (
    arrive_kind,
    bad_alias,
    drop_all_syncs,
    drop_arrive,
    drop_async_wait,
    drop_bounds,
    drop_commit,
    drop_copy,
    drop_fence,
    drop_fill_mask,
    drop_guard,
    drop_init,
    drop_step,
    drop_sync,
    drop_tail,
    drop_turn,
    drop_update,
    drop_wait,
    drop_write,
    duplicate,
    early_release,
    guard_off_by_one,
    misaligned_view,
    mma_init,
    multicast,
    named_participants,
    operand_swap,
    outside_loop,
    pdl,
    plain_store,
    pool_size,
    primed_flip,
    reduction_scratch,
    register_pool,
    rows_tail,
    scope_flip,
    skip_wait,
    stages_off_by_one,
    swap_adjacent,
    swizzle,
    tensor_memory,
    trip_mismatch,
    weaken_async_wait,
    wrong_barrier,
    wrong_base,
    wrong_flag,
    wrong_role,
    wrong_scales,
    wrong_slice,
    wrong_stage,
    wrong_start,
    wrong_tile,
    wrong_view,
)  # fmt: skip
from bench.verify.mutate.subject import Mutant, Subject

MAKERS = (
    drop_wait, drop_arrive, drop_commit, drop_turn, drop_async_wait, weaken_async_wait, drop_fence, drop_sync, early_release, swap_adjacent,
    wrong_stage, stages_off_by_one, bad_alias, trip_mismatch, drop_guard, guard_off_by_one, drop_step, wrong_barrier, wrong_role,
    named_participants, arrive_kind, primed_flip, scope_flip, multicast, register_pool, pool_size, misaligned_view, swizzle, rows_tail,
    drop_bounds, drop_fill_mask, mma_init, operand_swap, wrong_tile, drop_write, drop_copy, duplicate, wrong_view, wrong_slice,
    reduction_scratch, tensor_memory, drop_init, wrong_base, pdl, skip_wait, drop_all_syncs, wrong_flag,
    wrong_scales, outside_loop, plain_store, drop_tail, drop_update, wrong_start,
)  # fmt: skip

VALUES = frozenset({"drop-output", "wrong-tile", "wrong-slice", "operand-swap", "drop-fill-mask", "wrong-base", "wrong-trips", "wrong-guard", "duplicate-product", "wrong-scales",
                    "drop-tail", "drop-update", "wrong-start"})
"""Classes that change what is computed and nothing else: a schedule with other coordinates is another schedule, and only the numbers tell.
They are measured apart."""

IMPOSSIBLE: dict[str, str] = {
    "element type": "a view of another type of the same width than its tensor, its operands or its registers is refused at construction",
    "parity flip": "waits name slots; parities come from running counts (`primed` is the only choice left: class primed-flip)",
    "wrong expect_tx bytes": "bytes are the sum of the boxes that name the barrier and the slot",
    "expect_tx after the copy, or twice": "one announcement is placed before the first copy of a set",
    "wrong init count": "counts follow from roles and kinds; a written `init_count` is a claim that is checked, not what is emitted",
    "barrier not initialised, or not visible": "initialisation, its fence and the block or cluster barrier after it are emitted for every kernel",
    "missing cluster barrier at exit": "emitted wherever a peer may reach the CTA",
    "arrive at the wrong CTA": "targets follow from the multicasts that the barrier guards",
    "wrong multicast mask": "follows from the axis and the cluster's shape",
    "missing wgmma.fence or commit_group": "emitted around every product",
    "descriptor, leading or stride byte offset": "follows from the view",
    "swizzle different in producer and consumer": "both read the view's declaration (a wrong declaration is class swizzle)",
    "tensor map box, rank or element type": "follows from the view and the parameter",
    "named barrier id or thread count as a number": "ids and counts are allocated (wrong participants: class named-participants)",
    "id 0 or one id for two barriers": "ids are allocated",
    "setmaxnreg executed by part of a warpgroup, or twice": "emitted once at the head of a role of whole warpgroups",
    "tensor memory allocated twice, not freed, permit kept": "one allocation and one release are emitted",
    "tensor memory of a pair freed while the other CTA uses it": "both CTAs allocate, and the pair meets in front of its release",
    "both CTAs of a pair issue its product": "the role that issues runs in the leader only",
    "tcgen05 fences around thread synchronisation": "emitted at waits and arrives",
    "commit by another thread than the issuer": "one elected thread of a member issues and commits",
    "bulk wait by another thread than the issuer": "one elected thread of a member issues and waits",
    "divergent collective": "roles, loops and branches are uniform by type",
    "turn order": "member 0 first, then in turn; ids are allocated",
}
"""Fault classes that no text of the language can express, each with what rules it out."""


def mutants(subject: Subject) -> list[Mutant]:
    """All mutants of a schedule, each text once."""
    for maker in MAKERS:
        maker.make(subject)
    return subject.made


__all__ = ["IMPOSSIBLE", "MAKERS", "VALUES", "Mutant", "Subject", "mutants"]

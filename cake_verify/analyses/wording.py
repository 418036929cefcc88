"""Names of hardware features and lists, as messages say them."""

from __future__ import annotations

from collections.abc import Iterable

from cake_ir.targets import targets_with

FEATURE: dict[str, str] = {
    "TMA": "the copy engine (TMA)", "TMA_GATHER4": "TMA row gather", "MULTICAST": "TMA multicast", "CLUSTER": "thread-block clusters",
    "WGMMA": "wgmma", "TCGEN05": "tensor memory and tcgen05", "TMEM": "tensor memory and tcgen05", "SETMAXNREG": "register reallocation (setmaxnreg)",
    "PDL": "programmatic dependent launch", "CLC": "cluster launch control", "MBARRIER_TX": "mbarriers that count bytes", "FP8_MMA": "fp8 MMA",
    "LDMATRIX_B8": "transposed ldmatrix of 8-bit elements", "STMATRIX": "stmatrix", "DSMEM": "access to a peer's shared memory",
}  # fmt: skip

INSTEAD: dict[str, str] = {
    "TMA": "copy with `view.cp_async(..)`, `lm.cp_commit()`, `lm.cp_wait(..)` and `lm.sync(..)`",
    "TMA_GATHER4": "gather with `view.cp_async_rows(..)`",
    "TCGEN05": "accumulate in a fragment: `acc = lm.frag(shape=(..), dtype=lm.f32, form=\"acc\")`",
    "TMEM": "accumulate in a fragment: `acc = lm.frag(shape=(..), dtype=lm.f32, form=\"acc\")`",
    "MBARRIER_TX": "use `arrive=\"cp_async\"` or `arrive=\"thread\"`, or `lm.cp_wait(..)` and `lm.sync(..)`",
    "CLC": "use `kind=\"static\"`",
    "SETMAXNREG": "leave `regs` out",
}  # fmt: skip


def listed(names: Iterable[str]) -> str:
    """Names for a sentence: `a`, `b` and `c`."""
    quoted = [f"`{n}`" for n in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}" if quoted else "nothing"


def exists_on(feature: str) -> str:
    """On which targets a feature exists."""
    names = targets_with(feature)
    return f"it exists on {', '.join(names)}" if names else "no target has it"

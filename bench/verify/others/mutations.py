"""Names of the mutations that both sides of the comparison know, without what either side needs to run them."""

from __future__ import annotations

MUTATIONS: dict[str, tuple[str, ...]] = {
    "ring_gemm": (
        "no wait for full", "no wait for empty", "no release", "waits for the other parity", "not primed", "reads the next stage", "loads to the next stage",
        "releases before the product ends", "waits for one product less", "releases the next stage", "releases twice", "one load more", "no copy of B",
        "empty counts two", "expects more bytes", "expects fewer bytes", "no fence after init",
    ),
    "staged_double": (
        "no wait for full", "no fence", "stores the next stage", "waits for one store less", "no wait for stores", "leaves with stores in flight",
    ),
    "copy_ring": ("waits for one group less", "no wait", "waits after reading", "fills the stage being read", "no commit"),
}  # fmt: skip

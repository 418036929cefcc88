"""Arguments and float64 oracles for every schedule of the benchmark's corpus: what the simulator runs them on."""

from __future__ import annotations

from bench.verify.cases.attention import ATTENTION
from bench.verify.cases.blackwell import BLACKWELL
from bench.verify.cases.block_scales import BLOCK_SCALES
from bench.verify.cases.case import Case, Filled
from bench.verify.cases.clustering import CLUSTERING
from bench.verify.cases.everyday import EVERYDAY
from bench.verify.cases.frontier import FRONTIER
from bench.verify.cases.gemm_hopper import GEMM_HOPPER
from bench.verify.cases.gemm_sync import GEMM_SYNC
from bench.verify.cases.guests import GUESTS
from bench.verify.cases.guests_more import GUESTS_MORE
from bench.verify.cases.guests_rows import GUESTS_ROWS
from bench.verify.cases.lookups import LOOKUPS
from bench.verify.cases.mixers import MIXERS
from bench.verify.cases.newcomers import NEWCOMERS
from bench.verify.cases.newcomers_rows import NEWCOMERS_ROWS
from bench.verify.cases.products import PRODUCTS
from bench.verify.cases.recurrence import RECURRENCE
from bench.verify.cases.rows import ROWS
from bench.verify.cases.serving import SERVING
from bench.verify.cases.shipped import SHIPPED
from bench.verify.cases.strangers import STRANGERS
from bench.verify.cases.strangers_more import STRANGERS_MORE
from bench.verify.cases.strangers_other_targets import STRANGERS_OTHER_TARGETS
from bench.verify.cases.streams import STREAMS
from bench.verify.cases.visitors import VISITORS
from bench.verify.cases.visitors_more import VISITORS_MORE

CASES: dict[str, Case] = {c.name: c for c in (*GEMM_HOPPER, *GEMM_SYNC, *BLACKWELL, *BLOCK_SCALES, *ATTENTION, *CLUSTERING, *RECURRENCE, *ROWS, *SHIPPED, *PRODUCTS, *LOOKUPS, *STREAMS, *SERVING, *MIXERS, *EVERYDAY, *STRANGERS, *STRANGERS_MORE, *STRANGERS_OTHER_TARGETS, *FRONTIER, *VISITORS, *VISITORS_MORE, *GUESTS, *GUESTS_MORE, *GUESTS_ROWS, *NEWCOMERS, *NEWCOMERS_ROWS)}

__all__ = ["CASES", "Case", "Filled"]

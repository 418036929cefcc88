"""The page ``docs/targets.md``, written from the tables so that it cannot disagree with them."""

from __future__ import annotations

from collections.abc import Iterable

from cake_ir.dtypes import DTYPES, cast
from cake_ir.targets import DEVICES, TARGETS, target
from cake_ir.targets.contracts import CONTRACTS, SCOPES
from cake_ir.targets.features import FEATURES
from cake_ir.targets.mma import SCALES, Family, MmaKind, kind_of

_LIMITS: tuple[tuple[str, str], ...] = (
    ("Shared memory an SM, bytes", "smem_per_sm"),
    ("Shared memory a block, bytes (opt-in)", "smem_optin"),
    ("Reserved a block, bytes", "smem_reserved"),
    ("Registers an SM", "regs"),
    ("Registers a thread, at most", "max_regs"),
    ("Threads a block, at most", "max_threads"),
    ("Threads an SM", "threads_per_sm"),
    ("Blocks an SM", "blocks_per_sm"),
    ("Named barriers a block", "named_barriers"),
    ("Named barriers an SM", "named_barriers_per_sm"),
    ("Cluster size (portable)", "cluster_max"),
    ("Cluster size (opt-in)", "cluster_max_nonportable"),
    ("Tensor memory, columns", "tmem_columns"),
    ("Widest global access a thread, bytes", "vector_bytes"),
)

_MEANING: dict[str, str] = {
    "CP_ASYNC": "`cp_async`, `cp_commit`, `cp_wait`", "LDMATRIX": "`view.ldmatrix`, `view.load` of tile forms",
    "LDMATRIX_B8": "8-bit transposing matrix loads", "LDMATRIX_UNPACK": "matrix loads that unpack fp4 and fp6", "STMATRIX": "`view.store` by `stmatrix`",
    "STMATRIX_B8": "8-bit transposing matrix stores", "MOVMATRIX": "`lm.transpose`", "MMA_SYNC": "`lm.mma` on fragments",
    "FP8_MMA": "`lm.mma` of e4m3 and e5m2 fragments", "F8F6F4_MMA": "`lm.mma` of fp6 and fp4 fragments", "BLOCK_SCALED_MMA": "`lm.mma` of fragments with `scale_a`, `scale_b`",
    "TMA": "`tma_load`, `tma_prefetch`, `tma_store`, `bulk_load`, `bulk_store`", "MULTICAST": "`tma_load(multicast=)`", "TMA_REDUCE": "`tma_reduce`",
    "TMA_GATHER4": "`tma_gather`", "TMA_SCATTER4": "scatter of four rows", "TMA_CTA_GROUP": "loads that signal the pair's leader",
    "CLUSTER": "`lm.launch(cluster=)`, `lm.cluster_sync`", "DSMEM": "access to a peer's shared memory", "ST_ASYNC": "`view.send`",
    "MBARRIER": "`lm.barrier`", "MBARRIER_TX": '`arrive="tx"`', "MBARRIER_TRY_WAIT": "waiting without spinning", "WGMMA": "`lm.mma` of views into fragments",
    "SETMAXNREG": "`lm.role(regs=)`", "TCGEN05": "`lm.mma` into tensor memory, `lm.commit`", "TCGEN05_I8": "8-bit integers there",
    "TCGEN05_BLOCK_SCALED": "`scale_a`, `scale_b` there", "TCGEN05_LD_RED": "loads that reduce on the way", "TCGEN05_SHIFT": "row shifts in tensor memory",
    "TCGEN05_K96": "K = 96 block-scaled MMA", "TWO_CTA_MMA": "`lm.mma(ctas=2)`", "TMEM": "`lm.tmem`, `tmem_load`, `tmem_store`",
    "CLC": '`lm.scheduler(kind="clc")`', "PDL": "`lm.pdl_wait`, `lm.pdl_launch`", "ELECT_SYNC": "electing a lane", "FENCE_PROXY_ASYNC": "`lm.fence_proxy`",
    "REDUX_I32": "integer warp reductions in one instruction", "REDUX_F32": "f32 min and max of a warp in one instruction", "F32X2": "two f32 operations in one",
    "MAX3_F32": "max and min of three", "BF16X2_ADD": "native bf16 addition", "FP8_CVT": "casts with e4m3, e5m2", "FP6_CVT": "casts with e2m3, e3m2",
    "FP4_CVT": "casts with e2m1", "UE8M0_CVT": "casts with ue8m0", "STOCHASTIC_CVT": '`lm.cast(round="rs")`', "LDST_256": "32-byte global accesses",
    "RED_VECTOR": "vector reductions in global memory",
}  # fmt: skip

_OPERANDS: tuple[tuple[str, str], ...] = (
    ("f16", "f16"), ("bf16", "bf16"), ("tf32", "tf32"), ("i8", "i8"), ("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e4m3", "e2m1"), ("e2m1", "e2m1"),
)  # fmt: skip


def _table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    head = list(header)
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    out += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return [*out, ""]


def _number(value: int) -> str:
    return f"{value:,}" if value else "–"


def _mma_rows() -> Iterable[list[str]]:
    families: tuple[tuple[Family, str], ...] = (("mma_sync", "mma.sync"), ("wgmma", "wgmma"), ("tcgen05", "tcgen05"))
    for family, spelling in families:
        for a, b in _OPERANDS:
            for scaled in (False, True):
                found = {t: kind_of(family, t, a, b, scaled) for t in TARGETS}
                kinds = [k for k in found.values() if isinstance(k, MmaKind)]
                if kinds:
                    k = kinds[0]
                    transposed = "yes" if k.may_transpose and family != "mma_sync" else "no"
                    where = ["yes" if isinstance(found[t], MmaKind) else "–" for t in TARGETS]
                    yield [f"{spelling} {a} x {b}{' scaled' if scaled else ''}", str(k.k), ", ".join(k.accumulators), transposed, *where]


def _cast_rows() -> Iterable[list[str]]:
    for src, dst in (("f32", "bf16"), ("f32", "f16"), ("f32", "tf32"), ("f32", "e4m3"), ("f32", "e5m2"), ("f32", "e2m1"), ("f32", "e2m3"),
                     ("f32", "e3m2"), ("f32", "ue8m0"), ("bf16", "e4m3"), ("e4m3", "f32"), ("e2m1", "f32"), ("ue8m0", "f32"), ("i8", "f32")):  # fmt: skip
        found = cast(src, dst)
        if found:
            rounds = " or ".join(found.rounds) or "exact"
            yield [f"{src} to {dst}", " → ".join(found.steps), rounds, "yes" if found.saturates else "no", *("yes" if t in found.targets else "–" for t in TARGETS)]


def page() -> str:
    """The whole page."""
    all_targets = [target(name) for name in TARGETS]
    out = [
        "# Targets", "",
        "<!-- Written by `python -m cake_ir.targets --markdown`; edit the tables in cake_ir/targets, not this page. -->", "",
        "A schedule names its target; that decides what is legal. The device (the board) decides how many SMs there are and how fast they run.",
        "Limits come from vendor headers, features from assembling one minimal kernel an instruction and target with ptxas 13.0.88. `make probe` derives features, MMA",
        "kinds, casts, reductions and limits again with the assembler that is installed, and says where this page disagrees.", "",
        "## Limits", "",
    ]  # fmt: skip
    out += _table(["", *TARGETS], [["Family", *(t.family for t in all_targets)],
                                   *([label, *(_number(getattr(t, name)) for t in all_targets)] for label, name in _LIMITS)])  # fmt: skip
    out += ["## Features", "", "«no» with a reason below the table: the assembler takes it, Cake refuses it.", ""]
    rows = []
    for feature in FEATURES:
        cells = ["yes" if t.has(feature) else "no" if feature in t.narrower else "–" for t in all_targets]
        rows.append([f"`{feature}`", _MEANING[feature], *cells])
    out += _table(["feature", "needed by", *TARGETS], rows)
    for reason in sorted({(feature, why) for t in all_targets for feature, why in t.narrower.items()}):
        names = ", ".join(t.name for t in all_targets if reason[0] in t.narrower)
        out.append(f"- `{reason[0]}` on {names}: {reason[1]}.")
    out += ["", "## Matrix multiply-accumulate", "",
            "`lm.mma(acc, a, b)`. K is that of one instruction; «transposed» says whether a shared-memory operand may be read as `.T`.", ""]  # fmt: skip
    out += _table(["operands a x b", "K", "accumulators", "transposed", *TARGETS], _mma_rows())
    out += ["Block scales that the instruction applies itself:", ""]
    out += _table(["target", "kind", "elements a scale", "scale dtype", "layout"],
                  [[name, s.kind, s.block, s.dtype, f"`{s.layout}`"] for name, scales in SCALES.items() for s in scales])  # fmt: skip
    out += ["## Dtypes", ""]
    out += _table(["dtype", "bits", "kind", "largest finite", "infinity", "storage"],
                  [[f"`{d.name}`", d.bits, d.kind, f"{d.max_finite:g}" if d.max_finite else "–", "yes" if d.has_inf else "no", d.packing]
                   for d in DTYPES.values()])  # fmt: skip
    out += ["## Casts", "", "The chain of conversions, the rounding modes (default first) and where it exists. Integers also convert among themselves.", ""]
    out += _table(["cast", "chain", "rounds", "saturates", *TARGETS], _cast_rows())
    out += ["## Devices", "", "Dense tensor rate in operations a clock and SM, f32 or i32 accumulation. «?»: read from the device at run time.", ""]
    out += _table(["device", "target", "SMs", "L2, MiB", "DRAM, GB/s", "clock, MHz", "bf16", "e4m3", "figures from"],
                  [[d.name, d.target, d.sm_count or "?", d.l2_bytes // 2**20 if d.l2_bytes else "?", d.dram_gb_s or "?", d.boost_mhz or "?",
                    *(_number(int(d.tensor_peak.get(k, 0))) for k in ("bf16", "e4m3")), d.source] for d in DEVICES.values()])  # fmt: skip
    out += ["## Hardware rules", "",
            "What diagnostics name as their source. «assembler»: what it does about a violation. «measured»: violated on purpose on a GPU.", ""]  # fmt: skip
    where = {scope: "all" if names == TARGETS else ", ".join(names) for scope, names in SCOPES.items()}
    out += _table(["rule", "where", "what must hold", "if violated", "assembler", "measured"],
                  [[c.id, where[c.scope], c.rule, c.outcome, c.assembler, "yes" if c.measured else ""] for c in CONTRACTS.values()])  # fmt: skip
    return "\n".join(out).rstrip() + "\n"

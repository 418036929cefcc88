"""What the tables of `cake_ir` say of every form, beside what the assembler says: the disagreements, and the ones that are meant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cake_backend.toolchain.probe.assemble import Answer, assemble
from cake_backend.toolchain.probe.forms import (
    CASTS,
    FEATURE_FORMS,
    LIMIT_FORMS,
    SCALED,
    STOCHASTIC,
    Form,
    mma_form,
    reduce_form,
    scaled_form,
    tcgen05_form,
    wgmma_form,
)  # fmt: skip
from cake_ir.dtypes import cast, cast_on
from cake_ir.ops.atomic import BF16_ADD
from cake_ir.ops.move import REDUCES
from cake_ir.targets import TARGETS, instruction, target
from cake_ir.targets.mma import SCALES, Family, MmaKind, accumulator_problem, kind_of, shape_problem

PAIRS = (
    ("f16", "f16"), ("bf16", "bf16"), ("tf32", "tf32"), ("i8", "i8"), ("u8", "u8"), ("i8", "u8"), ("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e2m1", "e2m1"), ("e3m2", "e2m3"),
    ("e4m3", "e2m1"), ("f16", "bf16"),
)  # fmt: skip
ACCUMULATORS = ("f32", "f16", "i32")
COLUMNS = (8, 16, 24, 40, 48, 56, 64, 96, 128, 176, 200, 248, 256)


@dataclass(frozen=True, slots=True)
class Claim:
    """What our tables say of one form on one target; `meant` says why a disagreement is meant: hardware is narrower than the assembler, or
    the language is."""

    subject: str
    form: Form
    target: str
    usable: bool
    meant: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A claim with the assembler's answer."""

    claim: Claim
    answer: Answer

    @property
    def agrees(self) -> bool:
        return self.claim.usable == self.answer.taken and (self.answer.mark != "W" or bool(self.claim.meant))

    @property
    def excused(self) -> bool:
        """Whether the assembler takes what we refuse on purpose."""
        return not self.agrees and self.answer.taken and not self.claim.usable and bool(self.claim.meant)


def claims() -> list[Claim]:
    """Every claim of the tables that a form can test."""
    return [c for make in (_features, _limits, _mma, _scaled, _wgmma, _tcgen05, _casts, _reductions) for c in make()]


def compare(*, ptxas: str | None = None, chosen: Sequence[Claim] | None = None) -> list[Row]:
    """All claims with the assembler's answers."""
    asked = list(claims() if chosen is None else chosen)
    answers = assemble([(c.form, c.target) for c in asked], believed=[c.usable for c in asked], ptxas=ptxas)
    return [Row(c, a) for c, a in zip(asked, answers, strict=True)]


def table_disagreements(rows: Sequence[Row]) -> list[str]:
    """Where the instruction table (`data/instructions.json`) has a form and says something else of it than the assembler did now."""
    out = []
    for row in rows:
        if not row.claim.form.table:
            continue
        verdict = instruction(row.claim.form.table, row.claim.target)
        if verdict.known and verdict.assembles != row.answer.taken and not (verdict.needs_newer_assembler and row.answer.taken):
            out.append(f"{row.claim.form.table} on {row.claim.target}: the table says {'taken' if verdict.assembles else 'rejected'}, found {row.answer.mark} {row.answer.message}")
    return list(dict.fromkeys(out))


# ------------------------------------------------------------------ what the tables claim


def _features() -> Iterator[Claim]:
    for form in FEATURE_FORMS:
        for name in TARGETS:
            t = target(name)
            yield Claim(f"feature {form.name}", form, name, t.has(form.name), t.narrower.get(form.name, ""))


_UNALIGNED = "the assembler does not look at addresses"
_LIMITS: dict[str, tuple[Callable[[str], bool], str]] = {
    "cp.async.4": (lambda t: target(t).has("CP_ASYNC"), ""),
    "cp.async.2": (lambda t: False, ""),
    "cp.async.cg.8": (lambda t: False, ""),
    "setmaxnreg.24": (lambda t: target(t).has("SETMAXNREG"), ""),
    "setmaxnreg.28": (lambda t: False, ""),
    "setmaxnreg.16": (lambda t: False, ""),
    "setmaxnreg.256": (lambda t: target(t).has("SETMAXNREG"), ""),
    "setmaxnreg.264": (lambda t: False, ""),
    "barrier.15": (lambda t: target(t).named_barriers > 15, ""),
    "barrier.16": (lambda t: target(t).named_barriers > 16, ""),
    "barrier.33": (lambda t: False, ""),
    "red.bf16": (lambda t: t not in BF16_ADD, ""),
    "red.f16": (lambda t: True, ""),
    "ld.v4": (lambda t: target(t).vector_bytes >= 16, ""),
    "ld.shared.v8": (lambda t: False, ""),
    "bulk.16": (lambda t: target(t).has("TMA"), ""),
    "bulk.24": (lambda t: False, ""),
    "ldmatrix.off": (lambda t: False, _UNALIGNED),
}


def _limits() -> Iterator[Claim]:
    for form in LIMIT_FORMS:
        usable, meant = _LIMITS[form.name]
        for name in TARGETS:
            yield Claim(f"limit {form.name}", form, name, usable(name), meant)


def _has(family: Family, name: str, a: str, b: str, acc: str) -> bool:
    kind = kind_of(family, name, a, b)
    return isinstance(kind, MmaKind) and accumulator_problem(kind, acc) is None


def _k(a: str, b: str) -> int:
    return 8 if "tf32" in (a, b) else 16 if a in ("f16", "bf16") else 32


def _mma() -> Iterator[Claim]:
    for a, b in PAIRS:
        for acc in ACCUMULATORS:
            if (acc == "i32") != (a in ("i8", "u8")):
                continue  # no such spelling
            for name in TARGETS:
                yield Claim("mma.sync", mma_form(a, b, acc, _k(a, b)), name, _has("mma_sync", name, a, b, acc))


def _scaled() -> Iterator[Claim]:
    for kind, block, dtype in SCALED:
        for name in TARGETS:
            offered = {(s.kind, s.block, s.dtype) for s in SCALES.get(name, ()) if s.layout == "frag_row"}
            yield Claim("scaled mma.sync", scaled_form(kind, block, dtype), name, (kind, block, dtype) in offered)


def _wgmma() -> Iterator[Claim]:
    for a, b in PAIRS:
        for acc in ACCUMULATORS:
            if (acc == "i32") != (a in ("i8", "u8")):
                continue
            yield Claim("wgmma", wgmma_form(a, b, acc, _k(a, b), 64), "sm_90a", _has("wgmma", "sm_90a", a, b, acc))
    for a, acc in (("bf16", "f32"), ("e4m3", "f32"), ("i8", "i32")):
        kind = kind_of("wgmma", "sm_90a", a, a)
        assert isinstance(kind, MmaKind)
        for n in (*COLUMNS, 12, 264):
            yield Claim("wgmma columns", wgmma_form(a, a, acc, _k(a, a), n), "sm_90a", shape_problem("wgmma", kind, 64, n, kind.k) is None)
    for a, acc in (("bf16", "f32"), ("f16", "f32")):
        yield Claim("wgmma transposed", wgmma_form(a, a, acc, _k(a, a), 64, transposed=True), "sm_90a", True)
        yield Claim("wgmma registers", wgmma_form(a, a, acc, _k(a, a), 64, from_registers=True, transposed=True), "sm_90a", True)
    for name in TARGETS:
        if name != "sm_90a":
            yield Claim("wgmma", wgmma_form("bf16", "bf16", "f32", 16, 64), name, target(name).has("WGMMA"))


def _tcgen05() -> Iterator[Claim]:
    kinds = {"f16": ("bf16", False), "tf32": ("tf32", False), "f8f6f4": ("e4m3", False), "i8": ("i8", False), "mxf8f6f4": ("e4m3", True), "mxf4nvf4": ("e2m1", True)}
    for spelled, (dtype, scaled) in kinds.items():
        for ctas in (1, 2):
            for name in TARGETS:
                usable = isinstance(kind_of("tcgen05", name, dtype, dtype, scaled), MmaKind) and (ctas == 1 or target(name).has("TWO_CTA_MMA"))
                yield Claim("tcgen05", tcgen05_form(spelled, ctas), name, usable)


def _casts() -> Iterator[Claim]:
    for (src, dst), text in CASTS.items():
        found = cast(src, dst)
        for name in TARGETS:
            yield Claim("conversion", Form(f"{src} to {dst}", text), name, found is not None and name in found.targets)
    for dst, text in STOCHASTIC.items():
        for name in TARGETS:
            yield Claim("conversion", Form(f"f32 to {dst}, stochastic", text), name, not isinstance(cast_on("f32", dst, name, "rs"), str),
                        "the language rounds to it from one value at a time" if isinstance(cast_on("f32", dst, "sm_100a", "rs"), str) else "")  # fmt: skip


def _reductions() -> Iterator[Claim]:
    for op, dtypes in REDUCES.items():
        for dtype in ("i32", "u32") if op in ("and", "or", "xor") else ("i32", "u32", "f32", "f16", "bf16"):  # bits have no type
            for name in ("sm_90a", "sm_100a"):
                yield Claim("bulk reduction", reduce_form(op, dtype), name, dtype in dtypes)

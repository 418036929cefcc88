"""Failures that kernel authors reported: each bad input is caught by its rule, each control next to it is accepted."""

from pathlib import Path

import pytest

from cake_verify import verify_text
from cake_verify.rules.examples import LOOP, MULTICAST, SYNC_MMA, TENSOR_MEMORY, TILE, edit

GOOD = {p.stem: p.read_text("utf-8") for p in sorted((Path(__file__).parent / "schedules").glob("*.py"))}


@pytest.mark.parametrize("name", GOOD)
def test_good_schedules_of_other_families_pass_without_a_word(name):
    verdict = verify_text(GOOD[name])
    assert (verdict.verdict, [(d.code, d.message, d.span.line) for d in verdict.diagnostics]) == ("pass", [])


def pool_of(nbytes, swizzle='"128b"', extra=""):
    return f'''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem2d[LM.bf16], Y: LM.gmem2d[LM.bf16]):
    pool = lm.smem({nbytes})
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle={swizzle})
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
{extra}    with work:
        a.store(lm.load(X, coords=(0, 0), shape=(64, 64)))
        lm.sync(cta)
        lm.store(Y, a.load(form="vec"), coords=(0, 0))
'''


def named_barriers(n):
    roles = "".join(f"    r{i} = lm.role(warps=[{i}])\n    b{i} = lm.named_barrier(r{i})\n" for i in range(n))
    blocks = "".join(f"    with r{i}:\n        lm.sync(b{i})\n" for i in range(n))
    return f'@cake.schedule(target="sm_90a")\ndef f(lm, X: LM.gmem1d[LM.f32].const):\n{roles}{blocks}'


FP8 = edit(
    TILE,
    ("A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16]", "A: LM.tma2d[LM.e4m3], B: LM.tma2d[LM.e4m3]"),
    ("a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16", "a = pool.view(offset=0, shape=(64, 128), dtype=lm.e4m3"),
    ("b = pool.view(offset=8192, shape=(128, 64), dtype=lm.bf16", "b = pool.view(offset=8192, shape=(128, 128), dtype=lm.e4m3"),
)  # fmt: skip
SYNC_FP8 = edit(
    SYNC_MMA,
    ("A: LM.gmem2d[LM.bf16], B: LM.gmem2d[LM.bf16]", "A: LM.gmem2d[LM.e4m3], B: LM.gmem2d[LM.e4m3]"),
    ("a = pool.view(offset=0, shape=(64, 32), dtype=lm.bf16", "a = pool.view(offset=0, shape=(64, 64), dtype=lm.e4m3"),
    ("b = pool.view(offset=4096, shape=(128, 32), dtype=lm.bf16", "b = pool.view(offset=4096, shape=(128, 64), dtype=lm.e4m3"),
    ("a.cols(16 * k, 16)", "a.cols(32 * k, 32)"),
    ("b.cols(16 * k, 16)", "b.cols(32 * k, 32)"),
)  # fmt: skip
INT8 = edit(
    TENSOR_MEMORY,
    ("A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32]", "A: LM.tma2d[LM.i8], B: LM.tma2d[LM.i8], C: LM.gmem2d[LM.i32]"),
    ("shape=(128, 64), dtype=lm.bf16", "shape=(128, 128), dtype=lm.i8"),
    ("shape=(128, 64), dtype=lm.bf16", "shape=(128, 128), dtype=lm.i8"),
    ("dtype=lm.f32)\n    load", "dtype=lm.i32)\n    load"),
)  # fmt: skip
NARROW_N = edit(TILE, ("shape=(128, 64), dtype=lm.bf16", "shape=(24, 64), dtype=lm.bf16"), ("shape=(64, 128), dtype=lm.f32", "shape=(64, 24), dtype=lm.f32"))
MN_MAJOR = edit(TILE, ("b = pool.view(offset=8192, shape=(128, 64)", "b = pool.view(offset=8192, shape=(64, 128)"), ("lm.mma(acc, a, b, init=True)", "lm.mma(acc, a, b.T, init=True)"))
FP8_MN = edit(FP8, ("lm.mma(acc, a, b, init=True)", "lm.mma(acc, a, b.T, init=True)"))
CHUNK = edit(
    TILE,
    ("b = pool.view(offset=8192, shape=(128, 64)", "b = pool.view(offset=8192, shape=(64, 192)"),
    ("lm.smem(24576)", "lm.smem(32768)"),
    ("shape=(64, 128), dtype=lm.f32", "shape=(64, 64), dtype=lm.f32"),
    ("lm.mma(acc, a, b, init=True)", "lm.mma(acc, a, b.cols(64, 64).T, init=True)"),
)  # fmt: skip
SWIZZLED = edit(TILE, ("offset=8192", "offset=8192 + 1024"), ("lm.smem(24576)", "lm.smem(26624)"))

GEMM_WS = (Path(__file__).parents[1] / "examples" / "gemm_ws.py").read_text("utf-8")
DECLARED = edit(
    MULTICAST, ("C: LM.gmem2d[LM.f32]", 'C: LM.gmem2d[LM.f32, "M", "N"]'), (", mask=lm.in_bounds(acc, rows=M - t.m * 64, cols=N - t.n * 128))", ")")
)  # fmt: skip

CASES = {
    # case: (bad, code, control)
    "C052 a swizzled tile on 128 bytes": (edit(SWIZZLED, ("8192 + 1024", "8192 + 128")), "D015", SWIZZLED),
    "C058 N of 24": (edit(NARROW_N, ("(24, 64)", "(28, 64)"), ("(64, 24)", "(64, 28)")), "H004", NARROW_N),
    "C060 an operand that starts inside a swizzle chunk": (edit(CHUNK, ("b.cols(64, 64)", "b.cols(96, 64)")), "D016", CHUNK),
    "C064 more rows than the view holds": (edit(TILE, ("lm.mma(acc, a, b, init", "lm.mma(acc, a, b.rows(64, 128), init")), "N047", TILE),
    "C069 tensor memory on consumer Blackwell": (edit(TENSOR_MEMORY, ("sm_100a", "sm_120a")), "H001", TENSOR_MEMORY),
    "C075 a plan of 228 KB on a part of 100 KB": (edit(GOOD["consumer"], ("STAGES=2", "STAGES=4")), "H002", GOOD["consumer"]),
    "C077 one byte too many": (pool_of(232449, "None"), "H002", pool_of(232448, "None")),
    "C079 integer tcgen05 on sm_103a": (edit(INT8, ("sm_100a", "sm_103a")), "H004", INT8),
    "C081 TMA on Ada": (edit(TILE, ("sm_90a", "sm_89")), "H001", TILE),
    "C081 fp8 MMA on Ampere": (SYNC_FP8, "H004", edit(SYNC_FP8, ("sm_80", "sm_89"))),
    "C083 sixteen named barriers": (named_barriers(16), "H010", named_barriers(15)),
    "C085 fp8 operand in the wrong major order": (FP8_MN, "H004", FP8),
    "C085 bf16 operand in that order": (FP8_MN, "H004", MN_MAJOR),
    "an operand on rows that are no atom for one member": (
        edit(GEMM_WS, ("smem_a[s].rows(64 * math.index, 64)", "smem_a[s].rows(60 * math.index, 64)")), "D016", GEMM_WS),
    "a store in front of the tensor": (edit(SYNC_MMA, ("lm.store(C, acc, coords=(0, 0))", "lm.store(C, acc, coords=(-8, 0))")), "S033", SYNC_MMA),
    "a ragged tile past a declared extent": (DECLARED, "S033", edit(DECLARED, ("lm.assume(K > 0)", "lm.assume(K > 0)\n    lm.assume(M % 64 == 0 and N % 128 == 0)"))),
    "a ragged tile that is clipped": (DECLARED, "S033", edit(DECLARED, ("coords=(t.n * 128, t.m * 64))", "coords=(t.n * 128, t.m * 64), clip=True)"))),
    "stores with gaps": (edit(MULTICAST, ("coords=(t.n * 128, t.m * 64), mask", "coords=(t.n * 256, t.m * 64), mask")), "Q001", MULTICAST),
    "a coordinate of 1.5": (edit(LOOP, ("coords=(k * 64, t.n * 128)", "coords=(1.5, t.n * 128)")), "N024", LOOP),
    "multicast on consumer Blackwell": (edit(MULTICAST, ('"sm_90a"', '"sm_120a"')), "H005", MULTICAST),
    "a budget that is no multiple of 8": (edit(LOOP, ("regs=40", "regs=42")), "H006", LOOP),
    "a store of one tile by every tile": (edit(LOOP, ("t.n * 128, t.m * 64))\n        lm", "t.n * 128, 64))\n        lm")), "Q001", LOOP),
    "stores that overlap": (edit(LOOP, ("c.tma_store(C, coords=(t.n * 128", "c.tma_store(C, coords=(t.n * 64")), "Q001", LOOP),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_bad_input_is_caught_by_its_rule(name):
    bad, code, _ = CASES[name]
    verdict = verify_text(bad)
    assert verdict.verdict == "fail"
    assert verdict.errors[0].code == code, [f"{d.code} {d.message}" for d in verdict.errors]


@pytest.mark.parametrize("name", CASES)
def test_the_control_is_accepted(name):
    verdict = verify_text(CASES[name][2])
    assert not verdict.errors, [f"{d.code} {d.message} {d.span}" for d in verdict.errors]


@pytest.mark.parametrize(("regs", "fits"), [((40, 232, 232), True), ((40, 232, 240), False), ((80, 208, 208), True), ((80, 224, 224), False), ((24, 240, 240), True)])
def test_the_register_pool_is_what_was_measured(regs, fits):
    roles = "".join(f"    r{i} = lm.role(warps=range({4 * i}, {4 * i + 4}), regs={n})\n" for i, n in enumerate(regs))
    blocks = "".join(f"    with r{i}:\n        lm.pdl_wait()\n" for i in range(3))
    verdict = verify_text(f'@cake.schedule(target="sm_90a")\ndef f(lm, X: LM.gmem1d[LM.f32]):\n{roles}{blocks}')
    assert [d.code for d in verdict.errors] == ([] if fits else ["H006"])


def test_a_wide_accumulator_needs_registers_at_launch():
    wide = edit(
        TILE,
        ("shape=(128, 64), dtype=lm.bf16", "shape=(256, 64), dtype=lm.bf16"),
        ("shape=(64, 128), dtype=lm.f32", "shape=(64, 256), dtype=lm.f32"),
        ("lm.smem(24576)", "lm.smem(40960)"),
    )  # fmt: skip
    assert not verify_text(wide).errors
    crowded = edit(wide, ("load = lm.role(warps=range(4, 8))", "load = lm.role(warps=range(4, 16))"))
    verdict = verify_text(crowded)
    assert [d.code for d in verdict.errors] == ["H006"]
    assert "154" in verdict.errors[0].message and "128" in verdict.errors[0].message


def test_fixes_that_are_certain_mend_what_they_are_for():
    from cake_ir.fault import Edit

    def apply(text, edits):
        lines = text.split("\n")
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)
        for e in sorted(edits, key=lambda e: e.span, reverse=True):
            assert isinstance(e, Edit)
            text = text[: starts[e.span.line - 1] + e.span.column - 1] + e.text + text[starts[e.span.end_line - 1] + e.span.end_column - 1 :]
        return text

    from cake_verify.rule import ROOMS, room

    tried = 0
    for page in (rule.page for name in ROOMS for rule in room(name)):
        verdict = verify_text(page.failing, params=dict(page.params))
        for d in verdict.diagnostics:
            for fix in d.fixes:
                if d.code == page.code and fix.grade == "certain":
                    tried += 1
                    mended = verify_text(apply(page.failing, fix.edits), params=dict(page.params))
                    assert d.message not in {x.message for x in mended.diagnostics}, (page.code, fix.title)
    assert tried >= 3


@pytest.mark.parametrize(("count", "message"), [("n + 1", "dimension 1 of `PO` is `NP` = n + 1, `po` has n"), ("n - 1", "dimension 1 of `PO` is `NP` = n - 1, `po` has n")])
def test_a_workspace_is_as_large_as_the_launch_is_told(count, message):
    text = edit(GOOD["decode_plan"], ('O=o, B=B, NP=n, after="pdl"', f'O=o, B=B, NP={count}, after="pdl"'))
    assert [(d.code, d.message) for d in verify_text(text).errors] == [("D030", message)]

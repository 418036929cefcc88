"""Names that are numbers once more after they held what a reduction left, and what is said where they cannot be."""

from __future__ import annotations

from cake_verify import verify_text

SUMS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def sums(lm, X: LM.gmem2d[LM.f32, "B", "V"], Y: LM.gmem2d[LM.f32, "B", 2], B: LM.i32, V: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(32)
    s = pool.view(offset=0, shape=(4,), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            total = 0.0
            for c in lm.range(lm.cdiv(V, 512)):
                x = lm.load(X, coords=(c * 512, t.b), shape=(512,), clip=True)
                total = total + lm.reduce(x, "add", across=work, scratch=s, sync=meet)
                lm.sync(meet)
            lm.store(Y, total, coords=(0, t.b))
            total = 0.0
            for c in lm.range(lm.cdiv(V, 512)):
                x = lm.load(X, coords=(c * 512, t.b), shape=(512,), clip=True)
                total = total + lm.reduce(x * x, "add", across=work, scratch=s, sync=meet)
                lm.sync(meet)
            lm.store(Y, total, coords=(1, t.b))
'''


def _first(text: str) -> tuple[str, str]:
    found = verify_text(text).diagnostics
    return (found[0].code, found[0].help) if found else ("", "")


def test_a_name_starts_from_a_literal_a_second_time() -> None:
    assert verify_text(SUMS).verdict == "pass"


def test_a_branch_on_what_a_reduction_left_is_told_two_ways_out() -> None:
    code, advice = _first(SUMS.replace("            lm.store(Y, total, coords=(0, t.b))\n", "            if total > 0.0:\n                lm.store(Y, total, coords=(0, t.b))\n"))
    assert code == "N064" and "lm.where" in advice and "view.ld" in advice


def test_the_variable_of_a_static_loop_is_no_compile_time_value() -> None:
    code, advice = _first(SUMS.replace("            total = 0.0\n", "            for p in lm.static_range(2):\n                far = (16, 4)[p]\n            total = 0.0\n", 1))
    assert code == "N024" and "`p`" in advice and "n = n + 1" in advice


def test_a_read_behind_and_is_bound_in_front() -> None:
    text = SUMS.replace('"V"], Y', '"V"], n: LM.gmem1d[LM.i32, "B"], Y').replace("x = lm.load(X, coords=(c * 512, t.b), shape=(512,), clip=True)", "x = lm.load(X, coords=(c * 512, t.b), shape=(512,), clip=True)\n                x = lm.where((lm.iota(x, 0) > 3) and (lm.iota(x, 0) < lm.ld(n, t.b)), x, 0.0)", 1)
    code, advice = _first(text)
    assert code == "N065" and "name in front" in advice


def test_one_element_is_read_as_a_number() -> None:
    code, advice = _first(SUMS.replace("            total = 0.0\n", '            one = lm.load(X, coords=(0, t.b), shape=(1,), form="vec")\n            total = 0.0\n', 1))
    assert code == "D026" and "lm.ld" in advice

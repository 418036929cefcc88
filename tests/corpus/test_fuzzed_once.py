"""Texts that once broke the promise of an answer, found by `python -m bench.verify.fuzz`, each reduced to its cause."""

import time
from pathlib import Path

import pytest

from bench.verify import fuzz
from cake_verify import verify_text
from cake_verify.rules.examples import LOOP, SYNC_MMA, TILE, edit

HEAD = '@cake.schedule(target="sm_90a")\ndef f(lm, M: LM.i32):\n    work = lm.role(warps=range(0, 4))\n    with work:\n        '


def nested(depth: int) -> str:
    """Loops inside each other."""
    lines = ["    " * d + f"for i{d} in lm.range(M):" for d in range(depth)]
    return ("\n" + " " * 8).join([*lines, "    " * depth + "lm.fence_proxy()"])


ONCE = {
    "cases of a match statement have no place": (HEAD + "match M:\n            case 1: pass\n", "N005"),
    "Python nests twenty blocks and no more": (HEAD + nested(22) + "\n", "N002"),
    "a view is cut at a fraction": (edit(LOOP, ("lm.mma(acc, a[s], b[s], init", "lm.mma(acc, a[s], b[s].rows(0.5 * k, 128), init")), "D003"),
    "a coordinate that is no number": (edit(LOOP, ("a.tma_load(A, coords=(k * 64,", "a.tma_load(A, coords=(lm.fence_proxy(),")), "N021"),
    "a fragment is spread over one number of warps": (edit(SYNC_MMA, ("warps=(2, 2)", "warps=4")), "N057"),
    "as many tiles as a fragment": (edit(LOOP, ("tiles=(lm.cdiv(M, 64), ", 'tiles=(lm.frag(shape=(64, 64), dtype=lm.f32, form="acc"), ')), "N021"),
    "a shift by more bits than there are": (edit(LOOP, ("for k in lm.range(kt):", "for k in lm.range(M << 10**9):")), "N022"),
    "a view of no pool": (edit(LOOP, ("b = pool.view", "b = lm.view")), "N028"),
    "a view is cut at infinity": (edit(LOOP, ("lm.mma(acc, a[s], b[s], init", "lm.mma(acc, a[s], b[s].rows(1e400 * k, 128), init")), "D003"),
}


@pytest.mark.parametrize("name", ONCE)
def test_a_text_that_broke_the_verifier_gets_its_error(name: str) -> None:
    text, code = ONCE[name]
    verdict = verify_text(text)
    assert [d.code for d in verdict.errors][:1] == [code], verdict.to_text()


def test_loops_as_deep_as_the_language_allows_are_walked() -> None:
    assert all(d.code != "N999" for d in verify_text(HEAD + nested(16) + "\n").diagnostics)


def test_a_very_long_schedule_with_a_fault_is_told_in_time() -> None:
    text = edit(LOOP, ("                lm.arrive(empty, stage=s)\n", "                lm.arrive(empty, stage=s)\n" * 400 + "                lm.wait(full, stage=s)\n" * 400))
    started = time.process_time()
    assert verify_text(text).verdict == "fail"
    assert time.process_time() - started < 2.0


TILES = """
@cake.schedule(target="sm_90a")
def f(lm, M: LM.i32, X: LM.gmem1d[LM.f32, "M"]):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(M,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = t.r + 3
            for i in lm.range(64):
                x = {value}
            lm.store(X, lm.cast(x, lm.f32), coords=(lm.min(x, t.r),))
"""


@pytest.mark.parametrize("value", ["x * x", "x << 40", "1 << x", "x + x", "1 << M * M * M", "M << M"])
def test_a_number_that_doubles_its_length_in_every_round_is_walked_in_time(value: str) -> None:
    started = time.process_time()
    verdict = verify_text(TILES.format(value=value))
    assert all(d.code != "N999" for d in verdict.diagnostics)
    assert time.process_time() - started < 2.0


def test_a_division_by_zero_while_walking_is_not_decided() -> None:
    verdict = verify_text(TILES.format(value="t.r // (M - M)"))
    assert verdict.verdict == "undecided" and [d.code for d in verdict.diagnostics] == ["S090"]


@pytest.mark.parametrize("head", ["for i{} in lm.static_range(1):", "for i{} in lm.range(2):", "if M > {}:", "for i{} in lm.range(M):"])
@pytest.mark.parametrize("op", ["lm.mma(acc, a, b)", "lm.fence_proxy()", "s = lm.step(ring)"])
def test_blocks_inside_each_other_are_told_in_time(head: str, op: str) -> None:
    deep = "".join("    " * (d + 2) + head.format(d) + "\n" for d in range(15)) + "    " * 17 + op + "\n"
    text = edit(TILE, ("        lm.mma_wait(pending=0)\n", "        lm.mma_wait(pending=0)\n" + deep), ("def tile(lm,", "def tile(lm, M: LM.i32,"))
    started = time.process_time()
    assert all(d.code != "N999" for d in verify_text(text).diagnostics)
    assert time.process_time() - started < 2.0


def test_a_grid_of_a_million_tiles_is_not_walked() -> None:
    good = (Path(__file__).resolve().parents[2] / "bench" / "verify" / "corpus" / "gemm_serial_k.py").read_text("utf-8")
    assert "PARTS=3," in good
    started = time.process_time()
    verdict = verify_text(good.replace("PARTS=3,", "PARTS=1_000_000,"))
    assert verdict.verdict == "undecided" and any("tiles" in d.message for d in verdict.diagnostics if d.code == "S090")
    assert time.process_time() - started < 2.0


CORPUS = Path(__file__).resolve().parents[2] / "bench" / "verify" / "corpus"


def test_copies_that_nobody_waits_for_in_a_loop_of_millions_of_rounds_are_told_in_time() -> None:
    text = (CORPUS / "gemm_int8_row_scales.py").read_text("utf-8")
    assert "lm.assume(K > 0 and" in text
    started = time.process_time()
    verdict = verify_text(text.replace("lm.assume(K > 0 and", "lm.assume(K > 10**7 and"))
    assert verdict.verdict == "undecided" and [d.code for d in verdict.diagnostics if d.code != "S090"] == []
    assert time.process_time() - started < 2.0


def test_a_box_of_too_few_entries_is_told_once() -> None:
    text = (CORPUS / "decode_cluster_merge.py").read_text("utf-8")
    old = "sv.tma_load(vc, coords=(0, t.h, page * PAGE), stage=s, barrier=landed, box=(D, 1, PAGE))"
    assert text.count(old) == 1
    assert [d.code for d in verify_text(text.replace(old, old.replace("(D, 1, PAGE)", "(1, PAGE)")), suggest=False).diagnostics] == ["H003"]


def test_a_tensor_read_into_one_name_hundreds_of_times_is_told_in_time() -> None:
    text = (CORPUS / "rope_qk_fp8_cache.py").read_text("utf-8")
    line = next(each for each in text.splitlines(keepends=True) if each.lstrip().startswith("hi = lm.cast(lm.load("))
    started = time.process_time()
    assert verify_text(text.replace(line, line * 400)).verdict == "pass"
    assert time.process_time() - started < 2.0


def test_an_extent_larger_than_any_float_is_no_overflow() -> None:
    text = (CORPUS / "residual_inplace.py").read_text("utf-8")
    assert text.count('LM.gmem1d[LM.i32, 1]') == 1
    assert verify_text(text.replace("LM.gmem1d[LM.i32, 1]", f"LM.gmem1d[LM.i32, {'9' * 400}]")).verdict == "pass"


def test_a_place_that_memory_decides_is_told_apart_once_and_not_for_every_meeting() -> None:
    text = (CORPUS / "silu_mul_masked_quant.py").read_text("utf-8")
    store = next(line for line in text.splitlines(keepends=True) if line.lstrip().startswith("lm.store(S, s,"))
    started = time.process_time()
    assert verify_text(text.replace(store, store + store)).verdict != "fail"
    assert time.process_time() - started < 1.5


def test_the_fuzzer_runs_and_finds_nothing_in_a_few_seconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main(["--minutes", "0.1", "--seed", "11", "--found", str(tmp_path)]) == 0
    assert " 0 broken" in capsys.readouterr().out


def test_an_answer_that_json_cannot_hold_is_told() -> None:
    class Broken:
        diagnostics = ()

        def to_json(self, limit: object) -> object:
            return float("nan")

        def to_text(self) -> str:
            return ""

    with pytest.raises(ValueError, match="JSON"):
        fuzz.answered(Broken(), "x")

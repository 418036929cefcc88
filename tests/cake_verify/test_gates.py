"""Order, stop policy, verdicts and what a caller may ask."""

import inspect
import re
from pathlib import Path

import pytest

import cake_verify
from cake_verify import portability, verify, verify_text
from cake_verify.rule import checks
from cake_verify.rules.examples import COPY, LOOP, MULTICAST, PLAN, SYNC_MMA, TENSOR_MEMORY, TILE, edit

EXAMPLES = {p.stem: p.read_text("utf-8") for p in sorted((Path(__file__).parents[1] / "examples").glob("*.py"))}
FRAGMENT = '''\
@cake.schedule()
def fmha_fwd(lm, Q: LM.tma3d, O: LM.tma2d, seqlen_q: LM.i32):
    pool = lm.smem(98304)
    smem_q = pool.view(offset=0, shape=(128, 128), dtype=lm.bf16, stage=3)
    tmem_acc = lm.tmem(cols=0, width=128, shape=(128, 128), dtype=lm.f32)
    load = lm.role(warps=[0])
    mma = lm.role(warps=[1])
    pipe = lm.pipeline(stages=3)
    q_full = lm.barrier(count=3, prod=[load], cons=[mma], init_count=1, pipeline=pipe)
    with load:
        for stage in lm.range(0, 3):
            smem_q.tma_load(Q, coords=(0, 0, stage), stage=stage, barrier=q_full)
    with mma:
        for stage in lm.range(0, 3):
            lm.wait(q_full, stage=stage)
            lm.fence_proxy()
            lm.mma(tmem_acc, smem_q[stage], smem_q[stage], init=(stage == 0))
'''


def codes(verdict, severity=None):
    return [d.code for d in verdict.diagnostics if severity in (None, d.severity)]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_pass_without_a_word(name):
    verdict = verify_text(EXAMPLES[name], filename=f"{name}.py")
    assert (verdict.verdict, verdict.diagnostics) == ("pass", ())


@pytest.mark.parametrize("text", [COPY, TILE, LOOP, MULTICAST, SYNC_MMA, TENSOR_MEMORY], ids=["copy", "tile", "loop", "multicast", "sync", "tensor"])
def test_the_small_schedules_of_the_pages_pass(text):
    verdict = verify_text(text)
    assert (verdict.verdict, [(d.code, d.message) for d in verdict.diagnostics]) == ("pass", [])


def test_the_fragment_on_the_target_that_has_tensor_memory():
    verdict = verify_text(FRAGMENT, target="sm_100a")
    assert verdict.verdict == "fail"
    by_code = {d.code: d for d in verdict.diagnostics}
    assert by_code["P001"].severity == "note" and "redundant" in by_code["P001"].message
    assert "swizzle" in by_code["D016"].message and by_code["D016"].fixes[0].grade == "certain"
    assert "never committed and never stored" in by_code["Q005"].message


@pytest.mark.parametrize("target", ["sm_120a", "sm_121a", "sm_90a", "sm_80"])
def test_the_fragment_is_refused_where_there_is_no_tensor_memory(target):
    first = verify_text(FRAGMENT, target=target).diagnostics[0]
    assert (first.code, first.gate, first.span.line) == ("H001", "conformance", 5)
    assert "tensor memory" in first.message and target in first.message and "sm_100a, sm_103a" in first.message


def test_without_a_target_the_verdict_is_open_and_says_so():
    verdict = verify_text(edit(COPY, ('target="sm_90a"', "")))
    assert verdict.verdict == "undecided"
    assert codes(verdict) == ["H090"]
    assert verify_text(edit(COPY, ('target="sm_90a"', "")), default_target="sm_90a").verdict == "pass"


def test_the_target_of_the_request_wins_over_the_schedules_and_the_default_does_not():
    assert verify_text(COPY, target="sm_80").target == "sm_80"
    assert verify_text(COPY, default_target="sm_80").target == "sm_90a"
    assert verify_text(SYNC_MMA, target="sm_90a").verdict == "pass"


def test_an_unknown_target_is_a_located_fault_with_the_nearest_name():
    verdict = verify_text(COPY, target="sm_90")
    assert codes(verdict) == ["N015"]
    assert "sm_90a" in verdict.diagnostics[0].help


def test_a_schedule_for_several_targets_is_checked_for_each():
    text = edit(TILE, ('target="sm_90a"', 'target=("sm_90a", "sm_120a")'))
    verdict = verify_text(text)
    assert verdict.verdict == "fail"
    assert {d.target for d in verdict.errors} == {"sm_120a"}


def test_every_schedule_of_a_text_is_verified_and_named():
    text = COPY + edit(TILE, ("lm.mma_wait(pending=0)\n        ", ""))
    verdict = verify_text(text)
    assert verdict.schedules == ("copy", "tile")
    assert {d.schedule for d in verdict.errors} == {"tile"}
    assert verify_text(text, schedule="copy").verdict == "pass"


def test_a_schedule_that_is_not_there_is_said():
    verdict = verify_text(COPY, schedule="kopy")
    assert codes(verdict) == ["N066"] and "copy" in verdict.diagnostics[0].help


def test_parameters_go_to_the_schedules_that_declare_them():
    sized = edit(COPY, ("Y: LM.gmem1d[LM.f32]", "Y: LM.gmem1d[LM.f32], *, N=512"), ("shape=(512,)", "shape=(N,)"))
    text = sized + TILE
    assert verify_text(text, params={"N": 256}).verdict == "pass"
    assert codes(verify_text(text, params={"N": "many"})) == ["N031"]
    assert codes(verify_text(text, params={"M": 1})) == ["N030"]


def test_static_gates_report_everything_and_safety_waits_for_them():
    text = edit(LOOP, ("regs=40", "regs=41"), ("lm.smem(65536)", "lm.smem(65535)"), ("                lm.arrive(empty, stage=s)\n", ""))
    verdict = verify_text(text)
    assert {"H006", "D014"} <= set(codes(verdict, "error"))
    assert not [d for d in verdict.diagnostics if d.gate == "safety"]
    mended = edit(text, ("regs=41", "regs=40"), ("lm.smem(65535)", "lm.smem(65536)"))
    assert [d for d in verify_text(mended).errors if d.gate == "safety"]


def test_at_most_five_errors_are_shown_and_the_rest_are_counted():
    lines = "".join(f"        y{i} = lm.write{i}(x)\n" for i in range(9))
    verdict = verify_text(edit(COPY, ("        lm.store(Y", lines + "        lm.store(Y")))
    assert len(verdict.errors) == 9
    shown = verdict.to_json()
    assert len(shown["diagnostics"]) == 5 and shown["more_errors"] == 4
    assert len(verdict.to_json(limit=None)["diagnostics"]) == 9
    assert "(4 more errors not shown)" in verdict.to_text()


def test_errors_come_first_and_in_gate_order():
    text = edit(LOOP, ("regs=40", "regs=41"), ('kind="static"', 'kind="grid"'), ("    kt =", "    spare = lm.pipeline(stages=2)\n    kt ="))
    gates = [d.gate for d in verify_text(text).diagnostics]
    assert gates == ["conformance", "schedule", "schedule"]
    assert [d.severity for d in verify_text(text).diagnostics] == ["error", "error", "warning"]


def test_warnings_and_notes_leave_the_verdict_alone():
    verdict = verify_text(edit(COPY, ("    with work", "    spare = lm.pipeline(stages=2)\n    with work")))
    assert (verdict.verdict, codes(verdict)) == ("pass", ["Q003"])


def test_verify_takes_a_program():
    from cake_ir import parse, specialise

    program = specialise(parse(LOOP).schedules[0]).program
    assert verify(program).verdict == "pass"


def test_a_failure_of_a_rule_is_one_line_and_no_proof(monkeypatch):
    from cake_verify import rule
    from cake_verify.rules.conformance import h007_threads

    def broken(program):
        raise RuntimeError("inside")

    monkeypatch.setattr(h007_threads, "check", broken)
    rule.room.cache_clear()
    rule.checks.cache_clear()
    try:
        verdict = verify_text(COPY)
    finally:
        monkeypatch.undo()
        rule.room.cache_clear()
        rule.checks.cache_clear()
    assert (verdict.verdict, codes(verdict)) == ("undecided", ["N999"])
    d = verdict.diagnostics[0]
    assert (d.gate, d.severity) == ("internal", "warning") and "H007" in d.message and "RuntimeError" in d.message


def test_portability_says_where_it_runs_and_why_not_elsewhere():
    report = portability(SYNC_MMA)
    assert {t: r["verdict"] for t, r in report.items()} == dict.fromkeys(report, "pass") and len(report) == 7
    report = portability(TILE)
    assert [t for t, r in report.items() if r["verdict"] == "pass"] == ["sm_90a"]
    assert "wgmma" in report["sm_100a"]["diagnostics"][0]["message"]


def test_portability_offers_the_smallest_change():
    found = next(d for d in portability(MULTICAST)["sm_120a"]["diagnostics"] if d["code"] == "H005")
    edits = found["fixes"][0]["edits"]
    assert {e["text"] for e in edits} == {"(1, 1)", '"cta"', "None"} and len(edits) == 4


def test_plans_are_taken_along():
    verdict = verify_text(PLAN)
    assert verdict.verdict == "pass" and verdict.schedules == ("copy",)


def test_names_are_imported_when_asked_for():
    assert cake_verify.explain("H001").startswith("# H001")
    with pytest.raises(AttributeError):
        _ = cake_verify.nothing


def test_extents_that_break_an_assumption_are_a_warning():
    verdict = verify_text(LOOP, extents={"M": 64, "N": 128, "K": 0})
    assert (verdict.verdict, codes(verdict)) == ("pass", ["Q022"])
    assert "K = 0" in verdict.diagnostics[0].message
    assert not verify_text(LOOP, extents={"M": 64, "K": 64}).diagnostics
    assert not verify_text(LOOP, extents={"unknown": 1}).diagnostics


def test_copies_that_a_barrier_completes_need_no_wait_of_their_issuer():
    text = '''
@cake.schedule(target="sm_80")
def gemm(lm, A: LM.gmem2d[LM.bf16], C: LM.gmem2d[LM.bf16]):
    pool = lm.smem(4096)
    a = pool.view(offset=0, shape=(64, 32), dtype=lm.bf16, swizzle="64b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="cp_async")
    with load:
        s = lm.step(ring)
        a.cp_async(A, coords=(0, 0), stage=s)
        lm.arrive(full, stage=s)
    with math:
        s = lm.step(ring)
        lm.wait(full, stage=s)
        lm.store(C, a.load(form="vec"), coords=(0, 0))
'''
    assert not verify_text(text).errors


def test_a_rule_that_looks_at_the_target_says_so():
    for name in ("construct", "consistency", "conformance"):
        for rule, check in checks(name):
            reads = re.search(r"\.target\b", inspect.getsource(inspect.getmodule(check)).partition("def check")[2]) is not None
            assert rule.targeted == reads, rule.page.code

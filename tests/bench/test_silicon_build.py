"""From a mutant's text to a cubin with delays, past the verifier; and what the report makes of results."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.verify.cases import CASES
from bench.verify.measure import TruthStore
from bench.verify.silicon_build import build, write_arguments
from bench.verify.silicon_child import fault_kind, setting_of
from bench.verify.silicon_compare import differs
from bench.verify.silicon_delays import DELAY, delayed
from bench.verify.silicon_report import joined, judged, listing, retried, summary, table, together
from bench.verify.silicon_sample import UNJUDGED, Pick, candidates, controls, disagreement, hopper_subjects, sample
from bench.verify.truth import program_of
from cake_backend.cuda.lower import lower


def pick(subject: str, old: str, new: str) -> Pick:
    text = CASES[subject].text()
    assert old in text
    return Pick(f"{subject}/test/0", "test", subject, new, text.replace(old, new, 1), (), {"state": "harmful"}, "fail", ("S003",), False, "sample")


def test_a_mutant_that_the_verifier_refuses_becomes_a_cubin_with_delays(tmp_path: Path) -> None:
    dropped = pick("segment_mean", "lm.wait(full, stage=s)", "pass")
    (control,) = controls(["segment_mean"])
    records = build([control, dropped], tmp_path / "m")
    assert [r["built"] for r in records] == ["ok", "ok"], records
    assert control.verdict == "pass" and records[1]["sites"] < records[0]["sites"]
    for p in (control, dropped):
        folder = tmp_path / "m" / p.name
        cubin = lzma.decompress((folder / "kernel.cubin.xz").read_bytes())
        assert cubin.startswith(b"\x7fELF") and b"cake_seed" in cubin
        spec = json.loads((folder / "case.json").read_text())
        assert len(spec["settings"]) == len(CASES["segment_mean"].settings)
        assert all(launch["tiles"] <= 2 for s in spec["settings"] for launch in s["launches"] if launch["persistent"])
    stale = {**records[1], "verdict": "pass", "codes": []}
    again = judged(stale, json.loads((tmp_path / "m" / "texts.json").read_text())[dropped.key])
    assert again["verdict"] == "fail" and again["codes"]
    with np.load(tmp_path / "m" / "arguments" / "segment_mean.npz") as arguments:
        bound = json.loads((tmp_path / "m" / control.name / "case.json").read_text())["settings"][0]
        assert all(arguments[f"0.in.{n}"].nbytes == t["nbytes"] for n, t in bound["tensors"].items())
        assert np.isfinite(arguments["0.want.Y"].view(np.float32)).all() and np.isnan(arguments["0.in.Y"].view(np.float32)).all()


def test_what_cannot_be_lowered_is_recorded_with_its_reason(tmp_path: Path) -> None:
    (record,) = build([pick("gemm_deep", "offset=0", "offset=8")], tmp_path / "m")
    assert record["built"] != "ok" and record["detail"], record
    assert not (tmp_path / "m" / "gemm_deep.test.0").exists()


@pytest.mark.parametrize("name", hopper_subjects())
def test_every_wait_and_arrival_of_a_schedule_gets_delays_and_every_wait_a_limit(name: str) -> None:
    program = program_of(CASES[name].text(), CASES[name])
    assert program is not None
    text = lower(program).text
    assert "cake_" not in text, "the lowering itself knows no delays"
    changed = delayed(text)
    waits = text.partition('extern "C"')[2].count(" mbarrier_wait")
    assert changed.sites >= 2 * waits and changed.bounded == text.count("u32 polls = 0;") + text.count("AGAIN: ")
    assert changed.stalls > 0, "accesses stall too"
    kept = [line for line in changed.text.replace(DELAY, "").split("\n") if not line.strip().startswith(("cake_delay(", "cake_stall("))]
    assert len(kept) == len(text.split("\n"))


def test_a_text_of_another_form_is_refused() -> None:
    for text in ("", '#define DEVICE x\nextern "C" __global__ void k() {\n  if (x)\n    mbarrier_arrive(bar);\n}\n'):
        with pytest.raises(ValueError):
            delayed(text)


def test_a_sample_covers_every_class_and_both_states() -> None:
    def made(cls: str, state: str, n: int) -> list[Pick]:
        return [Pick(f"s{i}/{cls}/{i}", cls, f"s{i % 3}", "", "", (), {"state": state}, "fail" if state == "harmful" else "pass", (), False, "") for i in range(n)]

    pool = made("drop-wait", "harmful", 20) + made("swizzle", "harmless", 20) + made("swizzle", "harmful", 5) + made("pdl", "unknown", 9)
    chosen = sample(pool, 12)
    assert len(chosen) == 12 and len({p.key for p in chosen}) == 12
    assert {p.cls for p in chosen} == {"drop-wait", "swizzle", "pdl"}
    assert {p.truth["state"] for p in chosen if p.cls == "swizzle"} == {"harmful", "harmless"}
    assert sum(p.truth["state"] == "unknown" for p in chosen) == 2
    assert chosen == sample(pool, 12)


@pytest.mark.parametrize(
    ("verdict", "state", "contract", "expected"),
    [("fail", "harmful", False, False), ("pass", "harmless", False, False), ("pass", "harmful", False, True), ("fail", "harmless", False, True),
     ("fail", "harmless", True, False), ("fail", "unknown", False, False), ("undecided", "harmless", False, True)],
)  # fmt: skip
def test_disagreement_is_between_verifier_and_simulator(verdict: str, state: str, contract: bool, expected: bool) -> None:
    assert disagreement(verdict, state, contract) is expected


def test_every_setting_runs_and_the_first_one_most() -> None:
    for n in (1, 2, 3):
        runs = [setting_of(i, n) for i in range(20)]
        assert set(runs) == set(range(n)) and runs.count(0) >= 10


def test_a_fault_is_told_from_a_hang_by_its_time_and_from_a_refusal_by_its_stage() -> None:
    assert fault_kind({"stage": "run", "started": 0.0}, 0.41, 0.4) == "hang"
    assert fault_kind({"stage": "run", "started": 0.0}, 0.01, 0.4) == "fault"
    assert fault_kind({"stage": "launch"}, 0.0, 0.4) == fault_kind({"stage": "load"}, 0.0, 0.4) == "refused"
    assert fault_kind({"stage": "open"}, 0.0, 0.4) == "infra"


def test_outputs_differ_by_more_than_rounding_or_by_what_is_finite() -> None:
    want = {"Y": np.array([1.0, 2.0, np.nan], np.float32), "I": np.array([1, 2], np.int32)}
    assert differs({"Y": np.array([1.001, 2.0, np.nan], np.float32), "I": want["I"]}, want, 1e-2) == ""
    assert "off by" in differs({"Y": np.array([1.1, 2.0, np.nan], np.float32), "I": want["I"]}, want, 1e-2)
    assert "finite" in differs({"Y": np.array([1.0, np.nan, np.nan], np.float32), "I": want["I"]}, want, 1e-2)
    assert "finite" in differs({"Y": np.array([1.0, 2.0, 0.0], np.float32), "I": want["I"]}, want, 1e-2)
    assert "1 of 2" in differs({"Y": want["Y"], "I": np.array([1, 3], np.int32)}, want, 1e-2)


def row(key: str, verdict: str, state: str, kind: str = "X006", built: str = "ok") -> dict[str, Any]:
    return {
        "key": key, "cls": key.split("/")[1], "subject": key.split("/")[0], "title": "t", "lines": [], "truth": {"state": state, "kind": kind},
        "verdict": verdict, "codes": [], "contract": False, "diff": ["-a", "+b"], "built": built, "detail": "no such thing" if built != "ok" else "",
    }  # fmt: skip


def test_the_report_names_every_disagreement_with_its_change() -> None:
    cases = {
        "g/control/0": ("pass", "harmless", "mismatch", "control fails"),
        "g/control/1": ("pass", "harmless", "clean", ""),
        "g/drop-wait/0": ("fail", "harmful", "hang", ""),
        "g/drop-wait/1": ("pass", "harmful", "fault", "verifier missed"),
        "g/drop-wait/2": ("fail", "harmless", "damage", "simulator missed"),
        "g/drop-wait/3": ("fail", "harmful", "clean", "not shown"),
        "g/swizzle/0": ("fail", "harmless", "clean", "alarm unconfirmed"),
        "g/swizzle/1": ("pass", "harmless", "clean", ""),
        "g/swizzle/2": ("fail", "harmful", "refused", ""),
    }
    mutants = [row(k, v, s) for k, (v, s, _, _) in cases.items()] + [row("g/swizzle/9", "fail", "harmful", built="compiler")]
    results = [{"key": k, "outcome": o, "detail": "d", "gpu": "G"} for k, (_, _, o, _) in cases.items()]
    rows = joined(mutants, results)
    assert {m["key"]: m["kind"] for m in rows if m["key"] in cases} == {k: c[3] for k, c in cases.items()}
    report = summary(rows, {"seconds": 1.0, "runs": 20, "stopped": "", "results": results})
    assert [d["kind"] for d in report["disagreements"]] == ["control fails", "verifier missed", "simulator missed", "not shown", "alarm unconfirmed"]
    drop = report["classes"]["drop-wait"]
    assert (drop["mutants"], drop["bad_on_silicon"], drop["bad_and_flagged"], drop["harmful"], drop["harmful_shown"]) == (4, 3, 2, 3, 2)
    assert report["classes"]["swizzle"]["outcomes"] == {"clean": 2, "refused": 1, "not built": 1}
    assert sum(c["mutants"] for c in report["confusion"]) == 8 and report["gpu"] == "G"
    assert "drop-wait" in table(report) and "+b" in listing(report)


def test_other_numbers_that_a_verifier_cannot_know_are_listed_apart() -> None:
    (m,) = joined([row("g/wrong-tile/0", "pass", "harmful", "numbers")], [{"key": "g/wrong-tile/0", "outcome": "mismatch", "detail": ""}])
    assert m["kind"] == "values only"


def test_words_that_blocks_follow_each_other_by_may_hold_anything_afterwards(tmp_path: Path) -> None:
    write_arguments(CASES["gemm_stream_k"], tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as arguments:
        assert "0.free.READY" in arguments and "0.want.READY" not in arguments and "0.want.C" in arguments and "0.free.C" not in arguments


def test_mutants_of_earlier_reports_are_left_out_and_those_nobody_simulated_are_simulated_when_they_are_reported(tmp_path: Path) -> None:
    store = TruthStore(tmp_path / "truth.jsonl")
    found = candidates(["kv_append"], store)
    assert found and {p.truth["state"] for p in found} <= {UNJUDGED, "unknown"}
    assert all(p.expected == ("harmless" if p.verdict == "pass" else "harmful") for p in found if p.truth["state"] == UNJUDGED)
    gone = found[0]
    assert {p.key for p in candidates(["kv_append"], store, without=frozenset({(gone.key, gone.title)}))} == {p.key for p in found} - {gone.key}
    assert [p.key for p in candidates(["kv_append"], store, only=frozenset({gone.key}))] == [gone.key]
    few = candidates(["kv_append"], store, each=(1, 7))
    assert len({p.cls for p in found}) == len(few) < len(found)
    (dropped,) = (p for p in found if p.cls == "drop-fence")
    told = judged(dropped.record(), dropped.text, store)
    assert (told["verdict"], told["truth"]["state"], told["truth"]["kind"]) == ("fail", "harmful", "X008")
    assert TruthStore(tmp_path / "truth.jsonl").known, "what was simulated is kept"


def test_a_later_run_replaces_an_earlier_one_and_a_later_try_only_what_showed_nothing() -> None:
    def run(**outcomes: str) -> dict[str, Any]:
        return {"seconds": 1.0, "runs": 20, "stopped": "", "results": [{"key": k, "outcome": x} for k, x in outcomes.items()]}

    first, second = run(a="hang", b="clean", c="clean"), run(a="clean", b="mismatch", d="fault")
    replaced = {r["key"]: r["outcome"] for r in together([first, second], tries=False)["results"]}
    tried = together([first, second], tries=True)
    assert replaced == {"a": "clean", "b": "mismatch", "c": "clean"}
    assert {r["key"]: r["outcome"] for r in tried["results"]} == {"a": "hang", "b": "mismatch", "c": "clean", "d": "fault"} and tried["seconds"] == 2.0


def test_what_a_second_try_shows_counts_as_bad_in_the_report_of_the_first() -> None:
    rows = joined([row("g/drop-wait/0", "fail", "harmful"), row("g/drop-wait/1", "fail", "harmful")], [{"key": f"g/drop-wait/{i}", "outcome": "clean", "detail": ""} for i in (0, 1)])
    report = summary(rows, {"seconds": 1.0, "runs": 20, "stopped": "", "results": []})
    after = retried(report, {"mutants": [{"key": "g/drop-wait/1", "outcome": "mismatch", "detail": "Y", "mode": "smudge"}]})
    assert [d["key"] for d in after["disagreements"]] == ["g/drop-wait/0"]
    assert (report["all"]["harmful_shown"], after["all"]["harmful_shown"], after["classes"]["drop-wait"]["bad_and_flagged"]) == (0, 1, 1)

"""Process control of the experiment on silicon, with real children that hang, die and babble as a GPU makes them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.verify import silicon_run
from bench.verify.silicon_process import Limits, watch

SAY = "import json, os, signal, sys, time\ndef say(event, **f): print(json.dumps({'event': event, **f}), flush=True)\n"
LIMITS = Limits(start=5.0, silence=0.5)


def child(body: str, limits: Limits = LIMITS, deadline: float = 60.0) -> dict[str, object]:
    return watch([sys.executable, "-c", SAY + body], limits, time.monotonic() + deadline)


def test_the_last_line_of_a_child_is_its_result() -> None:
    found = child("say('ready', gpu='G'); say('run', run=0, setting=0, seed=0); say('end', outcome='clean', detail='', varied=False)")
    assert found["outcome"] == "clean" and found["gpu"] == "G" and found["run"] == 0 and not found["stuck"]


def test_a_silent_child_is_killed_within_the_limit_even_if_it_ignores_signals() -> None:
    body = "signal.signal(signal.SIGTERM, signal.SIG_IGN); say('ready'); say('run', run=3, setting=1, seed=77); time.sleep(60)"
    started = time.monotonic()
    found = child(body)
    assert time.monotonic() - started < 4
    assert found["outcome"] == "hang" and found["killed"] and (found["run"], found["setting"], found["seed"]) == (3, 1, 77)


def alive(status: Path) -> bool:
    try:
        return status.read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_child_of_the_child_is_killed_with_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    found = child(f"import subprocess; p = subprocess.Popen(['sleep', '60']); open({str(note)!r}, 'w').write(str(p.pid)); say('ready'); time.sleep(60)")
    assert found["outcome"] == "hang"
    status, end = Path(f"/proc/{note.read_text()}/stat"), time.monotonic() + 5
    while alive(status) and time.monotonic() < end:  # a killed process takes a moment to go
        time.sleep(0.02)
    assert not alive(status)


def test_a_child_that_dies_after_ready_is_a_fault_with_its_last_words() -> None:
    found = child("say('ready'); say('run', run=1); sys.stderr.write('bus error'); sys.stderr.flush(); os.kill(os.getpid(), signal.SIGSEGV)")
    assert found["outcome"] == "fault" and found["code"] == -11 and "bus error" in str(found["detail"])


def test_a_child_that_never_gets_ready_is_no_result_about_the_mutant() -> None:
    assert child("raise SystemExit('no driver')")["outcome"] == "infra"
    assert child("time.sleep(60)", Limits(start=0.5, silence=0.5))["outcome"] == "infra"


def test_lines_that_are_no_events_are_ignored_and_do_not_count_as_life() -> None:
    found = child("say('ready')\nwhile True: print('{]'); print('[1]', flush=True); time.sleep(0.05)")
    assert found["outcome"] == "hang"


def test_output_without_end_is_cut() -> None:
    started = time.monotonic()
    found = child("say('ready')\nwhile True: say('noise')")
    assert found["outcome"] == "infra" and time.monotonic() - started < 10


def test_at_the_deadline_a_child_is_unfinished() -> None:
    found = child("say('ready')\nwhile True: say('run', run=0); time.sleep(0.1)", deadline=1.0)
    assert found["outcome"] == "unfinished"


FAKE = (
    SAY
    + """
name = sys.argv[2]
if 'absent' in name: raise SystemExit(4)
say('ready', gpu='fake')
for run in range(int(sys.argv[4])):
    say('run', run=run, setting=0, seed=run)
    if 'spin' in name and run == 2: time.sleep(60)
    if 'crash' in name and run == 1: os.kill(os.getpid(), signal.SIGKILL)
say('end', outcome='mismatch' if 'wrong' in name else 'clean', detail='')
"""
)


@pytest.fixture
def mutants(tmp_path: Path) -> Path:
    (tmp_path / "fake.py").write_text(FAKE)
    keys = ["a/control/0", "b/spin/0", "b/spin/1", "b/crash/0", "c/wrong/0", "c/fine/0", "d/absent/0"]
    listed = [{"key": k, "cls": k.split("/")[1], "built": "ok"} for k in keys] + [{"key": "e/x/0", "cls": "x", "built": "compiler"}]
    (tmp_path / "index.json").write_text(json.dumps({"mutants": listed}))
    return tmp_path


def run(folder: Path, *more: str) -> dict[str, object]:
    out = folder / "out" / "silicon.json"
    common = ["--mutants", str(folder), "--out", str(out), "--child", str(folder / "fake.py"), "--silence-limit", "0.5", "--parallel", "3"]
    silicon_run.main([*common, *more])
    return json.loads(out.read_text())


def test_all_mutants_get_a_result_and_only_built_ones_run(mutants: Path) -> None:
    found = run(mutants, "--budget", "40", "--runs", "4")
    results = {r["key"]: r for r in found["results"]}  # type: ignore[attr-defined]  # JSON
    assert {k: r["outcome"] for k, r in results.items()} == {
        "a/control/0": "clean", "b/spin/0": "hang", "b/spin/1": "hang", "b/crash/0": "fault", "c/wrong/0": "mismatch", "c/fine/0": "clean",
        "d/absent/0": "infra",
    }  # fmt: skip
    assert results["b/spin/0"]["run"] == 2 and results["d/absent/0"]["tries"] == 2 and found["stopped"] == ""
    assert next(iter(results)) == "a/control/0" or found["results"][0]["at"] <= 2  # type: ignore[index]


def test_the_budget_ends_the_experiment_and_keeps_what_was_measured(mutants: Path) -> None:
    started = time.monotonic()
    found = run(mutants, "--budget", "1.5", "--runs", "4", "--silence-limit", "1.0", "--parallel", "1")
    assert time.monotonic() - started < 4
    assert found["stopped"] == "budget" and 1 <= len(found["results"]) < 7  # type: ignore[arg-type]


def test_controls_run_first_and_what_may_block_for_good_last() -> None:
    classes = ["register-pool", "drop-wait", "control", "drop-turn", "swizzle", "control"]
    ordered = silicon_run.ordered([{"key": str(i), "cls": c} for i, c in enumerate(classes)])
    assert [m["cls"] == "control" for m in ordered] == [True, True, False, False, False, False]
    assert {m["cls"] for m in ordered[-2:]} == {"register-pool", "drop-turn"}


def test_the_runner_needs_nothing_that_the_device_machine_lacks() -> None:
    code = "import sys, bench.verify.silicon_run, bench.verify.silicon_child; print(sorted({'pydantic', 'mcp', 'torch'} & set(sys.modules)))"
    root = Path(__file__).resolve().parents[2]
    ended = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"

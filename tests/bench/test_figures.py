"""The figures of lowering: what counts as a line, and a page that says what was recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import cake_kernels
from bench import figures, sass
from bench.candidates import CANDIDATES
from bench.figures import FILE, counted, cuda_lines, headlines, page, schedule_lines
from bench.run_costs import spent
from bench.search_costs import merged, totals

ROOT = Path(__file__).parents[2]


def test_the_page_is_current() -> None:
    assert (ROOT / "docs" / "lowering.md").read_text() == page(json.loads(FILE.read_text())), "run `python -m bench.figures --page`"


def test_docstrings_comments_and_blank_lines_are_no_lines_of_schedule() -> None:
    text = '"""A file."""\n\n# a note\n@cake.schedule(target="sm_90a")\ndef f(lm,\n      X: LM.i32):\n    """Two\n    lines."""\n    lm.launch(grid="tiles")  # said twice\n'
    assert schedule_lines(text) == 4
    assert cuda_lines("// head\n\nint a;  // x\n  // y\n}\n") == 2


def test_every_schedule_that_is_benchmarked_has_one_candidate() -> None:
    found = headlines([])
    assert len({(c.family, c.schedule) for c in found}) == len(found) == len({(c.family, c.schedule) for c in CANDIDATES})
    assert {c.family for c in headlines(["gemm"])} == {"gemm"}
    assert {s.family for s in cake_kernels.schedules()} >= {c.family for c in found}


@pytest.mark.parametrize("main", [figures.main, sass.main], ids=["figures", "sass"])
def test_a_family_that_does_not_exist_is_refused(main: Callable[[], int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    before = FILE.read_bytes()
    monkeypatch.setattr("sys.argv", ["bench", "gem"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2 and "there is no family `gem`" in capsys.readouterr().err and FILE.read_bytes() == before


def test_a_run_says_what_it_cost_and_how_many_variants_it_tried() -> None:
    results = [
        {"seconds": 1.25, "contenders": [{"name": "a", "kind": "cake"}, {"name": "peer", "kind": "peer"}]},
        {"seconds": 2.0, "contenders": [{"name": "a", "kind": "cake"}, {"name": "b", "kind": "cake"}]},
    ]
    assert spent(results, 9.87) == {"gpu_seconds": 9.9, "timing_seconds": 3.2, "variants_tried": 2}


def test_a_run_counts_once_in_what_the_search_cost() -> None:
    record = {"family": "gemm", "date": "d1", "results": [{"seconds": 1.5, "contenders": [{"name": "a", "kind": "cake"}, {"name": "p", "kind": "peer"}]}]}
    later = {**record, "date": "d2", "timing_seconds": 2.0, "gpu_seconds": 9.0, "results": [{"seconds": 2.0, "contenders": [{"name": n, "kind": "cake"} for n in "ab"]}]}
    known = merged(merged({}, [later, record]), [record])
    assert [run["date"] for run in known["gemm"]] == ["d1", "d2"]
    assert totals(known["gemm"]) == {"runs": 2, "variants_tried": 2, "timing_seconds": 3.5, "gpu_seconds": 9.0, "held_runs": 1}


def test_the_recorded_lines_are_those_of_today() -> None:
    recorded = {r["candidate"]: {n: r[n] for n in ("schedule_lines", "cuda_lines")} for r in json.loads(FILE.read_text())["rows"]}
    assert recorded == {c.name: counted(c) for c in headlines([])}, "run `python -m bench.figures --lines`"

"""The page of measured speeds says what the recorded results say."""

import json
from pathlib import Path

import pytest

from bench.performance import FAMILIES, RESULTS, page, recorded, rows_of
from bench.provenance import LEFT_OUT

ROOT = Path(__file__).parents[2]


def test_the_page_is_current() -> None:
    assert (ROOT / "docs" / "performance.md").read_text() == page(), "run `python -m bench.performance > docs/performance.md`"


@pytest.mark.parametrize("family", [f for f in FAMILIES if "-" not in f])  # the others are kept as evidence of earlier builds
def test_every_shape_has_at_least_twenty_rounds_of_right_outputs(family: str) -> None:
    for file in FAMILIES[family][1]:
        for result in json.loads((RESULTS / file).read_text())["results"]:
            assert result["rounds"] >= 20, (file, result["shape"])
            assert not [c["error"] for c in result["contenders"] if c["kind"] == "cake" and c["error"]], (file, result["shape"])
            assert all(c[mode]["floor_over_time"] <= 1 for c in result["contenders"] for mode in ("cold", "graph") if mode in c), (file, result["shape"])


def test_a_peer_that_was_not_asked_to_run_is_in_no_table() -> None:
    graph = {"median_s": 1e-6, "min_s": 1e-6, "max_s": 2e-6, "speedup_over": {"p": {"median": 2.0, "ci95": [1.9, 2.1]}}}
    mine = {"name": "cake_x", "kind": "cake", "error": None, "graph": graph}
    peers = [{"name": "p", "kind": "peer", "error": None}, {"name": "q", "kind": "peer", "error": LEFT_OUT}, {"name": "r", "kind": "peer", "error": "RuntimeError: no"}]
    (row,), ratios = rows_of({"results": [{"axes": {"M": 1}, "contenders": [mine, *peers]}]})
    assert "p **2.000** [1.900, 2.100]; r: not timed (failed)" in row and "q" not in row and "1.0 (1.0 to 2.0)" in row and ratios == {"p": [2.0]}


def test_a_variant_that_was_taken_out_since_is_counted_and_not_shown() -> None:
    def variant(name: str, seconds: float) -> dict[str, object]:
        return {"name": name, "kind": "cake", "error": None, "graph": {"median_s": seconds, "min_s": seconds, "max_s": seconds, "speedup_over": {}}}

    record = {"results": [{"axes": {"M": 1}, "contenders": [variant("cake_gone", 1e-6), variant("cake_here", 2e-6)]}]}
    assert "| `cake_here` | 2.0 (2.0 to 2.0) | 2 |" in rows_of(record, {"cake_here"})[0][0]
    assert "| `cake_gone` | 1.0 (1.0 to 1.0) | 2 |" in rows_of(record)[0][0]


def test_a_shape_that_was_timed_again_is_shown_once_from_the_later_run(tmp_path: Path) -> None:
    for name, date, shapes in (("all.json", "2026-01-02", ("a", "b")), ("part.json", "2026-01-03", ("b",)), ("old.json", "2026-01-01", ("b",))):
        (tmp_path / name).write_text(json.dumps({"date": date, "results": [{"shape": s} for s in shapes]}))
    found = recorded(("old.json", "all.json", "part.json", "absent.json"), tmp_path)
    assert [(file, [r["shape"] for r in record["results"]]) for file, record in found] == [("all.json", ["a"]), ("part.json", ["b"])]

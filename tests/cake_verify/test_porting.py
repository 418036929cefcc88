"""On which targets a text would run: all gates for each, and changes that hold what they promise."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_ir.fault import Edit
from cake_ir.targets import TARGETS
from cake_verify import portability, verify_text
from cake_verify.porting import Port, lines, ports
from cake_verify.proposals import applied
from cake_verify.rules.examples import LOOP, MULTICAST, SYNC_MMA, TILE, edit

ROOT = Path(__file__).resolve().parents[2]
KERNELS = sorted(p for p in (ROOT / "cake_kernels").rglob("*.py") if "@cake.schedule" in p.read_text("utf-8"))
CORPUS = sorted((ROOT / "bench" / "verify" / "corpus").glob("*.py"))

# TMA with multicast into mma.sync: what keeps it from consumer boards is the cluster alone.
SHARED = edit(
    (ROOT / "bench/verify/corpus/gemm_tma_mma_sync.py").read_text("utf-8"), ('target=("sm_120a", "sm_121a")', 'target="sm_90a"'), ('grid="persistent")', 'grid="persistent", cluster=(2, 1))'),
    ('arrive="warp", primed=True)', 'arrive="warp", primed=True, scope="cluster")'), ('raster="m", swizzle=4)', 'raster="m", swizzle=4, cluster=(2, 1))'),
    ("sb.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)", 'sb.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full, multicast="m")'),
)  # fmt: skip


def by_target(text: str, **options: object) -> dict[str, Port]:
    return {p.target: p for p in ports(text, **options)}  # type: ignore[arg-type]  # options of ports


def holds(text: str, port: Port) -> bool:
    """Whether the change, applied to the text, makes the target's verdict a pass."""
    assert port.change is not None
    return verify_text(applied(text, port.change.edits), params=dict(port.change.params), target=port.target).verdict == "pass"


def test_every_target_is_answered_with_its_reason() -> None:
    found = by_target(TILE)
    assert tuple(found) == TARGETS and [t for t, p in found.items() if p.verdict.verdict == "pass"] == ["sm_90a"]
    assert "[H001]" in found["sm_80"].why[0] and found["sm_90a"].why == () and found["sm_90a"].change is None
    assert found["sm_80"].change is None, "there is no small change from wgmma to sm_80"
    assert all(p.verdict.verdict == "pass" for p in ports(SYNC_MMA))


def test_all_gates_are_asked_not_only_the_static_ones() -> None:
    racy = edit(SYNC_MMA, ("        lm.cp_wait(pending=0)\n", ""))
    assert all(p.why and "[S" in p.why[0] for p in ports(racy))


def test_multicast_off_is_what_consumer_boards_need() -> None:
    assert verify_text(SHARED).verdict == "pass"
    found = by_target(SHARED)
    assert [t for t, p in found.items() if p.verdict.verdict == "pass"] == ["sm_90a", "sm_100a", "sm_103a"]
    for name in ("sm_120a", "sm_121a"):
        port = found[name]
        assert port.change is not None and "multicast off" in port.change.titles[0] and holds(SHARED, port)
        assert "None" in {e.text for e in port.change.edits}
        for e in port.change.edits:
            fewer = tuple(x for x in port.change.edits if x is not e)
            assert verify_text(applied(SHARED, fewer), target=name, suggest=False).verdict != "pass", "no edit is superfluous"


def test_a_ring_that_is_too_deep_gets_a_smaller_tunable() -> None:
    text = (ROOT / "cake_kernels/rmsnorm/hopper_ring_warps.py").read_text("utf-8")
    port = by_target(text)["sm_120a"]
    assert port.change is not None and port.change.edits == () and dict(port.change.params) == {"STAGES": 3} and holds(text, port)


def test_values_of_tunables_that_were_given_are_kept() -> None:
    text = (ROOT / "cake_kernels/rmsnorm/hopper_ring_warps.py").read_text("utf-8")
    assert by_target(text, params={"STAGES": 2})["sm_120a"].verdict.verdict == "pass"


def test_a_text_that_is_no_program_fails_everywhere_and_nothing_is_offered() -> None:
    found = ports(edit(TILE, ("lm.mma(acc", "lm.mna(acc")))
    assert {p.verdict.verdict for p in found} == {"fail"} and not any(p.change for p in found)


def test_the_report_names_the_change_and_its_lines() -> None:
    text = "\n".join(lines(ports(SHARED), "shared.py"))
    assert text.startswith("shared.py: passes for sm_90a, sm_100a, sm_103a of 7 targets")
    assert "passes with: clusters of one CTA, multicast off (lines " in text
    data = portability(MULTICAST, targets=("sm_120a",))["sm_120a"]
    assert data["verdict"] == "fail" and data["change"] is None and data["diagnostics"] and data["why"]


@pytest.mark.parametrize("path", [*KERNELS, *CORPUS], ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_change_that_is_offered_for_the_corpus_passes_where_it_is_for(path: Path) -> None:
    text = path.read_text("utf-8")
    found = ports(text)
    assert any(p.verdict.verdict == "pass" for p in found)
    assert all(holds(text, p) for p in found if p.change is not None)
    assert all(p.why for p in found if p.verdict.verdict == "fail")


def test_edits_of_two_rounds_are_offered_against_the_text_that_was_given() -> None:
    from cake_verify.porting import _difference

    new = LOOP.replace("regs=232", "regs=None").replace("    with load:\n", "    with load:\n        pass\n")
    edits = _difference(LOOP, new)
    assert all(isinstance(e, Edit) for e in edits) and applied(LOOP, edits) == new

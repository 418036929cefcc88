"""Cycle-counting twins: every lowered kernel has one, it compiles, and what it counts is read back on a device of host memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cake_kernels
from cake_backend.cuda.lower import lower
from cake_backend.judge.building import Built, build_program
from cake_backend.judge.cycles import Twin, counted, instrumented, twin_of
from cake_backend.judge.plan import Options, make_plan
from cake_backend.judge.protocol import CYCLE_WORDS
from cake_backend.judge.session import Candidate, Session, run_session
from cake_backend.judge.verdict import judge_session
from cake_backend.judge.worker import cycles_of
from cake_backend.manifest import Param
from cake_backend.toolchain.sass import read_sass
from cake_ir.fault import FaultError
from cake_ir.frontend import parse, specialise

from .test_worker_on_host_memory import ADD, ARRAYS, DRIVER, IN_PLACE, manifest

TEXTS = {f"{s.family}-{s.name}": s.text for s in cake_kernels.schedules()}


def lowered(text: str) -> str | None:
    template = parse(text).schedules[0]
    program = specialise(template, {}, (template.targets or ("sm_90a",))[0]).program
    try:
        return lower(program, source=text).text if program is not None else None
    except FaultError:
        return None


@pytest.mark.parametrize("key", TEXTS)
def test_every_kernel_of_the_corpus_that_is_lowered_has_a_twin_that_adds_two_places_and_a_parameter(key: str) -> None:
    text = lowered(TEXTS[key])
    if text is None:
        pytest.skip("not lowered in this build")
    twin = instrumented(text)
    assert twin is not None and twin.count("%%clock64") == 2 + text.count("%%clock64")
    assert twin.count("u32* cake_cycles)") == 1 and twin.count("{") - text.count("{") == twin.count("}") - text.count("}")
    assert instrumented(twin) is not None, "its form is still that of a lowered kernel"


def test_a_text_of_another_form_has_none() -> None:
    text = lowered(TEXTS["rmsnorm-hopper"])
    assert text is not None
    assert instrumented(text.replace("\n}\n", "\n  if (ROWS) return;\n}\n")) is None
    assert instrumented(text + "// more\n") is None and instrumented("") is None and instrumented(text + text) is None


def test_the_twin_compiles_reads_the_clock_twice_and_spills_nothing() -> None:
    text = TEXTS["gemm-hopper"]
    program = specialise(parse(text).schedules[0]).program
    assert program is not None
    built = build_program(program, text, timeout=120)
    made = twin_of(built, "sm_90a", timeout=120)
    assert isinstance(made, Twin), made
    assert made.manifest.counters == CYCLE_WORDS and made.manifest.launches[0].params[-1] == Param("counters")
    before, after = (read_sass(cubin) for cubin in (built.cubins[0], made.cubins[0]))
    assert before is not None and after is not None
    plain, twin = before["gemm_ws"], after["gemm_ws"]
    assert twin.counts.get("HGMMA") == plain.counts.get("HGMMA") and not twin.counts.get("STL"), "the loop is the same"
    assert 0 < twin.instructions - plain.instructions < 80
    assert isinstance(twin_of(Built(), "sm_90a", timeout=1), str)


def test_cycles_are_read_by_cta_and_by_sm() -> None:
    table = np.zeros((4, CYCLE_WORDS), np.uint32)
    clocks = [(100, 400, 0), (2**32 - 50, 2**32 + 50, 1), (500, 1000, 0), (2**32 + 60, 2**32 + 100, 1)]
    for row, (begin, end, sm) in zip(table, clocks, strict=True):
        row[:4] = np.array([begin, end], np.uint64).view(np.uint32)
        row[4] = sm
    found = cycles_of([int(w) for w in table.reshape(-1)], CYCLE_WORDS)
    assert found == {"blocks": 4, "sms": 2, "slowest_block": 500, "median_block": 200, "slowest_sm": 900}
    assert cycles_of([], CYCLE_WORDS)["blocks"] == 0


COUNTING = ARRAYS + '''
PARAMS = {"kernel": "QQQiQ"}
def kernel(grid, block, x, r, y, n, cycles):
    words = np.ctypeslib.as_array((ctypes.c_uint32 * (6 * grid)).from_address(cycles)).reshape(grid, 6)
    assert not words.any(), "zeroed before the launch"
    words[:, 0], words[:, 2], words[:, 4] = 1000, [1500 + 100 * i for i in range(grid)], [i % 2 for i in range(grid)]
'''


def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, twin: str, **options: Any) -> tuple[dict[str, Any], Session]:
    monkeypatch.setenv("PYTHONPATH", str(DRIVER))
    monkeypatch.setenv("CAKE_LEASES", str(tmp_path))
    plain = manifest()
    launch = replace(plain.launches[0], params=(*plain.launches[0].params, Param("counters")))
    made = Twin((twin.encode(),), replace(plain, launches=(launch,), counters=CYCLE_WORDS))
    candidate = Candidate(IN_PLACE.encode(), plain, twin=made)
    chosen = Options(heldout=0, run_timeout=60, **options)
    session = run_session(candidate, ADD, make_plan(ADD, {}, chosen, seal="x"), chosen)
    return judge_session(session, candidate, ADD), session


def test_the_twin_runs_after_everything_that_is_judged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    verdict, session = run(monkeypatch, tmp_path, COUNTING)
    assert verdict["status"] == "PASSED", verdict["summary"]
    names = [e["event"] for e in session.events]
    assert names.index("done") < names.index("cycles") and names.count("cycles") == 1
    assert counted(session.of("cycles")) == [
        {"label": "measured", "entry": "kernel", "blocks": 12, "sms": 2, "slowest_block": 1600, "median_block": 1050, "slowest_sm": 1600}
    ]


def test_a_twin_that_traps_costs_nothing_but_its_figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    verdict, session = run(monkeypatch, tmp_path, COUNTING + "def kernel(*a): raise ArithmeticError\n")
    assert verdict["status"] == "PASSED" and not session.of("cycles") and session.of("fault")[0]["stage"] == "cycles"
    verdict, session = run(monkeypatch, tmp_path, COUNTING, cycles=False)
    assert verdict["status"] == "PASSED" and not session.of("cycles") and not session.of("fault")

"""What `lower` promises: one text a program, a map back to the schedule, located refusals, nothing that is not used."""

import re
from pathlib import Path

import pytest
from corpus import CASES, Case, lowered, program, source

from cake_backend.cuda.faults import NotLowered
from cake_backend.cuda.lower import lower

COPY = """
@cake.schedule(target="sm_90a")
def copy(lm, X: LM.gmem2d[LM.f32, "R", 256], Y: LM.gmem2d[LM.f32, "R", 256], R: LM.i32):
    work = lm.role(warps=range(0, 2))
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.r), shape=(256,), form="vec")
            lm.store(Y, x, coords=(0, t.r))
"""


@pytest.mark.parametrize("case", CASES[:4], ids=lambda c: c.name)
def test_the_same_program_gives_the_same_text(case: Case) -> None:
    assert lowered(case).text == lowered(case).text


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_every_line_of_the_kernel_maps_to_a_line_of_the_schedule(case: Case) -> None:
    done = lowered(case)
    lines = done.text.splitlines()
    assert len(done.source_map) == len(lines)
    last = source(case.file).count("\n") + 1
    for number, (line, span) in enumerate(zip(lines, done.source_map, strict=True), 1):
        if (m := re.search(r"// L(\d+)", line)) is not None:
            assert span is not None and span.line == int(m[1]) <= last
            assert done.span_at(number) == span


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_nothing_is_declared_that_is_not_used(case: Case) -> None:
    text = re.sub(r"//.*", "", lowered(case).text)
    head, _, kernel = text.partition('extern "C"')
    for name in re.findall(r"^(?:template <[^>]*> )?DEVICE \w+ (\w+)\(", head, re.M):
        assert len(re.findall(rf"\b{name}\b", text)) > 1, f"{name} is never called"
    for name in re.findall(r"^\s*(?:const )?(?:u32|int|u64|float) (\w+)(?:\[\d+\])?(?: =[^;]*)?;", kernel, re.M):
        assert len(re.findall(rf"\b{name}\b", kernel)) > 1, f"{name} is never used"


def test_a_backslash_in_the_schedule_does_not_swallow_the_next_line() -> None:
    text = COPY.replace('form="vec")', 'form=\\\n                "vec")')
    done = lower(program(text), source=text)
    assert not [line for line in done.text.splitlines() if line.rstrip().endswith("\\")]


def test_the_text_of_the_schedule_is_optional() -> None:
    done = lower(program(COPY))
    assert "// L8" in done.text and "lm.load" not in done.text


def test_author_names_that_mean_something_in_cpp_are_renamed() -> None:
    text = COPY.replace("x = lm.load", "float = lm.load").replace("lm.store(Y, x,", "lm.store(Y, float,")
    assert "float float_1[" in lower(program(text)).text


def test_a_report_build_takes_the_hang_buffer_as_its_last_parameter() -> None:
    done = lowered(Case("gemm_ws", report=True))
    assert done.manifest.launches[0].params[-1].kind == "hang"
    assert "hang" not in lowered(Case("gemm_ws")).text


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('sched = lm.scheduler(kind="clc", tiles=(R,), names=("r",), fetch=work)', "clc"),
        ("acc = lm.tmem(cols=0, width=64, shape=(128, 64), dtype=lm.f32)\n    sched = lm.scheduler(kind=\"grid\", tiles=(R,), names=(\"r\",))", "tensor memory"),
    ],
)
def test_what_this_build_cannot_emit_is_refused_with_a_place(line: str, what: str) -> None:
    text = COPY.replace('"sm_90a"', '"sm_100a"').replace('sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))', line)
    with pytest.raises(NotLowered) as refused:
        lower(program(text))
    assert what in refused.value.fault.message and refused.value.fault.span.line == 5


def test_a_fragment_array_on_a_ring_with_barriers_is_refused_where_it_is_indexed() -> None:
    text = (Path(__file__).resolve().parents[3] / "bench/verify/corpus/kmeans_two_accumulators.py").read_text("utf-8")
    text = text.replace("acc[a]", "acc[s]").replace("acc[a.prev()]", "acc[s.prev()]")
    with pytest.raises(NotLowered) as refused:
        lower(program(text))
    span = refused.value.fault.span
    assert "acc[" in text.splitlines()[span.line - 1][span.column - 1 :]


def test_strides_and_alignment_become_obligations_of_the_launcher() -> None:
    guards = {str(g.expr) for g in lower(program(COPY)).manifest.guards}
    assert {"extent(X, 0) == R", "extent(X, 1) == 256", "stride(X, 1) == 1", "stride(X, 0) % 4 == 0"} <= guards


def test_a_tensor_that_is_only_read_is_not_an_output() -> None:
    tensors = lower(program(COPY)).manifest.tensors
    assert (tensors["X"].mode, tensors["Y"].mode) == ("in", "out")

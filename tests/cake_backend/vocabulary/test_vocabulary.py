"""Nothing that sm_90a has is left out of lowering: the programs of `forms` use all of it, and each is verified, lowered and compiled."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from forms import PROGRAMS

from cake_backend.cuda.faults import NotLowered
from cake_backend.cuda.lower import Lowered, lower
from cake_backend.toolchain import compile_cuda, nvrtc_version
from cake_ir import parse, specialise
from cake_ir.forms import FORMS
from cake_ir.ops import SPECS
from cake_ir.ops.atomic import COMBINES
from cake_ir.ops.elementwise import ARITH, COMPARE, LOGIC, UNARY
from cake_ir.ops.move import REDUCES
from cake_ir.program import Assign, Do, Expr, Op, Program, statements
from cake_ir.targets import targets_with
from cake_ir.targets.mma import SCALES
from cake_ir.types import FragT
from cake_verify import verify_text

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"
TARGET = "sm_90a"


@cache
def program(part: str, name: str) -> Program:
    template = parse(PROGRAMS[part][name], name).schedule()
    assert template is not None
    made = specialise(template, {}, TARGET)
    assert made.program is not None, (name, made.faults)
    return made.program


@cache
def lowered(part: str) -> dict[str, Lowered]:
    return {name: lower(program(part, name), source=text) for name, text in PROGRAMS[part].items()}


def expressions(op: Op) -> Iterator[Expr]:
    for value in op.operands.values():
        for e in value if isinstance(value, tuple) else (value,):
            if isinstance(e, Expr):
                yield from e.parts()


def used() -> tuple[set[tuple[str, str]], set[tuple[str, str, Any]], set[str], set[tuple[str, str]]]:
    """Operations by (receiver, name), (operation, option, value), pure operations inside expressions, (form, dtype) of fragments."""
    ops: set[tuple[str, str]] = set()
    options: set[tuple[str, str, Any]] = set()
    pure: set[str] = set()
    fragments: set[tuple[str, str]] = set()
    for part, texts in PROGRAMS.items():
        for name in texts:
            p = program(part, name)
            for s in (s for b in p.body for s in statements(b.body) if isinstance(s, Assign | Do)):
                op = s.value if isinstance(s, Assign) else s.op
                found = [op] if isinstance(op, Op) else []
                trees = [e for o in found for e in expressions(o)] + ([*op.parts()] if isinstance(op, Expr) else [])
                for o in found:
                    on = "view" if "view" in o.operands and ("view", o.name) in SPECS else "lm"
                    ops.add((on, o.name))
                    options |= {(o.name, k, v) for k, v in o.attrs.items() if isinstance(v, str | bool)}
                for e in trees:
                    pure.add(e.op)
                    options |= {(e.op, k, v) for k, v in e.attrs.items() if isinstance(v, str | bool)}
                    if isinstance(e.type, FragT):
                        fragments.add((e.type.form, e.type.dtype))
    return ops, options, pure, fragments


USED = used()
LEGAL = {key: spec for key, spec in SPECS.items() if (not spec.needs or TARGET in targets_with(spec.needs)) and (key != ("lm", "scales") or TARGET in SCALES)}


@pytest.mark.parametrize("key", sorted(LEGAL), ids=".".join)
def test_an_operation_that_the_target_has_is_in_one_of_the_programs(key: tuple[str, str]) -> None:
    ops, _, pure, _ = USED
    assert key in ops or key[1] in pure, f"no program of forms.py uses {LEGAL[key].spelling}"


OPTIONS: dict[tuple[str, str], tuple[Any, ...]] = {
    ("atomic", "op"): tuple(COMBINES), ("atomic", "scope"): ("cta", "gpu", "sys"), ("atomic", "order"): ("any",), ("atomic", "clip"): (True, False),
    ("tma_reduce", "op"): tuple(REDUCES), ("tma_load", "cache"): ("keep",), ("tma_store", "cache"): ("stream",), ("tma_load", "multicast"): ("m", "n"),
    ("load", "form"): tuple(f for f in FORMS if f != "scalar"), ("load", "cache"): ("keep", "stream"), ("load", "clip"): (True, False),
    ("ldmatrix", "form"): ("b",), ("cast", "round"): ("rz", "rm", "rp"), ("cast", "form"): ("acc", "a", "b"), ("reduce", "op"): ("add", "max", "min"),
    ("reduce", "partial"): (True, False), ("reduce_across", "op"): ("add", "max", "min"), ("scan", "op"): ("add", "max", "min"), ("mma", "kind"): ("wgmma", "mma_sync"),
    ("amax_scale", "kind"): ("f32", "ue8m0"), ("amax_scale", "dtype"): ("e4m3", "e5m2"), ("topk_list", "largest"): (True, False), ("store_wait", "read"): (True, False),
}  # fmt: skip


@pytest.mark.parametrize(("option", "values"), OPTIONS.items(), ids=lambda x: ".".join(x) if isinstance(x, tuple) and len(x) == 2 and isinstance(x[0], str) else "")
def test_every_value_of_an_option_is_in_one_of_the_programs(option: tuple[str, str], values: tuple[Any, ...]) -> None:
    missing = [v for v in values if (*option, v) not in USED[1]]
    assert not missing, f"no program of forms.py uses {option[0]}({option[1]}={missing[0]!r})"


def test_every_arithmetic_operation_and_every_form_of_every_type_is_in_one_of_the_programs() -> None:
    _, _, pure, fragments = USED
    assert (ARITH | COMPARE | LOGIC | UNARY) - pure <= {"floordiv", "and", "or", "le", "gt", "ge", "eq"}, "comparisons differ in one character"
    for form in ("vec", "acc", "rows", "rowvec", "colvec"):
        assert len({d for f, d in fragments if f == form}) >= 14, form
    for form in ("a", "b"):
        assert {d for f, d in fragments if f == form} >= {"bf16", "f16", "f32", "tf32", "i8", "u8", "i32", "u32", "e4m3", "e5m2", "ue8m0"}, form


@pytest.mark.parametrize("part", PROGRAMS)
def test_the_gates_pass_what_the_target_has_and_it_is_lowered(part: str) -> None:
    refused = {name: v.errors[0].message for name, text in PROGRAMS[part].items() if (v := verify_text(text)).errors}
    assert not refused
    for name in PROGRAMS[part]:
        try:
            lower(program(part, name))
        except NotLowered as error:
            pytest.fail(f"{name}: {error.fault.message}")


@pytest.mark.parametrize("part", PROGRAMS)
def test_no_function_is_printed_that_nothing_calls(part: str) -> None:
    for name, one in lowered(part).items():
        dead = [f for f in re.findall(r"^(?:template <[^>]*> )?DEVICE [\w&* ]+? (\w+)\(", one.text, re.M) if len(re.findall(rf"\b{f}\b", one.text)) < 2]
        assert not dead, name


@pytest.mark.slow
@pytest.mark.skipif(nvrtc_version() == "nvrtc unavailable", reason="needs NVRTC")
@pytest.mark.parametrize("part", PROGRAMS)
def test_it_compiles_without_a_remark(part: str) -> None:
    """All programs of a part in one translation unit, each in a namespace of its own."""
    texts = [one.text.replace('extern "C" __global__', "__global__") for one in lowered(part).values()]
    build = compile_cuda("".join(f"namespace k{i} {{\n{text}}}\n" for i, text in enumerate(texts)), TARGET, cache=False, timeout=300)
    assert build.ok, build.log[:2000]
    assert not Counter(r.code for r in build.remarks), [r.text for r in build.remarks][:5]
    assert build.resources.spill_stores + build.resources.spill_loads == 0


# What the issue names, by a text that only this feature prints.
FEATURES = {
    "multicast": "multicast::cluster", "clusters": "barrier.cluster", "wgmma with A from registers": "_rs(", "several groups in flight": "wgmma_wait<1>", "fragment arrays": "wgmma_wait<1>",
    "turns": "named_arrive<", "stmatrix": "stmatrix.sync.aligned.m8n8.x4.shared", "stmatrix transposed": "stmatrix.sync.aligned.m8n8.x4.trans", "ldmatrix": "ldmatrix.sync.aligned.m8n8.x4.shared",
    "ldmatrix transposed": "ldmatrix.sync.aligned.m8n8.x4.trans", "mma.sync": "mma.sync.aligned.m16n8k", "movmatrix": "movmatrix.sync", "quantising casts": "cvt.rn.satfinite.e4m3x2",
    "to e5m2": "cvt.rn.satfinite.e5m2x2", "fp8 wgmma": "k32.f32.e4m3.e4m3", "cp.async": "cp.async.cg.shared.global", "bulk copies": "cp.async.bulk.shared::cluster.global.mbarrier",
    "TMA reduce": "cp.reduce.async.bulk.tensor", "send": "st.async.weak.shared::cluster", "atomics": "red.global", "vector atomics": "red_global_add_f32_v4", "counter": "draw_tile",
    "dependent launch": "griddepcontrol.wait", "cache hints of copies": "createpolicy.fractional.L2", "cache hints of loads": "L1::no_allocate", "vector loads": "ld.global.v4.u32",
    "vector stores": "st.global.v4.u32", "register budgets": "setmaxnreg", "scans": "__shfl_up_sync", "flags": "flag_spin",
}  # fmt: skip


def test_every_feature_that_the_issue_names_is_printed_for_some_schedule() -> None:
    import cake_kernels

    texts = [one.text for part in PROGRAMS for one in lowered(part).values()]
    for source in [s.text for s in cake_kernels.schedules()] + [f.read_text("utf-8") for f in sorted(CORPUS.glob("*.py"))]:
        for template in parse(source).schedules:
            if TARGET in template.targets and (made := specialise(template, {}, TARGET).program) is not None:
                texts.append(lower(made).text)
    every = "\n".join(texts)
    assert not [name for name, text in FEATURES.items() if text not in every]

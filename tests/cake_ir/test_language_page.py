"""``docs/language.md`` names everything the language has, and its examples are schedules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cake_ir.dtypes import DTYPES
from cake_ir.forms import FORMS
from cake_ir.frontend import parse, specialise
from cake_ir.frontend.fields import PARAMS
from cake_ir.layout import SWIZZLES
from cake_ir.ops import SPECS
from cake_ir.ops.elementwise import UNARY
from cake_ir.scheduler import KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.S)


@pytest.mark.parametrize("text", EXAMPLES, ids=[re.search(r"def (\w+)", e)[1] for e in EXAMPLES])  # type: ignore[index]  # every example defines one
def test_examples_are_schedules_without_faults(text: str) -> None:
    module = parse(text)
    assert not module.faults and module.schedules
    for template in module.schedules:
        for target in template.targets:
            done = specialise(template, target=target)
            assert not done.faults, done.faults


def _signature(name: str) -> str:
    """Every ``name(..)`` that the page writes, joined."""
    return " ".join(re.findall(re.escape(name) + r"\(([^`]*?)\)`", PAGE) + re.findall(re.escape(name) + r"\(([^`]*)`", PAGE))


@pytest.mark.parametrize("spec", SPECS.values(), ids=[f"{on}.{name}" for on, name in SPECS])
def test_every_operation_is_named_with_its_options(spec) -> None:  # type: ignore[no-untyped-def]  # an OpSpec
    name = "reduce" if spec.name == "reduce_across" else spec.name
    prefix = "view" if spec.on == "view" else "lm"
    written = _signature(f"{prefix}.{name}") or (_signature("lm.argmin") if name == "argmax" else "")
    assert f"{prefix}.{name}" in PAGE
    skip = {"view"} if spec.on == "view" else set()
    missing = [p.name for p in spec.params if p.name not in skip and not re.search(rf"\b{p.name}\b", written)]
    assert not missing, (spec.spelling, missing)


@pytest.mark.parametrize("name", PARAMS)
def test_every_declaration_is_named_with_its_options(name: str) -> None:
    written = _signature(f"pool.{name}" if name == "view" else f"lm.{name}")
    assert [p for p in PARAMS[name] if not re.search(rf"\b{p}\b", written)] == []


def test_closed_lists_are_complete() -> None:
    for words in (DTYPES, FORMS, KINDS, SWIZZLES):
        for word in words:
            assert re.search(rf'[`" ]{re.escape(word)}[`" ]', PAGE), word
    for name in UNARY - {"neg", "not"}:
        assert f"lm.{name}" in PAGE, name

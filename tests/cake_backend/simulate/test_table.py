"""Every operation of the language has simulation semantics."""

from __future__ import annotations

from cake_backend.simulate.table import PURE, SYNC, VALUES
from cake_ir.frontend.calls import SPECS
from cake_ir.ops.effects import Issue, Touch
from cake_ir.ops.elementwise import ARITH, COMPARE, LOGIC, UNARY
from cake_ir.ops.spec import OpSpec

# Operations whose effects depend on their operands, both kinds of which are handled, and what the product that takes it reads: see the tests of the language.
BY_OPERANDS = {"lm.mma", "lm.wait", "lm.arrive", "lm.sync", "lm.tmem_wait", "lm.store_wait", "view.cp_async_rows", "view.tma_gather"}
BY_PRODUCTS = {"lm.scales"}


def _effects(spec: OpSpec) -> tuple[object, ...]:
    return spec.effects(None, None)  # type: ignore[arg-type]  # constant effects ignore both


def test_every_operation_is_executed() -> None:
    missing = []
    for (on, name), spec in SPECS.items():
        key = f"{on}.{name}"
        if key in BY_PRODUCTS or (key in VALUES and not spec.pure) or (spec.pure and name in PURE):
            continue
        if key in BY_OPERANDS or (not spec.pure and all(type(e) in SYNC for e in _effects(spec))):
            continue
        missing.append(key)
    assert not missing


def test_every_value_part_belongs_to_an_operation() -> None:
    known = {f"{on}.{name}" for on, name in SPECS} | {"lm.compute"}
    assert set(VALUES) <= known


def test_an_operation_has_as_many_value_parts_as_runs_of_touches() -> None:
    for (on, name), spec in SPECS.items():
        key = f"{on}.{name}"
        if key in BY_OPERANDS or spec.pure or key not in VALUES:
            continue
        effects = [
            isinstance(e, (Touch, Issue)) for e in (_effects(spec) if name not in ("store", "reduce_across") else spec.effects(None, None))
        ]  # type: ignore[arg-type]
        runs = sum(1 for i, e in enumerate(effects) if e and (i == 0 or not effects[i - 1]))
        assert runs == len(VALUES[key]), key


def test_every_elementwise_name_of_the_language_has_values() -> None:
    elementwise = ARITH | COMPARE | LOGIC | UNARY | {"where", "fma"}
    assert elementwise <= set(PURE)

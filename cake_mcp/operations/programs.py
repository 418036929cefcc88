"""What a text declares, as far as it parses: its schedules, their parameters, and the hash of its program."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cake_ir.frontend import Module
    from cake_ir.program import Param, Program
    from cake_ir.span import Span


@dataclass(frozen=True, slots=True)
class Outline:
    """Names of the schedules, parameter values in force by name, and the content hash (None while the text does not specialise).

    `has_target` says whether every schedule names its target itself.
    """

    schedules: tuple[str, ...] = ()
    params: dict[str, Any] = field(default_factory=dict)
    content_hash: str | None = None
    has_target: bool = False


def outline(text: str, *, params: Mapping[str, Any], target: str | None, default_target: str | None = None) -> Outline:
    """The outline of a text; an empty one where it does not parse. Never raises for a fault of the text."""
    from cake_ir.canonical import content_hash
    from cake_ir.frontend import parse

    from ..store.identity import digest

    module = parse(text, "<candidate>")
    templates = [*module.schedules, *([module.plan] if module.plan else [])]
    in_force: dict[str, Any] = {}
    for template in templates:
        in_force |= {name: params.get(name, default) for name, default in template.tunables.items()}
    made = [program for _, program in specialised(module, params, target or None, default_target)]
    complete = bool(made) and None not in made and not module.faults
    hashes = [content_hash(program) for program in made if program is not None] if complete else []
    plan = [text, repr(sorted(in_force.items()))] if module.plan else []  # a plan has no canonical form: any change of text or tunables counts
    whole = hashes[0] if len(hashes) == 1 and not plan else digest(*hashes, *plan) if hashes else None
    return Outline(
        tuple(template.name for template in module.schedules), in_force, whole, all(template.targets for template in module.schedules)
    )


def specialised(
    module: "Module", params: Mapping[str, Any], target: str | None, default_target: str | None = None
) -> "Iterator[tuple[str, Program | None]]":
    """Each schedule's name and its program, None where it cannot be constructed. Parameters go to the schedules that declare them."""
    from cake_ir.frontend import specialise

    for template in module.schedules:
        own = {name: value for name, value in params.items() if name in template.tunables}
        chosen = target or (None if template.targets else default_target)
        yield template.name, specialise(template, own, chosen).program


def programs_of(text: str, *, params: Mapping[str, Any], target: str | None, default_target: str | None = None) -> "list[Program]":
    """The programs that a text stands for; those that cannot be constructed are left out."""
    from cake_ir.frontend import parse

    return [program for _, program in specialised(parse(text, "<candidate>"), params, target, default_target) if program is not None]


@dataclass(frozen=True, slots=True)
class Bound:
    """What a task binds: the plan of a text, or its only schedule; with the parameters that are arguments of a run."""

    name: str
    target: str | None
    params: "tuple[Param, ...]"
    span: "Span"


def bound_by(text: str, *, params: Mapping[str, Any], target: str | None, default_target: str | None = None) -> Bound | None:
    """What of a text a task binds; None where nothing can be constructed, or several schedules have no plan."""
    from cake_ir.frontend import parse
    from cake_ir.frontend.plans import specialise_plan

    module = parse(text, "<candidate>")
    if module.plan is not None:
        plan = specialise_plan(module, {n: v for n, v in params.items() if n in module.plan.tunables}).plan
        return Bound(plan.name, target or default_target, plan.params, plan.span) if plan is not None else None
    made = [program for _, program in specialised(module, params, target, default_target) if program is not None]
    return Bound(made[0].name, made[0].target, tuple(made[0].params), made[0].span) if len(made) == 1 else None

"""`specialise`: from a template and values for its tunables to a typed program."""

from __future__ import annotations

import ast
from dataclasses import fields
from typing import Any

from cake_ir.fault import Fault, FaultError, did_you_mean
from cake_ir.frontend.declare import declare
from cake_ir.frontend.scope import Elaboration, Lost, Named, Poisoned
from cake_ir.frontend.source import valid_name
from cake_ir.frontend.statements import role_block
from cake_ir.frontend.template import Template
from cake_ir.program import Const, Param, Program, Role, RoleBlock
from cake_ir.record import record, unmade
from cake_ir.span import Span
from cake_ir.targets import TARGETS


@record()
class Specialised:
    """A program, or None where construction failed; faults are in text order."""

    program: Program | None
    faults: tuple[Fault, ...]


def specialise(template: Template, params: dict[str, Any] | None = None, target: str | None = None) -> Specialised:
    """Fold `params` (defaults where absent) into the template for `target` (the template's own first target where None).

    Unknown or ill-typed parameters are faults (N030, N031), never exceptions.
    """
    faults: list[Fault] = []
    values: dict[str, Const] = dict(template.tunables)
    for name, value in (params or {}).items():
        if name not in template.tunables:
            shown = name if isinstance(name, str) and valid_name(name) else "?"
            faults.append(Fault("N030", f"`{template.name}` has no tunable `{shown}`", template.span, help=did_you_mean(str(name), template.tunables, "tunable")))
            continue
        problem = _unfit(value, template.tunables[name])
        if problem:
            faults.append(Fault("N031", f"tunable `{name}` {problem}", template.tunable_spans[name], facts={"default": template.tunables[name]}))
            continue
        values[name] = tuple(value) if isinstance(value, list) else value
    chosen = target or (template.targets[0] if template.targets else "")
    if chosen and chosen not in TARGETS:
        what = f"target `{chosen}`" if valid_name(chosen) else "the target"
        faults.append(Fault("N015", f"{what} is not one of the seven names", template.target_span, help=did_you_mean(chosen, TARGETS, "target")))
    if faults:
        return Specialised(None, tuple(faults))
    el = Elaboration(template.source, chosen, template.receiver)
    try:
        return _elaborate(template, values, el)
    except RecursionError:
        el.faults.append(Fault("N002", "expressions are nested too deeply", template.span))
        return Specialised(None, tuple(el.faults))


def retargeted(program: Program, target: str) -> Program:
    """The same schedule for another target. Elaboration never asks for the target and no fact may depend on it, so all but it is shared."""
    other = unmade(Program)
    for name in _PROGRAM:
        object.__setattr__(other, name, target if name == "target" else getattr(program, name))  # the frozen class's own initialiser
    return other


_PROGRAM = tuple(f.name for f in fields(Program))


def _unfit(value: Any, default: Const) -> str:
    if isinstance(value, list):
        value = tuple(value)
    if not isinstance(value, (int, float, bool, str, tuple, type(None))):
        return f"cannot be {type(value).__name__}"
    if isinstance(value, int) and value.bit_length() > 63:
        return "does not fit 64 bits"
    if isinstance(value, (str, tuple)) and len(value) > 256:
        return "is too long"
    if isinstance(default, bool) and not isinstance(value, bool):
        return f"is a truth value, found {value!r}"
    if isinstance(default, int) and not isinstance(default, bool) and (not isinstance(value, int) or isinstance(value, bool)):
        return f"is an integer, found {value!r}"
    return ""


def _elaborate(template: Template, values: dict[str, Const], el: Elaboration) -> Specialised:
    params = tuple(_extents(el, p, values, template) for p in template.params)
    for p in params:
        el.params[p.name] = p
        el.env[p.name] = Named(p)
        el.used.add(p.name)
    for name, value in values.items():
        el.env[name] = value
        el.used.add(name)
    blocks: list[RoleBlock] = []
    for node in template.body:
        if el.enough:
            break
        try:
            if isinstance(node, ast.With):
                block = role_block(el, node)
                if block is not None:
                    blocks.append(block)
            elif blocks and not isinstance(node, (ast.Expr, ast.Pass)):
                el.fail("N032", "a declaration follows a role block", node, help="everything a kernel allocates is declared before the first role block")
            else:
                declare(el, node)
        except FaultError as e:
            el.faults.append(e.fault)
            for name in _bound(node):
                el.env[name] = Lost()
        except Poisoned:
            for name in _bound(node):
                el.env[name] = Lost()
    _roles_overlap(el)
    if not any(isinstance(d, Role) for d in el.decls) and not el.faults:
        el.faults.append(Fault("N033", f"`{template.name}` declares no role", template.span, help="declare one: `work = lm.role(warps=range(0, 4))`"))
    faults = tuple(el.faults)
    if faults:
        return Specialised(None, faults)
    end = template.source.lines
    span = Span(template.span.line, 1, len(end), len(end[-1]) + 1)
    program = Program(template.name, el.target, params, values, tuple(el.decls), tuple(blocks), tuple(el.ops), span, template.doc)
    return Specialised(program, ())


def _extents(el: Elaboration, p: Param, values: dict[str, Const], template: Template) -> Param:
    """`p` with tunables among its extents replaced by their values; N018 for a name that is neither tunable nor scalar parameter."""
    if not p.extents:
        return p
    scalars = [q.name for q in template.params if q.kind == "scalar"]
    out: list[str | int] = []
    for e in p.extents:
        v = values.get(e) if isinstance(e, str) else e
        if isinstance(v, int) and not isinstance(v, bool):
            out.append(v)
        elif isinstance(e, str) and e in scalars:
            out.append(e)
        else:
            plain = isinstance(e, str) and e.isascii() and e.isprintable() and len(e) <= 40 and "`" not in e
            computed = plain and not valid_name(str(e))
            el.faults.append(Fault("N018", f"the extent `{e if plain else '?'}` of `{p.name}` names neither a scalar parameter nor an integer tunable", p.span,
                                   help="an extent is one name or one number: give what is computed a tunable of its own" if computed
                                   else did_you_mean(str(e), [*scalars, *values], "name")))  # fmt: skip
            return p
    return Param(p.name, p.kind, p.rank, p.dtype, p.span, p.const, p.zeroed, tuple(out), p.extents, p.inout)


def _bound(node: ast.stmt) -> list[str]:
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)] if isinstance(node, (ast.Assign, ast.AugAssign)) else []


def _roles_overlap(el: Elaboration) -> None:
    roles = [d for d in el.decls if isinstance(d, Role)]
    for i, r in enumerate(roles):
        for q in roles[:i]:
            lo, hi = max(r.warp_lo, q.warp_lo), min(r.warp_hi, q.warp_hi)
            if lo < hi:
                el.faults.append(Fault("N034", f"roles `{q.name}` and `{r.name}` share warp {lo}", r.spans.get("warps", r.span),
                                       ((q.spans.get("warps", q.span), f"`{q.name}` has warps {q.warp_lo} to {q.warp_hi - 1}"),)))  # fmt: skip

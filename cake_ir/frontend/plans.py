"""Plans: `@cake.plan` functions elaborated to `cake_ir.plan.Plan`. Parsed like schedules and never executed."""

from __future__ import annotations

import ast
from typing import Any

from cake_ir.fault import Fault, FaultError, did_you_mean
from cake_ir.frontend.arith import as_expr, is_const
from cake_ir.frontend.declare import refuse_statement
from cake_ir.frontend.scope import DTypeName, Elaboration, Local, Named, Poisoned
from cake_ir.frontend.source import valid_name
from cake_ir.frontend.template import Module
from cake_ir.frontend.values import value
from cake_ir.plan import Plan, Run, Step, Workspace, Zero
from cake_ir.program import Const, Expr, Let, Param
from cake_ir.record import record
from cake_ir.types import ScalarT


@record()
class SpecialisedPlan:
    """A plan, or None where construction failed."""

    plan: Plan | None
    faults: tuple[Fault, ...]


def specialise_plan(module: Module, params: dict[str, Const] | None = None) -> SpecialisedPlan:
    """Elaborate the module's plan with `params` for its tunables (defaults where absent)."""
    template = module.plan
    assert template is not None, "the module has no plan"
    values = {**template.tunables, **{k: v for k, v in (params or {}).items() if k in template.tunables}}
    el = Elaboration(template.source, "", template.receiver)
    for p in template.params:
        el.params[p.name] = p
        el.env[p.name] = Named(p)
    el.env.update(values)
    steps: list[Step] = []
    for node in template.body:
        try:
            _step(el, module, node, steps)
        except FaultError as e:
            el.faults.append(e.fault)
        except Poisoned:
            pass
    if el.faults:
        return SpecialisedPlan(None, tuple(el.faults))
    return SpecialisedPlan(Plan(template.name, template.params, values, tuple(steps), template.span, template.doc), ())


def _step(el: Elaboration, module: Module, node: ast.stmt, steps: list[Step]) -> None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    call = node.value if isinstance(node, (ast.Expr, ast.Assign)) else None
    name = _lm_name(el, call)
    if isinstance(node, ast.Assign):
        if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            el.fail("N005", "a plan assigns one plain name at a time", node)
        target = node.targets[0]
        if not valid_name(target.id):
            el.fail("N012", "names are ASCII letters, digits and underscores, at most 64 of them", target)
        if target.id in el.env:
            el.fail("N052", f"`{target.id}` is already declared", target)
        if name == "workspace":
            assert isinstance(call, ast.Call)
            steps.append(_workspace(el, target.id, call))
            return
        v = value(el, node.value)
        if isinstance(v, Expr):
            if not isinstance(v.type, ScalarT):
                el.fail("N021", f"{v.type} is not a number", node.value)
            steps.append(Let(target.id, v, el.span(target)))
            el.env[target.id] = Local(target.id, v.type, el.span(target))
        else:
            el.env[target.id] = v
        return
    if name == "zero":
        assert isinstance(call, ast.Call)
        steps.append(Zero(_tensor(el, call.args[0] if len(call.args) == 1 else call), el.span(node)))
    elif name == "run":
        assert isinstance(call, ast.Call)
        steps.append(_run(el, module, call))
    elif isinstance(node, ast.Expr):
        el.fail("N032", "a plan holds `lm.workspace`, `lm.zero`, `lm.run` and host arithmetic", node)
    else:
        refuse_statement(el, node)


def _lm_name(el: Elaboration, node: ast.expr | None) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id == el.receiver:
        return node.func.attr
    return ""


def _workspace(el: Elaboration, name: str, call: ast.Call) -> Workspace:
    given = {k.arg: k.value for k in call.keywords}
    for p, a in zip(("shape", "dtype"), call.args, strict=False):
        given[p] = a
    if set(given) != {"shape", "dtype"}:
        el.fail("N044", "`lm.workspace` takes `shape` and `dtype`", call)
    shape, dtype = value(el, given["shape"]), value(el, given["dtype"])
    if not isinstance(shape, tuple) or not 1 <= len(shape) <= 4:
        el.fail("N057", "a workspace has one to four dimensions", given["shape"])
    if not isinstance(dtype, DTypeName):
        el.fail("N018", "`dtype` is not a dtype", given["dtype"])
    extents = tuple(as_expr(el, x, el.span(given["shape"])) for x in shape)
    el.env[name] = Named(Param(name, "gmem", len(extents), str(dtype), el.span(call)))
    return Workspace(name, extents, str(dtype), el.span(call))


def _tensor(el: Elaboration, node: ast.expr) -> str:
    v = value(el, node)
    if not (isinstance(v, Named) and isinstance(v.record, Param) and v.record.kind != "scalar"):
        el.fail("N045", "a tensor or workspace is expected here", node)
    return v.record.name


def _run(el: Elaboration, module: Module, call: ast.Call) -> Run:
    if len(call.args) != 1 or not isinstance(call.args[0], ast.Name):
        el.fail("N044", "`lm.run` takes a schedule and its arguments by keyword", call)
    names = [s.name for s in module.schedules]
    template = module.schedule(call.args[0].id)
    if template is None:
        el.fail("N026", f"`{call.args[0].id}` is not a schedule of this file", call.args[0], help=did_you_mean(call.args[0].id, names, "schedule"))
    tensors: dict[str, str] = {}
    scalars: dict[str, Expr] = {}
    tunables: dict[str, Const] = {}
    after: Any = "stream"
    params = {p.name: p for p in template.params}
    for k in call.keywords:
        if k.arg == "after":
            after = value(el, k.value)
            if after not in ("stream", "pdl"):
                el.fail("N061", "`after` is `stream` or `pdl`", k.value)
        elif k.arg in params:
            p = params[k.arg]
            if p.kind == "scalar":
                scalars[p.name] = as_expr(el, value(el, k.value), el.span(k.value))
            else:
                tensors[p.name] = _tensor(el, k.value)
        elif k.arg in template.tunables:
            v = value(el, k.value)
            if not is_const(v):
                el.fail("N024", f"`{k.arg}` is a tunable of `{template.name}`, known at compile time", k.value)
            tunables[k.arg] = v
        else:
            el.fail("N048", f"`{template.name}` has no parameter `{k.arg}`", k.value, help=did_you_mean(str(k.arg), [*params, *template.tunables], "parameter"))
    missing = [p for p in params if p not in tensors and p not in scalars]
    if missing:
        el.fail("N044", f"`{template.name}` needs {', '.join(f'`{m}`' for m in missing)}", call)
    return Run(template.name, tensors, scalars, tunables, str(after), el.span(call), {str(k.arg): el.span(k.value) for k in call.keywords})



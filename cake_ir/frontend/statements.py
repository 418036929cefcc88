"""The statements of a role block: assignment, loops, branches, operations."""

from __future__ import annotations

import ast
from typing import Any

from cake_ir.fault import FaultError, did_you_mean
from cake_ir.frontend.arith import as_expr, is_const
from cake_ir.frontend.carried import (
    ATTEMPTS,
    UNROLLED,
    Round,
    at_run_time,
    branchable,
    carried_fault,
    changed_names,
    changed_types,
    joined,
    never_set,
    note_bound,
    rebound,
    same_place,
)
from cake_ir.frontend.declare import refuse_statement
from cake_ir.frontend.named_scales import named_scales
from cake_ir.frontend.scope import Elaboration, Local, Lost, Named, Poisoned
from cake_ir.frontend.source import valid_name
from cake_ir.frontend.unroll import other_loop, steps_back, unrolled
from cake_ir.frontend.values import const_int, lift, value
from cake_ir.program import Assign, Expr, For, If, Role, RoleBlock, Scheduler, Stmt
from cake_ir.span import Span
from cake_ir.types import BOOL, I32, FragT, ListT, NoneT, PairT, ScalarT, ScalesT, SlotT, TileT, TmemT, Type, ViewT

MAX_DEPTH = 16
"""Loops within loops. What runs a schedule here is compiled Python, which nests twenty blocks at most."""


def role_block(el: Elaboration, node: ast.With) -> RoleBlock | None:
    """Elaborate `with role:`; None after a fault inside (all of which are collected)."""
    if len(node.items) != 1 or node.items[0].optional_vars is not None:
        el.fail("N032", "a role block is `with role:`", node.items[0].context_expr)
    head = node.items[0].context_expr
    v = value(el, head)
    if not (isinstance(v, Named) and isinstance(v.record, Role)):
        el.fail("N045", "`with` opens a role's block", head, help=did_you_mean("", el.of_kind(Role), "role"))
    saved, before = dict(el.env), len(el.faults)
    el.role, el.loops, el.block = v.record, [], node
    body = block(el, node.body)
    el.env, el.role, el.out = saved, None, None
    if len(el.faults) > before:
        return None
    return RoleBlock(v.record.name, body, el.span(node), el.span(head))


def block(el: Elaboration, nodes: list[ast.stmt]) -> tuple[Stmt, ...]:
    """Elaborate a list of statements into a new body; faults of one statement do not hide those of the next."""
    outer, el.out = el.out, []
    _each(el, nodes)
    body, el.out = tuple(el.out), outer
    return body


def _each(el: Elaboration, nodes: list[ast.stmt]) -> None:
    for node in nodes:
        if el.enough:
            break
        try:
            el.step(node)
            statement(el, node)
        except FaultError as e:
            el.faults.append(e.fault)
            _lose(el, node)
        except Poisoned:
            _lose(el, node)


def _lose(el: Elaboration, node: ast.stmt) -> None:
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            el.env[n.id] = Lost()


def statement(el: Elaboration, node: ast.stmt) -> None:
    assert el.out is not None
    if isinstance(node, ast.Assign):
        if len(node.targets) != 1:
            el.fail("N005", "assign one target at a time", node)
        _assign(el, node.targets[0], node.value, node)
    elif isinstance(node, ast.AugAssign):
        left = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target) if isinstance(node.target, ast.Name) else node.target
        _assign(el, node.target, ast.copy_location(ast.BinOp(left, node.op, node.value), node), node)
    elif isinstance(node, ast.Expr):
        if isinstance(node.value, ast.Constant):
            return
        e = value(el, node.value)
        if isinstance(e, Expr) and not isinstance(e.type, NoneT):
            last = el.last_hoisted(e)
            if last is not None and isinstance(last.value, Expr):  # a step for its effect alone
                return
            el.fail("N062", "the value of this line is not used", node, help="bind it to a name, or drop the line")
    elif isinstance(node, ast.For):
        _for(el, node)
    elif isinstance(node, ast.If):
        _if(el, node)
    elif isinstance(node, ast.Pass):
        return
    elif isinstance(node, ast.With):
        call = node.items[0].context_expr
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "mma_group":
            _mma_group(el, node, call)
            return
        el.fail("N063", "role blocks do not nest", node, help="roles run side by side: close this block first")
    elif isinstance(node, ast.AnnAssign):
        el.fail("N005", "annotations are for parameters", node)
    else:
        refuse_statement(el, node)


def _mma_group(el: Elaboration, node: ast.With, call: ast.Call) -> None:
    """Inline the block; its MMAs share attribute `group`, so that they make one asynchronous group."""
    if call.args or call.keywords or len(node.items) != 1 or node.items[0].optional_vars is not None:
        el.fail("N044", "`lm.mma_group` takes no argument", call)
    assert el.out is not None
    first = len(el.ops)
    inner = block(el, node.body)
    for s in inner:
        if isinstance(s, (For, If)):
            el.fail("N067", "a loop or branch stands in an MMA group", s.head, help="a group is committed once: open one inside the loop")
    el.out.extend(inner)
    for op in el.ops[first:]:
        if op.name == "mma":
            op.attrs["group"] = first


# ------------------------------------------------------------------ assignment


def _assign(el: Elaboration, target: ast.expr, node: ast.expr, whole: ast.stmt) -> None:
    if isinstance(target, ast.Tuple) and isinstance(node, ast.Tuple) and len(target.elts) == len(node.elts):
        values = _right_side(el, target.elts, node.elts)
        for t, v, n in zip(target.elts, values, node.elts, strict=True):
            _put(el, t, v, el.span(n), el.span(whole))
        return
    v = value(el, node)
    if isinstance(target, ast.Tuple) and isinstance(v, tuple) and len(v) == len(target.elts):
        for t, x in zip(target.elts, v, strict=True):
            _put(el, t, x, el.span(node), el.span(whole))
        return
    if isinstance(target, ast.Tuple):
        _unpack(el, target, lift(el, v, el.span(node)), el.span(whole))
        return
    _put(el, target, v, el.span(node), el.span(whole))


def _right_side(el: Elaboration, targets: list[ast.expr], nodes: list[ast.expr]) -> list[Any]:
    """All values of a tuple assignment, taken before any name is bound, as in Python.

    A value that reads a place which an earlier target of the same line rewrites, or that looks at a ring which a later value steps, is
    bound to a name of its own first.
    """
    values: list[Any] = []
    for k, node in enumerate(nodes):
        v = value(el, node)
        places = {old.ir_name for t in targets[:k] if isinstance(t, ast.Name) and isinstance(old := el.env.get(t.id), Local)}
        if isinstance(v, Expr) and not isinstance(v.type, NoneT):
            reads = {e.attrs["name"] for e in v.parts() if e.op == "var"}
            if reads & places or (k + 1 < len(nodes) and any(e.op == "at" for e in v.parts())):
                fragment = isinstance(v.type, (FragT, PairT, ListT))
                v = el.hoist("tmp", _compute(el, v, el.span(node)) if fragment else v, el.span(node))
        values.append(v)
    return values


def _unpack(el: Elaboration, target: ast.Tuple, e: Expr, span: Span) -> None:
    if not isinstance(e.type, PairT) or len(target.elts) != 2:
        el.fail("N053", f"{len(target.elts)} names are bound to {e.type}", target)
    assert el.out is not None
    pair = el.fresh("pair")
    el.out.append(Assign((pair,), _compute(el, e, span), span))
    source = Expr("var", (), {"name": pair}, e.type, e.span)
    for k, t in enumerate(target.elts):
        item = Expr("item", (source,), {"k": k}, e.type.value if k == 0 else e.type.index, e.span)
        _put(el, t, item, e.span, span)


def _put(el: Elaboration, target: ast.expr, v: Any, value_span: Span, span: Span) -> None:
    assert el.out is not None
    if not isinstance(target, ast.Name):
        el.fail("N005", "only names are assigned", target, help="operations write memory: `view.store(..)`, `lm.store(..)`")
    old = el.env.get(target.id)
    if isinstance(old, Named):
        el.fail("N052", f"`{target.id}` is declared and cannot be assigned", target)
    if not valid_name(target.id):
        el.fail("N012", "names are ASCII letters, digits and underscores, at most 64 of them", target)
    note_bound(el, target.id)
    if not isinstance(v, Expr):
        whole = isinstance(v, (Named, str, type(None))) or (isinstance(v, tuple) and not any(isinstance(x, Expr) for x in v))
        if whole or (is_const(v) and not isinstance(old, Local)):
            el.env[target.id] = v
            return
    e = lift(el, v, value_span)
    if isinstance(e.type, NoneT):
        el.fail("N062", "this operation has no value", value_span, help="write it as a statement of its own (an atomic update does not give what it found)")
    if isinstance(e.type, ScalesT):
        el.env[target.id] = named_scales(el, e, value_span)
        return
    last = el.last_hoisted(e)
    if last is not None:
        el.used.discard(last.targets[0])  # nothing else mentions it
        el.hoisted.discard(last.targets[0])
    name = _place(el, target, old, e.type)
    where = el.span(target)
    if last is not None:
        el.out[-1] = Assign((name,), last.value, span, (where,))  # what was hoisted is bound to the name itself
    elif isinstance(e.type, (FragT, PairT, ListT)):
        el.out.append(Assign((name,), _compute(el, e, span), span, (where,)))
    elif isinstance(e.type, (ScalarT, SlotT, ViewT, TmemT, TileT)):
        el.out.append(Assign((name,), el.shallow(e, span), span, (where,)))
    else:
        el.fail("N062", f"{e.type} cannot be bound", value_span)
    el.env[target.id] = Local(name, e.type, where, _is_zero(e), v if isinstance(v, (bool, int, float)) else None)


def _is_zero(e: Expr) -> bool:
    return e.op in ("rowvec", "colvec", "frag") and e.attrs.get("init") in (0, 0.0)


def _compute(el: Elaboration, e: Expr, span: Span) -> Any:
    return el.new_op("compute", {"value": e}, {}, e.type, span, {"value": e.span})


def _place(el: Elaboration, target: ast.Name, old: Any, t: Type) -> str:
    """The program's name for the place: the old one if the type stays, that of the other arm of a branch, or a new one."""
    if isinstance(old, Local) and same_place(old.type, t):
        return old.ir_name
    other = el.other_arm.get(target.id)
    if other is not None and same_place(other.type, t):
        return other.ir_name
    return el.fresh(target.id)


# ------------------------------------------------------------------ loops and branches


def _for(el: Elaboration, node: ast.For) -> None:
    if node.orelse:
        el.fail("N005", "a loop has no `else`", node.orelse[0])
    if not isinstance(node.target, ast.Name) or not valid_name(node.target.id):
        el.fail("N005", "a loop binds one plain name", node.target)
    if len(el.loops) >= MAX_DEPTH:
        el.fail("N002", f"loops are nested more than {MAX_DEPTH} deep", node)
    it = node.iter
    kind = it.func.attr if isinstance(it, ast.Call) and isinstance(it.func, ast.Attribute) and isinstance(it.func.value, ast.Name) and it.func.value.id == el.receiver else ""
    if kind not in ("range", "static_range", "tiles"):
        el.fail("N039", "a loop runs over `lm.range`, `lm.static_range` or `lm.tiles`", it, help=other_loop(it, el.receiver))
    assert isinstance(it, ast.Call)
    if it.keywords:
        el.fail("N044", f"`lm.{kind}` takes no keyword", it.keywords[0].value)
    if isinstance(el.env.get(node.target.id), Named):
        el.fail("N052", f"`{node.target.id}` is declared and cannot be a loop variable", node.target)
    head = Span(node.lineno, el.span(node).column, el.span(it).end_line, el.span(it).end_column)
    if kind == "tiles":
        v = value(el, it.args[0]) if len(it.args) == 1 else None
        if not (isinstance(v, Named) and isinstance(v.record, Scheduler)):
            el.fail("N045", "`lm.tiles` takes a scheduler", it, help=did_you_mean("", el.of_kind(Scheduler), "scheduler"))
        _loop(el, node, "tiles", TileT(v.record.name, v.record.fields), None, None, v.record.name, head, None)
        return
    if not 1 <= len(it.args) <= 2:
        el.fail("N044", f"`lm.{kind}` takes one or two numbers", it)
    bounds = [value(el, a) for a in it.args]
    lo, hi = (0, bounds[0]) if len(bounds) == 1 else bounds
    trips: int | None = None
    if kind == "static_range":
        a, b = (const_int(el, x, "a bound of `lm.static_range`") for x in ([it.args[0]] * 2 if len(bounds) == 1 else it.args))
        trips = b if len(bounds) == 1 else b - a
        if trips > 1024:
            el.fail("N020", f"`lm.static_range` unrolls {trips} times, at most 1024 are allowed", it, help="use `lm.range`")
        if steps_back(node, el.source.text):
            unrolled(el, node, b - trips, b, block)
            return
    elif is_const(lo) and is_const(hi):
        if not (isinstance(lo, int) and isinstance(hi, int)):
            el.fail("N024", "a loop runs over integers", it)
        trips = max(0, hi - lo)
    for x in (lo, hi):
        if is_const(x) and isinstance(x, int) and not -(2**31) <= x < 2**31:
            el.fail("N022", f"a loop counts in 32 bits, {x:,} does not fit", it, help="nest two loops")
    lo_e, hi_e = (as_expr(el, x, el.span(it)) for x in (lo, hi))
    for e in (lo_e, hi_e):
        el.shallow(e, el.span(it))
        if not isinstance(e.type, ScalarT) or e.type.dtype not in ("i32", "i64", "u32"):
            el.fail("N024", f"a loop runs over integers, found {e.type}", it)
    _loop(el, node, "static" if kind == "static_range" else "range", I32, lo_e, hi_e, None, head, trips)


def _loop(el: Elaboration, node: ast.For, kind: str, t: Type, lo: Expr | None, hi: Expr | None, sched: str | None, head: Span, trips: int | None) -> None:
    assert isinstance(node.target, ast.Name) and el.out is not None
    el.steps += len(el.env) // 4  # what copying the names costs
    entry = dict(el.env)
    ops, faults, used = len(el.ops), len(el.faults), set(el.used)
    attempt = 0
    while True:
        attempt += 1
        var = el.fresh(node.target.id) if node.target.id in el.used else node.target.id
        el.used.add(var)
        el.env[node.target.id] = Local(var, t, el.span(node.target))
        el.loops.append(trips)
        el.rounds.append(Round({node.target.id}))
        body = block(el, node.body)
        this = el.rounds.pop()
        el.loops.pop()
        changed = changed_names(entry, el.env)
        last, numbers = attempt == ATTEMPTS, rebound(el, entry, this.read.intersection(changed))
        weaker = changed_types(el, node, entry, changed, this.read, final=last or bool(numbers))
        if last or (not weaker and not numbers):
            el.faults += [carried_fault(name, entry[name], el.env[name], _bound_at(el, node, name)) for name in numbers if not isinstance(entry[name], Local)]
            break
        after = el.env
        del el.ops[ops:], el.faults[faults:]
        el.used, el.env = set(used), dict(entry)
        if numbers and kind == "static" and trips is not None and trips <= UNROLLED and not any(isinstance(after[n], Local) for n in numbers):
            assert lo is not None
            first = int(lo.attrs["value"])  # type: ignore[call-overload]  # a static loop has constant bounds
            unrolled(el, node, first, first + trips, block)
            return
        if numbers:
            weaker = at_run_time(el, numbers, entry, {n: _bound_at(el, node, n) for n in numbers}, after)
            used, ops, faults = set(el.used), len(el.ops), len(el.faults)
        entry = {**entry, **weaker}
        el.env = dict(entry)
    runs, told = trips is not None and trips > 0, {f.facts.get("name") for f in el.faults[faults:] if f.code == "D013"}
    if runs and el.rounds:
        el.rounds[-1].bound |= this.bound
    for name in changed:
        v = el.env[name]
        if name not in entry or (name == node.target.id and not runs):
            if not runs and isinstance(v, Local):
                el.env[name] = Lost("is bound only inside a loop that may not run", v.span)
        elif isinstance(entry[name], Local) and isinstance(v, Local) and v.ir_name != entry[name].ir_name:
            el.env[name] = v if runs else entry[name] if trips == 0 else Lost() if name in told else Lost("has one value before the loop and another inside it", v.span)
        elif not isinstance(entry[name], Local) and not runs and v is not entry[name] and (isinstance(v, Local) or v != entry[name]):
            el.env[name] = Lost("has one value before the loop and another inside it", v.span if isinstance(v, Local) else _bound_at(el, node, name))
    el.out.append(For(kind, var, t, lo, hi, sched, body, el.span(node), head))


def _bound_at(el: Elaboration, node: ast.For, name: str) -> Span:
    """Where a loop's body binds a name first."""
    return next((el.span(n) for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)), el.span(node))


def _if(el: Elaboration, node: ast.If) -> None:
    assert el.out is not None
    test = value(el, node.test)
    if is_const(test):
        taken, skipped = (node.body, node.orelse) if test else (node.orelse, node.body)
        never_set(el, node, skipped)
        _each(el, taken)
        return
    cond = el.shallow(as_expr(el, test, el.span(node.test)), el.span(node.test))
    el.steps += len(el.env) // 4  # what copying and joining the names costs
    if cond.type != BOOL:
        el.fail("N064", f"a branch needs a condition that is uniform over the role, found {cond.type}", node.test, help=branchable(cond.type))
    entry, first = dict(el.env), set(el.rounds[-1].bound) if el.rounds else set()
    then = block(el, node.body)
    after_then, el.env = el.env, dict(entry)
    bound = set(el.rounds[-1].bound) if el.rounds else set()
    if el.rounds:
        el.rounds[-1].bound = set(first)
    outer = el.other_arm
    el.other_arm = {k: v for k, v in after_then.items() if isinstance(v, Local) and entry.get(k) is not v}
    orelse = block(el, node.orelse)
    el.other_arm = outer
    if el.rounds:
        el.rounds[-1].bound &= bound
    more_then, more_else, both = joined(el, node, after_then, el.env)
    el.env = _join(entry, {**after_then, **both}, {**el.env, **both}, bool(node.orelse))
    el.out.append(If(cond, (*then, *more_then), (*orelse, *more_else), el.span(node), el.span(node.test)))


def _join(entry: dict[str, Any], a: dict[str, Any], b: dict[str, Any], both: bool) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name in {**a, **b}:
        x, y = a.get(name), b.get(name)
        if x is y or x == y:
            out[name] = x
        elif isinstance(x, Lost) or isinstance(y, Lost):
            out[name] = x if isinstance(x, Lost) else y
        elif isinstance(x, Local) and isinstance(y, Local) and x.ir_name == y.ir_name:
            out[name] = x if x.type == y.type else Lost("has two types after the branches", x.span)
        else:
            where = x if isinstance(x, Local) else y
            seen = next((v for v in (x, y) if v is not None and v is not entry.get(name)), None)
            types = [v.type for v in (x, y) if isinstance(v, Local)]
            other = f"is {types[0]} on one path and {types[1]} on the other" if len(types) == 2 and types[0] != types[1] else "has one value on one path and another on the other"
            reason = other if x is not None and y is not None else "is bound on one path only"
            out[name] = Lost(reason, where.span if isinstance(where, Local) else None, seen)
    return out

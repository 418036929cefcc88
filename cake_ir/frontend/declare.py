"""The declaration block: everything a kernel allocates, evaluated to records of `program`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from cake_ir.frontend.arith import as_expr, is_const
from cake_ir.frontend.fields import Fields
from cake_ir.frontend.scope import Elaboration, Local, Named
from cake_ir.frontend.source import valid_name
from cake_ir.frontend.values import value
from cake_ir.program import (
    Assume,
    AssumeValues,
    Barrier,
    ClusterBarrier,
    Decl,
    Expr,
    Launch,
    Let,
    NamedBarrier,
    Pipeline,
    Role,
    Scheduler,
    SmemPool,
    Tmem,
    Turns,
    View,
)  # fmt: skip
from cake_ir.types import ScalarT

ARRIVALS = ("tx", "warp", "member", "thread", "cp_async", "mma")
KINDS = ("grid", "static", "grouped", "counter", "clc")
SWIZZLES = ("128b", "64b", "32b")


def declare(el: Elaboration, node: ast.stmt) -> None:
    """Elaborate one statement of the declaration block."""
    if isinstance(node, ast.Assign):
        if len(node.targets) != 1:
            el.fail("N005", "assign one target at a time", node)
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) and len(target.elts) == len(node.value.elts):
            for t, v in zip(target.elts, node.value.elts, strict=True):
                _bind(el, t, v)
            return
        _bind(el, target, node.value)
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        v = value(el, ast.copy_location(ast.BinOp(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target), node.op, node.value), node))
        _put(el, node.target, v)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        name = _declaration(el, node.value)
        if name in ("launch", "assume", "assume_values"):
            el.decls.append(_MAKERS[name](el, Fields(el, node.value, name), ""))
            return
        if name:
            el.fail("N051", f"`lm.{name}` is declared and given no name", node, help=f"write `name = lm.{name}(..)`")
        value(el, node.value)
    elif isinstance(node, ast.If):
        test = value(el, node.test)
        if not is_const(test):
            el.fail("N024", "a declaration depends on a run-time condition", node.test, help="declare it always, or branch on a tunable")
        for s in node.body if test else node.orelse:
            declare(el, s)
    elif isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return
    else:
        refuse_statement(el, node)


def refuse_statement(el: Elaboration, node: ast.stmt) -> None:
    """N005 for a statement that the language does not have, with the nearest thing that works."""
    name = type(node).__name__
    hints = {
        "While": ("`while` is not part of the language", "loop with `for i in lm.range(n)`"),
        "FunctionDef": ("nested functions are not part of the language", "write the body where it is used"),
        "AsyncFunctionDef": ("nested functions are not part of the language", ""),
        "ClassDef": ("classes are not part of the language", ""),
        "Import": ("imports are not part of the language", "`lm` and `LM` are always there"),
        "ImportFrom": ("imports are not part of the language", "`lm` and `LM` are always there"),
        "Return": ("`return` is not part of the language", "a schedule ends with its last role block"),
        "Try": ("`try` is not part of the language", ""),
        "Global": ("`global` is not part of the language", ""),
        "Delete": ("`del` is not part of the language", ""),
        "For": ("a `for` loop stands outside a role block", "move it into `with role:`, or use a comprehension over compile-time values"),
        "With": ("only `with role:` blocks exist", ""),
        "Assert": ("`assert` is not part of the language", "state facts with `lm.assume(cond)`"),
        "Break": ("`break` is not part of the language", "bound the loop's range"),
        "Continue": ("`continue` is not part of the language", "use `if`"),
        "Match": ("`match` is not part of the language", "use `if`"),
    }
    message, help = hints.get(name, (f"`{name.lower()}` is not part of the language", ""))
    el.fail("N005", message, node, help=help)


def _declaration(el: Elaboration, node: ast.expr) -> str:
    """The name of the declaration that `node` calls, or an empty string."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        func = node.func
        if isinstance(func.value, ast.Name) and func.value.id == el.receiver and func.attr in _MAKERS:
            if func.attr == "view":
                pools = [n for n, v in el.env.items() if isinstance(v, Named) and isinstance(v.record, SmemPool)]
                el.fail("N028", f"`{el.receiver}.view` is not an operation: a view is cut from a pool", func, help=f"write `{pools[0] if pools else 'pool'}.view(..)`")
            return func.attr
        if func.attr == "view" and isinstance(func.value, ast.Name):
            pool = el.env.get(func.value.id)
            if isinstance(pool, Named) and isinstance(pool.record, SmemPool):
                return "view"
    return ""


def _bind(el: Elaboration, target: ast.expr, node: ast.expr) -> None:
    name = _declaration(el, node)
    if not name:
        _put(el, target, value(el, node))
        return
    if not isinstance(target, ast.Name):
        el.fail("N005", "a declared thing is bound to a plain name", target)
    _fresh_name(el, target)
    assert isinstance(node, ast.Call)
    record = _MAKERS[name](el, Fields(el, node, name), target.id)
    if isinstance(record, (Launch, Assume, AssumeValues)):
        el.fail("N051", f"`lm.{name}` has no value", node)
    el.decls.append(record)
    el.env[target.id] = Named(record)


def _fresh_name(el: Elaboration, target: ast.Name) -> None:
    if not valid_name(target.id):
        el.fail("N012", "names are ASCII letters, digits and underscores, at most 64 of them", target)
    if target.id == el.receiver:
        el.fail("N052", f"`{target.id}` is the schedule's receiver", target)
    if isinstance(el.env.get(target.id), Named):
        el.fail("N052", f"`{target.id}` is already declared", target, help="give each resource a name of its own")
    el.used.add(target.id)


def _put(el: Elaboration, target: ast.expr, v: Any) -> None:
    if isinstance(target, ast.Tuple):
        if not isinstance(v, tuple) or len(v) != len(target.elts):
            el.fail("N053", f"{len(target.elts)} names are bound to {len(v) if isinstance(v, tuple) else 1} values", target)
        for t, x in zip(target.elts, v, strict=True):
            _put(el, t, x)
        return
    if not isinstance(target, ast.Name):
        el.fail("N005", "only names are assigned", target)
    if isinstance(v, Named):
        el.env[target.id] = v
        return
    if isinstance(v, Expr):
        if not isinstance(v.type, ScalarT):
            el.fail("N040", f"{v.type} belongs to a role", target, help="move the line into `with role:`")
        _fresh_name(el, target)
        el.decls.append(Let(target.id, el.shallow(v, el.span(target)), el.span(target)))
        el.env[target.id] = Local(target.id, v.type, el.span(target))
        return
    if isinstance(el.env.get(target.id), Named):
        el.fail("N052", f"`{target.id}` is already declared", target)
    if not valid_name(target.id):
        el.fail("N012", "names are ASCII letters, digits and underscores, at most 64 of them", target)
    el.env[target.id] = v
    el.used.add(target.id)


# ------------------------------------------------------------------ one maker a declaration


def _launch(el: Elaboration, f: Fields, name: str) -> Decl:
    if any(isinstance(d, Launch) for d in el.decls):
        el.fail("N054", "`lm.launch` is stated twice", f.span)
    grid = f.choice("grid", ("tiles", "persistent"))
    cluster = f.ints("cluster", 2, (1, 1))
    if min(cluster) < 1:
        el.fail("N055", "a cluster has at least one CTA along each axis", f.spans["cluster"])
    ctas = f.int("ctas_per_sm", 1, low=1, high=32)
    f.done()
    return Launch(grid, (cluster[0], cluster[1]), ctas, f.span, f.spans)


def _assume(el: Elaboration, f: Fields, name: str) -> Decl:
    v = f.raw("cond")
    f.done()
    if is_const(v):
        if not v:
            el.fail("N056", "the assumption is false for these tunables", f.spans["cond"], help="choose other tunables")
        v = True
    e = el.shallow(as_expr(el, v, f.spans["cond"]), f.spans["cond"])
    if e.type != ScalarT("bool"):
        el.fail("N023", "`lm.assume` takes a condition", f.spans["cond"])
    return Assume(e, f.span)


def _assume_values(el: Elaboration, f: Fields, name: str) -> Decl:
    tensor = f.tensor("tensor", ("gmem",))
    lo, hi = f.scalar("lo"), f.scalar("hi")
    for key, bound in (("lo", lo), ("hi", hi)):
        number = bound.attrs["value"] if bound.op == "const" else None
        if isinstance(number, float) or not isinstance(bound.type, ScalarT) or bound.type.dtype not in ("i32", "i64", "u32"):
            found = f"{number}" if isinstance(number, float) else str(bound.type)
            el.fail("N055", f"a bound of `lm.assume_values` is an integer, found {found}", f.spans.get(key, f.span), help="write an integer, an argument, or leave the statement out")
    ordered = f.bool("sorted", False)
    f.done()
    return AssumeValues(tensor, lo, hi, ordered, f.span)


def _smem(el: Elaboration, f: Fields, name: str) -> Decl:
    nbytes = f.int("nbytes", low=1, high=2**31 - 1)
    f.done()
    return SmemPool(name, nbytes, f.span)


def _view(el: Elaboration, f: Fields, name: str) -> Decl:
    offset = f.int("offset", low=0, high=2**31 - 1)
    shape = f.ints("shape", None)
    if not 1 <= len(shape) <= 2 or min(shape) < 1 or max(shape) > 2**24:
        el.fail("N057", "a view is (n,) or (rows, cols), each at least 1", f.spans["shape"])
    dtype = f.dtype("dtype")
    stages = f.int("stage", 1, low=1, high=4096)
    swizzle = f.choice("swizzle", (*SWIZZLES, None), None)
    stage_bytes = f.optional_int("stage_bytes", low=1, high=2**31 - 1)
    f.done()
    return View(name, f.receiver, offset, shape, dtype, stages, swizzle, stage_bytes, f.span, f.spans)


def _tmem(el: Elaboration, f: Fields, name: str) -> Decl:
    col, width = f.int("cols", low=0, high=4096), f.int("width", low=1, high=4096)
    shape = f.ints("shape", 2)
    dtype = f.dtype("dtype")
    f.done()
    return Tmem(name, col, width, (shape[0], shape[1]), dtype, f.span, f.spans)


def _role(el: Elaboration, f: Fields, name: str) -> Decl:
    warps = f.ints("warps", None)
    if not warps or list(warps) != list(range(warps[0], warps[0] + len(warps))) or warps[0] < 0:
        el.fail("N058", "a role's warps are consecutive, from 0 on", f.spans["warps"], help="write `warps=range(0, 4)`")
    if warps[-1] >= 64:
        el.fail("N058", f"warp {warps[-1]} does not exist: a CTA has at most 32 warps", f.spans["warps"])
    regs = f.optional_int("regs", low=1, high=512)
    members = f.int("members", 1, low=1, high=32)
    f.done()
    if len(warps) % members:
        el.fail("N059", f"{len(warps)} warps do not split over {members} members", f.spans["members"], expected=f"a divisor of {len(warps)}", found=members)
    return Role(name, warps[0], warps[-1] + 1, regs, members, f.span, f.spans)


def _pipeline(el: Elaboration, f: Fields, name: str) -> Decl:
    stages = f.int("stages", low=1, high=4096)
    f.done()
    return Pipeline(name, stages, f.span, f.spans)


def _barrier(el: Elaboration, f: Fields, name: str) -> Decl:
    count = f.optional_int("count", low=1, high=4096)
    prod, cons = f.names("prod", Role), f.names("cons", Role)
    init_count = f.optional_int("init_count", low=1, high=2**20)
    ring = f.name("pipeline", Pipeline)
    arrive = f.choice("arrive", ARRIVALS, "tx")
    primed = f.bool("primed", False)
    scope = f.choice("scope", ("cta", "cluster"), "cta")
    f.done()
    return Barrier(name, ring, prod, cons, arrive, primed, scope, count, init_count, f.span, f.spans)


def _named(el: Elaboration, f: Fields, name: str) -> Decl:
    roles = f.names("roles", Role)
    per_member = f.bool("per_member", False)
    f.done()
    return NamedBarrier(name, roles, per_member, f.span, f.spans)


def _turns(el: Elaboration, f: Fields, name: str) -> Decl:
    role = f.name("role", Role)
    f.done()
    record = el.declared(role)
    if record.members < 2:
        el.fail("N060", f"`{role}` has one member, turns need two or more", f.spans["role"], related=((record.span, "declared with one member"),))
    return Turns(name, role, f.span)


def _cluster_barrier(el: Elaboration, f: Fields, name: str) -> Decl:
    f.done()
    return ClusterBarrier(name, f.span)


def _scheduler(el: Elaboration, f: Fields, name: str) -> Decl:
    kind = f.choice("kind", KINDS)
    tiles = f.scalars("tiles")
    names = f.strings("names", ("m", "n")[: len(tiles)] if len(tiles) <= 2 else None)
    for n in names:
        if not valid_name(n):
            el.fail("N012", "names are ASCII letters, digits and underscores, at most 64 of them", f.spans.get("names", f.span))
    if kind != "grouped" and len(names) != len(tiles):
        el.fail("N053", f"{len(tiles)} axes have {len(names)} names", f.spans.get("names", f.span), expected=len(tiles), found=len(names))
    if len(set(names)) != len(names):
        el.fail("N052", "two axes have one name", f.spans.get("names", f.span))
    raster = f.choice("raster", (*names, "heavy_first", None), None)
    swizzle = f.int("swizzle", 1, low=1, high=4096)
    cluster = f.ints("cluster", 2, None)
    if cluster is None:
        launch = next((d for d in el.decls if isinstance(d, Launch)), None)
        cluster = launch.cluster if launch else (1, 1)
    offsets, counter = f.optional_tensor("offsets"), f.optional_tensor("counter")
    fetch = f.optional_name("fetch", Role)
    block = f.optional_int("block", low=1, high=2**20)
    deal = f.choice("deal", ("snake", None), None)
    f.done()
    if deal and kind != "static":
        el.fail("N044", f'`deal="{deal}"` is a way to deal tiles out in rounds, `kind="{kind}"` has none', f.spans.get("deal", f.span), help='use `kind="static"`')
    needs = {"grouped": ("offsets", offsets), "counter": ("counter", counter), "clc": ("fetch", fetch)}.get(kind)
    if needs and needs[1] is None:
        el.fail("N044", f'`kind="{kind}"` needs `{needs[0]}=`', f.span)
    return Scheduler(name, kind, tiles, names, raster, swizzle, (cluster[0], cluster[1]), offsets, counter, fetch, block, f.span, f.spans, deal)


_MAKERS: dict[str, Callable[[Elaboration, Fields, str], Decl]] = {
    "launch": _launch, "assume": _assume, "assume_values": _assume_values, "smem": _smem, "view": _view, "tmem": _tmem, "role": _role,
    "pipeline": _pipeline, "barrier": _barrier, "named_barrier": _named, "turns": _turns, "cluster_barrier": _cluster_barrier, "scheduler": _scheduler,
}  # fmt: skip

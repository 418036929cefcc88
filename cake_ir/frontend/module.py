"""`parse`: from text to a `Module` of templates. Nothing is executed; every refusal is a located fault."""

from __future__ import annotations

import ast

from cake_ir.dtypes import DTYPES
from cake_ir.fault import Edit, Fault, FaultError, Fix, did_you_mean
from cake_ir.frontend.source import Source, check_depth, read, valid_name
from cake_ir.frontend.template import Module, Template
from cake_ir.program import Const, Param
from cake_ir.span import Span
from cake_ir.targets import TARGETS

_KINDS = {f"tma{n}d": ("tma", n) for n in range(1, 6)} | {f"gmem{n}d": ("gmem", n) for n in range(1, 5)}
_SCALARS = ("i32", "f32", "i64", "u32", "bool")


def parse(text: str, filename: str = "<text>") -> Module:
    """Parse a file of schedules. Never raises for bad text: faults are in the result."""
    try:
        source, tree = read(text, filename)
        check_depth(tree, source)
    except FaultError as e:
        return Module((), None, (e.fault,), Source(text[:65536], filename))
    faults: list[Fault] = []
    schedules: list[Template] = []
    plan: Template | None = None
    for index, node in enumerate(tree.body):
        try:
            if isinstance(node, ast.FunctionDef):
                template = _template(node, source)
                if template.plan:
                    if plan is not None:
                        raise FaultError(Fault("N010", "a file has at most one plan", template.span, ((plan.span, "the first one"),)))
                    plan = template
                else:
                    if any(s.name == template.name for s in schedules):
                        raise FaultError(Fault("N011", f"schedule `{template.name}` is defined twice", template.span))
                    schedules.append(template)
            elif not _ignored(node, index):
                raise FaultError(Fault("N003", f"{_what(node)} has no meaning at the top of a file", source.span(node),
                                       help="a file holds `@cake.schedule` functions and at most one `@cake.plan`"))  # fmt: skip
        except FaultError as e:
            faults.append(e.fault)
    if not schedules and not faults:
        faults.append(Fault("N004", "the text holds no schedule", Span(1, 1, 1, 2), help="start one with `@cake.schedule(target=\"sm_90a\")`"))
    return Module(tuple(schedules), plan, tuple(faults), source)


def _what(node: ast.AST) -> str:
    name = {"Import": "an import", "ImportFrom": "an import", "ClassDef": "a class", "AsyncFunctionDef": "an async function",
            "Expr": "an expression", "Assign": "an assignment", "While": "`while`", "For": "`for`", "If": "`if`"}.get(type(node).__name__)  # fmt: skip
    return name or f"`{type(node).__name__.lower()}`"


def _ignored(node: ast.stmt, index: int) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) and index == 0:
        return True
    if isinstance(node, ast.Import):
        return all(a.name == "cake" and a.asname is None for a in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.module == "cake" and node.level == 0 and all(a.name in ("LM", "lm") and a.asname is None for a in node.names)
    return False


def _template(node: ast.FunctionDef, source: Source) -> Template:
    head = Span(node.lineno, node.col_offset + 1, node.lineno, node.col_offset + 5 + len(node.name))
    name_span = Span(node.lineno, node.col_offset + 5, node.lineno, node.col_offset + 5 + len(node.name))
    if not valid_name(node.name):
        raise FaultError(Fault("N012", "names are ASCII letters, digits and underscores, at most 64 of them", head))
    if len(node.decorator_list) != 1:
        raise FaultError(Fault("N013", f"function `{node.name}` is not a schedule", head, help="decorate it with `@cake.schedule(target=..)`"))
    kind, targets, target_span = _decorator(node.decorator_list[0], source)
    args = node.args
    if args.vararg or args.kwarg or args.posonlyargs:
        raise FaultError(Fault("N014", "a schedule takes neither `*args`, `**kwargs` nor positional-only parameters", name_span))
    if args.defaults:
        raise FaultError(Fault("N014", "a positional parameter is a run-time argument and has no default", source.span(args.defaults[0]),
                               help="compile-time tunables come after `*`"))  # fmt: skip
    if not args.args:
        raise FaultError(Fault("N014", f"`{node.name}` has no `lm` parameter", name_span, help=f"write `def {node.name}(lm, ..)`"))
    receiver = args.args[0].arg
    params = tuple(_param(a, source) for a in args.args[1:])
    seen: dict[str, Span] = {}
    for a in args.args + args.kwonlyargs:
        span = source.span(a)
        if not valid_name(a.arg):
            raise FaultError(Fault("N012", "names are ASCII letters, digits and underscores, at most 64 of them", span))
        if a.arg in seen:
            raise FaultError(Fault("N052", f"two parameters are called `{a.arg}`", span, ((seen[a.arg], "the first one"),)))
        seen[a.arg] = span
    tunables: dict[str, Const] = {}
    spans: dict[str, Span] = {}
    for a, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        tunables[a.arg] = _default(default, source) if default is not None else None
        spans[a.arg] = seen[a.arg]
    doc, body = "", list(node.body)
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str):
        doc, body = body[0].value.value, body[1:]
    return Template(node.name, targets, params, tunables, spans, tuple(body), doc, name_span, receiver, source, target_span, kind == "plan")


def _decorator(node: ast.expr, source: Source) -> tuple[str, tuple[str, ...], Span]:
    span = source.span(node)
    call = node if isinstance(node, ast.Call) else None
    func = call.func if call else node
    if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "cake" and func.attr in ("schedule", "plan")):
        raise FaultError(Fault("N013", "the only decorators are `@cake.schedule(..)` and `@cake.plan()`", span))
    targets: tuple[str, ...] = ()
    target_span = span
    if call:
        if call.args:
            raise FaultError(Fault("N013", f"`@cake.{func.attr}` takes keywords only", source.span(call.args[0]), help='write `target="sm_90a"`'))
        for k in call.keywords:
            if k.arg != "target" or func.attr == "plan":
                raise FaultError(Fault("N013", f"`@cake.{func.attr}` has no option `{k.arg}`", source.span(k.value)))
            value = _default(k.value, source)
            names = value if isinstance(value, tuple) else (value,)
            target_span = source.span(k.value)
            for n in names:
                if n not in TARGETS:
                    raise FaultError(Fault("N015", f"`{n}` is not a target" if isinstance(n, str) and valid_name(n) else "the target is not one of the seven names",
                                           target_span, help=did_you_mean(str(n), TARGETS, "target")))  # fmt: skip
            targets = tuple(str(n) for n in names)
    return func.attr, targets, target_span


def _default(node: ast.expr, source: Source) -> Const:
    """A compile-time literal: number, string, None, dtype, or a tuple of those."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, bool, str, type(None))):
        if isinstance(node.value, int) and node.value.bit_length() > 63:
            raise FaultError(Fault("N016", "an integer does not fit 64 bits", source.span(node)))
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _default(node.operand, source)
        if isinstance(value, (int, float)):
            return -value
    if isinstance(node, (ast.Tuple, ast.List)):
        return tuple(_default(e, source) for e in node.elts)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("lm", "LM") and node.attr in DTYPES:
        return node.attr
    raise FaultError(Fault("N016", "a compile-time value here is a number, a string, None, a dtype or a tuple of those", source.span(node)))


def _param(a: ast.arg, source: Source) -> Param:
    span = source.span(a)
    name_span = Span(span.line, span.column, span.line, span.column + len(a.arg))
    node = a.annotation
    if node is None:
        raise FaultError(Fault("N017", f"parameter `{a.arg}` has no type", name_span, help="write `LM.tma2d`, `LM.gmem2d[LM.bf16]`, `LM.i32` or the like"))
    marks: set[str] = set()
    while isinstance(node, ast.Attribute) and (node.attr in _MARKS or _typed(node.value)):
        if node.attr not in _MARKS:
            raise _no_mark(node, source)
        marks.add(node.attr)
        node = node.value
    items: list[ast.expr] = []
    if isinstance(node, ast.Subscript):
        items = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        node = node.value
    base = node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("LM", "lm") else None
    if base is None:
        raise FaultError(Fault("N017", f"the type of `{a.arg}` is not one of `LM`'s", source.span(a.annotation), help=did_you_mean("", (*_KINDS, *_SCALARS), "type")))  # type: ignore[arg-type]  # an annotation is there
    if base in _SCALARS and not items:
        return Param(a.arg, "scalar", 0, base, name_span)
    if base not in _KINDS:
        raise FaultError(Fault("N017", f"`LM.{base}` is not a parameter type", source.span(node), help=did_you_mean(base, (*_KINDS, *_SCALARS), "type")))
    kind, rank = _KINDS[base]
    dtype: str | None = None
    extents: list[str | int] = []
    for i, item in enumerate(items):
        if i == 0 and isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name) and item.value.id in ("LM", "lm"):
            if item.attr not in DTYPES:
                raise FaultError(Fault("N018", f"`{item.attr}` is not a dtype", source.span(item), help=_dtype_meant(item.attr)))
            dtype = item.attr
        elif isinstance(item, ast.Constant) and isinstance(item.value, (int, str)) and not isinstance(item.value, bool):
            extents.append(item.value)
        else:
            raise FaultError(Fault("N018", f"`{a.arg}` is annotated with something that is neither a dtype nor an extent", source.span(item),
                                   help='write `LM.gmem2d[LM.bf16, "M", "N"]`, extents outermost first'))  # fmt: skip
    if extents and len(extents) != rank:
        raise FaultError(Fault("N018", f"`{a.arg}` has {rank} dimensions but {len(extents)} extents", source.span(items[-1]), facts={"expected": rank, "found": len(extents)}))
    return Param(a.arg, kind, rank, dtype, name_span, "const" in marks, "zeroed" in marks, tuple(extents), inout="inout" in marks)


_MARKS = ("const", "zeroed", "inout")


def _typed(node: ast.expr) -> bool:
    """Whether a type of ours stands here, behind which marks may follow."""
    while isinstance(node, (ast.Subscript, ast.Attribute)) and not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        node = node.value
    return isinstance(node, ast.Attribute) and node.attr in _KINDS


def _no_mark(node: ast.Attribute, source: Source) -> FaultError:
    """A word behind a parameter's type that says nothing of it: `.out`, which other languages have."""
    at, inner = source.span(node), source.span(node.value)
    mark = Span(inner.end_line, inner.end_column, at.end_line, at.end_column)
    return FaultError(Fault("N017", f"`.{node.attr}` is no mark of a parameter", mark, help="marks are `.const`, `.zeroed` and `.inout`; a tensor is an output by being stored to",
                            fixes=(Fix((Edit(mark, ""),), "likely", "leave it out"),)))  # fmt: skip


_ELSEWHERE = {
    "float": "f32", "float32": "f32", "fp32": "f32", "float16": "f16", "half": "f16", "fp16": "f16", "bfloat16": "bf16", "int": "i32", "int32": "i32", "int64": "i64",
    "int8": "i8", "uint8": "u8", "uint32": "u32", "fp8": "e4m3", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "f8e4m3": "e4m3",
}  # fmt: skip
"""Names that other languages have for element types."""


def _dtype_meant(name: str) -> str:
    """Which dtype a name that is none may stand for."""
    if name in _ELSEWHERE:
        return f"did you mean `{_ELSEWHERE[name]}`?"
    if name in ("f64", "fp64", "float64", "double"):
        return "the widest float is `f32`"
    return did_you_mean(name, DTYPES, "dtype")

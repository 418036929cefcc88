"""The arguments of one declaration, taken by name and kind, each fault pointing at its argument."""

from __future__ import annotations

import ast
from typing import Any

from cake_ir.fault import did_you_mean
from cake_ir.frontend.arith import as_expr, is_const
from cake_ir.frontend.scope import DTypeName, Elaboration, Named
from cake_ir.frontend.values import const_value, value
from cake_ir.program import Expr, Param
from cake_ir.span import Span
from cake_ir.types import ScalarT

PARAMS: dict[str, tuple[str, ...]] = {
    "launch": ("grid", "cluster", "ctas_per_sm"), "assume": ("cond",), "assume_values": ("tensor", "lo", "hi", "sorted"), "smem": ("nbytes",),
    "view": ("offset", "shape", "dtype", "stage", "swizzle", "stage_bytes"), "tmem": ("cols", "width", "shape", "dtype"),
    "role": ("warps", "regs", "members"), "pipeline": ("stages",),
    "barrier": ("pipeline", "prod", "cons", "arrive", "primed", "scope", "count", "init_count"), "named_barrier": ("roles", "per_member"),
    "turns": ("role",), "cluster_barrier": (),
    "scheduler": ("kind", "tiles", "names", "raster", "swizzle", "cluster", "offsets", "counter", "fetch", "block", "deal"),
}  # fmt: skip
"""Parameters of each declaration, in positional order."""

_MISSING = object()


class Fields:
    """Reads the arguments of `lm.<name>(..)`; `done` refuses what nobody asked for."""

    def __init__(self, el: Elaboration, node: ast.Call, name: str) -> None:
        self.el, self.node, self.decl = el, node, name
        self.span: Span = el.span(node)
        self.receiver = node.func.value.id if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) else ""
        params = PARAMS[name]
        if len(node.args) > len(params):
            el.fail("N044", f"`{name}` takes at most {len(params)} arguments", node.args[len(params)], help=f"parameters: {', '.join(params)}")
        given: dict[str, ast.expr] = dict(zip(params, node.args, strict=False))
        for k in node.keywords:
            p = k.arg
            if p is None:
                el.fail("N005", "`**` unpacking is not part of the language", k.value)
            if p not in params:
                el.fail("N048", f"`{name}` has no option `{p}`", k.value, help=did_you_mean(p, params, "option"))
            if p in given:
                el.fail("N044", f"`{p}` is given twice", k.value)
            given[p] = k.value
        self.given = given
        self.spans: dict[str, Span] = {p: el.span(arg) for p, arg in given.items()}

    def _take(self, name: str, default: Any) -> ast.expr | None:
        node = self.given.pop(name, None)
        if node is None and default is _MISSING:
            self.el.fail("N044", f"`{self.decl}` needs `{name}`", self.node, help=f"parameters: {', '.join(PARAMS[self.decl])}")
        return node

    def raw(self, name: str) -> Any:
        node = self._take(name, _MISSING)
        assert node is not None
        return value(self.el, node)

    def const(self, name: str, default: Any = _MISSING) -> Any:
        node = self._take(name, default)
        return default if node is None else const_value(self.el, node, f"`{name}`")

    def int(self, name: str, default: Any = _MISSING, *, low: int | None = None, high: int | None = None) -> int:
        v = self.const(name, default)
        if not isinstance(v, int) or isinstance(v, bool):
            self.el.fail("N024", f"`{name}` is an integer, found {v!r}"[:120], self.spans[name], help="use `//` to divide" if isinstance(v, float) else "")
        if (low is not None and v < low) or (high is not None and v > high):
            self.el.fail("N055", f"`{name}` is {v}, it lies in {low} to {high}", self.spans.get(name, self.span), expected=[low, high], found=v)
        return v

    def optional_int(self, name: str, *, low: int | None = None, high: int | None = None) -> int | None:
        if name not in self.given:
            return None
        node = self.given[name]
        if isinstance(node, ast.Constant) and node.value is None:
            self.given.pop(name)
            return None
        if const_value(self.el, node, f"`{name}`") is None:
            self.given.pop(name)
            return None
        return self.int(name, low=low, high=high)

    def ints(self, name: str, count: int | None, default: Any = _MISSING) -> Any:
        v = self.const(name, default)
        if v is default and default is not _MISSING:
            return v
        if isinstance(v, int) and not isinstance(v, bool):
            v = (v,)
        if not isinstance(v, tuple) or not all([isinstance(x, int) and not isinstance(x, bool) for x in v]) or (count is not None and len(v) != count):
            want = f"{count} integers" if count else "integers"
            self.el.fail("N024", f"`{name}` is a tuple of {want}", self.spans.get(name, self.span))
        return v

    def strings(self, name: str, default: Any) -> tuple[str, ...]:
        v = self.const(name, default)
        if isinstance(v, str):
            v = (v,)
        if not isinstance(v, tuple) or not all(isinstance(x, str) for x in v):
            self.el.fail("N024", f"`{name}` is a tuple of strings, one an axis", self.spans.get(name, self.span))
        return v

    def choice(self, name: str, options: tuple[Any, ...], default: Any = _MISSING) -> Any:
        v = self.const(name, default)
        if v not in options or isinstance(v, bool):
            shown = v if isinstance(v, str) else repr(v) if isinstance(v, (int, float, tuple, type(None))) else ""
            found = f"`{shown}`" if shown and len(shown) < 40 and shown.isprintable() else "this"
            self.el.fail("N061", f"`{name}` cannot be {found}", self.spans[name],
                         help=did_you_mean(str(v), [str(o) for o in options], "option"), expected=[str(o) for o in options])  # fmt: skip
        return v

    def bool(self, name: str, default: Any = _MISSING) -> bool:
        v = self.const(name, default)
        if not isinstance(v, bool):
            self.el.fail("N024", f"`{name}` is True or False", self.spans[name])
        return v

    def dtype(self, name: str) -> str:
        v = self.const(name)
        if not isinstance(v, DTypeName):
            from cake_ir.dtypes import DTYPES

            if isinstance(v, str) and v in DTYPES:
                return v
            self.el.fail("N018", f"`{name}` is not a dtype", self.spans[name], help="write `lm.bf16` or the like")
        return str(v)

    def _record(self, name: str, v: Any, cls: type) -> str:
        if not (isinstance(v, Named) and isinstance(v.record, cls)):
            words = {"Role": "role", "Pipeline": "ring"}.get(cls.__name__, cls.__name__.lower())
            self.el.fail("N045", f"`{name}` names no {words}", self.spans[name], help=did_you_mean("", self.el.of_kind(cls), words))
        return v.record.name

    def name(self, name: str, cls: type) -> str:
        return self._record(name, self.raw(name), cls)

    def optional_name(self, name: str, cls: type) -> str | None:
        return self.name(name, cls) if name in self.given else None

    def names(self, name: str, cls: type) -> tuple[str, ...]:
        v = self.raw(name)
        items = v if isinstance(v, tuple) else (v,)
        return tuple(self._record(name, x, cls) for x in items)

    def tensor(self, name: str, kinds: tuple[str, ...]) -> str:
        v = self.raw(name)
        if not (isinstance(v, Named) and isinstance(v.record, Param) and v.record.kind in kinds):
            self.el.fail("N045", f"`{name}` takes a tensor declared `LM.gmem..`", self.spans[name])
        return v.record.name

    def optional_tensor(self, name: str) -> str | None:
        return self.tensor(name, ("gmem",)) if name in self.given else None

    def scalar(self, name: str) -> Expr:
        e = self.el.shallow(as_expr(self.el, self.raw(name), self.spans[name]), self.spans[name])
        if not isinstance(e.type, ScalarT):
            self.el.fail("N021", f"{e.type} is not a number", self.spans[name])
        return e

    def scalars(self, name: str) -> tuple[Expr, ...]:
        v = self.raw(name)
        items = v if isinstance(v, tuple) else (v,)
        if not 1 <= len(items) <= 4:
            self.el.fail("N057", f"`{name}` has one to four axes", self.spans[name])
        for x in items:
            if is_const(x) and (not isinstance(x, int) or x < 0):
                self.el.fail("N024", f"`{name}` counts tiles", self.spans[name])
        out = tuple(self.el.shallow(as_expr(self.el, x, self.spans[name]), self.spans[name]) for x in items)
        for e in out:
            if not isinstance(e.type, ScalarT):
                self.el.fail("N021", f"{e.type} is not a number", self.spans[name])
        return out

    def done(self) -> None:
        """Every argument has been read (`__init__` refuses unknown ones)."""
        assert not self.given, sorted(self.given)

"""Stores that are not there: of a value that nobody uses to a tensor that nobody writes, or to a view that is stored unwritten."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cake_ir.program import Assign, Op, Param, Program, statements
from cake_ir.types import FragT
from cake_verify.proposals.operands import coordinates_of
from cake_verify.proposals.source import Placed, Proposal, Source, called


def idle(program: Program) -> list[Param]:
    """Tensors that may be written and that no operation names."""
    named = {v for op in program.ops for v in op.attrs.values() if isinstance(v, str)}
    return [t for t in program.tensors.values() if not t.const and t.name not in named]


def stores(s: Source) -> Iterator[Proposal]:
    """Stores to tensors that no operation names, of what the role has in registers or in a view."""
    unused = idle(s.program)
    drained = {q.role: q.line for q in s.statements if q.name in ("mma_wait", "tmem_wait")}  # the last of each role
    for q in s.statements:
        if isinstance(q.node, ast.With) or not unused or (s.unused and (q.node.end_lineno or q.line) < drained.get(q.role, 0)):
            continue
        for t in unused:
            if t.kind == "tma":
                yield from _from_view(s, q, t)
            else:
                for name, frag in _fragments(s, q.role).items():
                    yield from _from_registers(s, q, t, name, frag)


def staged(s: Source) -> Iterator[Proposal]:
    """Values written to a view that a bulk store reads and nothing fills."""
    written = {_root(n) for q in s.statements for n in _calls(q.node) if called(n) in ("store", "tma_load", "cp_async") and isinstance(n.func, ast.Attribute)}
    for q in s.statements:
        if q.name != "tma_store" or q.call is None or not isinstance(q.call.func, ast.Attribute):
            continue
        view = s.program.views.get(_view(s, q.role, q.call.func.value))
        if view is None:
            continue
        at = q.index
        while at > 0 and isinstance(n := q.among[at - 1], ast.Expr) and isinstance(n.value, ast.Call) and called(n.value) in ("sync", "fence_proxy"):
            at -= 1
        receiver = s.source(q.call.func.value)
        for name, frag in _fragments(s, q.role).items():
            if frag.form != "acc":
                continue
            rows = view.shape[0] if len(view.shape) > 1 else 1
            target = receiver
            if rows == frag.rows * s.program.roles[q.role].members and frag.rows < rows and ".rows(" not in receiver:
                target = f"{receiver}.rows({frag.rows} * {q.role}.index, {frag.rows})"
            value = name if frag.dtype == view.dtype else f"lm.cast({name}, lm.{view.dtype})"
            for first in dict.fromkeys((at, max(at - 1, 0), q.index)):
                text = f"{target}.store({value})"
                rank = 0.0 if view.name not in written else 1.0
                yield Proposal("staged", (s.before(q.among[first], text),), f"insert `{text}`", q.line, rank + 0.1 * (q.index - first))


def _calls(node: ast.stmt) -> Iterator[ast.Call]:
    if not isinstance(node, (ast.For, ast.If, ast.With)):
        yield from (n for n in ast.walk(node) if isinstance(n, ast.Call))


def _root(call: ast.Call) -> str:
    e: ast.AST = call.func
    while isinstance(e, (ast.Attribute, ast.Subscript, ast.Call)):
        e = e.func if isinstance(e, ast.Call) else e.value
    return e.id if isinstance(e, ast.Name) else ""


def _view(s: Source, role: str, e: ast.AST) -> str:
    """The declared view behind an expression, names followed to what they stand for."""
    for _ in range(8):
        while isinstance(e, (ast.Attribute, ast.Subscript, ast.Call)):
            e = e.func if isinstance(e, ast.Call) else e.value
        name = e.id if isinstance(e, ast.Name) else ""
        if name in s.program.views:
            return name
        found = next((q.node.value for q in s.of_role(role) if isinstance(q.node, ast.Assign) and isinstance(t := q.node.targets[0], ast.Name) and t.id == name), None)
        if found is None:
            return ""
        e = found
    return ""


def _fragments(s: Source, role: str) -> dict[str, FragT]:
    """The fragments that a role binds to names."""
    out: dict[str, FragT] = {}
    for block in s.program.body:
        if block.role == role:
            for x in statements(block.body):
                if isinstance(x, Assign) and isinstance(x.value, Op) and isinstance(x.value.type, FragT) and x.value.type.form != "scalar":
                    out.update({n: x.value.type for n in x.targets if not n.startswith("tmp")})
    return out


def _from_registers(s: Source, q: Placed, t: Param, name: str, frag: FragT) -> Iterator[Proposal]:
    if frag.partial or (t.rank == 1) != (frag.form in ("rowvec", "colvec") or frag.rank == 1):
        return
    members = s.program.roles[q.role].members
    shape = (frag.rows,) if frag.form == "rowvec" else (frag.cols,) if t.rank == 1 else (frag.rows * members, frag.cols)
    coords = coordinates_of(s, q, t.axes or ("",) * t.rank, shape)
    own = 1 if t.rank > 1 else 0
    if members > 1 and own < len(coords) and frag.rows > 1 and f"{q.role}.index" not in coords[own]:
        coords[own] += f" + {frag.rows} * {q.role}.index"
    value = name if t.dtype in (None, frag.dtype) else f"lm.cast({name}, lm.{t.dtype})"
    text = f"lm.store({t.name}, {value}, coords=({', '.join(coords)}{',' if len(coords) == 1 else ''}), clip=True)"
    chosen = 0.0 if not s.unused else -1.5 if name == s.unused else 1.5
    yield Proposal("result", (s.after(q.node, text),), f"insert `{text}`", q.node.end_lineno or q.line, chosen + (0.0 if q.around and called_loop(q) else 0.5))


def called_loop(q: Placed) -> bool:
    """Whether a statement stands directly in the loop over tiles."""
    loop = q.around[-1]
    return isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and called(loop.iter) == "tiles"


def _from_view(s: Source, q: Placed, t: Param) -> Iterator[Proposal]:
    """A bulk store of a view behind the meeting that follows its ordinary store."""
    if q.name != "store" or q.call is None or not isinstance(q.call.func, ast.Attribute):
        return
    view = s.program.views.get(_view(s, q.role, q.call.func.value))
    if view is None or t.dtype not in (None, view.dtype):
        return
    last = q.index
    while last + 1 < len(q.among) and isinstance(n := q.among[last + 1], ast.Expr) and isinstance(n.value, ast.Call) and called(n.value) in ("sync", "fence_proxy"):
        last += 1
    own_text = s.source(q.call.func.value).removesuffix(".T")  # how the registers were laid down is not how the bytes lie
    for receiver in dict.fromkeys((own_text, own_text.split(".rows(")[0])):
        coords = coordinates_of(s, q, t.axes or ("",) * t.rank, view.shape)
        own = f"{q.role}.index"
        text = s.source(q.node)
        if ".rows(" in receiver or ("." not in receiver and own in _definition(s, q.role, receiver)):
            rows = _definition(s, q.role, receiver) if "." not in receiver else receiver
            lo = rows.split(".rows(")[1].split(",")[0] if ".rows(" in rows else ""
            if lo and len(coords) > 1:
                coords[1] += f" + {lo}"
        if ".cols(" in text and "lm." in text:
            coords[0] += f" + {text.split('.cols(')[1].split(',')[0]}"
        line = f"{receiver}.tma_store({t.name}, coords=({', '.join(coords)}))"
        yield Proposal("result", (s.after(q.among[last], line),), f"insert `{line}`", q.among[last].lineno, 0.0)


def _definition(s: Source, role: str, name: str) -> str:
    return next((s.source(q.node) for q in s.of_role(role) if isinstance(q.node, ast.Assign) and isinstance(t := q.node.targets[0], ast.Name) and t.id == name), "")


__all__ = ["idle", "staged", "stores"]

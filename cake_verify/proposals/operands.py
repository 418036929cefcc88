"""Edits of what operations name: barriers, views, parts of tiles, coordinates, the start of a sum."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from cake_verify.proposals.source import Placed, Proposal, Source, called, option


def named(s: Source) -> Iterator[Proposal]:
    """Another barrier of the ring, first those that the role gives to or waits for nowhere yet."""
    p = s.program
    for q in s.statements:
        if not isinstance(q.node, ast.Expr) or q.call is None:
            continue
        place = option(q.call, "barrier") or (q.call.args[0] if q.name in ("wait", "arrive", "commit") and q.call.args else None)
        name = s.source(place) if place is not None else ""
        if place is None or name not in p.barriers:
            continue
        for b in p.barriers.values():
            if b.name == name or b.pipeline != p.barriers[name].pipeline:
                continue
            side = b.cons if q.name == "wait" else b.prod
            meant = q.role in side
            mine = p.barriers[name].cons if q.name == "wait" else p.barriers[name].prod
            idle = not any(x.role == q.role and x.call is not None and b.name in (s.source(a) for a in (*x.call.args, *(k.value for k in x.call.keywords))) and (x.name == "wait") == (q.name == "wait") for x in s.statements)
            yield Proposal("barrier", (s.replace(place, b.name),), f"name `{b.name}`", q.line, (0.0 if meant and idle else 0.5 if meant else 2.0) - (0.3 if q.role not in mine else 0.0))


def views(s: Source) -> Iterator[Proposal]:
    """Another view of the same shape, first those that are otherwise not used that way."""
    p = s.program
    filled = Counter(s.source(q.call.func.value).split("[")[0].split(".")[0] for q in s.statements if q.name in ("tma_load", "cp_async") and q.call is not None and isinstance(q.call.func, ast.Attribute))
    uses = Counter(n.id for q in s.statements for n in _own(q.node) if isinstance(n, ast.Name) and n.id in p.views)
    for q in s.statements:
        for n in _own(q.node):
            if not isinstance(n, ast.Name) or n.id not in p.views or not isinstance(n.ctx, ast.Load):
                continue
            mine = p.views[n.id]
            for v in p.views.values():
                if v.name != n.id and (v.shape, v.dtype, v.stages) == (mine.shape, mine.dtype, mine.stages):
                    rank = max(-0.5, 0.1 - 0.1 * uses[n.id]) if uses[v.name] < uses[n.id] else 1.0
                    if q.name in ("tma_load", "cp_async") and filled[n.id] > 1 and not filled[v.name]:
                        rank = -1.5  # one view is filled twice, this one never
                    yield Proposal("view", (s.replace(n, v.name),), f"use `{v.name}`", q.line, rank)


def _own(node: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement, without those of statements inside it."""
    if isinstance(node, ast.For):
        yield from ast.walk(node.iter)
    elif isinstance(node, ast.If):
        yield from ast.walk(node.test)
    elif not isinstance(node, ast.With):
        yield from ast.walk(node)


def parts(s: Source) -> Iterator[Proposal]:
    """Whole views for parts of them; where a part starts, as elsewhere in the role."""
    starts: dict[str, Counter[str]] = {}
    found: list[tuple[Placed, ast.Call]] = []
    for q in s.statements:
        for n in _own(q.node):
            if isinstance(n, ast.Call) and called(n) in ("rows", "cols") and len(n.args) == 2 and isinstance(n.func, ast.Attribute):
                found.append((q, n))
                starts.setdefault(q.role, Counter())[s.source(n.args[0])] += 1
    for q, n in found:
        assert isinstance(n.func, ast.Attribute)
        constant = isinstance(n.args[0], ast.Constant)
        if constant and q.name in ("tma_load", "cp_async"):
            base = n.func.value
            whole = s.source(base.value) if isinstance(base, ast.Subscript) and q.call is not None and option(q.call, "stage") is not None else s.source(base)
            yield Proposal("whole", (s.replace(n, whole),), f"fill all of `{whole}`", q.line)
        text = s.source(n.args[0])
        for other, _ in starts[q.role].most_common(4):
            if other != text and not other.isdigit() and _reachable(s, q, other):
                yield Proposal("part", (s.replace(n.args[0], other),), f"start at `{other}`", q.line, 0.0 if constant else 0.3)
        size, members = n.args[1], s.program.roles[q.role].members if q.role in s.program.roles else 1
        if constant and members > 1:
            yield Proposal("part", (s.replace(n.args[0], f"{s.source(size)} * {q.role}.index"),), "take this member's own part", q.line, 0.1)
        loops = [x.target.id for x in q.around if isinstance(x, ast.For) and isinstance(x.target, ast.Name) and isinstance(x.iter, ast.Call) and called(x.iter) == "static_range"]
        if constant and loops:
            yield Proposal("part", (s.replace(n.args[0], f"{s.source(size)} * {loops[-1]}"),), "take this round's part", q.line, 0.2)
    for q in s.statements:
        for n in _own(q.node):
            if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub) and isinstance(n.left, ast.Constant) and isinstance(n.right, ast.Attribute) and n.right.attr == "index":
                yield Proposal("part", (s.replace(n, s.source(n.right)),), f"take this member's own part: `{s.source(n.right)}`", q.line, -2.5)


def _reachable(s: Source, q: Placed, text: str) -> bool:
    """Whether the names of an expression are bound where a statement stands."""
    bound = {x.target.id for x in q.around if isinstance(x, ast.For) and isinstance(x.target, ast.Name)}
    bound |= {t.id for r in s.of_role(q.role) if r.line < q.line and isinstance(r.node, ast.Assign) for t in r.node.targets if isinstance(t, ast.Name)}
    return _names(ast.parse(text, mode="eval")) <= bound | set(s.program.tunables) | set(s.program.lets) | set(s.program.scalars) | set(s.program.roles) | {"lm"}


def coordinates(s: Source) -> Iterator[Proposal]:
    """Coordinates exchanged, without a constant, or as a neighbour has them."""
    given: list[tuple[Placed, ast.Call, ast.Tuple]] = []
    for q in s.statements:
        for n in _own(q.node):
            if isinstance(n, ast.Call) and isinstance(c := option(n, "coords"), ast.Tuple):
                given.append((q, n, c))
    for q, n, c in given:
        e = c.elts
        if len(e) > 1 and not _in_order(s, n, e):
            pairs = sorted(combinations(range(len(e)), 2), key=lambda p: p[1] - p[0])  # neighbours first
            for rank, (i, j) in enumerate(pairs):
                yield Proposal("exchange", (s.replace(e[i], s.source(e[j])), s.replace(e[j], s.source(e[i]))), "exchange the coordinates", q.line, 0.1 * rank)
        for x in e:
            for n in ast.walk(x):
                if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Add, ast.Sub)) and isinstance(n.right, ast.Constant):
                    yield Proposal("coordinate", (s.replace(n, s.source(n.left)),), f"write `{s.source(n.left)}`", q.line)
        for r, _, d in given:
            if r.role == q.role and len(d.elts) == len(e):
                for a, b in zip(e, d.elts, strict=True):
                    if s.source(a) != s.source(b) and _names(a) <= _names(b):
                        yield Proposal("coordinate", (s.replace(a, s.source(b)),), f"write `{s.source(b)}`", q.line, 1.0)


def _in_order(s: Source, call: ast.Call, elts: list[ast.expr]) -> bool:
    """Whether each coordinate with a tile's field stands on the axis that the field is called after."""
    t = s.program.tensors.get(s.source(call.args[0])) if call.args else None
    if t is None or len(t.axes) != len(elts):
        return False
    fields = [({n.attr for n in ast.walk(e) if isinstance(n, ast.Attribute) and n.attr != "index"}, str(a).lower()) for a, e in zip(reversed(t.axes), elts, strict=True)]
    named = [(f, a) for f, a in fields if f]
    return bool(named) and all(a in f for f, a in named)


def _names(e: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(e) if isinstance(n, ast.Name)}


def products(s: Source) -> Iterator[Proposal]:
    """Where a sum starts, and which operand is which."""
    for q in s.statements:
        if q.name == "mma" and q.call is not None and len(q.call.args) >= 3:
            init = option(q.call, "init")
            loops = [x for x in q.around if isinstance(x, ast.For) and isinstance(x.iter, ast.Call) and called(x.iter) in ("range", "static_range") and isinstance(x.target, ast.Name)]
            depth = 1 if loops and called(loops[-1].iter) == "range" else len(loops)  # type: ignore[arg-type]  # calls, see above
            if init is None or s.source(init) in ("True", "False"):
                used = loops[-depth:] if depth else []
                terms = [f"{x.target.id} == {s.source(x.iter.args[0]) if len(x.iter.args) > 1 else '0'}" for x in used]  # type: ignore[union-attr, attr-defined]  # loops over names
                if terms:
                    yield Proposal("init", (s.with_option(q.call, "init", f"({' and '.join(terms)})"),), f"start from zero where {' and '.join(terms)}", q.line)
            if init is not None and s.source(init) == "True":
                yield Proposal("init", (s.without_option(q.call, "init"),), "add to what is there", q.line, 0.3)
            elif init is None:
                yield Proposal("init", (s.with_option(q.call, "init", "True"),), "start from zero", q.line, 0.1 if not loops else 0.4)
            a, b = q.call.args[1:3]
            yield Proposal("operands", (s.replace(a, s.source(b)), s.replace(b, s.source(a))), "exchange the operands", q.line)
            for x in (a, b):
                text = s.source(x)
                yield Proposal("operands", (s.replace(x, text[:-2] if text.endswith(".T") else f"{text}.T"),), "the other way round", q.line, 0.3)
        for n in _own(q.node):
            if isinstance(n, ast.Call) and called(n) == "frag" and option(n, "init") is None:
                name = q.node.targets[0].id if isinstance(q.node, ast.Assign) and isinstance(q.node.targets[0], ast.Name) else ""
                text = _neutral(s, q.role, name)
                yield Proposal("neutral", (s.with_option(n, "init", text),), f"declare it with `init={text}`", q.line, 0.0 if text != "0.0" else 0.1)


def _neutral(s: Source, role: str, name: str) -> str:
    """What a running value starts from: the least number where it is a maximum, the greatest for a minimum, else zero."""
    for q in s.of_role(role):
        for n in _own(q.node):
            if isinstance(n, ast.Call) and called(n) in ("max", "min") and any(isinstance(a, ast.Name) and a.id == name for a in n.args):
                return "-lm.inf" if called(n) == "max" else "lm.inf"
    return "0.0"


def bounded(s: Source) -> Iterator[Proposal]:
    """Accesses of global memory that stay inside."""
    for q in s.statements:
        for n in _own(q.node):
            ordinary = isinstance(n, ast.Call) and called(n) in ("load", "store", "atomic") and isinstance(n.func, ast.Attribute) and s.source(n.func.value) == "lm"
            if isinstance(n, ast.Call) and ordinary and option(n, "clip") is None and option(n, "mask") is None:
                yield Proposal("clip", (s.with_option(n, "clip", "True"),), "leave out what lies outside: `clip=True`", q.line)


def copies(s: Source) -> Iterator[Proposal]:
    """A load of a tensor that nothing reads into a view that nothing fills."""
    p = s.program
    filled = {s.source(n.func.value).split("[")[0].split(".")[0] for q in s.statements for n in _own(q.node) if isinstance(n, ast.Call) and called(n) in ("tma_load", "cp_async", "store") and isinstance(n.func, ast.Attribute)}
    touched = {str(op.attrs.get("tensor")) for op in p.ops}
    rings = _rings(s)
    for v in p.views.values():
        for t in p.tensors.values() if v.name not in filled else ():
            if t.name in touched or t.kind not in ("tma", "gmem") or t.dtype not in (None, v.dtype):
                continue
            for q in s.statements:
                barrier, stage = _landing(s, q, rings.get(v.name))
                if barrier is None or (barrier == "") != (t.kind == "gmem"):
                    continue
                coords = coordinates_of(s, q, t.axes or ("",) * t.rank, v.shape)
                verb = "cp_async" if t.kind == "gmem" else "tma_load"
                where = (f", stage={stage}" if stage else "") + (f", barrier={barrier}" if barrier else "")
                text = f"{v.name}.{verb}({t.name}, coords=({', '.join(coords)}{',' if len(coords) == 1 else ''}){where})"
                near = 0.0 if q.name == verb else 0.5
                yield Proposal("copy", (s.after(q.node, text),), f"insert `{text}`", q.line, near)


def _rings(s: Source) -> dict[str, str]:
    """The ring whose slots a view is indexed by."""
    out: dict[str, str] = {}
    for op in s.program.ops:
        for e in op.operands.values():
            view = getattr(getattr(e, "type", None), "view", None)
            for n in e.parts() if view is not None else ():  # type: ignore[union-attr]  # views are expressions
                ring = getattr(n.args[1].type, "ring", None) if n.op == "stage" else None
                if ring is not None and view is not None:
                    out[view] = ring
    return out


def _landing(s: Source, q: Placed, ring: str | None) -> tuple[str | None, str]:
    """The barrier and slot that a load next to a statement would name: those of a neighbouring load, or those that a wait leads to."""
    p = s.program
    if q.name == "cp_async" and q.call is not None:
        stage = option(q.call, "stage")
        return "", s.source(stage) if stage is not None else ""
    if q.name == "tma_load" and q.call is not None:
        barrier, stage = option(q.call, "barrier"), option(q.call, "stage")
        name = s.source(barrier) if barrier is not None else ""
        if name in p.barriers and ring in (None, p.barriers[name].pipeline):
            return name, s.source(stage) if stage is not None else ""
    if q.name == "wait" and q.call is not None and q.call.args and s.source(q.call.args[0]) in p.barriers:
        b = p.barriers[s.source(q.call.args[0])]
        stage = option(q.call, "stage", 1)
        if ring in (None, b.pipeline):
            full = next((x.name for x in p.barriers.values() if x.pipeline == b.pipeline and x.arrive == "tx" and q.role in x.prod), None)
            return full, s.source(stage) if stage is not None else ""
    return None, ""


def coordinates_of(s: Source, q: Placed, axes: tuple[str | int, ...], shape: tuple[int, ...]) -> list[str]:
    """Coordinates for a tensor, innermost first: as other accesses have them on the same axis, tile fields on the others, else 0."""
    have: dict[str, str] = {}
    bound = {x.target.id for x in q.around if isinstance(x, ast.For) and isinstance(x.target, ast.Name)}
    bound |= {n.targets[0].id for n in (r.node for r in s.of_role(q.role)) if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)}
    free = set(s.program.tunables) | set(s.program.lets) | set(s.program.scalars) | set(s.program.roles)
    for r in sorted(s.statements, key=lambda r: r.role != q.role):
        for n in _own(r.node):
            if isinstance(n, ast.Call) and isinstance(c := option(n, "coords"), ast.Tuple) and n.args:
                t = s.program.tensors.get(s.source(n.args[0]))
                for a, e in zip(reversed(t.axes), c.elts, strict=False) if t is not None else ():
                    names = _names(e) - free - {"lm"}
                    if names <= bound and f"{q.role}.index" not in s.source(e):
                        have.setdefault(str(a), s.source(e).split(f" + 64 * {r.role}.index")[0])
    tiles = next((x for x in q.around if isinstance(x, ast.For) and isinstance(x.iter, ast.Call) and called(x.iter) == "tiles"), None)
    var = tiles.target.id if tiles is not None and isinstance(tiles.target, ast.Name) else ""
    fields = [f for d in s.program.schedulers.values() for f in d.names]
    out = []
    for k, a in enumerate(reversed(axes)):
        n = shape[-1 - k] if k < len(shape) else 1
        field = next((f for f in fields if f.lower() == str(a).lower()), "")
        if not a and k < 2 <= len(fields):  # axes without names: the first of the tile space runs along rows
            field = fields[1 - k]
        out.append(have.get(str(a), f"{var}.{field} * {n}" if var and field else "0"))
    return out

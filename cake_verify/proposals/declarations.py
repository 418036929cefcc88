"""Edits of declarations: where views lie, how deep rings are, what barriers count."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cake_ir.derive.registers import pool_columns
from cake_ir.layout import SWIZZLES, total_bytes
from cake_ir.program import View
from cake_verify.analyses.regions import layout_of
from cake_verify.proposals.source import Proposal, Source, option


def _end(v: View) -> int:
    return v.offset + total_bytes(layout_of(v))


def _pattern(v: View) -> int:
    return SWIZZLES[v.swizzle].pattern if v.swizzle else 128


def offsets(s: Source) -> Iterator[Proposal]:
    """Views moved onto their alignment, into a gap of their pool, or behind the view before them."""
    views = s.program.views
    for name, call in s.declared("view"):
        offset = option(call, "offset")
        if offset is None or name not in views:
            continue
        v = views[name]
        step, size = _pattern(v), total_bytes(layout_of(v))
        others = sorted((o.offset, _end(o)) for o in views.values() if o.name != name and o.pool == v.pool)
        top = s.program.pools[v.pool].nbytes
        spots: list[tuple[float, int]] = []
        if v.offset % step:
            spots += [(0.0, v.offset // step * step), (0.2, -(-v.offset // step) * step)]
        crowded = any(a < _end(v) and v.offset < b for a, b in others)
        if crowded or _end(v) > top or v.offset % step:
            at = 0
            for a, b in [*others, (top, top)]:
                at = -(-at // step) * step
                if a - at >= size:
                    # a gap that the view fills to the byte is where it came from
                    spots.append((0.0 if crowded and a - at == size else 0.3, at))
                at = max(at, b)
        for rank, at in spots:
            if at == v.offset or at + size > top:
                continue
            clear = not any(a < at + size and at < b for a, b in others)
            yield Proposal("offset", (s.replace(offset, str(at)),), f"start `{name}` at {at}", offset.lineno, rank if clear else rank + 2)
        if _end(v) > top:
            yield Proposal("pool", (s.replace(s.declarations[v.pool].args[0], str(_end(v))),), f"a pool of {_end(v)} bytes", offset.lineno, 0.5)


def stages(s: Source) -> Iterator[Proposal]:
    """Rings and the views on them of one depth: the depth that most of them have."""
    for name, call in s.declared("pipeline"):
        value = option(call, "stages", 0)
        ring = s.program.rings.get(name)
        if value is None or ring is None:
            continue
        riders = _riders(s, name)
        depths = sorted({s.program.views[v].stages for v in riders}, key=lambda n: -sum(s.program.views[v].stages == n for v in riders))
        for i, n in enumerate(depths):
            if n != ring.stages:
                yield Proposal("stages", (s.replace(value, _plain(s, value, n)),), f"{n} stages for `{name}`", value.lineno, -2 + 0.2 * i + (0 if len(depths) == 1 else 0.3))
        for v in riders:
            stage = option(s.declarations[v], "stage") if v in s.declarations else None
            if stage is not None and s.program.views[v].stages != ring.stages:
                one = len(depths) > 1 or len(riders) == 1
                yield Proposal("stages", (s.replace(stage, _plain(s, stage, ring.stages)),), f"{ring.stages} stages for `{v}`", stage.lineno, -2 + (0.1 if one else 0.4))


def _plain(s: Source, value: ast.expr, n: int) -> str:
    """The count as its author would write it: a sum with a constant taken back, where that gives the number."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)) and isinstance(value.right, ast.Constant):
        left = s.source(value.left)
        if left == str(n) or s.program.tunables.get(left) == n:
            return left
    return next((name for name, v in s.program.tunables.items() if v == n and "STAGE" in name.upper()), str(n))


def _riders(s: Source, ring: str) -> list[str]:
    """Views that some operation indexes by a slot of the ring."""
    barriers = {b.name for b in s.program.barriers.values() if b.pipeline == ring}
    out: list[str] = []
    for op in s.program.ops:
        stage = op.operands.get("stage")
        rides = op.attrs.get("barrier") in barriers and stage is not None
        for e in op.operands.values():
            t = getattr(e, "type", None)
            view = getattr(t, "view", None)
            if view is None or view in out or (s.program.views[view].stages == 1 and not rides):
                continue
            if rides or any(n.op == "stage" and getattr(n.args[1].type, "ring", None) == ring for n in e.parts()):  # type: ignore[union-attr]  # views are expressions
                out.append(view)
    return out


def barriers(s: Source) -> Iterator[Proposal]:
    """What a barrier starts with, counts, reaches and is declared for."""
    p = s.program
    for name, call in s.declared("barrier"):
        b = p.barriers.get(name)
        if b is None:
            continue
        line = call.lineno
        flip = s.without_option(call, "primed") if b.primed else s.with_option(call, "primed", "True")
        if b.primed or b.arrive != "tx":  # nothing has been filled at the start
            yield Proposal("primed", (flip,), f"`{name}` {'not ' if b.primed else ''}primed", line)
        for i, kind in enumerate(k for k in ("member", "warp", "tx", "thread", "mma") if k != b.arrive):
            yield Proposal("arrive", (s.with_option(call, "arrive", f'"{kind}"'),), f'arrive="{kind}"', line, 0.1 * i)
        if p.launch.cluster != (1, 1):
            yield Proposal("scope", (s.with_option(call, "scope", '"cta"' if b.scope == "cluster" else '"cluster"'),), "another scope", line)
        users = {k: [r for r in p.roles if any(q.role == r and q.name == k and q.call is not None and q.call.args and s.source(q.call.args[0]) == name for q in s.statements)] for k in ("arrive", "wait")}
        givers = [r for r in p.roles if r in users["arrive"] or any(q.role == r and q.call is not None and (x := option(q.call, "barrier")) is not None and s.source(x) == name for q in s.statements)]
        for side, have, want in (("prod", b.prod, givers), ("cons", b.cons, users["wait"])):
            given = option(call, side)
            if given is not None and want and set(want) != set(have):
                both = side == "prod" and set(b.cons) & set(have) - set(want)  # who waits for a barrier seldom gives to it
                yield Proposal("roles", (s.replace(given, f"[{', '.join(want)}]"),), f"{side}=[{', '.join(want)}]", line, -3 if both else 0)
    for name, call in s.declared("named_barrier"):
        n = p.named.get(name)
        if n is None or not call.args:
            continue
        meet = [r for r in p.roles if any(q.role == r and _mentions(q.node, name) for q in s.statements)]
        if meet and set(meet) != set(n.roles):
            yield Proposal("named", (s.replace(call.args[0], meet[0] if len(meet) == 1 else f"[{', '.join(meet)}]"),), f"`{name}` of {', '.join(meet)}", call.lineno)
        if (len(n.roles) == 1 and p.roles[n.roles[0]].members > 1) or n.per_member:
            edit = s.without_option(call, "per_member") if n.per_member else s.with_option(call, "per_member", "True")
            yield Proposal("named", (edit,), f"`{name}` of {'all members' if n.per_member else 'each member'}", call.lineno, 0.3)


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))


def registers(s: Source) -> Iterator[Proposal]:
    """Budgets one step lower, role by role."""
    for name, call in s.declared("role"):
        regs = option(call, "regs")
        r = s.program.roles.get(name)
        if regs is None or r is None or r.regs is None:
            continue
        fits = min(((c.granted - c.asked) // max(1, c.budgets.count(r.regs)) + r.regs for c in pool_columns(s.program) if r.regs in c.budgets), default=r.regs) // 8 * 8
        if 24 <= fits < r.regs:
            yield Proposal("regs", (s.replace(regs, str(fits)),), f"{fits} registers for `{name}`", call.lineno, -1 if r.regs > 256 or r.regs % 8 else 0)
        for i, n in enumerate((r.regs - r.regs % 8 if r.regs % 8 else r.regs - 8, r.regs - 40, r.regs - 16, 40, 24)):
            if 24 <= n < r.regs:
                yield Proposal("regs", (s.replace(regs, str(n)),), f"{n} registers for `{name}`", call.lineno, 0.1 * i)


def layouts(s: Source) -> Iterator[Proposal]:
    """Other swizzles of a view."""
    for name, call in s.declared("view"):
        v = s.program.views.get(name)
        if v is None:
            continue
        for i, mode in enumerate(m for m in ("128b", "64b", "32b") if m != v.swizzle):
            if layout_of(v).row_bytes % SWIZZLES[mode].span == 0:
                yield Proposal("swizzle", (s.with_option(call, "swizzle", f'"{mode}"'),), f"swizzle `{name}` by {mode}", call.lineno, 0.1 * i)
        if v.swizzle:
            yield Proposal("swizzle", (s.without_option(call, "swizzle"),), f"no swizzle for `{name}`", call.lineno, 0.5)


def columns(s: Source) -> Iterator[Proposal]:
    """Tensor memory moved to columns that nothing else has."""
    for name, call in s.declared("tmem"):
        given = option(call, "cols")
        t = s.program.tmems.get(name)
        if t is None or given is None:
            continue
        taken = [(o.col, o.col + o.width) for o in s.program.tmems.values() if o.name != name]
        for i, at in enumerate(sorted({0, *(b for _, b in taken), *(a - t.width for a, _ in taken)})):
            if at != t.col and 0 <= at <= 512 - t.width and not any(a < at + t.width and at < b for a, b in taken):
                yield Proposal("columns", (s.replace(given, str(at)),), f"`{name}` at column {at}", call.lineno, 0.1 * i)

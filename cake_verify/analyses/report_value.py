"""Values that are not the ones meant, told as faults: another tile, a product that is lost or counted twice."""

from __future__ import annotations

from dataclasses import replace

from cake_ir.fault import Edit, Fault, Fix
from cake_ir.program import Expr, If, Op
from cake_ir.types import ViewT
from cake_verify.analyses import edits
from cake_verify.analyses.affine import Affine, affine
from cake_verify.analyses.labels import Label, boxed
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.report_alias import covered_over, other_layout
from cake_verify.analyses.report_columns import off_diagonal, told_column
from cake_verify.analyses.report_halves import halves
from cake_verify.analyses.report_labels import coordinate, form_of, place, shared, sources, span_at, text_of, tiles_of, two_parts
from cake_verify.analyses.report_scales import scaled
from cake_verify.analyses.settings import Setting
from cake_verify.analyses.sites import on_view
from cake_verify.analyses.slices import Slice, odd_slice, slices
from cake_verify.analyses.trips import canonical
from cake_verify.analyses.value_scales import ScaleClash
from cake_verify.analyses.value_walk import Clash, ValueWalk
from cake_verify.analyses.words import call, span_of, view_name


def clash_fault(plan: Plan, walk: ValueWalk, setting: Setting) -> Fault | None:
    """The first meeting of values that do not fit; a warning where it may be meant."""
    clashes = [c for c in walk.clashes if c.kind not in ("added", "contraction") or not two_parts(plan, c)]
    uneven = next((c for c in clashes if walk.uneven(c)), None)
    c = next((c for c in clashes if c.sure), uneven or (clashes[0] if clashes else None))
    if c is None:
        return None
    fault = _told(plan, walk, c, setting)
    return fault if c.sure or c is uneven else replace(fault, severity="warning")


def _told(plan: Plan, walk: ValueWalk, c: Clash, setting: Setting) -> Fault:
    facts: dict[str, object] = {"role": c.member.role, "setting": str(setting)}
    if c.kind == "twice":
        return _twice(plan, c, facts)
    if c.kind == "outdated":
        return _outdated(plan, c, facts)
    if c.kind == "clobbered":
        assert c.other
        by = plan.program.ops[c.other[2]]
        decl = plan.program.tmems[c.op.operands["acc"].type.tmem]  # type: ignore[union-attr]  # tensor memory, see the walk
        message = f"{call(c.op)} adds to `{decl.name}`, of which another product has overwritten columns since"
        return Fault("S035", message, decl.spans.get("col", decl.span), ((by.span, "overwrites them here"), (c.op.span, "adds to them here")),
                     "give each accumulator columns of its own", (), facts, cause="columns overwritten")  # fmt: skip
    if isinstance(c, ScaleClash):
        return scaled(plan, walk, c, facts)
    if c.kind == "stale":
        message = f"{call(c.op)} adds to an accumulator that still holds the tile at {place(c.one)}, and the product belongs to {place(c.other)}"
        fixes = (edits.replace(c.op.spans["init"], "True", "idea"),) if "init" in c.op.spans else ()
        return Fault("S035", message, c.op.span, sources(plan, c), "start each tile from zero: `init=` of its first product", fixes, facts)
    if c.kind == "covered":
        return covered_over(plan, c, facts)
    if c.kind == "layout":
        return other_layout(plan, c, facts)
    if c.kind == "halves":
        return halves(plan, c, facts)
    if c.passed is not None:
        return off_diagonal(plan, c, facts)
    if c.kind in ("mask", "numbered", "filled", "related", "behind", "strays"):
        return told_column(plan, walk, c, facts)
    if c.kind == "contraction":
        return _contraction(plan, c, facts)
    if c.kind == "transposed":
        return _transposed(plan, c, facts)
    if c.kind == "beside":
        return _beside(plan, c, facts)
    if c.kind == "drifting":
        assert c.one and c.other
        message = f"what was loaded at {place(c.one)} is combined with what was loaded at {place(c.other)}, and in other rounds the two lie at another distance"
        return Fault("S034", message, span_at(plan, c.one), ((c.op.span, "combined here"), *sources(plan, c)), "load what belongs to the same rows and columns in every round", (), facts)
    if c.kind == "summed":
        return _summed(plan, c, facts)
    return _misplaced(plan, walk, c, facts)


def _exchange(plan: Plan, label: Label, other: Label) -> Fix | None:
    """Both coordinates of an access in each other's place, where the axis then agrees with its partner's."""
    if not label or not other:
        return None
    op = plan.program.ops[label[2]]
    coords, box = op.operands.get("coords"), boxed(plan, op)
    if not isinstance(coords, tuple) or box is None or box.row is None or box.col is None:
        return None
    mine = box.col if box.col_axis == label[0] else box.row
    theirs = box.row if mine == box.col else box.col
    role, target = plan.sites[op.id].role, form_of(plan, other)
    swapped = affine(plan.program, role, coords[theirs])
    swapped = None if swapped is None else shared(swapped)
    if target is None or swapped is None or tiles_of(swapped) != tiles_of(target) or (not swapped.terms and swapped.constant != target.constant):
        return None
    texts = [text_of(e) for e in coords]
    texts[mine], texts[theirs] = texts[theirs], texts[mine]
    if None in texts or "coords" not in op.spans:
        return None
    return edits.replace(op.spans["coords"], f"({', '.join(str(t) for t in texts)})", "likely", "exchange the coordinates")


# ------------------------------------------------------------------ products


def _contraction(plan: Plan, c: Clash, facts: dict[str, object]) -> Fault:
    assert c.one and c.other
    axis = c.one[0]
    message = f"{call(c.op)} multiplies along `{axis}` what starts at {c.one[1]} in `a` by what starts at {c.other[1]} in `b`"
    facts = facts | {"axis": axis, "a": c.one[1], "b": c.other[1]}
    help_text = f"both operands cover the same stretch of `{axis}`"
    a, b = form_of(plan, c.one), form_of(plan, c.other)
    if a is not None and b is not None and a.terms == b.terms and a.constant == b.constant:
        found = odd_slice(plan, c.op)
        return _sliced(plan, c, found, message, help_text, facts)
    suspect, other = _suspect(plan, c.one, c.other, a, b)
    fix = _exchange(plan, suspect, other)
    fixes = [fix] if fix else []
    if not fixes and suspect and other and plan.sites[suspect[2]].role == plan.sites[other[2]].role:
        e, text = coordinate(plan, suspect), coordinate(plan, other)
        written = text_of(text) if text is not None else None
        if e is not None and written is not None:
            fixes = [edits.replace(e.span, written)]
    related = (*sources(plan, c, suspect), (c.op.span, "multiplied here"))
    role = plan.sites[suspect[2]].role if suspect else c.member.role
    return Fault("S034", message, span_at(plan, suspect), related, help_text, tuple(fixes), facts | {"role": role})


def _suspect(plan: Plan, one: Label, other: Label, a: Affine | None, b: Affine | None, stored: bool = False) -> tuple[Label, Label]:
    """Which of two places is the odd one, and the other: the one with a constant in it, with a tile's field where the other counts, or
    (`stored`) without the tile's field that the other has."""
    if a is not None and b is not None:
        fields = [any("." in n for n in x.terms) for x in (a, b)]
        if fields[0] != fields[1] and stored:
            return (other, one) if fields[0] else (one, other)
        if fields[0] != fields[1]:
            loops = [any("." not in n and n != "member" for n in x.terms) for x in (a, b)]
            return (one, other) if fields[0] and not loops[0] else (other, one)
        if bool(a.constant) != bool(b.constant):
            return (one, other) if a.constant else (other, one)
        if len(tiles_of(a)) != len(tiles_of(b)):
            return (one, other) if len(tiles_of(a)) < len(tiles_of(b)) else (other, one)
    return one, other


def _sliced(plan: Plan, c: Clash, found: Slice | None, message: str, help_text: str, facts: dict[str, object]) -> Fault:
    """A fault whose cause is the part of a tile that an operation takes."""
    related = ((c.op.span, "multiplied here" if c.op.name == "mma" else "stored here"), *sources(plan, c))
    if found is None:
        return Fault("S034", message, c.op.span, sources(plan, c), help_text, (), facts)
    fixes = (edits.replace(found.lo.span, found.instead),) if found.instead and found.lo.span.line else ()
    return Fault("S034", message, found.span, related, help_text, fixes, facts)


def _outdated(plan: Plan, c: Clash, facts: dict[str, object]) -> Fault:
    """A slot that is only filled in part: the rest is what an earlier use left there."""
    assert c.one
    old = plan.program.ops[c.one[2]]
    name = on_view(old)
    whole = plan.program.views[name]
    rows, *cols = whole.shape
    size = rows * cols[-1] if cols else rows
    fills = [s.op for s in plan.sites.values() if s.op.id in plan.set_of and on_view(s.op) == name]
    short = next((o for o in fills if isinstance(e := o.operands["view"], Expr) and isinstance(e.type, ViewT) and e.type.rows * e.type.cols < size), None)
    if short is None:
        message = f"{call(c.op)} reads a part of `{name}` that was filled for an earlier use of the slot"
        return Fault("S034", message, c.op.span, ((old.span, "filled here, for an earlier slot"),), "fill the whole slot each time, or read what is filled", (), facts)
    message = f"this load fills only a part of a slot of `{name}`: {call(c.op)} reads the rest as an earlier load has left it"
    fixes = (edits.replace(short.spans["view"], name),) if "view" in short.spans else ()
    return Fault("S034", message, short.span, ((c.op.span, "read here"), (old.span, "left by this load")), "fill the whole slot each time", fixes,
                 facts | {"role": plan.sites[short.id].role})  # fmt: skip


def _twice(plan: Plan, c: Clash, facts: dict[str, object]) -> Fault:
    message = f"{call(c.op)} adds the product of the same two operands to its accumulator twice"
    others = [s.op for s in plan.sites.values() if s.op.name == "mma" and s.role == c.member.role and s.op is not c.op]
    same = [o for o in others if _operands(o) == _operands(c.op)]
    related = ((same[0].span, "added here already"),) if same else sources(plan, c)
    fixes = (edits.remove(edits.stmt_span(plan, c.op), "likely"),) if same else ()
    return Fault("S035", message, c.op.span, related, "multiply each pair of tiles once", fixes, facts)


def _operands(op: Op) -> tuple[str, ...]:
    return tuple(canonical(e) if isinstance(e, Expr) else "" for n, e in op.operands.items() if n != "init")


def _transposed(plan: Plan, c: Clash, facts: dict[str, object]) -> Fault:
    assert c.one and c.other
    if c.op.name == "mma":
        message = f"{call(c.op)} multiplies along `{c.one[0]}` of `a` and `{c.other[0]}` of `b`: one operand is not the way round that is meant"
        odd = odd_slice(plan, c.op)
        span = odd.span if odd is not None else span_of(c.op, "b")
        return Fault("S034", message, span, ((c.op.span, "multiplied here"), *sources(plan, c)), "transpose one of them: `.T`", (), facts, cause="operand turned")
    message = f"{call(c.op)} stores rows along `{c.one[0]}` where `{c.op.attrs.get('tensor')}` has `{c.other[0]}`: the tile lies across"
    mma = [s.op for s in plan.sites.values() if s.op.name == "mma" and s.role == c.member.role]
    fixes: tuple[Fix, ...] = ()
    if len(mma) == 1 and {"a", "b"} <= set(mma[0].spans):
        a, b = (mma[0].operands[n] for n in ("a", "b"))
        texts = [_source_text(e) for e in (a, b)]
        if None not in texts:
            fixes = (Fix((Edit(mma[0].spans["a"], str(texts[1])), Edit(mma[0].spans["b"], str(texts[0]))), "likely", "exchange `a` and `b`"),)
    related = (*((o.span, "multiplied here") for o in mma[:1]), *sources(plan, c))
    span, more = (mma[0].span, ((c.op.span, "stored here"), *sources(plan, c))) if fixes else (span_of(c.op, "coords"), related)
    return Fault("S034", message, span, more, "exchange the operands of the product, or store the transpose", fixes, facts, cause="operand turned")


def _beside(plan: Plan, c: Clash, facts: dict[str, object]) -> Fault:
    """Scales, or what else stands beside a product, of other rows or columns than the product's."""
    assert c.one and c.other
    message = f"the product at {place(c.one)} is combined with what was loaded at {place(c.other)}: for other members, or by the coordinates, they lie at another distance"
    load = plan.program.ops[c.other[2]]
    view = on_view(load)
    taken = next((x for s in plan.sites.values() if s.role == c.member.role and s.op.name == "load" and on_view(s.op) == view for x in slices(plan, s.op)), None) if view else None
    span = taken.span if taken is not None else span_at(plan, c.other)
    related = ((c.op.span, "combined here"), *sources(plan, c))
    return Fault("S034", message, span, related, "load what belongs to the product's rows and columns", (), facts)


def _summed(plan: Plan, c: Clash, facts: dict[str, object]) -> Fault:
    """A result along an axis that its product has summed over: an operand is the wrong way round."""
    assert c.one
    axis = c.one[0]
    mma = [s.op for s in plan.sites.values() if s.op.name == "mma" and s.role == c.member.role]
    message = f"{call(c.op)} stores along `{axis}` of `{c.op.attrs.get('tensor')}` what was summed over `{axis}`: an operand is not the way round that is meant"
    related = tuple((o.span, "multiplied here") for o in mma[:1])
    if len(mma) == 1:
        return Fault("S034", message, span_of(mma[0], "b"), ((c.op.span, "stored here"),), "transpose it: `.T`", (), facts)
    return Fault("S034", message, c.op.span, related, "transpose it: `.T`", (), facts)


def _source_text(e: object) -> str | None:
    if not isinstance(e, Expr):
        return None
    text = view_name(e)
    slices = [n for n in e.parts() if n.op in ("rows", "cols")]
    for n in slices:
        lo = text_of(n.args[1])
        if lo is None:
            return None
        text += f".{n.op}({lo}, {n.attrs['n']})"
    return text + (".T" if any(n.op == "T" for n in e.parts()) else "")


# ------------------------------------------------------------------ stores


def _misplaced(plan: Plan, walk: ValueWalk, c: Clash, facts: dict[str, object]) -> Fault:
    assert c.one and c.other
    if c.kind == "added":
        message = f"{call(c.op) if c.op.name != 'compute' else 'the expression'} combines elements at {place(c.one)} with elements at {place(c.other)}"
        help_text = f"load both from the same place along `{c.one[0]}`"
    elif c.kind == "mixed":
        message = f"{call(c.op)} adds a product at {place(c.other)} to an accumulator that holds products at {place(c.one)}"
        help_text = f"all products of one accumulator belong to one tile of `{c.one[0]}`"
    else:
        message = f"{call(c.op)} stores what was loaded at {place(c.one)} to {place(c.other)}"
        help_text = f"load and store the same tile; an output that rearranges `{c.one[0]}` names the axis differently"
    facts = facts | {"axis": c.one[0], "loaded": c.one[1], "stored": c.other[1]}
    axes = {x.axis for x in walk.clashes if x.op is c.op and x.kind == c.kind}
    a, b = form_of(plan, c.one), form_of(plan, c.other)
    if len(axes) > 1:  # both axes are off: the store is what is common to them
        suspect, other = c.other, c.one
    elif a is not None and b is not None and tiles_of(a) == tiles_of(b) and a.constant == b.constant:
        found = odd_slice(plan, c.op)
        if found is not None:
            return _sliced(plan, c, found, message, help_text, facts)
        suspect, other = c.other, c.one
    else:
        suspect, other = _suspect(plan, c.one, c.other, a, b, c.kind == "stored")
    fix = _exchange(plan, suspect, other)
    fixes = [fix] if fix else []
    related = (*sources(plan, c, suspect), *(((c.op.span, "stored here"),) if suspect is not c.other else ()))
    role = plan.sites[suspect[2]].role if suspect else c.member.role
    span = plan.program.ops[suspect[2]].spans.get("coords", span_at(plan, suspect)) if fix and suspect else span_at(plan, suspect)
    return Fault("S034", message, span, related, help_text, tuple(fixes), facts | {"role": role})


# ------------------------------------------------------------------ outside


def outside_tensor(plan: Plan, walk: ValueWalk, setting: Setting) -> list[Fault]:
    """The first access of each kind that leaves its tensor."""
    out: list[Fault] = []
    seen: set[int] = set()
    for op, m, axis, last, extent in walk.bounds.found:
        if op.id in seen:
            continue
        seen.add(op.id)
        tensor = plan.program.tensors[str(op.attrs["tensor"])]
        if op.name in ("tma_store", "tma_reduce"):
            out.append(Fault("S033", f"{call(op)} starts at {last} along axis {axis} of `{tensor.name}`: a copy into a tensor may end outside it, but not start in front of it", op.spans.get("coords", op.span),
                             ((tensor.span, "declared here"),), "store from registers with a mask, or let the ragged tile be the last one", (),
                             {"role": m.role, "tensor": tensor.name, "axis": axis, "expected": 0, "found": last, "setting": str(setting)}))  # fmt: skip
            continue
        name = tensor.extents[len(tensor.extents) - 1 - axis]
        given = f"`{name}` = {extent}" if isinstance(name, str) else str(extent)
        mask = op.operands.get("mask")
        where = "an element in front of" if last < 0 else f"element {last} along axis {axis} of"
        message = f"{call(op)} touches {where} `{tensor.name}`, which has {given}"
        related = [(tensor.span, "declared here")]
        guard = next((s for s, _ in plan.sites[op.id].around[::-1] if isinstance(s, If)), None)
        span = op.span
        if isinstance(mask, Expr):
            span, related = op.spans.get("mask", mask.span), [(op.span, "masked access"), *related]
        elif guard is not None:
            related.insert(0, (guard.head, "under this condition"))
        fixes = (edits.add_argument(op.span, "clip=True"),) if op.name in ("load", "store") and mask is None and guard is None and op.span.line == op.span.end_line else ()
        out.append(Fault("S033", message, span, tuple(related), "mask the access, or use `clip=True`", fixes,
                         {"role": m.role, "tensor": tensor.name, "axis": axis, "expected": extent, "found": last, "setting": str(setting)}))  # fmt: skip
    return out[:2]

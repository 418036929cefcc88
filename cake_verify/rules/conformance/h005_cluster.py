"""H005: clusters and multicast that the target has, of a size it launches."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Edit, Fault, Fix
from cake_ir.program import Expr, Program
from cake_ir.span import Span
from cake_ir.targets import target
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.wording import exists_on
from cake_verify.rule import Page
from cake_verify.rules.examples import MULTICAST, edit

PAGE = Page(
    code="H005",
    title="a cluster or multicast that does not exist here",
    statement="A cluster has at most 8 CTAs (16 on sm_90a, sm_100a and sm_103a with the non-portable attribute), exists on targets with clusters only, and a multicast names "
    "an axis along which the cluster has more than one CTA and cuts the view into equal slices of whole 8-row groups.",
    why="Consumer Blackwell boards have neither clusters nor multicast although the assembler takes the instructions; a mask with bits beyond the cluster is undefined.",
    failing=edit(MULTICAST, ("cluster=(2, 1))\n    lm.assume", "cluster=(32, 1))\n    lm.assume"), ("cluster=(2, 1))", "cluster=(32, 1))")),
    passing=MULTICAST,
    limits="Whether a cluster fits a GPC beside others is asked of the driver at launch.",
    sources=("HW047", "HW093"),
)


def check(program: Program) -> Iterator[Fault]:
    if not program.target:
        return
    t = target(program.target)
    x, y = program.launch.cluster
    span = program.launch.spans.get("cluster", program.launch.span)
    copies = [s for s in sites(program).of("tma_load") if s.op.attrs.get("multicast") is not None]
    if x * y > 1 and not t.has("CLUSTER"):
        why = t.narrower.get("CLUSTER") or exists_on("CLUSTER")
        yield Fault("H005", f"a cluster of {x} x {y} does not exist on {t.name}: {why}", span, tuple((s.op.spans["multicast"], "shares a tile over the cluster") for s in copies[:3]),
                    "load every tile in every CTA: clusters of one, multicast off", _single(program, copies), {"found": x * y, "expected": 1, "target": t.name})  # fmt: skip
        return
    if x * y > max(1, t.cluster_max_nonportable):
        yield Fault("H005", f"a cluster of {x} x {y} has {x * y} CTAs, {t.name} launches at most {t.cluster_max_nonportable}", span,
                    facts={"expected": t.cluster_max_nonportable, "found": x * y, "target": t.name})  # fmt: skip
        return
    if not t.has("CLUSTER"):
        for s in (s for s in sites(program).of("cluster_sync", "sync") if s.op.name == "cluster_sync" or s.op.attrs["barrier"] not in program.named):
            yield Fault("H005", f"`lm.{s.op.name}` meets a cluster, which {t.name} does not have; {exists_on('CLUSTER')}", s.op.span, help="use `lm.sync` of a named barrier")
            return
    for s in copies:
        yield from _multicast(program, s, t.has("MULTICAST"))


def _multicast(program: Program, s: Site, has: bool) -> Iterator[Fault]:
    op, span = s.op, s.op.spans["multicast"]
    off = (Fix((Edit(span, "None"),), "certain", "multicast off: every CTA loads the whole tile"),)
    if not has:
        t = target(program.target)
        why = t.narrower.get("MULTICAST") or exists_on("MULTICAST")
        yield Fault("H005", f"`{op.name}` cannot multicast on {t.name}: {why}", span, (), "load the tile in every CTA", off, {"target": t.name})
        return
    axis = str(op.attrs["multicast"])
    names = _axes(program)
    along = [n for n, size in zip(names, program.launch.cluster, strict=False) if size > 1]
    other = (Fix((Edit(span, f'"{along[0]}"'),), "likely", f"multicast along `{along[0]}`, which the cluster spans"),) if len(along) == 1 else ()
    if axis not in names[:2]:
        yield Fault("H005", f"`multicast` names axis `{axis}`, the cluster spans {' and '.join(f'`{n}`' for n in along or names[:2])}", span, (),
                    f"name an axis along which the cluster has several CTAs: {' or '.join(f'`{n}`' for n in along)}" if along else "drop the multicast, or launch a cluster",
                    other or off if len(along) < 2 else (), {"expected": along or list(names[:2]), "found": axis})  # fmt: skip
        return
    size = program.launch.cluster[names.index(axis)]
    if size == 1:
        yield Fault("H005", f"the cluster has one CTA along `{axis}`: nothing to multicast to", span, ((program.launch.spans.get("cluster", program.launch.span), "the cluster"),),
                    "drop the multicast, or launch a cluster along that axis", (*other, *off), {"expected": 2, "found": 1})  # fmt: skip
        return
    view = op.operands["view"]
    rows = view.type.rows if isinstance(view, Expr) else 0  # type: ignore[union-attr]  # a view by its kind
    if rows % size or (rows // size) % 8:
        yield Fault("H005", f"{rows} rows do not cut into {size} slices of whole 8-row groups for the multicast", op.span, (), "choose a tile whose rows are a multiple of "
                    f"{8 * size}, or multicast off", off, {"expected": 8 * size, "found": rows})  # fmt: skip


def _axes(program: Program) -> tuple[str, ...]:
    return next((d.names for d in program.schedulers.values()), ("m", "n"))


def _single(program: Program, copies: list[Site]) -> tuple[Fix, ...]:
    """The edits that take a schedule from clusters to single CTAs."""
    spans: list[tuple[Span | None, str]] = [(program.launch.spans.get("cluster"), "(1, 1)")]
    spans += [(d.spans.get("cluster"), "(1, 1)") for d in program.schedulers.values()]
    spans += [(b.spans.get("scope"), '"cta"') for b in program.barriers.values() if b.scope == "cluster"]
    spans += [(s.op.spans.get("multicast"), "None") for s in copies]
    edits = tuple(Edit(span, text) for span, text in spans if span is not None)
    return (Fix(edits, "likely", "clusters of one CTA, multicast off"),) if edits else ()

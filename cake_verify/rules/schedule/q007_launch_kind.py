"""Q007: the launch and its schedulers agree on how tiles are handed out."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Edit, Fault, Fix
from cake_ir.program import Launch, Program
from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

ROOT = True

PAGE = Page(
    code="Q007",
    title="launch and scheduler disagree",
    statement="`lm.launch(grid=\"tiles\")` goes with a scheduler of kind `grid`, exactly one tile a block; `grid=\"persistent\"` with `static`, `grouped`, `counter` or `clc`. Their clusters are equal.",
    why="A persistent loop in a grid of one block a tile does every tile once for each block; one tile a block in a persistent grid leaves most tiles undone.",
    failing=edit(LOOP, ('kind="static"', 'kind="grid"')),
    passing=LOOP,
)


def check(program: Program) -> Iterator[Fault]:
    stated = next((d for d in program.decls if isinstance(d, Launch)), None)
    persistent = program.launch.grid == "persistent"
    where = program.launch.spans.get("grid", program.launch.span)
    for s in program.schedulers.values():
        span = s.spans.get("kind", s.span)
        if (s.kind == "grid") == persistent:
            right = '"static"' if persistent else '"grid"'
            fixes = [Fix((Edit(span, right),), "likely", f"a scheduler of kind {right}")]
            if stated is not None and "grid" in program.launch.spans:
                fixes.append(Fix((Edit(where, '"tiles"' if persistent else '"persistent"'),), "likely", "the other launch"))
            here = f'the launch is "{program.launch.grid}"' if stated is not None else 'without `lm.launch` the grid is "tiles"'
            yield Fault("Q007", f'a scheduler of kind "{s.kind}" goes with `grid="{"tiles" if persistent else "persistent"}"`, {here}', span,
                        ((where, here),) if stated is not None else (), "", tuple(fixes), {"kind": s.kind, "grid": program.launch.grid})  # fmt: skip
        elif s.cluster != program.launch.cluster:
            at = s.spans.get("cluster", s.span)
            x, y = program.launch.cluster
            fix = (Fix((Edit(at, f"({x}, {y})"),), "likely", "the launch's cluster"),) if "cluster" in s.spans else ()
            yield Fault("Q007", f"`{s.name}` hands tiles to clusters of {s.cluster[0]} x {s.cluster[1]}, the launch makes {x} x {y}", at, ((program.launch.spans.get("cluster", program.launch.span), f"{x} x {y}"),),
                        "", fix, {"expected": [x, y], "found": list(s.cluster)})  # fmt: skip

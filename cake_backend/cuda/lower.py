"""`lower`: a program to CUDA C++ text, its launch manifest and the map from generated lines to the schedule."""

from __future__ import annotations

from dataclasses import dataclass

from cake_backend.cuda import entry, launch_manifest
from cake_backend.cuda.context import Context
from cake_backend.cuda.emitter import Emitter, Names
from cake_backend.cuda.maps import MapTable
from cake_backend.cuda.preamble import TENSOR_MAP, TYPES, Preamble
from cake_backend.cuda.resources import check_supported, hardware_ids, released_at_cluster_scope, shared_memory
from cake_backend.manifest import Manifest
from cake_ir.program import For, Program, statements
from cake_ir.span import Span


@dataclass(frozen=True, slots=True)
class Lowered:
    """The result: `source_map[i]` is the schedule's span of generated line i + 1, or None for lines that belong to no statement."""

    text: str
    manifest: Manifest
    source_map: tuple[Span | None, ...]

    def span_at(self, line: int) -> Span | None:
        """The schedule's span of a generated line (counted from 1), or that of the nearest line above that has one."""
        for i in range(min(line, len(self.source_map)) - 1, -1, -1):
            if self.source_map[i] is not None:
                return self.source_map[i]
        return None


def lower(program: Program, *, report: bool = False, source: str | None = None) -> Lowered:
    """Lower a verified program.

    `report` makes waits that write a hang record before they trap (64 bytes a warp, in host memory passed as the last parameter); without it
    they only trap. `source` is the schedule's text: its lines are quoted in comments. Raises `NotLowered` with the span of what this build
    cannot emit. The same program always gives the same text.
    """
    check_supported(program)
    names = Names()
    entry_name = names.take(program.name)
    for name in (*program.tensors, *program.scalars):
        names.reserve(name)
    out = Emitter()
    ctx = Context(
        program=program, entry=entry_name, out=out, preamble=Preamble(), names=names, maps=MapTable(names), report=report, layouts={},
        named_ids=hardware_ids(program), released=released_at_cluster_scope(program),
    )  # fmt: skip
    signature = entry.emit(ctx)
    head = [f"// {program.name} for {program.target}, lowered from Cake IR", *TYPES]
    if ctx.maps.params:
        head.append(TENSOR_MAP)
    head += ["", *ctx.preamble.lines(), ""]
    loops = [s.scheduler for b in program.body for s in statements(b.body) if isinstance(s, For) and s.scheduler]
    manifest = launch_manifest.build(ctx, signature.params, loops, shared_memory(program).dynamic)
    text = "\n".join([*head, *out.render(source)]) + "\n"
    return Lowered(text, manifest, (*[None] * len(head), *(line.span for line in out.lines)))

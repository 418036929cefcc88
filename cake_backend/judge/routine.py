"""What the host does for a candidate: one launch, or those of a plan in order, with clears and workspaces between them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cake_backend.expressions import parse_expression
from cake_backend.manifest import Expr, Guard, Launch, Manifest, Param, TensorParam, Workspace

if TYPE_CHECKING:
    from cake_ir.plan import Plan
    from cake_ir.program import Param as Argument
    from cake_ir.program import Program
    from cake_ir.span import Span


@dataclass(frozen=True, slots=True)
class Call:
    """One launch: the schedule's tensors by what is bound to them, its scalars as text over the routine's, and what is cleared first."""

    program: Program
    tensors: dict[str, str]
    scalars: dict[str, Expr]
    clears: tuple[str, ...] = ()
    pdl: bool = False


@dataclass(frozen=True, slots=True)
class Routine:
    """Everything that runs for one set of arguments. `planned` says that the author wrote a plan."""

    name: str
    target: str
    params: tuple[Argument, ...]
    tunables: dict[str, Any]
    calls: tuple[Call, ...]
    workspaces: tuple[Workspace, ...]
    span: Span
    planned: bool

    @staticmethod
    def of(program: Program) -> Routine:
        """The routine of one schedule: its `.zeroed` arguments are cleared, then it is launched."""
        call = Call(program, {n: n for n in program.tensors}, {n: n for n in program.scalars}, _zeroed(program))
        return Routine(program.name, program.target, tuple(program.params), dict(program.tunables), (call,), (), program.span, False)

    @property
    def program(self) -> Program | None:
        """The one program that is launched, where there is no plan."""
        return None if self.planned else self.calls[0].program

    @property
    def programs(self) -> tuple[Program, ...]:
        """The different programs in the order of their first launch; their places number the cubins."""
        return tuple(dict.fromkeys(call.program for call in self.calls))

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of the tensor arguments."""
        return tuple(p.name for p in self.params if p.kind != "scalar")

    @property
    def scalars(self) -> dict[str, str]:
        """Types of the scalar arguments by name."""
        return {p.name: p.dtype or "i32" for p in self.params if p.kind == "scalar"}

    def unordered(self) -> list[int]:
        """Lines of sums that the author declared to have no order (`order="any"`): their bits may differ from run to run."""
        found = {op.span.line for p in self.programs for op in p.ops if op.name in ("atomic", "tma_reduce") and op.attrs.get("order") == "any"}
        return sorted(found)


def _zeroed(program: Program) -> tuple[str, ...]:
    return tuple(p.name for p in program.params if p.zeroed)


def routine_of_plan(plan: Plan, programs: Sequence[Program]) -> Routine:
    """The routine of a plan whose launches run `programs`, in order.

    Raises `NotLowered` with the span of what the host cannot do: a clear that no launch follows, or arithmetic that the launcher has not.
    """
    from cake_backend.cuda.faults import not_lowered
    from cake_backend.cuda.manifest_text import host_text, stripped
    from cake_ir.plan import Run, Zero
    from cake_ir.plan import Workspace as Space
    from cake_ir.program import Let

    lets = {s.name: s for s in plan.steps if isinstance(s, Let)}
    unique: dict[str, Program] = {}
    calls: list[Call] = []
    spaces: list[Workspace] = []
    clears: list[str] = []
    last: Zero | None = None

    def text(e: Any) -> Expr:
        made = stripped(host_text(_Lets(lets), e))
        return int(made) if made.lstrip("-").isdigit() else made

    left = iter(programs)
    for step in plan.steps:
        if isinstance(step, Space):
            spaces.append(Workspace(step.name, tuple(text(e) for e in step.shape), step.dtype))
        elif isinstance(step, Zero):
            clears.append(step.tensor)
            last = step
        elif isinstance(step, Run):
            program = next(left)
            program = unique.setdefault(f"{step.schedule} {sorted(program.tunables.items(), key=str)}", program)
            scalars = {name: text(e) for name, e in step.scalars.items()}
            clears += [bound for name, bound in step.tensors.items() if program.tensors[name].zeroed and bound not in clears]
            pdl = step.after == "pdl" and not clears  # behind a clear the launch waits for all of it anyway
            calls.append(Call(program, dict(step.tensors), scalars, tuple(dict.fromkeys(clears)), pdl))
            clears = []
    if clears and last is not None:
        not_lowered(f"a clear of `{clears[-1]}` behind the last launch", last.span)
    if not calls:
        not_lowered("a plan that launches nothing", plan.span)
    return Routine(plan.name, calls[0].program.target, plan.params, dict(plan.tunables), tuple(calls), tuple(spaces), plan.span, True)


@dataclass(frozen=True, slots=True)
class _Lets:
    """Where the plan's own names get their values from, as the text of expressions asks for them."""

    lets: Mapping[str, Any]


# ------------------------------------------------------------------ one manifest


def merged(routine: Routine, manifests: Sequence[Manifest]) -> Manifest:
    """One manifest over the routine's arguments; `manifests` belong to `routine.programs`."""
    first = manifests[0]
    if not routine.planned:
        launch = replace(first.launches[0], clears=routine.calls[0].clears)
        return replace(first, launches=(launch, *first.launches[1:]))
    number = {id(program): i for i, program in enumerate(routine.programs)}
    launches: list[Launch] = []
    maps: list[Any] = []
    guards: list[Guard] = []
    for call in routine.calls:
        module = number[id(call.program)]
        own = manifests[module]
        change = Rewriter(call.tensors, call.scalars)
        for launch in own.launches:
            params = tuple(_param(p, change, len(maps)) for p in launch.params)
            grid = replace(launch.grid, tiles=tuple(change.text(t) for t in launch.grid.tiles))
            launches.append(replace(launch, grid=grid, params=params, pdl=call.pdl, clears=call.clears, module=module))
        maps += [replace(m, tensor=change.tensors[m.tensor]) for m in own.maps]
        guards += [replace(g, expr=change.text(g.expr)) for g in own.guards]
    return Manifest(
        schedule=routine.name,
        target=routine.target,
        launches=tuple(launches),
        maps=tuple(maps),
        tensors=_tensors(routine, manifests),
        scalars=routine.scalars,
        guards=tuple(dict.fromkeys(guards)),
        workspaces=routine.workspaces,
        counters=max(m.counters for m in manifests),
    )


def _tensors(routine: Routine, manifests: Sequence[Manifest]) -> dict[str, TensorParam]:
    """Arguments that some launch uses, with what all launches together do to them."""
    number = {id(program): i for i, program in enumerate(routine.programs)}
    used: dict[str, list[TensorParam]] = {}
    cleared: set[str] = set()
    for call in routine.calls:
        cleared |= set(call.clears)
        for name, spec in manifests[number[id(call.program)]].tensors.items():
            used.setdefault(call.tensors[name], []).append(spec)
    out = {}
    for p in routine.params:
        if specs := used.get(p.name):
            written = p.name in cleared or any(s.mode in ("out", "inout") for s in specs)
            read = any(s.mode != "out" for s in specs) and p.name not in cleared and specs[0].mode != "out"
            mode = ("inout" if read else "out") if written else "in"
            out[p.name] = TensorParam(p.rank, p.dtype or specs[0].dtype, mode)
    return out


def _param(p: Param, change: Rewriter, maps: int) -> Param:
    if p.kind == "tmap":
        return replace(p, map=(p.map or 0) + maps)
    if p.kind == "scalar":
        return Param("expr", expr=change.text(p.name or ""), ctype=p.ctype)
    tensor = None if p.tensor is None else change.tensors[p.tensor]
    return replace(p, tensor=tensor, expr=None if p.expr is None else change.text(p.expr))


class Rewriter(ast.NodeTransformer):
    """Text over a schedule's names as text over the plan's."""

    def __init__(self, tensors: Mapping[str, str], scalars: Mapping[str, Expr]) -> None:
        self.tensors = tensors
        self.scalars = scalars

    def text(self, expr: Expr) -> Expr:
        """The expression over the plan's names."""
        return expr if isinstance(expr, int) else ast.unparse(self.visit(parse_expression(expr)))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in ("extent", "stride") and isinstance(node.args[0], ast.Name):
            named = ast.Name(self.tensors[node.args[0].id], ast.Load())
            return ast.Call(node.func, [named, *(self.visit(a) for a in node.args[1:])], [])
        return ast.Call(node.func, [self.visit(a) for a in node.args], [])

    def visit_Name(self, node: ast.Name) -> ast.AST:
        value = self.scalars.get(node.id)
        return node if value is None else parse_expression(str(value))

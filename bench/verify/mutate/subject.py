"""A good schedule taken apart for mutation, and the mutants made of it: text with one thing changed, and where."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from bench.verify.cases import Case
from cake_ir import parse, specialise
from cake_ir.program import Expr, Program
from cake_verify.analyses.sites import sites
from cake_verify.proposals.placed import Placed, called, declarations, placed

Piece = tuple[ast.AST, str]
"""A node of the schedule's syntax tree and the text that replaces it."""


@dataclass(frozen=True)
class Mutant:
    """One changed text. `lines` are those of the change (numbers as in the mutant, which keeps the original's numbering), `near` those and
    the neighbours of the same role, `roles` the roles concerned. `truth` is `contract` where a simulation cannot tell, `lanes` where it can tell of warps only."""

    cls: str
    subject: str
    number: int
    title: str
    text: str
    lines: frozenset[int]
    near: frozenset[int]
    roles: frozenset[str]
    truth: str = "simulation"

    @property
    def key(self) -> str:
        return f"{self.subject}/{self.cls}/{self.number}"


EFFECTS = frozenset("wait arrive commit sync tma_load tma_store cp_async cp_commit cp_wait mma_wait store_wait tmem_wait fence_proxy load store signal spin".split())
"""Calls that synchronise, copy or touch memory."""


def acts(node: ast.stmt) -> bool:
    """Whether a statement (not a loop or branch) synchronises, copies, multiplies or touches memory."""
    if isinstance(node, ast.For | ast.If):
        return False
    return any(isinstance(n, ast.Call) and called(n) in EFFECTS | {"mma", "ldmatrix", "tmem_load"} for n in ast.walk(node))


def communicates(node: ast.For | ast.If) -> bool:
    """Whether something in a loop or branch synchronises or touches memory: another number of rounds is then more than another sum."""
    return any(isinstance(n, ast.Call) and called(n) in EFFECTS for part in node.body + node.orelse for n in ast.walk(part))


def chooses_values(node: ast.If) -> bool:
    """Whether both arms of a branch do the same to the same places and differ in the values that they store, whatever they read of global memory for that:
    the wrong arm is then another value and no more."""
    first, second = ([_without_value(n) for part in arm for n in ast.walk(part) if isinstance(n, ast.Call) and called(n) in EFFECTS and not _reads_tensor(n)] for arm in (node.body, node.orelse))
    return first == second


def _reads_tensor(call: ast.Call) -> bool:
    return called(call) == "load" and isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "lm"


def _without_value(call: ast.Call) -> str:
    stored = {"store": 0 if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) != "lm" else 1}.get(called(call))
    return ast.unparse(ast.Call(call.func, [a for k, a in enumerate(call.args) if k != stored], call.keywords))


@dataclass
class Subject:
    """One case's text, syntax tree and specialised program; `text` is given where it is not the case's own."""

    case: Case
    text: str = ""
    function: ast.FunctionDef = field(init=False)
    made: list[Mutant] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.text = self.text or self.case.text()
        tree = ast.parse(self.text)
        self.function = next(n for n in tree.body if isinstance(n, ast.FunctionDef))

    @cached_property
    def program(self) -> Program:
        found = specialise(parse(self.text, self.case.file).schedules[0], self.case.params, self.case.target)
        assert found.program is not None, found.faults
        return found.program

    @cached_property
    def statements(self) -> list[Placed]:
        """Every statement of every role block in text order."""
        return placed(self.function, self.source)

    @cached_property
    def declarations(self) -> dict[str, ast.Call]:
        """The call that declares each name."""
        return declarations(self.function)

    def declared(self, *kinds: str) -> Iterator[tuple[str, ast.Call]]:
        """Declarations made by one of these calls (`pipeline`, `barrier`, `view`, ..)."""
        return ((name, call) for name, call in self.declarations.items() if called(call) in kinds)

    def source(self, node: ast.AST) -> str:
        return ast.get_source_segment(self.text, node) or ""

    def among_lanes(self, node: ast.stmt) -> bool:
        """Whether a statement is a meeting of one warp: its lanes are one agent of the simulator, which cannot show what happens without it."""
        call = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        if call is None or called(call) != "sync" or not call.args:
            return False
        barrier = self.program.named.get(self.source(call.args[0]))
        if barrier is None:
            return False
        warps = [self.program.roles[r].member_warps * (1 if barrier.per_member else self.program.roles[r].members) for r in barrier.roles]
        return sum(warps) == 1

    def meeting(self, node: ast.stmt) -> str:
        """How a mutant without a meeting is judged: by contract where it is one of lanes, `lanes` where it is also one of lanes: what is stored from
        registers in front of it is read by `ldmatrix` behind it, which gives every lane what others have stored, or by a product of a warpgroup, which the
        simulator starts when all four warps have come and of which PTX promises that of the threads of a warp only (HW064)."""
        if self.among_lanes(node):
            return "contract"
        here = next((s for s in sites(self.program).ops if s.op.name == "sync" and s.op.span.line == node.lineno), None)
        if here is None:
            return "simulation"
        own = sites(self.program).of_role(here.role.name)
        others = [s.order for s in own if s.op.name == "sync" and s.op.id != here.op.id]
        since, until = max([n for n in others if n < here.order], default=-1), min([n for n in others if n > here.order], default=len(own))
        stored = {_declared(s.op.operands.get("view")) for s in own if since < s.order < here.order and s.op.name == "store"}
        read = {_declared(s.op.operands.get(k)) for s in own if here.order < s.order < until and s.op.name in ("ldmatrix", "mma") for k in ("view", "a", "b")}
        return "lanes" if stored & read - {""} else "simulation"

    def of_one_warp(self, *views: str) -> str:
        """How a mutant is judged that lays one of these views over another: `lanes` where every role that mentions one has members of a single warp, as
        what its lanes do to each other's bytes no simulation shows."""
        return "lanes" if all(self.program.roles[r].member_warps == 1 for v in views for r in self.users(v)) else "simulation"

    # ------------------------------------------------------------ making mutants

    def change(self, *pieces: Piece) -> str:
        """The text with nodes replaced; the number of lines stays."""
        lines = self.text.split("\n")
        for node, new in sorted(pieces, key=lambda p: (p[0].lineno, p[0].col_offset), reverse=True):  # type: ignore[attr-defined]  # located nodes only
            first, last = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined]  # as above
            head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]  # type: ignore[attr-defined]  # as above
            fresh = (head + new + tail).split("\n")
            fresh += [""] * (last - first + 1 - len(fresh))
            lines[first : last + 1] = fresh
        return "\n".join(lines)

    def mutant(self, cls: str, title: str, *pieces: Piece, at: Placed | None = None, roles: frozenset[str] | None = None, truth: str = "simulation",
               near: frozenset[int] = frozenset()) -> None:  # fmt: skip
        """Add a mutant, unless it changes nothing or has been made already."""
        text = self.change(*pieces)
        if text == self.text or any(m.text == text for m in self.made):
            return
        lines = frozenset(n for node, _ in pieces for n in range(node.lineno, node.end_lineno + 1))  # type: ignore[attr-defined]  # located nodes only
        near = lines | near | (self.around(at) if at is not None else frozenset())
        concerned = roles if roles is not None else frozenset({at.role}) if at is not None else frozenset(self.program.roles)
        number = sum(m.cls == cls for m in self.made)
        self.made.append(Mutant(cls, self.case.name, number, title, text, lines, near, concerned, truth))

    def around(self, at: Placed) -> frozenset[int]:
        """The lines of the statements before and after one in its role, heads of loops and branches included, and of the nearest ones that
        synchronise, copy, multiply or touch memory."""
        mine = [p.node for p in self.statements if p.role == at.role]
        i = next(k for k, node in enumerate(mine) if node is at.node)
        before = mine[:i][::-1]
        after = [n for n in mine[i + 1 :] if n.lineno > (at.node.end_lineno or 0) or isinstance(at.node, ast.For | ast.If)]
        found = before[:1] + after[:1]
        for side in (before, after):
            found += [n for n in side if acts(n)][:1]
        return frozenset(n for node in found for n in _lines(node))

    def users(self, name: str) -> frozenset[str]:
        """The roles whose blocks mention a declared name."""
        out = set()
        for node in self.function.body:
            if isinstance(node, ast.With) and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node)):
                out.add(self.source(node.items[0].context_expr))
        return frozenset(out)


def _declared(e: object) -> str:
    """The declared view of which an operand is a part; the registers of a store have none."""
    while isinstance(e, Expr) and e.args:
        e = e.args[0]
    return str(e.attrs["view"]) if isinstance(e, Expr) and e.op == "view" else ""


def _lines(node: ast.stmt) -> range:
    """A statement's lines; of a loop or branch only its head's."""
    if isinstance(node, ast.For | ast.If):
        head = node.iter if isinstance(node, ast.For) else node.test
        return range(node.lineno, (head.end_lineno or node.lineno) + 1)
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def without(subject: Subject, call: ast.Call, name: str) -> str:
    """A call's text with one option left out."""
    parts = [subject.source(a) for a in call.args] + [f"{k.arg}={subject.source(k.value)}" for k in call.keywords if k.arg != name]
    return f"{subject.source(call.func)}({', '.join(parts)})"


def with_option(subject: Subject, call: ast.Call, name: str, value: str) -> str:
    """A call's text with an option set."""
    inner = without(subject, call, name)
    return f"{inner[:-1]}{', ' if inner[-2] != '(' else ''}{name}={value})"

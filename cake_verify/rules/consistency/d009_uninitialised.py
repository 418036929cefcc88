"""D009: registers are written before they are read."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.dtypes import DTYPES
from cake_ir.fault import Fault
from cake_ir.program import Assign, Expr, For, If, Op, Program, Stmt, op_of
from cake_ir.span import Span
from cake_ir.types import FragT
from cake_verify.analyses import edits
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="D009",
    title="a fragment is read before anything was written to it",
    statement="A fragment declared without `init` is written by an assignment, or by an MMA that starts from zero, before it is read or accumulated into.",
    why="Registers hold what an earlier kernel left in them.",
    failing=edit(TILE, ("lm.mma(acc, a, b, init=True)", "lm.mma(acc, a, b)")),
    passing=TILE,
    limits="A condition is believed: one given as `init`, and one around a read or a write. A loop is assumed to run.",
)


def check(program: Program) -> Iterator[Fault]:
    empty = [n for n in mentions(program).get("frag", ()) if n.attrs.get("init") is None]
    if not empty:
        return
    declared = {id(s.op.operands["value"]): s.role.name for s in sites(program).of("compute")}
    nameless = any([id(n) not in declared for n in empty])
    roles = {declared.get(id(n)) for n in empty}
    for block in program.body:
        if not nameless and block.role not in roles:
            continue
        walk = _Walk(nameless)
        walk.body(block.body)
        yield from walk.found


INTEGERS = frozenset(n for n, d in DTYPES.items() if d.is_integer)


class _Walk:
    """Places without a value so far, with where they were declared. `nameless`: some fragment without one stands inside an expression."""

    def __init__(self, nameless: bool) -> None:
        self.nameless = nameless
        self.empty: dict[str, Span] = {}
        self.branches = 0
        self.tiles = 0
        self.anew: set[str] = set()
        self.found: list[Fault] = []

    def body(self, body: tuple[Stmt, ...]) -> None:
        for s in body:
            if isinstance(s, For):
                self.tiles += s.kind == "tiles"
                self.body(s.body)
                self.tiles -= s.kind == "tiles"
            elif isinstance(s, If):
                before = dict(self.empty)
                self.branches += 1
                self.body(s.then)
                after, self.empty = self.empty, before
                self.body(s.orelse)
                self.branches -= 1
                self.empty = {k: v for k, v in self.empty.items() if k in after}
            else:
                self.statement(s)

    def statement(self, s: Stmt) -> None:
        op = op_of(s)
        if op is None:
            return
        if isinstance(s, Assign) and op.name == "compute":
            value = op.operands["value"]
            if isinstance(value, Expr) and value.op == "frag":
                if value.attrs.get("init") is None:
                    self.empty.update({t: value.span for t in s.targets})
                    self.anew |= set(s.targets) if self.tiles else set()
                else:  # a place that was declared before is started anew
                    for t in s.targets:
                        self.empty.pop(t, None)
                return
        if not self.empty and not self.nameless:
            return
        if op.attrs.get("kind") is not None and op.name == "mma":
            self.mma(op)
        else:
            for name, e in op.operands.items():
                if name == "like":  # a model of form and shape: its values are not looked at
                    continue
                for part in e if isinstance(e, tuple) else (e,):
                    if isinstance(part, Expr):
                        self.reads(part, op)
        if isinstance(s, Assign):
            for t in s.targets:
                self.empty.pop(t, None)

    def mma(self, op: Op) -> None:
        init, acc = op.operands.get("init"), op.operands["acc"]
        for name in ("a", "b"):
            e = op.operands[name]
            if isinstance(e, Expr):
                self.reads(e, op)
        if not isinstance(acc, Expr):
            return
        never = isinstance(init, Expr) and init.op == "const" and not init.attrs["value"]
        if never:
            self.reads(acc, op, accumulates=True)
        for e in acc.parts():
            if e.op == "var":
                self.empty.pop(str(e.attrs["name"]), None)

    def reads(self, e: Expr, op: Op, accumulates: bool = False) -> None:
        for node in e.parts():
            if node.op == "frag" and node.attrs.get("init") is None and not _as_model(e, node):
                self.found.append(Fault("D009", "this fragment is used where it is made, and nothing has written to it", node.span, ((op.span, "used here"),) if node.span != op.span else (),
                                        "give it a value with `init=`", (edits.add_argument(node.span, "init=0" if node.type.dtype in INTEGERS else "init=0.0"),)))  # type: ignore[union-attr]  # a fragment # fmt: skip
            if node.op != "var" or not isinstance(node.type, FragT):
                continue
            name = str(node.attrs["name"])
            if name not in self.empty or self.branches or _as_model(e, node):
                continue
            declared = self.empty.pop(name)
            if accumulates and name in self.anew:
                self.found.append(Fault("D009", f"`{name}` is declared without `init`, and the first thing that happens to it is a sum", declared, ((op.span, "accumulates into it"),),
                                        "start each tile from zero: `init=0.0`", (edits.add_argument(declared, "init=0.0"),), {"place": name}))  # fmt: skip
            elif accumulates:
                self.found.append(Fault("D009", f"`{name}` is accumulated into before anything was written to it", op.span, ((declared, "declared without `init`"),),
                                        "start from zero: `init=True`, or `init=(k == 0)` in a loop", (), {"place": name}))  # fmt: skip
            else:
                self.found.append(Fault("D009", f"`{name}` is read before anything was written to it", node.span, ((declared, "declared without `init`"),),
                                        "declare it with `init=0.0`, or write it first", (), {"place": name}))  # fmt: skip


_MODELS = frozenset({"rowvec", "colvec", "iota", "in_bounds", "frag", "topk_list"})


def _as_model(root: Expr, node: Expr) -> bool:
    """Whether every use of `node` below `root` only takes its shape and form."""
    uses = [parent for parent in root.parts() if any(a is node for a in parent.args)]
    return bool(uses) and all(p.op in _MODELS for p in uses)

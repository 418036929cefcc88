"""Canonical form: what two programs share when they differ only in local names, comments, layout and tunables.

`content_hash` identifies a program; `fingerprint` and `distance` say how far apart two programs are in structure.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

from cake_ir.ops import SPECS, spec_of
from cake_ir.ops.spec import P
from cake_ir.program import Assign, Do, Expr, For, Launch, Let, Op, Program, Stmt, statements
from cake_ir.types import FragT, TmemT, ViewT

FORM_VERSION = 1
"""Part of every hash: raised when the form changes, so that old and new hashes never meet."""

_NAMING = frozenset({"barrier", "named", "turns", "role", "ring"})
_NOT_FORM = frozenset({"span", "spans", "name"})


def canonical_form(program: Program) -> str:
    """The program as one line of nested lists. Locals and declared things are numbered in order of appearance, tile axes by position;
    run-time parameters keep their names, since they bind arguments."""
    return _Form(program).write()


def content_hash(program: Program) -> str:
    """SHA-256 of the canonical form, in hexadecimal."""
    return hashlib.sha256(f"{FORM_VERSION} {canonical_form(program)}".encode()).hexdigest()


def equal(a: Program, b: Program) -> bool:
    """Whether two programs are the same but for names, spans and tunables."""
    return canonical_form(a) == canonical_form(b)


class _Form:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.numbers: dict[str, str] = {}
        self.axes = {name: str(i) for d in reversed(tuple(program.schedulers.values())) for i, name in enumerate(d.fields)}

    def name(self, name: Any) -> str:
        """The number of a local or declared name."""
        found = self.numbers.get(name)
        if found is None:
            found = self.numbers[name] = f"%{len(self.numbers)}"
        return found

    def axis(self, name: Any) -> str:
        return self.axes.get(str(name), str(name))

    def write(self) -> str:
        p = self.program
        params = " ".join(f"({q.name} {q.kind}{q.rank} {q.dtype} {q.const:d}{q.zeroed:d}{'i' * q.inout} {self.plain(q.extents)})" for q in p.params)
        decls = " ".join(self.declaration(d) for d in p.decls)
        blocks = " ".join(f"({self.name(b.role)} {self.body(b.body)})" for b in p.body)
        return f"({p.target} ({params}) ({decls}) ({blocks}))"

    def declaration(self, d: Any) -> str:
        own = "" if isinstance(d, Launch) or not hasattr(d, "name") else self.name(d.name)
        if isinstance(d, Let):
            return f"(let {own} {self.expr(d.value)})"
        fields = [self.field(type(d).__name__, key, getattr(d, key)) for key in d.__dataclass_fields__ if key not in _NOT_FORM]
        return f"({type(d).__name__} {own} {' '.join(fields)})"

    def field(self, kind: str, key: str, value: Any) -> str:
        if key in ("pool", "pipeline", "role", "fetch") and value is not None:
            return self.name(value)
        if key in ("prod", "cons", "roles") and isinstance(value, tuple):
            return f"[{' '.join(self.name(v) for v in value)}]"
        if kind == "Scheduler" and key == "names" and isinstance(value, tuple):
            return str(len(value))
        if key == "raster":
            return self.axis(value)
        return self.plain(value)

    def plain(self, value: Any) -> str:
        if isinstance(value, Expr):
            return self.expr(value)
        if isinstance(value, tuple):
            return f"[{' '.join(self.plain(v) for v in value)}]"
        return repr(value)

    # -------------------------------------------------------- statements and expressions

    def body(self, body: tuple[Stmt, ...]) -> str:
        return " ".join(self.statement(s) for s in body)

    def statement(self, s: Stmt) -> str:
        if isinstance(s, Do):
            return self.op(s.op)
        if isinstance(s, Assign):
            value = self.op(s.value) if isinstance(s.value, Op) else self.expr(s.value)
            return f"(= {' '.join(self.name(t) for t in s.targets)} {value})"
        if isinstance(s, For):
            bounds = [self.name(s.scheduler)] if s.kind == "tiles" else [self.plain(s.lo), self.plain(s.hi)]
            head = " ".join(bounds)  # before the variable gets its number: the bounds are outside its scope
            return f"(for {s.kind} {head} {self.name(s.var)} {self.body(s.body)})"
        return f"(if {self.expr(s.cond)} ({self.body(s.then)}) ({self.body(s.orelse)}))"

    def op(self, op: Op) -> str:
        if op.name == "compute":
            return self.plain(op.operands["value"])
        spec = spec_of(op)
        operands = " ".join(f"{k}:{self.plain(v)}" for k, v in sorted(op.operands.items()) if v is not None)
        return f"({spec.spelling} {operands} {self.attrs(spec.params, op.attrs)})"

    def attrs(self, params: tuple[P, ...], attrs: dict[str, Any]) -> str:
        kinds = {p.name: p.kinds for p in params}
        out = []
        for key in sorted(attrs):
            value = attrs[key]
            if value is None or key == "operands":
                continue
            if key == "group":
                out.append(f"group:{self.name(f'group {value}')}")  # numbered as names are: by order of appearance
                continue
            if _NAMING & set(kinds.get(key, ())):
                out.append(f"{key}:{self.name(value)}")
            else:
                out.append(f"{key}:{self.axis(value) if key == 'multicast' else self.plain(value)}")
        return " ".join(out)

    def expr(self, e: Expr) -> str:
        op, attrs = e.op, e.attrs
        args = " ".join(self.expr(a) for a in e.args)
        if op == "var":
            return self.name(attrs["name"])
        if op == "param":
            return str(attrs["name"])
        if op == "const":
            return repr(attrs["value"])
        if op == "field":
            return f"(field {args} {self.axis(attrs['name'])})"
        if op in ("step", "at", "view", "tmem", "role_index", "slot_index"):
            (key,) = (k for k in ("ring", "view", "tmem", "role") if k in attrs)
            return f"({op} {args} {self.name(attrs[key])})"
        if op in ("cta_rank", "cluster_size", "cta_id"):
            return f"({op} {self.axis(attrs.get('axis'))})"
        spec = SPECS.get(("lm", op))
        if spec is not None and "operands" in attrs:
            return f"({op} {args} {self.attrs(spec.params, attrs)})"
        rest = " ".join(f"{k}:{self.plain(attrs[k])}" for k in sorted(attrs))
        return f"({op} {args} {rest})"


# ------------------------------------------------------------------ how alike two programs are


def fingerprint(program: Program) -> Counter[str]:
    """Features of a program with their counts: resources, the operations of each role in their loops, expression nodes, shapes."""
    out: Counter[str] = Counter()
    out[f"target {program.target}"] += 1
    out[f"launch {program.launch.grid} {program.launch.cluster} {program.launch.ctas_per_sm}"] += 1
    for r in program.roles.values():
        out[f"role {r.warps} {r.members} {r.regs}"] += 1
    for v in program.views.values():
        out[f"view {v.shape} {v.dtype} {v.swizzle}"] += 1
        out[f"stages {v.stages}"] += 1
    for b in program.barriers.values():
        out[f"barrier {b.arrive} {b.primed:d} {b.scope}"] += 1
    for s in program.schedulers.values():
        out[f"scheduler {s.kind} {s.raster} {s.swizzle} {len(s.names)}{f' {s.deal}' if s.deal else ''}"] += 1
    for i, block in enumerate(program.body):
        _features(block.body, f"{i}", out)
    return out


def _features(body: tuple[Stmt, ...], where: str, out: Counter[str]) -> None:
    before = "start"
    for s in body:
        if isinstance(s, For):
            _features(s.body, f"{where}/{s.kind}", out)
            before = "loop"
        elif isinstance(s, Assign | Do):
            op = s.op if isinstance(s, Do) else s.value if isinstance(s.value, Op) else None
            if op is None:
                continue
            out[f"op {where} {op.name}"] += 1
            out[f"pair {before} {op.name}"] += 1
            before = op.name
            for e in op.operands.values():
                for node in e.parts() if isinstance(e, Expr) else ():
                    if isinstance(node.type, FragT | ViewT | TmemT):
                        out[f"node {node.op} {node.type.shape if not isinstance(node.type, TmemT) else node.type.cols}"] += 1
        else:
            _features(s.then, f"{where}/if", out)
            _features(s.orelse, f"{where}/else", out)
            before = "if"


def distance(a: Counter[str], b: Counter[str]) -> float:
    """0 for equal fingerprints, 1 for nothing in common: one minus the weighted Jaccard index."""
    union = sum((a | b).values())
    return 1.0 - sum((a & b).values()) / union if union else 0.0


def operation_count(program: Program) -> int:
    """Operations that the text executes, computations included."""
    return sum(1 for block in program.body for s in statements(block.body) if isinstance(s, Do) or (isinstance(s, Assign) and isinstance(s.value, Op)))

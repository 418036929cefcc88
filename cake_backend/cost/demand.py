"""What an operation asks of the machine, in sizes: derived once from its effects and operand types, before any constant is known."""

from __future__ import annotations

from dataclasses import dataclass, field

from cake_backend.cost.pipes import Count, count
from cake_ir.derive.clusters import along, axis_of
from cake_ir.dtypes import DTYPES
from cake_ir.layout import ldmatrix_conflicts
from cake_ir.ops import effects_of, spec_of
from cake_ir.ops.effects import (
    Arrive,
    ClusterSync,
    Commit,
    Drain,
    Effect,
    FenceProxy,
    Flag,
    GridDependency,
    Issue,
    Sync,
    Touch,
    Turn,
    Wait,
)  # fmt: skip
from cake_ir.ops.mma import instruction_k
from cake_ir.placement import view_layout
from cake_ir.program import Expr, Op, Program, Role
from cake_ir.types import FragT, ScalarT, Type, ViewT
from cake_ir.walk.code import OpCode


@dataclass(frozen=True, slots=True)
class Piece:
    """One part of an operation, in the order in which the parts happen.

    kind: pipes smem gmem tma bulk mma wait arrive sync cluster_sync turn_wait turn_pass fence drain commit unknown. `name` is the
    barrier, tensor or engine that it concerns, `stage` the position of the slot in an event's values (-1: none). Sizes: `size` bytes
    (pipes: none), `times` what repeats (MMA instructions, landings of a multicast), `factor` bank conflicts or sectors, `pending`
    the groups a drain leaves.
    """

    kind: str
    name: str = ""
    stage: int = -1
    size: float = 0.0
    times: int = 1
    factor: float = 1.0
    pending: int = 0
    read: bool = False
    flops: float = 0.0
    eight_bit: bool = False
    order: str | None = None
    threads: int = 0
    parties: int = 1
    count: Count = field(default_factory=Count)


@dataclass(frozen=True, slots=True)
class Demand:
    """All pieces of one operation as executed by one member of `role`; `replies` where it yields a uniform scalar read from memory."""

    op: Op
    role: str
    pieces: tuple[Piece, ...]
    replies: bool = False

    @property
    def tensor(self) -> bool:
        return any(p.kind == "mma" for p in self.pieces)


def multicast_size(program: Program, axis: object) -> int:
    """CTAs that share a box multicast along `axis`; 1 without multicast."""
    if axis is None:
        return 1
    return len(along(program, axis_of(program, str(axis)), 0))


def view_bytes(t: Type) -> float:
    """Bytes of a view's rectangle."""
    return t.rows * t.cols * DTYPES[t.dtype].bits / 8 if isinstance(t, ViewT) else 0.0


def frag_bytes(t: Type) -> float:
    """Bytes of a fragment's elements in memory."""
    return t.rows * t.cols * DTYPES[t.dtype].bits / 8 if isinstance(t, FragT) else 0.0


def demands(program: Program, codes: tuple[OpCode, ...], roles: dict[int, str]) -> dict[int, Demand]:
    """Demands by operation id; `roles` says which role executes an operation."""
    return {code.op.id: _demand(program, code, program.roles[roles[code.op.id]]) for code in codes if code.op.id in roles}


def _demand(program: Program, code: OpCode, role: Role) -> Demand:
    op, warps = code.op, role.member_warps
    pieces: list[Piece] = []
    total = Count()
    for tree in code.trees.values():
        if tree.op != "var":
            total.add(count(tree, warps))
    if total.instructions or total.shuffles_deep:
        pieces.append(Piece("pipes", count=total))
    effects = effects_of(op, program)
    for effect in effects:
        piece = _piece(program, code, role, effect)
        if piece is not None:
            pieces.append(piece)
    if spec_of(op).family == "mma" and not any(isinstance(e, Issue) for e in effects):
        pieces.append(Piece("unknown", "mma_sync"))
    return Demand(op, role.name, tuple(pieces), isinstance(op.type, ScalarT))


def _piece(program: Program, code: OpCode, role: Role, effect: Effect) -> Piece | None:
    op, stage = code.op, code.index.get("stage", -1)
    barrier = str(op.attrs.get("barrier", ""))
    if isinstance(effect, Wait):
        return Piece("wait", barrier, stage)
    if isinstance(effect, Arrive):
        return Piece("arrive", barrier, stage, order=_text(op.attrs.get("order")))
    if isinstance(effect, Issue):
        return _issue(program, code, effect)
    if isinstance(effect, Drain):
        return Piece("drain", effect.engine, pending=int(op.attrs.get("pending") or 0), read=effect.read)  # type: ignore[arg-type]  # pending is an int option
    if isinstance(effect, Commit):
        return Piece("commit", effect.engine) if effect.engine == "cp_async" else Piece("unknown", effect.engine)
    if isinstance(effect, FenceProxy):
        return Piece("fence")
    if isinstance(effect, Sync):
        return _sync(program, str(op.attrs.get("barrier") or op.attrs.get("sync")), role)
    if isinstance(effect, ClusterSync):
        return Piece("cluster_sync")
    if isinstance(effect, Turn):
        return Piece("turn_wait" if effect.kind == "wait" else "turn_pass", barrier)
    if isinstance(effect, GridDependency):
        return None
    if isinstance(effect, Flag):
        return Piece("unknown", "flags between blocks")
    return _touch(program, op, role, effect)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _sync(program: Program, name: str, role: Role) -> Piece:
    named = program.named.get(name)
    if named is None:
        return Piece("cluster_sync")
    if named.per_member:
        return Piece("sync", name, threads=32 * role.member_warps)
    members = [program.roles[r] for r in named.roles]
    return Piece("sync", name, threads=32 * sum(r.warps for r in members), parties=sum(r.members for r in members))


def _issue(program: Program, code: OpCode, effect: Issue) -> Piece:
    op = code.op
    if effect.engine == "tma" and effect.done == "tx":
        share = multicast_size(program, op.attrs.get("multicast"))
        size = view_bytes(_type(op, "view"))
        return Piece("tma", str(op.attrs["barrier"]), code.index.get("stage", code.index.get("view", -1)), size=size / share, times=share)
    if effect.engine == "bulk":
        return Piece("bulk", "bulk", size=view_bytes(_type(op, "view")))
    if effect.engine == "wgmma":
        return _wgmma(op)
    return Piece("unknown", effect.engine)


def _wgmma(op: Op) -> Piece:
    acc, a = _type(op, "acc"), _type(op, "a")
    assert isinstance(acc, FragT) and isinstance(a, (FragT, ViewT))
    m, n, k = acc.rows, acc.cols, a.shape[1]
    bits = DTYPES[a.dtype].bits
    operand = (n + (m if isinstance(a, ViewT) else 0)) * k * bits / 8
    return Piece("mma", "wgmma", size=operand, times=max(1, m // 64) * max(1, k // instruction_k(a.dtype)), flops=2.0 * m * n * k,
                 eight_bit=bits == 8)  # fmt: skip


def _type(op: Op, operand: str) -> Type:
    e = op.operands.get(operand)
    return e.type if isinstance(e, Expr) else op.type


def _touch(program: Program, op: Op, role: Role, touch: Touch) -> Piece | None:
    if touch.proxy == "async":
        return None
    if touch.space == "smem":
        t = _type(op, touch.operand)
        if isinstance(op.type, ScalarT) or op.name == "reduce_across":
            return Piece("smem", size=4.0 * role.member_warps)
        return Piece("smem", size=view_bytes(t), factor=_conflicts(program, t))
    if touch.space == "gmem":
        if isinstance(op.type, ScalarT):
            return Piece("gmem", str(op.attrs.get("tensor", "")), size=4.0, factor=1.0, read=True)
        value = op.type if touch.mode == "r" else _type(op, "x")
        size = frag_bytes(value)
        return Piece("gmem", str(op.attrs.get("tensor", "")), size=size, factor=_sectors(value, size), read=touch.mode == "r")
    return None


def _conflicts(program: Program, t: Type) -> float:
    """How many times the wavefronts of a conflict-free access this one takes, where rows of 16 bytes are what a phase touches."""
    if not isinstance(t, ViewT) or t.rank == 1 or DTYPES[t.dtype].bits != 16 or t.rows < 8:
        return 1.0
    return float(ldmatrix_conflicts(view_layout(program.views[t.view])))


def _sectors(value: Type, size: float) -> float:
    """32-byte sectors that a global access of a fragment takes: tile forms touch 8 rows a request, each 4 lanes wide."""
    if isinstance(value, FragT) and value.form in ("acc", "a", "b"):
        run = 8 * DTYPES[value.dtype].bits / 8
        return max(1.0, size / 32 * max(1.0, 32 / run))
    return max(1.0, size / 32)


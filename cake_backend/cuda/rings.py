"""Ring positions: the running count of a ring is the slot; its index, its phase and the barrier's address follow from it.

Where the ring's length is no power of two, a role counts the index and the phase themselves (`counts_slots`): a division on the way from the
top of a loop to its first wait is time in which no MMA is issued. So do roles whose members take turns: of index, phase and address a remainder
makes five operations a wait, between a turn and its first MMA (1.7 % of attention's time at D = 64 on an H200).
"""

from __future__ import annotations

from cake_backend.cuda.context import Context, Slot
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.scalars import constant, factor, plus
from cake_backend.cuda.webs import expressions
from cake_ir.program import Assign, Expr, Stmt, op_of, statements
from cake_ir.types import SlotT


def counter(ctx: Context, ring: str) -> str:
    """The C variable that counts a ring's steps in this role."""
    bound = ctx.role.env[f"ring {ring}"]
    assert isinstance(bound, Slot)
    return bound.text


def counts_slots(ctx: Context, ring: str, body: tuple[Stmt, ...]) -> bool:
    """Whether a role keeps a ring's position as index and phase.

    It does where a remainder costs a division or members take turns, no ring numbers fragments, and every slot that is waited for was named by
    its step, or as the last step (in the latter case).
    """
    stages, turns = ctx.program.rings[ring].stages, any(t.role == ctx.role.role.name for t in ctx.program.turns.values())
    if ctx.report or stages == 1 or not (stages & (stages - 1) or turns):
        return False
    named: set[str] = set()
    for s in statements(body):
        if isinstance(s, Assign) and isinstance(s.value, Expr) and isinstance(s.value.type, SlotT) and s.value.type.ring == ring:
            if s.value.op not in (("step", "at") if turns else ("step",)) or (s.targets[0] in named and not turns):
                return False
            named.add(s.targets[0])
        for e in expressions(s):
            if any(x.op == "frag_stage" and isinstance(x.args[1].type, SlotT) for x in e.parts()):
                return False  # such a loop is printed several times with a way out in between: the assembler then keeps no slot uniform
        op = op_of(s)
        stage = op.operands.get("stage") if op is not None and op.name == "wait" else None
        if isinstance(stage, Expr) and isinstance(stage.type, SlotT) and stage.type.ring == ring and stage.op != "var":
            return False
    return True


def names_last(ring: str, body: tuple[Stmt, ...]) -> bool:
    """Whether a role names a ring's last step again."""
    return any(isinstance(s, Assign) and isinstance(s.value, Expr) and s.value.op == "at" and s.value.attrs["ring"] == ring for s in statements(body))


def step_slots(ctx: Context, ring: str, name: str, *, begins: bool) -> Slot:
    """Print the step of a ring whose index and phase are counted, into variables called after `name`, declared here if it `begins` here."""
    at = ctx.role.env[f"ring {ring}"]
    slot = ctx.role.env[name] if not begins else Slot(ctx.role.names.take(name), parity=ctx.role.names.take(f"{name}_phase"))
    assert isinstance(at, Slot) and isinstance(slot, Slot)
    declared = ("const u32 " if ctx.role.webs.written.get(name, 1) == 1 else "u32 ") if begins else ""
    last = f"{slot.text} == {ctx.program.rings[ring].stages - 1}u"
    ctx.out.line(f"{declared}{slot.text} = {at.text};")
    ctx.out.line(f"{declared}{slot.parity} = {at.parity};")
    ctx.out.line(f"{at.text} = {last} ? 0u : {slot.text} + 1u;")
    ctx.out.line(f"{at.parity} ^= {last};")
    if at.last is not None:
        ctx.out.line(f"{at.last[0]} = {slot.text};")
        ctx.out.line(f"{at.last[1]} = {slot.parity};")
    return slot


def last_slot(ctx: Context, ring: str, name: str, *, begins: bool) -> Slot:
    """Print a name for the last step of a ring whose index and phase are counted."""
    at = ctx.role.env[f"ring {ring}"]
    slot = ctx.role.env[name] if not begins else Slot(ctx.role.names.take(name), parity=ctx.role.names.take(f"{name}_phase"))
    assert isinstance(at, Slot) and isinstance(slot, Slot) and at.last is not None
    declared = ("const u32 " if ctx.role.webs.written.get(name, 1) == 1 else "u32 ") if begins else ""
    ctx.out.line(f"{declared}{slot.text} = {at.last[0]};")
    ctx.out.line(f"{declared}{slot.parity} = {at.last[1]};")
    return slot


def _counted(ctx: Context, e: Expr) -> Slot | None:
    """The slot of which an expression is `back` steps before, if its index is counted."""
    if e.op == "at":
        bound = ctx.role.env[f"ring {e.attrs['ring']}"]
    elif e.op == "prev":
        return _counted(ctx, e.args[0])
    elif e.op == "var" and isinstance(e.type, SlotT):
        bound = ctx.lookup(str(e.attrs["name"]))
    else:
        return None
    return bound if isinstance(bound, Slot) and bound.parity else None


def _steps_back(e: Expr) -> int:
    """How many steps before a named slot, or before the next one, an expression is."""
    if e.op == "prev":
        return int(e.attrs["back"]) + _steps_back(e.args[0])  # type: ignore[call-overload]  # `back` is an int
    return int(e.op == "at")


def position(ctx: Context, e: Expr) -> str:
    """C text of a slot's running count (an integer that names a stage is its own count), to stand as an operand."""
    if e.op == "var" and isinstance(e.type, SlotT):
        return factor(ctx, e)
    if e.op == "at":
        return f"({counter(ctx, str(e.attrs['ring']))} - 1u)"
    if e.op == "prev":
        back = int(e.attrs["back"])  # type: ignore[call-overload]  # the frontend makes it an integer
        inner = position(ctx, e.args[0])
        return f"({inner} - {back}u)" if back else inner
    if e.op == "step":
        return not_lowered("a ring step inside an expression", e.span, "bind the slot on a line of its own: `s = lm.step(ring)`")
    value = constant(e)
    return f"{value}u" if value is not None else f"(u32)({factor(ctx, e)})"


def stages_of(ctx: Context, e: Expr) -> int:
    """Stages of the ring that a slot belongs to; 0 where an integer names the stage itself."""
    return ctx.program.rings[e.type.ring].stages if isinstance(e.type, SlotT) else 0


def known_position(ctx: Context, e: Expr) -> int | None:
    """A slot's running count where it is known while the text is printed."""
    if e.op == "var" and isinstance(e.type, SlotT):
        bound = ctx.lookup(str(e.attrs["name"]))
        return bound.value if isinstance(bound, Slot) else None
    if e.op == "at" and str(e.attrs["ring"]) in ctx.role.positions:
        return ctx.role.positions[str(e.attrs["ring"])] - 1
    if e.op == "prev":
        inner = known_position(ctx, e.args[0])
        return None if inner is None else inner - int(e.attrs["back"])  # type: ignore[call-overload]  # `back` is an int
    return constant(e)


def slot_index(ctx: Context, e: Expr, stages: int | None = None) -> str:
    """C text of `count % stages`, parenthesised; `0u` for a ring of one."""
    n = stages_of(ctx, e) if stages is None else stages
    if n == 1:
        return "0u"
    value = known_position(ctx, e)
    if value is not None:
        return f"{value % n}u" if n else f"{value}u"
    if counted := _counted(ctx, e):
        back = _steps_back(e) % n
        return f"({counted.text} < {back}u ? {counted.text} + {n - back}u : {counted.text} - {back}u)" if back else counted.text
    text = position(ctx, e)
    if e.op == "prev" and isinstance(e.type, SlotT) and n and n & (n - 1) and all(b.pipeline != e.type.ring for b in ctx.program.barriers.values()):
        back, root = _steps_back(e) % n, e
        while root.op == "prev":
            root = root.args[0]
        text = f"({position(ctx, root)} + {n - back + int(root.op == 'at')}u)"  # such a slot may lie before the first, where a count wraps at 2^32
    return f"({text} % {n}u)" if n else text


def phase(ctx: Context, e: Expr, stages: int, primed: bool) -> str:
    """C text of the parity to wait for: `(count / stages) & 1`, inverted on a primed barrier."""
    value = constant(e)
    if value is not None:
        return f"{(value // stages & 1) ^ primed}u"
    if counted := _counted(ctx, e):
        return f"{counted.parity} ^ 1u" if primed else counted.parity
    text = position(ctx, e)
    text = text if stages == 1 else f"({text} / {stages}u)"
    parity = f"{text} & 1u"
    return f"({parity}) ^ 1u" if primed else parity


def barrier_address(ctx: Context, name: str, stage: Expr | None) -> str:
    """C text of the mbarrier that belongs to a slot."""
    base = ctx.barriers[name]
    if stage is None:
        return base
    index = slot_index(ctx, stage, ctx.program.rings[ctx.program.barriers[name].pipeline].stages)
    if index.rstrip("u").isdigit():
        return plus(base, f"{8 * int(index.rstrip('u'))}u" if index != "0u" else "")
    return f"{base} + 8u * {index}"

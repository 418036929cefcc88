"""The kernel around the roles: signature, addresses, prologue, role dispatch, register budgets, epilogue."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cake_backend.cuda import control, inflight, mbarrier, pins, schedulers, sync, tma, webs, work_counter
from cake_backend.cuda.cluster import late_senders, size
from cake_backend.cuda.context import Context, Rect, RoleState, Scalar, Slot
from cake_backend.cuda.emitter import Emitter, Names
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.globals import ELEMENT
from cake_backend.cuda.launch_manifest import dtype_of
from cake_backend.cuda.preamble import (
    CLUSTER_ARRIVE,
    CLUSTER_RANK,
    CLUSTER_SYNC,
    CLUSTER_WAIT,
    DEMAND,
    ELECT_ONE,
    SETMAXNREG_DEC,
    SETMAXNREG_INC,
    SHARED_ADDRESS,
)
from cake_backend.cuda.read_before_refill import fenced_releases
from cake_backend.cuda.resources import layout_of, member_barriers, shared_memory
from cake_backend.cuda.rings import counts_slots, names_last
from cake_backend.cuda.scalars import CTYPE, scalar
from cake_backend.manifest import Param
from cake_ir.derive.arrivals import arrivals
from cake_ir.derive.issue import issue_roles
from cake_ir.derive.mma_groups import mma_groups
from cake_ir.derive.registers import entry_registers
from cake_ir.derive.sends import send_barriers
from cake_ir.derive.shared_memory import GUARANTEED
from cake_ir.dtypes import DTYPES
from cake_ir.program import Expr, For, Let, Program, Role, RoleBlock, Scheduler, Stmt, statements
from cake_ir.tensor_modes import modes
from cake_ir.types import ViewT

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_STEP = re.compile(r" = (\w+)\+\+;")
_DECLARATION = re.compile(r"(?:const )?(?:u32|int|u64|float|bool) (\w+) = [^;]*;")


@dataclass(frozen=True, slots=True)
class Signature:
    """Kernel parameters: manifest records and their C declarations."""

    params: list[Param]
    text: list[str]


def emit(ctx: Context) -> Signature:
    """Emit the whole kernel into `ctx.out`; the tensor maps and tensor parameters that it takes are known at its end."""
    program, outer = ctx.program, ctx.out
    top = ctx.out = outer.child()
    memory = shared_memory(program)
    ctx.work = memory.work
    _addresses(ctx, memory.pools, memory.barriers)
    _uniform_values(ctx)
    roles = outer.child()
    ctx.out = roles
    _roles(ctx)
    ctx.out = prologue = outer.child()
    _prologue(ctx)
    ctx.out = head = outer.child()
    _base(ctx, memory.alignment, used(top, roles, prologue))
    body = outer.child()
    for part in (head, top, prologue, roles):
        body.extend(part)
    prune(body)
    signature = _signature(ctx, used(body))
    ctx.out = outer
    outer.line(f'extern "C" __global__ void __launch_bounds__({program.threads}, {program.launch.ctas_per_sm})')
    with outer.block(f"{ctx.entry}({', '.join(signature.text)})"):
        outer.extend(body)
    return signature


def used(*parts: Emitter) -> set[str]:
    """Identifiers in the text of emitters, comments aside."""
    return {name for p in parts for line in p.lines for name in _IDENTIFIER.findall(line.text)}


def prune(out: Emitter) -> None:
    """Drop declarations of variables that nothing reads."""
    while True:
        counts: dict[str, int] = {}
        for line in out.lines:
            for name in _IDENTIFIER.findall(line.text):
                counts[name] = counts.get(name, 0) + 1
        dead = [bool((m := _DECLARATION.fullmatch(x.text)) and counts[m[1]] == 1 and _unread(x.text, counts)) for x in out.lines]
        alive = [x for x, gone in zip(out.lines, dead, strict=True) if not gone]
        if len(alive) == len(out.lines):
            return
        out.lines = alive


def _unread(declaration: str, counts: dict[str, int]) -> bool:
    """Whether nothing is lost with a declaration: it counts nothing, or what it counts has no other reader."""
    step = _STEP.search(declaration)
    return step is None or counts[step[1]] == 2


# ------------------------------------------------------------------ in front of the roles


def _addresses(ctx: Context, pools: dict[str, int], barriers: dict[str, int]) -> None:
    program = ctx.program
    for name, view in program.views.items():
        ctx.layouts[name] = layout = layout_of(view)
        variable = ctx.names.take(name)
        with ctx.out.at(view.span):
            offset = pools[view.pool] + view.offset
            ctx.out.line(f"const u32 {variable} = pool{f' + {offset}u' if offset else ''};")
        ctx.globals[f"view {name}"] = Rect(name, variable, "", layout.rows, layout.cols, False)
    for name, barrier in program.barriers.items():
        variable = ctx.names.take(name)
        with ctx.out.at(barrier.span):
            ctx.out.line(f"const u32 {variable} = pool + {barriers[name]}u;")
        ctx.barriers[name] = variable
        ctx.counts[name] = arrivals(ctx.program)[name].count


def _uniform_values(ctx: Context) -> None:
    for name in ctx.program.scalars:
        ctx.globals[name] = Scalar(ctx.names.claim(name))
    wanted = {s.scheduler for block in ctx.program.body for s in statements(block.body) if isinstance(s, For) and s.scheduler}
    for d in ctx.program.decls:
        if isinstance(d, Let):
            with ctx.out.at(d.span):
                variable = ctx.names.take(d.name)
                dtype = getattr(d.value.type, "dtype", "i32")
                ctx.out.line(f"const {CTYPE[dtype]} {variable} = {scalar(ctx, d.value)};")
                ctx.globals[d.name] = Scalar(variable)
        elif isinstance(d, Scheduler) and d.name in wanted:
            with ctx.out.at(d.span):
                schedulers.declare(ctx, d)


def _base(ctx: Context, alignment: int, names: set[str]) -> None:
    if "pool" in names or "pool_low" in names:
        # Where members take turns at the tensor core, address arithmetic between a turn and its first MMA is time of that unit. Then the base
        # is not rounded but demanded to be aligned: 1 to 2.5 % of attention's time on an H200.
        declared = alignment if ctx.program.turns else GUARANTEED
        ctx.out.line(f"extern __shared__ __align__({declared}) u8 smem_raw[];")
        base = f"{ctx.use(SHARED_ADDRESS)}(smem_raw)"
        if alignment <= declared:
            ctx.out.line(f"const u32 pool = {base};")
            if declared > GUARANTEED:
                ctx.out.line(f"{ctx.use(DEMAND)}((pool & {declared - 1}u) == 0);")
            if "pool_low" in names:
                ctx.out.line("const u32 pool_low = (pool & 0x3ffffu) >> 4;")
        else:
            rounded = f"({base} + {alignment - 1}u) & ~{alignment - 1}u"
            # Behind a shuffle the assembler does not round the address again in every pass of a loop. Short loops of 8-bit products gain by
            # that; in loops of 16-bit ones it moves shared loads and releases behind the products, which cost k-means a quarter on an H200.
            ctx.out.line(f"const u32 pool = {f'__shfl_sync(0xffffffffu, {rounded}, 0)' if _narrow_products(ctx.program) else rounded};")
    for variable, shift in (("warpgroup", 7), ("cta_warp", 5)):
        if variable in names:
            ctx.out.line(f"const int {variable} = __shfl_sync(0xffffffffu, threadIdx.x >> {shift}, 0);")
    if "cluster_cta" in names:
        ctx.out.line(f"const u32 cluster_cta = {ctx.use(CLUSTER_RANK)}();")


def _narrow_products(program: Program) -> bool:
    """Whether an asynchronous product reads 8-bit operands."""
    return any(op.name == "mma" and isinstance(b := op.operands.get("b"), Expr) and isinstance(b.type, ViewT) and DTYPES[b.type.dtype].bits == 8 for op in program.ops)


def _prologue(ctx: Context) -> None:
    program = ctx.program
    modern = ctx.has("TMA")
    barriers = program.barriers or ctx.work
    if ctx.maps.params or barriers:
        with ctx.out.block("if (threadIdx.x == 0)"):
            for name in ctx.maps.params:
                ctx.out.line(f"{ctx.use(tma.PREFETCH_MAP)}(&{name});")
            for name, barrier in program.barriers.items():
                init = ctx.use(mbarrier.INIT)
                stages = program.rings[barrier.pipeline].stages
                with ctx.out.at(barrier.span):
                    if stages == 1:
                        ctx.out.line(f"{init}({ctx.barriers[name]}, {ctx.counts[name]}u);")
                    else:
                        ctx.out.line("#pragma unroll")
                        ctx.out.line(f"for (u32 i = 0; i < {stages}; ++i) {init}({ctx.barriers[name]} + 8u * i, {ctx.counts[name]}u);")
            for name, sends in send_barriers(program).items():
                stages = program.rings[program.barriers[name].pipeline].stages
                with ctx.out.at(program.barriers[name].span):
                    ctx.out.unroll()
                    ctx.out.line(f"for (u32 i = 0; i < {stages}; ++i) {ctx.use(mbarrier.EXPECT_TX)}({ctx.barriers[name]} + 8u * i, {sends.bytes}u);")
            for line in work_counter.initialise(ctx):
                ctx.out.line(line)
            if barriers and modern:
                ctx.out.line(f"{ctx.use(mbarrier.FENCE_INIT)}();")
    if late_senders(ctx):
        ctx.out.line(f"{ctx.use(CLUSTER_ARRIVE)}();")
        ctx.out.line("__syncthreads();")
    elif size(ctx) > 1:
        ctx.out.line(f"{ctx.use(CLUSTER_SYNC)}();")
    elif barriers:
        ctx.out.line("__syncthreads();")


# ------------------------------------------------------------------ roles


def _roles(ctx: Context) -> None:
    program = ctx.program
    blocks = [b for b in program.body]
    names = [b.role for b in blocks]
    if len(set(names)) != len(names):
        not_lowered("a role with two blocks", blocks[-1].head)
    warps = program.threads // 32
    by_group = all(r.warp_lo % 4 == 0 and r.warp_hi % 4 == 0 for r in program.roles.values())
    covered = sum(program.roles[b.role].warps for b in blocks) == warps
    unit, variable = (4, "warpgroup") if by_group else (1, "cta_warp")
    for i, b in enumerate(blocks):
        role = program.roles[b.role]
        with ctx.out.at(b.head):
            if len(blocks) == 1 and covered:
                _role(ctx, b, role, variable, unit)
                continue
            condition = _range(variable, role.warp_lo // unit, role.warp_hi // unit, warps // unit)
            last = covered and i == len(blocks) - 1
            head = f"if ({condition})" if i == 0 else "else" if last else f"else if ({condition})"
            with ctx.out.chained(head, first=i == 0):
                _role(ctx, b, role, variable, unit)
    if size(ctx) > 1 and not late_senders(ctx):
        ctx.out.line(f"{ctx.use(CLUSTER_SYNC)}();")


def _range(variable: str, lo: int, hi: int, end: int) -> str:
    if hi == lo + 1:
        return f"{variable} == {lo}"
    if lo == 0:
        return f"{variable} < {hi}"
    return f"{variable} >= {lo}" if hi == end else f"{variable} >= {lo} && {variable} < {hi}"


def _role(ctx: Context, b: RoleBlock, role: Role, variable: str, unit: int) -> None:
    program, block_out = ctx.program, ctx.out
    ctx.out = out = block_out.child()
    single = role.name in issue_roles(program)
    flying = inflight.analyse(b.body, mma_groups(program).opens)
    state = RoleState(role, Names(ctx.names), webs.analyse(b.body, frozenset(flying.carried)), flying, single)
    ctx.state = state
    if program.roles and role.regs is not None and ctx.has("SETMAXNREG"):
        entry = entry_registers(program)
        if role.regs != entry:
            device = SETMAXNREG_INC if role.regs > entry else SETMAXNREG_DEC
            ctx.out.line(f"{ctx.use(device)}<{role.regs}>();")
    late = late_senders(ctx)
    if role.name in late:
        ctx.out.line(f"{ctx.use(CLUSTER_WAIT)}();")
    ids = out.child()
    inner = ctx.out = out.child()
    if role.members > 1:
        state.index = state.names.take(f"{role.name}_index")
    state.member_barriers = member_barriers(program, role, b.body)
    state.fenced_releases = fenced_releases(program, role, b.body)
    state.held = pins.held(b.body)
    for ring in _rings(b.body):
        if counts_slots(ctx, ring, b.body):
            slot, parity = state.names.take(f"{ring}_slot"), state.names.take(f"{ring}_phase")
            ctx.out.line(f"u32 {slot} = 0, {parity} = 0;")
            last = (state.names.take(f"{ring}_last"), state.names.take(f"{ring}_last_phase")) if names_last(ring, b.body) else None
            if last is not None:
                ctx.out.line(f"u32 {last[0]} = 0, {last[1]} = 0;")
            state.env[f"ring {ring}"] = Slot(slot, parity=parity, last=last)
            continue
        counter = state.names.take(f"{ring}_n")
        ctx.out.line(f"u32 {counter} = 0;")
        state.env[f"ring {ring}"] = Slot(counter)
    sync.prime_turns(ctx)
    if single:
        elect = f"{ctx.use(ELECT_ONE)}()" if ctx.has("ELECT_SYNC") else "(threadIdx.x & 31u) == 0"
        first = _first_warp(role)
        with inner.block(f"if ({first} && {elect})"):
            control.body(ctx, b.body)
        inner.line("__syncwarp();")
    else:
        control.body(ctx, b.body)
    sync.drain_turns(ctx)
    if late and role.name not in late:
        inner.line(f"{ctx.use(CLUSTER_WAIT)}();")
    ctx.out = ids
    _thread_numbers(ctx, role, variable, unit, used(inner))
    out.extend(ids)
    out.extend(inner)
    prune(out)
    block_out.extend(out)
    ctx.out, ctx.state = block_out, None


def _first_warp(role: Role) -> str:
    warp = "(threadIdx.x >> 5)"
    if role.members == 1:
        return f"{warp} == {role.warp_lo}"
    return f"({warp} - {role.warp_lo}) % {role.member_warps} == 0"


def _rings(body: tuple[Stmt, ...]) -> list[str]:
    """Rings that a role steps or looks at, in text order."""
    found: dict[str, None] = {}
    for s in statements(body):
        for e in webs.expressions(s):
            for x in e.parts():
                if x.op in ("step", "at"):
                    found[str(x.attrs["ring"])] = None
    return list(found)


def _thread_numbers(ctx: Context, role: Role, variable: str, unit: int, names: set[str]) -> None:
    """Member number, thread, warp and lane inside the member: what the body uses of them."""
    first, threads = 32 * role.warp_lo, 32 * role.member_warps
    state = ctx.role
    if state.index in names:
        whole = role.member_warps % unit == 0
        source, lo = (variable, role.warp_lo // unit) if whole else ("cta_warp", role.warp_lo)
        divisor = role.member_warps // unit if whole else role.member_warps
        text = source if lo == 0 else f"({source} - {lo})" if divisor > 1 else f"{source} - {lo}"
        ctx.out.line(f"const int {state.index} = {text}{f' / {divisor}' if divisor > 1 else ''};")
    wanted = names & {"thread", "warp", "lane"}
    if not wanted:
        return
    power = threads & (threads - 1) == 0 and first % threads == 0
    if first == 0 and role.warps * 32 == ctx.program.threads and role.members == 1:
        text = "threadIdx.x"
    elif power:
        text = f"threadIdx.x & {threads - 1}u"
    elif role.members == 1:
        text = f"threadIdx.x - {first}u"
    else:
        text = f"(threadIdx.x - {first}u) % {threads}u"
    ctx.out.line(f"const u32 thread = {text};")
    if "warp" in wanted:
        ctx.out.line("const u32 warp = thread >> 5;")
    if "lane" in wanted:
        ctx.out.line("const u32 lane = thread & 31u;")


# ------------------------------------------------------------------ parameters


def _signature(ctx: Context, names: set[str]) -> Signature:
    program, params, text = ctx.program, [], []
    for i, name in enumerate(ctx.maps.params):
        params.append(Param("tmap", map=i))
        text.append(f"const __grid_constant__ TensorMap {name}")
    how = modes(program)
    for p in program.params:
        if p.kind == "gmem":
            for record, name in ctx.params.ordered(p.name):
                params.append(record)
                if record.kind == "ptr":
                    element = ELEMENT[dtype_of(program, p.name)]
                    const = "const " if how[p.name] in ("in", "const") else ""
                    restrict = " __restrict__" if how[p.name] == "const" else ""
                    text.append(f"{const}{element}*{restrict} {name}")
                else:
                    text.append(f"{'u64' if record.kind == 'stride' else 'int'} {name}")
        elif p.kind == "tma":
            for record, name in ctx.params.ordered(p.name):
                params.append(record)
                text.append(f"{'u64' if record.kind == 'stride' else 'int'} {name}")
        elif (bound := ctx.globals[p.name]) and isinstance(bound, Scalar) and bound.text in names:
            dtype = p.dtype or "i32"
            params.append(Param("scalar", name=p.name, ctype=dtype))
            text.append(f"{CTYPE[dtype]} {bound.text}")
    if "hang" in names:
        params.append(Param("hang"))
        text.append("u32* hang")
    return Signature(params, text)

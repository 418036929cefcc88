"""D044: what a running maximum rescales does not contain the product of this round yet."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Assign, Do, Expr, For, If, Op, Program, Stmt
from cake_verify.analyses.running_sums import EXPONENTIALS
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_SOFTMAX = '''
@cake.schedule(target="sm_80")
def attend(lm, Q: LM.gmem2d[LM.bf16, 64, 64], K: LM.gmem2d[LM.bf16, "N", 64], V: LM.gmem2d[LM.bf16, "N", 64], O: LM.gmem2d[LM.f32, 64, 64], N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N % 64 == 0)
    work = lm.role(warps=range(0, 4))
    each = lm.named_barrier(work)
    pool = lm.smem(16384)
    ks = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    vs = pool.view(offset=8192, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    one = lm.scheduler(kind="grid", tiles=(1,), names=("x",))
    with work:
        for t in lm.tiles(one):
            q = lm.load(Q, coords=(0, 0), shape=(64, 64), form="a")
            o = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            top = lm.rowvec(o, init=-1e30)
            total = lm.rowvec(o, init=0.0)
            for i in lm.range(lm.cdiv(N, 64)):
                lm.sync(each)
                ks.cp_async(K, coords=(0, i * 64))
                vs.cp_async(V, coords=(0, i * 64))
                lm.cp_commit()
                lm.cp_wait(pending=0)
                lm.sync(each)
                s = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
                lm.mma(s, q, ks.ldmatrix(form="b"))
                new = lm.max(top, lm.reduce(s, "max", axis=1))
                fix = lm.exp2(top - new)
                p = lm.exp2(s - new)
                total = total * fix + lm.sum(p, axis=1)
                top = new
                o = o * fix
                lm.mma(o, lm.cast(p, lm.bf16, form="a"), vs.T.ldmatrix(form="b"))
            lm.store(O, o * lm.rcp(total), coords=(0, 0))
'''

PAGE = Page(
    code="D044",
    title="a product scaled with what came before it",
    statement="In a loop that keeps a running maximum, the accumulator is rescaled to the new maximum before products that are relative to it are added.",
    why="`o = o * exp2(m - new)` moves what earlier rounds added from the old maximum to the new one. Behind the product of this round, whose operand is `exp2(s - new)` already, it scales that too.",
    failing=edit(_SOFTMAX, ("""                o = o * fix
                lm.mma(o, lm.cast(p, lm.bf16, form="a"), vs.T.ldmatrix(form="b"))
""", """                lm.mma(o, lm.cast(p, lm.bf16, form="a"), vs.T.ldmatrix(form="b"))
                o = o * fix
""")),
    passing=_SOFTMAX,
    limits="Decided inside one body of statements: the operand, the product and the factor stand in it, and both exponentials subtract the same name, which is not bound again in between.",
)  # fmt: skip

_SEEN = EXPONENTIALS | {"cast", "var"}


def check(program: Program) -> Iterator[Fault]:
    found = mentions(program)
    if not EXPONENTIALS.isdisjoint(found):
        multiplying = {s.role.name for s in sites(program).of("mma")}
        for block in (b for b in program.body if b.role in multiplying):
            yield from _body(block.body)


def _body(body: tuple[Stmt, ...]) -> Iterator[Fault]:
    relative: dict[str, frozenset[str]] = {}
    named: set[str] = set()
    added: dict[str, tuple[Op, frozenset[str]]] = {}
    """By accumulator the last product of this body, and the names that its operand is relative to."""
    for s in body:
        if isinstance(s, For):
            yield from _body(s.body)
        elif isinstance(s, If):
            yield from _body(s.then)
            yield from _body(s.orelse)
        elif isinstance(s, Do) and s.op.name == "mma":
            acc, a = s.op.operands["acc"], s.op.operands["a"]
            if isinstance(acc, Expr) and acc.op == "var" and isinstance(a, Expr):
                added[str(acc.attrs["name"])] = s.op, _relative(a, relative)
        elif isinstance(s, Assign):
            value = s.value.operands.get("value") if isinstance(s.value, Op) else None
            for name in s.targets if relative or added or (isinstance(value, Expr) and value.op in EXPONENTIALS) else ():
                if isinstance(value, Expr) and name in added and (fault := _scaled(s, name, value, *added[name], relative)) is not None:
                    yield fault
                added.pop(name, None)
                to = _relative(value, relative) if isinstance(value, Expr) and value.op in _SEEN else frozenset()
                relative.pop(name, None)
                if name in named:  # what was relative to its old value is so no more
                    added = {k: (op, of - {name}) for k, (op, of) in added.items()}
                    relative = {k: of - {name} for k, of in relative.items()}
                    to -= {name}
                if to:
                    relative[name] = to
                    named |= to


def _relative(e: Expr, known: dict[str, frozenset[str]]) -> frozenset[str]:
    """The names that an exponential subtracts, seen through casts and names of this body."""
    while e.op == "cast":
        e = e.args[0]
    if e.op == "var":
        return known.get(str(e.attrs["name"]), frozenset())
    if e.op not in EXPONENTIALS:
        return frozenset()
    return frozenset(str(v.attrs["name"]) for n in e.parts() if n.op == "sub" for v in n.args[1].parts() if v.op == "var")


def _scaled(s: Assign, name: str, value: Expr, product: Op, to: frozenset[str], known: dict[str, frozenset[str]]) -> Fault | None:
    """An accumulator multiplied by an exponential that subtracts what the product in it is relative to."""
    if not to or value.op != "mul" or not any(a.op == "var" and a.attrs["name"] == name for a in value.args):
        return None
    factor = next((a for a in value.args if not (a.op == "var" and a.attrs["name"] == name)), None)
    common = to & _relative(factor, known) if factor is not None else frozenset[str]()
    if not common:
        return None
    new = min(common)
    at = s.value.span if isinstance(s.value, Op) else s.span
    return Fault("D044", f"`{name}` is rescaled to `{new}` behind a product that is relative to `{new}` already", at, ((product.span, "added here"),),
                 "rescale first, then add the product", (), {"accumulator": name})  # fmt: skip

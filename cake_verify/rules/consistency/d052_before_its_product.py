"""D052: an accumulator is scaled behind the product that fills it."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Assign, Do, Expr, For, If, Op, Program, Stmt, statements
from cake_verify.analyses.running_sums import EXPONENTIALS
from cake_verify.analyses.trips import written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_SCALED = '''
@cake.schedule(target="sm_80")
def scaled(lm, A: LM.gmem2d[LM.bf16, 64, 64], B: LM.gmem2d[LM.bf16, 64, 64], C: LM.gmem2d[LM.f32, 64, 64], scale: LM.f32):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    each = lm.named_barrier(work)
    pool = lm.smem(8192)
    bs = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    one = lm.scheduler(kind="grid", tiles=(1,), names=("x",))
    with work:
        for t in lm.tiles(one):
            a = lm.load(A, coords=(0, 0), shape=(64, 64), form="a")
            bs.cp_async(B, coords=(0, 0))
            lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.sync(each)
            s = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            lm.mma(s, a, bs.ldmatrix(form="b"))
            s = s * scale
            lm.store(C, s, coords=(0, 0))
'''

PAGE = Page(
    code="D052",
    title="zeros that are scaled before the product comes",
    statement="What multiplies an accumulator stands behind a product into it, not between its zeros and the first product.",
    why="Zero times anything is zero: the factor is lost, and the product that is added later lacks it.",
    failing=edit(_SCALED, ("            lm.mma(s, a, bs.ldmatrix(form=\"b\"))\n            s = s * scale\n", "            s = s * scale\n            lm.mma(s, a, bs.ldmatrix(form=\"b\"))\n")),
    passing=_SCALED,
    limits="Decided inside one body of statements. Sums with zeros (a bias), masks and factors that are exponentials in front of a product may be meant.",
)


def check(program: Program) -> Iterator[Fault]:
    if any([n.attrs.get("init") == 0 for n in mentions(program).get("frag", ())]) and any(op.name == "mma" for op in program.ops):
        for block in program.body:
            yield from _body(block.body)


def _body(body: tuple[Stmt, ...]) -> Iterator[Fault]:
    zeros: set[str] = set()
    decays: set[str] = set()
    """Names of exponentials: what is brought from one maximum, or one moment, to the next may be nothing yet."""
    scaled: dict[str, Assign] = {}
    """By accumulator the statement that multiplied its zeros."""
    for s in body:
        if isinstance(s, (For, If)):
            for inner in (s.body,) if isinstance(s, For) else (s.then, s.orelse):
                yield from _body(inner)
                for name in _touched(inner) if zeros or scaled else ():
                    zeros.discard(name)
                    scaled.pop(name, None)
        elif isinstance(s, Assign) and len(s.targets) == 1:
            name = s.targets[0]
            e = s.value.operands.get("value") if isinstance(s.value, Op) and s.value.name == "compute" else None
            factor = name in zeros and isinstance(e, Expr) and any(n.op == "mul" and any(a.op == "var" and a.attrs["name"] == name for a in n.args) and not any(_decays(a, decays) for a in n.args) for n in e.parts())
            (decays.add if isinstance(e, Expr) and _decays(e, decays) else decays.discard)(name)
            zeros.discard(name)
            scaled.pop(name, None)
            if factor:
                scaled[name] = s
            elif isinstance(e, Expr) and e.op == "frag" and e.attrs.get("init") == 0:
                zeros.add(name)
        elif isinstance(s, Do) and s.op.name == "mma":
            acc, init = s.op.operands["acc"], s.op.operands.get("init")
            name = str(acc.attrs["name"]) if isinstance(acc, Expr) and acc.op == "var" else ""
            zeros.discard(name)
            before = scaled.pop(name, None)
            if before is not None and not (isinstance(init, Expr) and init.op == "const" and init.attrs["value"]):
                at = before.value.span if isinstance(before.value, Op) else before.span
                yield Fault("D052", f"`{written(name)}` is still zero where it is multiplied, and the product is added to it behind that", at, ((s.op.span, "the product comes here"),), "multiply behind the product", (), {"accumulator": written(name)})


def _decays(e: Expr, known: set[str]) -> bool:
    """Whether a factor is an exponential, or a name of one."""
    return e.op in EXPONENTIALS or (e.op == "var" and e.attrs["name"] in known) or (e.op == "where" and any(_decays(a, known) for a in e.args[1:]))


def _touched(body: tuple[Stmt, ...]) -> set[str]:
    """The names that a body binds or accumulates into."""
    found = {t for s in statements(body) if isinstance(s, Assign) for t in s.targets}
    accs = (s.op.operands.get("acc") for s in statements(body) if isinstance(s, Do))
    return found | {str(e.attrs["name"]) for e in accs if isinstance(e, Expr) and e.op == "var"}

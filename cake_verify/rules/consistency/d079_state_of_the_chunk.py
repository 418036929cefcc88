"""D079: a state that a loop carries from chunk to chunk is brought to the end of the chunk, as what is added to it is."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Expr, For, Program
from cake_ir.types import FragT, ScalarT, ViewT
from cake_verify.analyses.running_sums import EXPONENTIALS
from cake_verify.analyses.sites import Site, on_view, sites, starts_anew
from cake_verify.analyses.trips import resolver_of, written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_STATE = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def state(lm, K: LM.gmem2d[LM.bf16, "T", 64], V: LM.gmem2d[LM.bf16, "T", 64], G: LM.gmem1d[LM.f32, "T"], S: LM.gmem2d[LM.f32, 64, 64], T: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(T > 0 and T % 64 == 0)
    pool = lm.smem(16384)
    k = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    v = pool.view(offset=8192, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("x",))
    with work:
        for t in lm.tiles(sched):
            st = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            for c in lm.range(T // 64):
                k.cp_async(K, coords=(0, c * 64))
                v.cp_async(V, coords=(0, c * 64))
                lm.cp_commit()
                lm.cp_wait(pending=0)
                lm.sync(own)
                g = lm.load(G, coords=(c * 64,), shape=(64,), form="colvec", like=st)
                last = lm.ld(G, c * 64 + 63)
                x = lm.cast(v.T.load(form="acc", like=st), lm.f32) * lm.exp(last - g)
                st = st * lm.exp(last)
                lm.mma(st, lm.cast(x, lm.bf16, form="a"), k.T.ldmatrix(form="b"))
                lm.sync(own)
            lm.store(S, st, coords=(0, 0))
'''

PAGE = Page(
    code="D079",
    title="a state that stays at an earlier chunk",
    statement="A state to which a loop adds products whose terms are weighed by the exponential of a number of the round less that of each position (`lm.exp(last - g)`) is scaled in the loop, too.",
    why="Such a weight brings each position to the end of its chunk. The state of the chunks before stands at the end of an earlier one, and without its own decay nothing is ever forgotten.",
    failing=edit(_STATE, ("                st = st * lm.exp(last)\n", "")),
    passing=_STATE,
    limits="Decided for accumulators in registers that products alone change in the loop, and weights by a uniform number that the loop reads anew, less a row or column vector, also where they are stored to shared memory first. One number for all rounds needs no decay, nor do weights by a vector that is the same in all of them, or weights that another exponential (`lm.exp(whole - last)`) brings on to a place for all.",
)


def check(program: Program) -> Iterator[Fault]:
    said = mentions(program)
    if not any(_weight(n) is not None for op in EXPONENTIALS for n in said.get(op, ())):
        return
    found = sites(program)
    for s in found.of("mma"):
        loop = s.loops[-1] if s.loops else None
        acc, role = s.op.operands["acc"], s.role.name
        if loop is None or loop.kind == "tiles" or not isinstance(acc, Expr) or acc.op != "var" or starts_anew(s.op):
            continue
        name = str(acc.attrs["name"])
        bound = found.results.get((role, name), ())
        if not bound or any(loop in b.loops for b in bound) or (role, name) in found.bindings:
            continue
        seen: set[str] = set()
        weight = next((w for k in ("a", "b") if isinstance(e := s.op.operands[k], Expr) for w in _weights(program, role, e, loop, seen)), None)
        if weight is not None:
            message = f"`{written(name)}` stays at an earlier chunk: what is added to it is weighed up to this one's end, and it is scaled in no round"
            at = weight.span if weight.span.line else s.op.span
            yield Fault("D079", message, s.op.span, ((at, "weighed here"), (loop.head, "in this loop")), f"scale it first: `{written(name)} = {written(name)} * lm.exp(..)`", (), {"role": role, "name": name})
            return


def _weight(n: Expr) -> tuple[str, Expr] | None:
    """The name of the uniform number of which an exponential takes a vector off, and the vector."""
    x = n.args[0]
    while x.op == "mul":
        long = [a for a in x.args if isinstance(a.type, FragT)]
        if len(long) != 1:
            return None
        x = long[0]
    if x.op != "sub" or not isinstance(x.args[0].type, ScalarT) or not isinstance(x.args[1].type, FragT) or x.args[1].type.form not in ("rowvec", "colvec"):
        return None
    return (str(x.args[0].attrs["name"]), x.args[1]) if x.args[0].op == "var" else None


def _weights(program: Program, role: str, e: Expr, loop: For, seen: set[str]) -> Iterator[Expr]:
    """Exponentials of a number of the round less a vector, in what the loop makes an operand of."""
    found = sites(program)
    for n in e.parts():
        weight = _weight(n) if n.op in EXPONENTIALS else None
        if weight is not None and any(_anew(program, b, loop) for b in found.results.get((role, weight[0]), ())) and _of_the_round(program, role, weight[1], loop) and not _brought_on(program, role, weight[0]):
            yield n
        made: list[Expr] = []
        place = str(n.attrs.get("name") if n.op == "var" else n.attrs.get("view"))
        if place in seen:
            continue
        if n.op == "var" and isinstance(n.type, FragT):
            seen.add(place)
            made = [v for b in found.results.get((role, str(n.attrs["name"])), ()) if loop in b.loops and isinstance(v := b.op.operands.get("value", b.op.operands.get("view")), Expr)]
        elif n.op == "view" and isinstance(n.type, ViewT):
            seen.add(place)
            made = [x for b in _stores(program, role, n.type.view) if loop in b.loops and isinstance(x := b.op.operands.get("x"), Expr)]
        for x in made:
            yield from _weights(program, role, x, loop, seen)


def _of_the_round(program: Program, role: str, vector: Expr, loop: For) -> bool:
    """Whether a vector is made or loaded in the loop: one for all rounds says nothing of where in a chunk a position lies."""
    names = [str(n.attrs["name"]) for n in vector.parts() if n.op == "var"]
    return any(loop in b.loops for name in names for b in sites(program).results.get((role, name), ()))


def _brought_on(program: Program, role: str, name: str) -> bool:
    """Whether an exponential of something less the same number brings what stands at the end of the chunk to a place behind it."""
    said = mentions(program)
    exponents = {id(x): x for op in EXPONENTIALS for n in said.get(op, ()) for x in n.args[0].parts() if x.op == "sub"}
    return any(x.args[1].op == "var" and x.args[1].attrs["name"] == name for x in exponents.values())


def _anew(program: Program, b: Site, loop: For) -> bool:
    """Whether what is read follows the rounds of a loop: by its variable, or by a slot that the loop steps to."""
    if b.op.name != "ld" or loop not in b.loops:
        return False
    resolve, found = resolver_of(program, b.role.name), sites(program)
    for e in b.op.operands.values():
        for n in resolve(e).parts() if isinstance(e, Expr) else ():
            name = str(n.attrs.get("name")) if n.op == "var" else ""
            if n.op in ("step", "at") or (name and (name == loop.var or any(loop in x.path for x in found.bindings.get((b.role.name, name), ())))):
                return True
    return False


def _stores(program: Program, role: str, view: str) -> list[Site]:
    return [s for s in sites(program).of("store") if s.role.name == role and on_view(s.op) == view]

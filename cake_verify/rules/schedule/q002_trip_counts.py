"""Q002: roles that meet on a ring step it equally often."""

from cake_ir.derive.structure import listed
from cake_ir.fault import Fault
from cake_ir.program import If, Program
from cake_verify.analyses import trips
from cake_verify.analyses.sites import sites
from cake_verify.analyses.step_counts import RoleSteps, Steps
from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="Q002",
    title="trip counts that disagree",
    statement="Roles that wait and arrive on the barriers of one ring step it equally often, for all arguments.",
    why="A producer that goes round once more than its consumer waits for a slot that nobody frees; one that stops earlier leaves the consumer waiting.",
    failing=edit(LOOP, ("            for k in lm.range(kt):\n                s = lm.step(ring)\n                lm.wait(full", "            for k in lm.range(kt + 1):\n                s = lm.step(ring)\n                lm.wait(full")),
    passing=LOOP,
    limits="Given in place of what the safety gate finds where the counts of two roles differ for some arguments; where that gate finds nothing, only counts that launch arguments alone decide are compared, for arguments beyond those that were tried.",
    sources=("HW104",),
)


def cause(program: Program, found: tuple[Fault, ...]) -> Fault | None:
    """The disagreement from which the safety gate's findings follow, if there is one."""
    steps = Steps(program)
    assumed = [a.cond for a in program.assumes]
    for ring, counts in steps.rings.items():
        meeting = [r for r in counts if _meets(program, r.role, ring)]
        for a, b in ((a, b) for i, a in enumerate(meeting) for b in meeting[i + 1 :]):
            if steps.differ(a.count, b.count, assumed):
                odd, even = sorted((a, b), key=_oddness)
                return _fault(steps, ring, odd, even, found)
    return None


def certain(program: Program) -> Fault | None:
    """Two roles whose counts differ for some arguments, where nothing but arguments decides them; said of schedules that were right wherever they were run."""
    lengths: dict[str, set[str]] = {}
    for loop in trips.loops(program):
        lengths.setdefault(loop.role, set()).add(f"{trips.canonical(loop.lo)} {trips.canonical(loop.hi)}")
    if len({frozenset(x) for x in lengths.values()}) < 2:
        return None  # every role counts alike
    plain = [r for r in program.roles.values() if not _branches(program, r.name)]
    if len(plain) < 2 and not any(r.members > 1 for r in plain):
        return None  # there are no two counts that arguments alone decide
    steps = Steps(program)
    assumed = [a.cond for a in program.assumes]
    for ring, counts in steps.rings.items():
        meeting = [r for r in counts if _meets(program, r.role, ring) and _by_arguments(steps, r)]
        for a, b in ((a, b) for i, a in enumerate(meeting) for b in meeting[i + 1 :]):
            if steps.differ(a.count, b.count, assumed):
                odd, even = sorted((a, b), key=_oddness)
                return _fault(steps, ring, odd, even, ())
    return None


def _by_arguments(steps: Steps, r: RoleSteps) -> bool:
    """Whether a count depends on launch arguments alone, and on tiles that both roles share."""
    if _branches(steps.program, r.role):
        return False
    atoms = [steps.atoms[n] for m in r.count for n in m if n in steps.atoms]
    fields = steps.tiles is not None and steps.tiles.kind != "grouped"
    return all((n.op == "field" and fields) or (n.op == "var" and n.attrs.get("name") == "t" and fields) or (n.op in ("param", "const", "add", "sub", "mul", "cdiv", "floordiv", "mod", "min", "max", "neg") and "[" not in str(n.attrs.get("name", ""))) for e in atoms for n in e.parts())


def _branches(program: Program, role: str) -> bool:
    return any(isinstance(s, If) for block, body in listed(program) if block.role == role for s in body)


def _oddness(r: RoleSteps) -> tuple[int, int]:
    """How far a count is from one step a round: terms, and what they are multiplied by. The odder one is named first."""
    return len(r.count), sum(abs(c) for c in r.count.values()) if r.count else 9


def _meets(program: Program, role: str, ring: str) -> bool:
    """Whether the role uses a barrier that rides the ring."""
    return any(
        (barrier := program.barriers.get(str(s.op.attrs.get("barrier")))) is not None and barrier.pipeline == ring for s in sites(program).of_role(role)
    )


def _fault(steps: Steps, ring: str, a: RoleSteps, b: RoleSteps, found: tuple[Fault, ...]) -> Fault:
    assert a.span is not None and b.span is not None
    related = ((a.span, f"{a.who}: {steps.shown(a.count)}"), *((f.span, f"so that: {f.message}") for f in found[:1]))
    trace = found[0].trace if found else ()
    counts = steps.shown(b.count), steps.shown(a.count)
    message = f"{b.who} steps `{ring}` {counts[0]}, {a.who} {counts[1]}" if counts[0] != counts[1] else f"{b.who} steps `{ring}` another number of times than {a.who}"
    return Fault("Q002", message, b.span, related, "give both loops one bound", (),
                 {"ring": ring, a.who.replace("`", ""): steps.shown(a.count), b.who.replace("`", ""): steps.shown(b.count)}, trace)  # fmt: skip

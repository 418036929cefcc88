"""Faults that are only met where a loop has no round: then what has to be said is that it has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cake_ir.fault import Fault, Fix
from cake_ir.program import Program
from cake_ir.span import Span
from cake_verify.analyses import edits
from cake_verify.analyses.setting import Setting
from cake_verify.analyses.trips import Loop, spoken


def without_rounds(program: Program, loops: Sequence[Loop], failed: Sequence[tuple[Setting, Fault]], settings: Sequence[Setting]) -> list[Fault]:
    """The faults as found; the first says which loop is without a round where only that brings it about, and how to state that the loop has one."""
    faults = [f for _, f in failed]
    if not failed:
        return faults
    empty = [{i for i, n in enumerate(s.trips) if n == 0} for s, _ in failed]
    bad = {id(s) for s, _ in failed}
    always = set.intersection(*empty)
    clean = [s for s in settings if id(s) not in bad]
    # Where any of them has no round all is well only by chance, or because nothing depends on it; a run in which each has one must be clean.
    blamed = sorted(i for i in always if all(s.trips[i] for s in clean) and clean)
    first = faults[0]
    near = sorted(blamed, key=lambda i: (loops[i].stmt.head.line > first.span.line, -loops[i].stmt.head.line))  # the last one in front of what is at fault
    stated = next(((loops[i], text) for i in near if (text := _stated(loops[i]))), None)
    if stated is None:
        return faults
    loop, text = stated
    fix = edits.after(_last_fact(program), f"lm.assume({text})")
    related = (*first.related, (loop.stmt.head, f"has no round here: {_arguments(failed[0][0], loop)}"))
    help = f"state that the loop over `{loop.stmt.var}` has a round, `lm.assume({text})`, or do what follows it only where it has one"
    kept: tuple[Fix, ...] = tuple(f for f in first.fixes if f.grade == "certain")
    return [replace(first, related=related, help=help, fixes=(fix, *kept), cause="no round"), *faults[1:]]


def _stated(loop: Loop) -> str | None:
    """What says that a loop has a round, if it is said of arguments alone."""
    hi = loop.hi
    if loop.lo.op != "const" or loop.lo.attrs["value"] != 0 or any(n.op not in _OF_ARGUMENTS for n in hi.parts()):
        return None
    if hi.op == "floordiv" and hi.args[0].op == "param" and hi.args[1].op == "const":
        return f"{spoken(hi.args[0])} >= {hi.args[1].attrs['value']}"
    if hi.op == "cdiv" and hi.args[1].op == "const":
        hi = hi.args[0]
    return f"{spoken(hi)} > 0"


_OF_ARGUMENTS = frozenset({"param", "const", "add", "sub", "mul", "floordiv", "mod", "cdiv", "min", "max"})


def _arguments(setting: Setting, loop: Loop) -> str:
    names = dict.fromkeys(str(n.attrs["name"]) for n in loop.hi.parts() if n.op == "param")
    return ", ".join(f"{n} = {setting.args.get(n)}" for n in names)


def _last_fact(program: Program) -> Span:
    return program.assumes[-1].span if program.assumes else program.launch.span if program.launch is not None else program.span.start()

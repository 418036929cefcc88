"""N068: a flag that is set where its own condition keeps every round out."""

from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_FIRST = '''
@cake.schedule(target="sm_90a")
def first_above(lm, X: LM.gmem1d[LM.f32, "N"], limit: LM.f32, place: LM.gmem1d[LM.i32, 1], N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N > 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("t",))
    with work:
        for t in lm.tiles(sched):
            looking = 1
            for i in lm.range(N):
                if looking > 0:
                    if lm.ld(X, i) > limit:
                        looking = 0
                        lm.store(place, i, coords=(0,))
'''

PAGE = Page(
    code="N068",
    title="an arm that would have to run first",
    statement="A number that a loop carries is not changed only in an arm whose condition is false for the number that it starts with.",
    why="No round ever takes such an arm, so the number stays what it was and all that stands there is never done.",
    failing=edit(_FIRST, ("looking > 0", "looking > 1")),
    passing=_FIRST,
    limits="Names bound in front of the loop to a number that is known when the schedule is read. A branch on such a number outside of a loop is a choice that the author made, as is one on a tunable that the arm leaves alone.",
)

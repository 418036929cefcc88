"""Another number of lanes is elected to arrive than the work of the slot needs."""

from bench.verify.mutate.subject import Subject, keyword


def make(s: Subject) -> None:
    for name, call in s.declared("barrier"):
        value = keyword(call, "arrive")
        if value is None:
            continue
        for kind in ("warp", "member", "thread", "tx", "cp_async", "mma"):
            # Between lanes it is a question of who has met; bytes, copies and commits are not there where the text says so.
            lanes = {kind, s.source(value).strip('"')} <= {"warp", "member", "thread"}
            truth = "simulation" if lanes else "contract"
            if f'"{kind}"' != s.source(value):
                s.mutant("arrive-kind", f'`{name}` with arrive="{kind}"', (value, f'"{kind}"'), roles=s.users(name), truth=truth)

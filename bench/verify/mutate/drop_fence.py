"""The fence between ordinary writes and the async proxy is missing."""

from bench.verify.mutate.subject import Subject


def make(s: Subject) -> None:
    for p in s.statements:
        if p.calls("fence_proxy"):
            s.mutant("drop-fence", "without lm.fence_proxy()", (p.node, "pass"), at=p)

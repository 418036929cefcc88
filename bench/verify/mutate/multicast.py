"""A multicast goes along the wrong axis, is missing, or the cluster has another shape than the loads think."""

import ast

from bench.verify.mutate.subject import Subject, with_option, without
from cake_verify.proposals.placed import called, option


def make(s: Subject) -> None:
    if s.program.launch.cluster == (1, 1):
        return
    for p in s.statements:
        if p.calls("tma_load"):
            assert p.call is not None
            value = option(p.call, "multicast")
            if value is not None:
                s.mutant("multicast", f"no multicast in {s.source(p.node)}", (p.node, without(s, p.call, "multicast")), at=p)
            for axis, extent in zip(("m", "n"), s.program.launch.cluster, strict=True):
                if extent == 1:
                    continue  # a multicast to nobody is refused as such, whatever it would do
                if value is None or s.source(value) != f'"{axis}"':
                    s.mutant("multicast", f"multicast along {axis} in {s.source(p.node)}", (p.node, with_option(s, p.call, "multicast", f'"{axis}"')), at=p)
    for node in ast.walk(s.function):
        if isinstance(node, ast.Call) and called(node) in ("launch", "scheduler"):
            value = option(node, "cluster")
            for shape in ("(1, 1)", "(2, 1)", "(1, 2)", "(2, 2)"):
                if value is not None and s.source(value) != shape:
                    # the launch and the scheduler have to agree (Q007), whether or not a small grid shows that they do not
                    s.mutant("multicast", f"{called(node)} with cluster={shape}", (value, shape), truth="contract")

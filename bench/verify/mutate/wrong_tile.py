"""A copy fetches or stores another tile than the one that is meant."""

import ast

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import called, option


def make(s: Subject) -> None:
    for p in s.statements:
        if isinstance(p.node, ast.For | ast.If):
            continue
        for call in ast.walk(p.node):
            if not (isinstance(call, ast.Call) and called(call) in ("tma_load", "tma_store", "cp_async", "load", "store")):
                continue
            coords = option(call, "coords")
            if not isinstance(coords, ast.Tuple):
                continue
            e = coords.elts
            if len(e) > 1:
                s.mutant("wrong-tile", f"coordinates exchanged in {called(call)}", (e[0], s.source(e[1])), (e[1], s.source(e[0])), at=p)
            for k, x in enumerate(e):
                names = [n for n in ast.walk(x) if isinstance(n, ast.Name) and n.id in ("k", "j", "f", "i")]
                if names:
                    s.mutant("wrong-tile", f"next {names[0].id} in coordinate {k} of {called(call)}", (names[0], f"({names[0].id} + 1)"), at=p)
                for n in ast.walk(x):
                    if isinstance(n, ast.Attribute) and n.attr in ("m", "n") and isinstance(n.value, ast.Name):
                        s.mutant("wrong-tile", f"next {s.source(n)} in {called(call)}", (n, f"({s.source(n)} + 1)"), at=p)
                        break

"""A barrier's declaration names another role as producer or consumer."""

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    for name, call in s.declared("barrier"):
        for side in ("prod", "cons"):
            value = option(call, side)
            if value is None:
                continue
            given = s.source(value)
            for role in s.program.roles:
                if given != f"[{role}]":
                    s.mutant("wrong-role", f"{side}=[{role}] of `{name}`", (value, f"[{role}]"), roles=s.users(name))
                if role not in given:
                    s.mutant("wrong-role", f"{side} of `{name}` with {role} too", (value, f"{given[:-1]}, {role}]"), roles=s.users(name))

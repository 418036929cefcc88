"""A named barrier counts other warps than those that meet there: one role more, another one, or members apart and together."""

from bench.verify.mutate.subject import Subject, with_option, without
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    for name, call in s.declared("named_barrier"):
        roles = call.args[0]
        for role in s.program.roles:
            if role != s.source(roles):
                s.mutant("named-participants", f"`{name}` of {role} too", (roles, f"[{s.source(roles)}, {role}]"), roles=s.users(name))
                s.mutant("named-participants", f"`{name}` of {role}", (roles, role), roles=s.users(name))
        others = [r for r in s.program.roles if r != s.source(roles)]
        if len(others) >= 2:  # two at once: no single change reaches this
            s.mutant("named-participants", f"`{name}` of {others[0]} and {others[1]} too", (roles, f"[{s.source(roles)}, {others[0]}, {others[1]}]"), roles=s.users(name))
        if option(call, "per_member") is not None:
            s.mutant("named-participants", f"`{name}` of all members", (call, without(s, call, "per_member")), roles=s.users(name))
        elif s.program.roles.get(s.source(roles)) and s.program.roles[s.source(roles)].members > 1:
            s.mutant("named-participants", f"`{name}` of each member", (call, with_option(s, call, "per_member", "True")), roles=s.users(name))

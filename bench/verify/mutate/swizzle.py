"""A view has another swizzle than its shape, its copies or its tensor-core reads allow."""

from bench.verify.mutate.subject import Subject, with_option
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    for name, call in s.declared("view"):
        value = option(call, "swizzle")
        now = s.program.views[name].swizzle
        for swizzle in ("128b", "64b", "32b", None):
            if swizzle == now:
                continue
            text = f'"{swizzle}"' if swizzle else "None"
            if value is not None:
                s.mutant("swizzle", f"`{name}` with swizzle={text}", (value, text), roles=s.users(name))
            else:
                s.mutant("swizzle", f"`{name}` with swizzle={text}", (call, with_option(s, call, "swizzle", text)), roles=s.users(name))

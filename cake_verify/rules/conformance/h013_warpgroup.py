"""H013: wgmma and matrix rows run on aligned warpgroups."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Edit, Fault, Fix
from cake_ir.program import Program
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

TARGETED = False

PAGE = Page(
    code="H013",
    title="not a warpgroup",
    statement="A member that executes wgmma, or reads tensor memory, is made of whole warpgroups: 4 consecutive warps, the first a multiple of 4.",
    why="wgmma is one instruction of 128 threads. Four warps that straddle two warpgroups execute it with other warps than the hardware expects: undefined, often a hang. A warp "
    "reaches only the quarter of tensor memory that its index modulo 4 names.",
    failing=edit(TILE, ("math = lm.role(warps=range(0, 4))", "math = lm.role(warps=range(2, 6))"), ("load = lm.role(warps=range(4, 8))", "load = lm.role(warps=range(6, 8))")),
    passing=TILE,
    sources=("HW064", "HW084"),
)


def check(program: Program) -> Iterator[Fault]:
    told: set[str] = set()
    for site in sites(program).of("mma", "tmem_load", "tmem_store"):
        role, op = site.role, site.op
        what = "wgmma" if op.attrs.get("kind") == "wgmma" else f"`lm.{op.name}`" if op.name in ("tmem_load", "tmem_store") else ""
        if not what or role.name in told or (role.warp_lo % 4 == 0 and role.member_warps % 4 == 0):
            continue
        told.add(role.name)
        span = role.spans.get("warps", role.span)
        if role.member_warps % 4:
            yield Fault("H013", f"a member of `{role.name}` has {role.member_warps} warps, {what} is executed by whole warpgroups of 4", span,
                        ((op.span, f"`{role.name}` executes it here"),), "give each member 4 warps", (), {"expected": 4, "found": role.member_warps, "role": role.name})  # fmt: skip
            continue
        lo = -(-role.warp_lo // 4) * 4
        free = all(o is role or o.warp_hi <= lo or o.warp_lo >= lo + role.warps for o in program.roles.values())
        fix = (Fix((Edit(span, f"range({lo}, {lo + role.warps})"),), "likely", "start on a multiple of 4"),) if free else ()
        yield Fault("H013", f"`{role.name}` starts at warp {role.warp_lo}, a warpgroup starts at a multiple of 4", span, ((op.span, f"{what} is executed by a warpgroup"),),
                    "number the roles so that warpgroups are aligned", fix, {"expected": lo, "found": role.warp_lo, "role": role.name})  # fmt: skip

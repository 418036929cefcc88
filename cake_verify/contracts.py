"""For every hardware contract: the rules that enforce it, what makes it impossible to break in the language, and what stays for run time.

`python -m cake_verify.contracts` prints `docs/contracts.md`. The contracts themselves are in `cake_ir.targets.contracts`.
"""

from __future__ import annotations

import sys

from cake_ir.record import record
from cake_ir.targets import TARGETS
from cake_ir.targets.contracts import CONTRACTS
from cake_verify.rule import pages


@record()
class Held:
    """How one contract is held: codes of rules, and in words what is derived and so cannot be written wrongly (`derived`) and what no static
    check can decide (`open`), with who decides it."""

    codes: tuple[str, ...] = ()
    derived: str = ""
    open: str = ""


def _h(codes: str = "", derived: str = "", open: str = "") -> Held:
    return Held(tuple(codes.split()), derived, open)


# fmt: off
HELD: dict[str, Held] = {
    "HW000": _h("H001", "the target is compiled for by its exact name, suffix included"),
    "HW001": _h("H002 P007", "the launcher sets the opt-in attribute to what the block needs"),
    "HW002": _h("H006 H007 P007", "block sizes are sums of whole warps", "registers that the code of a role needs: the compiler's report (spills, remarks)"),
    "HW003": _h("H007", "the grid has one axis; tensor maps are grid constants, 64-byte aligned", "grids of run-time tile counts: the launcher"),
    "HW004": _h("P007", "ids of named barriers are immediates"),
    "HW010": _h("H004"),
    "HW011": _h("H004 H025"),
    "HW012": _h("D039 H025", "the byte of a word follows from `first` of `lm.scales`, the threads from the form of the row vector"),
    "HW020": _h("H017 H018"),
    "HW021": _h("P002"),
    "HW100": _h("H011 H017", "global accesses take the width that coordinates, extents and strides show, 4 bytes or less where they show nothing",
                "the address of a tensor: the launcher"),
    "HW030": _h("H011", "the size is 16 bytes and the source size follows from the clip", "global addresses and strides: the launcher"),
    "HW031": _h("S004", "groups are committed where the text says, on every path the same"),
    "HW040": _h("H019", open="the address of a tensor, and lengths known at run time only: the launcher and the simulator"),
    "HW041": _h("Q005 S011 S025", "the operation fixes how it completes: loads name a barrier, stores make a bulk group"),
    "HW042": _h("D003 N061"),
    "HW043": _h("H003 H024", "ranks, box shapes, element strides, swizzle and fill of a map come from the view", "the tensor's address, extents and strides: the launcher, before it encodes the map"),
    "HW044": _h("D015 H003", "pools start on 1,024 bytes where a swizzle or a box asks for it"),
    "HW045": _h("D011", "the instruction's rank is the tensor's; a gather takes a 2-D tensor and its map's boxes are one row high"),
    "HW046": _h("S018", "the bytes of a phase are added up from its loads and announced once, in front of the first"),
    "HW047": _h("H005 S012 S030", "every CTA of a cluster has one layout, initialises its barriers behind a cluster barrier and expects the whole view"),
    "HW048": _h("D010", "the fill is zero"),
    "HW049": _h(derived="no operation changes a tensor map: maps are made by the host before the launch"),
    "HW050": _h("S002", "barrier objects are placed behind the pools on 8 bytes, initialised once by one thread, and only barrier operations reach them"),
    "HW051": _h(derived="initialisation, its fence and the block's or the cluster's barrier are emitted in front of the roles"),
    "HW052": _h("H009"),
    "HW053": _h("S001 S002 S003 S008 S020 S021 S022 S046", "the initial count is added up from the declaration"),
    "HW054": _h(derived='peers are only arrived on (`scope="cluster"`) or sent to; waits and initialisation have no way to name a peer'),
    "HW055": _h("Q004 S019 S020", "parities come from the ring's running count, one phase ahead where `primed`; every wait loops"),
    "HW060": _h("H004"),
    "HW061": _h("D016", "descriptors are made from the view's layout, the one that its copies use"),
    "HW062": _h("H012 S005", "fences are emitted in front of each group and after writes to its registers"),
    "HW063": _h("H012 H015 Q005 S005 S025"),
    "HW064": _h("H013"),
    "HW065": _h("H006", "the role's first instruction, executed by all of its warps; both launch bounds are always given"),
    "HW066": _h("H006"),
    "HW067": _h("H014", "a fence stands in front of every MMA that is printed", open="what the assembler did: the build counts the MMAs of the machine code against the schedule and refuses a cubin with fewer"),
    "HW070": _h("P001 S006 S039"),
    "HW071": _h("P001 S003 S004", "ordinary loads of what the copy engine refills are fenced in front of the arrival or the meeting that releases it"),
    "HW072": _h("S012", "arrivals and waits take the scope of their barrier; flags are released and acquired at device scope"),
    "HW073": _h("H010 S010", "ids and counts are derived from the roles"),
    "HW074": _h("N064 S010", "the block's own barrier stands only in front of the roles"),
    "HW075": _h("S010"),
    "HW076": _h("N064", "conditions are uniform over a member, elections stand in converged warps, and the thread that issues an MMA commits it"),
    "HW080": _h("H008", "one allocation for all regions, rounded to a power of two, by one warp in front of the roles"),
    "HW081": _h(derived="no operation frees tensor memory: the one allocation ends with the kernel"),
    "HW082": _h(derived="no operation allocates tensor memory or gives up the permit: one allocation stands in front of the roles"),
    "HW083": _h("H023", "no operation allocates or frees tensor memory"),
    "HW084": _h("H008 H013", "shapes of tensor-memory moves follow from the fragment's form"),
    "HW085": _h("S003 S014"),
    "HW086": _h("D016 D039", "the shape of a copy follows from its view: 128 rows, or 32 to each quarter of the lanes"),
    "HW087": _h("Q005 S003 S004 S046"),
    "HW088": _h("H004"),
    "HW089": _h("D016", "descriptors are made from the view's layout, each family's by its own encoder"),
    "HW090": _h("H017 S038", "a send names one view and one barrier, of the same CTA"),
    "HW091": _h("H004 D039 H025 S045", "the number of a scale in its word follows from `first` of `lm.scales`"),
    "HW092": _h("H023"),
    "HW093": _h("H005", "tile counts are rounded up to whole clusters", "whether a cluster fits a GPC beside others: the driver, at launch"),
    "HW094": _h("S012", "cluster barriers are emitted at entry and exit"),
    "HW095": _h("S009"),
    "HW101": _h("Q021 S016"),
    "HW102": _h(derived='no operation asks, queries or cancels: `kind="clc"` derives the ring of answers, one question a slot and none after a refusal'),
    "HW103": _h("H016 H022", "instructions for arithmetic are chosen by the target's table; what it lacks is expanded"),
    "HW104": _h("Q002 S008 S023"),
}
# fmt: on


def page() -> str:
    """The audit as Markdown: one row a contract."""
    known = pages()
    out = [
        "# Hardware contracts and the rules that hold them", "",
        "<!-- Written by `python -m cake_verify.contracts > docs/contracts.md`; edit cake_verify/contracts.py, not this page. -->", "",
        "What the hardware asks (`cake_ir/targets/contracts.py`; `docs/targets.md` says what breaking it does), and where Cake holds it: a rule that refuses the schedule, a derivation "
        "that leaves no way to write it wrongly, or, for what no text can show, the launcher, the build or the simulator. This build does not lower tensor memory and cluster launch control: what is derived for "
        "tensor memory and for cluster launch control is what the language leaves no way to say, and what the simulator does.", "",
        f"{sum(bool(h.codes) for h in HELD.values())} of {len(HELD)} contracts are held by rules, {sum(not h.codes for h in HELD.values())} by construction alone; "
        f"{sum(bool(h.open) for h in HELD.values())} leave something to run time.", "",
        "| contract | where | what must hold | rules | derived | left to run time |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, contract in CONTRACTS.items():
        held = HELD[name]
        where = "all" if contract.targets == TARGETS else ", ".join(contract.targets)
        codes = ", ".join(f"[{code}](codes/{code}.md) {known[code].title}" for code in held.codes)
        out.append(f"| {name} | {where} | {contract.rule} | {codes} | {held.derived} | {held.open} |")
    return "\n".join(out) + "\n"


def explain(name: str) -> str | None:
    """What one contract asks and how it is held, as Markdown; None if there is no such contract."""
    if name not in CONTRACTS:
        return None
    contract, held, known = CONTRACTS[name], HELD[name], pages()
    where = "all targets" if contract.targets == TARGETS else ", ".join(contract.targets)
    out = [f"# {name}: a hardware contract", "", f"On {where}: {contract.rule}.", "", f"Broken, the outcome is: {contract.outcome}; the assembler: {contract.assembler}."]
    out += ["", "Held by " + "; ".join(f"`{code}` ({known[code].title})" for code in held.codes) + "."] if held.codes else []
    out += ["", f"By construction: {held.derived}."] if held.derived else []
    out += ["", f"Left to run time: {held.open}."] if held.open else []
    return "\n".join(out) + "\n"


def main(arguments: list[str]) -> int:
    """Print the page; 2 for any argument."""
    if arguments:
        print("usage: python -m cake_verify.contracts", file=sys.stderr)
        return 2
    sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

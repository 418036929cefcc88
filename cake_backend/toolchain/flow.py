"""Basic blocks and natural loops of a machine-code listing."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field

# (opcode with modifiers, predicate or None, operands as text)
Line = tuple[str, str | None, str]

_TARGET = re.compile(r"`\((\.L_[\w$.]+)\)")
_ENDS = ("EXIT", "RET", "BPT.TRAP", "KILL")
_BRANCHES = ("BRA", "BRX", "JMP")


@dataclass(slots=True)
class Block:
    """Instructions [start, end) that run one after the other, and the blocks that may follow."""

    start: int
    end: int
    successors: list[int] = field(default_factory=list)


def split_blocks(code: list[Line], labels: dict[str, int]) -> list[Block]:
    """Cut a listing into basic blocks; `labels` gives the index of the instruction behind each label."""
    leaders = {0, *labels.values()}
    for i, (opcode, _, _) in enumerate(code):
        if _jumps(opcode) or _ends(opcode):
            leaders.add(i + 1)
    cuts = [*sorted(x for x in leaders if x < len(code)), len(code)]
    blocks = [Block(a, b) for a, b in itertools.pairwise(cuts)]
    at = {block.start: n for n, block in enumerate(blocks)}
    # A convergence barrier is used again and again: a BSYNC belongs to the last BSSY of its register in front of it.
    reconverge: dict[int, str] = {}
    latest: dict[str, str] = {}
    for i, (opcode, _, operands) in enumerate(code):
        if opcode.startswith("BSSY") and (m := _TARGET.search(operands)):
            latest[operands.split(",")[0].strip()] = m[1]
        elif opcode.startswith("BSYNC") and operands.strip() in latest:
            reconverge[i] = latest[operands.strip()]
    for n, block in enumerate(blocks):
        opcode, predicate, operands = code[block.end - 1]
        target = _TARGET.search(operands)
        falls = True
        if _jumps(opcode) and target is not None and target[1] in labels:
            block.successors.append(at[labels[target[1]]])
            falls = predicate is not None or opcode.startswith(("BRA.DIV", "BRA.CONV")) or "," in operands
        elif opcode.startswith("BSYNC"):
            label = reconverge.get(block.end - 1)
            if label is not None and label in labels:
                block.successors.append(at[labels[label]])
        elif _ends(opcode):
            falls = predicate is not None
        if falls and n + 1 < len(blocks) and n + 1 not in block.successors:
            block.successors.append(n + 1)
    return blocks


def _jumps(opcode: str) -> bool:
    return opcode.split(".")[0] in _BRANCHES or opcode.startswith("BSYNC")


def _ends(opcode: str) -> bool:
    return opcode.startswith(_ENDS)


def natural_loops(blocks: list[Block]) -> dict[int, set[int]]:
    """Loops by header block: the header and every block that reaches a back edge to it without passing it."""
    dominators = _dominators(blocks)
    predecessors: dict[int, list[int]] = {n: [] for n in range(len(blocks))}
    for n, block in enumerate(blocks):
        for s in block.successors:
            predecessors[s].append(n)
    loops: dict[int, set[int]] = {}
    for n, block in enumerate(blocks):
        for header in block.successors:
            if n in dominators and header in dominators[n]:
                body = loops.setdefault(header, {header})
                work = [n]
                while work:
                    b = work.pop()
                    if b not in body and b in dominators:
                        body.add(b)
                        work += predecessors[b]
    return loops


def _dominators(blocks: list[Block]) -> dict[int, set[int]]:
    """For each block reachable from the first: the blocks on every path to it, itself included."""
    order: list[int] = []
    seen = {0}
    stack: list[tuple[int, int]] = [(0, 0)]
    while stack:
        block, child = stack.pop()
        if child < len(blocks[block].successors):
            stack.append((block, child + 1))
            following = blocks[block].successors[child]
            if following not in seen:
                seen.add(following)
                stack.append((following, 0))
        else:
            order.append(block)
    order.reverse()
    predecessors: dict[int, list[int]] = {n: [] for n in order}
    for n in order:
        for s in blocks[n].successors:
            predecessors[s].append(n)
    everything = set(order)
    dominators = {n: {0} if n == 0 else set(everything) for n in order}
    changed = True
    while changed:
        changed = False
        for n in order[1:]:
            new = set.intersection(*(dominators[p] for p in predecessors[n])) | {n}
            if new != dominators[n]:
                dominators[n], changed = new, True
    return dominators

"""A fuzzer of texts: `python -m bench.verify.fuzz --minutes 5 --seed 7` from the repository's root.

Schedules of the corpus are changed along their grammar (expressions, calls, options, statements, blocks) and against it (tokens, bytes, sizes),
each is verified in a child process under a limit of memory and time, and what breaks the promise is written down with its text: a traceback, an
internal error, more than 2 seconds of processor time, more than 200 MB over what the process held before.
"""

from __future__ import annotations

import argparse
import ast
import json
import multiprocessing
import random
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import cake_kernels
from bench.verify.cases import CASES
from cake_verify.rules import examples

SECONDS, MEGABYTES = 2.0, 200
HARD_SECONDS = 20.0
"""Wall time after which a child is ended: the machine may be shared, a hang is not."""

NUMBERS = ("0", "-1", "1", "2", "3", "7", "63", "64", "65", "127", "128", "255", "256", "257", "1024", "4096", "65535", "65536", "10**6", "10**7", "2**31 - 1", "2**31", "2**62", "2**63", "2**64", "10**30",
           "10**400", "2**100000", "7 ** 63 ** 63", "1 << 10**9", "1e400", "1e-400", "0.1", "-0.0", "9" * 400, "0x" + "f" * 4000, "1_000_000", "True", "None")  # fmt: skip
VALUES = (*NUMBERS, "lm", "lm.inf", "-lm.inf", "lm.bf16", "lm.f32", "lm.e4m3", "()", "(1,)", "(64, 64)", "(0, 0, 0)", "[]", "[1] * 10**6", "(1,) * 10**6", "''", '"128b"', '"m"', "'\u00e4\U0001f370'", "b'x'", "f'{x}'",
          "lambda: 0", "range(0, 10**6)", "range(0, 10**12)", "range(5, 0)", "range(0, 4, 0)", "[i for i in range(10**6)]", "[[i for i in range(1000)] for j in range(1000)]", "{1: 2}", "...", "x" * 5_000, "\u03c0", "a.b.c.d",
          "lm.cdiv(M, 0)", "lm.cdiv(10**30, 3)", "lm.range(10**6)", "lm.step(ring)", "s", "s.prev(9)", "s.prev(10**9)", "t.m", "t", "k", "math.index", "pool", "acc", "acc.cols(0, 10**9)", "lm.frag(shape=(10**6, 10**6), dtype=lm.f32, form=\"acc\")",
          "not M", "M and N", "M if N else K", "M < N < K", "-" * 200 + "1", "(" * 59 + "1" + ")" * 59, "(" * 90 + "1" + ")" * 90, "+".join("1" * 3_000), "*".join(["M"] * 3_000), "lm.max(" * 150 + "1" + ", 2)" * 150, ".T" * 200)  # fmt: skip
STATEMENTS = ("pass", "return", "break", "continue", "import os", "while True: pass", "del x", "x: int = 1", "x = y = z = 1", "x += 1", "assert 0", "raise x", "async def f(): pass", "def g(): g()", "class X: pass",
              "with pool: pass", "try: pass\nexcept: pass", "global x", "yield 1", "await x", "match x:\n    case 1: pass", "for i in lm.range(10**6): pass", "for i in lm.static_range(10**6): lm.mma_wait(pending=0)",
              "for i in lm.static_range(4000):\n    for j in lm.static_range(4000): pass", "@cake.schedule()\ndef h(lm): pass", "lm.wait(full, stage=s)", "lm.arrive(empty, stage=s)", "s = lm.step(ring)", "lm.sync(meet)",
              "lm.fence_proxy()", "lm.mma_wait(pending=10**9)", "x = lm.frag(shape=(64, 64), dtype=lm.f32, form=\"acc\")", "lm.store(D, x, coords=(0, 0))", "x = (yield)", "(x := 1)", "x, *y = 1, 2", "\u202ex = 1", "\x0c", "x = 1;" * 500)  # fmt: skip


def texts() -> dict[str, str]:
    """The corpus by name, what the package ships, and the texts of the rules' pages."""
    shipped = {f"{s.family}/{s.name}": s.text for s in cake_kernels.schedules()}
    pages = {name: text for name, text in vars(examples).items() if name.isupper() and isinstance(text, str)}
    return {name: case.text() for name, case in CASES.items()} | shipped | pages


# ------------------------------------------------------------------ changes


def _node(text: str, rng: random.Random, wanted: tuple[type[ast.AST], ...]) -> Any:
    """A random node of one of these kinds; None where the text does not parse or holds none."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = [n for n in ast.walk(tree) if isinstance(n, wanted) and hasattr(n, "end_lineno")]
    return rng.choice(found) if found else None


def _splice(text: str, node: Any, new: str) -> str:
    lines = [line.encode() for line in text.split("\n")]
    first, last = node.lineno - 1, node.end_lineno - 1
    made = lines[first][: node.col_offset] + new.encode("utf-8", "surrogatepass") + lines[last][node.end_col_offset :]
    lines[first : last + 1] = [made]
    return b"\n".join(lines).decode("utf-8", "replace")


def _expression(text: str, rng: random.Random) -> str:
    node = _node(text, rng, (ast.Constant, ast.Name, ast.Call, ast.Tuple, ast.BinOp, ast.Attribute, ast.Subscript, ast.Compare))
    return text if node is None else _splice(text, node, rng.choice(VALUES))


def _number(text: str, rng: random.Random) -> str:
    node = _node(text, rng, (ast.Constant,))
    return text if node is None else _splice(text, node, rng.choice(NUMBERS))


def _exchange(text: str, rng: random.Random) -> str:
    """One expression where another stood."""
    a, b = (_node(text, rng, (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Tuple, ast.BinOp)) for _ in "ab")
    return text if a is None or b is None else _splice(text, a, ast.get_source_segment(text, b) or "x")


def _option(text: str, rng: random.Random) -> str:
    """A call with an option or argument more, twice, or less."""
    node = _node(text, rng, (ast.Call,))
    if node is None:
        return text
    own = ast.get_source_segment(text, node) or ""
    name = rng.choice(("stage", "barrier", "coords", "shape", "dtype", "warps", "members", "stages", "multicast", "box", "init", "pending", "regs", "swizzle", "offset", "form", "like", "cluster", "tiles", "x" * 300, "\u00e9"))
    extra = rng.choice((f"{name}={rng.choice(VALUES)}", rng.choice(VALUES), "*x", "**x", f"{name}=1, {name}=2", ", ".join(f"a{i}=1" for i in range(400))))
    return _splice(text, node, f"{own[:-1]}{', ' if node.args or node.keywords else ''}{extra})" if rng.random() < 0.8 else f"{ast.get_source_segment(text, node.func)}()")


def _statement(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    i = rng.randrange(len(lines))
    pad = lines[i][: len(lines[i]) - len(lines[i].lstrip())]
    kind = rng.randrange(7)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines[i:i] = [lines[i]] * rng.choice((1, 2, 40, 400))
    elif kind == 2:
        other = rng.choice(list(texts().values())).split("\n")
        lines[i] = rng.choice(other)
    elif kind == 3:
        j = rng.randrange(len(lines))
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 4:
        lines[i:i] = [pad + part for part in rng.choice(STATEMENTS).split("\n")]
    elif kind == 5:
        lines[i] = " " * rng.choice((1, 4, 8, 300)) + lines[i]
    else:  # a block of its own, nested
        depth = rng.choice((1, 3, 20, 30, 70))
        head = rng.choice(("if M > 0:", "for i{} in lm.range(2):", "for i{} in lm.static_range(2):", "with math:", "for i{} in lm.range(kt):"))
        lines[i : i + 1] = [*(pad + "    " * d + head.format(d) for d in range(depth)), pad + "    " * depth + lines[i].lstrip()]
    return "\n".join(lines)


def _token(text: str, rng: random.Random) -> str:
    i = rng.randrange(len(text))
    piece = rng.choice(("(", ")", "[", "]", ",", "=", "\n", "\t", "\x00", "\r", "\\", "'", '"', '"""', "#", "\ud800", "\u2028", "\ufeff", "\u0301", "lm.", "9" * 5_000, "\u4e2d" * 300, "@", ":", "e", "_"))
    return text[:i] + piece + text[i + rng.randrange(3) :]


def _rename(text: str, rng: random.Random) -> str:
    node = _node(text, rng, (ast.Name,))
    return text if node is None else text.replace(str(node.id), rng.choice(("n" * 64, "n" * 65, "n" * 100_000, "\u03b1", "__class__", "_", "lm", "None", "print", "\u0130", "cta", "tmp0")))


def _slice(text: str, rng: random.Random) -> str:
    a, b = sorted(rng.randrange(len(text)) for _ in "ab")
    return text[:a] + text[b:] if rng.random() < 0.5 else text[:a] + text[a:b] * rng.choice((2, 3, 30)) + text[b:]


CHANGES: tuple[Callable[[str, random.Random], str], ...] = (_expression, _expression, _number, _number, _exchange, _option, _statement, _statement, _token, _rename, _slice)


def shaken(text: str, rng: random.Random) -> str:
    """The text after one to four changes, at most a megabyte of it."""
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        text = rng.choice(CHANGES)(text, rng) or "\n"
    return text[:1_000_000]


# ------------------------------------------------------------------ the child


def child(pipe: Connection) -> None:
    """Verify each text that comes through the pipe, and say what it cost and what was wrong."""
    from cake_verify import verify_text

    verify_text(CASES["gemm_deep"].text())  # what is imported late counts for nobody
    limit = 4 << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    while True:
        text = pipe.recv()
        before, started = _peak(), time.process_time()
        wrong = ""
        try:
            wrong = answered(verify_text(text, filename="fuzzed.py", default_target="sm_90a"), text)
        except BaseException:
            wrong = traceback.format_exc(limit=-4)
        pipe.send((wrong, time.process_time() - started, _peak() - before))


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def answered(verdict: Any, text: str) -> str:
    """What is wrong with an answer; empty if nothing is."""
    internal = [d for d in verdict.diagnostics if d.code == "N999"]
    if internal:
        return f"{internal[0].message}: {internal[0].facts.get('detail')}"
    lines = text.count("\n") + text.count("\r") + text.count("\x0c") + text.count("\u2028") + 2
    for d in verdict.diagnostics:
        for span in (d.span, *(s for s, _ in d.related), *(e.span for f in d.fixes for e in f.edits)):
            if not 1 <= span.line <= span.end_line <= lines or span.column < 1:
                return f"{d.code} at {span}, outside the text"
    json.dumps(verdict.to_json(limit=None), allow_nan=False).encode()
    verdict.to_text().encode()
    return ""


# ------------------------------------------------------------------ the parent


def runs(seed: int, minutes: float) -> Iterator[tuple[int, str, str, float, float]]:
    """(number, text, what was wrong, processor seconds, megabytes) of each text until time is up."""
    context = multiprocessing.get_context("spawn")
    end, number = time.monotonic() + 60 * minutes, 0
    known = texts()
    names = list(known)
    process: Any = None
    ours: Any = None
    while time.monotonic() < end:
        if process is None or number % 2_000 == 0:  # a fresh process: peaks of memory do not fall again
            if process is not None:
                process.terminate()
            ours, theirs = context.Pipe()
            process = context.Process(target=child, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
        rng = random.Random(f"{seed}/{number}")
        text = shaken(known[rng.choice(names)], rng)
        number += 1
        try:
            ours.send(text)
            if not ours.poll(HARD_SECONDS):
                raise EOFError
            wrong, seconds, memory = ours.recv()
        except (EOFError, OSError):
            process.terminate()
            process = None
            wrong, seconds, memory = "no answer: the process hung or died", HARD_SECONDS, 0.0
        yield number, text, wrong, seconds, memory
    if process is not None:
        process.terminate()


def main(argv: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="python -m bench.verify.fuzz", description=__doc__)
    p.add_argument("--minutes", type=float, default=2)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--found", type=Path, default=Path(tempfile.gettempdir()) / "cake-verify-fuzz", help="where texts that break the promise go")
    a = p.parse_args(sys.argv[1:] if argv is None else argv)
    a.found.mkdir(parents=True, exist_ok=True)
    number = broken = 0
    slowest = largest = 0.0
    for number, text, wrong, seconds, memory in runs(a.seed, a.minutes):
        slowest, largest = max(slowest, seconds), max(largest, memory)
        wrong = wrong or (f"{seconds:.1f} s" if seconds > SECONDS else f"{memory:.0f} MB" if memory > MEGABYTES else "")
        if wrong:
            broken += 1
            path = a.found / f"{a.seed}-{number}.txt"
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
            print(f"{path}: {wrong}", flush=True)
    print(f"{number} texts, {broken} broken, slowest {slowest:.2f} s, most memory {largest:.0f} MB (seed {a.seed})")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())

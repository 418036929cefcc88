"""Two hundred candidates in one call: variants of a few schedules by their tunables, verified together and one by one.

    python -m bench.verify.batch [--count N] [--json FILE]

Prints milliseconds of processor time a candidate both ways, the verdicts, how many texts were read, and the most memory that was held.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from collections import Counter
from itertools import combinations, islice, product
from pathlib import Path
from statistics import median
from typing import Any

from cake_ir import parse
from cake_verify import Question, verify_many, verify_text

ROOT = Path(__file__).resolve().parents[2]
SCHEDULES = ("cake_kernels/gemm/hopper.py", "cake_kernels/attention/hopper.py", "cake_kernels/kmeans_assign/hopper.py", "cake_kernels/gemm_fp8/hopper.py")


def questions(count: int) -> list[Question]:
    """Candidates, the same number of each schedule: one, two, then three of its integer tunables halved, doubled or one more."""
    out: list[Question] = []
    for file in SCHEDULES:
        text = (ROOT / file).read_text("utf-8")
        numbers = {k: v for k, v in parse(text).schedules[0].tunables.items() if isinstance(v, int) and not isinstance(v, bool)}
        other = {k: sorted({max(1, v // 2), 2 * v, v + 1} - {v}) for k, v in numbers.items()}
        changed = (dict(zip(names, choice, strict=True)) for n in (1, 2, 3) for names in combinations(numbers, n) for choice in product(*(other[k] for k in names)))
        out += [Question(text, params, filename=file) for params in islice(changed, count // len(SCHEDULES))]
    return out


def measure(count: int) -> dict[str, Any]:
    """The figures of one batch."""
    asked = questions(count)
    verify_many(asked[:: max(1, count // 20)])  # warm
    begin = time.process_time()
    verdicts = verify_many(asked)
    together = time.process_time() - begin
    begin = time.process_time()
    for q in asked:
        verify_text(q.text, params=q.params, filename=q.filename)
    alone = time.process_time() - begin
    tracemalloc.start()
    verify_many(asked[: count // 4])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "candidates": len(asked),
        "texts": len({q.text for q in asked}),
        "ms_a_candidate": round(1e3 * together / len(asked), 2),
        "ms_one_by_one": round(1e3 * alone / len(asked), 2),
        "median_elapsed_ms": round(median(v.elapsed_ms for v in verdicts), 2),
        "worst_elapsed_ms": round(max(v.elapsed_ms for v in verdicts), 2),
        "verdicts": dict(Counter(v.verdict for v in verdicts)),
        "megabytes": round(most / 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.verify.batch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--json", type=Path, default=None, help="where the figures go")
    options = parser.parse_args()
    found = measure(options.count)
    print(json.dumps(found, indent=1))
    if options.json:
        options.json.write_text(json.dumps({"command": f"python -m bench.verify.batch --count {options.count}", **found}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

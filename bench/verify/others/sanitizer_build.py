"""Build what compute-sanitizer is asked about, without a GPU: `python -m bench.verify.others.sanitizer_build --mutants FOLDER --out FOLDER`.

One mutant a class of the silicon sample (`--mutants` holds its `index.json` and `texts.json`), unmutated schedules, and every mutation of
the twins. Compiled without delays; a wait gives up after `WAIT` so that a deadlock ends.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from bench.verify.cases import CASES
from bench.verify.others.twins import MUTATIONS, TWINS, mutated
from bench.verify.sight import verdict_of
from bench.verify.silicon_build import build, folder_bytes
from bench.verify.silicon_sample import CONTROL, SHIPPED, Pick, add_shipped
from bench.verify.truth import judge

WAIT = 1_500_000_000
CONTROLS = ("gemm_deep", "gemm_pingpong", "attention_causal", "transpose_tiles", "gelu_one_role", "segment_mean", "gemm_multicast_m", "attention_mma_sync")


def main(argv: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="python -m bench.verify.others.sanitizer_build", description=__doc__)
    p.add_argument("--mutants", type=Path, required=True)
    p.add_argument("--silicon", type=Path, default=None, help="results of the silicon run: what was shown there comes first")
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--count", type=int, default=40)
    a = p.parse_args(argv)
    CASES.update(TWINS)
    add_shipped(SHIPPED)
    index, texts = json.loads((a.mutants / "index.json").read_text())["mutants"], json.loads((a.mutants / "texts.json").read_text())
    shown = {r["key"]: r["outcome"] for r in json.loads(a.silicon.read_text())["results"]} if a.silicon else {}
    picks = [_again(m, texts[m["key"]]) for m in _chosen(index, shown, a.count)] + twins()
    records = build(picks, a.out, 2, plain=WAIT)
    print(json.dumps(Counter(r["built"] for r in records)), f"{folder_bytes(a.out) / 2**20:.1f} MiB")
    return 0


def _chosen(index: list[dict[str, Any]], shown: dict[str, str], count: int) -> list[dict[str, Any]]:
    """Controls, then classes in turn: what is harmful first, and of that what was bad on silicon."""
    built = [m for m in index if m["built"] == "ok"]
    out = [m for m in built if m["cls"] == CONTROL and m["subject"] in CONTROLS]
    left = [m for m in built if m["cls"] != CONTROL]
    left.sort(key=lambda m: (m["truth"]["state"] != "harmful", shown.get(m["key"], "clean") == "clean"))
    used: Counter[str] = Counter()
    ranked = []
    for m in left:
        ranked.append((used[m["cls"]], m))
        used[m["cls"]] += 1
    ranked.sort(key=lambda item: item[0])
    return out + [m for _, m in ranked[:count]]


def _again(m: dict[str, Any], text: str) -> Pick:
    return Pick(m["key"], m["cls"], m["subject"], m["title"], text, tuple(m["lines"]), m["truth"], m["verdict"], tuple(m["codes"]), m["contract"], "sanitizer")


def twins() -> list[Pick]:
    """Every mutation of the twins that the language can say, with what verifier and simulator make of it."""
    out = []
    for kernel, mutations in MUTATIONS.items():
        for number, name in enumerate(["", *mutations]):
            text = mutated(kernel, name)
            if text is None:
                continue
            verdict, _ = verdict_of(text, kernel)
            codes = tuple(d.code for d in verdict.shown() if d.severity == "error")
            truth = judge(text, kernel).to_json()
            out.append(Pick(f"{kernel}/twin/{number}", "twin" if name else CONTROL, kernel, name, text, (), truth, verdict.verdict, codes, False, "twin"))
    return out


if __name__ == "__main__":
    sys.exit(main())

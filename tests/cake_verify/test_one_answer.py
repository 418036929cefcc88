"""The same text gets the same answer in every process: nothing that is told depends on the order of a set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ASK = """
import hashlib
from pathlib import Path
from cake_verify import verify_text
from cake_verify.rule import pages
texts = [p.failing for p in pages().values() if isinstance(p.failing, str)]
mla = Path("bench/verify/corpus/sparse_mla_gather.py").read_text("utf-8")
texts.append(mla.replace("kv[s].cols(256 * math.index, 256)", "kv[s].cols(0, 256)"))
for text in texts:
    told = [(d.code, d.message, d.span, d.related, d.trace, d.fixes) for d in verify_text(text).diagnostics]
    print(hashlib.sha256(repr(told).encode()).hexdigest()[:12], *[d[0] for d in told])
"""


def asked(seed: int) -> list[str]:
    env = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-c", ASK], cwd=ROOT, env=env, check=True, capture_output=True, text=True, timeout=300).stdout.splitlines()


def test_answers_do_not_depend_on_how_names_are_hashed() -> None:
    first = asked(1)
    assert len(first) > 100
    assert [asked(seed) for seed in (2, 3)] == [first, first]

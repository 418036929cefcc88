"""Emitted code is good code over the whole corpus: no name that nothing uses, no header, and one text whatever the process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import cake_kernels
from cake_backend.cuda.lower import lower
from cake_ir import parse, specialise
from cake_kernels import CorpusSchedule

ROOT = Path(__file__).resolve().parents[3]
CTYPES = r"(?:u8|u16|u32|u64|i8|i64|int|float|bool|TensorMap)"


@cache
def texts() -> dict[str, str]:
    """The emitted text of every schedule of the corpus, on the newest target that this build lowers it for."""
    sources: list[CorpusSchedule | Path] = [*cake_kernels.schedules(), *sorted((ROOT / "bench" / "verify" / "corpus").glob("*.py"))]
    out = {}
    for source in sources:
        text = source.text if isinstance(source, CorpusSchedule) else source.read_text("utf-8")
        name = f"{source.family}/{source.name}" if isinstance(source, CorpusSchedule) else source.stem
        for template in parse(text, name).schedules:
            target = next((t for t in ("sm_90a", "sm_89", "sm_80") if t in template.targets), None)
            program = specialise(template, {}, target).program if target else None
            if program is not None:
                out[f"{name}:{template.name}"] = lower(program, source=text).text
    return out


def plain(text: str) -> str:
    """The text without comments and strings."""
    return re.sub(r'"[^"\n]*"', '""', re.sub(r"//[^\n]*", "", text))


def declared(code: str) -> Iterator[str]:
    """Names that a text declares: functions, variables (several a line too), arrays, parameters of functions and of the kernel."""
    yield from re.findall(r"^(?:template <[^>]*> )?DEVICE [\w&* ]+? (\w+)\(", code, re.M)
    for statement in re.findall(rf"(?:^|[;{{(]) *(?:const )?{CTYPES} ((?:\w+(?:\[\w+\])?(?: = [^;]*?)?, )*\w+(?:\[[^\]]*\])?(?: = [^;]*)?);", code, re.M):
        depth, start, parts = 0, 0, []
        for i, c in enumerate(statement + ","):
            depth += (c in "([{?") - (c in ")]}:")
            if c == "," and depth == 0:
                parts.append(statement[start:i])
                start = i + 1
        yield from (m[0] for p in parts if (m := re.match(r" *(\w+)", p)) and (m := re.match(r"\w+", p.strip())))


def unused(text: str) -> list[str]:
    """Names that stand in a text once; the bytes of a tensor map are the driver's."""
    code = plain(text)
    return sorted({name for name in declared(code) if name != "opaque" and len(re.findall(rf"\b{name}\b", code)) < 2})


def test_the_reader_finds_a_name_that_nothing_uses() -> None:
    assert unused("DEVICE void f(int x) { }\nint a = 3, b = g(a, 2);\nu32 c[4];\nfor (int i = 0; i < b; ++i) { const u32 d = c[i]; }") == ["d", "f"]


def test_nothing_is_declared_that_nothing_uses() -> None:
    assert len(texts()) > 50
    found = {name: names for name, text in texts().items() if (names := unused(text))}
    assert not found


def test_every_parameter_of_a_kernel_is_used_or_names_a_fact_of_the_launch() -> None:
    """A stride, an extent or a tensor map that the kernel does not read would be a dead argument; scalars are the author's own."""
    found = {}
    for name, text in texts().items():
        code = plain(text)
        signature = re.search(r"^\w+\(([^{]*)\) \{", code[code.index('extern "C"') if 'extern "C"' in code else code.index("__global__") :], re.M)
        assert signature is not None, name
        params = [p.split()[-1].lstrip("*&") for p in signature[1].split(",") if p.strip()]
        dead = [p for p in params if ("_stride" in p or "_extent" in p or p.startswith("map")) and len(re.findall(rf"\b{p}\b", code)) < 2]
        if dead:
            found[name] = dead
    assert not found


def test_no_header_is_needed() -> None:
    assert not [name for name, text in texts().items() if "#include" in text or "std::" in text or "__half" in text or "__nv_bfloat16" in text]


def test_a_fresh_process_with_another_hash_seed_emits_the_same_texts() -> None:
    code = (
        "import hashlib, sys; sys.path.insert(0, sys.argv[1]); import test_emitted\n"
        "print(hashlib.sha256(repr(sorted(test_emitted.texts().items())).encode()).hexdigest())"
    )
    digests = set()
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run([sys.executable, "-c", code, str(Path(__file__).parent)], capture_output=True, text=True, cwd=ROOT, env=env, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        digests.add(done.stdout.strip())
    assert len(digests) == 1

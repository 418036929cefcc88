"""Forms through an assembler: NVRTC (which holds one) in one child process for all of them, or `ptxas` on the path."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cake_backend.executors.process import run_group
from cake_backend.toolchain.probe.forms import PROLOGUE, Form

_SAYS = re.compile(r"\b(?:error|warning|fatal)\s*:|\(C7\d\d\d\)")


class NoAssembler(RuntimeError):
    """Neither NVRTC nor the assembler that was asked for is installed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the assembler said to one form on one target: whether it took it, and its first message."""

    taken: bool
    message: str = ""

    @property
    def mark(self) -> str:
        """A, W (taken with a warning) or a dot, as the instruction table writes it."""
        return "." if not self.taken else "W" if self.message else "A"


def cuda_source(*forms: Form) -> str:
    """Kernels that hold one form each as inline PTX."""
    out = []
    for number, form in enumerate(forms):
        text = f"{{ {PROLOGUE} {form.text} }}".replace("%", "%%").replace('"', '\\"')
        out.append(f'extern "C" __global__ void __launch_bounds__({form.bounds}) k{number}() {{ asm volatile("{text}" ::: "memory"); }}\n')
    return "".join(out)


def ptx_source(form: Form, target: str) -> str:
    """A PTX module that holds the form."""
    threads, blocks = form.bounds.split(",")
    return (f".version 9.0\n.target {target}\n.address_size 64\n.visible .entry k()\n.maxntid {threads.strip()}, 1, 1\n.minnctapersm {blocks.strip()}\n"
            f"{{\n{PROLOGUE}\n{form.text}\nret;\n}}\n")  # fmt: skip


def assemble(questions: Sequence[tuple[Form, str]], *, believed: Sequence[bool] = (), ptxas: str | None = None, timeout: float = 600.0) -> list[Answer]:
    """The answers to (form, target) in order. `ptxas` names a program to use in place of NVRTC.

    Forms that are `believed` to be taken are tried together, all of one target in one compilation, and one by one only where the compiler
    says anything: most answers then cost nothing.
    """
    if ptxas:
        return _with_ptxas(questions, ptxas)
    answers: dict[int, Answer] = {}
    batches: dict[str, list[int]] = {}
    for number, (_, target) in enumerate(questions):
        if number < len(believed) and believed[number]:
            batches.setdefault(target, []).append(number)
    together = _with_nvrtc([(cuda_source(*(questions[n][0] for n in numbers)), target) for target, numbers in batches.items()], timeout)
    for numbers, answer in zip(batches.values(), together, strict=True):
        if answer.mark == "A":
            answers |= dict.fromkeys(numbers, answer)
    alone = [number for number in range(len(questions)) if number not in answers]
    found = _with_nvrtc([(cuda_source(questions[n][0]), questions[n][1]) for n in alone], timeout)
    answers |= dict(zip(alone, found, strict=True))
    return [answers[number] for number in range(len(questions))]


def _with_nvrtc(sources: Sequence[tuple[str, str]], timeout: float) -> list[Answer]:
    """Answers to texts of CUDA C++ for targets; a text that kills the compiler counts as rejected, and the rest goes on behind it."""
    answers: list[Answer] = []
    while len(answers) < len(sources):
        with tempfile.TemporaryDirectory(prefix="cake-probe-") as name:
            folder = Path(name)
            (folder / "questions.json").write_text(json.dumps(sources[len(answers) :]))
            ended = run_group([sys.executable, "-m", "cake_backend.toolchain.probe.assemble", name], timeout=timeout)
            kept = folder / "answers.jsonl"
            if not kept.exists():
                missing = "DynamicLibNotFound" in ended.output_tail or "ModuleNotFoundError" in ended.output_tail
                raise NoAssembler("no NVRTC is installed" if missing else f"the compiler's process ended with {ended.describe()}: {ended.output_tail[-300:]}")
            answers += [Answer(taken, _first(log)) for taken, log in map(json.loads, kept.read_text().splitlines())]
        if len(answers) < len(sources):
            answers.append(Answer(False, f"error: the compiler's process ended with {ended.describe()}"))
    return answers


def _with_ptxas(questions: Sequence[tuple[Form, str]], program: str) -> list[Answer]:
    found = shutil.which(program)
    if found is None:
        raise NoAssembler(f"there is no `{program}`")
    with tempfile.TemporaryDirectory(prefix="cake-probe-") as name:

        def one(number: int) -> Answer:
            form, target = questions[number]
            source = Path(name, f"{number}.ptx")
            source.write_text(ptx_source(form, target))
            done = subprocess.run([found, f"-arch={target}", str(source), "-o", "/dev/null"], capture_output=True, text=True, check=False)
            return Answer(done.returncode == 0, _first(done.stdout + done.stderr))

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(one, range(len(questions))))


def _first(log: str) -> str:
    """The first message that means something."""
    return next((" ".join(line.split())[:300] for line in log.splitlines() if _SAYS.search(line)), "")


def answer_folder(folder: Path) -> None:
    """The child: compile every question of the folder with NVRTC."""
    nvrtc: Any = importlib.import_module("cuda.bindings.nvrtc")  # a compiled module without stubs
    with (folder / "answers.jsonl").open("w") as out:
        for source, target in json.loads((folder / "questions.json").read_text()):
            status, program = nvrtc.nvrtcCreateProgram(source.encode(), b"form.cu", 0, [], [])
            if int(status) != 0:
                raise RuntimeError(f"nvrtcCreateProgram: {status!r}")
            (status,) = nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture={target}".encode()])
            _, size = nvrtc.nvrtcGetProgramLogSize(program)
            log = b" " * size
            nvrtc.nvrtcGetProgramLog(program, log)
            out.write(json.dumps((int(status) == 0, log.rstrip(b"\0 \n").decode(errors="replace"))) + "\n")
            out.flush()
            nvrtc.nvrtcDestroyProgram(program)


if __name__ == "__main__":
    answer_folder(Path(sys.argv[1]))

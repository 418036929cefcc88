"""Compiles `cake_ir` and `cake_verify` into one extension module: stage the rewritten text, write C with mypyc, compile and link it.

What the compiler refuses stays Python: its modules are left out, one round of errors after the other, so that no change to the packages can
break the build, only make it cover less.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cake_ir.native_finder import PACKAGES, library
from cake_verify.native.expand import expanded

LEFT_OUT = re.compile(
    r"__init__|cake_ir/(record|fact|fault|native|native_finder|native_support|scheduler|printer|json|markdown)\.py|cake_ir/targets/markdown\.py|cake_verify/native/|cake_verify/rules/(examples|texts|\w+/texts)\.py"
    r"|cake_verify/(proposals/|repair|many|porting|facts|explain)|cake_verify/analyses/(report_|slices|scale_places|grouped_rows)"
    r"|rules/consistency/d03[246]_|rules/consistency/d045_|rules/schedule/q004_"
)
"""Modules that are not compiled: packages, what the compiled form itself leans on, the exception that the lowering extends, and what no schedule that passes comes by."""
MYPY = ("--follow-imports=silent", "--python-version=3.11", *(f"--disable-error-code={code}" for code in ("arg-type", "attr-defined", "call-overload", "index", "type-var", "union-attr")))
"""What mypy says of these is no reason to leave a module out: the compiled code checks a value that its type does not promise, and raises `TypeError`."""
_WRITE_C = """
import json, sys
from mypyc.build import include_dir, mypycify
paths, where = json.loads(sys.stdin.read())
made = mypycify(paths, opt_level="1", debug_level="0", multi_file=True, group_name="cake", target_dir=where)
print("\\nMADE " + json.dumps([made[0].sources, [where, include_dir()]]))
"""
_AT = re.compile(r"^(cake_\w+/[\w/]+\.py):\d+: (?:error|\w*Error)", re.MULTILINE)
_ROUNDS = 12


class BuildError(Exception):
    """Why there is no compiled form."""


@dataclass(frozen=True)
class Built:
    """What a build made: the modules inside, those that the compiler refused, and seconds of each step."""

    modules: tuple[str, ...]
    refused: tuple[str, ...]
    seconds: dict[str, float]


def build(root: Path, work: Path, folder: Path, mypyc: str = sys.executable, jobs: int = 2, say: Callable[[str], object] = print) -> Built:
    """Compile the packages below `root` into `folder`, with what lies between in `work`; `mypyc` is an interpreter that has mypy."""
    begun = time.perf_counter()
    paths = _stage(root, work)
    kept, sources, include = _c(paths, work, mypyc, say)
    written = time.perf_counter()
    say(f"{len(kept)} modules as C after {written - begun:.0f} s, {len(sources)} files to compile")
    folder.mkdir(parents=True, exist_ok=True)
    _compile([work / s for s in sources], [str(work / i) for i in include], library(folder), jobs)
    modules = tuple(path[: -len(".py")].replace("/", ".") for path in kept)
    return Built(modules, tuple(sorted(set(paths) - set(kept))), {"c": written - begun, "compiler": time.perf_counter() - written})


def _stage(root: Path, work: Path) -> list[str]:
    """Write the packages below `work`, rewritten where they are compiled; the paths of those."""
    paths = []
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            text = path.read_text("utf-8")
            if not LEFT_OUT.search(name):
                text = expanded(text)
                paths.append(name)
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text, "utf-8")
    return paths


def _c(paths: list[str], work: Path, mypyc: str, say: Callable[[str], object]) -> tuple[list[str], list[str], list[str]]:
    """The modules that the compiler takes, and their C with the folders of its headers."""
    kept = list(paths)
    for _ in range(_ROUNDS):
        asked = json.dumps([[*MYPY, *kept], "c"])
        done = subprocess.run([mypyc, "-c", _WRITE_C], input=asked, cwd=work, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        if done.returncode == 0 and "\nMADE " in said:
            sources, include = json.loads(said.split("\nMADE ")[1].splitlines()[0])
            return kept, sources, include
        refused = set(_AT.findall(said)) & set(kept)
        if not refused:
            raise BuildError(f"mypyc ended with {done.returncode}: {said.strip()[-2000:]}")
        say(f"left in Python: {', '.join(sorted(refused))}")
        kept = [p for p in kept if p not in refused]
    raise BuildError(f"mypyc refuses more modules after {_ROUNDS} rounds")


def _compile(sources: list[Path], include: list[str], to: Path, jobs: int) -> None:
    """Compile what changed and link, as many files at once as `jobs`."""
    cc = shlex.split(sysconfig.get_config_var("CC") or "cc")
    flags = ["-O1", "-fPIC", "-fwrapv", "-DNDEBUG", "-w", f"-I{sysconfig.get_paths()['include']}", *(f"-I{i}" for i in include)]

    headers = max((h.stat().st_mtime for i in include for h in Path(i).glob("*.h")), default=0.0)

    def one(source: Path) -> Path:
        made = source.with_suffix(".o")
        if made.exists() and made.stat().st_mtime > max(headers, source.stat().st_mtime):
            return made  # of an earlier build in the same folder; mypyc leaves a file alone that would stay the same
        _run([*cc, *flags, "-c", str(source), "-o", str(made)])
        return made

    with ThreadPoolExecutor(jobs) as pool:
        objects = list(pool.map(one, sources))
    listed = to.with_suffix(".objects")
    listed.write_text("\n".join(map(str, objects)), "utf-8")
    try:
        _run([*cc, "-shared", "-s", f"@{listed}", "-o", str(to)])
    finally:
        listed.unlink()


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as e:
        raise BuildError(f"no C compiler: {e}") from e
    if done.returncode:
        raise BuildError(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")


__all__ = ["BuildError", "Built", "build"]

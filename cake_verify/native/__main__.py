"""Compile the verifier: a verdict takes two thirds of the time, and is the same to the last word or nothing is installed.

    python -m cake_verify.native [--jobs N] [--mypyc PYTHON] [--work FOLDER]    build, compare, install
    python -m cake_verify.native --show | --remove

Needs mypy 2.4 or newer with setuptools, in this interpreter or in another one of the same version (`--mypyc`), a C compiler, and some three
minutes of two cores. After any change to a file of `cake_ir` or `cake_verify` the Python runs again until the next build.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

from cake_ir import native
from cake_ir.native_finder import ROOT, library, read, stamp
from cake_verify.native.build import BuildError, build

FOLDER, TRIAL = Path(native.FOLDER), Path(native.TRIAL)


def _answers(wanted: str) -> list[str]:
    """What the form that `CAKE_NATIVE` asks for says: its name, then a line a text."""
    env = {**os.environ, "CAKE_NATIVE": wanted, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", "")))), "PYTHONHASHSEED": "0"}
    done = subprocess.run([sys.executable, "-m", "cake_verify.native.same", str(ROOT)], env=env, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else [f"ended with {done.returncode}: {done.stderr.strip()[-2000:]}"]


def _install(options: argparse.Namespace, work: Path) -> int:
    before = stamp(ROOT)
    built = build(ROOT, work, TRIAL, options.mypyc, options.jobs, lambda line: print(line, flush=True))
    record = {**before, "modules": built.modules, "refused": built.refused, "library": sha256(library(TRIAL).read_bytes()).hexdigest()}
    (TRIAL / native.RECORD).write_text(json.dumps(record), "utf-8")
    print(f"compiled in {built.seconds['compiler']:.0f} s, {library(TRIAL).stat().st_size / 1e6:.1f} MB; asking both forms", flush=True)
    begun = time.perf_counter()
    (form, *python), (other, *compiled) = _answers("0"), _answers("trial")
    if (form, other) != ("python", "native"):
        print(f"the two forms could not be asked, nothing is installed: {form}; {other}")
        return 1
    differing = [f"  {a}\n  {b}" for a, b in zip_longest(python, compiled) if a != b]
    if differing:
        print(f"the compiled form answers {len(differing)} of {len(python)} texts otherwise, nothing is installed:", *differing[:20], sep="\n")
        return 1
    shutil.rmtree(FOLDER, ignore_errors=True)
    TRIAL.rename(FOLDER)
    print(f"{len(python)} texts, the same answers to the last word ({time.perf_counter() - begun:.0f} s); installed in {FOLDER}")
    return 0


def main() -> int:
    """Build, show or remove the compiled form."""
    parser = argparse.ArgumentParser(prog="python -m cake_verify.native", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--mypyc", default=sys.executable, metavar="PYTHON", help="an interpreter that has mypy and setuptools")
    parser.add_argument("--work", type=Path, default=None, help="where the C goes, and stays; a temporary folder otherwise")
    parser.add_argument("--show", action="store_true", help="say which form runs")
    parser.add_argument("--remove", action="store_true", help="remove what was built")
    options = parser.parse_args()
    if options.remove:
        shutil.rmtree(FOLDER, ignore_errors=True)
        return 0
    if options.show:
        record, reason = read()
        print(reason or f"native: {len(record['modules'])} modules compiled, {len(record['refused'])} refused by the compiler and left in Python: {', '.join(record['refused']) or 'none'}")
        return 0
    try:
        if options.work is not None:
            options.work.mkdir(parents=True, exist_ok=True)
            return _install(options, options.work.resolve())
        with tempfile.TemporaryDirectory(prefix="cake-native-") as work:
            return _install(options, Path(work))
    except BuildError as e:
        print(f"nothing was built: {e}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(TRIAL, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

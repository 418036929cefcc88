"""Which form of `cake_ir` and `cake_verify` runs: their Python, or what was compiled of it where that was built from exactly these files.

`python -m cake_verify.native` compiles most modules of both packages into one extension module in the folder `_native` and writes beside it
what it was built from: the interpreter, and the hash of every file of both packages. `cake_ir.native_finder` stands in front of Python's own finders only
where all of that still holds, to the last byte of the last file. Otherwise, and where nothing was built or `CAKE_NATIVE=0` is set, it is not there
at all, and the Python files run as if there were no other form: slower, with the same verdicts. Who has built nothing pays one look at a folder.
"""

from __future__ import annotations

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(_HERE, "_native")
TRIAL = os.path.join(_HERE, "_native_trial")
"""Where a build lies until it has answered as the Python does; taken only with `CAKE_NATIVE=trial`."""
RECORD = "built.json"
"""What a build was made from, in its folder."""
_taken: list[str] = []


def form() -> str:
    """Which form of the verifier runs in this process."""
    return "native" if _taken else "python"


def install() -> None:
    """Put the compiled form in front where there is one of exactly these files; say on stderr that a stale one is left alone."""
    wanted = os.environ.get("CAKE_NATIVE", "")
    folder = TRIAL if wanted == "trial" else FOLDER
    if wanted == "0" or not os.path.exists(os.path.join(folder, RECORD)):
        return
    from cake_ir.native_finder import take

    reason = take(folder)
    if reason:
        print(f"cake: the compiled verifier is not used: {reason}; `python -m cake_verify.native` builds it again", file=sys.stderr)
    else:
        _taken.append(folder)

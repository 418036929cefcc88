"""`cake COMMAND`: dispatched by hand, because `cake verify` must start without importing what the others need."""

import gc
import importlib
import sys
from collections.abc import Sequence

COMMANDS = {
    "verify": "prove schedules safe, or say what is wrong and where; needs no workspace",
    "run": "compile a schedule and judge it, on a GPU or in the simulator",
    "rank": "order schedules by predicted time",
    "tune": "search parameter variants: verify, rank, compile, and time the survivors within a GPU budget",
    "explain": "print the page of a diagnostic code",
    "review": "list, show, approve or reject what was proposed (people only)",
    "doctor": "say what this machine can do, and what Cake does instead",
    "init": "make a workspace",
    "serve": "run the MCP server",
}

BAD_USAGE = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit status. Bad usage is 3 everywhere."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_usage())
        return 0 if arguments else BAD_USAGE
    if arguments[0] in ("-V", "--version"):
        from .. import __version__

        print(f"cake {__version__}")
        return 0
    name = arguments[0]
    if name not in COMMANDS:
        from difflib import get_close_matches

        near = get_close_matches(name, COMMANDS, n=1)
        offer = f"; did you mean `{near[0]}`?" if near else ""
        print(f"cake: no command `{name[:40]}`{offer}\n\n{_usage()}", file=sys.stderr)
        return BAD_USAGE
    once = name == "verify" and argv is None
    if once:
        gc.disable()  # a process that lives for one answer: nothing that it makes is worth looking for, least of all on the way out
    try:
        return importlib.import_module(f".{name}", __name__).main(arguments[1:])
    except BrokenPipeError:  # the reader has seen enough
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
    finally:
        if once:
            gc.freeze()


def _usage() -> str:
    width = max(map(len, COMMANDS))
    lines = "\n".join(f"  {name:<{width}}  {what}" for name, what in COMMANDS.items())
    return f"usage: cake COMMAND ...   (cake COMMAND --help says more)\n\n{lines}"

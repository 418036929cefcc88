"""``python -m cake_ir.targets --markdown``: print the page of targets."""

from __future__ import annotations

import sys

from cake_ir.targets.markdown import page


def main(arguments: list[str]) -> int:
    """Print the page; 2 for anything but ``--markdown``."""
    if arguments != ["--markdown"]:
        print("usage: python -m cake_ir.targets --markdown", file=sys.stderr)
        return 2
    sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

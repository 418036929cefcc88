"""`python -m cake_mcp COMMAND`: the same as `cake COMMAND`."""

import sys

from .cli import main

sys.exit(main())

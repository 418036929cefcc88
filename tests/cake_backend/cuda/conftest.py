"""The tests of this folder share `corpus` and `emulate`, which are modules beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

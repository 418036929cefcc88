"""The tests of this folder share `sim_cases`, `sim_schedules` and `sim_seeded`, which are modules beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

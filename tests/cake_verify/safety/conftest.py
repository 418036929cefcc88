"""Makes the schedules and seeds of this folder, and the benchmark's corpus, importable."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[3])]

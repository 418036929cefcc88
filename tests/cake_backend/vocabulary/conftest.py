"""The tests of this folder share a table of programs, and the emulator of the lowering's tests."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cuda")]

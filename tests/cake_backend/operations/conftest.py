"""The tests of this folder take one operation through every reading; they share `vertical` and the emulator of the lowering's tests."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cuda")]

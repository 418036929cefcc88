"""Compilation of generated CUDA C++ to a cubin, and reading of what the assembler said about it.

Nothing here needs a GPU or a driver: NVRTC comes from a wheel and runs in a child process with a time limit.
Only cubins leave this package, never PTX, because a driver refuses PTX that is newer than itself.
"""

from cake_backend.toolchain.build import Build, Remark, Resources
from cake_backend.toolchain.compile import compile_cuda, nvrtc_version

__all__ = ["Build", "Remark", "Resources", "compile_cuda", "nvrtc_version"]

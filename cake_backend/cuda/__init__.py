"""Lowering: a program becomes CUDA C++ with inline PTX that NVRTC takes without a single header."""

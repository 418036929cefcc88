"""Lowering: a program becomes CUDA C++ with inline PTX that NVRTC takes without a single header.

`lower.lower(program)` is the entrance. What the text looks like:

- Device functions come first, each wrapping one instruction or one conversion, and only those that are used.
- Names are the author's wherever C++ allows; what lowering adds inside a statement ends in an underscore.
- Every line of the kernel carries the line of the schedule it comes from; the first of a run quotes it.
- A slot is its ring's running count: index `n % stages`, phase `n / stages & 1`.
- A fragment is a register array in the element order of `cake_ir.forms`; loops over it have constant bounds and are unrolled.
- Rounding is explicit: `__fmaf_rn` and `__fmul_rn` keep the compiler from fusing what the language does not fuse.
- Waits never spin for ever (`mbarrier`), and registers are pinned where the assembler would otherwise serialise wgmma (`pins`, `inflight`).
"""

"""Which instruction forms the assembler takes for each target, derived again on this machine and compared with the tables of `cake_ir.targets`.

`python -m cake_backend.toolchain.probe` prints the disagreements; `make probe` does that. NVRTC is enough, `ptxas` is used where asked for.
"""

"""What other tools find: compute-sanitizer on mutants of the silicon sample, Triton's concurrency sanitizer on kernels ported to Gluon."""

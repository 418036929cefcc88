"""The only code that talks to the CUDA driver: a thin module over `cuda.bindings.driver`, used by the worker and by `bench/`.

It interprets the concrete launches that `cake_backend.binding.bind` makes and knows nothing of tasks, schedules or verdicts.
Allowed imports: the standard library, NumPy, `cuda.bindings`.
"""

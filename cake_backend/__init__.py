"""What makes a schedule run: lowering, compilation, simulation, prediction and judging.

Nothing is imported here: the worker process that owns the GPU imports this package too and must stay light.
"""

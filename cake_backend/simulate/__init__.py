"""The simulator: a program executed on NumPy, on a machine that keeps the state the hardware keeps.

Barriers have a pending count, transaction bytes and a parity bit; shared memory is bytes; agents are warps; copies and matrix
multiplications complete when the interleaving policy says so. It shares the walk with the verifier and nothing else.
"""

from cake_backend.simulate.faults import MEANING
from cake_backend.simulate.policies import Policy, adversaries, policy_named
from cake_backend.simulate.run import SimResult, simulate

__all__ = ["MEANING", "Policy", "SimResult", "adversaries", "policy_named", "simulate"]

"""Settings for the whole suite."""

import os

# Before NumPy is imported: its matrix products would start a thread a core, and several test processes share few cores.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# The suite is about these files, and some tests put other functions in the place of theirs; what was compiled of them has a test of its own.
os.environ.setdefault("CAKE_NATIVE", "0")

# Tests start some hundred processes of ours: what the first of them compiles is there for the others.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from hypothesis import HealthCheck, settings  # noqa: E402 - after the settings that NumPy reads

# Machines that run this are small and shared: time says nothing about a property. CI draws the same examples every time.
settings.register_profile("cake", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ)
settings.load_profile("cake")

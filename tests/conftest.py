"""Settings for the whole suite."""

import os

from hypothesis import HealthCheck, settings

# Machines that run this are small and shared: time says nothing about a property. CI draws the same examples every time.
settings.register_profile("cake", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ)
settings.load_profile("cake")

"""How property tests choose their examples.

The ordinary run takes the same ones every time; `just explore` looks for new ones. Time decides
nothing: neither a deadline nor the check for slow generation.
"""

from hypothesis import HealthCheck, settings

COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "database": None}

settings.register_profile("ordinary", max_examples=50, derandomize=True, **COMMON)
settings.register_profile("explore", max_examples=2000, print_blob=True, **COMMON)
settings.load_profile("ordinary")

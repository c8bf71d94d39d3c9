"""Optimal decision trees for survival, classification, regression and treatment policies.

Start with ``OptimalSurvivalTree``. Data sets are in ``datasets``, metrics in ``metrics`` and
cross-validation in ``tune``. Names are imported when they are first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

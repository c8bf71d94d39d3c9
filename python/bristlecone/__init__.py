"""Optimal and soft survival trees.

The public names are those of the stub beside this file. Each is imported when it is first used, so
the command line starts quickly.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

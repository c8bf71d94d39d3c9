"""Cross-validation: choose the size of a tree, and compare models.

``TreeSizeCV`` chooses the number of leaves by cross-validation, with one search per fold.
``evaluate`` compares estimators over the same folds.
"""

from bristlecone.tune._compare import evaluate
from bristlecone.tune._size import TreeSizeCV

__all__ = ["TreeSizeCV", "evaluate"]

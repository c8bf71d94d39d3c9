"""The least objective of a tree over binary features, by trying every tree."""

import numpy as np


def least_objective(
    features, leaf_loss, *, max_depth, min_samples_leaf=1, leaf_penalty=0, leaves=None, price=None
):
    """Smallest sum of leaf losses, penalties and prices of splits.

    ``leaf_loss(rows)`` is the loss of a leaf with these rows (an index array), ``price(asked, f)``
    the price of feature f per row after the features ``asked``.
    """
    features = np.asarray(features, dtype=bool)

    def best(rows, depth, leaves, asked):
        if len(rows) < min_samples_leaf:
            return np.inf
        found = leaf_loss(rows) + leaf_penalty
        if depth == 0 or leaves == 1:
            return found
        shares = [(None, None)] if leaves is None else [(k, leaves - k) for k in range(1, leaves)]
        for f in range(features.shape[1]):
            yes, no = rows[features[rows, f]], rows[~features[rows, f]]
            if not len(yes) or not len(no):
                continue
            paid = 0 if price is None else len(rows) * price(asked, f)
            for left, right in shares:
                below = best(yes, depth - 1, left, (*asked, f))
                below += best(no, depth - 1, right, (*asked, f))
                found = min(found, paid + below)
        return found

    return best(np.arange(len(features)), max_depth, leaves, ())

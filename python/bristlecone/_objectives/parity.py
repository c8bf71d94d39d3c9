"""Fairness: limits on the differences between groups, and a penalty."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from bristlecone._data.checks import check_real
from bristlecone._data.groups import Groups, check_groups
from bristlecone._types import Bools
from bristlecone.exceptions import InvalidParameterError


class Fairness(BaseEstimator):
    """Base of the values of the parameter ``fairness``."""

    sensitive_feature: str | int | None

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self.get_params() == other.get_params())


def groups_of(
    fairness: Fairness, X: Any, sensitive_features: Any, kept: Bools | None, most: int = 2
) -> Groups:
    """The groups of the kept rows, limited in number: given to ``fit``, or a column."""
    why = "fairness" if most == 2 else type(fairness).__name__
    groups = check_groups(X, sensitive_features, fairness.sensitive_feature, kept, why, most)
    if groups is None:
        raise ValueError(
            "fairness needs groups: pass sensitive_features to fit, or set "
            "fairness.sensitive_feature"
        )
    return groups


class GroupConstraint(Fairness):
    """Limit on the difference between groups; a subclass defines the quantity."""

    # Largest allowed limit; that of a share.
    _most: ClassVar[float] = 1.0

    def __init__(self, limit: float, *, sensitive_feature: str | int | None = None) -> None:
        self.limit = limit
        self.sensitive_feature = sensitive_feature

    def _check_parameters(self) -> None:
        """Raise InvalidParameterError for parameters that are not accepted."""
        check_real("fairness.limit", self.limit, 0.0)
        if self.limit > self._most:
            raise InvalidParameterError(
                f"fairness.limit must be at most {self._most:g}; got {self.limit!r}"
            )


class DemographicParity(GroupConstraint):
    """Demographic parity: limit on the difference in positive prediction rates between groups.

    For :class:`~bristlecone.FairTreeClassifier`. The limit holds between any two of up to six
    groups.

    Parameters
    ----------
    limit : float
        Largest difference, between 0 and 1.
    sensitive_feature : str, int or None, default=None
        Column of ``X``, by name or position, with one value per group. None: pass the groups to
        ``fit`` as ``sensitive_features``. The column stays a feature; for a tree that cannot split
        on it, pass the groups to ``fit`` and leave the column out of ``X``.

    See Also
    --------
    EqualityOfOpportunity : Compares only rows of the positive class.
    EqualizedOdds : Compares the rows of each class.

    Examples
    --------
    >>> from bristlecone import DemographicParity, FairTreeClassifier
    >>> X, y = [[0], [0], [1], [1]], [0, 1, 1, 1]
    >>> tree = FairTreeClassifier(fairness=DemographicParity(0.0), min_samples_leaf=1)
    >>> tree.fit(X, y, sensitive_features=["a", "b", "a", "b"]).group_rates_.tolist()
    [1.0, 1.0]
    """


class EqualityOfOpportunity(GroupConstraint):
    """Equality of opportunity: limit on the difference in true positive rates between groups.

    For :class:`~bristlecone.FairTreeClassifier`. The limit holds between any two of up to six
    groups.

    Parameters
    ----------
    limit : float
        Largest difference, between 0 and 1.
    sensitive_feature : str, int or None, default=None
        Column of ``X``, by name or position, with one value per group. None: pass the groups to
        ``fit`` as ``sensitive_features``. The column stays a feature; for a tree that cannot split
        on it, pass the groups to ``fit`` and leave the column out of ``X``.

    See Also
    --------
    DemographicParity : Compares all rows.
    EqualizedOdds : Also limits the false positive rates.

    Examples
    --------
    >>> from bristlecone import EqualityOfOpportunity, FairTreeClassifier
    >>> X, y = [[0], [0], [1], [1]], [1, 1, 1, 0]
    >>> tree = FairTreeClassifier(fairness=EqualityOfOpportunity(0.0), min_samples_leaf=1)
    >>> tree.fit(X, y, sensitive_features=["a", "b", "a", "b"]).group_rates_.tolist()
    [1.0, 1.0]
    """


class EqualizedOdds(GroupConstraint):
    """Equalized odds: limit on the differences in true and false positive rates between groups.

    For :class:`~bristlecone.FairTreeClassifier`. The limit holds for both rates, between any two of
    up to four groups (Hardt, Price and Srebro, "Equality of opportunity in supervised learning",
    NeurIPS 2016).

    Parameters
    ----------
    limit : float
        Largest difference of either rate, between 0 and 1.
    sensitive_feature : str, int or None, default=None
        Column of ``X``, by name or position, with one value per group. None: pass the groups to
        ``fit`` as ``sensitive_features``. The column stays a feature; for a tree that cannot split
        on it, pass the groups to ``fit`` and leave the column out of ``X``.

    See Also
    --------
    EqualityOfOpportunity : Only limits the true positive rates.

    Examples
    --------
    >>> from bristlecone import EqualizedOdds, FairTreeClassifier
    >>> X, y = [[0], [1], [0], [1]], [0, 1, 0, 1]
    >>> tree = FairTreeClassifier(fairness=EqualizedOdds(0.0), min_samples_leaf=1)
    >>> tree.fit(X, y, sensitive_features=["a", "a", "b", "b"]).group_rates_.tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """


class RmstParity(GroupConstraint):
    """Limit on the difference in restricted mean survival time (RMST) between two groups.

    For :class:`~bristlecone.OptimalSurvivalTree`. Let μ = ∫₀^τ S be the restricted mean of the
    predicted curve of a leaf, and M_g the mean of μ over the training rows of group g. A tree is
    allowed if ``|M₁ − M₀| ≤ limit``. The limit applies to the predictions for the groups as a
    whole; outcomes within a leaf may differ.

    Parameters
    ----------
    limit : float
        Largest difference, in the unit of time; 0 requires equal means.
    tau : float or None, default=None
        End τ of the integral, in the unit of time; None is the last training time.
    sensitive_feature : str, int or None, default=None
        Column of ``X``, by name or position, with one value per group. None: pass the groups to
        ``fit`` as ``sensitive_features``. The column stays a feature; for a tree that cannot split
        on it, pass the groups to ``fit`` and leave the column out of ``X``.

    See Also
    --------
    DemographicParity, EqualityOfOpportunity, EqualizedOdds : Limits for classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from bristlecone import OptimalSurvivalTree, RmstParity
    >>> X = np.array([[0], [0], [1], [1]], dtype=bool)
    >>> event, time = np.array([True, True, True, False]), np.array([1.0, 2.0, 5.0, 6.0])
    >>> tree = OptimalSurvivalTree(
    ...     max_depth=1, min_events_leaf=None, prior=0, fairness=RmstParity(0.5)
    ... )
    >>> tree.fit(X, (event, time), sensitive_features=["a", "b", "a", "b"]).n_leaves_
    2
    >>> tree.fit(X, (event, time), sensitive_features=["a", "a", "b", "b"]).n_leaves_
    1
    """

    _most = np.inf

    def __init__(
        self, limit: float, *, tau: float | None = None, sensitive_feature: str | int | None = None
    ) -> None:
        super().__init__(limit, sensitive_feature=sensitive_feature)
        self.tau = tau

    def _check_parameters(self) -> None:
        """Raise InvalidParameterError for parameters that are not accepted."""
        super()._check_parameters()
        check_real("fairness.tau", self.tau, 0.0, optional=True)
        if self.tau is not None and not self.tau > 0:
            raise InvalidParameterError(f"fairness.tau must be positive; got {self.tau!r}")


class CurveParity(Fairness):
    """Penalty on the distance between the survival curves of two groups.

    For :class:`~bristlecone.SoftSurvivalTree`. The penalty is ρ in the objective of Consolo, Amaldi
    and Carrizosa (EJOR 2026, eq. 4). It multiplies ∫ (S_i − S_j)² dt, summed over the pairs of rows
    i and j of different groups.

    Parameters
    ----------
    penalty : float
        Penalty ρ. It multiplies a sum over pairs of rows, so a multiple of one over the product of
        the group sizes is a good start. With 0 the distance is only reported.
    sensitive_feature : str, int or None, default=None
        Column of ``X``, by name or position, with one value per group. None: pass the groups to
        ``fit`` as ``sensitive_features``. The column stays a feature; for a tree that cannot use
        it, pass the groups to ``fit`` and leave the column out of ``X``.

    See Also
    --------
    RmstParity : A limit, for OptimalSurvivalTree.

    Examples
    --------
    >>> import numpy as np
    >>> from bristlecone import SoftSurvivalTree
    >>> from bristlecone import CurveParity
    >>> rng = np.random.default_rng(0)
    >>> X, group = rng.normal(size=(200, 1)), np.arange(200) % 2
    >>> y = np.ones(200, bool), rng.exponential(size=200) * (1 + group)
    >>> tree = SoftSurvivalTree(depth=1, fairness=CurveParity(0.001), random_state=0)
    >>> bool(tree.fit(X, y, sensitive_features=group).fairness_distance_ >= 0)
    True
    """

    def __init__(self, penalty: float, *, sensitive_feature: str | int | None = None) -> None:
        self.penalty = penalty
        self.sensitive_feature = sensitive_feature

    def _check_parameters(self) -> None:
        """Raise InvalidParameterError for parameters that are not accepted."""
        check_real("fairness.penalty", self.penalty, 0.0)

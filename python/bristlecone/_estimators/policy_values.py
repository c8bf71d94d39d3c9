"""Value of a policy: estimated rewards, values with their errors, held-out scores."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import deepcopy
from numbers import Real
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.arrays import unmasked
from bristlecone._data.checks import check_confidence
from bristlecone._data.frame import native_frame
from bristlecone._data.outcomes import as_structured, check_survival
from bristlecone._data.rows import check_row_labels, check_sample_weight, row_count, take_rows
from bristlecone._data.targets import LabelledData, check_labelled_data, known_codes
from bristlecone._estimators.base import BaseTree, unfitted
from bristlecone._leaves.policies import comparison, covariance_of_mean
from bristlecone._rewards.estimate import NO_LATE_ROWS, EstimatedRewards, Estimation, prepare
from bristlecone._teacher.folds import folds_of, naming
from bristlecone._teacher.lesson import parameters_of_fit, seed_of
from bristlecone._teacher.members import design_of
from bristlecone._types import Bools, Integers
from bristlecone.exceptions import BristleconeWarning, InfeasibleError, InvalidParameterError


class Treated(NamedTuple):
    """Rows whose treatment and outcome are known, as ``fit`` takes them."""

    X: Any
    y: Any
    sample_weight: Any
    treatment: Any
    propensity: Any
    predicted_outcomes: Any


class PolicyValues(BaseTree):
    """Rewards of rows, and the value of a fitted policy on them."""

    leaves_: Any

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        treatment: ArrayLike,
        propensity: ArrayLike | Mapping[Any, float] | None = None,
        predicted_outcomes: ArrayLike | None = None,
    ) -> float:
        """Estimated mean outcome of the policy for rows whose treatment and outcome are known.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        y : array-like of float, shape (n,), or outcome
            Outcomes, higher is better; with ``horizon`` times and events, as in ``fit``.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative.
        treatment : array-like, shape (n,)
            Treatment that every row had, all among ``treatments_``.
        propensity, predicted_outcomes : array-like of float, optional
            As in ``fit``, with one column per treatment of ``treatments_``.

        Returns
        -------
        float
            The estimate of ``reward`` at the time of the fit; on the training rows,
            ``policy_value_``.

        Raises
        ------
        ValueError
            If a treatment is not among ``treatments_``, and as in ``fit``.
        """
        leaves, leaf = self._located(X)
        given = Treated(X, y, sample_weight, treatment, propensity, predicted_outcomes)
        rewards = self._rewards_of(given)
        kept = rewards.treatment >= 0
        prescribed = rewards.rewards[np.arange(len(leaf)), leaves.label[leaf]]
        weight = check_sample_weight(sample_weight, len(leaf))
        weight = None if weight is None else weight[kept]
        return float(np.average(prescribed[kept], weights=weight))

    def estimate_rewards(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        treatment: ArrayLike,
        propensity: ArrayLike | Mapping[Any, float] | None = None,
        predicted_outcomes: ArrayLike | None = None,
    ) -> EstimatedRewards:
        """Estimate the rewards of every row under every treatment, as ``fit`` does.

        Parameters
        ----------
        X, y, sample_weight, treatment, propensity, predicted_outcomes
            As in ``fit``.

        Returns
        -------
        EstimatedRewards
            Rewards, propensity scores and predicted outcomes. They depend only on the parameters
            and these rows, not on a fitted tree.

        Raises
        ------
        ValueError, TypeError
            As in ``fit``.

        Warns
        -----
        OverlapWarning
            As in ``fit``.
        """
        self._check_parameters()
        given = Treated(X, y, sample_weight, treatment, propensity, predicted_outcomes)
        rows = self._checked(given)
        found = prepare(self._estimation(), rows, y, propensity, predicted_outcomes)
        return found.estimates.spread(rows.kept)

    def policy_table(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        treatment: ArrayLike | None = None,
        propensity: ArrayLike | Mapping[Any, float] | None = None,
        predicted_outcomes: ArrayLike | None = None,
        cross_fit: bool = False,
        confidence: float = 0.95,
    ) -> Any:
        """Compare the policy with other policies, with standard errors and intervals.

        If you pass no rows, the table refers to the training rows and is too optimistic, because
        the policy was chosen on them. For an unbiased estimate, pass rows that were not used in the
        fit, or pass the training rows with ``cross_fit=True``.

        Parameters
        ----------
        X, y, sample_weight, treatment, propensity, predicted_outcomes
            As in ``fit``, all by row; rewards are estimated from these rows as in ``fit``.
        cross_fit : bool, default=False
            If True, the value is estimated by five-fold cross-fitting: each row is assigned the
            treatment that a tree fitted to the other folds prescribes. The values then describe the
            procedure, not this particular tree.
        confidence : float, default=0.95
            Confidence level of the intervals (normal approximation).

        Returns
        -------
        DataFrame
            From the library of ``X`` in ``fit``, or pandas. A row for this policy ("policy"), for
            each treatment given to everyone ("always ..."), and for treatments drawn with equal
            probabilities ("at random"). The columns are ``policy``; ``value``, the mean reward;
            ``gain``, the value of this policy minus that of the row; for both the standard error
            (``_error``) and the limits (``_lower``, ``_upper``); and ``rows``, the rows that were
            used ("training rows, optimistic", "cross-fitted", ...). The best single treatment is
            the row "always ..." with the greatest value.

        Raises
        ------
        ValueError, TypeError
            If only some of the rows' values are passed, a treatment is not among ``treatments_``,
            and as in ``fit``.
        NotFittedError, InfeasibleError
            If there is no tree, or none keeps the capacities in a fold.

        Notes
        -----
        The error of a mean is the standard deviation of its rows over the square root of their
        number, with row weights by the sandwich Σ w² (Γ − mean)² / (Σ w)². The estimates of
        propensity scores and outcomes are treated as known; doubly robust rewards have the same
        error as with the true ones if both models are good enough [Athey2021]_. The table does not
        show that the treatment causes the outcomes: this needs a trial, or data in which all common
        causes of treatment and outcome are columns.

        References
        ----------
        .. [Athey2021] Athey and Wager, "Policy Learning with Observational Data", Econometrica 89,
            2021.

        Examples
        --------
        >>> from bristlecone import PolicyTree
        >>> X, outcome = [[0], [0], [1], [1]], [1.0, 0.0, 0.0, 1.0]
        >>> tree = PolicyTree(reward="inverse-propensity", max_depth=1)
        >>> tree = tree.fit(X, outcome, treatment=["a", "b", "a", "b"], propensity=[0.5] * 4)
        >>> tree.policy_table()[["policy", "value", "gain"]].values.tolist()[1:3]
        [['always a', 0.5, 0.5], ['always b', 0.5, 0.5]]
        """
        self._check_fitted()
        check_confidence(confidence)
        leaves = self.leaves_
        given = Treated(X, y, sample_weight, treatment, propensity, predicted_outcomes)
        lacking = [name for name in ("X", "y", "treatment") if getattr(given, name) is None]
        if len(lacking) == 3:
            if cross_fit or any(values is not None for values in given):
                raise InvalidParameterError(
                    "cross_fit, sample_weight, propensity and predicted_outcomes need rows; pass "
                    "X, y and treatment"
                )
            values, covariance = leaves.values_of_policies(self.tree_), leaves.whole
            n, rows = int(self.tree_.n_node_samples[0]), "training rows, optimistic"
            if self.certificate_.status == "reestimated":
                rows = "rows of the leaves"
        elif lacking:
            raise InvalidParameterError(
                f"policy_table needs X, y and treatment together; {lacking[0]} is missing"
            )
        else:
            found = self._rewards_of(given)
            kept = found.treatment >= 0
            weight = check_sample_weight(sample_weight, len(kept))
            if cross_fit:
                label = self._cross_fitted(given._replace(sample_weight=weight), found)
            else:
                label = leaves.label[self._located(X)[1]]
            rewards = found.rewards[kept]
            prescribed = rewards[np.arange(len(rewards)), label[kept]]
            table = np.column_stack([prescribed, rewards])
            weight = None if weight is None else weight[kept]
            values = np.average(table, axis=0, weights=weight)
            covariance = covariance_of_mean(table, weight)
            n, rows = len(rewards), "cross-fitted" if cross_fit else "rows that were passed"
        columns = comparison(leaves.labels, values, covariance, n, confidence, rows)
        return native_frame(columns, self._frame_kind)

    def _cross_fitted(self, given: Treated, found: EstimatedRewards) -> Integers:
        """Treatment of every row by trees like this one that are fitted to the other folds."""
        kept = found.treatment >= 0
        rows = self._checked(given)
        # Rewards are estimates, so they are rounded like the features, whose spread is about 1.
        rewards = found.rewards[kept]
        rewards = rewards / (np.abs(rewards).max() or 1.0)
        columns = np.column_stack([design_of(rows.X, rows.weight).numbers, rewards])
        seed = seed_of(deepcopy(self.certificate_.parameters["random_state"]))
        fold = np.full(len(kept), -1)
        fold[kept] = folds_of(columns, columns[:, :0], found.treatment[kept], seed)[0]
        label = np.zeros(len(kept), dtype=np.int64)
        X, by_row = given.X, given._asdict()
        del by_row["X"]
        if self.certificate_.parameters["horizon"] is not None:
            by_row["y"] = as_structured(check_survival(given.y, without_entry=NO_LATE_ROWS))
        n_folds = int(fold.max()) + 1
        for k in range(n_folds):
            held, others = fold == k, (fold >= 0) & (fold != k)
            of_others = {name: _taken(values, others) for name, values in by_row.items()}
            tree = unfitted(self)
            named = naming(f"fold {k + 1} of {n_folds} of cross_fit")
            with named, warnings.catch_warnings():
                warnings.simplefilter("ignore", BristleconeWarning)
                tree.fit(take_rows(X, others), **of_others)
            if tree.certificate_.is_treeless:
                raise InfeasibleError("no tree satisfies the constraints in a fold of cross_fit")
            said = tree.predict(take_rows(X, held))
            label[held] = np.searchsorted(self.leaves_.labels, said)
        return label

    def _estimation(self, parameters: Mapping[str, Any] | None = None) -> Estimation:
        """How rewards are estimated, by these parameters or the current ones."""
        given = self._parameters() if parameters is None else parameters
        names = [name for name in Estimation._fields if name != "seed"]
        return Estimation(
            **{name: given[name] for name in names}, seed=seed_of(deepcopy(given["random_state"]))
        )

    def _checked(self, given: Treated, known: NDArray[Any] | None = None) -> LabelledData:
        """Checked rows, whose labels are treatments: those ``known`` to the fit, or their own."""
        X, propensity = given.X, given.propensity
        scores = None if isinstance(propensity, (Mapping, Real)) else propensity
        outcomes = given.predicted_outcomes
        check_row_labels(X, y=given.y, propensity=scores, predicted_outcomes=outcomes)
        rows = check_labelled_data(X, given.treatment, given.sample_weight, name="treatment")
        if known is not None:
            codes = known_codes("treatment", given.treatment, known, row_count(X))
            rows = rows._replace(labels=codes[rows.kept], classes=known)
        return rows

    def _rewards_of(self, given: Treated) -> EstimatedRewards:
        """Rewards of rows for judging a fitted tree, estimated as at the time of the fit."""
        rows = self._checked(given, self.leaves_.labels)
        how = self._estimation(parameters_of_fit(self))
        more = given.propensity, given.predicted_outcomes
        found = prepare(how, rows, given.y, *more, judging=True)
        return found.estimates.spread(rows.kept)


def _taken(values: Any, rows: Bools) -> Any:
    """Some rows of a value with one entry per row; a number or mapping applies to all."""
    if values is None or isinstance(values, (Mapping, Real)):
        return values
    if nw.dependencies.is_into_dataframe(values):
        # Its columns may be in any order, so they keep their names.
        return take_rows(values, rows, "a data frame")
    return np.asarray(unmasked(values, "values"))[rows]

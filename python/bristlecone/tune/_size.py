"""``TreeSizeCV``: the number of leaves by cross-validation, one search per fold."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bristlecone._data.checks import check_choice
from bristlecone.exceptions import InfeasibleError, InvalidParameterError
from bristlecone.tune._folds import Folds, folds_of, standard_error
from bristlecone.tune._rows import GivenRows
from bristlecone.tune._scoring import DEFAULT, Metrics, metrics_of, score_of

__all__ = ["TreeSizeCV"]

Floats = NDArray[np.float64]

_RULES = ("one-standard-error", "best")


def _of_tree(name: str) -> Callable[[Any], bool]:
    """Whether the tree, that of the fit where there is one, has a method of this name."""

    def check(search: Any) -> bool:
        getattr(vars(search).get("best_estimator_", search.estimator), name)
        return True

    return check


def _method(name: str) -> Any:
    """Method that passes its arguments on to the chosen tree."""

    def method(self: TreeSizeCV, *args: Any, **kwargs: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)(*args, **kwargs)

    method.__name__ = name
    method.__qualname__ = f"TreeSizeCV.{name}"
    method.__doc__ = f"``{name}`` of ``best_estimator_``."
    return available_if(_of_tree(name))(method)


def _attribute(name: str) -> Any:
    """Attribute of the chosen tree."""

    def get(self: TreeSizeCV) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)

    return property(get, doc=f"``{name}`` of ``best_estimator_``.")


class TreeSizeCV(MetaEstimatorMixin, BaseEstimator):
    """Number of leaves of a tree by cross-validation.

    One search (``size_path``) of every fold finds the best tree of every size, up to what
    ``max_depth`` and ``max_leaf_nodes`` of the estimator allow; each is scored on the rows held
    out. One more search over all rows gives the tree of the size chosen.

    Parameters
    ----------
    estimator : estimator
        Tree that has ``size_path``: every tree of this package but ``SoftSurvivalTree``, whose
        depth is fixed before it is trained. It is left as it is.
    cv : int, splitter or iterable, default=5
        Number of folds, shuffled, stratified by event, class or treatment; a splitter of
        scikit-learn, which gets the strata in place of y; or pairs of training and test rows.
    scoring : None, str, callable, list or mapping, default=None
        Metrics, greater is better: "concordance", "uno", "ibs", "auc", "likelihood" (see
        :mod:`bristlecone.metrics`), names of scikit-learn's scorers, callables ``(estimator, X,
        y)``, or several: a list, or a mapping from names. None is the method ``score``; of a
        ``CostSensitiveTreeClassifier`` less the mean cost. Metrics get what they name in their
        signature of what ``fit`` was given by row, such as ``sample_weight``.
    rule : {"one-standard-error", "best"}, default="one-standard-error"
        Which size is chosen: the smallest whose mean score is within one standard error of the
        best, or the best, of equal ones the smallest.
    refit : str or None, default=None
        Which of several metrics chooses; the first by default.
    n_repeats : int, default=1
        Repeats of the folds, where ``cv`` is a number.
    random_state : int, RandomState or None, default=0
        Shuffles the rows, where ``cv`` is a number: the same folds in every fit, other ones in
        every fit with None.

    Attributes
    ----------
    best_n_leaves_ : int
        Leaves that the chosen tree may have; it has fewer where more are no better.
    best_estimator_ : estimator
        The chosen tree, fitted to all rows. Its predictions, ``leaf_table``, ``describe`` and so on
        are also here.
    best_score_ : float
        Mean score of the chosen size.
    best_index_ : int
        Its place in ``cv_results_`` and ``size_path_``.
    cv_results_ : dict of array, shape (n_sizes,)
        By number of leaves, ready for a data frame: ``n_leaves``; ``objective`` of the tree on all
        rows; of every metric M ``mean_test_M``, ``std_test_M`` over the folds, the standard error
        ``se_test_M`` of the mean, ``rank_test_M``, and ``split0_test_M`` and so on. A single metric
        is called "score".
    size_path_ : list of estimators
        Best tree of every size on all rows.
    n_splits_ : int
        Number of folds, all repeats counted.

    See Also
    --------
    evaluate : Of several estimators, this one among them, over the same folds.

    Notes
    -----
    Where the path of a fold ends before a size, because its rows allow no more leaves, its largest
    tree takes the place. The standard error is that over the folds of one repeat, their standard
    deviation by the root of their number; of several repeats it is from their mean variance.
    Repeats make the mean steadier, not the standard error smaller. Time and memory limits of the
    estimator are those of every single search. Depth, penalty and encoder can be searched around
    it: ``GridSearchCV(TreeSizeCV(tree), {"estimator__max_depth": [2, 3, 4]})``.

    The standard-error rule is that of Breiman, Friedman, Olshen, Stone, "Classification and
    Regression Trees", 1984, section 3.4.3.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.tune import TreeSizeCV
    >>> data = load("gbsg2")
    >>> search = TreeSizeCV(OptimalSurvivalTree(max_depth=3)).fit(data.X, data.y)
    >>> search.best_n_leaves_, search.best_estimator_.n_leaves_
    (4, 4)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "one-standard-error",
        refit: str | None = None,
        n_repeats: int = 1,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.refit = refit
        self.n_repeats = n_repeats
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        callback: Callable[[int, int], object] | None = None,
        **params: Any,
    ) -> TreeSizeCV:
        """Choose the size and fit the tree.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            As the estimator takes it.
        y : structured array, DataFrame, pair or array-like, n rows
            As the estimator takes it.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, of the fits and of the metrics that know weights.
        callback : callable, optional
            Called after every search with the number of searches done and of all.
        **params
            What else the estimator's ``fit`` takes, such as ``treatment`` or
            ``sensitive_features``; what has an entry for every row is divided with the rows.
            ``groups`` goes to the splitter.

        Returns
        -------
        TreeSizeCV
            The estimator itself.

        Raises
        ------
        InvalidParameterError
            For an estimator without ``size_path``, an unknown rule or metric, and folds that are
            none.
        InfeasibleError
            When at no size every fold, and all rows, have a tree that keeps the constraints.
        ValueError, TypeError
            As in the estimator's ``size_path``, and from the metrics.
        KeyboardInterrupt
            On Ctrl-C; an earlier fit is kept.
        """
        metrics, chooser = self._checked()
        rows = GivenRows.of(X, y, {**params, "sample_weight": sample_weight})
        folds = folds_of(
            self.cv,
            rows,
            self.estimator,
            n_repeats=self.n_repeats,
            random_state=self.random_state,
        )
        rows.by_row.pop("groups", None)
        n_searches = len(folds) + 1
        scores = []
        for done, (train, test) in enumerate(folds, start=1):
            scores.append(_scores(self._path(rows.taken(train)), rows.taken(test), metrics))
            _tell(callback, done, n_searches)
        path = self._path(rows)
        _tell(callback, n_searches, n_searches)
        self._choose(path, scores, folds, chooser, rows.n_rows)
        return self

    def _checked(self) -> tuple[Metrics, str]:
        """Metrics by name, and which of them chooses."""
        check_choice("rule", self.rule, _RULES)
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "size_path"):
            kind = self.estimator if isinstance(self.estimator, type) else type(self.estimator)
            raise InvalidParameterError(
                "TreeSizeCV needs a tree that is searched for in every size (size_path); "
                f"{kind.__name__} has none; GridSearchCV searches parameters of any estimator"
            )
        metrics = metrics_of(self.scoring)
        if len(metrics) == 1:
            metrics = {DEFAULT: next(iter(metrics.values()))}
        if self.refit is None:
            return metrics, next(iter(metrics))
        check_choice("refit", self.refit, tuple(metrics))
        return metrics, self.refit

    def _path(self, rows: GivenRows) -> list[Any]:
        path: list[Any] = clone(self.estimator).size_path(rows.X, rows.y, **rows.more)
        if any(tree.certificate_.status == "interrupted" for tree in path):
            # What is left of one of several searches is of no use.
            raise KeyboardInterrupt
        return path

    def _choose(
        self,
        path: list[Any],
        scores: list[dict[str, Floats]],
        folds: Folds,
        chooser: str,
        n_rows: int,
    ) -> None:
        places = np.arange(len(path))
        found = np.array([hasattr(tree, "tree_") for tree in path])
        results: dict[str, NDArray[Any]] = {
            "n_leaves": places + 1,
            "objective": np.array([tree.certificate_.objective_value for tree in path]),
        }
        for name in scores[0]:
            # Where the path of a fold has ended, its largest tree goes on.
            values = np.stack([own[name][np.minimum(places, len(own[name]) - 1)] for own in scores])
            mean = values.mean(axis=0)
            results[f"mean_test_{name}"] = mean
            results[f"std_test_{name}"] = values.std(axis=0)
            results[f"se_test_{name}"] = standard_error(values, folds, n_rows)
            results[f"rank_test_{name}"] = _ranks(mean)
            for fold, split in enumerate(values):
                results[f"split{fold}_test_{name}"] = split
        mean, error = results[f"mean_test_{chooser}"], results[f"se_test_{chooser}"]
        candidates = np.flatnonzero(found & ~np.isnan(mean))
        if not candidates.size:
            raise InfeasibleError(
                "at no size every fold and all rows have a tree that satisfies the constraints"
            )
        best = candidates[np.argmax(mean[candidates])]
        if self.rule == "one-standard-error":
            least = mean[best] - (0.0 if np.isnan(error[best]) else error[best])
            best = candidates[np.argmax(mean[candidates] >= least)]
        self.cv_results_ = results
        self.size_path_ = path
        self.n_splits_ = len(folds)
        self.best_index_ = int(best)
        self.best_n_leaves_ = int(best) + 1
        self.best_score_ = float(mean[best])
        self.best_estimator_ = path[self.best_index_]

    def score(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, **params: Any
    ) -> float:
        """Score of the chosen tree, by the metric that chose it.

        Parameters
        ----------
        X, y, sample_weight, **params
            As in ``fit``.

        Returns
        -------
        float
            Greater is better.
        """
        check_is_fitted(self)
        metrics, chooser = self._checked()
        rows = GivenRows.of(X, y, {**params, "sample_weight": sample_weight})
        return score_of(metrics[chooser], self.best_estimator_, rows)

    def get_metadata_routing(self) -> MetadataRouter:
        """What ``fit`` and ``score`` pass on is what the estimator asks for."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        mapping = mapping.add(caller="score", callee="score")
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    # In notebooks a fitted search is shown as its best tree.
    @property
    def _repr_html_(self) -> Callable[[], str]:
        fitted = self.__dict__.get("best_estimator_", super())
        shown: Callable[[], str] = fitted._repr_html_
        return shown

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        fitted = self.__dict__.get("best_estimator_", super())
        bundle: dict[str, str] = fitted._repr_mimebundle_(**kwargs)
        return bundle | {"text/plain": repr(self)}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        own = get_tags(self.estimator)
        tags.estimator_type = own.estimator_type
        tags.classifier_tags = deepcopy(own.classifier_tags)
        tags.regressor_tags = deepcopy(own.regressor_tags)
        tags.input_tags = deepcopy(own.input_tags)
        tags.target_tags = deepcopy(own.target_tags)
        return tags

    predict = _method("predict")
    predict_proba = _method("predict_proba")
    predict_outcomes = _method("predict_outcomes")
    predict_survival_function = _method("predict_survival_function")
    predict_cumulative_hazard_function = _method("predict_cumulative_hazard_function")
    predict_quantile = _method("predict_quantile")
    predict_median = _method("predict_median")
    predict_rmst = _method("predict_rmst")
    log_likelihood = _method("log_likelihood")
    mean_cost = _method("mean_cost")
    apply = _method("apply")
    decision_path = _method("decision_path")
    leaf_table = _method("leaf_table")
    describe = _method("describe")
    _missing_text = _method("_missing_text")
    _check_fitted = _method("_check_fitted")
    to_json = _method("to_json")
    get_depth = _method("get_depth")
    get_n_leaves = _method("get_n_leaves")

    tree_ = _attribute("tree_")
    leaves_ = _attribute("leaves_")
    encoder_ = _attribute("encoder_")
    certificate_ = _attribute("certificate_")
    splits_ = _attribute("splits_")
    features_used_ = _attribute("features_used_")
    feature_importances_ = _attribute("feature_importances_")
    n_features_in_ = _attribute("n_features_in_")
    feature_names_in_ = _attribute("feature_names_in_")
    classes_ = _attribute("classes_")
    treatments_ = _attribute("treatments_")
    unique_times_ = _attribute("unique_times_")
    event_times_ = _attribute("event_times_")
    n_leaves_ = _attribute("n_leaves_")
    depth_ = _attribute("depth_")
    objective_value_ = _attribute("objective_value_")
    status_ = _attribute("status_")


def _scores(path: list[Any], rows: GivenRows, metrics: Metrics) -> dict[str, Floats]:
    """Scores of every tree of a path; NaN where no tree keeps the constraints."""
    found: dict[str, list[float]] = {name: [] for name in metrics}
    for place, tree in enumerate(path):
        for name, metric in metrics.items():
            if not hasattr(tree, "tree_"):
                found[name].append(np.nan)
            elif place and _is_same(tree, path[place - 1]):
                found[name].append(found[name][-1])
            else:
                found[name].append(score_of(metric, tree, rows))
    return {name: np.array(values) for name, values in found.items()}


def _is_same(tree: Any, other: Any) -> bool:
    """Whether two trees of a path ask the same: more leaves may be no better."""
    if not hasattr(other, "tree_"):
        return False
    one, two = tree.tree_, other.tree_
    return np.array_equal(one.feature, two.feature) and np.array_equal(
        one.children_left, two.children_left
    )


def _ranks(mean: Floats) -> NDArray[np.int64]:
    """1 for the greatest, the same for equal ones, NaN last."""
    order = np.unique(-np.where(np.isnan(mean), -np.inf, mean), return_inverse=True)[1]
    below = np.concatenate([[0], np.cumsum(np.bincount(order))])
    return below[order] + 1


def _tell(callback: Callable[[int, int], object] | None, done: int, total: int) -> None:
    if callback is not None:
        callback(done, total)

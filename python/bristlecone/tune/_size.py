"""``TreeSizeCV``: the number of leaves by cross-validation, one search per fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from bristlecone._data.checks import check_choice
from bristlecone._data.texts import counted
from bristlecone._estimators.parameters import check_parameters
from bristlecone._log import log
from bristlecone._teacher.folds import naming
from bristlecone._types import Floats
from bristlecone.exceptions import ColumnWarning, InfeasibleError, InvalidParameterError
from bristlecone.tune._folds import Folds, folds_of, standard_error
from bristlecone.tune._rows import GivenRows, accepted, of_all_causes
from bristlecone.tune._scoring import DEFAULT, Metrics, check_scored, metrics_of, score_of

_RULES = ("best", "one-standard-error")


def _of_tree(name: str) -> Callable[[Any], bool]:
    """Whether the tree has a method of this name: the chosen tree, or ``estimator`` before fit."""

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


@dataclass(eq=False, repr=False)
class TreeSizeCV(MetaEstimatorMixin, BaseEstimator):
    """Choose the number of leaves of a tree by cross-validation.

    In every fold, one search (``size_path``) finds the best tree of every size that ``max_depth``
    and ``max_leaf_nodes`` of the estimator allow. Each tree is scored on the held-out rows. One
    more search over all rows gives the tree of the chosen size.

    Parameters
    ----------
    estimator : estimator
        Tree with ``size_path``: every tree of this package except ``SoftSurvivalTree``, whose depth
        is fixed before training. It is not changed.
    cv : int, splitter or iterable, default=5
        Number of folds, which are shuffled and stratified by event, class or treatment; a splitter
        of scikit-learn, which receives the strata instead of y; or pairs of training and test rows,
        as positions or masks.
    scoring : None, str, callable, list or mapping, default=None
        One metric, or several as a list or a mapping from names; greater is better. A metric is
        "concordance", "uno", "ibs", "auc", "likelihood" or "calibration" (see
        :mod:`bristlecone.metrics`), the name of a scorer of scikit-learn, or a callable
        ``(estimator, X, y)``. With competing risks, use "concordance", "ibs" or "likelihood"; the
        first two score cause 1, ``partial(concordance_scorer, cause=2)`` another one. None is the
        method ``score``. Arguments of ``fit`` with one entry per row, such as ``sample_weight``,
        are passed to a metric if its signature has them.
    rule : {"best", "one-standard-error"}, default="best"
        Rule for the size: "best" chooses the size with the best mean score, the smallest if several
        are equal; "one-standard-error" chooses the smallest size whose mean score is within one
        standard error of the best, which is easier to read and usually predicts a little worse.
    refit : str or None, default=None
        Name of the metric that chooses the size, if there are several; the first by default.
    n_repeats : int, default=1
        Number of repeats of the folds, if ``cv`` is a number.
    random_state : int, RandomState or None, default=0
        Seed for shuffling the rows, if ``cv`` is a number. None uses different folds in every fit.
    n_jobs : int or None, default=None
        Number of folds that are searched at the same time, each in its own process; -1 uses all
        cores, and None searches one after the other in this process. ``n_jobs`` of the estimator
        sets the threads of each search.
    verbose : int, default=0
        If positive, every finished search is logged at level INFO of the logger "bristlecone",
        otherwise at DEBUG.

    Attributes
    ----------
    best_n_leaves_ : int
        Maximum number of leaves of the chosen tree; it has fewer if more are no better.
    best_estimator_ : estimator
        The chosen tree, fitted to all rows. You can call its methods, such as predictions and
        ``leaf_table``, on this object, too.
    best_score_ : float
        Mean score of the chosen size.
    best_index_ : int
        Position of the chosen size in ``cv_results_`` and ``size_path_``.
    cv_results_ : dict of array, shape (n_sizes,)
        Results by number of leaves, ready for a data frame: ``n_leaves``; ``objective`` of the tree
        on all rows; and for every metric M ``mean_test_M`` and ``std_test_M`` over the folds, the
        standard error ``se_test_M`` of the mean, ``rank_test_M``, and ``split0_test_M`` and so on.
        A single metric is called "score".
    size_path_ : list of estimators
        Best tree of every size on all rows.
    n_splits_ : int
        Number of folds, including all repeats.

    See Also
    --------
    evaluate : Compares estimators, which may include this one, over the same folds.

    Notes
    -----
    If the rows of a fold do not allow as many leaves as a size, the largest tree of the fold is
    scored instead. The standard error is the standard deviation over the folds of one repeat,
    divided by the square root of their number. With several repeats, the variances are averaged:
    repeats make the mean more stable, but the standard error no smaller. The time and memory limits
    of the estimator apply to each search. To tune depth, penalty or encoder, wrap this class in a
    grid search: ``GridSearchCV(TreeSizeCV(tree), {"estimator__max_depth": [2, 3, 4]})``.

    The standard-error rule comes from Breiman, Friedman, Olshen, Stone, "Classification and
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

    estimator: Any
    _: KW_ONLY
    cv: Any = 5
    scoring: Any = None
    rule: Literal["best", "one-standard-error"] = "best"
    refit: str | None = None
    n_repeats: int = 1
    random_state: int | np.random.RandomState | None = 0
    n_jobs: int | None = None
    verbose: int = 0

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
            Features, in a form that the estimator accepts.
        y : structured array, DataFrame, pair or array-like, n rows
            Outcomes, in a form that the estimator accepts.
        sample_weight : array-like of float, shape (n,), optional
            Row weights for the fits, and for metrics that take weights.
        callback : callable, optional
            Called after every search with the number of finished searches and the total.
        **params
            Further arguments of the estimator's ``fit``, such as ``treatment`` or
            ``sensitive_features``. Arrays with one entry per row are split with the rows.
            ``groups`` is passed to the splitter.

        Returns
        -------
        TreeSizeCV
            The estimator itself.

        Raises
        ------
        InvalidParameterError
            If the estimator has no ``size_path``, the rule or a metric is unknown, ``cv`` gives no
            valid folds, or the estimator cannot be scored.
        InfeasibleError
            If no size has a tree that keeps the constraints in every fold and for all rows.
        ValueError, TypeError
            As in the estimator's ``size_path``; also errors of the metrics.
        KeyboardInterrupt
            On Ctrl-C; an earlier fit is kept.
        """
        metrics, chooser = self._checked()
        check_parameters(self)
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
        estimator = of_all_causes(self.estimator, rows.y)
        found = self._fold_scores(estimator, rows, folds, metrics, chooser)
        for done, of_fold in enumerate(found, start=1):
            scores.append(of_fold)
            self._report(callback, done, n_searches)
        path = _path(self.estimator, rows)
        self._report(callback, n_searches, n_searches)
        self._choose(path, scores, folds, chooser, rows.n_rows)
        return self

    def _checked(self) -> tuple[Metrics, str]:
        """Metrics by name, and the name of the one that chooses the size."""
        check_choice("rule", self.rule, _RULES)
        if isinstance(self.estimator, type):
            name = self.estimator.__name__
            raise InvalidParameterError(f"estimator is the class {name}; pass {name}()")
        if not hasattr(self.estimator, "size_path"):
            raise InvalidParameterError(
                f"TreeSizeCV needs a tree with size_path; {type(self.estimator).__name__} has "
                "none. GridSearchCV works with any estimator"
            )
        metrics = metrics_of(self.scoring)
        check_scored(self.estimator, metrics)
        if len(metrics) == 1:
            metrics = {DEFAULT: next(iter(metrics.values()))}
        if self.refit is None:
            return metrics, next(iter(metrics))
        check_choice("refit", self.refit, tuple(metrics))
        return metrics, self.refit

    def _fold_scores(
        self, estimator: Any, rows: GivenRows, folds: Folds, metrics: Metrics, chooser: str
    ) -> Iterator[dict[str, Floats]]:
        """Scores of every fold, in their order, as soon as they are ready."""
        halves = (
            (f"fold {place} of {len(folds)}", estimator, rows.taken(train), rows.taken(test))
            for place, (train, test) in enumerate(folds, start=1)
        )
        if self.n_jobs is None or self.n_jobs == 1:
            return (_fold(*half, metrics, chooser) for half in halves)
        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        found: Iterator[dict[str, Floats]] = parallel(
            delayed(_fold)(*half, metrics, chooser) for half in halves
        )
        return found

    def _report(self, callback: Callable[[int, int], object] | None, done: int, total: int) -> None:
        log(self.verbose, "TreeSizeCV: search %d of %d", done, total)
        if callback is not None:
            callback(done, total)

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
            # If the path of a fold is shorter, its largest tree is used for the larger sizes.
            values = np.stack([own[name][np.minimum(places, len(own[name]) - 1)] for own in scores])
            mean = values.mean(axis=0)
            results[f"mean_test_{name}"] = mean
            with np.errstate(invalid="ignore"):  # infinite scores have no deviation
                results[f"std_test_{name}"] = values.std(axis=0)
            results[f"se_test_{name}"] = standard_error(values, folds, n_rows)
            # The greatest mean has rank 1, a mean that is not known the last one.
            known = np.where(np.isnan(mean), -np.inf, mean)
            results[f"rank_test_{name}"] = rankdata(-known, method="min").astype(np.int64)
            for fold, split in enumerate(values):
                results[f"split{fold}_test_{name}"] = split
        mean, error = results[f"mean_test_{chooser}"], results[f"se_test_{chooser}"]
        candidates = np.flatnonzero(found & ~np.isnan(mean))
        if not candidates.size:
            raise InfeasibleError(
                "no size has a tree that satisfies the constraints in every fold and for all rows"
            )
        best = candidates[np.argmax(mean[candidates])]
        if self.rule == "one-standard-error":
            least = mean[best] - (0.0 if np.isnan(error[best]) else error[best])
            best = candidates[np.argmax(mean[candidates] >= least)]
        fitted = copy(self)
        fitted.cv_results_ = results
        fitted.size_path_ = path
        fitted.n_splits_ = len(folds)
        fitted.best_index_ = int(best)
        fitted.best_n_leaves_ = int(best) + 1
        fitted.best_score_ = float(mean[best])
        fitted.best_estimator_ = path[best]
        certificate = path[best].certificate_
        choice = fitted._sentence(chooser, n_rows, error[best])
        path[best].certificate_ = replace(
            certificate, remarks=(*certificate.remarks, ("size", choice))
        )
        # All at once, so that Ctrl-C cannot leave parts of two fits.
        self.__dict__.update(fitted.__dict__)

    def _sentence(self, chooser: str, n_rows: int, error: float) -> str:
        """The cross-validation in words, for the certificate of the chosen tree."""
        if self.scoring is None:
            metric = "the score of the estimator"
        elif chooser != DEFAULT:
            metric = chooser
        else:
            metric = str(getattr(self.scoring, "__name__", self.scoring))
        rule = (
            "the smallest size whose mean score is within one standard error of the best"
            if self.rule == "one-standard-error"
            else "the size with the best mean score"
        )
        folds = f"{self.n_splits_ // self.n_repeats} folds"
        if self.n_repeats > 1:
            folds = f"{self.n_repeats} repeats of {folds}"
        spread = "" if np.isnan(error) else f" (standard error {error:.4g})"
        return (
            f"at most {counted(self.best_n_leaves_, 'leaf')}, chosen among 1 to "
            f"{len(self.size_path_)} by cross-validation over {n_rows} rows with "
            f"{folds}; metric: {metric}; rule: {rule}; mean score of the chosen size: "
            f"{self.best_score_:.4g}{spread}"
        )

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

        Raises
        ------
        TypeError
            If neither the metric nor ``fit`` of the tree takes an argument.
        """
        check_is_fitted(self)
        metrics, chooser = self._checked()
        metric, tree = metrics[chooser], self.best_estimator_
        known = accepted(metric or tree.score, params) | accepted(tree.fit, params)
        for name in params:
            if name not in known:
                raise TypeError(f"{name!r} is no argument of the metric or of fit")
        rows = GivenRows.of(X, y, {**params, "sample_weight": sample_weight})
        return score_of(metric, tree, rows)

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata that ``fit`` and ``score`` pass on, to the estimator and to ``cv``."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        mapping = mapping.add(caller="score", callee="score")
        router = MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)
        if hasattr(self.cv, "get_metadata_routing"):
            mapping = MethodMapping().add(caller="fit", callee="split")
            router = router.add(splitter=self.cv, method_mapping=mapping)
        return router

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

    describe = _method("describe")
    predict = _method("predict")
    predict_proba = _method("predict_proba")
    predict_outcomes = _method("predict_outcomes")
    predict_survival_function = _method("predict_survival_function")
    predict_cumulative_incidence = _method("predict_cumulative_incidence")
    predict_cumulative_hazard_function = _method("predict_cumulative_hazard_function")
    predict_quantile = _method("predict_quantile")
    predict_median = _method("predict_median")
    predict_rmst = _method("predict_rmst")
    log_likelihood = _method("log_likelihood")
    mean_cost = _method("mean_cost")
    apply = _method("apply")
    decision_path = _method("decision_path")
    leaf_table = _method("leaf_table")
    _missing_text = _method("_missing_text")
    _check_fitted = _method("_check_fitted")
    _check_parameters = _method("_check_parameters")
    to_json = _method("to_json")
    get_depth = _method("get_depth")
    get_n_leaves = _method("get_n_leaves")

    _frame_kind = _attribute("_frame_kind")
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
    lower_bound_ = _attribute("lower_bound_")
    gap_ = _attribute("gap_")
    status_ = _attribute("status_")


def _path(estimator: Any, rows: GivenRows) -> list[Any]:
    """Best trees of every size."""
    path: list[Any] = clone(estimator).size_path(rows.X, rows.y, **rows.more)
    if any(tree.certificate_.status == "interrupted" for tree in path):
        # The result of only some of the searches is of no use.
        raise KeyboardInterrupt
    return path


def _fold(name: str, *given: Any) -> dict[str, Floats]:
    """``_scores``, with errors that name the fold."""
    with naming(name):
        return _scores(*given)


def _scores(
    estimator: Any, known: GivenRows, held: GivenRows, metrics: Metrics, chooser: str
) -> dict[str, Floats]:
    """Scores of the best tree of every size; NaN if no tree keeps the constraints.

    Raises
    ------
    ValueError
        If the ``chooser`` among the metrics is NaN for every tree.
    """
    with catch_warnings():
        # Some levels of a column may not occur in a fold; the fit to all rows warns of columns.
        simplefilter("ignore", ColumnWarning)
        path = _path(estimator, known)
    found: dict[str, list[float]] = {name: [] for name in metrics}
    for place, tree in enumerate(path):
        for name, metric in metrics.items():
            if not hasattr(tree, "tree_"):
                found[name].append(np.nan)
            elif place and _is_same(tree, path[place - 1]):
                found[name].append(found[name][-1])
            else:
                found[name].append(score_of(metric, tree, held))
    has_tree = [hasattr(tree, "tree_") for tree in path]
    scores = {name: np.array(values) for name, values in found.items()}
    if any(has_tree) and np.isnan(scores[chooser][has_tree]).all():
        raise ValueError(
            f"scoring: the metric {chooser!r} is NaN for the trees of every size in a fold, so no "
            "size can be chosen"
        )
    return scores


def _is_same(tree: Any, other: Any) -> bool:
    """Whether two trees of a path are the same, because more leaves are no better."""
    if not hasattr(other, "tree_"):
        return False
    one, two = tree.tree_, other.tree_
    return np.array_equal(one.feature, two.feature) and np.array_equal(
        one.children_left, two.children_left
    )

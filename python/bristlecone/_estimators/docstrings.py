"""Docstrings completed from entries that several classes share.

In the source a line such as ``{max_depth, max_leaf_nodes}`` stands for entries of these names:
shared parameters (parameters.py) or the ones below. Lines that follow it, indented as the text of
an entry is, go on where the last of them ends. Defaults are those of the signature.
"""

from __future__ import annotations

import re
from inspect import isfunction
from textwrap import TextWrapper
from typing import Any, TypeVar

from bristlecone._estimators.parameters import PARAMETERS

__all__ = ["MARKER", "documented"]

Class = TypeVar("Class", bound=type)

MARKER = re.compile(r"^( *)\{(\w+(?:, \w+)*)\}$", re.MULTILINE)

_WRAPPER = TextWrapper(92, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)

_ENTRIES = """
X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
    Numbers, booleans, categories; missing values as the encoder allows.
y : structured array, DataFrame or pair
    A structured array of one boolean (event) and one float field (time), of any names; a
    DataFrame with columns ``event`` and ``time``; or a pair ``(event, time)``, which
    cross-validation cannot divide. An array or DataFrame may have ``entry`` besides (delayed
    entry). Columns of a DataFrame may have other names that mean one thing only, in upper or
    lower case:

    * the event: event, status, observed, uncensored, death, died, dead, deceased, failure,
      failed, fail, relapse, relapsed, recurrence, recurred, progression, progressed, churn,
      churned, arrest, delta, fstat, fustat, d, e;
    * the time: time, duration, tenure, lifetime, followup, survtime, futime, rfstime, lenfol,
      hours, days, weeks, months, years, stop, tstop, exit, t;
    * the entry: entry, or start and tstart beside stop, tstop or exit.

    They may be joined, as in ``event_observed``, ``survival_time`` or ``time_to_death``. Any other
    name is an error. Columns such as ``censored`` and ``alive`` are rejected: pass
    ``event = ~censored``.
sample_weight : array-like of float, shape (n,), optional
    Row weights, finite and not negative; rows of weight zero are left out. Integer
    weights equal repetition of rows (with ``min_samples_leaf=1``).
callback : callable, optional
    Called with a :class:`~bristlecone._search.progress.SearchProgress` whenever the best tree or
    the lower bound may have improved, and every quarter of a second, on the thread of
    ``fit``. An exception it raises ends the search and ``fit``.
ValueError, TypeError
    For unknown values of parameters, rows that do not fit together, and columns that
    cannot be read; parameter, column or row is named, and an earlier fit is kept.
KeyboardInterrupt
    At a second Ctrl-C within a second; an earlier fit is kept.
SearchLimitWarning
    When a limit or Ctrl-C stopped the search; the gap is given.
SearchCostWarning
    As soon as the search is forecast to take more than ``time_limit`` (ten minutes without
    one), with smaller settings that fit; not with ``time_limit=0``.
ConstantFeatureWarning
    When every column of ``X`` takes a single value.
SmallSampleWarning
    When a share or "auto" as ``min_samples_leaf`` or ``min_events_leaf`` leaves nothing to
    split: the tree is a single leaf.
EventFreeWarning
    When one question tells rows apart that have no event where twenty or more are
    expected, so that ``min_events_leaf="auto"`` is no minimum.
classes_ : array, shape (n_classes,)
    Labels in sorted order.
leaves_ : Leaves
    Statistics and predictions of the leaves, as one value.
certificate_ : Certificate
    What was searched for, over which questions and under which parameters, what was found and
    proved, the time it took, the version, and a fingerprint of the training rows.
questions_ : dict
    Question of every split in words, by node id.
feature_importances_ : array of float, shape (n_features_in_,)
    Share of every column in the improvement of the objective; see the property.
lower_bound_ : float
    No tree over the binary features is below this.
gap_, relative_gap_ : float
    ``objective_value_ - lower_bound_``, and the same as a share of ``objective_value_``.
status_ : {"optimal", "time_limit", "memory_limit", "interrupted"}
    "optimal" means optimal among trees over the ``n_binary_features_`` binary features.
tree_ : Tree
    Structure as parallel arrays in preorder; ``feature`` counts binary features.
leaf_curve_ : str
    Curve that is predicted: what ``leaf_curve`` meant to the fit.
prior_ : float
    Pseudo-events of every leaf: what ``prior`` meant to the fit.
min_events_leaf_ : int
    Fewest events of a leaf: what ``min_events_leaf`` meant to the fit; 0 for no minimum.
shrinkage_ : float
    λ of the predictions: what ``shrinkage`` meant to the fit.
n_leaves_, depth_ : int
    Size of the tree.
n_binary_features_ : int
    Binary features the encoder made.
n_nodes_explored_ : int
    Nodes that the search looked at.
trace_ : list of TracePoint
    Named tuples (seconds, objective, lower_bound), one for each improvement.
fit_time_ : float
    Seconds ``fit`` took.
encoder_ : transformer
    The fitted encoder.
n_features_in_ : int
    Columns of ``X``.
feature_names_in_ : array of str
    Their names; only when ``X`` had names.
features_used_ : list of str or int
    The columns that the tree asks about; no others are needed at prediction.
unique_times_, event_times_ : array of float
    Distinct training times, and those with an event.
baseline_ : Baseline
    Both of them with the baseline cumulative hazard Λ.
.. [Agarwal2022] Agarwal, Tan, Ronen, Singh, Yu, "Hierarchical shrinkage: improving the accuracy
    and interpretability of tree-based methods", ICML 2022.
.. [Linden2023] van der Linden, de Weerdt, Demirović, "Necessary and Sufficient Conditions for
    Optimal Decision Trees using Dynamic Programming", NeurIPS 2023.
"""


def documented(cls: Class) -> Class:
    """Complete the docstrings of a class and of its own methods; for use as a decorator."""
    if cls.__doc__ is None:  # python -OO
        return cls
    entries = {**_SHARED, "self": [cls.__name__, "    The estimator itself."]}
    defaults = vars(cls)["__init__"].__kwdefaults__
    cls.__doc__ = _with_defaults(_expanded(cls.__doc__, entries), defaults)
    for member in vars(cls).values():
        if isfunction(member) and member.__doc__:
            member.__doc__ = _expanded(member.__doc__, entries)
    return cls


def _expanded(text: str, entries: dict[str, list[str]]) -> str:
    def lines(marker: re.Match[str]) -> str:
        names = marker[2].split(", ")
        return "\n".join(marker[1] + line for name in names for line in entries[name])

    return MARKER.sub(lines, text)


def _with_defaults(text: str, defaults: dict[str, Any]) -> str:
    """The text with the default of the signature behind the type of every parameter."""

    def entry(found: re.Match[str]) -> str:
        if found[1] not in defaults:
            return found[0]
        default = defaults[found[1]]
        shown = f'"{default}"' if isinstance(default, str) else repr(default)
        return f"{found[0]}, default={shown}"

    return re.sub(r"^ *(\w+) : .+$", entry, text, flags=re.MULTILINE)


def _by_name() -> dict[str, list[str]]:
    """Lines of every shared entry by its first name."""
    entries = {
        name: [f"{name} : {parameter.type}", *_WRAPPER.wrap(parameter.text)]
        for name, parameter in PARAMETERS.items()
        if parameter.text
    }
    for entry in re.split(r"\n(?=\S)", _ENTRIES.strip()):
        entries[re.findall(r"\w+", entry)[0]] = entry.splitlines()
    return entries


_SHARED = _by_name()

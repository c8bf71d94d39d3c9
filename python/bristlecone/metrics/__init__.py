"""Metrics of survival predictions, and differences between groups for classifiers.

``ties="sksurv"`` (the default) agrees with scikit-survival. ``ties="paper"`` follows Zhang, Xin,
Seltzer, Rudin, "Optimal Sparse Survival Trees" (AISTATS 2024): every row with time >= t is at risk
in the censoring distribution G, an event and a censoring at the same time are not compared, and
tied predictions count 0 in the AUC.

Outcomes (``survival_train``, ``survival_test``) have any form that ``fit`` accepts, see
:func:`bristlecone.outcome`. You can also pass one outcome instead of ``event`` and ``time``.
Delayed entry is allowed in the training sample, whose risk sets account for it, and in the
concordance indices without censoring weights. Predictions are matched to outcomes by position;
pandas indices in a different order raise an error.

Most metrics accept ``sample_weight``. The tests of calibration and the log-rank test do not.

If a value is not defined (no comparable pair, only one class, G zero or unknown at a time that
matters), a ValueError gives the reason; a metric never returns NaN. Scorers for cross-validation
end their time window before such a time instead.
"""

from bristlecone.metrics._auc import cumulative_dynamic_auc
from bristlecone.metrics._brier import brier_score, ibs_ratio, integrated_brier_score
from bristlecone.metrics._calibration import d_calibration, one_time_calibration
from bristlecone.metrics._causes import brier_score_cause, concordance_index_cause
from bristlecone.metrics._concordance import (
    concordance_index_censored,
    concordance_index_ipcw,
    concordance_index_td,
    concordance_index_td_ipcw,
)
from bristlecone.metrics._fairness import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
)
from bristlecone.metrics._logrank import logrank_test
from bristlecone.metrics._scorers import (
    auc_scorer,
    calibration_scorer,
    concordance_scorer,
    ibs_scorer,
    likelihood_scorer,
    uno_scorer,
)

__all__ = [
    "auc_scorer",
    "brier_score",
    "brier_score_cause",
    "calibration_scorer",
    "concordance_index_cause",
    "concordance_index_censored",
    "concordance_index_ipcw",
    "concordance_index_td",
    "concordance_index_td_ipcw",
    "concordance_scorer",
    "cumulative_dynamic_auc",
    "d_calibration",
    "demographic_parity_difference",
    "equal_opportunity_difference",
    "equalized_odds_difference",
    "ibs_ratio",
    "ibs_scorer",
    "integrated_brier_score",
    "likelihood_scorer",
    "logrank_test",
    "one_time_calibration",
    "uno_scorer",
]

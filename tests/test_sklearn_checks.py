"""scikit-learn's checks of every classifier and regressor."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import _num_samples

from bristlecone import (
    CostSensitiveTreeClassifier,
    DemographicParity,
    FairTreeClassifier,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
)


class Grouped(FairTreeClassifier):
    """The checks pass no groups, so alternate rows are the groups."""

    def fit(self, X, y, sample_weight=None):
        groups = np.resize([0, 0, 1, 1], _num_samples(X))
        return super().fit(X, y, sample_weight, sensitive_features=groups)


ESTIMATORS = [
    OptimalTreeClassifier(),
    OptimalTreeClassifier(leaf_penalty=1e-6),
    OptimalTreeClassifier(objective="entropy"),
    CostSensitiveTreeClassifier(),
    # Weights act as repetitions if leaves have no minimum number of rows.
    Grouped(fairness=DemographicParity(1.0), min_samples_leaf=1),
    OptimalTreeRegressor(),
]


def expected_to_fail(estimator):
    """Checks that do not apply to these trees, with the reason.

    One check gives one class ten million times the weight and expects it to be predicted
    everywhere.

    An optimal tree without a penalty per leaf still has leaves for pure rows of the other class;
    it passes with a penalty of 1e-6, as scikit-learn's tree does with the minimum weight per leaf
    that the check sets for it.
    """
    classifiers = OptimalTreeClassifier, FairTreeClassifier
    expected = {}
    if isinstance(estimator, classifiers) and not estimator.leaf_penalty:
        reason = "leaves of the light class alone are worth their gain of 1e-8"
        expected["check_class_weight_classifiers"] = reason
    if isinstance(estimator, FairTreeClassifier):
        reason = "a single row is of a single group, as the error says"
        expected["check_fit2d_1sample"] = reason
    return expected


# The checks use constant columns.
@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.ConstantFeatureWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_to_fail)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)

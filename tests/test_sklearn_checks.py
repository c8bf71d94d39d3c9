"""scikit-learn's own checks of every classifier and regressor."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from bristlecone import (
    CostSensitiveTreeClassifier,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
)

ESTIMATORS = [
    OptimalTreeClassifier(),
    CostSensitiveTreeClassifier(),
    OptimalTreeRegressor(),
]


# The checks fit to columns that are constant.
@pytest.mark.filterwarnings("ignore::bristlecone.ConstantFeatureWarning")
@parametrize_with_checks(ESTIMATORS)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)

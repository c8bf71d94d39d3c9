"""The log-rank test, compared with its definition."""

import tracemalloc

import numpy as np
import pytest
from metrics_plainly import SEEDS, sample

from bristlecone.metrics import logrank_test


@pytest.mark.parametrize("seed", SEEDS)
def test_logrank_of_two_groups_is_the_squared_standardised_excess(seed):
    event, time, risk = sample(seed)
    group = np.where(risk > 0, "high", "low")
    excess = variance = expected_high = 0.0
    for t in np.unique(time[event]):
        n, n_high = sum(time >= t), sum((time >= t) & (risk > 0))
        d = sum(event & (time == t))
        expected_high += d * n_high / n
        excess += sum(event & (time == t) & (risk > 0)) - d * n_high / n
        variance += d * (n_high / n) * (1 - n_high / n) * (n - d) / max(n - 1, 1)
    result = logrank_test(event, time, group)
    assert result.statistic == pytest.approx(excess**2 / variance, abs=1e-12)
    assert result.degrees_of_freedom == 1
    assert result.groups.tolist() == ["high", "low"]
    assert result.expected[0] == pytest.approx(expected_high, abs=1e-12)
    np.testing.assert_array_equal(
        result.observed, [sum(event & (risk > 0)), sum(event & (risk <= 0))]
    )


def test_logrank_does_not_count_groups_that_left_before_the_first_event():
    event, time, risk = sample(7)
    group = np.where(risk > 0, 1, 0)
    alone = logrank_test(event, time, group)
    more = logrank_test(
        np.append(event, [False, False]), np.append(time, [0.5, 0.5]), np.append(group, [2, 2])
    )
    assert more.degrees_of_freedom == 1
    assert more.statistic == pytest.approx(alone.statistic, abs=1e-12)
    assert more.p_value == pytest.approx(alone.p_value, abs=1e-12)


@pytest.mark.parametrize("cells", [1, 40, 350])
def test_logrank_does_not_depend_on_the_size_of_its_blocks(cells, monkeypatch):
    event, time, risk = sample(3)
    group = np.digitize(risk, [-0.5, 0.0, 0.5])
    whole = logrank_test(event, time, group)
    monkeypatch.setattr("bristlecone.metrics._logrank.BLOCK_CELLS", cells)
    parts = logrank_test(event, time, group)
    assert parts.statistic == pytest.approx(whole.statistic, rel=1e-12)
    np.testing.assert_allclose(parts.expected, whole.expected, rtol=1e-12)


def test_logrank_needs_two_groups():
    with pytest.raises(ValueError, match="group holds only a; the test compares at least two"):
        logrank_test([True, False], [1.0, 2.0], ["a", "a"])


def test_logrank_of_many_groups_takes_little_memory(monkeypatch):
    rng = np.random.default_rng(0)
    n, cells = 20_000, 1 << 17
    monkeypatch.setattr("bristlecone.metrics._logrank.BLOCK_CELLS", cells)
    tracemalloc.start()
    try:
        result = logrank_test(np.ones(n, dtype=bool), rng.random(n), np.arange(n) % 300)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.degrees_of_freedom == 299
    # One number per time and group would take 48 MB.
    assert most < 8 * (8 * cells + 20 * n + 10 * 300**2) < 20e6

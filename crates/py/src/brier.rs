//! Trees by integrated Brier score for Python.

use crate::search::{
    PyAlternatives, PyNear, PySolution, TreeArrays, matrix, parse, py_alternatives, py_near, run,
    to_py, tree_of,
};
use crate::survival::{not_negative, observations};
use bristlecone_core::search;
use bristlecone_core::survival::Observations;
use bristlecone_core::task::brier::{Brier, LeafCurve};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The objective of these rows.
pub(crate) fn brier(
    obs: &Observations<'_>,
    leaf_penalty: f64,
    leaf_curve: &str,
    reference_loss: Option<&[f64]>,
) -> PyResult<Brier> {
    if let Some(losses) = reference_loss {
        if losses.len() != obs.len() {
            return Err(PyValueError::new_err("time and reference_loss differ in length"));
        }
        not_negative("reference_loss", losses)?;
    }
    let curve = match leaf_curve {
        "kaplan-meier" => LeafCurve::KaplanMeier,
        "brier-optimal" => LeafCurve::BrierOptimal,
        other => {
            return Err(PyValueError::new_err(format!(
                "leaf_curve must be 'kaplan-meier' or 'brier-optimal', not {other:?}"
            )));
        }
    };
    Brier::new(obs, leaf_penalty, curve, reference_loss).map_err(to_py)
}

/// Best tree by integrated Brier score; see `OptimalSurvivalTree(objective="brier")`.
///
/// With `reference_loss`, the loss of a reference model on each row (mean = its integrated
/// Brier score), subtrees are taken to lose no less than it; the status is then
/// "reference_optimal" and `lower_bound` does not rest on it.
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, *, leaf_curve="kaplan-meier",
    reference_loss=None, callback=None, **limits))]
#[allow(clippy::too_many_arguments, reason = "the parameters of the estimator")]
pub fn solve_brier(
    py: Python<'_>,
    features: PyReadonlyArray2<'_, u8>,
    time: PyReadonlyArray1<'_, f64>,
    event: PyReadonlyArray1<'_, bool>,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    leaf_curve: &str,
    reference_loss: Option<PyReadonlyArray1<'_, f64>>,
    callback: Option<Py<PyAny>>,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<PySolution> {
    let limits = parse(limits)?;
    let matrix = matrix(&features, time.len()?)?;
    let obs = observations(&time, &event, weight.as_ref(), None)?;
    let reference = reference_loss.as_ref().map(|l| l.as_slice()).transpose()?;
    let task = brier(&obs, limits.leaf_penalty, leaf_curve, reference)?;
    Ok(PySolution(run(py, &task, &matrix, &limits, callback, search::solve_brier)?))
}

/// The best tree with at most k leaves for k = 1, 2, ….
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, *, leaf_curve="kaplan-meier", **limits))]
pub fn path_brier(
    py: Python<'_>,
    features: PyReadonlyArray2<'_, u8>,
    time: PyReadonlyArray1<'_, f64>,
    event: PyReadonlyArray1<'_, bool>,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    leaf_curve: &str,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<PySolution>> {
    let limits = parse(limits)?;
    let matrix = matrix(&features, time.len()?)?;
    let obs = observations(&time, &event, weight.as_ref(), None)?;
    let task = brier(&obs, limits.leaf_penalty, leaf_curve, None)?;
    let path = run(py, &task, &matrix, &limits, None, search::path_brier)?;
    Ok(path.into_iter().map(PySolution).collect())
}

/// Every tree whose objective is within `slack` of the optimum; see `near_optimal_likelihood`.
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, *, limit, slack=0.0,
    leaf_curve="kaplan-meier", **limits))]
#[allow(clippy::too_many_arguments, reason = "the parameters of the estimator")]
pub fn near_optimal_brier(
    py: Python<'_>,
    features: PyReadonlyArray2<'_, u8>,
    time: PyReadonlyArray1<'_, f64>,
    event: PyReadonlyArray1<'_, bool>,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    limit: usize,
    slack: f64,
    leaf_curve: &str,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyNear> {
    let limits = parse(limits)?;
    let matrix = matrix(&features, time.len()?)?;
    let obs = observations(&time, &event, weight.as_ref(), None)?;
    let task = brier(&obs, limits.leaf_penalty, leaf_curve, None)?;
    let near = run(py, &task, &matrix, &limits, None, |task, matrix, settings, monitor| {
        search::near_optimal_brier(task, matrix, settings, monitor, (slack, limit))
    })?;
    Ok(py_near(near))
}

/// Other questions at the splits of a tree; see `alternatives_likelihood`.
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, *, tree, leaf_curve="kaplan-meier",
    **limits))]
#[allow(clippy::too_many_arguments, reason = "the parameters of the estimator")]
pub fn alternatives_brier<'py>(
    py: Python<'py>,
    features: PyReadonlyArray2<'_, u8>,
    time: PyReadonlyArray1<'_, f64>,
    event: PyReadonlyArray1<'_, bool>,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    tree: TreeArrays,
    leaf_curve: &str,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyAlternatives<'py>> {
    let (limits, tree) = (parse(limits)?, tree_of(tree));
    let matrix = matrix(&features, time.len()?)?;
    let obs = observations(&time, &event, weight.as_ref(), None)?;
    let task = brier(&obs, limits.leaf_penalty, leaf_curve, None)?;
    let found = run(py, &task, &matrix, &limits, None, |task, matrix, settings, monitor| {
        search::alternatives_brier(task, matrix, settings, monitor, &tree)
    })?;
    Ok(py_alternatives(py, found))
}

//! Trees by integrated Brier score for Python.

use crate::search::{PySolution, matrix, parse, run, to_py};
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

/// Every tree whose objective is within 1e-9 of the optimum, at most `limit`, few leaves
/// first; columns that split a node's rows in the same way count once.
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, *, limit, leaf_curve="kaplan-meier",
    **limits))]
#[allow(clippy::too_many_arguments, reason = "the parameters of the estimator")]
pub fn all_optimal_brier(
    py: Python<'_>,
    features: PyReadonlyArray2<'_, u8>,
    time: PyReadonlyArray1<'_, f64>,
    event: PyReadonlyArray1<'_, bool>,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    limit: usize,
    leaf_curve: &str,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<PySolution>> {
    let limits = parse(limits)?;
    let matrix = matrix(&features, time.len()?)?;
    let obs = observations(&time, &event, weight.as_ref(), None)?;
    let task = brier(&obs, limits.leaf_penalty, leaf_curve, None)?;
    let all = run(py, &task, &matrix, &limits, None, |task, matrix, settings, monitor| {
        search::all_optimal_brier(task, matrix, settings, monitor, limit)
    })?;
    Ok(all.into_iter().map(PySolution).collect())
}

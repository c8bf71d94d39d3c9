//! Trees by integrated Brier score for Python.

use crate::search::{PySolution, matrix, parse, run, to_py};
use bristlecone_core::search;
use bristlecone_core::survival::Observations;
use bristlecone_core::task::brier::{Brier, LeafCurve};
use numpy::PyReadonlyArray1;
use numpy::PyReadonlyArray2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What the objective is made of, apart from the rows.
struct Kind<'a, 'py> {
    leaf_penalty: f64,
    leaf_curve: &'a str,
    reference_loss: Option<PyReadonlyArray1<'py, f64>>,
}

/// The objective of arrays from Python.
fn brier(
    time: &PyReadonlyArray1<'_, f64>,
    event: &PyReadonlyArray1<'_, bool>,
    weight: Option<&PyReadonlyArray1<'_, f64>>,
    kind: &Kind<'_, '_>,
) -> PyResult<Brier> {
    let obs = Observations {
        time: time.as_slice()?,
        event: event.as_slice()?,
        weight: weight.map(|w| w.as_slice()).transpose()?,
        entry: None,
    };
    let reference = kind.reference_loss.as_ref().map(|l| l.as_slice()).transpose()?;
    let lengths =
        [Some(obs.event.len()), obs.weight.map(<[f64]>::len), reference.map(<[f64]>::len)];
    if lengths.into_iter().flatten().any(|len| len != obs.len()) {
        return Err(PyValueError::new_err(
            "time, event, weight and reference_loss differ in length",
        ));
    }
    let columns = [("time", Some(obs.time)), ("weight", obs.weight), ("reference_loss", reference)];
    for (name, values) in columns {
        if let Some(bad) = values.and_then(|v| v.iter().position(|x| !x.is_finite() || *x < 0.0)) {
            return Err(PyValueError::new_err(format!("{name}: row {bad} is not a number >= 0")));
        }
    }
    let curve = match kind.leaf_curve {
        "kaplan-meier" => LeafCurve::KaplanMeier,
        "brier-optimal" => LeafCurve::BrierOptimal,
        other => {
            return Err(PyValueError::new_err(format!(
                "leaf_curve must be 'kaplan-meier' or 'brier-optimal', not {other:?}"
            )));
        }
    };
    Brier::new(&obs, kind.leaf_penalty, curve, reference).map_err(to_py)
}

/// Best tree by integrated Brier score; see `OptimalSurvivalTree(objective="brier")`.
///
/// With `reference_loss`, the loss of a reference model on each row (mean = its integrated
/// Brier score), subtrees are taken to lose no less than it; the status is then
/// "reference_optimal" and `lower_bound` does not rest on it.
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, callback=None, *,
    leaf_curve="kaplan-meier", reference_loss=None, **limits))]
#[allow(clippy::too_many_arguments, reason = "the parameters of the estimator")]
pub fn solve_brier(
    py: Python<'_>,
    features: PyReadonlyArray2<'_, u8>,
    time: PyReadonlyArray1<'_, f64>,
    event: PyReadonlyArray1<'_, bool>,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    callback: Option<Py<PyAny>>,
    leaf_curve: &str,
    reference_loss: Option<PyReadonlyArray1<'_, f64>>,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<PySolution> {
    let limits = parse(limits)?;
    let matrix = matrix(&features, time.len()?)?;
    let kind = Kind { leaf_penalty: limits.leaf_penalty, leaf_curve, reference_loss };
    let task = brier(&time, &event, weight.as_ref(), &kind)?;
    Ok(PySolution(run(py, &task, &matrix, &limits, callback, search::solve_brier)?))
}

/// The best tree with at most k leaves for k = 1, 2, ….
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, callback=None, *,
    leaf_curve="kaplan-meier", reference_loss=None, **limits))]
#[allow(clippy::too_many_arguments, reason = "the parameters of the estimator")]
pub fn path_brier(
    py: Python<'_>,
    features: PyReadonlyArray2<'_, u8>,
    time: PyReadonlyArray1<'_, f64>,
    event: PyReadonlyArray1<'_, bool>,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    callback: Option<Py<PyAny>>,
    leaf_curve: &str,
    reference_loss: Option<PyReadonlyArray1<'_, f64>>,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<PySolution>> {
    let limits = parse(limits)?;
    let matrix = matrix(&features, time.len()?)?;
    let kind = Kind { leaf_penalty: limits.leaf_penalty, leaf_curve, reference_loss };
    let task = brier(&time, &event, weight.as_ref(), &kind)?;
    let path = run(py, &task, &matrix, &limits, callback, search::path_brier)?;
    Ok(path.into_iter().map(PySolution).collect())
}

/// Every tree whose objective is within 1e-9 of the optimum, at most `limit`, few leaves
/// first; columns that split a node's rows in the same way count once.
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, callback=None, *, limit,
    leaf_curve="kaplan-meier", reference_loss=None, **limits))]
#[allow(clippy::too_many_arguments, reason = "the parameters of the estimator")]
pub fn all_optimal_brier(
    py: Python<'_>,
    features: PyReadonlyArray2<'_, u8>,
    time: PyReadonlyArray1<'_, f64>,
    event: PyReadonlyArray1<'_, bool>,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    callback: Option<Py<PyAny>>,
    limit: usize,
    leaf_curve: &str,
    reference_loss: Option<PyReadonlyArray1<'_, f64>>,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<PySolution>> {
    let limits = parse(limits)?;
    let matrix = matrix(&features, time.len()?)?;
    let kind = Kind { leaf_penalty: limits.leaf_penalty, leaf_curve, reference_loss };
    let task = brier(&time, &event, weight.as_ref(), &kind)?;
    let all = run(py, &task, &matrix, &limits, callback, |task, matrix, settings, monitor| {
        search::all_optimal_brier(task, matrix, settings, monitor, limit)
    })?;
    Ok(all.into_iter().map(PySolution).collect())
}

//! Outcomes from Python, and the estimators of `core::survival` for it.

use crate::run::to_py;
use bristlecone_core::error::not_negative;
use bristlecone_core::survival::{Observations, RiskTable, baseline_hazard};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Outcomes of rows, borrowed; ValueError for columns of different length and for values that
/// are not numbers >= 0.
pub(crate) fn observations<'a>(
    time: &'a PyReadonlyArray1<'_, f64>,
    event: &'a PyReadonlyArray1<'_, bool>,
    weight: Option<&'a PyReadonlyArray1<'_, f64>>,
    entry: Option<&'a PyReadonlyArray1<'_, f64>>,
) -> PyResult<Observations<'a>> {
    let obs = Observations {
        time: time.as_slice()?,
        event: event.as_slice()?,
        weight: weight.map(|w| w.as_slice()).transpose()?,
        entry: entry.map(|v| v.as_slice()).transpose()?,
        count: None,
    };
    let n = obs.len();
    if u32::try_from(n).is_err() {
        return Err(PyValueError::new_err("time: more than 2^32 rows"));
    }
    if obs.event.len() != n
        || obs.weight.is_some_and(|w| w.len() != n)
        || obs.entry.is_some_and(|v| v.len() != n)
    {
        return Err(PyValueError::new_err("time, event, weight and entry differ in length"));
    }
    for (name, values) in [("time", Some(obs.time)), ("weight", obs.weight), ("entry", obs.entry)] {
        if let Some(values) = values {
            not_negative(name, values).map_err(to_py)?;
        }
    }
    Ok(obs)
}

/// Everything the nonparametric curves of a sample need, at its distinct times.
///
/// Returns a dict of arrays: `time`, `at_risk`, `events`, `censored`, `nelson_aalen`,
/// `kaplan_meier`, `censoring` (every row at risk at its own time) and
/// `censoring_events_first` (the events of a time leave before its censorings).
#[pyfunction]
#[pyo3(signature = (time, event, weight=None, entry=None))]
pub fn risk_table<'py>(
    py: Python<'py>,
    time: PyReadonlyArray1<'py, f64>,
    event: PyReadonlyArray1<'py, bool>,
    weight: Option<PyReadonlyArray1<'py, f64>>,
    entry: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Bound<'py, PyDict>> {
    let obs = observations(&time, &event, weight.as_ref(), entry.as_ref())?;
    let table = RiskTable::new(&obs);
    let out = PyDict::new(py);
    out.set_item("nelson_aalen", table.nelson_aalen().into_pyarray(py))?;
    out.set_item("kaplan_meier", table.kaplan_meier().into_pyarray(py))?;
    out.set_item("censoring", table.censoring(false).into_pyarray(py))?;
    out.set_item("censoring_events_first", table.censoring(true).into_pyarray(py))?;
    out.set_item("time", table.time.into_pyarray(py))?;
    out.set_item("at_risk", table.at_risk.into_pyarray(py))?;
    out.set_item("events", table.events.into_pyarray(py))?;
    out.set_item("censored", table.censored.into_pyarray(py))?;
    Ok(out)
}

/// Baseline hazard of every row between its entry and its time, as the likelihood has it.
#[pyfunction]
pub fn row_hazard<'py>(
    py: Python<'py>,
    time: PyReadonlyArray1<'py, f64>,
    event: PyReadonlyArray1<'py, bool>,
    weight: Option<PyReadonlyArray1<'py, f64>>,
    entry: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let obs = observations(&time, &event, weight.as_ref(), entry.as_ref())?;
    Ok(baseline_hazard(&obs).into_pyarray(py))
}

//! The estimators of `core::survival` for Python.

use bristlecone_core::survival::{Observations, RiskTable};
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

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
    let obs = Observations {
        time: time.as_slice()?,
        event: event.as_slice()?,
        weight: weight.as_ref().map(|w| w.as_slice()).transpose()?,
        entry: entry.as_ref().map(|v| v.as_slice()).transpose()?,
    };
    let n = obs.len();
    if obs.event.len() != n
        || obs.weight.is_some_and(|w| w.len() != n)
        || obs.entry.is_some_and(|v| v.len() != n)
    {
        return Err(PyValueError::new_err("time, event, weight and entry differ in length"));
    }
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

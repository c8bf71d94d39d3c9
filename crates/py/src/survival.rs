//! Outcomes from Python, and the estimators of `core::survival` for Python.

use crate::memory::{PER_ROW, ensure};
use crate::run::to_py;
use bristlecone_core::error::not_negative;
use bristlecone_core::survival::{Observations, RiskTable, baseline_hazard};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Outcomes of rows, borrowed; ValueError if columns differ in length or values are not numbers >=
/// 0, MemoryError if there is no room for what is computed from them.
pub(crate) fn observations<'a>(
    time: &'a PyReadonlyArray1<'_, f64>,
    event: &'a PyReadonlyArray1<'_, bool>,
    weight: Option<&'a PyReadonlyArray1<'_, f64>>,
    entry: Option<&'a PyReadonlyArray1<'_, f64>>,
    place: Option<&'a PyReadonlyArray1<'_, i64>>,
) -> PyResult<Observations<'a>> {
    let obs = Observations {
        time: time.as_slice()?,
        event: event.as_slice()?,
        weight: weight.map(|w| w.as_slice()).transpose()?,
        entry: entry.map(|v| v.as_slice()).transpose()?,
        place: place.map(|place| place.as_slice()).transpose()?,
        ..Observations::default()
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
    ensure(n.saturating_mul(PER_ROW))?;
    Ok(obs)
}

/// Weight at risk, of events and of censorings at the distinct times of rows, and the curves that
/// follow from them.
#[pyclass(frozen, name = "RiskTable")]
pub struct PyRiskTable(RiskTable);

#[pymethods]
impl PyRiskTable {
    #[new]
    #[pyo3(signature = (time, event, weight=None, entry=None, place=None))]
    fn new(
        time: PyReadonlyArray1<'_, f64>,
        event: PyReadonlyArray1<'_, bool>,
        weight: Option<PyReadonlyArray1<'_, f64>>,
        entry: Option<PyReadonlyArray1<'_, f64>>,
        place: Option<PyReadonlyArray1<'_, i64>>,
    ) -> PyResult<Self> {
        let obs = observations(&time, &event, weight.as_ref(), entry.as_ref(), place.as_ref())?;
        Ok(PyRiskTable(RiskTable::new(&obs)))
    }

    /// One table for the rows of every group in `0..n_groups`; rows of other groups are ignored.
    #[staticmethod]
    #[pyo3(signature = (group, n_groups, time, event, weight=None, entry=None, place=None))]
    fn by_group(
        group: PyReadonlyArray1<'_, u32>,
        n_groups: usize,
        time: PyReadonlyArray1<'_, f64>,
        event: PyReadonlyArray1<'_, bool>,
        weight: Option<PyReadonlyArray1<'_, f64>>,
        entry: Option<PyReadonlyArray1<'_, f64>>,
        place: Option<PyReadonlyArray1<'_, i64>>,
    ) -> PyResult<Vec<Self>> {
        let obs = observations(&time, &event, weight.as_ref(), entry.as_ref(), place.as_ref())?;
        let group = group.as_slice()?;
        if group.len() != obs.len() {
            return Err(PyValueError::new_err("group: not one for every row"));
        }
        ensure(n_groups.saturating_mul(size_of::<RiskTable>()))?;
        Ok(RiskTable::by_group(&obs, group, n_groups).into_iter().map(PyRiskTable).collect())
    }

    /// Distinct times, ascending.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.0.time)
    }

    /// Weight of the rows at risk at each time.
    #[getter]
    fn at_risk<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.0.at_risk)
    }

    /// Weight of the events.
    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.0.events)
    }

    /// Weight of the censorings.
    #[getter]
    fn censored<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.0.censored)
    }

    /// Number of events and of censorings, for rows without weights.
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<[Bound<'py, PyArray1<i64>>; 2]> {
        self.ensure()?;
        let whole = |values: &[f64]| values.iter().map(|&v| v as i64).collect::<Vec<_>>();
        let of = |values| whole(values).into_pyarray(py);
        Ok([of(&self.0.events), of(&self.0.censored)])
    }

    /// The times with an event, and the weight at risk, the Kaplan–Meier survival and the
    /// Nelson–Aalen hazard at these times.
    fn at_events<'py>(&self, py: Python<'py>) -> PyResult<[Bound<'py, PyArray1<f64>>; 4]> {
        self.ensure()?;
        let table = &self.0;
        let (survival, hazard) = (table.kaplan_meier(), table.nelson_aalen());
        Ok([&table.time, &table.at_risk, &survival, &hazard].map(|values| {
            let events = values.iter().zip(&table.events).filter(|(_, events)| **events > 0.0);
            events.map(|(&value, _)| value).collect::<Vec<_>>().into_pyarray(py)
        }))
    }

    fn nelson_aalen<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.ensure()?;
        Ok(self.0.nelson_aalen().into_pyarray(py))
    }

    fn kaplan_meier<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.ensure()?;
        Ok(self.0.kaplan_meier().into_pyarray(py))
    }

    /// The censoring distribution. Every row is at risk at its own time, or, with
    /// `events_leave_first`, the events of a time leave before its censorings.
    fn censoring<'py>(
        &self,
        py: Python<'py>,
        events_leave_first: bool,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.ensure()?;
        Ok(self.0.censoring(events_leave_first).into_pyarray(py))
    }

    /// Σ weight · value over the rows; `values` has one entry for every distinct time of all
    /// groups.
    fn sum_of(&self, values: PyReadonlyArray1<'_, f64>) -> PyResult<f64> {
        let values = values.as_slice()?;
        self.0.sum_of(values).ok_or_else(|| PyValueError::new_err("values: not one for every time"))
    }
}

impl PyRiskTable {
    /// MemoryError if there is no room for the curves.
    fn ensure(&self) -> PyResult<()> {
        ensure(self.0.time.len().saturating_mul(PER_ROW))
    }
}

/// Baseline hazard of every row between its entry and its time, as used by the likelihood.
#[pyfunction]
#[pyo3(signature = (time, event, weight, entry, place=None))]
pub fn row_hazard<'py>(
    py: Python<'py>,
    time: PyReadonlyArray1<'py, f64>,
    event: PyReadonlyArray1<'py, bool>,
    weight: Option<PyReadonlyArray1<'py, f64>>,
    entry: Option<PyReadonlyArray1<'py, f64>>,
    place: Option<PyReadonlyArray1<'py, i64>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let obs = observations(&time, &event, weight.as_ref(), entry.as_ref(), place.as_ref())?;
    Ok(baseline_hazard(&obs).into_pyarray(py))
}

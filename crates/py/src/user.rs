//! Tasks defined in Python.

use crate::search::{PySolution, forecast_dict, matrix, parse, run, to_py};
use bristlecone_core::search::Stop;
use bristlecone_core::search::batch::{BatchTask, Cells, Statistics, forecast, solve};
use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Mutex;

/// Functions of an array of sums, shape (cells, statistics), with a number per cell.
struct UserTask {
    leaf_cost: Py<PyAny>,
    split_cost: Option<Py<PyAny>>,
    lower_bound: Option<Py<PyAny>>,
    /// What a function raised.
    error: Mutex<Option<PyErr>>,
}

impl UserTask {
    /// Calls a function, with the GIL; what it raises is kept and ends the search.
    fn call(&self, function: &Py<PyAny>, cells: &Cells, out: &mut [f64]) -> Result<(), Stop> {
        if self.error.lock().expect("not poisoned").is_some() {
            return Err(Stop::Interrupt);
        }
        let called = Python::attach(|py| -> PyResult<()> {
            // Columns are contiguous, which is what functions of single columns like best.
            let sums = PyArray2::<f64>::zeros(py, [cells.len(), cells.channels()], true);
            {
                let mut into = sums.try_readwrite()?;
                let columns = into.as_slice_mut()?.chunks_exact_mut(cells.len());
                for (c, column) in columns.enumerate() {
                    column.copy_from_slice(cells.channel(c));
                }
            }
            let values = function.bind(py).call1((sums,))?.extract::<PyReadonlyArray1<f64>>()?;
            if values.len() != out.len() {
                return Err(PyValueError::new_err("a cost per cell is needed"));
            }
            out.copy_from_slice(values.as_slice()?);
            Ok(())
        });
        called.map_err(|error| {
            self.error.lock().expect("not poisoned").get_or_insert(error);
            Stop::Interrupt
        })
    }
}

impl BatchTask for UserTask {
    fn leaf_costs(&self, cells: &Cells, costs: &mut [f64]) -> Result<(), Stop> {
        self.call(&self.leaf_cost, cells, costs)
    }

    fn has_split_costs(&self) -> bool {
        self.split_cost.is_some()
    }

    fn split_costs(&self, cells: &Cells, costs: &mut [f64]) -> Result<(), Stop> {
        match &self.split_cost {
            Some(function) => self.call(function, cells, costs),
            None => {
                costs.fill(0.0);
                Ok(())
            }
        }
    }

    fn lower_bounds(&self, cells: &Cells, bounds: &mut [f64]) -> Result<(), Stop> {
        match &self.lower_bound {
            Some(function) => self.call(function, cells, bounds),
            None => {
                bounds.fill(f64::NEG_INFINITY);
                Ok(())
            }
        }
    }
}

/// Best tree for costs that are functions of summed statistics; see `OptimalTree`.
///
/// `statistics` (n, k) are summed over the rows of a cell. The functions take sums (m, k),
/// m > 0, of cells that are not empty, and return float64 (m,) without NaN; they are called
/// from threads of the search. Costs are divided by `total_weight`.
#[pyfunction]
#[pyo3(signature = (features, statistics, leaf_cost, split_cost=None, lower_bound=None, *,
    total_weight, callback=None, **limits))]
#[allow(clippy::too_many_arguments, reason = "the parameters of the estimator")]
pub fn solve_user(
    py: Python<'_>,
    features: PyReadonlyArray2<'_, u8>,
    statistics: PyReadonlyArray2<'_, f64>,
    leaf_cost: Py<PyAny>,
    split_cost: Option<Py<PyAny>>,
    lower_bound: Option<Py<PyAny>>,
    total_weight: f64,
    callback: Option<Py<PyAny>>,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<PySolution> {
    let limits = parse(limits)?;
    let (n_rows, channels) = statistics.as_array().dim();
    let matrix = matrix(&features, n_rows)?;
    let statistics = Statistics::new(statistics.as_slice()?, channels).map_err(to_py)?;
    if !(total_weight.is_finite() && total_weight > 0.0) {
        return Err(PyValueError::new_err("total_weight must be a number > 0"));
    }
    let task = UserTask { leaf_cost, split_cost, lower_bound, error: Mutex::new(None) };
    let penalty = limits.leaf_penalty;
    let found = run(py, &task, &matrix, &limits, callback, |task, matrix, settings, monitor| {
        solve(task, matrix, &statistics, total_weight, penalty, settings, monitor)
    });
    match task.error.into_inner().expect("not poisoned") {
        Some(error) => Err(error),
        None => Ok(PySolution(found?)),
    }
}

/// What a search would take without the functions of the task: dict of seconds, bytes, cells,
/// row_visits, n_distinct_rows and n_active_features.
#[pyfunction]
#[pyo3(signature = (features, statistics, **limits))]
pub fn forecast_user<'py>(
    py: Python<'py>,
    features: PyReadonlyArray2<'_, u8>,
    statistics: PyReadonlyArray2<'_, f64>,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let settings = parse(limits)?.settings(py)?;
    let (n_rows, channels) = statistics.as_array().dim();
    let matrix = matrix(&features, n_rows)?;
    let statistics = Statistics::new(statistics.as_slice()?, channels).map_err(to_py)?;
    let (expected, sample) = forecast(&matrix, &statistics, &settings);
    forecast_dict(py, &expected, sample.n_rows(), sample.n_columns())
}

//! Tasks defined in Python, whose costs are functions of summed statistics.

use crate::run::to_py;
use bristlecone_core::registry::{Outside, Prepared};
use bristlecone_core::search::Stop;
use bristlecone_core::search::batch::{BatchTask, Cells, Statistics};
use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Mutex;

/// Name of such a task. Its data are `statistics`, float64 (n, k), which are summed over the rows
/// of a cell; `leaf_cost`, and optionally `split_cost` and `lower_bound`; and `total_weight`, by
/// which costs are divided. The functions take the sums (m, k), m > 0, of non-empty cells, and
/// return float64 (m,) without NaN. They are called from threads of the search.
pub(crate) const OWN: &str = "own";

/// Functions of an array of sums, shape (cells, statistics), that return one number per cell.
pub(crate) struct OwnTask {
    statistics: Statistics,
    total_weight: f64,
    leaf_cost: Py<PyAny>,
    split_cost: Option<Py<PyAny>>,
    lower_bound: Option<Py<PyAny>>,
    /// Error that a function raised.
    error: Mutex<Option<PyErr>>,
}

impl OwnTask {
    /// The task for these data; ValueError if they are invalid.
    pub(crate) fn new(data: &Bound<'_, PyDict>, n_rows: usize) -> PyResult<Self> {
        let optional = |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
            Ok(data.get_item(name)?.filter(|value| !value.is_none()))
        };
        let need = |name: &str| {
            optional(name)?.ok_or_else(|| PyValueError::new_err(format!("{name} is missing")))
        };
        let statistics: PyReadonlyArray2<'_, f64> = need("statistics")?.extract()?;
        let (n, channels) = statistics.as_array().dim();
        if n != n_rows {
            let message = format!("statistics has {n} rows, X has {n_rows}");
            return Err(PyValueError::new_err(message));
        }
        let total_weight: f64 = need("total_weight")?.extract()?;
        if !(total_weight.is_finite() && total_weight > 0.0) {
            return Err(PyValueError::new_err("total_weight must be a number > 0"));
        }
        Ok(OwnTask {
            statistics: Statistics::new(statistics.as_slice()?, channels).map_err(to_py)?,
            total_weight,
            leaf_cost: need("leaf_cost")?.unbind(),
            split_cost: optional("split_cost")?.map(Bound::unbind),
            lower_bound: optional("lower_bound")?.map(Bound::unbind),
            error: Mutex::new(None),
        })
    }

    /// The task in the form that the search needs.
    pub(crate) fn prepared(&self, leaf_penalty: f64) -> Prepared<'_> {
        let (statistics, total_weight) = (&self.statistics, self.total_weight);
        Prepared::Outside(Outside { task: self, statistics, total_weight, leaf_penalty })
    }

    /// Error that a function raised.
    pub(crate) fn raised(self) -> Option<PyErr> {
        self.error.into_inner().expect("not poisoned")
    }

    /// Calls a function with the GIL. If it raises, the exception is stored and ends the search.
    fn call(&self, function: &Py<PyAny>, cells: &Cells, out: &mut [f64]) -> Result<(), Stop> {
        if self.error.lock().expect("not poisoned").is_some() {
            return Err(Stop::Interrupt);
        }
        let called = Python::attach(|py| -> PyResult<()> {
            // Columns are contiguous, which suits functions of single columns.
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
            self.keep(error);
            Stop::Interrupt
        })
    }

    /// Stores the first exception that a function raised.
    fn keep(&self, error: PyErr) {
        self.error.lock().expect("not poisoned").get_or_insert(error);
    }
}

impl BatchTask for OwnTask {
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

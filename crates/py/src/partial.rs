//! Sums over parts of the rows, for Python.

use crate::columns::Data;
use crate::door::problem;
use crate::features::Features;
use crate::limits::{Arguments, parse};
use crate::memory::Reserve;
use crate::run::{run, to_py};
use crate::solution::PySolution;
use bristlecone_core::registry::{Summed, prepare_sums};
use bristlecone_core::search::partial::{Adder, Cell, Found, Leaves, Shape, Table, checksum};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// Arrays of a tree in preorder: features, true sides, false sides.
type Arrays<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

/// Sums of a task over the rows added so far; see `bristlecone_core::search::partial`.
#[pyclass(name = "PartialSums")]
pub struct PyPartialSums {
    task: Summed,
    table: Table,
    adder: Adder,
    limits: Arguments,
    found: Option<Found>,
}

impl PyPartialSums {
    fn found(&self) -> PyResult<&Found> {
        self.found.as_ref().ok_or_else(|| PyValueError::new_err("no tree was searched for yet"))
    }
}

#[pymethods]
impl PyPartialSums {
    /// A table without rows. `data` contains the columns of the task, with one entry per distinct
    /// outcome, and "count", the number of rows with each outcome. Features that are `flipped` are
    /// summed negated, which saves work if they are true in most rows. The depth is `max_depth`.
    /// ValueError if the table does not fit into `memory_limit` bytes, MemoryError if the system
    /// does not have them.
    #[new]
    #[pyo3(signature = (task, data, flipped, **limits))]
    fn new(
        py: Python<'_>,
        task: &str,
        data: &Bound<'_, PyDict>,
        flipped: PyReadonlyArray1<'_, bool>,
        limits: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let limits = parse(limits)?;
        let (data, flipped) = (Data::new(data)?, flipped.as_slice()?.to_vec());
        let n_features = flipped.len();
        let count = || data.columns()?.codes("count").map_err(to_py).map(<[i64]>::len);
        let problem = problem(&data, &limits, (count()?, n_features))?;
        let task = prepare_sums(task, &problem).map_err(to_py)?;
        let records = task.records();
        let statistics = records.statistics.iter().flat_map(|v| v.to_le_bytes());
        let identity = checksum(&statistics.collect::<Vec<u8>>());
        let (depth, channels) = (limits.max_depth, records.channels);
        let shape = Shape { n_features, depth, channels, flipped, task: identity };
        let reserve = &Reserve::new(0, 0)?;
        let table =
            run(py, reserve, &limits, None, |_, _| Table::new(shape, limits.memory_limit()))?;
        Ok(PyPartialSums { task, table, adder: Adder::default(), limits, found: None })
    }

    /// Adds rows: features of shape (rows, columns), and the index of the outcome of each row.
    /// After Ctrl-C or an error, the sums contain some of the rows and must not be used.
    fn add(
        &mut self,
        py: Python<'_>,
        features: Features<'_>,
        outcome: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<()> {
        let (n_rows, n_features) = features.shape();
        let reserve = &Reserve::new(n_rows, n_rows.saturating_mul(n_features))?;
        let (packed, outcome) = (features.packed()?, outcome.as_slice()?);
        self.found = None;
        let PyPartialSums { task, table, adder, limits, .. } = self;
        let stopped = run(py, reserve, limits, None, |settings, monitor| {
            let (records, backend) = (task.records(), settings.backend());
            adder.add(table, records, &mut packed.into_owned(), outcome, backend, monitor)
        })?;
        stopped.map_err(|_| PyKeyboardInterrupt::new_err(()))
    }

    /// Adds the sums of other rows.
    fn merge(&mut self, other: &PyPartialSums) -> PyResult<()> {
        self.found = None;
        self.table.merge(&other.table).map_err(to_py)
    }

    /// Adds sums that were converted to bytes.
    fn merge_bytes(&mut self, bytes: &[u8]) -> PyResult<()> {
        self.found = None;
        let other = Table::from_bytes(bytes).map_err(to_py)?;
        self.table.merge(&other).map_err(to_py)
    }

    /// The sums, with a version and a checksum.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.table.to_bytes())
    }

    /// Number of rows added so far.
    #[getter]
    fn n_rows(&self) -> i64 {
        self.table.n_rows()
    }

    /// Number of rows in the smallest non-empty cell, and its features with their values.
    fn smallest_cell(&self, py: Python<'_>) -> PyResult<Option<Cell>> {
        let reserve = &Reserve::new(0, 0)?;
        let found = run(py, reserve, &self.limits, None, |_, monitor| {
            Ok(self.table.smallest_cell(monitor))
        })?;
        found.map_err(|_| PyKeyboardInterrupt::new_err(()))
    }

    /// The best tree, as arrays in preorder.
    #[pyo3(signature = (callback=None, **limits))]
    fn search<'py>(
        &mut self,
        py: Python<'py>,
        callback: Option<Py<PyAny>>,
        limits: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Arrays<'py>> {
        let limits = &parse(limits)?;
        let reserve = &Reserve::new(0, 0)?;
        let (task, table) = (&self.task, &self.table);
        let found = run(py, reserve, limits, callback, |settings, monitor| {
            task.search(table, settings, monitor)
        })?;
        let tree = found.tree.clone();
        self.found = Some(found);
        let of = |values: Vec<i64>| values.into_pyarray(py);
        Ok((of(tree.feature), of(tree.left), of(tree.right)))
    }

    /// The solution with its certificate: from the number of rows by outcome and leaf (counted in
    /// preorder), or without these from the sums alone.
    #[pyo3(signature = (leaves=None, **limits))]
    fn certify(
        &self,
        py: Python<'_>,
        leaves: Option<(
            PyReadonlyArray1<'_, i64>,
            PyReadonlyArray1<'_, i64>,
            PyReadonlyArray1<'_, i64>,
        )>,
        limits: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PySolution> {
        let (limits, found) = (&parse(limits)?, self.found()?);
        let n_records = self.task.records().n_records();
        let n_leaves = found.tree.n_leaves();
        let places = |values: &PyReadonlyArray1<'_, i64>, most: usize, name: &str| {
            let place = |&v: &i64| usize::try_from(v).ok().filter(|v| *v < most);
            let places = values.as_slice()?.iter().map(place).collect::<Option<Vec<usize>>>();
            places.ok_or_else(|| PyValueError::new_err(format!("{name}: not one of {most}")))
        };
        let leaves = leaves
            .map(|(record, leaf, count)| {
                let record = places(&record, n_records, "outcome")?;
                let leaf = places(&leaf, n_leaves, "leaf")?;
                let count = count.as_slice()?.to_vec();
                if record.len() != leaf.len() || leaf.len() != count.len() {
                    return Err(PyValueError::new_err("outcome, leaf and count differ in length"));
                }
                Ok::<_, PyErr>(Leaves { record, leaf, count })
            })
            .transpose()?;
        let reserve = &Reserve::new(0, 0)?;
        let solution = run(py, reserve, limits, None, |settings, monitor| {
            let (table, leaves) = (&self.table, leaves.as_ref());
            self.task.certify(table, settings, monitor, found, leaves)
        })?;
        Ok(PySolution(solution))
    }
}

//! Where the greedy tree of an objective cuts, for Python.

use crate::columns::Data;
use crate::door::problem;
use crate::greedy::{heeding_signals, smallest};
use crate::limits::parse;
use crate::memory::Reserve;
use crate::run::to_py;
use bristlecone_core::greedy::Limits;
use bristlecone_core::registry;
use numpy::{IntoPyArray, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::{Duration, Instant};

/// The cuts of the greedy tree of an objective, pruned exactly to what is allowed.
///
/// `codes`, shape (columns, rows), are the ranks of the values of every column: 0, 1, 2, …;
/// `task` and `data` are those of `solve`, prices by column. The settings are those of a search, of which threads, memory and options are not looked at; a tree that
/// `time_limit` stops is of what was grown so far. Returns arrays in preorder: `column` (-2 at a
/// leaf), `children_left`, `children_right` (-1 at a leaf), and `below` and `above`, the codes of
/// the node between which it is cut; the lower ones go left.
#[pyfunction]
#[pyo3(signature = (task, data, codes, **limits))]
pub fn greedy_cuts<'py>(
    py: Python<'py>,
    task: &str,
    data: &Bound<'py, PyDict>,
    codes: PyReadonlyArray2<'py, u32>,
    limits: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let settings = parse(limits)?;
    let codes = codes.as_array();
    let (n_columns, n_rows) = codes.dim();
    let deadline = match settings.time_limit.map(Duration::try_from_secs_f64) {
        None => None,
        Some(Ok(limit)) => Instant::now().checked_add(limit),
        Some(Err(_)) => return Err(PyValueError::new_err("time_limit is not a number of seconds")),
    };
    let limits = &Limits {
        max_depth: Some(settings.max_depth),
        max_leaf_nodes: settings.max_leaf_nodes,
        smallest: smallest(settings.min_samples_leaf, settings.min_events_leaf),
    };
    let code = |row: usize, column: usize| codes[[column, row]];
    let data = Data::new(data)?;
    let problem = problem(&data, &settings, (n_rows, n_columns))?;
    let reserve = &Reserve::new(n_rows, codes.len() * size_of::<u64>())?;
    let grown = py
        .detach(move || {
            let task = registry::prepare(task, &problem).map_err(to_py)?;
            heeding_signals(reserve, deadline, |interrupted| {
                task.greedy_cuts(n_columns, &code, limits, interrupted)
            })
        })?
        .map_err(to_py)?;
    let out = PyDict::new(py);
    out.set_item("column", grown.tree.feature.into_pyarray(py))?;
    out.set_item("children_left", grown.tree.left.into_pyarray(py))?;
    out.set_item("children_right", grown.tree.right.into_pyarray(py))?;
    out.set_item("below", grown.below.into_pyarray(py))?;
    out.set_item("above", grown.above.into_pyarray(py))?;
    Ok(out)
}

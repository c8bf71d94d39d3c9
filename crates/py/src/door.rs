//! The single entry point: what can be asked of a task, by its name.
//!
//! Every function takes the name of a task, its data by name, and features: a `BinaryMatrix`, or an
//! array of shape (rows, columns) with zeros and ones and a dtype of one byte. A task is one of
//! `tasks()`, or "own", whose `data` are functions; see `own`.

use crate::columns::Data;
use crate::features::Features;
use crate::limits::{Arguments, parse};
use crate::memory::Reserve;
use crate::own::{OWN, OwnTask};
use crate::run::{run, to_py};
use crate::solution::{
    PyAlternatives, PyFront, PyNear, PySolution, TreeArrays, forecast_dict, py_alternatives,
    py_near, tree_of,
};
use bristlecone_core::data::{BinaryMatrix, RankMatrix};
use bristlecone_core::error::Error;
use bristlecone_core::registry::{self, Entry, OF_OUTSIDE, Prepared, Problem};
use bristlecone_core::search::{Monitor, Settings};
use numpy::PyReadonlyArray2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

type Dict<'a, 'py> = &'a Bound<'py, PyDict>;

/// Name of a task, the functions that accept it, and the options that its searches read.
type Listed = (&'static str, Vec<&'static str>, Vec<&'static str>);

/// All tasks.
#[pyfunction]
pub fn tasks() -> Vec<Listed> {
    let own = Entry { name: OWN, asks: &["solve", "forecast"], switches: OF_OUTSIDE };
    let listed = |task: Entry| (task.name, task.asks.to_vec(), task.switches.to_vec());
    registry::tasks().into_iter().chain([own]).map(listed).collect()
}

/// Prepares a task and queries it, without the GIL.
fn ask<R: Send>(
    py: Python<'_>,
    (task, data, features): (&str, Dict<'_, '_>, &Features<'_>),
    limits: Option<Dict<'_, '_>>,
    callback: Option<Py<PyAny>>,
    question: impl FnOnce(&Prepared, &BinaryMatrix, &Settings, &Monitor) -> Result<R, Error> + Send,
) -> PyResult<R> {
    let limits = &parse(limits)?;
    let (n_rows, n_features) = features.shape();
    let reserve = &Reserve::new(n_rows, n_rows.saturating_mul(n_features))?;
    let matrix = &*features.packed()?;
    if task == OWN {
        let own = OwnTask::new(data, n_rows)?;
        let found = run(py, reserve, limits, callback, |settings, monitor| {
            question(&own.prepared(limits.leaf_penalty), matrix, settings, monitor)
        });
        return own.raised().map_or(found, Err);
    }
    let data = Data::new(data)?;
    let problem = problem(&data, limits, (n_rows, n_features))?;
    run(py, reserve, limits, callback, move |settings, monitor| {
        question(&registry::prepare(task, &problem)?, matrix, settings, monitor)
    })
}

/// The problem for these columns.
pub(crate) fn problem<'a>(
    data: &'a Data<'_>,
    limits: &Arguments,
    (n_rows, n_features): (usize, usize),
) -> PyResult<Problem<'a>> {
    let (leaf_penalty, max_leaves) = (limits.leaf_penalty, limits.limits().most_leaves());
    Ok(Problem { columns: data.columns()?, n_rows, n_features, leaf_penalty, max_leaves })
}

/// The best tree for a task.
///
/// `callback(seconds, objective, lower_bound, nodes, share, seconds_left)` is called whenever the
/// incumbent or the bound may have improved, and every quarter of a second; the last two arguments
/// are None if there is no forecast.
#[pyfunction]
#[pyo3(signature = (task, data, features, callback=None, **limits))]
pub fn solve(
    py: Python<'_>,
    task: &str,
    data: Dict<'_, '_>,
    features: Features<'_>,
    callback: Option<Py<PyAny>>,
    limits: Option<Dict<'_, '_>>,
) -> PyResult<PySolution> {
    let found =
        ask(py, (task, data, &features), limits, callback, |task, x, s, m| task.solve(x, s, m));
    found.map(PySolution)
}

/// The best tree over all thresholds of columns of ranks, shape (columns, rows). Its features are
/// the questions `rank <= r`, numbered column by column from r = 0 to the largest rank minus 1.
#[pyfunction]
#[pyo3(signature = (task, data, ranks, callback=None, **limits))]
pub fn over_thresholds(
    py: Python<'_>,
    task: &str,
    data: Dict<'_, '_>,
    ranks: PyReadonlyArray2<'_, u32>,
    callback: Option<Py<PyAny>>,
    limits: Option<Dict<'_, '_>>,
) -> PyResult<PySolution> {
    let limits = &parse(limits)?;
    let (n_columns, n_rows) = ranks.as_array().dim();
    let values = ranks.as_slice().map_err(|_| PyValueError::new_err("ranks: not C-contiguous"))?;
    // Every column needs its ranks, two orders of the rows, and its thresholds.
    let reserve = &Reserve::new(n_rows, values.len().saturating_mul(32))?;
    let matrix = &RankMatrix::new(n_rows, n_columns, values.to_vec()).map_err(to_py)?;
    let data = Data::new(data)?;
    let problem = problem(&data, limits, (n_rows, matrix.n_questions()))?;
    run(py, reserve, limits, callback, move |settings, monitor| {
        registry::prepare(task, &problem)?.over_thresholds(matrix, settings, monitor)
    })
    .map(PySolution)
}

/// The best tree with at most k leaves for k = 1, 2, …, from one search.
#[pyfunction]
#[pyo3(signature = (task, data, features, **limits))]
pub fn path(
    py: Python<'_>,
    task: &str,
    data: Dict<'_, '_>,
    features: Features<'_>,
    limits: Option<Dict<'_, '_>>,
) -> PyResult<Vec<PySolution>> {
    let path = ask(py, (task, data, &features), limits, None, |task, x, s, m| task.path(x, s, m))?;
    Ok(path.into_iter().map(PySolution).collect())
}

/// Forecast of a search as a dict of seconds, row_seconds, bytes, cells, row_visits,
/// n_distinct_rows and n_active_features. For a task defined in Python, the time of its functions
/// is not included.
#[pyfunction]
#[pyo3(signature = (task, data, features, **limits))]
pub fn forecast<'py>(
    py: Python<'py>,
    task: &str,
    data: Dict<'_, 'py>,
    features: Features<'py>,
    limits: Option<Dict<'_, '_>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (expected, n_rows, n_columns) =
        ask(py, (task, data, &features), limits, None, |task, x, settings, _| {
            task.forecast(x, settings)
        })?;
    forecast_dict(py, &expected, n_rows, n_columns)
}

/// At most `limit` trees whose objective is within `slack` (and 1e-9) of the optimum, sorted by
/// leaves, and whether these are all. Columns that split a node's rows in the same way count once.
#[pyfunction]
#[pyo3(signature = (task, data, features, *, limit, slack=0.0, **limits))]
pub fn near_optimal(
    py: Python<'_>,
    task: &str,
    data: Dict<'_, '_>,
    features: Features<'_>,
    limit: usize,
    slack: f64,
    limits: Option<Dict<'_, '_>>,
) -> PyResult<PyNear> {
    let near = ask(py, (task, data, &features), limits, None, |task, x, settings, monitor| {
        task.near_optimal(x, settings, monitor, (slack, limit))
    })?;
    Ok(py_near(near))
}

/// The best tree with each other question at each split of a tree (given as arrays in preorder),
/// with the same nodes above and beside it: arrays of node, feature, objective and number of
/// leaves, and the reason if the search ended early, or None.
#[pyfunction]
#[pyo3(signature = (task, data, features, *, tree, **limits))]
pub fn alternatives<'py>(
    py: Python<'py>,
    task: &str,
    data: Dict<'_, 'py>,
    features: Features<'py>,
    tree: TreeArrays,
    limits: Option<Dict<'_, '_>>,
) -> PyResult<PyAlternatives<'py>> {
    let tree = tree_of(tree);
    let found = ask(py, (task, data, &features), limits, None, |task, x, settings, monitor| {
        task.alternatives(x, settings, monitor, &tree)
    })?;
    Ok(py_alternatives(py, found))
}

/// The front of a task, or its best tree under limits.
#[pyfunction]
#[pyo3(signature = (task, data, features, callback=None, **limits))]
pub fn front(
    py: Python<'_>,
    task: &str,
    data: Dict<'_, '_>,
    features: Features<'_>,
    callback: Option<Py<PyAny>>,
    limits: Option<Dict<'_, '_>>,
) -> PyResult<PyFront> {
    ask(py, (task, data, &features), limits, callback, |task, x, s, m| task.front(x, s, m))
        .map(PyFront)
}

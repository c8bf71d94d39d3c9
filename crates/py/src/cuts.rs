//! Columns as ranks, and the cuts of an objective's greedy tree, for Python.

use crate::columns::{Data, type_of};
use crate::door::problem;
use crate::greedy::{heeding_ctrl_c, heeding_signals, smallest};
use crate::limits::parse;
use crate::memory::{PER_ROW, Reserve, ensure, return_freed};
use crate::run::to_py;
use bristlecone_core::data::{self, Ranks};
use bristlecone_core::greedy::{Codes, Limits};
use bristlecone_core::registry;
use numpy::ndarray::Dimension;
use numpy::{Element, IntoPyArray, PyArray1, PyReadonlyArray, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::{Duration, Instant};

/// A column of training rows: ranks of its values (many or few levels), or answers to a question.
pub enum Ranked<'py> {
    Ranks(PyReadonlyArray1<'py, u32>),
    Bins(PyReadonlyArray1<'py, u8>),
    Answers(PyReadonlyArray1<'py, bool>),
}

impl<'py> FromPyObject<'_, 'py> for Ranked<'py> {
    type Error = PyErr;

    fn extract(column: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match type_of(&column) {
            Some((b'u', 1, _)) => Ok(Ranked::Bins(column.extract()?)),
            Some((b'b', ..)) => Ok(Ranked::Answers(column.extract()?)),
            _ => Ok(Ranked::Ranks(column.extract()?)),
        }
    }
}

impl Ranked<'_> {
    fn len(&self) -> usize {
        match self {
            Ranked::Ranks(ranks) => ranks.as_array().len(),
            Ranked::Bins(ranks) => ranks.as_array().len(),
            Ranked::Answers(answers) => answers.as_array().len(),
        }
    }

    fn codes(&self) -> PyResult<Codes<'_>> {
        Ok(match self {
            Ranked::Ranks(ranks) => Codes::Ranks(slice(ranks)?.into()),
            Ranked::Bins(ranks) => Codes::Few(slice(ranks)?.into()),
            Ranked::Answers(answers) => {
                Codes::Few(slice(answers)?.iter().map(|&yes| yes.into()).collect())
            }
        })
    }
}

pub(crate) fn slice<'a, T: Element, D: Dimension>(
    column: &'a PyReadonlyArray<'_, T, D>,
) -> PyResult<&'a [T]> {
    column.as_slice().map_err(|_| PyValueError::new_err("columns: not contiguous"))
}

/// Checks that every column has this number of rows.
pub(crate) fn check_rows(columns: &[Ranked], n_rows: usize) -> PyResult<()> {
    if columns.iter().any(|column| column.len() != n_rows) {
        return Err(PyValueError::new_err("columns: of different lengths"));
    }
    match u32::try_from(n_rows) {
        Ok(_) => Ok(()),
        Err(_) => Err(PyValueError::new_err("columns: more than 2^32 rows")),
    }
}

type RanksOut<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>);

/// Position of every value among the distinct values, and these in ascending order; NaN comes after
/// all of them and is not one of them. O(n).
#[pyfunction]
pub fn rank_values<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
) -> PyResult<RanksOut<'py>> {
    let values = values.as_array();
    if u32::try_from(values.len()).is_err() {
        return Err(PyValueError::new_err("values: more than 2^32 rows"));
    }
    ensure(values.len().saturating_mul(PER_ROW))?;
    let found = py.detach(|| {
        heeding_ctrl_c(|interrupted| match values.as_slice() {
            Some(values) => Ranks::unless(values, interrupted),
            None => Ranks::unless(&values.to_vec(), interrupted),
        })
    })?;
    let Ranks { ranks, distinct } = found.expect("a signal is an error");
    Ok((ranks.into_pyarray(py), distinct.into_pyarray(py)))
}

/// Gaps between the distinct values of a column, ascending, at their i / (n + 1) quantiles. `total`
/// contains the weights of the values, and `unit` is at most the smallest weight of a row.
#[pyfunction]
pub fn quantile_gaps<'py>(
    py: Python<'py>,
    distinct: PyReadonlyArray1<'py, f64>,
    total: PyReadonlyArray1<'py, f64>,
    n: usize,
    unit: f64,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (distinct, total) = (slice(&distinct)?, slice(&total)?);
    if distinct.len() != total.len() {
        return Err(PyValueError::new_err("total: not a weight for every value"));
    }
    ensure(n.saturating_mul(PER_ROW))?;
    Ok(data::quantile_gaps(distinct, total, n, unit).into_pyarray(py))
}

/// The cuts of an objective's greedy tree, pruned exactly to what is allowed.
///
/// `columns` are the ranks 0, 1, 2, … of every column's values, or boolean answers. `task` and
/// `data` are those of `solve`, with prices by column. The settings are those of a search, without
/// threads, memory and options. If `time_limit` stops the growth, the tree is that of what was
/// grown so far. Returns arrays in preorder: `column` (-2 at a leaf), `children_left`,
/// `children_right` (-1 at a leaf), and `below` and `above`, the codes between which the node is
/// cut; lower codes go left.
#[pyfunction]
#[pyo3(signature = (task, data, columns, **limits))]
pub fn greedy_cuts<'py>(
    py: Python<'py>,
    task: &str,
    data: &Bound<'py, PyDict>,
    columns: Vec<Ranked<'py>>,
    limits: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let settings = parse(limits)?;
    let (n_rows, n_columns) = (columns.first().map_or(0, Ranked::len), columns.len());
    check_rows(&columns, n_rows)?;
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
    let codes = columns.iter().map(Ranked::codes).collect::<PyResult<Vec<_>>>()?;
    let data = Data::new(data)?;
    let problem = problem(&data, &settings, (n_rows, n_columns))?;
    let reserve = &Reserve::new(n_rows, n_rows * n_columns * size_of::<u64>())?;
    let grown = py
        .detach(move || {
            return_freed(n_rows * n_columns);
            let task = registry::prepare(task, &problem).map_err(to_py)?;
            heeding_signals(reserve, deadline, |interrupted| {
                task.greedy_cuts(codes, limits, interrupted)
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

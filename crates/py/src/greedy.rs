//! Greedy trees for Python.

use crate::cuts::slice;
use crate::features::Features;
use crate::memory::Reserve;
use crate::run::to_py;
use crate::survival::observations;
use bristlecone_core::data::{Smallest, check_size};
use bristlecone_core::greedy::{Codes, Grown, Limits, grow_by_costs, grow_by_logrank};
use bristlecone_core::survival::Observations;
use bristlecone_core::task::likelihood::Likelihood;
use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::{Duration, Instant};

/// Interval at which a fit checks for Ctrl-C.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

/// Binary features of rows, or ranks of their values by column, shape (columns, rows).
#[derive(FromPyObject)]
pub enum Columns<'py> {
    Binary(Features<'py>),
    Ranks(PyReadonlyArray2<'py, u32>),
}

/// Greedy survival tree over binary features, shape (rows, features), or over columns of ranks 0,
/// 1, 2, … without gaps, shape (columns, rows).
///
/// Rows go left if their feature holds, or if their rank is not above `below`. `criterion` is
/// "likelihood" or "logrank"; the likelihood may use `smoothed` events instead of the observed
/// ones. Returns a dict of arrays in preorder: `feature`, or column (-2 at a leaf),
/// `children_left`, `children_right` (-1 at a leaf) and `below` (0 at a leaf).
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, *, criterion, max_depth, max_leaf_nodes,
    min_samples_leaf, min_events_leaf=0, prior=0.0, smoothed=None))]
#[allow(clippy::too_many_arguments, reason = "the parameters of the estimator")]
pub fn grow_greedy<'py>(
    py: Python<'py>,
    features: Columns<'py>,
    time: PyReadonlyArray1<'py, f64>,
    event: PyReadonlyArray1<'py, bool>,
    weight: Option<PyReadonlyArray1<'py, f64>>,
    criterion: &str,
    max_depth: Option<usize>,
    max_leaf_nodes: Option<usize>,
    min_samples_leaf: usize,
    min_events_leaf: usize,
    prior: f64,
    smoothed: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Bound<'py, PyDict>> {
    let obs = observations(&time, &event, weight.as_ref(), None, None)?;
    let n = obs.len();
    let smoothed = smoothed.as_ref().map(|events| events.as_slice()).transpose()?;
    if smoothed.is_some_and(|events| events.len() != n) {
        return Err(PyValueError::new_err("smoothed: differs from time in length"));
    }
    let (n_rows, n_columns) = match &features {
        Columns::Binary(features) => features.shape(),
        Columns::Ranks(ranks) => (ranks.as_array().ncols(), ranks.as_array().nrows()),
    };
    if n_rows != n {
        return Err(PyValueError::new_err("features and outcomes differ in length"));
    }
    check_size(n, n_columns).map_err(to_py)?;
    if max_leaf_nodes == Some(0) {
        return Err(PyValueError::new_err("max_leaf_nodes must be at least 1"));
    }
    let fit = Fit {
        obs,
        // For two copies of the codes of all columns, and their orders.
        reserve: Reserve::new(n, n.saturating_mul(n_columns) * 3 * size_of::<u32>())?,
        likelihood: match criterion {
            "likelihood" => {
                let task = Likelihood::of_smoothed(&obs, smoothed, prior, 0.0);
                Some(task.map_err(to_py)?)
            }
            "logrank" if smoothed.is_some() => {
                return Err(PyValueError::new_err(
                    "smoothed: log-rank counts observed events only",
                ));
            }
            "logrank" => None,
            other => {
                return Err(PyValueError::new_err(format!(
                    "criterion must be 'likelihood' or 'logrank', not {other:?}"
                )));
            }
        },
        limits: Limits {
            max_depth,
            max_leaf_nodes,
            smallest: smallest(min_samples_leaf, min_events_leaf),
        },
    };
    let grown = match &features {
        Columns::Binary(features) => {
            let matrix = &*features.packed()?;
            let flags = |feature| {
                Codes::Few(matrix.column(feature).into_iter().map(|yes| u8::from(!yes)).collect())
            };
            py.detach(|| fit.grow((0..n_columns).map(flags).collect()))?
        }
        Columns::Ranks(ranks) => {
            let columns = slice(ranks)?.chunks_exact(n.max(1));
            py.detach(|| fit.grow(columns.map(|column| Codes::Ranks(column.into())).collect()))?
        }
    };
    let out = PyDict::new(py);
    out.set_item("feature", grown.tree.feature.into_pyarray(py))?;
    out.set_item("below", grown.below.into_pyarray(py))?;
    out.set_item("children_left", grown.tree.left.into_pyarray(py))?;
    out.set_item("children_right", grown.tree.right.into_pyarray(py))?;
    Ok(out)
}

/// Minimum rows and events of a leaf.
pub(crate) fn smallest(rows: usize, events: usize) -> Smallest {
    let whole = |least: usize| i64::try_from(least).unwrap_or(i64::MAX);
    Smallest { rows: whole(rows), events: whole(events) }
}

struct Fit<'a> {
    obs: Observations<'a>,
    reserve: Reserve,
    /// The likelihood criterion; `None` for log-rank.
    likelihood: Option<Likelihood>,
    limits: Limits,
}

impl Fit<'_> {
    /// Runs without the GIL. The exception of a signal, such as KeyboardInterrupt, ends the fit.
    fn grow(&self, columns: Vec<Codes>) -> PyResult<Grown> {
        let limits = &self.limits;
        let grown = heeding_signals(&self.reserve, None, |interrupted| match &self.likelihood {
            Some(task) => grow_by_costs(task, columns, limits, interrupted),
            None => grow_by_logrank(columns, &self.obs, limits, interrupted),
        })?;
        Ok(grown.expect("only a signal and memory interrupt, and these are raised"))
    }
}

/// Grows a tree without the GIL until a signal, whose exception is raised, the time limit or a lack
/// of memory stops it.
pub(crate) fn heeding_signals<R>(
    reserve: &Reserve,
    deadline: Option<Instant>,
    grow: impl FnOnce(&mut dyn FnMut() -> bool) -> R,
) -> PyResult<R> {
    let grown = heeding_ctrl_c(|signalled| {
        let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        grow(&mut || signalled() || reserve.is_used() || is_late())
    })?;
    reserve.unless_used(Ok(grown))
}

/// Result of a function that regularly asks whether to stop because of a signal that Python raises.
pub(crate) fn heeding_ctrl_c<R>(run: impl FnOnce(&mut dyn FnMut() -> bool) -> R) -> PyResult<R> {
    let mut signal = Ok(());
    let mut checked = Instant::now();
    let found = run(&mut || {
        if signal.is_ok() && checked.elapsed() >= SIGNAL_CHECK {
            signal = Python::attach(|py| py.check_signals());
            checked = Instant::now();
        }
        signal.is_err()
    });
    signal.map(|()| found)
}

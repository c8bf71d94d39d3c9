//! Where the greedy tree of an objective cuts, for Python.

use crate::brier::brier;
use crate::greedy::{heeding_signals, smallest};
use crate::search::{parse, to_py, with_likelihood};
use crate::survival::observations;
use crate::tasks::Data;
use bristlecone_core::greedy::{Grown, Limits, subtree_by_brier, subtree_by_costs};
use bristlecone_core::task::registry::{self, Visitor};
use bristlecone_core::task::{LaneTask, Superadditive};
use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::{Duration, Instant};

/// The cuts of the greedy tree of an objective, pruned exactly to what is allowed.
///
/// `codes`, shape (columns, rows), are the ranks of the values of every column: 0, 1, 2, …;
/// `task` and `data` are those of `solve`, or "likelihood" (`time`, `event`, `weight`, `entry`, `prior`) and
/// "brier" (`time`, `event`, `weight`, `leaf_curve`). Prices of `data` are by column. The settings
/// are those of a search, of which threads, memory and options are not looked at; a tree that
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
    if u32::try_from(n_rows).is_err() {
        return Err(PyValueError::new_err("codes: more than 2^32 rows"));
    }
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
    let (penalty, most_leaves) = (settings.leaf_penalty, settings.most_leaves());
    let grown = if matches!(task, "likelihood" | "brier") {
        let time: PyReadonlyArray1<'_, f64> = need(data, "time")?;
        let event: PyReadonlyArray1<'_, bool> = need(data, "event")?;
        let (weight, entry) = (optional(data, "weight")?, optional(data, "entry")?);
        let obs = observations(&time, &event, weight.as_ref(), entry.as_ref())?;
        if obs.len() != n_rows {
            return Err(PyValueError::new_err("codes and outcomes differ in length"));
        }
        if task == "brier" {
            let task = brier(&obs, penalty, &need::<String>(data, "leaf_curve")?, None)?;
            py.detach(|| {
                heeding_signals(deadline, |interrupted| {
                    subtree_by_brier(&task, n_columns, code, limits, interrupted)
                })
            })?
        } else {
            let prior: f64 = optional(data, "prior")?.unwrap_or(0.0);
            with_likelihood!(&obs, prior, penalty, task => py.detach(|| {
                heeding_signals(deadline, |interrupted| {
                    subtree_by_costs(&task, n_columns, code, limits, interrupted)
                })
            })?)
        }
    } else {
        let data = Data::new(data, (n_rows, n_columns))?;
        let task = data.task(task, penalty, most_leaves)?;
        let grown = py.detach(|| {
            heeding_signals(deadline, |interrupted| {
                let subtree = Subtree { n_columns, code, limits, interrupted };
                registry::visit(task.name, &task.problem, subtree)
            })
        })?;
        grown.map_err(to_py)?
    };
    let out = PyDict::new(py);
    out.set_item("column", grown.tree.feature.into_pyarray(py))?;
    out.set_item("children_left", grown.tree.left.into_pyarray(py))?;
    out.set_item("children_right", grown.tree.right.into_pyarray(py))?;
    out.set_item("below", grown.below.into_pyarray(py))?;
    out.set_item("above", grown.above.into_pyarray(py))?;
    Ok(out)
}

/// The value under `name`; None where absent.
fn optional<'py, T>(data: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    match data.get_item(name)? {
        Some(value) if !value.is_none() => match value.extract() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(PyValueError::new_err(format!("{name} is not of the right type"))),
        },
        _ => Ok(None),
    }
}

/// The value under `name`, which must be there.
fn need<'py, T>(data: &Bound<'py, PyDict>, name: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    optional(data, name)?.ok_or_else(|| PyValueError::new_err(format!("{name} is missing")))
}

/// Grows and prunes the tree of a task of the registry.
struct Subtree<'a, F> {
    n_columns: usize,
    code: F,
    limits: &'a Limits,
    interrupted: &'a mut dyn FnMut() -> bool,
}

impl<F: Fn(usize, usize) -> u32> Visitor for Subtree<'_, F> {
    type Output = Grown;
    fn visit<T: LaneTask + Superadditive>(self, task: &T) -> Grown {
        subtree_by_costs(task, self.n_columns, self.code, self.limits, self.interrupted)
    }
}

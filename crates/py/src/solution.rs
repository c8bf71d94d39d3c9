//! Results of searches, for Python.

use bristlecone_core::search::fronts::{Front, FrontPoint};
use bristlecone_core::search::{Alternative, Forecast, Near, Solution, Status, Stop, TracePoint};
use bristlecone_core::tree::Tree;
use numpy::{IntoPyArray, PyArray1, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;

type Array<'py, T> = Bound<'py, PyArray1<T>>;

fn array<'py>(values: &[i64], py: Python<'py>) -> Array<'py, i64> {
    values.to_pyarray(py)
}

/// Time, objective and bound of every improvement.
fn trace_of(trace: &[TracePoint]) -> Vec<(f64, f64, f64)> {
    trace.iter().map(|p| (p.seconds, p.objective, p.lower_bound)).collect()
}

/// Getters of a class that wraps a result: their names, types and values.
macro_rules! getters {
    ($class:ident, $($name:ident: $type:ty = |$result:ident, $py:pat_param| $value:expr;)*) => {
        #[pymethods]
        impl $class {
            $(
                #[getter]
                fn $name<'py>(&self, py: Python<'py>) -> $type {
                    let ($result, $py) = (&self.0, py);
                    $value
                }
            )*
        }
    };
}

/// Result of a search; its arrays describe the tree in preorder.
#[pyclass(name = "Solution", frozen)]
pub struct PySolution(pub(crate) Solution);

getters! {
    PySolution,
    feature: Array<'py, i64> = |found, py| array(&found.tree.feature, py);
    children_left: Array<'py, i64> = |found, py| array(&found.tree.left, py);
    children_right: Array<'py, i64> = |found, py| array(&found.tree.right, py);
    objective: f64 = |found, _| found.objective;
    lower_bound: f64 = |found, _| found.lower_bound;
    status: &'static str = |found, _| found.status.name();
    n_nodes_explored: u64 = |found, _| found.nodes;
    n_distinct_rows: usize = |found, _| found.n_distinct_rows;
    n_active_features: usize = |found, _| found.n_columns;
    kernel: &str = |found, _| &found.kernel;
    trace: Vec<(f64, f64, f64)> = |found, _| trace_of(&found.trace);
}

/// One tree of a front; its arrays describe the tree in preorder.
#[pyclass(name = "FrontPoint", frozen)]
pub struct PyFrontPoint(FrontPoint);

getters! {
    PyFrontPoint,
    feature: Array<'py, i64> = |point, py| array(&point.tree.feature, py);
    children_left: Array<'py, i64> = |point, py| array(&point.tree.left, py);
    children_right: Array<'py, i64> = |point, py| array(&point.tree.right, py);
    labels: Array<'py, i64> = |point, py| array(&point.labels, py);
    costs: Vec<f64> = |point, _| point.costs.clone();
}

/// Result of a search for a front, or for the best tree under limits.
#[pyclass(name = "Front", frozen)]
pub struct PyFront(pub(crate) Front);

getters! {
    PyFront,
    points: Vec<PyFrontPoint> = |front, _| front.points.iter().cloned().map(PyFrontPoint).collect();
    best: Option<usize> = |front, _| front.best;
    objective: f64 = |front, _| front.objective;
    lower_bound: f64 = |front, _| front.lower_bound;
    status: &'static str = |front, _| front.status.name();
    n_nodes_explored: u64 = |front, _| front.nodes;
    n_distinct_rows: usize = |front, _| front.n_distinct_rows;
    n_active_features: usize = |front, _| front.n_columns;
    trace: Vec<(f64, f64, f64)> = |front, _| trace_of(&front.trace);
}

/// Trees, and whether there are no others.
pub(crate) type PyNear = (Vec<PySolution>, bool);

pub(crate) fn py_near(near: Near) -> PyNear {
    (near.trees.into_iter().map(PySolution).collect(), near.complete)
}

/// Feature, left and right child of every node.
pub(crate) type TreeArrays = (Vec<i64>, Vec<i64>, Vec<i64>);

pub(crate) fn tree_of((feature, left, right): TreeArrays) -> Tree {
    Tree { feature, left, right }
}

/// Nodes, features, objectives, numbers of leaves, and the reason if the search ended early.
pub(crate) type PyAlternatives<'py> =
    (Array<'py, i64>, Array<'py, i64>, Array<'py, f64>, Array<'py, i64>, Option<&'static str>);

pub(crate) fn py_alternatives(
    py: Python<'_>,
    (found, stop): (Vec<Alternative>, Option<Stop>),
) -> PyAlternatives<'_> {
    let whole = |value: fn(&Alternative) -> usize| {
        found.iter().map(|one| value(one) as i64).collect::<Vec<_>>().into_pyarray(py)
    };
    let objectives: Vec<f64> = found.iter().map(|one| one.objective).collect();
    let stop = stop.map(|stop| Status::from(stop).name());
    let leaves = whole(|one| one.n_leaves);
    (whole(|one| one.node), whole(|one| one.feature), objectives.into_pyarray(py), leaves, stop)
}

/// A forecast as a dict.
pub(crate) fn forecast_dict<'py>(
    py: Python<'py>,
    expected: &Forecast,
    n_rows: usize,
    n_columns: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("seconds", expected.seconds)?;
    out.set_item("row_seconds", expected.row_seconds)?;
    out.set_item("bytes", expected.bytes)?;
    out.set_item("cells", expected.cells)?;
    out.set_item("row_visits", expected.row_visits)?;
    out.set_item("n_distinct_rows", n_rows)?;
    out.set_item("n_active_features", n_columns)?;
    Ok(out)
}

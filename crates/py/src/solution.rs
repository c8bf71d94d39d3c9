//! Results of searches, for Python.

use bristlecone_core::search::fronts::{Front, FrontPoint};
use bristlecone_core::search::{Alternative, Forecast, Near, Solution, Status, Stop};
use bristlecone_core::tree::Tree;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Result of a search; its arrays describe the tree in preorder.
#[pyclass(name = "Solution", frozen)]
pub struct PySolution(pub(crate) Solution);

#[pymethods]
impl PySolution {
    #[getter]
    fn feature<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.0.tree.feature.clone().into_pyarray(py)
    }
    #[getter]
    fn children_left<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.0.tree.left.clone().into_pyarray(py)
    }
    #[getter]
    fn children_right<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.0.tree.right.clone().into_pyarray(py)
    }
    #[getter]
    fn objective(&self) -> f64 {
        self.0.objective
    }
    #[getter]
    fn lower_bound(&self) -> f64 {
        self.0.lower_bound
    }
    #[getter]
    fn status(&self) -> &'static str {
        self.0.status.name()
    }
    #[getter]
    fn n_nodes_explored(&self) -> u64 {
        self.0.nodes
    }
    #[getter]
    fn n_distinct_rows(&self) -> usize {
        self.0.n_distinct_rows
    }
    #[getter]
    fn n_active_features(&self) -> usize {
        self.0.n_columns
    }
    #[getter]
    fn kernel(&self) -> &str {
        &self.0.kernel
    }
    #[getter]
    fn trace(&self) -> Vec<(f64, f64, f64)> {
        self.0.trace.iter().map(|p| (p.seconds, p.objective, p.lower_bound)).collect()
    }
}

/// One tree of a front; its arrays describe the tree in preorder.
#[pyclass(name = "FrontPoint", frozen)]
pub struct PyFrontPoint(FrontPoint);

#[pymethods]
impl PyFrontPoint {
    #[getter]
    fn feature<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.0.tree.feature.clone().into_pyarray(py)
    }
    #[getter]
    fn children_left<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.0.tree.left.clone().into_pyarray(py)
    }
    #[getter]
    fn children_right<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.0.tree.right.clone().into_pyarray(py)
    }
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.0.labels.clone().into_pyarray(py)
    }
    #[getter]
    fn costs(&self) -> Vec<f64> {
        self.0.costs.clone()
    }
}

/// Result of a search for a front, or for the best tree under limits.
#[pyclass(name = "Front", frozen)]
pub struct PyFront(pub(crate) Front);

#[pymethods]
impl PyFront {
    #[getter]
    fn points(&self) -> Vec<PyFrontPoint> {
        self.0.points.iter().cloned().map(PyFrontPoint).collect()
    }
    #[getter]
    fn best(&self) -> Option<usize> {
        self.0.best
    }
    #[getter]
    fn objective(&self) -> f64 {
        self.0.objective
    }
    #[getter]
    fn lower_bound(&self) -> f64 {
        self.0.lower_bound
    }
    #[getter]
    fn status(&self) -> &'static str {
        self.0.status.name()
    }
    #[getter]
    fn n_nodes_explored(&self) -> u64 {
        self.0.nodes
    }
    #[getter]
    fn n_distinct_rows(&self) -> usize {
        self.0.n_distinct_rows
    }
    #[getter]
    fn n_active_features(&self) -> usize {
        self.0.n_columns
    }
    #[getter]
    fn trace(&self) -> Vec<(f64, f64, f64)> {
        self.0.trace.iter().map(|p| (p.seconds, p.objective, p.lower_bound)).collect()
    }
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

type Array<'py, T> = Bound<'py, PyArray1<T>>;

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

//! Fronts and limited searches from Python: one function, tasks by name.

use crate::search::{matrix, parse, run};
use crate::survival::{not_negative, observations};
use bristlecone_core::data::BinaryMatrix;
use bristlecone_core::error::Error as CoreError;
use bristlecone_core::search::fronts::{
    Front, FrontPoint, Metric, solve_front as whole_front, solve_limited, solve_metric,
    without_capacity, without_fairness, without_parity,
};
use bristlecone_core::search::{Monitor, Settings};
use bristlecone_core::survival::Observations;
use bristlecone_core::task::capacity::Capacity;
use bristlecone_core::task::confusion::Confusion;
use bristlecone_core::task::fair_brier::FairBrier;
use bristlecone_core::task::fair_survival::FairSurvival;
use bristlecone_core::task::parity::{Criterion, Parity};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// One tree of a front; arrays describe it in preorder.
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

/// Result of a search for a front or for the best tree under limits.
#[pyclass(name = "Front", frozen)]
pub struct PyFront(Front);

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

/// Arrays and numbers of a task, by name.
struct Data<'a, 'py>(&'a Bound<'py, PyDict>);

impl<'py> Data<'_, 'py> {
    fn get<V: for<'a> FromPyObject<'a, 'py>>(&self, name: &str) -> PyResult<Option<V>> {
        match self.0.get_item(name)? {
            Some(value) if !value.is_none() => match value.extract() {
                Ok(value) => Ok(Some(value)),
                Err(_) => Err(PyValueError::new_err(format!("{name} is not of the right type"))),
            },
            _ => Ok(None),
        }
    }

    fn need<V: for<'a> FromPyObject<'a, 'py>>(&self, name: &str) -> PyResult<V> {
        self.get(name)?.ok_or_else(|| PyValueError::new_err(format!("{name} is missing")))
    }

    fn weights(&self, n: usize) -> PyResult<Option<Vec<f64>>> {
        let Some(array) = self.get::<PyReadonlyArray1<f64>>("weight")? else { return Ok(None) };
        let weights = array.as_slice()?.to_vec();
        if weights.len() != n {
            return Err(PyValueError::new_err("weight differs in length"));
        }
        not_negative("weight", &weights)?;
        Ok(Some(weights))
    }

    /// An array of 0 and 1.
    fn flags(&self, name: &str, n: usize) -> PyResult<Vec<bool>> {
        let array = self.need::<PyReadonlyArray1<i64>>(name)?;
        let values = array.as_slice()?;
        if values.len() != n {
            return Err(PyValueError::new_err(format!("{name} differs in length")));
        }
        match values.iter().position(|v| !(0..=1).contains(v)) {
            Some(bad) => Err(PyValueError::new_err(format!("{name}: row {bad} is not 0 or 1"))),
            None => Ok(values.iter().map(|&v| v == 1).collect()),
        }
    }

    fn share(&self, name: &str) -> PyResult<f64> {
        let value: f64 = self.need(name)?;
        if value.is_finite() && value >= 0.0 {
            Ok(value)
        } else {
            Err(PyValueError::new_err(format!("{name}: {value} is not a number >= 0")))
        }
    }
}

/// A search that has everything but its limits.
type Search<'a> = Box<dyn Fn(&Settings, &Monitor) -> Result<Front, CoreError> + Sync + 'a>;

/// The front of a task, or its best tree under limits; see `bristlecone.search.solve_front`.
#[pyfunction]
#[pyo3(signature = (task, data, features, callback=None, **limits))]
pub fn solve_front(
    py: Python<'_>,
    task: &str,
    data: &Bound<'_, PyDict>,
    features: PyReadonlyArray2<'_, u8>,
    callback: Option<Py<PyAny>>,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyFront> {
    let limits = parse(limits)?;
    let n = features.as_array().nrows();
    let matrix = matrix(&features, n)?;
    let (data, penalty) = (Data(data), limits.leaf_penalty);
    let weights = data.weights(n)?;
    let weights = weights.as_deref();
    let matrix = &matrix;
    let search: Search<'_> = match task {
        "confusion" => {
            if penalty > 0.0 {
                return Err(PyValueError::new_err("leaf_penalty: a front has no penalty"));
            }
            let labels = data.flags("labels", n)?;
            Box::new(move |s, m| whole_front(&Confusion::new(&labels, weights)?, matrix, s, m))
        }
        "f-measure" | "matthews" => {
            let metric = match task {
                "matthews" => Metric::Matthews,
                _ => Metric::FBeta(data.share("beta")?),
            };
            let labels = data.flags("labels", n)?;
            Box::new(move |s, m| solve_metric(metric, &labels, weights, penalty, matrix, s, m))
        }
        "demographic-parity" | "equality-of-opportunity" => {
            let criterion = match task {
                "demographic-parity" => Criterion::DemographicParity,
                _ => Criterion::EqualityOfOpportunity,
            };
            let (labels, group) = (data.flags("labels", n)?, data.flags("group", n)?);
            let delta = data.share("delta")?;
            Box::new(move |s, m| {
                let task = Parity::new(criterion, &labels, &group, weights, delta, penalty)?;
                let relaxed = without_parity(&labels, weights, penalty, matrix);
                solve_limited(&task, Some(&*relaxed), matrix, s, m)
            })
        }
        "label-costs" => {
            let costs = data.need::<PyReadonlyArray2<f64>>("costs")?;
            let capacity = data.need::<PyReadonlyArray1<f64>>("capacity")?.as_slice()?.to_vec();
            if costs.as_array().dim() != (n, capacity.len()) {
                let reason = "costs is not of shape (rows, labels) with a capacity per label";
                return Err(PyValueError::new_err(reason));
            }
            capacity_search(costs.as_slice()?.to_vec(), capacity, weights, penalty, matrix)?
        }
        "fair-survival" => {
            let time = data.need::<PyReadonlyArray1<f64>>("time")?;
            let event = data.need::<PyReadonlyArray1<bool>>("event")?;
            let entry = data.get::<PyReadonlyArray1<f64>>("entry")?;
            let obs = observations(&time, &event, None, entry.as_ref())?;
            if obs.len() != n {
                return Err(PyValueError::new_err("features and outcomes differ in length"));
            }
            let obs = Observations { weight: weights, ..obs };
            let tau = data.share("tau")?;
            if tau == 0.0 {
                return Err(PyValueError::new_err("tau: 0 is not a number > 0"));
            }
            let (group, delta) = (data.flags("group", n)?, data.share("delta")?);
            let prior = data.get::<f64>("prior")?.unwrap_or(0.0);
            let brier = data.get::<String>("curve")?.is_some_and(|curve| curve == "kaplan-meier");
            return run(py, &(), matrix, &limits, callback, |_, _, s, m| {
                let relaxed = without_fairness(obs, brier, prior, penalty, matrix);
                if brier {
                    let task = FairBrier::new(&obs, &group, delta, tau, penalty)?;
                    solve_limited(&task, Some(&*relaxed), matrix, s, m)
                } else {
                    let task = FairSurvival::new(&obs, &group, delta, tau, prior, penalty)?;
                    solve_limited(&task, Some(&*relaxed), matrix, s, m)
                }
            })
            .map(PyFront);
        }
        other => return Err(PyValueError::new_err(format!("unknown task {other:?}"))),
    };
    let solve = |_: &(), _: &BinaryMatrix, s: &Settings, m: &Monitor| search(s, m);
    run(py, &(), matrix, &limits, callback, solve).map(PyFront)
}

/// Components of a cost with as many limited labels as there are.
fn capacity_search<'a>(
    costs: Vec<f64>,
    capacity: Vec<f64>,
    weights: Option<&'a [f64]>,
    penalty: f64,
    matrix: &'a BinaryMatrix,
) -> PyResult<Search<'a>> {
    macro_rules! limited {
        ($($k:literal),*) => {
            match 1 + capacity.iter().filter(|c| c.is_finite()).count() {
                $($k => Ok(Box::new(move |s, m| {
                    let task = Capacity::<$k>::new(&costs, &capacity, weights, penalty)?;
                    let n_labels = capacity.len();
                    let relaxed = without_capacity(&costs, n_labels, weights, penalty, matrix);
                    solve_limited(&task, Some(&*relaxed), matrix, s, m)
                })),)*
                _ => Err(PyValueError::new_err("capacity: more than 7 labels are limited")),
            }
        };
    }
    limited!(1, 2, 3, 4, 5, 6, 7, 8)
}

//! Every sum task by name: one way in for data, one for each kind of search.

use crate::search::{Limits, PySolution, Search, matrix, parse, run, to_py};
use bristlecone_core::data::{BinaryMatrix, Sample};
use bristlecone_core::search::{Forecast, forecast, solve, solve_path};
use bristlecone_core::task::registry::{Outcome, Problem, Visitor, visit};
use bristlecone_core::task::{LaneTask, Superadditive};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Most labels of the lattice kernels.
const MAX_LABELS: usize = 32;

/// Keys of `data`; what a task does not use must be absent.
const KEYS: [&str; 5] = ["labels", "n_classes", "costs", "target", "weight"];

/// The arrays of a task, checked for shape.
struct Data<'py> {
    labels: Option<(Vec<usize>, usize)>,
    costs: Option<PyReadonlyArray2<'py, f64>>,
    target: Option<PyReadonlyArray1<'py, f64>>,
    weight: Option<PyReadonlyArray1<'py, f64>>,
    n_rows: usize,
}

fn invalid(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}

/// The array under `key`, unless absent or None.
fn get<'py, T>(data: &Bound<'py, PyDict>, key: &str, kind: &str) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    match data.get_item(key)? {
        Some(value) if !value.is_none() => {
            value.extract().map(Some).map_err(|_| invalid(format!("{key} must be {kind}")))
        }
        _ => Ok(None),
    }
}

impl<'py> Data<'py> {
    fn new(data: &Bound<'py, PyDict>, n_rows: usize) -> PyResult<Self> {
        let known = |key: &Bound<'_, PyAny>| {
            key.extract::<String>().is_ok_and(|key| KEYS.contains(&key.as_str()))
        };
        if let Some(unknown) = data.keys().iter().find(|key| !known(key)) {
            return Err(invalid(format!("data: unknown key {unknown}")));
        }
        for key in ["labels", "costs", "target", "weight"] {
            if let Some(array) = data.get_item(key)?.filter(|array| !array.is_none()) {
                let n: usize =
                    array.len().map_err(|_| invalid(format!("{key} must be an array")))?;
                if n != n_rows {
                    return Err(invalid(format!("{key} has {n} rows, X has {n_rows}")));
                }
            }
        }
        let labels: Option<PyReadonlyArray1<'py, i64>> = get(data, "labels", "an int64 array")?;
        let labels = match labels {
            None => None,
            Some(codes) => {
                let n_classes: usize = get(data, "n_classes", "an integer")?
                    .ok_or_else(|| invalid("n_classes is missing"))?;
                if n_classes > MAX_LABELS {
                    return Err(invalid(format!("y: more than {MAX_LABELS} classes")));
                }
                let code = |(i, &k): (usize, &i64)| {
                    usize::try_from(k).map_err(|_| invalid(format!("y: row {i} has label {k}")))
                };
                let codes: Vec<usize> =
                    codes.as_array().iter().enumerate().map(code).collect::<PyResult<_>>()?;
                Some((codes, n_classes))
            }
        };
        let costs: Option<PyReadonlyArray2<'py, f64>> =
            get(data, "costs", "a float64 array of shape (n_rows, n_labels)")?;
        if let Some(costs) = &costs {
            let n_labels = costs.as_array().ncols();
            if n_labels == 0 || n_labels > MAX_LABELS {
                let message = format!("costs: {n_labels} labels are not within 1..{MAX_LABELS}");
                return Err(invalid(message));
            }
        }
        let target = get(data, "target", "a float64 array")?;
        let weight = get(data, "weight", "a float64 array")?;
        Ok(Data { labels, costs, target, weight, n_rows })
    }

    fn outcome(&self) -> PyResult<Outcome<'_>> {
        match (&self.labels, &self.costs, &self.target) {
            (Some((labels, n_classes)), None, None) => {
                Ok(Outcome::Labels { labels, n_classes: *n_classes })
            }
            (None, Some(costs), None) => {
                Ok(Outcome::Costs { costs: costs.as_slice()?, n_labels: costs.as_array().ncols() })
            }
            (None, None, Some(target)) => Ok(Outcome::Target(target.as_slice()?)),
            _ => Err(invalid("data: exactly one of labels, costs and target is needed")),
        }
    }

    fn visit<V: Visitor>(&self, task: &str, limits: &Limits, visitor: V) -> PyResult<V::Output> {
        let problem = Problem {
            outcome: self.outcome()?,
            weights: self.weight.as_ref().map(|w| w.as_slice()).transpose()?,
            leaf_penalty: limits.leaf_penalty,
            max_leaves: limits.most_leaves(),
        };
        visit(task, &problem, visitor).map_err(to_py)
    }
}

/// A search of one tree, or of a size path.
struct Run<'a, 'py> {
    py: Python<'py>,
    matrix: &'a BinaryMatrix,
    limits: &'a Limits,
    callback: Option<Py<PyAny>>,
}

struct One<'a, 'py>(Run<'a, 'py>);

impl Visitor for One<'_, '_> {
    type Output = PyResult<PySolution>;
    fn visit<T: LaneTask + Superadditive>(self, task: &T) -> Self::Output {
        let Run { py, matrix, limits, callback } = self.0;
        let search: Search<T, _> = solve;
        Ok(PySolution(run(py, task, matrix, limits, callback, search)?))
    }
}

struct Path<'a, 'py>(Run<'a, 'py>);

impl Visitor for Path<'_, '_> {
    type Output = PyResult<Vec<PySolution>>;
    fn visit<T: LaneTask + Superadditive>(self, task: &T) -> Self::Output {
        let Run { py, matrix, limits, callback } = self.0;
        let search: Search<T, _> = solve_path;
        let path = run(py, task, matrix, limits, callback, search)?;
        Ok(path.into_iter().map(PySolution).collect())
    }
}

struct Expected<'a, 'py>(Run<'a, 'py>);

impl Visitor for Expected<'_, '_> {
    type Output = PyResult<(Forecast, usize, usize)>;
    fn visit<T: LaneTask + Superadditive>(self, task: &T) -> Self::Output {
        let Run { py, matrix, limits, .. } = self.0;
        let sample = Sample::new(matrix, task.statistics(), task.channels());
        let expected = forecast(task, &sample, &limits.settings(py)?);
        Ok((expected, sample.n_rows(), sample.n_columns()))
    }
}

/// Features of shape (rows, columns), any 0/1 dtype of one byte.
type Features<'py> = PyReadonlyArray2<'py, u8>;

/// Best tree for a task; `data` holds its arrays.
///
/// "accuracy", "balanced-accuracy", "gini", "entropy": `labels` int64 (n,) in
/// 0..`n_classes`; "label-costs": `costs` float64 (n, labels) >= 0; "regression": `target`
/// float64 (n,); all with an optional `weight`. `callback(seconds, objective, lower_bound,
/// nodes)` is called whenever the incumbent or the bound may have improved.
#[pyfunction]
#[pyo3(name = "solve", signature = (task, data, features, callback=None, **limits))]
pub fn solve_task(
    py: Python<'_>,
    task: &str,
    data: &Bound<'_, PyDict>,
    features: Features<'_>,
    callback: Option<Py<PyAny>>,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<PySolution> {
    let (limits, data) = (parse(limits)?, Data::new(data, features.as_array().nrows())?);
    let matrix = &matrix(&features, data.n_rows)?;
    data.visit(task, &limits, One(Run { py, matrix, limits: &limits, callback }))?
}

/// The best tree with at most k leaves for k = 1, 2, …, from one search.
#[pyfunction]
#[pyo3(name = "solve_path", signature = (task, data, features, **limits))]
pub fn path_task(
    py: Python<'_>,
    task: &str,
    data: &Bound<'_, PyDict>,
    features: Features<'_>,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<PySolution>> {
    let (limits, data) = (parse(limits)?, Data::new(data, features.as_array().nrows())?);
    let matrix = &matrix(&features, data.n_rows)?;
    data.visit(task, &limits, Path(Run { py, matrix, limits: &limits, callback: None }))?
}

/// What a search would take: dict of seconds, bytes, cells, row_visits, n_distinct_rows
/// and n_active_features.
#[pyfunction]
#[pyo3(name = "forecast", signature = (task, data, features, **limits))]
pub fn forecast_task<'py>(
    py: Python<'py>,
    task: &str,
    data: &Bound<'py, PyDict>,
    features: Features<'py>,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (limits, data) = (parse(limits)?, Data::new(data, features.as_array().nrows())?);
    let matrix = &matrix(&features, data.n_rows)?;
    let run = Run { py, matrix, limits: &limits, callback: None };
    let (expected, n_rows, n_columns) = data.visit(task, &limits, Expected(run))??;
    crate::search::forecast_dict(py, &expected, n_rows, n_columns)
}

//! Every sum task by name: one way in for data, one for each kind of search.

use crate::search::{
    PyAlternatives, PyNear, PySolution, TreeArrays, matrix, parse, py_alternatives, py_near, run,
    to_py, tree_of,
};
use bristlecone_core::task::prices::FeaturePrices;
use bristlecone_core::task::registry::{self, Named, Outcome, Problem};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Most labels of the lattice kernels.
const MAX_LABELS: usize = 32;

/// Keys of `data`; what a task does not use must be absent.
const KEYS: [&str; 9] = [
    "labels",
    "n_classes",
    "costs",
    "target",
    "weight",
    "feature_cost",
    "feature_discount",
    "feature_origin",
    "feature_group",
];

/// The arrays of a task, checked for shape.
pub(crate) struct Data<'py> {
    labels: Option<(Vec<usize>, usize)>,
    costs: Option<PyReadonlyArray2<'py, f64>>,
    target: Option<PyReadonlyArray1<'py, f64>>,
    weight: Option<PyReadonlyArray1<'py, f64>>,
    prices: Option<FeaturePrices>,
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
    pub(crate) fn new(
        data: &Bound<'py, PyDict>,
        (n_rows, n_features): (usize, usize),
    ) -> PyResult<Self> {
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
        let prices = prices(data, n_features)?;
        Ok(Data { labels, costs, target, weight, prices, n_rows })
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

    pub(crate) fn task<'a>(
        &'a self,
        name: &'a str,
        leaf_penalty: f64,
        max_leaves: usize,
    ) -> PyResult<Named<'a>> {
        let problem = Problem {
            outcome: self.outcome()?,
            weights: self.weight.as_ref().map(|w| w.as_slice()).transpose()?,
            prices: self.prices.clone(),
            leaf_penalty,
            max_leaves,
        };
        Ok(Named { name, problem })
    }
}

/// Prices of tests from the `feature_…` arrays, if there are any.
fn prices(data: &Bound<'_, PyDict>, n_features: usize) -> PyResult<Option<FeaturePrices>> {
    let numbers = |key: &str| -> PyResult<Option<Vec<f64>>> {
        let array: Option<PyReadonlyArray1<'_, f64>> = get(data, key, "a float64 array")?;
        Ok(array.map(|array| array.as_array().to_vec()))
    };
    let codes = |key: &str| -> PyResult<Option<Vec<i64>>> {
        let array: Option<PyReadonlyArray1<'_, i64>> = get(data, key, "an int64 array")?;
        Ok(array.map(|array| array.as_array().to_vec()))
    };
    let discount = numbers("feature_discount")?;
    let (origin, group) = (codes("feature_origin")?, codes("feature_group")?);
    let Some(cost) = numbers("feature_cost")? else {
        if discount.is_some() || origin.is_some() || group.is_some() {
            return Err(invalid("feature_cost is missing"));
        }
        return Ok(None);
    };
    if cost.len() != n_features {
        let n = cost.len();
        return Err(invalid(format!("feature_cost has {n} entries, X has {n_features} columns")));
    }
    FeaturePrices::new(&cost, discount.as_deref(), origin.as_deref(), group.as_deref())
        .map(Some)
        .map_err(to_py)
}

/// Features of shape (rows, columns), any 0/1 dtype of one byte.
type Features<'py> = PyReadonlyArray2<'py, u8>;

/// Best tree for a task; `data` holds its arrays.
///
/// "accuracy", "balanced-accuracy", "gini", "entropy": `labels` int64 (n,) in
/// 0..`n_classes`; "label-costs": `costs` float64 (n, labels) >= 0 and optionally
/// `feature_cost`, `feature_discount` float64 and `feature_origin`, `feature_group` int64, one
/// entry per column; "regression": `target` float64 (n,); all with an optional `weight`. `callback(seconds, objective, lower_bound,
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
    let (limits, data) = (parse(limits)?, Data::new(data, features.as_array().dim())?);
    let matrix = &matrix(&features, data.n_rows)?;
    let task = data.task(task, limits.leaf_penalty, limits.most_leaves())?;
    Ok(PySolution(run(py, &task, matrix, &limits, callback, registry::solve)?))
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
    let (limits, data) = (parse(limits)?, Data::new(data, features.as_array().dim())?);
    let matrix = &matrix(&features, data.n_rows)?;
    let task = data.task(task, limits.leaf_penalty, limits.most_leaves())?;
    let path = run(py, &task, matrix, &limits, None, registry::solve_path)?;
    Ok(path.into_iter().map(PySolution).collect())
}

/// Every tree whose objective is within `slack` of the optimum; see `near_optimal_likelihood`.
#[pyfunction]
#[pyo3(name = "near_optimal", signature = (task, data, features, *, limit, slack=0.0, **limits))]
pub fn near_optimal_task(
    py: Python<'_>,
    task: &str,
    data: &Bound<'_, PyDict>,
    features: Features<'_>,
    limit: usize,
    slack: f64,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyNear> {
    let (limits, data) = (parse(limits)?, Data::new(data, features.as_array().dim())?);
    let matrix = &matrix(&features, data.n_rows)?;
    let task = data.task(task, limits.leaf_penalty, limits.most_leaves())?;
    let near = run(py, &task, matrix, &limits, None, |task, matrix, settings, monitor| {
        registry::near_optimal(task, matrix, settings, monitor, (slack, limit))
    })?;
    Ok(py_near(near))
}

/// Other questions at the splits of a tree; see `alternatives_likelihood`.
#[pyfunction]
#[pyo3(name = "alternatives", signature = (task, data, features, *, tree, **limits))]
pub fn alternatives_task<'py>(
    py: Python<'py>,
    task: &str,
    data: &Bound<'_, PyDict>,
    features: Features<'_>,
    tree: TreeArrays,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyAlternatives<'py>> {
    let (limits, tree) = (parse(limits)?, tree_of(tree));
    let data = Data::new(data, features.as_array().dim())?;
    let matrix = &matrix(&features, data.n_rows)?;
    let task = data.task(task, limits.leaf_penalty, limits.most_leaves())?;
    let found = run(py, &task, matrix, &limits, None, |task, matrix, settings, monitor| {
        registry::alternatives(task, matrix, settings, monitor, &tree)
    })?;
    Ok(py_alternatives(py, found))
}

/// What a search would take: dict of seconds, row_seconds, bytes, cells, row_visits, n_distinct_rows
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
    let (limits, data) = (parse(limits)?, Data::new(data, features.as_array().dim())?);
    let matrix = &matrix(&features, data.n_rows)?;
    let task = data.task(task, limits.leaf_penalty, limits.most_leaves())?;
    let (expected, n_rows, n_columns) =
        registry::forecast(&task, matrix, &limits.settings(py)?).map_err(to_py)?;
    crate::search::forecast_dict(py, &expected, n_rows, n_columns)
}

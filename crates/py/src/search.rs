//! One door to the core for long calls: arrays checked, GIL released, Ctrl-C honoured,
//! panics turned into exceptions.

use crate::survival::observations;
use bristlecone_core::data::{BinaryMatrix, Sample};
use bristlecone_core::error::Error as CoreError;
use bristlecone_core::search::{
    Forecast, Monitor, Precision, Settings, Solution, TracePoint, all_optimal, forecast, solve,
    solve_path,
};
use bristlecone_core::simd::Backend;
use bristlecone_core::task::Statistics;
use bristlecone_core::task::likelihood::Likelihood;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Result of a search; arrays describe the tree in preorder.
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

/// Names of the kernels this machine runs, fastest first.
#[pyfunction]
pub fn backends() -> Vec<&'static str> {
    Backend::available().into_iter().map(Backend::name).collect()
}

/// Keyword arguments common to all searches.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Limits {
    max_depth: usize,
    max_leaf_nodes: Option<usize>,
    min_samples_leaf: usize,
    pub(crate) leaf_penalty: f64,
    n_threads: usize,
    time_limit: Option<f64>,
    memory_limit: Option<usize>,
    options: Option<Py<PyDict>>,
}

const LIMITS: [&str; 8] = [
    "max_depth",
    "max_leaf_nodes",
    "min_samples_leaf",
    "leaf_penalty",
    "n_threads",
    "time_limit",
    "memory_limit",
    "options",
];

impl Limits {
    /// Most leaves of any allowed tree.
    pub(crate) fn most_leaves(&self) -> usize {
        let (max_depth, max_leaves) = (self.max_depth, self.max_leaf_nodes);
        Settings { max_depth, max_leaves, ..Settings::default() }.most_leaves()
    }

    pub(crate) fn settings(&self, py: Python<'_>) -> PyResult<Settings> {
        let mut settings = Settings {
            max_depth: self.max_depth,
            max_leaves: self.max_leaf_nodes,
            min_leaf: self.min_samples_leaf,
            n_threads: self.n_threads,
            memory_limit: self.memory_limit,
            ..Settings::default()
        };
        let Some(options) = &self.options else { return Ok(settings) };
        for (key, value) in options.bind(py) {
            match key.extract::<String>()?.as_str() {
                "backend" => settings.backend = Some(backend(&value.extract::<String>()?)?),
                "precision" => {
                    settings.precision = match value.extract::<String>()?.as_str() {
                        "single" => Some(Precision::Single),
                        "double" => Some(Precision::Double),
                        other => return Err(PyValueError::new_err(format!("precision: {other}"))),
                    }
                }
                "equivalent_points" => settings.equivalent_points = value.extract()?,
                "lattice_depth" => settings.lattice_depth = value.extract()?,
                "look_ahead" => settings.look_ahead = value.extract()?,
                "cache" => settings.cache = value.extract()?,
                "trivial_bound" => settings.trivial_bound = value.extract()?,
                "planted" => settings.planted = value.extract()?,
                other => return Err(PyValueError::new_err(format!("unknown option {other:?}"))),
            }
        }
        Ok(settings)
    }
}

fn backend(name: &str) -> PyResult<Backend> {
    Backend::available().into_iter().find(|b| b.name() == name).ok_or_else(|| {
        PyValueError::new_err(format!("backend {name:?} is not one of {:?}", backends()))
    })
}

/// The likelihood task of arrays from Python.
fn likelihood(
    time: &PyReadonlyArray1<'_, f64>,
    event: &PyReadonlyArray1<'_, bool>,
    weight: Option<&PyReadonlyArray1<'_, f64>>,
    entry: Option<&PyReadonlyArray1<'_, f64>>,
    leaf_penalty: f64,
) -> PyResult<Likelihood> {
    let obs = observations(time, event, weight, entry)?;
    Likelihood::new(&obs, leaf_penalty).map_err(to_py)
}

/// Best tree by survival likelihood; see `OptimalSurvivalTree`.
///
/// `callback(seconds, objective, lower_bound, nodes)` is called whenever the incumbent or
/// the bound may have improved.
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, *, entry=None, callback=None, **limits))]
#[allow(clippy::too_many_arguments, reason = "the parameters of the estimator")]
pub fn solve_likelihood(
    py: Python<'_>,
    features: PyReadonlyArray2<'_, u8>,
    time: PyReadonlyArray1<'_, f64>,
    event: PyReadonlyArray1<'_, bool>,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    entry: Option<PyReadonlyArray1<'_, f64>>,
    callback: Option<Py<PyAny>>,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<PySolution> {
    let limits = parse(limits)?;
    let matrix = matrix(&features, time.len()?)?;
    let task = likelihood(&time, &event, weight.as_ref(), entry.as_ref(), limits.leaf_penalty)?;
    Ok(PySolution(run(py, &task, &matrix, &limits, callback, solve)?))
}

/// The best tree with at most k leaves for k = 1, 2, …, from one search.
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, *, entry=None, **limits))]
pub fn path_likelihood(
    py: Python<'_>,
    features: PyReadonlyArray2<'_, u8>,
    time: PyReadonlyArray1<'_, f64>,
    event: PyReadonlyArray1<'_, bool>,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    entry: Option<PyReadonlyArray1<'_, f64>>,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<PySolution>> {
    let limits = parse(limits)?;
    let matrix = matrix(&features, time.len()?)?;
    let task = likelihood(&time, &event, weight.as_ref(), entry.as_ref(), limits.leaf_penalty)?;
    let path = run(py, &task, &matrix, &limits, None, solve_path)?;
    Ok(path.into_iter().map(PySolution).collect())
}

/// Every tree whose objective is within 1e-9 of the optimum, at most `limit`, few leaves
/// first; columns that split a node's rows in the same way count once.
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, entry=None, *, limit, **limits))]
#[allow(clippy::too_many_arguments, reason = "the parameters of the estimator")]
pub fn all_optimal_likelihood(
    py: Python<'_>,
    features: PyReadonlyArray2<'_, u8>,
    time: PyReadonlyArray1<'_, f64>,
    event: PyReadonlyArray1<'_, bool>,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    entry: Option<PyReadonlyArray1<'_, f64>>,
    limit: usize,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<PySolution>> {
    let limits = parse(limits)?;
    let matrix = matrix(&features, time.len()?)?;
    let task = likelihood(&time, &event, weight.as_ref(), entry.as_ref(), limits.leaf_penalty)?;
    let all = run(py, &task, &matrix, &limits, None, |task, matrix, settings, monitor| {
        all_optimal(task, matrix, settings, monitor, limit)
    })?;
    Ok(all.into_iter().map(PySolution).collect())
}

/// What a search would take: dict of seconds, bytes, cells, row_visits, n_distinct_rows
/// and n_active_features.
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, *, entry=None, **limits))]
pub fn forecast_likelihood<'py>(
    py: Python<'py>,
    features: PyReadonlyArray2<'_, u8>,
    time: PyReadonlyArray1<'_, f64>,
    event: PyReadonlyArray1<'_, bool>,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    entry: Option<PyReadonlyArray1<'_, f64>>,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let limits = parse(limits)?;
    let matrix = matrix(&features, time.len()?)?;
    let task = likelihood(&time, &event, weight.as_ref(), entry.as_ref(), limits.leaf_penalty)?;
    let sample = Sample::new(&matrix, task.statistics(), task.channels());
    let expected = forecast(&task, &sample, &limits.settings(py)?);
    forecast_dict(py, &expected, sample.n_rows(), sample.n_columns())
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
    out.set_item("bytes", expected.bytes)?;
    out.set_item("cells", expected.cells)?;
    out.set_item("row_visits", expected.row_visits)?;
    out.set_item("n_distinct_rows", n_rows)?;
    out.set_item("n_active_features", n_columns)?;
    Ok(out)
}

pub(crate) fn parse(limits: Option<&Bound<'_, PyDict>>) -> PyResult<Limits> {
    let limits = limits.ok_or_else(|| PyValueError::new_err("the limits are missing"))?;
    if let Some(unknown) = limits
        .keys()
        .iter()
        .find(|key| key.extract::<String>().map_or(true, |key| !LIMITS.contains(&key.as_str())))
    {
        return Err(PyValueError::new_err(format!("unknown limit {unknown}")));
    }
    let limits: Limits = limits.extract()?;
    if !limits.leaf_penalty.is_finite() || limits.leaf_penalty < 0.0 {
        return Err(PyValueError::new_err("leaf_penalty must be a number >= 0"));
    }
    Ok(limits)
}

pub(crate) fn matrix(features: &PyReadonlyArray2<'_, u8>, n_rows: usize) -> PyResult<BinaryMatrix> {
    let shape = features.as_array().dim();
    if shape.0 != n_rows {
        return Err(PyValueError::new_err("features and outcomes differ in length"));
    }
    BinaryMatrix::from_bytes(shape.0, shape.1, features.as_slice()?).map_err(to_py)
}

pub(crate) fn to_py(error: CoreError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Runs a search on a thread of its own while this one looks out for signals.
///
/// The first Ctrl-C asks the search to stop and keeps its result; a second one within a
/// second raises once the search has ended. A callback that raises ends the search too.
pub(crate) fn run<T: Sync, R: Send>(
    py: Python<'_>,
    task: &T,
    matrix: &BinaryMatrix,
    limits: &Limits,
    callback: Option<Py<PyAny>>,
    search: impl FnOnce(&T, &BinaryMatrix, &Settings, &Monitor) -> Result<R, CoreError> + Send,
) -> PyResult<R> {
    let settings = limits.settings(py)?;
    let interrupted = AtomicBool::new(false);
    let time_limit = match limits.time_limit {
        None => None,
        Some(seconds) => Some(Duration::try_from_secs_f64(seconds).map_err(|_| {
            PyValueError::new_err(format!("time_limit: {seconds} is not a number of seconds"))
        })?),
    };
    let callback_error: Mutex<Option<PyErr>> = Mutex::new(None);
    let mut first_signal: Option<Instant> = None;
    let mut raised: Option<PyErr> = None;
    let outcome = py.detach(|| {
        std::thread::scope(|scope| {
            let (done, finished) = channel();
            let (interrupted, settings) = (&interrupted, &settings);
            let (callback, callback_error) = (&callback, &callback_error);
            let worker = scope.spawn(move || {
                let check = || interrupted.load(Ordering::Relaxed);
                let progress = |p: &TracePoint| {
                    let Some(callback) = callback else { return };
                    let point = (p.seconds, p.objective, p.lower_bound, p.nodes);
                    if let Err(error) = Python::attach(|py| callback.call1(py, point)) {
                        callback_error.lock().expect("not poisoned").get_or_insert(error);
                        interrupted.store(true, Ordering::Relaxed);
                    }
                };
                let monitor = Monitor::new(time_limit, &check).with_progress(&progress);
                let result = search(task, matrix, settings, &monitor);
                // The receiver outlives this thread.
                let _ = done.send(());
                result
            });
            while let Err(RecvTimeoutError::Timeout) =
                finished.recv_timeout(Duration::from_millis(50))
            {
                if let Err(signal) = Python::attach(|py| py.check_signals()) {
                    interrupted.store(true, Ordering::Relaxed);
                    let within = |t: Instant| t.elapsed() < Duration::from_secs(1);
                    if first_signal.is_some_and(within) {
                        raised = Some(signal);
                    }
                    first_signal = Some(Instant::now());
                }
            }
            worker.join()
        })
    });
    if let Some(error) = raised.or(callback_error.into_inner().expect("not poisoned")) {
        return Err(error);
    }
    match outcome {
        Ok(result) => result.map_err(to_py),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("unknown");
            Err(PyRuntimeError::new_err(format!("internal error in the search: {text}")))
        }
    }
}

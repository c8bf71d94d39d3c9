//! One door to the core for long calls: arrays checked, GIL released, Ctrl-C honoured,
//! panics turned into exceptions.

use crate::survival::observations;
use bristlecone_core::data::{BinaryMatrix, Sample};
use bristlecone_core::error::Error as CoreError;
use bristlecone_core::search::{
    Alternative, Forecast, Monitor, Near, Precision, Settings, Solution, Status, Stop, TracePoint,
    alternatives, forecast, near_optimal, solve, solve_path,
};
use bristlecone_core::simd::Backend;
use bristlecone_core::task::Statistics;
pub(crate) use bristlecone_core::task::likelihood::Likelihood;
use bristlecone_core::tree::Tree;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
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
    pub(crate) max_depth: usize,
    pub(crate) max_leaf_nodes: Option<usize>,
    pub(crate) min_samples_leaf: usize,
    /// Only of survival trees.
    #[pyo3(default)]
    pub(crate) min_events_leaf: usize,
    pub(crate) leaf_penalty: f64,
    n_threads: usize,
    pub(crate) time_limit: Option<f64>,
    memory_limit: Option<usize>,
    options: Option<Py<PyDict>>,
    /// When the preparation of the search began.
    #[pyo3(default = Started(Instant::now()))]
    started: Started,
}

/// A moment that no caller gives.
struct Started(Instant);

impl<'a, 'py> FromPyObject<'a, 'py> for Started {
    type Error = PyErr;
    fn extract(_: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Err(PyValueError::new_err("when a search began is not a parameter"))
    }
}

const LIMITS: [&str; 9] = [
    "max_depth",
    "max_leaf_nodes",
    "min_samples_leaf",
    "min_events_leaf",
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
            min_events: self.min_events_leaf,
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
                "relax_leaves" => settings.relax_leaves = value.extract()?,
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

/// Evaluates an expression with the likelihood task of these observations; with a prior it is of
/// another type.
macro_rules! with_likelihood {
    ($obs:expr, $prior:expr, $penalty:expr, $task:ident => $result:expr) => {
        if $prior == 0.0 {
            let $task = $crate::search::Likelihood::new($obs, $penalty).map_err(to_py)?;
            $result
        } else {
            let $task =
                $crate::search::Likelihood::with_prior($obs, $prior, $penalty).map_err(to_py)?;
            $result
        }
    };
}
pub(crate) use with_likelihood;

/// Best tree by survival likelihood; see `OptimalSurvivalTree`.
///
/// `callback(seconds, objective, lower_bound, nodes, share, seconds_left)` is called whenever
/// the incumbent or the bound may have improved, and every quarter of a second; the last two
/// are None without a forecast.
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, *, entry=None, prior=0.0,
    callback=None, **limits))]
#[allow(clippy::too_many_arguments, reason = "the parameters of the estimator")]
pub fn solve_likelihood(
    py: Python<'_>,
    features: PyReadonlyArray2<'_, u8>,
    time: PyReadonlyArray1<'_, f64>,
    event: PyReadonlyArray1<'_, bool>,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    entry: Option<PyReadonlyArray1<'_, f64>>,
    prior: f64,
    callback: Option<Py<PyAny>>,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<PySolution> {
    let limits = parse(limits)?;
    let matrix = matrix(&features, time.len()?)?;
    let obs = observations(&time, &event, weight.as_ref(), entry.as_ref())?;
    let penalty = limits.leaf_penalty;
    let solution = with_likelihood!(&obs, prior, penalty, task => {
        run(py, &task, &matrix, &limits, callback, solve)
    })?;
    Ok(PySolution(solution))
}

/// The best tree with at most k leaves for k = 1, 2, …, from one search.
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, *, entry=None, prior=0.0, **limits))]
#[allow(clippy::too_many_arguments, reason = "the parameters of the estimator")]
pub fn path_likelihood(
    py: Python<'_>,
    features: PyReadonlyArray2<'_, u8>,
    time: PyReadonlyArray1<'_, f64>,
    event: PyReadonlyArray1<'_, bool>,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    entry: Option<PyReadonlyArray1<'_, f64>>,
    prior: f64,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<PySolution>> {
    let limits = parse(limits)?;
    let matrix = matrix(&features, time.len()?)?;
    let obs = observations(&time, &event, weight.as_ref(), entry.as_ref())?;
    let penalty = limits.leaf_penalty;
    let path = with_likelihood!(&obs, prior, penalty, task => {
        run(py, &task, &matrix, &limits, None, solve_path)
    })?;
    Ok(path.into_iter().map(PySolution).collect())
}

/// Every tree whose objective is within `slack` (and 1e-9) of the optimum, at most `limit`, few
/// leaves first, and whether these are all; columns that split a node's rows in the same way count
/// once.
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, entry=None, *, limit, slack=0.0, prior=0.0,
    **limits))]
#[allow(clippy::too_many_arguments, reason = "the parameters of the estimator")]
pub fn near_optimal_likelihood(
    py: Python<'_>,
    features: PyReadonlyArray2<'_, u8>,
    time: PyReadonlyArray1<'_, f64>,
    event: PyReadonlyArray1<'_, bool>,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    entry: Option<PyReadonlyArray1<'_, f64>>,
    limit: usize,
    slack: f64,
    prior: f64,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyNear> {
    let limits = parse(limits)?;
    let matrix = matrix(&features, time.len()?)?;
    let obs = observations(&time, &event, weight.as_ref(), entry.as_ref())?;
    let penalty = limits.leaf_penalty;
    let near = with_likelihood!(&obs, prior, penalty, task => {
        run(py, &task, &matrix, &limits, None, |task, matrix, settings, monitor| {
            near_optimal(task, matrix, settings, monitor, (slack, limit))
        })
    })?;
    Ok(py_near(near))
}

/// The best tree with each other question at each split of a tree (its arrays, in preorder), the
/// same nodes above and beside it: arrays of node, feature, objective and number of leaves, and
/// what ended the search early, or None.
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, entry=None, *, tree, prior=0.0, **limits))]
#[allow(clippy::too_many_arguments, reason = "the parameters of the estimator")]
pub fn alternatives_likelihood<'py>(
    py: Python<'py>,
    features: PyReadonlyArray2<'_, u8>,
    time: PyReadonlyArray1<'_, f64>,
    event: PyReadonlyArray1<'_, bool>,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    entry: Option<PyReadonlyArray1<'_, f64>>,
    tree: TreeArrays,
    prior: f64,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyAlternatives<'py>> {
    let (limits, tree) = (parse(limits)?, tree_of(tree));
    let matrix = matrix(&features, time.len()?)?;
    let obs = observations(&time, &event, weight.as_ref(), entry.as_ref())?;
    let penalty = limits.leaf_penalty;
    let found = with_likelihood!(&obs, prior, penalty, task => {
        run(py, &task, &matrix, &limits, None, |task, matrix, settings, monitor| {
            alternatives(task, matrix, settings, monitor, &tree)
        })
    })?;
    Ok(py_alternatives(py, found))
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

/// Nodes, features, objectives, numbers of leaves, and why the search ended early.
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

/// What a search would take: dict of seconds, row_seconds, bytes, cells, row_visits, n_distinct_rows
/// and n_active_features.
#[pyfunction]
#[pyo3(signature = (features, time, event, weight=None, *, entry=None, prior=0.0, **limits))]
#[allow(clippy::too_many_arguments, reason = "the parameters of the estimator")]
pub fn forecast_likelihood<'py>(
    py: Python<'py>,
    features: PyReadonlyArray2<'_, u8>,
    time: PyReadonlyArray1<'_, f64>,
    event: PyReadonlyArray1<'_, bool>,
    weight: Option<PyReadonlyArray1<'_, f64>>,
    entry: Option<PyReadonlyArray1<'_, f64>>,
    prior: f64,
    limits: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let limits = parse(limits)?;
    let matrix = matrix(&features, time.len()?)?;
    let obs = observations(&time, &event, weight.as_ref(), entry.as_ref())?;
    let penalty = limits.leaf_penalty;
    let settings = limits.settings(py)?;
    with_likelihood!(&obs, prior, penalty, task => {
        let (statistics, channels) = (task.statistics(), task.channels());
        let sample = Sample::with_kinds(&matrix, statistics, channels, &[], task.events());
        let expected = forecast(&task, &sample, &settings);
        forecast_dict(py, &expected, sample.n_rows(), sample.n_columns())
    })
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

/// Between two looks at signals.
const SIGNALS: Duration = Duration::from_millis(50);

/// Between two calls of the callback where nothing improves.
const TICK: Duration = Duration::from_millis(250);

/// Calls of the user's callback, on the thread of the user's call.
struct Teller<'a> {
    callback: Option<Py<PyAny>>,
    monitor: &'a Monitor<'a>,
    told: Instant,
    last: Option<TracePoint>,
}

impl Teller<'_> {
    /// `callback(seconds, objective, lower_bound, nodes, share, seconds_left)`.
    fn tell(&mut self, point: TracePoint) -> PyResult<()> {
        (self.told, self.last) = (Instant::now(), Some(point));
        let Some(callback) = &self.callback else { return Ok(()) };
        let (share, left) = self.monitor.outlook().unzip();
        let TracePoint { seconds, objective, lower_bound, nodes } = point;
        Python::attach(|py| {
            callback.call1(py, (seconds, objective, lower_bound, nodes, share, left)).map(|_| ())
        })
    }

    /// The last point again, if it is old.
    fn tick(&mut self) -> PyResult<()> {
        match self.last {
            Some(last) if self.told.elapsed() >= TICK => {
                let (seconds, nodes) = (self.monitor.seconds(), self.monitor.nodes());
                self.tell(TracePoint { seconds, nodes, ..last })
            }
            _ => Ok(()),
        }
    }
}

/// What signals ask for.
#[derive(Default)]
struct Signals {
    /// When the first Ctrl-C came.
    first: Option<Instant>,
    /// To raise once the search has ended.
    raised: Option<PyErr>,
}

impl Signals {
    /// Whether the search is to stop. The first Ctrl-C keeps its result; a second one within a
    /// second is raised, as is whatever else a handler raises.
    fn look(&mut self) -> bool {
        let Err(error) = Python::attach(|py| py.check_signals()) else { return false };
        self.take(error);
        true
    }

    /// Takes in what a handler raised, here or within the callback.
    fn take(&mut self, error: PyErr) {
        let interrupt = Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py));
        let again = self.first.is_some_and(|t| t.elapsed() < Duration::from_secs(1));
        if !interrupt || again {
            self.raised.get_or_insert(error);
        }
        self.first = Some(Instant::now());
    }
}

/// Runs a search on a thread of its own while this one looks out for signals and tells the
/// callback of progress: of every improvement, and by the clock.
///
/// A callback that raises ends the search.
pub(crate) fn run<T: Sync, R: Send>(
    py: Python<'_>,
    task: &T,
    matrix: &BinaryMatrix,
    limits: &Limits,
    callback: Option<Py<PyAny>>,
    search: impl FnOnce(&T, &BinaryMatrix, &Settings, &Monitor) -> Result<R, CoreError> + Send,
) -> PyResult<R> {
    let settings = limits.settings(py)?;
    let time_limit = match limits.time_limit {
        None => None,
        Some(seconds) => Some(Duration::try_from_secs_f64(seconds).map_err(|_| {
            PyValueError::new_err(format!("time_limit: {seconds} is not a number of seconds"))
        })?),
    };
    let mut signals = Signals::default();
    let mut callback_error: Option<PyErr> = None;
    let outcome = py.detach(|| {
        let interrupted = AtomicBool::new(false);
        let check = || interrupted.load(Ordering::Relaxed);
        let (sender, points) = channel();
        let progress = |point: &TracePoint| {
            // The receiver outlives the search.
            let _ = sender.send(Some(*point));
        };
        let monitor = Monitor::since(limits.started.0, time_limit, &check).with_progress(&progress);
        let mut teller = Teller { callback, monitor: &monitor, told: Instant::now(), last: None };
        std::thread::scope(|scope| {
            let (settings, monitor, sender) = (&settings, &monitor, &sender);
            let worker = scope.spawn(move || {
                let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
                    search(task, matrix, settings, monitor)
                }));
                let _ = sender.send(None);
                result
            });
            let mut looked = Instant::now();
            loop {
                let told = match points.recv_timeout(SIGNALS) {
                    Ok(None) => break,
                    // After an error nothing more is told.
                    Ok(Some(_)) if callback_error.is_some() => Ok(()),
                    Ok(Some(point)) => teller.tell(point),
                    Err(_) => teller.tick(),
                };
                if let Err(error) = told {
                    if Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py)) {
                        signals.take(error);
                    } else {
                        callback_error.get_or_insert(error);
                    }
                    interrupted.store(true, Ordering::Relaxed);
                }
                if looked.elapsed() >= SIGNALS {
                    looked = Instant::now();
                    if signals.look() {
                        interrupted.store(true, Ordering::Relaxed);
                    }
                }
            }
            worker.join().and_then(|result| result)
        })
    });
    if let Some(error) = signals.raised.or(callback_error) {
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

//! Settings of a search from Python, which are parsed once.

use bristlecone_core::search::{Limits, Precision, Resources, Settings, Switches};
use bristlecone_core::simd::Backend;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::Instant;

/// Names of the kernels that this machine supports, fastest first.
#[pyfunction]
pub fn backends() -> Vec<&'static str> {
    Backend::available().map(Backend::name).collect()
}

/// Keyword arguments that all searches share.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Arguments {
    pub(crate) max_depth: usize,
    pub(crate) max_leaf_nodes: Option<usize>,
    pub(crate) min_samples_leaf: usize,
    /// Only for survival trees and other tasks with events.
    #[pyo3(default)]
    pub(crate) min_events_leaf: usize,
    pub(crate) leaf_penalty: f64,
    n_threads: usize,
    pub(crate) time_limit: Option<f64>,
    memory_limit: Option<usize>,
    options: Option<Py<PyDict>>,
    /// Time at which the preparation of the search began.
    #[pyo3(default = Started(Instant::now()))]
    pub(crate) started: Started,
}

/// A point in time that no caller passes.
pub(crate) struct Started(pub(crate) Instant);

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

impl Arguments {
    /// The trees that are allowed.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            max_depth: self.max_depth,
            max_leaves: self.max_leaf_nodes,
            min_leaf: self.min_samples_leaf,
            min_events: self.min_events_leaf,
        }
    }

    /// Most bytes of tables.
    pub(crate) fn memory_limit(&self) -> Option<usize> {
        self.memory_limit
    }

    pub(crate) fn settings(&self, py: Python<'_>) -> PyResult<Settings> {
        let Arguments { n_threads, memory_limit, .. } = *self;
        let (limits, resources) = (self.limits(), Resources { n_threads, memory_limit });
        let mut switches = Switches::default();
        for (key, value) in self.options.iter().flat_map(|options| options.bind(py)) {
            match key.extract::<String>()?.as_str() {
                "backend" => switches.backend = Some(backend(&value.extract::<String>()?)?),
                "precision" => {
                    switches.precision = match value.extract::<String>()?.as_str() {
                        "short" => Some(Precision::Short),
                        "single" => Some(Precision::Single),
                        "double" => Some(Precision::Double),
                        "exact" => Some(Precision::Exact),
                        other => return Err(PyValueError::new_err(format!("precision: {other}"))),
                    }
                }
                "equivalent_points" => switches.equivalent_points = value.extract()?,
                "lattice_depth" => switches.lattice_depth = value.extract()?,
                "implied" => switches.implied = value.extract()?,
                "relax_leaves" => switches.relax_leaves = value.extract()?,
                "look_ahead" => switches.look_ahead = value.extract()?,
                "cache" => switches.cache = value.extract()?,
                "trivial_bound" => switches.trivial_bound = value.extract()?,
                "cells_per_thread" => switches.cells_per_thread = value.extract()?,
                "planted" => switches.planted = value.extract()?,
                other => return Err(PyValueError::new_err(format!("unknown option {other:?}"))),
            }
        }
        Ok(Settings { limits, resources, switches })
    }
}

fn backend(name: &str) -> PyResult<Backend> {
    Backend::named(name).ok_or_else(|| {
        PyValueError::new_err(format!("backend {name:?} is not one of {:?}", backends()))
    })
}

pub(crate) fn parse(limits: Option<&Bound<'_, PyDict>>) -> PyResult<Arguments> {
    let limits = limits.ok_or_else(|| PyValueError::new_err("the limits are missing"))?;
    if let Some(unknown) = limits
        .keys()
        .iter()
        .find(|key| key.extract::<String>().map_or(true, |key| !LIMITS.contains(&key.as_str())))
    {
        return Err(PyValueError::new_err(format!("unknown limit {unknown}")));
    }
    let limits: Arguments = limits.extract()?;
    if !limits.leaf_penalty.is_finite() || limits.leaf_penalty < 0.0 {
        return Err(PyValueError::new_err("leaf_penalty must be a number >= 0"));
    }
    Ok(limits)
}

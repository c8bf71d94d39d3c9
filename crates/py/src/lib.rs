//! Thin Python binding: takes arrays and returns solutions.

use pyo3::prelude::*;

mod columns;
mod cuts;
mod door;
mod features;
mod greedy;
mod limits;
mod memory;
mod own;
mod partial;
mod run;
mod solution;
mod survival;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    memory::keep_quiet_without_memory();
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<features::PyBinaryMatrix>()?;
    m.add_class::<solution::PySolution>()?;
    m.add_class::<solution::PyFront>()?;
    m.add_class::<solution::PyFrontPoint>()?;
    m.add_class::<partial::PyPartialSums>()?;
    m.add_class::<survival::PyRiskTable>()?;
    m.add_function(wrap_pyfunction!(limits::backends, m)?)?;
    m.add_function(wrap_pyfunction!(door::tasks, m)?)?;
    m.add_function(wrap_pyfunction!(door::solve, m)?)?;
    m.add_function(wrap_pyfunction!(door::over_thresholds, m)?)?;
    m.add_function(wrap_pyfunction!(door::path, m)?)?;
    m.add_function(wrap_pyfunction!(door::forecast, m)?)?;
    m.add_function(wrap_pyfunction!(door::near_optimal, m)?)?;
    m.add_function(wrap_pyfunction!(door::alternatives, m)?)?;
    m.add_function(wrap_pyfunction!(door::front, m)?)?;
    m.add_function(wrap_pyfunction!(cuts::rank_values, m)?)?;
    m.add_function(wrap_pyfunction!(cuts::quantile_gaps, m)?)?;
    m.add_function(wrap_pyfunction!(cuts::greedy_cuts, m)?)?;
    m.add_function(wrap_pyfunction!(greedy::grow_greedy, m)?)?;
    m.add_function(wrap_pyfunction!(survival::row_hazard, m)?)?;
    Ok(())
}

//! Thin Python binding: arrays in, solution out.

use pyo3::prelude::*;

mod brier;
mod cuts;
mod fronts;
mod greedy;
mod search;
mod survival;
mod tasks;
mod user;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<search::PySolution>()?;
    m.add_class::<fronts::PyFront>()?;
    m.add_class::<fronts::PyFrontPoint>()?;
    m.add_function(wrap_pyfunction!(search::backends, m)?)?;
    m.add_function(wrap_pyfunction!(search::solve_likelihood, m)?)?;
    m.add_function(wrap_pyfunction!(search::path_likelihood, m)?)?;
    m.add_function(wrap_pyfunction!(search::forecast_likelihood, m)?)?;
    m.add_function(wrap_pyfunction!(search::near_optimal_likelihood, m)?)?;
    m.add_function(wrap_pyfunction!(search::alternatives_likelihood, m)?)?;
    m.add_function(wrap_pyfunction!(brier::solve_brier, m)?)?;
    m.add_function(wrap_pyfunction!(brier::path_brier, m)?)?;
    m.add_function(wrap_pyfunction!(brier::near_optimal_brier, m)?)?;
    m.add_function(wrap_pyfunction!(brier::alternatives_brier, m)?)?;
    m.add_function(wrap_pyfunction!(tasks::solve_task, m)?)?;
    m.add_function(wrap_pyfunction!(tasks::path_task, m)?)?;
    m.add_function(wrap_pyfunction!(tasks::forecast_task, m)?)?;
    m.add_function(wrap_pyfunction!(tasks::near_optimal_task, m)?)?;
    m.add_function(wrap_pyfunction!(tasks::alternatives_task, m)?)?;
    m.add_function(wrap_pyfunction!(fronts::solve_front, m)?)?;
    m.add_function(wrap_pyfunction!(user::solve_user, m)?)?;
    m.add_function(wrap_pyfunction!(user::forecast_user, m)?)?;
    m.add_function(wrap_pyfunction!(greedy::grow_greedy, m)?)?;
    m.add_function(wrap_pyfunction!(cuts::greedy_cuts, m)?)?;
    m.add_function(wrap_pyfunction!(survival::risk_table, m)?)?;
    Ok(())
}

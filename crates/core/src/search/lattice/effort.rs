//! Estimates the effort of lattices from counts alone.

use super::runs::{runs_of, true_runs};
use crate::data::Sample;
use crate::search::{Settings, threads};

/// With fewer cells than this, a second thread costs more than it saves.
const CELLS_PER_THREAD: usize = 1 << 18;

/// Cells on the last level of a lattice.
pub fn cells(n_columns: usize, depth: usize) -> usize {
    let itemsets = |c: usize, i| c.saturating_mul(n_columns.saturating_sub(i)) / (i + 1);
    (0..depth).fold(1, itemsets).saturating_mul(1 << depth)
}

/// Number of cells of a lattice plus visits of rows; a cell and a visit take about the same time.
/// O(rows).
pub fn effort(sample: &Sample, depth: usize) -> f64 {
    let (cells, visits) = work(&visits(sample), sample.n_columns(), depth, depth);
    cells + visits
}

/// Whether visits of rows outnumber the cells of a lattice by this factor; O(rows).
pub fn mostly_visits(sample: &Sample, depth: usize, factor: f64) -> bool {
    let (cells, visits) = work(&visits(sample), sample.n_columns(), depth, depth);
    visits >= factor * cells
}

/// Number of threads worth starting for a lattice with this effort.
pub fn useful_threads(effort: impl Fn() -> f64, settings: &Settings) -> usize {
    threads::useful_threads(effort, CELLS_PER_THREAD, settings)
}

/// Number of rows by the number of columns for which they are visited, at most one of every run;
/// O(rows).
pub fn visits(sample: &Sample) -> Vec<usize> {
    let rows = || (0..sample.n_rows()).map(|r| sample.row(r));
    true_runs(&runs_of(sample.n_columns(), rows()), rows())
}

/// Cells and row visits of a search over `n` columns to `depth` with lattices of depth `reach`,
/// given the number of rows by the number of columns for which they are visited.
pub fn work(visited: &[usize], n: usize, depth: usize, reach: usize) -> (f64, f64) {
    // Columns that were split on are missing in the lattices below.
    let above = depth - reach;
    let columns = n.saturating_sub(above);
    let lattices: f64 = (0..above).map(|k| 2.0 * (n - k) as f64).product();
    let cells = lattices * choose(columns, reach) * 2f64.powi(reach as i32);
    let visits = |(k, &rows): (usize, &usize)| rows as f64 * choose(k, reach.saturating_sub(1));
    // Each level splits the rows between two lattices.
    let row_visits =
        visited.iter().enumerate().map(visits).sum::<f64>() * lattices / 2f64.powi(above as i32);
    (cells, row_visits)
}

/// Binomial coefficient.
fn choose(n: usize, k: usize) -> f64 {
    if k > n { 0.0 } else { (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product() }
}

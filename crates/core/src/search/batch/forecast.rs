//! Forecasts the effort of a search, without the time that the task itself takes.

use super::{Statistics, lattice};
use crate::data::{BinaryMatrix, Sample};
use crate::search::Settings;
use crate::search::forecast::Forecast;
use crate::search::lattice::{MAX_DEPTH, visits, work};

/// Nanoseconds per leaf cell and per row visit, one thread, measured on GBSG2 at depth 4.
const CELL: f64 = 5.0;
const VISIT: f64 = 3.0;

/// Forecast without pruning, and the sample; O(rows · (log rows + columns)).
pub fn forecast(
    features: &BinaryMatrix,
    statistics: &Statistics,
    settings: &Settings,
) -> (Forecast, Sample) {
    let sample = Sample::new(features, &statistics.values, statistics.channels);
    let most = settings.limits.most_leaves();
    let depth = settings.limits.max_depth.min(sample.n_columns()).min(most.saturating_sub(1));
    let (limit, threads) = (settings.bytes(), settings.threads());
    let bytes = |d: usize| lattice::bytes(&sample, d, most, threads);
    let deepest = settings.switches.lattice_depth.clamp(1, MAX_DEPTH).min(depth);
    let reach = (1..=deepest).rev().find(|&d| bytes(d) <= limit).unwrap_or(depth.min(1));
    let work = work(&visits(&sample), sample.n_columns(), depth, reach);
    (Forecast::new(work, (CELL, VISIT), threads as f64, bytes(reach)), sample)
}

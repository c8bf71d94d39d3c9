//! Fronts of non-dominated costs, and the best tree under limits on further components.
//!
//! For costs of whole numbers that add up over the leaves ([`FrontTask`]) the searches here
//! bound subproblems by their least weighted cost and list only the points that the bounds leave
//! open: [`solve_front`] gives the whole front of two components, [`solve_limited`] the least of
//! one component with the others within their windows, [`solve_metric`] the best of a measure of
//! both error rates.

mod cheapest;
mod curves;
mod engine;
mod hull;
mod leaves;
mod limited;
mod metric;
mod node;
mod pairs;
mod points;
mod shallow;
mod start;
mod ties;
mod triangle;
mod weighted;
mod whole;

pub(crate) use metric::{Metric, solve_metric};
pub(crate) use start::{Relaxation, without_capacity, without_fairness, without_parity};

use super::nodes::full_leaves;
use super::{Checked, Monitor, Settings, Status, TracePoint};
use crate::data::{BinaryMatrix, Sample};
use crate::error::Error;
use crate::task::FrontTask;
use crate::tree::Tree;
use engine::{Engine, Point};

/// One tree of a front.
#[derive(Clone, Debug)]
pub struct FrontPoint {
    /// The tree, over the caller's features.
    pub tree: Tree,
    /// Label that every leaf predicts, −1 at splits; as long as the tree.
    pub labels: Vec<i64>,
    /// Components of its cost, in the units of the task.
    pub costs: Vec<f64>,
}

/// A front and the evidence for it.
#[derive(Clone, Debug)]
pub struct Front {
    /// Trees that do not dominate one another, by ascending first component; the one best
    /// tree of a limited search or none.
    pub points: Vec<FrontPoint>,
    /// Place of the best point of a search for one tree.
    pub best: Option<usize>,
    /// Objective of the best point: component 0 with the penalty of all leaves.
    pub objective: f64,
    /// No admissible tree has a smaller objective; NaN for a whole front.
    pub lower_bound: f64,
    /// Why the search ended; a front is complete when optimal.
    pub status: Status,
    /// Leaves evaluated.
    pub nodes: u64,
    /// Rows after merging.
    pub n_distinct_rows: usize,
    /// Columns after dropping constants, duplicates and complements.
    pub n_columns: usize,
    /// Improvements over time.
    pub trace: Vec<TracePoint>,
}

/// Most leaves where that is fewer than the depth allows.
fn leaf_limit(settings: &Settings, sample: &Sample) -> u32 {
    let depth = settings.limits.max_depth.min(sample.n_columns());
    let full = full_leaves(depth).min(sample.n_rows());
    settings.limits.max_leaves.filter(|&l| l < full).map_or(u32::MAX, |l| l as u32)
}

/// The distinct rows with the task's statistics.
fn sample<T: FrontTask<K>, const K: usize>(task: &T, features: &BinaryMatrix) -> Sample {
    Sample::with_kinds(features, task.statistics(), task.channels(), &[], task.events())
}

fn point<T: FrontTask<K>, const K: usize>(engine: &Engine<T, K>, point: &Point<K>) -> FrontPoint {
    let (tree, labels) = engine.tree(point.plan);
    let units = engine.task.units();
    let costs = point.cost.iter().zip(units).map(|(&c, unit)| c as f64 / unit).collect();
    FrontPoint { tree, labels, costs }
}

/// The whole front of two components that are better when smaller.
///
/// On a limit the points found so far, which do not dominate one another.
pub(crate) fn solve_front<T: FrontTask<2>>(
    task: &T,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
) -> Result<Front, Error> {
    let sample = sample(task, features);
    let mut engine = Engine::new(task, features, settings, monitor)?;
    engine.max_leaves = leaf_limit(settings, &sample);
    let root = engine.root(sample);
    let mut stairs = Vec::new();
    let depth = settings.limits.max_depth.min(root.sample.n_columns());
    let mut solved = Ok(());
    // Shallow fronts take little time and are there when a limit ends the search.
    for depth in depth.min(1)..=depth {
        let mut found = Vec::new();
        solved = whole::front(&mut engine, &root, depth, &mut found);
        stairs.append(&mut found);
        whole::staircase(&mut stairs);
        if solved.is_err() {
            break;
        }
    }
    let points = stairs.iter().map(|p| point(&engine, p)).collect();
    Ok(Front {
        points: ties::without_ties(points, task.rounding(), None),
        best: None,
        objective: f64::NAN,
        lower_bound: f64::NAN,
        status: solved.map_or_else(Status::from, |()| Status::Optimal),
        nodes: monitor.nodes(),
        n_distinct_rows: root.sample.n_rows(),
        n_columns: root.sample.n_columns(),
        trace: Vec::new(),
    })
}

/// What is said where a search under limits did not resolve its best tree.
pub(crate) fn unresolved<T: FrontTask<K>, const K: usize>(task: &T, found: &Front) -> Error {
    let (name, range) = task.widest();
    let gap = found.objective - found.lower_bound;
    let reason = format!(
        "the values span too wide a range for a certificate ({range}): the objective {:e} is \
         certain to {gap:.1e} only",
        found.objective
    );
    Error::invalid(name, reason)
}

/// The tree with the least component 0 whose other components lie within their windows.
///
/// `relaxed` is the same search without the windows. Without a
/// point, and with an infinite objective, when the search was stopped before an admissible tree
/// was met, or when there is proven to be none: `Status::Infeasible`. Where a search of less
/// resolution found a tree, this one goes on from there.
pub(crate) fn solve_limited<T: FrontTask<K>, const K: usize>(
    task: &T,
    relaxed: &Relaxation,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
    known: Option<Front>,
) -> Result<Front, Error> {
    let sample = sample(task, features);
    let (n_distinct_rows, n_columns) = (sample.n_rows(), sample.n_columns());
    let mut engine = Engine::new(task, features, settings, monitor)?;
    engine.max_leaves = leaf_limit(settings, &sample);
    let root = engine.root(sample);
    let mut search = limited::Search::new(&mut engine, root, features, settings);
    if let Some(known) = known {
        let after = known.points.first().map(|point| search.after(&known.trace, &point.tree));
        match after {
            Some(Ok(after)) => search = after,
            Some(Err(stop)) => return Ok(Front { status: Status::from(stop), ..known }),
            None => return Ok(known),
        }
    }
    let (best, verdict) = search.run(settings, relaxed);
    Ok(Front {
        points: best.iter().map(|p| point(&engine, p)).collect(),
        best: best.map(|_| 0),
        objective: verdict.objective,
        lower_bound: verdict.lower_bound,
        status: verdict.status,
        nodes: monitor.nodes(),
        n_distinct_rows,
        n_columns,
        trace: verdict.trace,
    })
}

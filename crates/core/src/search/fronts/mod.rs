//! Fronts of non-dominated costs, and the best tree under limits on further components.
//!
//! For costs that are whole numbers and add up over the leaves ([`FrontTask`]), these searches
//! bound subproblems by their least weighted cost and only list the points that the bounds leave
//! open. [`solve_front`] returns the whole front of two components, [`solve_limited`] the least of
//! one component with the others within their windows, and [`solve_metric`] the best of a measure
//! of both error rates.

mod alike;
mod cheapest;
mod curves;
mod engine;
mod hull;
mod leaves;
mod limited;
mod metric;
mod near;
mod node;
mod pairs;
mod plans;
mod points;
mod shallow;
mod start;
mod ties;
mod triangle;
mod weighing;
mod weighted;
mod whole;

pub(crate) use metric::{Metric, solve_metric};

use super::{Checked, Monitor, Solution, Status, TracePoint, too_wide};
use crate::data::BinaryMatrix;
use crate::error::Error;
use crate::task::{FrontTask, Said};
use crate::tree::Tree;
use engine::{Engine, Point};

/// One tree of a front.
#[derive(Clone, Debug)]
pub struct FrontPoint {
    /// The tree, over the caller's features.
    pub tree: Tree,
    /// Label of every leaf, −1 at splits; as long as the arrays of the tree.
    pub labels: Vec<i64>,
    /// Components of its cost, in the units that users see.
    pub costs: Vec<f64>,
}

/// A front and the evidence for it.
#[derive(Clone, Debug)]
pub struct Front {
    /// Trees that do not dominate each other, by ascending first component. After a search under
    /// limits: the best tree, if there is one.
    pub points: Vec<FrontPoint>,
    /// Position of the best point, if the search was for one tree.
    pub best: Option<usize>,
    /// Objective of the best point: component 0 with the penalty of all leaves.
    pub objective: f64,
    /// A lower bound on the objective of every admissible tree; NaN for a whole front.
    pub lower_bound: f64,
    /// Why the search ended; a front is complete if this is optimal.
    pub status: Status,
    /// Number of leaves evaluated.
    pub nodes: u64,
    /// Rows after merging.
    pub n_distinct_rows: usize,
    /// Columns without constants, duplicates and complements.
    pub n_columns: usize,
    /// Improvements over time.
    pub trace: Vec<TracePoint>,
}

/// A search for the best tree without the limits, for the same objective.
pub type Relaxation<'a> = dyn Fn(&Checked, &Monitor) -> Result<Solution, Error> + 'a;

/// A tree with its costs, computed from the rows if the task can.
fn point<T: FrontTask<K>, const K: usize>(
    engine: &Engine<T, K>,
    features: &BinaryMatrix,
    point: &Point<K>,
) -> FrontPoint {
    let (tree, labels) = engine.plans.tree(point.plan);
    let of_leaves: Vec<i64> = labels.iter().copied().filter(|&label| label >= 0).collect();
    let leaf_of = tree.partition(features);
    let exact = engine.task.exact_costs(&Said { leaf_of: &leaf_of, labels: &of_leaves });
    let units = engine.task.units();
    let costs = exact.unwrap_or_else(|| std::array::from_fn(|k| point.cost[k] as f64 / units[k]));
    FrontPoint { tree, labels, costs: costs.to_vec() }
}

/// The whole front of two components that are better when smaller.
///
/// After a limit, the points found so far, which do not dominate each other.
pub(crate) fn solve_front<T: FrontTask<2>>(
    task: &T,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
) -> Result<Front, Error> {
    let mut engine = Engine::new(task, features, settings, monitor)?;
    let root = engine.root.clone();
    let mut stairs = Vec::new();
    let depth = settings.limits.max_depth.min(root.sample.n_columns());
    let mut solved = Ok(());
    // Fronts of small depth take little time, and remain if a limit ends the search.
    for depth in depth.min(1)..=depth {
        let mut found = Vec::new();
        solved = whole::front(&mut engine, &root, depth, &mut found);
        stairs.append(&mut found);
        whole::staircase(&mut stairs);
        if solved.is_err() {
            break;
        }
    }
    let mut points: Vec<_> = stairs.iter().map(|p| point(&engine, features, p)).collect();
    points
        .sort_by(|p, q| p.costs[0].total_cmp(&q.costs[0]).then(q.costs[1].total_cmp(&p.costs[1])));
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

/// The result; an error if it is uncertain only because of the range of the data.
fn resolved(found: Front, widest: impl FnOnce() -> (&'static str, String)) -> Result<Front, Error> {
    if found.status != Status::Unresolved {
        return Ok(found);
    }
    Err(too_wide(widest(), found.objective, found.lower_bound))
}

/// The tree with the smallest component 0 whose other components lie within their windows.
///
/// `relaxed` is the same search without the windows. If only the range of the data leaves the
/// result uncertain, the search is repeated in the units of `finer`, which are as fine as the
/// objective found requires; a much better objective requires finer ones again. The result has no
/// point and an infinite objective if the search was stopped before it found an admissible tree, or
/// if there is proven to be none: `Status::Infeasible`.
///
/// # Errors
///
/// If no units resolve the best tree because the values span too wide a range.
pub(crate) fn solve_limited<T: FrontTask<K>, const K: usize>(
    task: &T,
    finer: impl Fn(f64) -> Result<Option<T>, Error>,
    relaxed: &Relaxation,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
) -> Result<Front, Error> {
    let search = |task: &T, first| limited_once(task, relaxed, features, settings, monitor, first);
    let (mut found, mut most) = (search(task, None)?, f64::INFINITY);
    while found.status == Status::Unresolved && found.best.is_some() && found.objective < most {
        most = found.objective - 0.5 * found.objective.abs();
        let Some(finer) = finer(found.objective)? else { break };
        found = search(&finer, Some(found))?;
    }
    resolved(found, || task.widest())
}

/// One search; `first` is the result of another one whose units did not resolve it.
fn limited_once<T: FrontTask<K>, const K: usize>(
    task: &T,
    relaxed: &Relaxation,
    features: &BinaryMatrix,
    settings: &Checked,
    monitor: &Monitor,
    first: Option<Front>,
) -> Result<Front, Error> {
    let mut engine = Engine::new(task, features, settings, monitor)?;
    let (n_distinct_rows, n_columns) =
        (engine.root.sample.n_rows(), engine.root.sample.n_columns());
    let mut search = limited::Search::new(&mut engine, features, settings);
    if let Some(first) = &first {
        search = search.after(first);
    }
    let (best, verdict) = search.run(settings, relaxed);
    let points = match (best, first) {
        (None, Some(first)) => first.points,
        (best, _) => best.iter().map(|p| point(&engine, features, p)).collect(),
    };
    Ok(Front {
        best: (!points.is_empty()).then_some(0),
        points,
        objective: verdict.objective,
        lower_bound: verdict.lower_bound,
        status: verdict.status,
        nodes: verdict.nodes,
        n_distinct_rows,
        n_columns,
        trace: verdict.trace,
    })
}

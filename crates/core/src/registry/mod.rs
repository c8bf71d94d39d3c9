//! Looks up every task by name. The family of a task determines what can be asked of it.

mod columns;
mod fronts;
mod problem;
mod sums;

pub use columns::{Column, Columns};
pub use fronts::FrontSearch;
pub use problem::Problem;
pub use sums::{ManyTrees, SUMS, SumSearch, Visitor, visit};

use crate::data::{BinaryMatrix, RankMatrix};
use crate::error::Error;
use crate::greedy::{Codes, Grown, Limits, subtree_by_curve};
use crate::search::batch::{self, BatchTask, Statistics};
use crate::search::fronts::Front;
use crate::search::partial::{Found, Leaves, Records, Table};
use crate::search::{
    Alternative, Checked, Forecast, Monitor, Near, Settings, Solution, Stop, curve,
};
use crate::task::brier::Brier;
use crate::task::curve::{LeafCurve, ScalarCurveTask};
use crate::task::priced::Priced;
use crate::tree::Tree;

/// Costs of labels, with prices for questions.
pub const PRICED: &str = "priced-costs";

/// Integrated Brier score of the leaves' curves.
pub const BRIER: &str = "brier";

/// What is known about a task without its data.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Questions that it can answer: methods of [`Prepared`].
    pub asks: &'static [&'static str],
    /// Switches of [`Settings`] that its searches read.
    pub switches: &'static [&'static str],
}

/// All tasks.
pub fn tasks() -> Vec<Entry> {
    let asks: &[_] = &[
        "solve",
        "path",
        "forecast",
        "near_optimal",
        "alternatives",
        "greedy_cuts",
        "over_thresholds",
    ];
    let mut all: Vec<_> =
        SUMS.iter().map(|&name| Entry { name, asks, switches: OF_SUMS }).collect();
    let asks = &["solve", "path", "forecast", "greedy_cuts"];
    all.push(Entry { name: PRICED, asks, switches: OF_SUMS });
    let asks = &["solve", "path", "near_optimal", "alternatives", "greedy_cuts"];
    all.push(Entry { name: BRIER, asks, switches: OF_CURVES });
    all.extend(fronts::names().map(|name| Entry { name, asks: &["front"], switches: OF_FRONTS }));
    all
}

/// A task whose costs are computed by the caller, in batches.
pub struct Outside<'a> {
    /// The costs.
    pub task: &'a dyn BatchTask,
    /// Statistics of the rows.
    pub statistics: &'a Statistics,
    /// Divisor of costs.
    pub total_weight: f64,
    /// Price of a leaf in the normalised objective.
    pub leaf_penalty: f64,
}

/// A task that is ready to be searched, by the family of its search.
pub enum Prepared<'a> {
    /// Leaf costs are functions of sums.
    Sum(Box<dyn ManyTrees>),
    /// Leaf costs are functions of sums, and the price of a question depends on the questions
    /// above.
    Priced(Box<Priced>),
    /// Leaf costs need the rows in the order of time.
    Curve(Box<dyn ScalarCurveTask>),
    /// Leaf costs come from the caller.
    Outside(Outside<'a>),
    /// The tree is chosen from a front.
    Front(FrontSearch<'a>),
}

fn brier(p: &Problem) -> Result<Brier, Error> {
    let curve = match p.columns.word("leaf_curve")? {
        "kaplan-meier" => LeafCurve::KaplanMeier,
        "brier-optimal" => LeafCurve::BrierOptimal,
        other => {
            let reason = format!("must be 'kaplan-meier' or 'brier-optimal', not {other:?}");
            return Err(Error::invalid("leaf_curve", reason));
        }
    };
    Brier::new(&p.observations()?, p.leaf_penalty, curve, p.reference_loss()?)
}

fn priced(p: &Problem) -> Result<Priced, Error> {
    let (costs, n_labels) = p.of_labels("costs")?;
    Priced::new(costs, n_labels, p.rows()?, p.prices()?, p.leaf_penalty, p.max_leaves)
}

/// Prepares the task of that name.
///
/// # Errors
///
/// For an unknown name, and for columns that are missing, invalid or not part of the task.
pub fn prepare<'a>(name: &str, problem: &Problem<'a>) -> Result<Prepared<'a>, Error> {
    problem.check()?;
    let prepared = match name {
        PRICED => Prepared::Priced(Box::new(priced(problem)?)),
        BRIER => Prepared::Curve(Box::new(brier(problem)?)),
        _ => {
            if let Some(task) = visit(name, problem, sums::Boxed)? {
                Prepared::Sum(task)
            } else if let Some(search) = fronts::prepare(name, problem)? {
                Prepared::Front(search)
            } else {
                let known: Vec<_> = tasks().iter().map(|task| task.name).collect();
                return Err(Error::invalid("task", format!("{name:?} is not one of {known:?}")));
            }
        }
    };
    problem.columns.check_read()?;
    Ok(prepared)
}

/// A task that can sum up the rows of its records and search on these sums.
pub struct Summed {
    task: Box<dyn SumSearch>,
    counts: Option<Vec<i64>>,
}

/// Prepares the task of that name from records that stand for "count" rows each.
///
/// # Errors
///
/// As [`prepare`], and for tasks whose costs are not functions of sums.
pub fn prepare_sums(name: &str, problem: &Problem) -> Result<Summed, Error> {
    if problem.columns.number_if_any("fewest")?.is_some() {
        return without("partial sums: leaves need rows of every group");
    }
    let task: Box<dyn SumSearch> = match prepare(name, problem)? {
        Prepared::Sum(task) => task,
        Prepared::Priced(task) => task,
        Prepared::Curve(_) => {
            return without("partial sums: the Brier score of a leaf is no function of sums");
        }
        Prepared::Outside(_) | Prepared::Front(_) => return without("partial sums"),
    };
    let counts = problem.columns.codes_if_any("count")?.map(<[i64]>::to_vec);
    let finest = task.finest(counts.as_deref(), problem.max_leaves);
    Ok(Summed { task: finest.unwrap_or(task), counts })
}

impl Summed {
    /// Records for a table of sums.
    pub fn records(&self) -> Records<'_> {
        let (statistics, channels) = self.task.statistics();
        Records { statistics, events: self.task.events(), channels, counts: self.counts.as_deref() }
    }

    /// The best tree for the rows of a table; see
    /// [`partial::search`](crate::search::partial::search).
    pub fn search(&self, table: &Table, s: &Settings, m: &Monitor) -> Result<Found, Error> {
        self.task.search_table(table, self.records(), s, m)
    }

    /// A tree with its certificate; see [`partial::certify`](crate::search::partial::certify).
    pub fn certify(
        &self,
        table: &Table,
        s: &Settings,
        m: &Monitor,
        found: &Found,
        leaves: Option<&Leaves>,
    ) -> Result<Solution, Error> {
        self.task.certify(table, self.records(), s, m, found, leaves)
    }
}

/// Switches of [`Settings`] that searches on sums read.
const OF_SUMS: &[&str] = &[
    "backend",
    "precision",
    "trivial_bound",
    "equivalent_points",
    "lattice_depth",
    "implied",
    "relax_leaves",
    "cache",
    "cells_per_thread",
    "planted",
];

/// Switches that the search over ranks reads.
const OF_RANKS: &[&str] = &["backend", "precision", "cache", "cells_per_thread", "planted"];

/// Switches that searches on curves read.
const OF_CURVES: &[&str] =
    &["backend", "equivalent_points", "look_ahead", "cache", "cells_per_thread", "planted"];

/// Switches that searches with the caller's costs read.
pub const OF_OUTSIDE: &[&str] =
    &["backend", "lattice_depth", "trivial_bound", "cache", "cells_per_thread", "planted"];

/// Switches that searches for fronts read, including those of the searches without limits that run
/// first.
const OF_FRONTS: &[&str] = &[
    "backend",
    "precision",
    "trivial_bound",
    "equivalent_points",
    "lattice_depth",
    "implied",
    "relax_leaves",
    "look_ahead",
    "cache",
    "cells_per_thread",
    "planted",
];

/// The error for a family of tasks that has no such search.
fn without<T>(what: &str) -> Result<T, Error> {
    Err(Error::invalid("task", format!("has no {what}")))
}

/// Rejects switches that would have no effect in a search that reads these.
fn check_switches(settings: &Settings, read: &[&str]) -> Result<(), Error> {
    let unread = settings.switches.changed().find(|name| !read.contains(name));
    unread.map_or(Ok(()), |name| {
        Err(Error::invalid("options", format!("{name:?} is no switch of this search")))
    })
}

impl Prepared<'_> {
    /// Switches that the searches of this family read.
    fn switches(&self) -> &'static [&'static str] {
        match self {
            Prepared::Sum(_) | Prepared::Priced(_) => OF_SUMS,
            Prepared::Curve(_) => OF_CURVES,
            Prepared::Outside(_) => OF_OUTSIDE,
            Prepared::Front(_) => OF_FRONTS,
        }
    }

    /// Whether the event of every row was observed; empty if the task has no events.
    fn events(&self) -> &[bool] {
        match self {
            Prepared::Sum(task) => task.events(),
            Prepared::Priced(task) => SumSearch::events(&**task),
            Prepared::Curve(task) => &task.timeline().event,
            Prepared::Outside(_) => &[],
            Prepared::Front(front) => &front.events,
        }
    }

    /// The settings, after rejecting switches and limits that would have no effect.
    fn checked(&self, x: &BinaryMatrix, settings: &Settings) -> Result<Checked, Error> {
        check_switches(settings, self.switches())?;
        settings.checked(x.n_rows(), self.n_events())
    }

    fn n_events(&self) -> usize {
        self.events().iter().filter(|&&event| event).count()
    }

    /// The best tree.
    pub fn solve(&self, x: &BinaryMatrix, s: &Settings, m: &Monitor) -> Result<Solution, Error> {
        let s = &self.checked(x, s)?;
        match self {
            Prepared::Sum(task) => task.solve(x, s, m),
            Prepared::Priced(task) => SumSearch::solve(&**task, x, s, m),
            Prepared::Curve(task) => curve::solve(&**task, x, s, m),
            Prepared::Outside(Outside { task, statistics, total_weight, leaf_penalty }) => {
                batch::solve(*task, x, statistics, *total_weight, *leaf_penalty, s, m)
            }
            Prepared::Front(_) => without("best tree but that of a front"),
        }
    }

    /// The best tree over all thresholds of the columns; its features are questions of `x`.
    pub fn over_thresholds(
        &self,
        x: &RankMatrix,
        s: &Settings,
        m: &Monitor,
    ) -> Result<Solution, Error> {
        check_switches(s, OF_RANKS)?;
        let s = &s.checked(x.n_rows(), self.n_events())?;
        match self {
            Prepared::Sum(task) => task.over_thresholds(x, s, m),
            Prepared::Priced(_) => without("search over all thresholds: questions have prices"),
            Prepared::Curve(_) => without(
                "search over all thresholds: the loss of a curve is no function of sums over the rows",
            ),
            Prepared::Outside(_) => {
                without("search over all thresholds: nothing is known of costs from outside")
            }
            Prepared::Front(_) => without("search over all thresholds: costs have several parts"),
        }
    }

    /// The best tree with at most k leaves for k = 1, 2, ….
    pub fn path(
        &self,
        x: &BinaryMatrix,
        s: &Settings,
        m: &Monitor,
    ) -> Result<Vec<Solution>, Error> {
        let s = &self.checked(x, s)?;
        match self {
            Prepared::Sum(task) => task.path(x, s, m),
            Prepared::Priced(task) => task.path(x, s, m),
            Prepared::Curve(task) => curve::solve_path(&**task, x, s, m),
            Prepared::Outside(_) | Prepared::Front(_) => without("search for all sizes"),
        }
    }

    /// Forecast of a search, with the number of distinct rows and of useful columns.
    pub fn forecast(
        &self,
        x: &BinaryMatrix,
        s: &Settings,
    ) -> Result<(Forecast, usize, usize), Error> {
        check_switches(s, self.switches())?;
        let (expected, sample) = match self {
            Prepared::Sum(task) => task.forecast(x, s),
            Prepared::Priced(task) => task.forecast(x, s),
            Prepared::Outside(Outside { statistics, .. }) => batch::forecast(x, statistics, s),
            Prepared::Curve(_) | Prepared::Front(_) => return without("forecast"),
        };
        Ok((expected, sample.n_rows(), sample.n_columns()))
    }

    /// Trees within `most.0` of the optimum, `most.1` of them at most.
    pub fn near_optimal(
        &self,
        x: &BinaryMatrix,
        s: &Settings,
        m: &Monitor,
        most: (f64, usize),
    ) -> Result<Near, Error> {
        let s = &self.checked(x, s)?;
        match self {
            Prepared::Sum(task) => task.near_optimal(x, s, m, most),
            Prepared::Curve(task) => curve::near_optimal(&**task, x, s, m, most),
            _ => without("list of trees near the optimum"),
        }
    }

    /// Other questions at the splits of a tree.
    pub fn alternatives(
        &self,
        x: &BinaryMatrix,
        s: &Settings,
        m: &Monitor,
        tree: &Tree,
    ) -> Result<(Vec<Alternative>, Option<Stop>), Error> {
        let s = &self.checked(x, s)?;
        match self {
            Prepared::Sum(task) => task.alternatives(x, s, m, tree),
            Prepared::Curve(task) => curve::alternatives(&**task, x, s, m, tree),
            _ => without("list of alternatives"),
        }
    }

    /// The front, or the tree of the front that the task asks for.
    pub fn front(&self, x: &BinaryMatrix, s: &Settings, m: &Monitor) -> Result<Front, Error> {
        let s = &self.checked(x, s)?;
        match self {
            Prepared::Front(front) => (front.search)(x, s, m),
            _ => without("front"),
        }
    }

    /// The cheapest subtree of the greedy tree; see [`crate::greedy::subtree_by_costs`].
    pub fn greedy_cuts(
        &self,
        columns: Vec<Codes>,
        limits: &Limits,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Grown, Error> {
        match self {
            Prepared::Sum(task) => Ok(task.greedy_cuts(columns, limits, interrupted)),
            Prepared::Priced(task) => Ok(task.greedy_cuts(columns, limits, interrupted)),
            Prepared::Curve(task) => Ok(subtree_by_curve(&**task, columns, limits, interrupted)),
            Prepared::Outside(_) | Prepared::Front(_) => without("greedy tree"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known_and_only_those() {
        let problem = Problem {
            columns: Columns::default(),
            n_rows: 0,
            n_features: 0,
            leaf_penalty: 0.0,
            max_leaves: 1,
        };
        let refusal = |name| prepare(name, &problem).err().expect("nothing is given").to_string();
        for Entry { name, .. } in tasks() {
            assert!(refusal(name).ends_with("is missing"), "{name}: {}", refusal(name));
        }
        assert!(refusal("mood").starts_with("task: \"mood\" is not one of [\"likelihood\""));
    }

    #[test]
    fn limits_are_checked_before_anything_is_prepared() {
        // No columns are given: the error shows what is checked first.
        let refusal = |n_rows, n_features, max_leaves| {
            let columns = Columns::default();
            let problem = Problem { columns, n_rows, n_features, leaf_penalty: 0.0, max_leaves };
            let refusals = tasks().into_iter().map(|task| {
                prepare(task.name, &problem).err().expect("nothing is given").to_string()
            });
            let mut refusals: Vec<_> = refusals.collect();
            refusals.dedup();
            refusals
        };
        assert_eq!(refusal(1, 1, 0), ["max_leaf_nodes must be at least 1"]);
        assert_eq!(refusal(1 << 32, 1, 2), ["X has 4294967296 rows, 2147483647 at most"]);
        assert_eq!(refusal(1, 1 << 33, 2), ["X has 8589934592 columns, 4294967294 at most"]);
    }

    #[test]
    fn a_switch_that_a_search_does_not_read_is_refused() {
        let mut columns = Columns::default();
        columns.insert("target", Column::Numbers(&[1.0, 2.0]));
        let problem =
            Problem { columns, n_rows: 2, n_features: 1, leaf_penalty: 0.0, max_leaves: 2 };
        let task = prepare("regression", &problem).expect("complete");
        let features = BinaryMatrix::from_bytes(2, 1, &[0, 1]).expect("a byte per entry");
        let monitor = Monitor::new(None, &|| false);
        let solve =
            |settings| task.solve(&features, &settings, &monitor).map_err(|e| e.to_string());
        let read = solve(Settings::default().with_switches(|s| s.cache = false));
        assert_eq!(read.map(|solution| solution.objective), Ok(0.0));
        let unread = solve(Settings::default().with_switches(|s| s.look_ahead = false));
        assert_eq!(
            unread.err(),
            Some("options: \"look_ahead\" is no switch of this search".into())
        );
    }

    #[test]
    fn columns_that_no_task_reads_are_refused() {
        let mut columns = Columns::default();
        columns.insert("target", Column::Numbers(&[1.0, 2.0]));
        columns.insert("entry", Column::Numbers(&[0.0, 0.0]));
        let problem =
            Problem { columns, n_rows: 2, n_features: 1, leaf_penalty: 0.0, max_leaves: 2 };
        let refusal = prepare("regression", &problem).err().expect("refused").to_string();
        assert_eq!(refusal, "data: \"entry\" is not a column of the task");
        let refusal = prepare("gini", &problem).err().expect("refused").to_string();
        assert_eq!(refusal, "labels is missing");
    }
}

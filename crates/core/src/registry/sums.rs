//! Tasks whose leaf costs are functions of sums over the rows, one line for each objective.

use super::Problem;
use crate::data::{BinaryMatrix, RankMatrix, Sample};
use crate::error::Error;
use crate::greedy::{Codes, Grown, Limits, subtree_by_costs};
use crate::search::partial::{self, Found, Leaves, Records, Table};
use crate::search::{
    Alternative, Checked, Forecast, Monitor, Near, Settings, Solution, Stop, alternatives,
    distinct_rows, forecast, near_optimal, over_thresholds, solve, solve_path,
};
use crate::task::accuracy::Accuracy;
use crate::task::balanced_accuracy::balanced_accuracy;
use crate::task::causes::Causes;
use crate::task::entropy::{entropy, entropy_of_shares};
use crate::task::gini::{gini, gini_of_shares};
use crate::task::label_costs::LabelCosts;
use crate::task::likelihood::Likelihood;
use crate::task::regression::Regression;
use crate::task::{LaneTask, Statistics, Swept};
use crate::tree::Tree;

/// An action on a task of any type.
pub trait Visitor {
    /// Result of the action.
    type Output;
    /// Uses the task.
    fn visit<T: Swept + 'static>(self, task: T) -> Self::Output;
}

/// `name => |problem| task;`
macro_rules! registry {
    ($($name:literal => |$p:ident| $task:expr;)*) => {
        /// Names of the tasks.
        pub const SUMS: &[&str] = &[$($name),*];

        /// Prepares the task of that name and passes it on; `None` if it is not in this registry.
        pub fn visit<V: Visitor>(
            name: &str,
            problem: &Problem,
            visitor: V,
        ) -> Result<Option<V::Output>, Error> {
            Ok(Some(match name {
                $($name => {
                    let $p = problem;
                    visitor.visit($task?)
                })*
                _ => return Ok(None),
            }))
        }
    };
}

registry! {
    "likelihood" => |p| {
        let smoothed = p.columns.numbers_if_any("smoothed")?;
        Likelihood::of_smoothed(&p.counted_observations()?, smoothed, p.prior()?, p.leaf_penalty)
    };
    "accuracy" => |p| {
        let (y, k) = p.labels()?;
        Accuracy::new(&y, k, p.rows()?, p.leaf_penalty, p.max_leaves)
    };
    "balanced-accuracy" => |p| {
        let (y, k) = p.labels()?;
        balanced_accuracy(&y, k, p.rows()?, p.leaf_penalty, p.max_leaves)
    };
    "gini" => |p| match p.shares()? {
        Some((shares, k)) => gini_of_shares(shares, k, p.rows()?, p.leaf_penalty),
        None => {
            let (y, k) = p.labels()?;
            gini(&y, k, p.rows()?, p.leaf_penalty)
        }
    };
    "entropy" => |p| match p.shares()? {
        Some((shares, k)) => entropy_of_shares(shares, k, p.rows()?, p.leaf_penalty),
        None => {
            let (y, k) = p.labels()?;
            entropy(&y, k, p.rows()?, p.leaf_penalty)
        }
    };
    "label-costs" => |p| {
        let (costs, k) = p.of_labels("costs")?;
        LabelCosts::of_costs(costs, k, p.rows()?, p.leaf_penalty, p.max_leaves)
    };
    "policy" => |p| {
        let (rewards, k) = p.of_labels("rewards")?;
        let task = LabelCosts::of_rewards(rewards, k, p.rows()?, p.leaf_penalty, p.max_leaves)?;
        p.minimum().map(|groups| task.within(groups))
    };
    "competing-risks" => |p| {
        let importance = p.columns.numbers("cause_weights")?;
        Causes::new(&p.counted_observations()?, p.columns.codes("cause")?, importance, p.prior()?, p.leaf_penalty)
    };
    "poisson" => |p| {
        let exposure = p.columns.numbers_if_any("exposure")?;
        Likelihood::of_counts(p.columns.numbers("target")?, exposure, p.rows()?, p.leaf_penalty)
    };
    "regression" => |p|
        Regression::new(p.columns.numbers("target")?, p.rows()?, p.leaf_penalty);
}

/// Writes a trait that hides the type of a task, and its implementation for all tasks with a bound:
/// `fn name(task, arguments) -> result = value;`
macro_rules! for_any_task {
    (
        $(#[$about:meta])* $name:ident: [$($above:tt)+] for $bound:ident;
        $($(#[$doc:meta])* fn $method:ident(
            $task:ident $(, $argument:ident: $type:ty)*
        ) -> $result:ty = $value:expr;)*
    ) => {
        $(#[$about])*
        #[allow(missing_docs, reason = "documented where the functions are")]
        pub trait $name: $($above)+ {
            $($(#[$doc])* fn $method(&self $(, $argument: $type)*) -> $result;)*
        }

        impl<T: $bound + 'static> $name for T {
            $(fn $method(&self $(, $argument: $type)*) -> $result {
                let $task = self;
                $value
            })*
        }
    };
}

for_any_task! {
    /// The searches for a task of any type; see the functions of the same name in
    /// [`crate::search`].
    SumSearch: [Send + Sync] for LaneTask;

    fn events(task) -> &[bool] = Statistics::events(task);
    fn solve(task, x: &BinaryMatrix, s: &Checked, m: &Monitor) -> Result<Solution, Error> =
        solve(task, x, s, m);
    fn path(task, x: &BinaryMatrix, s: &Checked, m: &Monitor) -> Result<Vec<Solution>, Error> =
        solve_path(task, x, s, m);
    fn forecast(task, x: &BinaryMatrix, s: &Settings) -> (Forecast, Sample) = {
        let sample = distinct_rows(task, x);
        (forecast(task, &sample, s), sample)
    };
    /// The task with numbers fine enough to be summed once for all trees with up to `most` leaves,
    /// unless its own are; `counts` are the rows of each record.
    fn finest(task, counts: Option<&[i64]>, most: usize) -> Option<Box<dyn SumSearch>> =
        partial::finest(task, counts, most).map(|finest| Box::new(finest) as _);
    /// Statistics per record, and the number of channels.
    fn statistics(task) -> (&[i64], usize) = (Statistics::statistics(task), task.channels());
    fn search_table(
        task, table: &Table, records: Records, s: &Settings, m: &Monitor
    ) -> Result<Found, Error> = partial::search(task, table, records, s, m);
    fn certify(
        task, table: &Table, records: Records, s: &Settings, m: &Monitor,
        found: &Found, leaves: Option<&Leaves>
    ) -> Result<Solution, Error> = partial::certify(task, table, records, s, m, found, leaves);
    fn greedy_cuts(
        task, columns: Vec<Codes>, limits: &Limits, interrupted: &mut dyn FnMut() -> bool
    ) -> Grown = subtree_by_costs(task, columns, limits, interrupted);
}

for_any_task! {
    /// Searches for many trees at once, for tasks whose questions are free.
    ManyTrees: [SumSearch] for Swept;

    fn over_thresholds(
        task, x: &RankMatrix, s: &Checked, m: &Monitor
    ) -> Result<Solution, Error> = over_thresholds(task, x, s, m);
    fn near_optimal(
        task, x: &BinaryMatrix, s: &Checked, m: &Monitor, most: (f64, usize)
    ) -> Result<Near, Error> = near_optimal(task, x, s, m, most);
    fn alternatives(
        task, x: &BinaryMatrix, s: &Checked, m: &Monitor, tree: &Tree
    ) -> Result<(Vec<Alternative>, Option<Stop>), Error> = alternatives(task, x, s, m, tree);
}

/// Puts a task into a box that hides its type.
pub(super) struct Boxed;

impl Visitor for Boxed {
    type Output = Box<dyn ManyTrees>;
    fn visit<T: Swept + 'static>(self, task: T) -> Self::Output {
        Box::new(task)
    }
}

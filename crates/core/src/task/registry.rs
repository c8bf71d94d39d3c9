//! The sum tasks by name.

use super::accuracy::Accuracy;
use super::balanced_accuracy::balanced_accuracy;
use super::entropy::entropy;
use super::gini::gini;
use super::label_costs::LabelCosts;
use super::priced::Priced;
use super::prices::FeaturePrices;
use super::regression::Regression;
use super::{LaneTask, Superadditive, check_values};
use crate::data::{BinaryMatrix, Sample};
use crate::error::Error;
use crate::search::{self, Alternative, Forecast, Monitor, Near, Settings, Solution, Stop};
use crate::tree::Tree;

/// What the rows of a sample are asked for.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// Classes in `0..n_classes`.
    Labels {
        /// Class of each row.
        labels: &'a [usize],
        /// Number of classes.
        n_classes: usize,
    },
    /// Cost of each label.
    Costs {
        /// `[row][label]`.
        costs: &'a [f64],
        /// Number of labels.
        n_labels: usize,
    },
    /// A real number.
    Target(&'a [f64]),
}

/// A sample as a task sees it, and what tasks ask of the search.
#[derive(Clone, Debug)]
pub struct Problem<'a> {
    /// Outcome of each row.
    pub outcome: Outcome<'a>,
    /// Weight of each row, 1 where absent.
    pub weights: Option<&'a [f64]>,
    /// What tests cost; label costs only.
    pub prices: Option<FeaturePrices>,
    /// Price of a leaf in the normalised objective.
    pub leaf_penalty: f64,
    /// Most leaves of any allowed tree.
    pub max_leaves: usize,
}

/// What to do with a task, whatever its type.
pub trait Visitor {
    /// What comes of it.
    type Output;
    /// Uses the task.
    fn visit<T: LaneTask + Superadditive>(self, task: &T) -> Self::Output;
}

type Labels<'a> = (&'a [usize], usize);
type Costs<'a> = (&'a [f64], usize);

/// `name: kind of outcome => task of (outcome, problem)`, one line per objective.
macro_rules! registry {
    ($($name:literal: $kind:ident => $task:expr;)*) => {
        /// Names of the tasks.
        pub const NAMES: &[&str] = &[$($name),*];

        /// Prepares the task of that name and hands it on.
        pub fn visit<V: Visitor>(
            name: &str,
            problem: &Problem,
            visitor: V,
        ) -> Result<V::Output, Error> {
            check_values("sample_weight", problem.weights.unwrap_or(&[]), 1)?;
            if let Some(prices) = &problem.prices {
                return Ok(visitor.visit(&priced(name, problem, prices)?));
            }
            match name {
                $($name => {
                    let task = registry!(@call $kind, $task, problem, $name)?;
                    Ok(visitor.visit(&task))
                })*
                _ => Err(Error::invalid("task", format!("{name:?} is not one of {NAMES:?}"))),
            }
        }
    };
    (@call labels, $task:expr, $problem:ident, $name:literal) => {{
        let prepare: fn(Labels, &Problem) -> _ = $task;
        match $problem.outcome {
            Outcome::Labels { labels, n_classes } => prepare((labels, n_classes), $problem),
            _ => Err(Error::invalid("task", concat!($name, " needs labels"))),
        }
    }};
    (@call costs, $task:expr, $problem:ident, $name:literal) => {{
        let prepare: fn(Costs, &Problem) -> _ = $task;
        match $problem.outcome {
            Outcome::Costs { costs, n_labels } => prepare((costs, n_labels), $problem),
            _ => Err(Error::invalid("task", concat!($name, " needs costs"))),
        }
    }};
    (@call target, $task:expr, $problem:ident, $name:literal) => {{
        let prepare: fn(&[f64], &Problem) -> _ = $task;
        match $problem.outcome {
            Outcome::Target(target) => prepare(target, $problem),
            _ => Err(Error::invalid("task", concat!($name, " needs a target"))),
        }
    }};
}

fn priced(name: &str, problem: &Problem, prices: &FeaturePrices) -> Result<Priced, Error> {
    let Outcome::Costs { costs, n_labels } = problem.outcome else {
        return Err(Error::invalid("feature_cost", format!("{name} takes none")));
    };
    let (weights, prices) = (problem.weights, prices.clone());
    Priced::new(costs, n_labels, weights, prices, problem.leaf_penalty, problem.max_leaves)
}

/// A task by name and what it is made of.
#[derive(Clone, Debug)]
pub struct Named<'a> {
    /// One of [`NAMES`].
    pub name: &'a str,
    /// The sample.
    pub problem: Problem<'a>,
}

struct One<'a>(&'a BinaryMatrix, &'a Settings, &'a Monitor<'a>);

impl Visitor for One<'_> {
    type Output = Result<Solution, Error>;
    fn visit<T: LaneTask + Superadditive>(self, task: &T) -> Self::Output {
        search::solve(task, self.0, self.1, self.2)
    }
}

struct Path<'a>(&'a BinaryMatrix, &'a Settings, &'a Monitor<'a>);

impl Visitor for Path<'_> {
    type Output = Result<Vec<Solution>, Error>;
    fn visit<T: LaneTask + Superadditive>(self, task: &T) -> Self::Output {
        search::solve_path(task, self.0, self.1, self.2)
    }
}

struct NearBy<'a>(&'a BinaryMatrix, &'a Settings, &'a Monitor<'a>, (f64, usize));

impl Visitor for NearBy<'_> {
    type Output = Result<Near, Error>;
    fn visit<T: LaneTask + Superadditive>(self, task: &T) -> Self::Output {
        search::near_optimal(task, self.0, self.1, self.2, self.3)
    }
}

struct Others<'a>(&'a BinaryMatrix, &'a Settings, &'a Monitor<'a>, &'a Tree);

impl Visitor for Others<'_> {
    type Output = Result<(Vec<Alternative>, Option<Stop>), Error>;
    fn visit<T: LaneTask + Superadditive>(self, task: &T) -> Self::Output {
        search::alternatives(task, self.0, self.1, self.2, self.3)
    }
}

struct Expected<'a>(&'a BinaryMatrix, &'a Settings);

impl Visitor for Expected<'_> {
    type Output = (Forecast, usize, usize);
    fn visit<T: LaneTask + Superadditive>(self, task: &T) -> Self::Output {
        let (statistics, channels) = (task.statistics(), task.channels());
        let sample = Sample::with_kinds(self.0, statistics, channels, &task.kinds(), task.events());
        (search::forecast(task, &sample, self.1), sample.n_rows(), sample.n_columns())
    }
}

/// The best tree; see [`search::solve`].
pub fn solve(
    task: &Named,
    features: &BinaryMatrix,
    settings: &Settings,
    monitor: &Monitor,
) -> Result<Solution, Error> {
    visit(task.name, &task.problem, One(features, settings, monitor))?
}

/// The best tree of every number of leaves; see [`search::solve_path`].
pub fn solve_path(
    task: &Named,
    features: &BinaryMatrix,
    settings: &Settings,
    monitor: &Monitor,
) -> Result<Vec<Solution>, Error> {
    visit(task.name, &task.problem, Path(features, settings, monitor))?
}

/// Trees near the optimum; see [`search::near_optimal`].
pub fn near_optimal(
    task: &Named,
    features: &BinaryMatrix,
    settings: &Settings,
    monitor: &Monitor,
    most: (f64, usize),
) -> Result<Near, Error> {
    visit(task.name, &task.problem, NearBy(features, settings, monitor, most))?
}

/// Other questions at the nodes of a tree; see [`search::alternatives`].
pub fn alternatives(
    task: &Named,
    features: &BinaryMatrix,
    settings: &Settings,
    monitor: &Monitor,
    tree: &Tree,
) -> Result<(Vec<Alternative>, Option<Stop>), Error> {
    visit(task.name, &task.problem, Others(features, settings, monitor, tree))?
}

/// What a search would take, and the numbers of distinct rows and useful columns.
pub fn forecast(
    task: &Named,
    features: &BinaryMatrix,
    settings: &Settings,
) -> Result<(Forecast, usize, usize), Error> {
    visit(task.name, &task.problem, Expected(features, settings))
}

registry! {
    "accuracy": labels => |(y, k), p| Accuracy::new(y, k, p.weights, p.leaf_penalty, p.max_leaves);
    "balanced-accuracy": labels =>
        |(y, k), p| balanced_accuracy(y, k, p.weights, p.leaf_penalty, p.max_leaves);
    "gini": labels => |(y, k), p| gini(y, k, p.weights, p.leaf_penalty);
    "entropy": labels => |(y, k), p| entropy(y, k, p.weights, p.leaf_penalty);
    "label-costs": costs =>
        |(c, k), p| LabelCosts::of_costs(c, k, p.weights, p.leaf_penalty, p.max_leaves);
    "regression": target => |y, p| Regression::new(y, p.weights, p.leaf_penalty);
}

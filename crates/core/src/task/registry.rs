//! The sum tasks by name.

use super::accuracy::Accuracy;
use super::balanced_accuracy::balanced_accuracy;
use super::label_costs::LabelCosts;
use super::regression::Regression;
use super::{LaneTask, Superadditive, check_values};
use crate::error::Error;

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
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// Outcome of each row.
    pub outcome: Outcome<'a>,
    /// Weight of each row, 1 where absent.
    pub weights: Option<&'a [f64]>,
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

registry! {
    "accuracy": labels => |(y, k), p| Accuracy::new(y, k, p.weights, p.leaf_penalty, p.max_leaves);
    "balanced-accuracy": labels =>
        |(y, k), p| balanced_accuracy(y, k, p.weights, p.leaf_penalty, p.max_leaves);
    "label-costs": costs =>
        |(c, k), p| LabelCosts::of_costs(c, k, p.weights, p.leaf_penalty, p.max_leaves);
    "regression": target => |y, p| Regression::new(y, p.weights, p.leaf_penalty);
}

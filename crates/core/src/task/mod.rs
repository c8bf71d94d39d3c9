//! Tasks: what a tree is optimised for. One file per objective.
//!
//! A [`Task`] sums integer statistics over the rows of a leaf and turns a sum into costs.
//! Costs combine over the two sides of a split and are compared by a dominance that the
//! combination preserves, which is what makes the tree problem separable (STreeD, van der
//! Linden et al. 2023, theorem 4.6). A [`ScalarTask`] is totally ordered; a [`LaneTask`]
//! can also evaluate many leaves at once and so drives the lattice. What a task permits is
//! a trait ([`Superadditive`]), so that a bound it does not permit cannot be switched on.

pub mod accuracy;
pub mod balanced_accuracy;
pub mod brier;
pub mod fixed;
pub mod label_costs;
pub mod likelihood;
pub mod registry;
pub mod regression;

use crate::error::Error;
use crate::simd::Lanes;

/// Rejects labels outside `0..n_classes`.
fn check_labels(labels: &[usize], n_classes: usize) -> Result<(), Error> {
    match labels.iter().position(|&k| k >= n_classes) {
        Some(bad) => Err(Error::invalid("y", format!("the label of row {bad} is out of range"))),
        None => Ok(()),
    }
}

/// Rejects what is negative or not finite in `width` values per row.
fn check_values(name: &'static str, values: &[f64], width: usize) -> Result<(), Error> {
    match values.iter().position(|v| !v.is_finite() || *v < 0.0) {
        Some(at) => {
            let row = at / width;
            Err(Error::invalid(name, format!("row {row} has a value that is not a number >= 0")))
        }
        None => Ok(()),
    }
}

/// A separable objective over summed per-row statistics.
pub trait Task: Sync {
    /// Cost of a subtree.
    type Cost: Clone + std::fmt::Debug + PartialEq;

    /// Integers per row.
    fn channels(&self) -> usize;

    /// Statistics of all rows, `[row][channel]`.
    fn statistics(&self) -> &[i64];

    /// Appends the leaf costs worth considering for a sum of statistics: one for a total
    /// order, the non-dominated ones (one per label) for a partial order.
    fn leaf_candidates(&self, sums: &[i64], out: &mut Vec<Self::Cost>);

    /// Cost of two subtrees under one split, the price of the split included.
    fn combine(&self, a: &Self::Cost, b: &Self::Cost) -> Self::Cost;

    /// Whether `a` is at least as good as `b`.
    fn dominates(&self, a: &Self::Cost, b: &Self::Cost) -> bool;
}

/// A task with one integer cost per leaf, added over leaves, smaller is better.
///
/// Costs are fixed-point, so that sums are exact, do not depend on the order of addition
/// and make ties exact. `value = cost / scale` is in the units of the objective, up to a
/// constant that is the same for every tree.
pub trait ScalarTask: Task<Cost = i64> {
    /// Cost of a leaf with these sums.
    fn leaf_cost(&self, sums: &[i64]) -> i64;

    /// Whether some partition of rows with these sums might cost less than the leaf.
    fn splits_help(&self, sums: &[i64]) -> bool;

    /// Price of a split: for a penalty per leaf the penalty, plus the tie price.
    fn split_price(&self) -> i64;

    /// Most units that rounding a leaf's cost can add to it.
    fn cost_rounding(&self) -> i64;

    /// Part of the price that only breaks ties: where costs are whole numbers, a fraction
    /// per split too small to matter makes the tree with fewest leaves the cheapest.
    fn tie_price(&self) -> i64 {
        0
    }

    /// Cost units per unit of the (unnormalised) objective.
    fn scale(&self) -> f64;

    /// Objective of a partition of the rows into leaves, computed in f64 from the rows
    /// themselves: `leaf_of[row]` names the leaf of each row, in `0..n_leaves`.
    fn objective(&self, leaf_of: &[usize], n_leaves: usize) -> f64;

    /// What no tree's objective is below, whatever the data.
    fn least_objective(&self) -> f64;

    /// The objective value of a total cost (leaf costs plus split prices less tie prices).
    fn objective_of_cost(&self, cost: i64) -> f64;
}

/// Refining a partition never raises the summed leaf costs, so the cost of any finer
/// partition bounds a tree's cost from below.
pub trait Superadditive: ScalarTask {}

/// A scalar task that evaluates the leaves of many lanes at once, approximately.
pub trait LaneTask: ScalarTask {
    /// What accumulates over the channels of one leaf.
    type State<L: Lanes>: Copy;

    /// Constants of the leaf loss, prepared once per sample and element type.
    type Constants<L: Lanes>: Copy;

    /// Largest total of any channel that the lanes may be given.
    fn max_lane_sum(&self, single: bool) -> i64;

    /// Cost units per unit of lane loss, for sums divided by `2^shift[channel]`.
    fn lane_unit(&self, shift: &[u32]) -> f64;

    /// A loss, in lane units, that an error two hundred times smaller does not blur: single
    /// lanes are taken only then. By default the sum of the first channel of the `rows`.
    fn lane_scale(&self, rows: &[i64], shift: &[u32]) -> f64 {
        let total: i64 = rows.iter().step_by(self.channels()).sum();
        total.max(1) as f64 / (1u64 << shift[0]) as f64
    }

    /// Bound on the error of the total lane loss of any tree with at most `max_leaves`
    /// leaves against its exact cost, in lane units, apart from the rounding of prices; 0
    /// only if sums with prices are exact, too. `roundoff` and `ln_error` describe the
    /// lanes, `rows` are the exact statistics of the distinct rows, `shift` how many low
    /// bits the lanes drop. See docs/maths/lattice.md.
    fn lane_error(
        &self,
        rows: &[i64],
        shift: &[u32],
        max_leaves: usize,
        roundoff: f64,
        ln_error: f64,
    ) -> f64;

    /// # Safety
    /// As for all methods of [`Lanes`].
    unsafe fn lane_constants<L: Lanes>(&self, shift: &[u32]) -> Self::Constants<L>;

    /// # Safety
    /// As for all methods of [`Lanes`].
    unsafe fn lane_start<L: Lanes>(&self) -> Self::State<L>;

    /// Takes in the sums of one channel.
    ///
    /// # Safety
    /// As for all methods of [`Lanes`].
    unsafe fn lane_fold<L: Lanes>(
        &self,
        state: Self::State<L>,
        channel: usize,
        sums: L::Int,
    ) -> Self::State<L>;

    /// Leaf losses, in lane units.
    ///
    /// # Safety
    /// As for all methods of [`Lanes`].
    unsafe fn lane_loss<L: Lanes>(
        &self,
        constants: Self::Constants<L>,
        state: Self::State<L>,
    ) -> L::Real;
}

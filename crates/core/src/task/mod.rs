//! Tasks: what a tree is optimised for. One file per objective.
//!
//! A [`Task`] sums integer [`Statistics`] over the rows of a leaf and turns a sum into costs. Costs
//! combine over the two sides of a split, and are compared by a dominance relation that combining
//! preserves. This makes the tree problem separable (STreeD, van der Linden et al. 2023, theorem
//! 4.6). A [`ScalarTask`] is totally ordered. A [`LaneTask`] can also evaluate many leaves at once,
//! which the lattice needs. Further traits declare what else a task permits; their default methods
//! permit nothing: bounds by finer partitions ([`Superadditive`]), prices that break ties
//! ([`Ties`]), prices of questions ([`Questions`]), or the promise that no such prices matter
//! ([`FreeQuestions`]). If the cost of a leaf is not a function of sums, the task is a [curve
//! task](curve).

pub mod accuracy;
pub mod balanced_accuracy;
pub mod brier;
pub mod capacity;
pub mod causes;
pub mod confusion;
pub mod curve;
pub(crate) mod digits;
pub mod entropy;
pub mod fair_brier;
pub mod fair_survival;
pub mod fixed;
mod front;
pub mod gini;
pub mod groups;
pub mod impurity;
pub mod label_costs;
pub mod likelihood;
pub mod parity;
pub mod priced;
pub mod prices;
pub mod regression;
pub mod rewards;
mod split_price;
pub mod weights;
pub mod wide;

use crate::data::Smallest;
use crate::error::Error;
use crate::search::{Allowed, Measured};
use crate::simd::{FloatLanes, LaneInt, LaneReal};
use crate::tree::Tree;
pub use front::{ANY, FrontTask, Said};
pub use weights::{Placed, Weights};
use wide::Wide;

/// Rejects labels outside `0..n_classes`.
fn check_labels(labels: &[usize], n_classes: usize) -> Result<(), Error> {
    match labels.iter().position(|&k| k >= n_classes) {
        Some(bad) => Err(Error::invalid("y", format!("the label of row {bad} is out of range"))),
        None => Ok(()),
    }
}

/// Rejects negative and non-finite numbers among `width` values per row.
fn check_values(name: &'static str, values: &[f64], width: usize) -> Result<(), Error> {
    match values.iter().position(|v| !v.is_finite() || *v < 0.0) {
        Some(at) => {
            let row = at / width;
            Err(Error::invalid(name, format!("row {row} has a value that is not a number >= 0")))
        }
        None => Ok(()),
    }
}

/// A clause that names the rows with the smallest value above 0 and the largest value.
pub(crate) fn range_of(values: impl Iterator<Item = (usize, f64)> + Clone) -> String {
    let positive = values.filter(|&(_, v)| v != 0.0).map(|(row, v)| (row, v.abs()));
    let by_size = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
    match (positive.clone().min_by(by_size), positive.max_by(by_size)) {
        (Some((low, least)), Some((high, most))) => {
            format!("from {least:e} in row {low} to {most:e} in row {high}")
        }
        _ => "all zero".into(),
    }
}

/// Integers for each row that are summed over the rows of a leaf.
pub trait Statistics: Send + Sync {
    /// Integers per row.
    fn channels(&self) -> usize;

    /// Statistics of all rows, `[row][channel]`.
    fn statistics(&self) -> &[i64];

    /// Whether the event of every row was observed; empty if rows have no events.
    fn events(&self) -> &[bool] {
        &[]
    }
}

/// A separable objective over summed per-row statistics.
pub trait Task: Statistics {
    /// Cost of a subtree.
    type Cost: Clone + std::fmt::Debug + PartialEq;

    /// Appends the leaf costs worth considering for a sum of statistics: one cost if the order is
    /// total, the non-dominated costs (one per label) if it is partial.
    fn leaf_candidates(&self, sums: &[i64], out: &mut Vec<Self::Cost>);

    /// Cost of two subtrees under one split, including the price of the split.
    fn combine(&self, a: &Self::Cost, b: &Self::Cost) -> Self::Cost;

    /// Whether `a` is at least as good as `b`.
    fn dominates(&self, a: &Self::Cost, b: &Self::Cost) -> bool;
}

/// A task with one integer cost per leaf. Costs add up over leaves, and smaller is better.
///
/// Costs are fixed-point, so sums are exact, do not depend on the order of addition, and have exact
/// ties. `value = cost / scale` is in the units of the objective, up to a constant that is the same
/// for every tree.
pub trait ScalarTask: Statistics {
    /// Cost of a leaf with these sums.
    fn leaf_cost(&self, sums: &[i64]) -> i64;

    /// The cost of a leaf as a concave function of its sums, to within
    /// [`cost_rounding`](Self::cost_rounding); −∞ if no leaf has such sums. `None`, for all sums,
    /// if no such function is known.
    fn concave_cost(&self, _sums: &[i64]) -> Option<f64> {
        None
    }

    /// A strictly concave measure of how mixed a leaf with these sums is, in units of cost. Greedy
    /// trees whose splits lower it make progress even where no single split lowers the cost. `None`,
    /// for all sums, if costs are strictly concave themselves.
    fn impurity(&self, _sums: &[i64]) -> Option<f64> {
        None
    }

    /// Minimum sums of the last channels in every leaf. These are counts without a cost.
    fn minima(&self) -> &[i64] {
        &[]
    }

    /// Channels that contribute to the cost of a leaf.
    #[inline(always)]
    fn loss_channels(&self) -> usize {
        self.channels() - self.minima().len()
    }

    /// Whether rows with this size and these sums may form a leaf.
    fn allows_leaf(&self, smallest: Smallest, size: i64, sums: &[i64]) -> bool {
        smallest.allows_leaf(size) && groups::reach(sums, self.minima())
    }

    /// Whether some partition of rows with these sums may cost less than the leaf.
    fn splits_help(&self, sums: &[i64]) -> bool;

    /// Price of a split: the penalty per leaf plus the tie price.
    fn split_price(&self) -> i64;

    /// Largest number of units that rounding adds to the cost of a leaf.
    fn cost_rounding(&self) -> i64;

    /// Objective of a partition of the rows into leaves, computed leaf by leaf from the rows, with
    /// sums of twice the precision.
    fn objective(&self, rows: Placed) -> Measured;

    /// A lower bound on the objective of trees with at least `leaves` leaves, for any data.
    fn least_objective(&self, leaves: usize) -> f64;

    /// The objective for a total cost (leaf costs plus split prices minus tie prices).
    fn objective_of_cost(&self, cost: i64) -> f64;

    /// Objective per unit of cost.
    fn unit_value(&self) -> f64 {
        let units = 1i64 << 40;
        (self.objective_of_cost(units) - self.objective_of_cost(0)) / units as f64
    }

    /// Size of the intermediate values that [`objective_of_cost`](Self::objective_of_cost) rounds
    /// to reach this value; `at_no_cost` is the objective of a cost of 0.
    fn addends(&self, value: f64, at_no_cost: f64) -> f64 {
        value.abs() + (value - at_no_cost).abs()
    }

    /// Largest difference, in either direction, between the objective of an allowed tree and that
    /// of its cost. It covers the rounding of statistics, leaf costs and prices, as proven in
    /// docs/maths/resolution.md. 0 if costs order trees exactly as objectives do.
    fn resolution(&self, allowed: Allowed) -> f64;

    /// The same for trees with an objective below `known`.
    fn resolution_below(&self, allowed: Allowed, _known: f64) -> f64 {
        self.resolution(allowed)
    }

    /// The same task in finer units, which resolve trees that are no worse than this objective, if
    /// there are finer units. Costs above it are only known to be no less than the cost of that
    /// tree.
    fn finer(&self, _known: f64) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// The same task without rounding, given the objective of a known tree.
    fn wide(&self, _known: f64) -> Option<Box<dyn Wide + '_>> {
        None
    }

    /// Describes values whose range is too wide for a certificate: the name of an array, and a
    /// sentence.
    fn widest(&self) -> (&'static str, String);
}

impl<T: ScalarTask> Task for T {
    type Cost = i64;

    fn leaf_candidates(&self, sums: &[i64], out: &mut Vec<i64>) {
        out.push(self.leaf_cost(sums));
    }

    fn combine(&self, a: &i64, b: &i64) -> i64 {
        a + b + self.split_price()
    }

    fn dominates(&self, a: &i64, b: &i64) -> bool {
        a <= b
    }
}

/// Refining a partition never increases the summed costs of its parts, so the costs of any finer
/// partition are a lower bound on the cost of a tree. Moreover, a leaf costs at least as much as
/// some of its rows as a leaf and the others as a part.
pub trait Superadditive: ScalarTask {
    /// Cost of rows with these sums as a part of a leaf. It is at most their cost as a leaf, and
    /// refining a partition never increases the sum of these costs.
    fn part_cost(&self, sums: &[i64]) -> i64 {
        self.leaf_cost(sums)
    }

    /// The same, rounded down: although costs are rounded, the leaves of a tree cost at least the
    /// sum of this over their individual rows.
    fn row_cost(&self, sums: &[i64]) -> i64 {
        self.part_cost(sums) - self.cost_rounding()
    }

    /// Whether different rows can share a leaf at no cost, so that a tree with few leaves may cost
    /// as little as the finest partition of the rows.
    fn pure_leaves(&self) -> bool {
        false
    }

    /// A number per row such that in the best division of rows into groups, of any kind, each group
    /// is a run in the order of these numbers; `None` if there is no such number. It exists if a
    /// leaf costs min_θ Σ (a(θ) s + b(θ) w) over its rows: each of the lines a(θ) r + b(θ) is the
    /// lowest on one interval of r = s/w.
    fn rank(&self, _sums: &[i64]) -> Option<f64> {
        None
    }

    /// The most that rows with these sums can add to the cost of any leaf that they join, if that
    /// is bounded.
    fn worst_cost(&self, _sums: &[i64]) -> Option<i64> {
        None
    }
}

/// The part of a split's price that only orders trees of equal cost.
pub trait Ties: ScalarTask {
    /// The part of the price that breaks ties; it may be negative. If costs are whole numbers,
    /// other prices order trees in the same way with fewer bits, and make the tree with the fewest
    /// leaves the cheapest of equally good trees.
    fn tie_price(&self) -> i64 {
        0
    }

    /// Total tie price of a tree with this number of leaves.
    fn ties(&self, leaves: usize) -> i64 {
        self.tie_price().saturating_mul(i64::try_from(leaves).unwrap_or(i64::MAX) - 1)
    }

    /// Whether trees of equal cost have the same number of leaves.
    fn orders_sizes(&self) -> bool {
        false
    }
}

/// Costs of questions in addition to the price of a split: none unless `PRICED`. Prices may depend
/// on the questions above.
pub trait Questions: ScalarTask {
    /// Whether questions have prices. The last channel is then the amount that they are charged on.
    const PRICED: bool = false;

    /// Price of testing `feature` on rows with these sums below the features `tested`, in addition
    /// to the split price. It may depend on the set of tested features, not on their order.
    fn feature_price(&self, _feature: usize, _tested: &[usize], _sums: &[i64]) -> i64 {
        0
    }

    /// Features that change the price of `feature` if they are tested above it; ascending.
    fn relatives(&self, _feature: usize) -> &[usize] {
        &[]
    }

    /// A number per feature. Features that agree on all rows replace each other only if these
    /// numbers are equal. Empty if all features may replace each other.
    fn kinds(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Effect of `tested` on the price of `feature`.
    fn context(&self, _feature: usize, _tested: &[usize]) -> u64 {
        0
    }

    /// Feature prices of a whole tree in units of the objective, computed from the rows.
    fn tree_price(&self, _tree: &Tree, _rows: Placed) -> f64 {
        0.0
    }

    /// Price of a feature per unit of the last channel, in lane units before any bits are dropped:
    /// the smallest of its prices below each of the `tested` features alone.
    fn lane_rate(&self, _feature: usize, _tested: &[usize]) -> f64 {
        0.0
    }
}

/// Asking a question costs nothing, or the same everywhere, so the best tree below a node does not
/// depend on the questions above.
pub trait FreeQuestions: LaneTask {}

/// Largest difference between lane totals and exact costs, in lane units.
#[derive(Clone, Copy, Debug)]
pub enum LaneError {
    /// An absolute error for any tree, apart from the rounding of prices. A value of 0 covers
    /// prices, too.
    Fixed(f64),
    /// An error relative to the cost of the cell as a leaf, including prices; no error if that cost
    /// is less than `exact_to`.
    Relative {
        /// The relative error.
        share: f64,
        /// Costs below this are exact.
        exact_to: f64,
    },
}

impl LaneError {
    /// Bound for the best trees of a cell whose cost as a leaf is `leaf` lane units.
    pub fn of(self, leaf: f64) -> f64 {
        match self {
            LaneError::Fixed(error) => error,
            LaneError::Relative { exact_to, .. } if leaf < exact_to => 0.0,
            LaneError::Relative { share, .. } => share * leaf,
        }
    }
}

/// How short lanes represent a task in which a leaf costs the least of its non-negative channels.
#[derive(Clone, Copy, Debug)]
pub struct ShortLanes {
    /// Number of bits that sums are shifted by, so that the price of a split is whole, too.
    pub lift: u32,
    /// Price of a split in lane units.
    pub price: i64,
    /// Amount added to the last channel of every leaf, in units of the statistics.
    pub last: i64,
}

/// A scalar task that evaluates the leaves of many lanes at once, approximately.
pub trait LaneTask: Superadditive + Ties + Questions + Sized {
    /// The same task, except that a leaf may also take the cost of its finest partition and one
    /// more split, which are the sums of one more channel. Its best trees are lower bounds for
    /// trees of any depth.
    fn relaxed(&self) -> Option<Self> {
        None
    }

    /// How short lanes represent the task, if they can.
    fn short(&self) -> Option<ShortLanes> {
        None
    }

    /// State that accumulates over the channels of one leaf.
    type State<L: FloatLanes>: Copy;

    /// Constants of the leaf loss, computed once per sample and element type.
    type Constants<L: FloatLanes>: Copy;

    /// Whether all channels drop the same number of bits.
    const ONE_SHIFT: bool = false;

    /// Largest total of any channel that lanes can take.
    fn max_lane_sum(&self, single: bool) -> i64 {
        if single { i32::MAX_SUM } else { i64::MAX_SUM }
    }

    /// Cost units per unit of lane loss, for sums divided by `2^shift[channel]`.
    fn lane_unit(&self, shift: &[u32]) -> f64;

    /// A loss, in lane units, that is resolved if the error is two hundred times smaller. Single
    /// lanes are used only in that case. By default the sum of the first channel over the `rows`.
    fn lane_scale(&self, rows: &[i64], shift: &[u32]) -> f64 {
        let total: i64 = rows.iter().step_by(self.channels()).sum();
        total.max(1) as f64 / (1u64 << shift[0]) as f64
    }

    /// Bound on the difference, in lane units, between the total lane loss of any tree with at most
    /// `max_leaves` leaves and its exact cost. `roundoff` and `ln_error` describe the lanes, `rows`
    /// are the exact statistics of the distinct rows, and `shift` is the number of low bits that
    /// the lanes drop. See docs/maths/lattice.md.
    fn lane_error(
        &self,
        rows: &[i64],
        shift: &[u32],
        max_leaves: usize,
        roundoff: f64,
        ln_error: f64,
    ) -> LaneError;

    /// Lane totals below this belong to trees whose leaves all cost exactly 0, so they are sums of
    /// prices; lanes may have an error of `error`. By default there are no such totals.
    fn lane_pure(&self, _error: f64) -> f64 {
        f64::NEG_INFINITY
    }

    /// Prepares the constants.
    fn lane_constants<L: FloatLanes>(&self, lanes: L, shift: &[u32]) -> Self::Constants<L>;

    /// State before any channel.
    fn lane_start<L: FloatLanes>(&self, lanes: L) -> Self::State<L>;

    /// Adds the sums of one channel.
    fn lane_fold<L: FloatLanes>(
        &self,
        lanes: L,
        constants: &Self::Constants<L>,
        state: Self::State<L>,
        channel: usize,
        sums: L::Int,
    ) -> Self::State<L>;

    /// Leaf losses, in lane units.
    fn lane_loss<L: FloatLanes>(
        &self,
        lanes: L,
        constants: Self::Constants<L>,
        state: Self::State<L>,
    ) -> L::Real;
}

/// Lower bounds on the costs of runs of thresholds of a column.
///
/// If statistics are counted from the smallest value of any row, the sums of the rows up to a
/// threshold only grow along a column. If a leaf costs the least of functions that are linear in
/// the sums, the cost of the two parts is concave, and its minimum is at a corner of the box
/// between the sums at both ends of a run. See docs/maths/thresholds.md.
pub trait Swept: FreeQuestions {
    /// A lower bound, in lane units, on the loss of two non-empty parts of rows with the sums
    /// `whole`, if the sums of one part are between `from` and `to` and neither of these ends loses
    /// less.
    #[inline(always)]
    fn lane_least<L: FloatLanes>(
        &self,
        lanes: L,
        _: &Self::Constants<L>,
        _from: &[L::Int],
        _to: &[L::Int],
        _whole: &[L::Int],
    ) -> L::Real {
        lanes.splat_real(L::R::from_f64(f64::NEG_INFINITY))
    }

    /// How much rounding may raise [`lane_least`](Self::lane_least) above the true value, in lane
    /// units; the parameters are those of [`lane_error`](LaneTask::lane_error).
    fn least_error(&self, _rows: &[i64], _shift: &[u32], _roundoff: f64, _ln_error: f64) -> f64 {
        0.0
    }
}

/// Lane loss of rows with these sums.
#[inline(always)]
pub(crate) fn lane_loss_of<L: FloatLanes, T: LaneTask>(
    task: &T,
    lanes: L,
    constants: &T::Constants<L>,
    sums: &[L::Int],
) -> L::Real {
    let mut state = task.lane_start(lanes);
    for (channel, &sum) in sums.iter().enumerate() {
        state = task.lane_fold(lanes, constants, state, channel, sum);
    }
    task.lane_loss(lanes, *constants, state)
}

//! Tasks: what a tree is optimised for. One file per objective.
//!
//! A [`Task`] sums integer [`Statistics`] over the rows of a leaf and turns a sum into costs.
//! Costs combine over the two sides of a split and are compared by a dominance that the
//! combination preserves, which is what makes the tree problem separable (STreeD, van der
//! Linden et al. 2023, theorem 4.6). A [`ScalarTask`] is totally ordered; a [`LaneTask`]
//! can also evaluate many leaves at once and so drives the lattice. What else a task permits is
//! said in traits of their own, whose methods have answers that permit nothing: bounds by finer
//! partitions ([`Superadditive`]), prices that break ties ([`Ties`]), prices of questions
//! ([`Questions`], or the promise that there are none that matter, [`FreeQuestions`]). Where a leaf's
//! cost is no function of sums, the task is a [curve task](curve).

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

/// The rows that hold the smallest value above 0 and the largest one, as a clause.
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

/// Integers per row, summed over the rows of a leaf.
pub trait Statistics: Send + Sync {
    /// Integers per row.
    fn channels(&self) -> usize;

    /// Statistics of all rows, `[row][channel]`.
    fn statistics(&self) -> &[i64];

    /// Whether the event of every row was observed; empty where rows have no events.
    fn events(&self) -> &[bool] {
        &[]
    }
}

/// A separable objective over summed per-row statistics.
pub trait Task: Statistics {
    /// Cost of a subtree.
    type Cost: Clone + std::fmt::Debug + PartialEq;

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
pub trait ScalarTask: Statistics {
    /// Cost of a leaf with these sums.
    fn leaf_cost(&self, sums: &[i64]) -> i64;

    /// The cost of a leaf as a concave function of its sums, to within
    /// [`cost_rounding`](Self::cost_rounding); −∞ where no leaf has such sums. `None`, whatever
    /// the sums, where that is not known.
    fn concave_cost(&self, _sums: &[i64]) -> Option<f64> {
        None
    }

    /// Least sums of the last channels in every leaf: counts, which cost nothing.
    fn minima(&self) -> &[i64] {
        &[]
    }

    /// Channels that leaves cost something for.
    #[inline(always)]
    fn loss_channels(&self) -> usize {
        self.channels() - self.minima().len()
    }

    /// Whether rows of this size and with these sums may be a leaf.
    fn allows_leaf(&self, smallest: Smallest, size: i64, sums: &[i64]) -> bool {
        smallest.allows_leaf(size) && groups::reach(sums, self.minima())
    }

    /// Whether some partition of rows with these sums might cost less than the leaf.
    fn splits_help(&self, sums: &[i64]) -> bool;

    /// Price of a split: for a penalty per leaf the penalty, plus the tie price.
    fn split_price(&self) -> i64;

    /// Most units that rounding a leaf's cost can add to it.
    fn cost_rounding(&self) -> i64;

    /// Objective of a partition of the rows into leaves, computed from the rows themselves with
    /// sums of twice the digits, leaf by leaf.
    fn objective(&self, rows: Placed) -> Measured;

    /// Lower bound of trees with at least so many leaves, whatever the data.
    fn least_objective(&self, leaves: usize) -> f64;

    /// The objective value of a total cost (leaf costs plus split prices less tie prices).
    fn objective_of_cost(&self, cost: i64) -> f64;

    /// Objective per unit of cost.
    fn unit_value(&self) -> f64 {
        let units = 1i64 << 40;
        (self.objective_of_cost(units) - self.objective_of_cost(0)) / units as f64
    }

    /// Size of what [`objective_of_cost`](Self::objective_of_cost) rounds on the way to this value;
    /// `at_no_cost` is that of a cost of 0.
    fn addends(&self, value: f64, at_no_cost: f64) -> f64 {
        value.abs() + (value - at_no_cost).abs()
    }

    /// How far the objective of an allowed tree may be from that of its cost, either way: what
    /// rounding the statistics, the leaf costs and the prices can do, proven in
    /// docs/maths/resolution.md. 0 where costs order trees exactly as objectives do.
    fn resolution(&self, allowed: Allowed) -> f64;

    /// The same of trees whose objective is below `known`.
    fn resolution_below(&self, allowed: Allowed, _known: f64) -> f64 {
        self.resolution(allowed)
    }

    /// The same task in finer units that resolve trees no worse than one of this objective, if
    /// there are any; costs above are no less than that tree's, and nothing more is known of them.
    fn finer(&self, _known: f64) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// The same task without rounding, where a tree of this objective is known.
    fn wide(&self, _known: f64) -> Option<Box<dyn Wide + '_>> {
        None
    }

    /// Values that are too wide for a certificate: the name of an array, and a sentence.
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

/// Refining a partition never raises the summed costs of its parts, so those of any finer
/// partition bound a tree's cost from below. More than that, a leaf costs at least what some of
/// its rows cost as a leaf and the others as a part.
pub trait Superadditive: ScalarTask {
    /// Cost of rows with these sums as a part of a leaf: no more than that of the leaf, and
    /// refining a partition never raises the sum of these.
    fn part_cost(&self, sums: &[i64]) -> i64 {
        self.leaf_cost(sums)
    }

    /// The same, rounded down: what leaves cost sums to no less than this over the rows in them, each
    /// by itself, although costs are rounded.
    fn row_cost(&self, sums: &[i64]) -> i64 {
        self.part_cost(sums) - self.cost_rounding()
    }

    /// Whether different rows may share a leaf at no cost, so that a tree of few leaves may
    /// cost no more than the finest partition of the rows.
    fn pure_leaves(&self) -> bool {
        false
    }

    /// A number per row such that rows divide best into groups, of any kind, where each group is
    /// a run in the order of these numbers; nothing if there is none. So it is where a leaf
    /// costs min_θ Σ (a(θ) s + b(θ) w) over its rows: of the lines a(θ) r + b(θ) each is the
    /// lowest on an interval of r = s/w.
    fn rank(&self, _sums: &[i64]) -> Option<f64> {
        None
    }

    /// The most that rows with these sums can add to the cost of any leaf they join, if there
    /// is such a bound and no more than joining happens.
    fn worst_cost(&self, _sums: &[i64]) -> Option<i64> {
        None
    }
}

/// Part of a split's price that only orders trees of equal cost.
pub trait Ties: ScalarTask {
    /// Part of the price that only breaks ties, of either sign: where costs are whole numbers,
    /// prices that order trees in the same way need fewer bits, and of trees as good as each
    /// other make the one with fewest leaves the cheapest.
    fn tie_price(&self) -> i64 {
        0
    }

    /// What that adds to the cost of a tree of so many leaves.
    fn ties(&self, leaves: usize) -> i64 {
        self.tie_price().saturating_mul(i64::try_from(leaves).unwrap_or(i64::MAX) - 1)
    }

    /// Whether trees of equal cost have equally many leaves.
    fn orders_sizes(&self) -> bool {
        false
    }
}

/// Costs of questions on top of the price of a split: none unless `PRICED`. Prices may depend
/// on the questions above.
pub trait Questions: ScalarTask {
    /// Whether questions have prices; the last channel is then what they are charged on.
    const PRICED: bool = false;

    /// Price of testing `feature` on rows with these sums below the features `tested`, on top
    /// of the split price. It may depend on which features were tested, not on their order.
    fn feature_price(&self, _feature: usize, _tested: &[usize], _sums: &[i64]) -> i64 {
        0
    }

    /// Features that, tested above, change the price of `feature`; ascending.
    fn relatives(&self, _feature: usize) -> &[usize] {
        &[]
    }

    /// A number per feature; features that agree on all rows are the same to the search only
    /// where these numbers are equal. Empty: all are.
    fn kinds(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Effect of `tested` on the price of `feature`.
    fn context(&self, _feature: usize, _tested: &[usize]) -> u64 {
        0
    }

    /// Feature prices of a whole tree in units of the objective, from the rows themselves.
    fn tree_price(&self, _tree: &Tree, _rows: Placed) -> f64 {
        0.0
    }

    /// Feature price per unit of the last channel, in lane units of undropped bits: the least
    /// of those below each of the `tested` alone.
    fn lane_rate(&self, _feature: usize, _tested: &[usize]) -> f64 {
        0.0
    }
}

/// Asking a question costs nothing, or the same wherever it is asked: what is best below a node
/// does not depend on the questions above.
pub trait FreeQuestions: LaneTask {}

/// How far lane totals may be from exact costs, in lane units.
#[derive(Clone, Copy, Debug)]
pub enum LaneError {
    /// By so much for any tree, apart from the rounding of prices; none if 0, with prices.
    Fixed(f64),
    /// By a share of what the cell costs as a leaf, prices included; not at all where that
    /// is less than `exact_to`.
    Relative {
        /// The share.
        share: f64,
        /// Costs below this are exact.
        exact_to: f64,
    },
}

impl LaneError {
    /// Bound for the best trees of a cell that costs `leaf` lane units as a leaf.
    pub fn of(self, leaf: f64) -> f64 {
        match self {
            LaneError::Fixed(error) => error,
            LaneError::Relative { exact_to, .. } if leaf < exact_to => 0.0,
            LaneError::Relative { share, .. } => share * leaf,
        }
    }
}

/// How short lanes hold a task whose leaves cost the least of their channels, none negative.
#[derive(Clone, Copy, Debug)]
pub struct ShortLanes {
    /// Bits that sums gain, so that the price of a split is whole as well.
    pub lift: u32,
    /// Price of a split in units of the lanes.
    pub price: i64,
    /// Amount added to the last channel of every leaf, in units of the statistics.
    pub last: i64,
}

/// A scalar task that evaluates the leaves of many lanes at once, approximately.
pub trait LaneTask: Superadditive + Ties + Questions + Sized {
    /// The same task where a leaf may also take the cost of its finest partition and one more
    /// split, as sums of one more channel; its best trees bound trees of any depth.
    fn relaxed(&self) -> Option<Self> {
        None
    }

    /// How short lanes hold the task, where these can.
    fn short(&self) -> Option<ShortLanes> {
        None
    }

    /// State that accumulates over the channels of one leaf.
    type State<L: FloatLanes>: Copy;

    /// Constants of the leaf loss, prepared once per sample and element type.
    type Constants<L: FloatLanes>: Copy;

    /// Whether all channels drop equally many bits.
    const ONE_SHIFT: bool = false;

    /// Largest total of any channel that the lanes may be given.
    fn max_lane_sum(&self, single: bool) -> i64 {
        if single { i32::MAX_SUM } else { i64::MAX_SUM }
    }

    /// Cost units per unit of lane loss, for sums divided by `2^shift[channel]`.
    fn lane_unit(&self, shift: &[u32]) -> f64;

    /// A loss, in lane units, that an error two hundred times smaller does not blur: single
    /// lanes are taken only then. By default the sum of the first channel of the `rows`.
    fn lane_scale(&self, rows: &[i64], shift: &[u32]) -> f64 {
        let total: i64 = rows.iter().step_by(self.channels()).sum();
        total.max(1) as f64 / (1u64 << shift[0]) as f64
    }

    /// Bound on the error of the total lane loss of any tree with at most `max_leaves`
    /// leaves against its exact cost, in lane units. `roundoff` and `ln_error` describe the
    /// lanes, `rows` are the exact statistics of the distinct rows, `shift` how many low
    /// bits the lanes drop. See docs/maths/lattice.md.
    fn lane_error(
        &self,
        rows: &[i64],
        shift: &[u32],
        max_leaves: usize,
        roundoff: f64,
        ln_error: f64,
    ) -> LaneError;

    /// Lane totals below this are those of trees whose leaves all cost 0, exactly, so that they are
    /// sums of prices; lanes may be off by `error`. By default there are no such totals.
    fn lane_pure(&self, _error: f64) -> f64 {
        f64::NEG_INFINITY
    }

    /// Prepares the constants.
    fn lane_constants<L: FloatLanes>(&self, lanes: L, shift: &[u32]) -> Self::Constants<L>;

    /// Before any channel.
    fn lane_start<L: FloatLanes>(&self, lanes: L) -> Self::State<L>;

    /// Takes in the sums of one channel.
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
/// Along a column the sums of the rows that are not above a threshold only grow, if they are counted so
/// that no row has less than nothing. Where a leaf costs the least of functions that are linear in
/// the sums, the cost of both parts is concave, and least at a corner of the box between the sums at
/// both ends of a run. See docs/maths/thresholds.md.
pub trait Swept: FreeQuestions {
    /// A loss that no two parts of rows with the sums `whole`, neither of them empty, stay below in
    /// lane units, if the sums of one are between `from` and `to`, and neither of these ends loses
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

    /// By how much rounding may raise [`lane_least`](Self::lane_least) above the truth, in lane units;
    /// `rows` and the others as in [`lane_error`](LaneTask::lane_error).
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

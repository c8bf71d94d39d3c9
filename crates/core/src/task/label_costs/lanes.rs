//! The cheapest label of a leaf in lanes, and the error of lanes.

use super::{LabelCosts, Price, RowCosts};
use crate::simd::{FloatLanes, LaneInt, LaneReal};
use crate::task::{LaneError, LaneTask, ScalarTask, ShortLanes, Statistics, Swept};

impl LaneTask for LabelCosts {
    fn relaxed(&self) -> Option<Self> {
        // The additional label stands for the finest partition of a leaf's rows and one split
        // (rounded down).
        let (n_labels, last_label) = (self.n_labels + 1, self.price.charged >> self.up);
        let roomy = self.max_lane_sum(true) > 2 * last_label && !self.fine;
        // The additional channel would come after the counts.
        let roomy = roomy && self.minima().is_empty();
        roomy.then(|| LabelCosts { n_labels, last_label, ..self.clone() })
    }

    fn short(&self) -> Option<ShortLanes> {
        let Price { charged, grain, bits, .. } = self.price;
        // Costs and prices are multiples of this unit.
        let unit = grain - bits;
        // If lanes shifted sums up, they would shift the counts, too.
        let exact = self.price.is_exact() && self.minima().is_empty();
        exact.then(|| ShortLanes {
            lift: self.up - unit,
            price: charged >> unit,
            last: self.last_label,
        })
    }

    /// The cheapest of the labels so far.
    type State<L: FloatLanes> = L::Int;
    type Constants<L: FloatLanes> = ();

    fn max_lane_sum(&self, single: bool) -> i64 {
        // Leaves room for `last_label`.
        if single { i32::MAX_SUM / 2 } else { i64::MAX_SUM / 2 }
    }

    fn lane_unit(&self, shift: &[u32]) -> f64 {
        self.unit() * (1i64 << shift[0]) as f64
    }

    const ONE_SHIFT: bool = true;

    fn lane_error(
        &self,
        rows: &[i64],
        shift: &[u32],
        max_leaves: usize,
        roundoff: f64,
        _: f64,
    ) -> LaneError {
        let error = self.relative_error(max_leaves, roundoff, true);
        if shift.iter().all(|&s| s == 0) {
            return error;
        }
        // Fine units are used for cuts just below the best cost; single lanes would have to look at
        // all ties.
        if !self.fine || self.last_label > 0 || roundoff > f64::from(f32::EPSILON) / 4.0 {
            return LaneError::Fixed(f64::INFINITY);
        }
        // Half a lane unit for every row, whichever label it is charged for.
        let n_rows = (rows.len() / self.channels()) as f64;
        let total = rows.iter().step_by(self.channels()).sum::<i64>() as f64;
        let total = total / (1u64 << shift[0]) as f64 + n_rows;
        LaneError::Fixed(0.5 * n_rows + f64::from(3 * max_leaves.ilog2() + 6) * roundoff * total)
    }

    #[inline(always)]
    fn lane_constants<L: FloatLanes>(&self, _: L, _: &[u32]) {}

    #[inline(always)]
    fn lane_start<L: FloatLanes>(&self, lanes: L) -> L::Int {
        lanes.splat(L::I::from_i64(L::I::MAX_SUM))
    }

    #[inline(always)]
    fn lane_fold<L: FloatLanes>(
        &self,
        lanes: L,
        _: &Self::Constants<L>,
        least: L::Int,
        label: usize,
        sums: L::Int,
    ) -> L::Int {
        if label + 1 < self.n_labels {
            return L::min(least, sums);
        }
        L::min(least, sums + lanes.splat(L::I::from_i64(self.last_label)))
    }

    #[inline(always)]
    fn lane_loss<L: FloatLanes>(&self, _: L, (): (), least: L::Int) -> L::Real {
        L::to_real(least)
    }
}

impl Swept for LabelCosts {
    /// One part has label k, the other label j. If k = j, the cost is that of the rows as a leaf
    /// with that label. Otherwise the minimum over the box is at the corner that is lowest in
    /// channel k and highest in channel j. Classes are counted by their own weights, which makes
    /// the box smaller.
    #[inline(always)]
    fn lane_least<L: FloatLanes>(
        &self,
        lanes: L,
        _: &(),
        from: &[L::Int],
        to: &[L::Int],
        whole: &[L::Int],
    ) -> L::Real {
        let most = lanes.splat(L::I::from_i64(L::I::MAX_SUM / 2));
        let classes = self.n_labels > 2 && matches!(self.source.rows, RowCosts::Classes { .. });
        // Bounds of the part within the box, and of the other part.
        let (low, high) = if classes { (to, from) } else { (from, to) };
        let (mut same, mut least, mut second) = (most, most, most);
        for (k, &whole) in whole.iter().enumerate() {
            let other = whole - high[k];
            same = L::min(same, whole);
            second = L::min(second, L::max(least, other));
            least = L::min(least, other);
        }
        let mut different = L::to_real(most);
        for (k, &whole) in whole.iter().enumerate() {
            // The cheapest of the other labels.
            let other = whole - high[k];
            let (one, two) = (L::to_real(low[k] + least), L::to_real(low[k] + second));
            different = L::min_real(different, L::if_less(least, other, one, two));
        }
        if classes {
            let mut within = lanes.splat(L::I::default());
            for (&from, &to) in from.iter().zip(to) {
                within = within + (to - from);
            }
            let share = lanes.splat_real(L::R::from_f64(1.0 / (self.n_labels - 1) as f64));
            different = different - L::to_real(within) * share;
        }
        L::min_real(L::to_real(same), different)
    }

    fn least_error(&self, rows: &[i64], shift: &[u32], roundoff: f64, _: f64) -> f64 {
        let total = rows.iter().sum::<i64>() as f64 / (1u64 << shift[0]) as f64;
        // Whole numbers are exact in single lanes, and two labels need no shares.
        let exact = self.n_labels == 2 && total < 0.5 / roundoff;
        if exact { 0.0 } else { 4.0 * roundoff * total }
    }
}

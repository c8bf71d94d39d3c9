//! Label costs as whole numbers: their units, and the changes by rounding.

use super::{LabelCosts, MAX_TOTAL_BITS, RowCosts, Source};
use crate::task::fixed::{Fixed, times_power};
use crate::task::split_price::Price;

/// Bits of the total of fractional costs: enough to distinguish trees with few leaves.
const ROUNDED_BITS: u32 = 51;

/// Bits of a total if lanes drop some of them.
pub(super) const FINE_BITS: u32 = 55;

impl Source {
    /// Costs of every row for every label, and the largest change of any tree by rounding. Totals
    /// have `bits` bits, and no row costs more than `cap` above its least cost.
    fn in_fixed_point(&self, bits: u32, cap: f64) -> (Fixed, f64) {
        let (n_labels, counts) = (self.n_labels, &self.counts);
        let fixed = |values: &[f64], width: usize| {
            let fixed =
                |bits| Fixed::counted(values.iter().copied(), |at| counts.of(at / width), bits);
            let whole = fixed(MAX_TOTAL_BITS);
            if whole.whole { whole } else { fixed(bits) }
        };
        match &self.rows {
            RowCosts::Classes { class, weight } => {
                let fixed = if cap < f64::INFINITY {
                    fixed(&weight.iter().map(|w| w.min(cap)).collect::<Vec<_>>(), 1)
                } else {
                    fixed(weight, 1)
                };
                let mut statistics = vec![0i64; class.len() * n_labels];
                let records = statistics.chunks_exact_mut(n_labels.max(1));
                for (record, (&class, &w)) in records.zip(class.iter().zip(&fixed.values)) {
                    record.fill(w);
                    record[class] = 0;
                }
                let moved = fixed.moved;
                (Fixed { values: statistics, ..fixed }, moved)
            }
            RowCosts::Matrix(costs) => {
                let capped: Vec<f64>;
                let costs = if cap < f64::INFINITY {
                    let of_row = |row: &[f64]| row.iter().copied().fold(f64::INFINITY, f64::min);
                    let rows = costs.chunks_exact(n_labels);
                    capped = rows
                        .flat_map(|row| {
                            let most = of_row(row) + cap;
                            row.iter().map(move |c| c.min(most))
                        })
                        .collect();
                    &capped
                } else {
                    costs
                };
                let fixed = fixed(costs, n_labels);
                // A row is charged for exactly one label.
                let scale = fixed.scale();
                let off = |(&v, &c): (&i64, &f64)| (v as f64 - c * scale).abs();
                let rows = fixed.values.chunks_exact(n_labels).zip(costs.chunks_exact(n_labels));
                let moved = match fixed.moved {
                    0.0 => 0.0,
                    _ => {
                        let most = rows.map(|(v, c)| v.iter().zip(c).map(off).fold(0.0, f64::max));
                        most.enumerate().map(|(row, most)| counts.of(row) * most).sum::<f64>()
                    }
                };
                (fixed, moved * (1.0 + 1e-6))
            }
        }
    }
}

impl LabelCosts {
    /// The usual units: whole costs are kept, other costs are as fine as double lanes can hold
    /// exactly.
    pub(super) fn prepare(source: Source) -> Self {
        let fractions = source.max_leaves.clamp(1, 1 << 7).next_power_of_two().ilog2();
        LabelCosts::in_units(source, ROUNDED_BITS - fractions, f64::INFINITY)
    }

    /// Totals have `bits` bits, and no row costs more than `cap` above its least cost.
    pub(super) fn in_units(source: Source, bits: u32, cap: f64) -> Self {
        let (n_labels, counts) = (source.n_labels, &source.counts);
        let (fixed, moved) = source.in_fixed_point(bits, cap);
        let total = |k| {
            let of_label = fixed.values.iter().skip(k).step_by(n_labels).enumerate();
            of_label.map(|(row, &v)| v * counts.of(row) as i64).sum::<i64>()
        };
        let totals: Vec<i64> = (0..n_labels).map(total).collect();
        let most = totals.iter().copied().max().unwrap_or(0).max(1);
        let single_leaf = totals.iter().copied().min().unwrap_or(0);
        let up = 54u32.saturating_sub((most as f64).log2().ceil() as u32);
        let penalty = times_power(source.penalty, -source.outward);
        let price = penalty * source.total_weight * fixed.scale();
        // If statistics are rounded, prices may be rounded, too.
        let price = if fixed.whole { price } else { price.round() };
        let grains = if fixed.whole && !source.whole_tests { 1..=up } else { up..=up };
        let price = Price::new(price, up, grains, single_leaf, source.max_leaves);
        let moved = moved + source.rewards.as_ref().map_or(0.0, |(_, off)| off * fixed.scale());
        let rounded = if fixed.whole { 0.0 } else { 0.5 };
        let splits = price.affordable.min(source.max_leaves as f64);
        let unit = (1i64 << up) as f64;
        let of_price = if price.orders { rounded * unit } else { rounded * unit + 0.5 };
        let of_prices = if source.penalty == 0.0 { 0.0 } else { splits * of_price };
        LabelCosts {
            n_labels,
            scale: fixed.scale() * unit,
            statistics: source.groups.behind(fixed.values, n_labels),
            up,
            price,
            off: moved * unit + of_prices,
            off_each: fixed.moved_share,
            off_prices: of_prices,
            fine: bits == FINE_BITS && !fixed.whole,
            last_label: 0,
            source,
        }
    }
}

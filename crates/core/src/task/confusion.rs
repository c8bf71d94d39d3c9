//! False positives and false negatives: the front behind F1, the Matthews correlation and any other
//! measure that falls when either of them rises.

use super::fixed::Fixed;
use super::{FrontTask, Said, Statistics, Task};
use crate::error::Error;
use crate::precise::Precise;

/// Bits of the total weight.
const TOTAL_BITS: u32 = 58;

/// Weight of false positives and of false negatives; a leaf may predict either class.
#[derive(Clone, Debug)]
pub struct Confusion {
    statistics: Vec<i64>,
    scale: f64,
    /// Whether the weights were whole numbers.
    whole: bool,
    /// Class and weight of every row.
    rows: Vec<(bool, f64)>,
}

impl Confusion {
    /// `positive[row]`: whether the row belongs to the positive class.
    pub fn new(positive: &[bool], weights: Option<&[f64]>) -> Result<Self, Error> {
        let ones = vec![1.0; positive.len()];
        let weights = weights.unwrap_or(&ones);
        let fixed = Fixed::new(weights, TOTAL_BITS);
        if fixed.values.iter().sum::<i64>() == 0 {
            return Err(Error::invalid("sample_weight", "all weights are zero"));
        }
        let of_row = |(&p, &w): (&bool, &i64)| if p { [0, w] } else { [w, 0] };
        let statistics = positive.iter().zip(&fixed.values).flat_map(of_row).collect();
        let rows = positive.iter().copied().zip(weights.iter().copied()).collect();
        Ok(Confusion { statistics, scale: fixed.scale(), whole: fixed.whole, rows })
    }
}

impl Statistics for Confusion {
    fn channels(&self) -> usize {
        2
    }

    fn statistics(&self) -> &[i64] {
        &self.statistics
    }
}

impl Task for Confusion {
    /// False positives, false negatives.
    type Cost = [i64; 2];

    #[inline(always)]
    fn leaf_candidates(&self, sums: &[i64], out: &mut Vec<[i64; 2]>) {
        out.extend([[0, sums[1]], [sums[0], 0]]);
    }

    #[inline(always)]
    fn combine(&self, a: &[i64; 2], b: &[i64; 2]) -> [i64; 2] {
        [a[0] + b[0], a[1] + b[1]]
    }

    #[inline(always)]
    fn dominates(&self, a: &[i64; 2], b: &[i64; 2]) -> bool {
        a[0] <= b[0] && a[1] <= b[1]
    }
}

impl FrontTask<2> for Confusion {
    fn price(&self) -> i64 {
        0
    }

    fn window(&self) -> [(i64, i64); 2] {
        [super::ANY; 2]
    }

    fn exact(&self, _: usize) -> bool {
        false
    }

    fn reach(&self, sums: &[i64]) -> [(i64, i64); 2] {
        [(0, sums[0]), (0, sums[1])]
    }

    fn linear(&self, weights: &[f64; 2]) -> Option<Vec<Vec<f64>>> {
        Some(vec![vec![0.0, weights[1]], vec![weights[0], 0.0]])
    }

    fn units(&self) -> [f64; 2] {
        [self.scale; 2]
    }

    /// Half a unit for every weight, in each of two totals, and half a unit in the last place of
    /// the weight as it was given.
    fn rounding(&self) -> f64 {
        let total: f64 = self.rows.iter().map(|row| row.1).sum();
        let units = self.rows.len() as f64 / self.scale;
        if self.whole { 0.0 } else { units + f64::EPSILON * total }
    }

    fn exact_costs(&self, said: &Said) -> Option<[f64; 2]> {
        let mut costs = [Precise::default(); 2];
        for (&(positive, weight), label) in self.rows.iter().zip(said.of_rows()) {
            if positive != (label == 1) {
                costs[usize::from(positive)].add(weight);
            }
        }
        Some(costs.map(Precise::value))
    }
}

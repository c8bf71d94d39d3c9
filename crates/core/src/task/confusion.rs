//! False positives and false negatives: the front behind F1, Matthews correlation and every
//! other measure that falls when either rises.

use super::fixed::Fixed;
use super::{FrontTask, Statistics, Task};
use crate::error::Error;

/// Bits of the total weight: costs are added and weighted in f64 for bounds.
const TOTAL_BITS: u32 = 46;

/// Weight of false positives and of false negatives; a leaf may predict either class.
#[derive(Clone, Debug)]
pub struct Confusion {
    statistics: Vec<i64>,
    scale: f64,
    /// Whether weights were whole numbers already.
    whole: bool,
}

impl Confusion {
    /// `positive[row]`: whether the row is of the positive class.
    pub fn new(positive: &[bool], weights: Option<&[f64]>) -> Result<Self, Error> {
        let ones = vec![1.0; positive.len()];
        let fixed = Fixed::new(weights.unwrap_or(&ones), TOTAL_BITS);
        if fixed.values.iter().sum::<i64>() == 0 {
            return Err(Error::invalid("sample_weight", "all weights are zero"));
        }
        let of_row = |(&p, &w): (&bool, &i64)| if p { [0, w] } else { [w, 0] };
        let statistics = positive.iter().zip(&fixed.values).flat_map(of_row).collect();
        Ok(Confusion { statistics, scale: fixed.scale(), whole: fixed.whole })
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

    /// Each weight is off by half a unit, in either of two totals.
    fn rounding(&self) -> f64 {
        let rows = self.statistics.len() / 2;
        if self.whole { 0.0 } else { rows as f64 / self.scale }
    }
}

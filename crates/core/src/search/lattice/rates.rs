//! Prices of the columns that a tree tests.

use crate::simd::{LaneReal, Lanes};

/// Price of testing each column per unit of the last channel: alone, and below another column. Rows
/// have room for a vector behind the last column.
#[derive(Clone, Debug, Default)]
pub struct Rates<R> {
    stride: usize,
    alone: Vec<R>,
    /// `[column][other]`: the price of `column` below `other`.
    below: Vec<R>,
    /// The same by `[other][column]`.
    above: Vec<R>,
}

impl<R: LaneReal> Rates<R> {
    /// Prices of the columns `alone`, and `related` as (column, other, price of `column` below
    /// `other`) for pairs where that is different.
    pub fn new(alone: &[R], related: impl Iterator<Item = (usize, usize, R)>) -> Self {
        let (n, stride) = (alone.len(), alone.len() + 16);
        let mut rates = Rates {
            stride,
            alone: alone.to_vec(),
            below: vec![R::default(); n * stride],
            above: vec![R::default(); n * stride],
        };
        rates.alone.resize(stride, R::default());
        for (c, &alone) in alone.iter().enumerate() {
            rates.below[c * stride..][..n].fill(alone);
            rates.above[c * stride..][..stride].copy_from_slice(&rates.alone);
        }
        for (c, other, rate) in related {
            rates.below[c * stride + other] = rate;
            rates.above[other * stride + c] = rate;
        }
        rates
    }

    /// Price of `column` below all `others`.
    fn of(&self, column: usize, others: impl Iterator<Item = usize>) -> R {
        let below = others.map(|other| self.below[column * self.stride + other]);
        below.fold(self.alone[column], |least, rate| if rate < least { rate } else { least })
    }

    /// Prices of the lanes' columns, alone or below `other`.
    #[inline(always)]
    pub fn of_lanes<L: Lanes<R = R>, const PRICED: bool>(
        &self,
        lanes: L,
        other: Option<usize>,
        h: usize,
    ) -> L::Real {
        match other {
            _ if !PRICED => lanes.splat_real(R::default()),
            None => lanes.load_real(&self.alone[h..]),
            Some(other) => lanes.load_real(&self.above[other * self.stride + h..]),
        }
    }

    /// Prices of column `i` of a prefix below the other columns and each lane's column.
    #[inline(always)]
    pub fn of_prefix<L: Lanes<R = R>, const PRICED: bool>(
        &self,
        lanes: L,
        prefix: &[usize],
        i: usize,
        h: usize,
    ) -> L::Real {
        if !PRICED {
            return lanes.splat_real(R::default());
        }
        let column = prefix[i];
        let others = prefix.iter().enumerate().filter(|&(j, _)| j != i).map(|(_, &c)| c);
        let below = lanes.load_real(&self.below[column * self.stride + h..]);
        L::min_real(below, lanes.splat_real(self.of(column, others)))
    }
}

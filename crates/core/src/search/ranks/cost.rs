//! Costs of trees, paired with costs of trees whose leaves may have any size.

use crate::search::nodes::Cost;
use std::cmp::Ordering;

/// A cost, or a bound, for the allowed trees, and a bound for all trees with the same depth and
/// number of leaves, whose leaves may have any number of rows. Only the latter also holds for nodes
/// with more rows. Costs are compared by the former.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Cost of the allowed trees.
    pub value: i64,
    /// Lower bound for all trees; never above `value`.
    pub free: i64,
}

impl Pair {
    /// The same bound, or cost of a best tree, for both kinds of trees.
    pub fn of(value: i64) -> Pair {
        Pair { value, free: value }
    }

    fn both(self, other: Pair, f: impl Fn(i64, i64) -> i64) -> Pair {
        Pair { value: f(self.value, other.value), free: f(self.free, other.free) }
    }
}

impl From<Pair> for i64 {
    fn from(cost: Pair) -> i64 {
        cost.value
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Pair) -> bool {
        self.value == other.value
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Pair) -> Option<Ordering> {
        self.value.partial_cmp(&other.value)
    }
}

impl Cost for Pair {
    const MOST: Pair = Pair { value: i64::MAX, free: i64::MAX };
    const NONE: Pair = Pair { value: 0, free: 0 };
    const UNIT: Pair = Pair { value: 1, free: 1 };

    #[inline]
    fn plus(self, other: Pair) -> Pair {
        self.both(other, Cost::plus)
    }

    #[inline]
    fn minus(self, other: Pair) -> Pair {
        self.both(other, Cost::minus)
    }

    #[inline]
    fn lesser(self, other: Pair) -> Pair {
        self.both(other, i64::min)
    }

    #[inline]
    fn greater(self, other: Pair) -> Pair {
        self.both(other, i64::max)
    }

    #[inline]
    fn beside(self, others: Pair) -> Pair {
        Pair { free: self.free.min(others.free), ..self }
    }
}

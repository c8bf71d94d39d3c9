//! Positions of the sums of itemsets.
//!
//! Itemsets are ordered by their size, and those of one size by their largest column, then the
//! second largest, and so on: the rank of a < b < c is C(a, 1) + C(b, 2) + C(c, 3).

use super::MOST_DEPTH;

/// Positions of all itemsets with at most `depth` columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Itemsets {
    /// `[size − 1][column]`: binomial coefficients C(column, size).
    ranks: Vec<Vec<usize>>,
    /// Position of the first itemset of each size.
    first: [usize; MOST_DEPTH + 2],
}

impl Itemsets {
    pub fn new(n_columns: usize, depth: usize) -> Itemsets {
        let ranks = (1..=depth).map(|size| (0..n_columns).map(|c| choose(c, size)).collect());
        let mut first = [0; MOST_DEPTH + 2];
        for size in 0..=depth {
            first[size + 1] = first[size] + choose(n_columns, size);
        }
        let end = first[depth + 1];
        first[depth + 1..].fill(end);
        Itemsets { ranks: ranks.collect(), first }
    }

    /// Number of itemsets, without a layout; `usize::MAX` if there are more.
    pub fn count(n_columns: usize, depth: usize) -> usize {
        (0..=depth).map(|size| choose(n_columns, size)).fold(0, usize::saturating_add)
    }

    /// Number of itemsets.
    pub fn len(&self) -> usize {
        self.first[MOST_DEPTH + 1]
    }

    /// Position of an itemset, whose columns are ascending.
    #[inline(always)]
    pub fn position(&self, itemset: &[usize]) -> usize {
        let ranks = itemset.iter().zip(&self.ranks).map(|(&column, ranks)| ranks[column]);
        self.first[itemset.len()] + ranks.sum::<usize>()
    }

    /// Rank of an itemset among those of its size.
    #[inline(always)]
    pub fn rank(&self, itemset: &[usize]) -> usize {
        self.position(itemset) - self.first[itemset.len()]
    }

    /// Number of itemsets of a size.
    pub fn of_size(&self, size: usize) -> usize {
        self.first[size + 1] - self.first[size]
    }
}

/// The binomial coefficient, or `usize::MAX` if it is larger; `k` is small.
fn choose(n: usize, k: usize) -> usize {
    let mut value = 1u128;
    for i in 0..k {
        // For 2³² columns and five positions the product is below 2¹⁶⁰ only after division, which
        // has no remainder at any step.
        value = value.saturating_mul(n.saturating_sub(i) as u128) / (i as u128 + 1);
        if value > usize::MAX as u128 {
            return usize::MAX;
        }
    }
    value as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_itemset_has_a_place_of_its_own() {
        let (n, depth) = (9, 4);
        let itemsets = Itemsets::new(n, depth);
        let mut taken = vec![false; itemsets.len()];
        for members in 0usize..1 << n {
            let itemset: Vec<usize> = (0..n).filter(|c| members >> c & 1 == 1).collect();
            if itemset.len() <= depth {
                assert!(!std::mem::replace(&mut taken[itemsets.position(&itemset)], true));
            }
        }
        assert!(taken.into_iter().all(|taken| taken));
        assert_eq!(itemsets.len(), Itemsets::count(n, depth));
        assert_eq!(itemsets.of_size(3), 84);
    }

    #[test]
    fn counts_beyond_all_memory_are_not_small() {
        assert_eq!(Itemsets::count(75, 3), 1 + 75 + 2775 + 67525);
        assert_eq!(Itemsets::count(3, 4), 8);
        assert_eq!(Itemsets::count(1 << 32, 4), usize::MAX);
    }
}

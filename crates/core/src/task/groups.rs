//! A minimum number of rows of every group in every leaf.
//!
//! The counts of the groups are statistics that follow those of the costs. A leaf with too few rows
//! of a group is not allowed, and is not split further.

use crate::error::Error;

/// Group of every row, and the minimum number of rows of each group in a leaf; no groups if there
/// is no minimum.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    of_row: Vec<usize>,
    minima: Vec<i64>,
}

impl Groups {
    /// At least `fewest` rows of each of the groups `0..n_groups` in every leaf.
    ///
    /// # Errors
    ///
    /// If a group has fewer rows than that.
    pub fn new(of_row: Vec<usize>, n_groups: usize, fewest: i64) -> Result<Self, Error> {
        let mut counts = vec![0i64; n_groups];
        of_row.iter().for_each(|&group| counts[group] += 1);
        if let Some(group) = counts.iter().position(|&count| count < fewest) {
            let reason = format!("is more than the {} rows of group {group}", counts[group]);
            return Err(Error::invalid("fewest", reason));
        }
        Ok(Groups { of_row, minima: vec![fewest; n_groups] })
    }

    /// See [`ScalarTask::minima`](super::ScalarTask::minima).
    pub fn minima(&self) -> &[i64] {
        &self.minima
    }

    /// Records of `width` statistics, each followed by the counts of its row.
    pub(super) fn behind(&self, statistics: Vec<i64>, width: usize) -> Vec<i64> {
        if self.minima.is_empty() {
            return statistics;
        }
        let mut all = Vec::with_capacity(statistics.len() + self.of_row.len() * self.minima.len());
        for (record, &own) in statistics.chunks_exact(width).zip(&self.of_row) {
            all.extend_from_slice(record);
            all.extend((0..self.minima.len()).map(|group| i64::from(group == own)));
        }
        all
    }
}

/// Whether sums that end with counts reach the minimum of each count.
pub(super) fn reach(sums: &[i64], minima: &[i64]) -> bool {
    sums.iter().rev().zip(minima.iter().rev()).all(|(count, least)| count >= least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_count_the_group_of_their_row() {
        let groups = Groups::new(vec![1, 0, 1], 2, 1).unwrap();
        let all = groups.behind(vec![7, 8, 9], 1);
        assert_eq!(all, [7, 0, 1, 8, 1, 0, 9, 0, 1]);
        assert!(reach(&[16, 1, 1], groups.minima()));
        assert!(!reach(&[16, 0, 2], groups.minima()));
        assert_eq!(Groups::default().behind(vec![7, 8, 9], 1), [7, 8, 9]);
    }

    #[test]
    fn more_rows_than_there_are_are_refused_by_group() {
        let refused = Groups::new(vec![1, 0, 1], 2, 2).unwrap_err();
        assert_eq!(refused.to_string(), "fewest is more than the 1 rows of group 0");
    }
}

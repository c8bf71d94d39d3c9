//! Greedy splits for tasks whose costs are functions of sums.

use super::nodes::SumNodes;
use crate::data::{Sample, add};
use crate::search::Stop;
use crate::search::grow::{BestOf, BestSplit, Grower};
use crate::search::lattice::Query;
use crate::search::nodes::{Cost, Found};
use crate::task::LaneTask;

/// Number of rows between two checks of the clock.
const ROWS_PER_CHECK: usize = 1 << 14;

/// Rows to be split.
pub struct GrownRows {
    rows: Vec<u32>,
    /// Statistics and size of all rows.
    all: Vec<i64>,
    /// Statistics and size for each column, over the rows where it is true; empty until they are
    /// needed.
    yes: Vec<i64>,
    tested: Vec<usize>,
}

/// Chooses splits by the sums of their sides; O(rows · columns · channels) per level.
pub struct SumGrower<'a, 'b, T> {
    pub search: &'b SumNodes<'a, T>,
    pub sample: &'b Sample,
    /// Whether splits lower the [impurity](crate::task::ScalarTask::impurity), if the task has one,
    /// in place of the cost.
    pub by_impurity: bool,
}

impl<T: LaneTask> SumGrower<'_, '_, T> {
    /// The root of a greedy tree.
    pub fn root(&self) -> GrownRows {
        let sample = self.sample;
        let mut all = sample.total.clone();
        all.push(sample.total_size());
        let rows = (0..sample.n_rows() as u32).collect();
        GrownRows { rows, all, yes: Vec::new(), tested: sample.tested.clone() }
    }

    /// Cost of rows with these statistics and this size as a leaf; `i64::MAX` if there are too few.
    fn cost(&self, sums: &[i64]) -> i64 {
        let (size, sums) = sums.split_last().expect("a size");
        let (smallest, task) = (self.search.settings.limits.smallest(), self.search.problem.task);
        if task.allows_leaf(smallest, *size, sums) { task.leaf_cost(sums) } else { i64::MAX }
    }

    /// Every column as a split into two leaves, with its impurity if that is asked for; a split that
    /// is not allowed costs `i64::MAX`.
    fn splits(&self, node: &GrownRows) -> Vec<(Option<f64>, BestOf<Self>)> {
        let (sample, task) = (self.sample, self.search.problem.task);
        let (width, channels) = (sample.channels + 1, sample.channels);
        let mut no = vec![0i64; width];
        let split = |(c, yes): (usize, &[i64])| {
            no.iter_mut().zip(&node.all).zip(yes).for_each(|((no, all), yes)| *no = all - yes);
            let column = sample.columns[c];
            let test = if T::PRICED {
                task.feature_price(column.feature, &node.tested, &node.all[..channels])
            } else {
                0
            };
            let price = test.saturating_add(task.split_price());
            let cost = self.cost(yes).plus(self.cost(&no)).plus(price);
            let of = |sums: &[i64]| task.impurity(&sums[..channels]);
            let impurities = self.by_impurity.then(|| of(yes).zip(of(&no))).flatten();
            let impurity = impurities.map(|(yes, no)| yes + no + price as f64);
            (impurity, BestSplit { split: c, column, price, cost })
        };
        node.yes.chunks_exact(width).enumerate().map(split).collect()
    }

    /// For each column, the cost of all rows split into two leaves.
    pub fn costs(&self) -> Result<Vec<i64>, Stop> {
        let mut root = self.root();
        root.yes = self.column_sums(&root.rows)?;
        Ok(self.splits(&root).into_iter().map(|(_, split)| split.cost).collect())
    }

    /// Statistics and size of the rows where each column is true, `[column][channel, …, size]`.
    fn column_sums(&self, rows: &[u32]) -> Result<Vec<i64>, Stop> {
        let sample = self.sample;
        let width = sample.channels + 1;
        let mut sums = vec![0i64; sample.n_columns() * width];
        for part in rows.chunks(ROWS_PER_CHECK) {
            self.search.problem.monitor.check_with_grace()?;
            for &r in part {
                let (record, size) = (sample.statistics(r as usize), sample.size(r as usize));
                for c in sample.true_columns(r as usize) {
                    let sums = &mut sums[c * width..][..width];
                    add(sums, record);
                    sums[width - 1] += size;
                }
            }
        }
        Ok(sums)
    }
}

impl<T: LaneTask> Grower for SumGrower<'_, '_, T> {
    type Cost = i64;
    type Node = GrownRows;
    /// The column.
    type Split = usize;

    fn leaf(&self, node: &GrownRows) -> i64 {
        self.cost(&node.all)
    }

    fn best(
        &mut self,
        node: &mut GrownRows,
        _depth: usize,
        on: Option<usize>,
    ) -> Result<Option<BestOf<Self>>, Stop> {
        let (channels, task) = (self.sample.channels, self.search.problem.task);
        let smallest = self.search.settings.limits.smallest();
        if !smallest.allows_split(node.all[channels]) || !task.splits_help(&node.all[..channels]) {
            return Ok(None);
        }
        if node.yes.is_empty() {
            node.yes = self.column_sums(&node.rows)?;
        }
        let asked = |split: &BestOf<Self>| on.is_none_or(|on| split.column.feature == on);
        let splits = self.splits(node).into_iter();
        let allowed = splits.filter(|(_, split)| asked(split) && split.cost < i64::MAX);
        // The first of equally good splits.
        let best = allowed.min_by(|(a, one), (b, other)| match a.zip(*b) {
            Some((a, b)) => a.total_cmp(&b),
            None => one.cost.cmp(&other.cost),
        });
        Ok(best.map(|(_, split)| split))
    }

    fn sides(
        &mut self,
        node: GrownRows,
        column: usize,
        again: bool,
    ) -> Result<[GrownRows; 2], Stop> {
        let GrownRows { rows, all, yes, mut tested } = node;
        let sample = self.sample;
        let width = sample.channels + 1;
        let of_yes = yes[column * width..][..width].to_vec();
        let of_no: Vec<i64> = all.iter().zip(&of_yes).map(|(all, yes)| all - yes).collect();
        let (rows_yes, rows_no): (Vec<u32>, Vec<u32>) =
            rows.into_iter().partition(|&r| sample.get(r as usize, column));
        let mut sums = [Vec::new(), Vec::new()];
        if again {
            // Sums of the smaller side; the other side is the difference.
            let fewer = if rows_yes.len() <= rows_no.len() { &rows_yes } else { &rows_no };
            let of_fewer = self.column_sums(fewer)?;
            let mut of_more = yes;
            of_more.iter_mut().zip(&of_fewer).for_each(|(all, part)| *all -= part);
            let is_yes = rows_yes.len() <= rows_no.len();
            sums = if is_yes { [of_more, of_fewer] } else { [of_fewer, of_more] };
        }
        if T::PRICED {
            tested.push(sample.columns[column].feature);
        }
        let [sums_no, sums_yes] = sums;
        Ok([
            GrownRows { rows: rows_no, all: of_no, yes: sums_no, tested: tested.clone() },
            GrownRows { rows: rows_yes, all: of_yes, yes: sums_yes, tested },
        ])
    }

    /// From one lattice.
    fn exact(&mut self, node: &GrownRows, levels: usize) -> Result<Found, Stop> {
        let part = self.sample.of_rows(&node.rows, node.tested.clone());
        let levels = levels.min(self.search.lattice_depth(&part, usize::MAX).max(1));
        let query = Query::full(levels, self.leaf(node));
        Ok(self.search.lattice(&part, query)?.found.remove(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::BinaryMatrix;
    use crate::search::grow::{Shape, greedy};
    use crate::search::sums::Problem;
    use crate::search::{Monitor, Settings};
    use crate::task::accuracy::Accuracy;
    use crate::task::{Placed, ScalarTask, Statistics};

    /// The greedy tree with at most this many leaves, and its number of errors.
    fn errors(labels: &[usize], bytes: &[u8], depth: usize, most: usize) -> (usize, i64) {
        errors_near(labels, bytes, depth, most, [0, 0])
    }

    fn errors_near(
        labels: &[usize],
        bytes: &[u8],
        depth: usize,
        most: usize,
        [exact, ahead]: [usize; 2],
    ) -> (usize, i64) {
        errors_by(labels, bytes, Shape { depth, leaves: most, exact, ahead }, false)
    }

    fn errors_by(labels: &[usize], bytes: &[u8], shape: Shape, by_impurity: bool) -> (usize, i64) {
        let task = Accuracy::new(labels, 2, None, 0.0, 8).unwrap();
        let (n, p) = (labels.len(), bytes.len() / labels.len());
        let matrix = BinaryMatrix::from_bytes(n, p, bytes).unwrap();
        let sample = Sample::new(&matrix, task.statistics(), 2);
        let never = || false;
        let monitor = Monitor::new(None, &never);
        let settings = Settings::default();
        let problem = Problem::new(&task, &sample, &settings, &monitor);
        let search = &SumNodes::new(&problem, &settings);
        let mut grower = SumGrower { search, sample: &sample, by_impurity };
        let root = grower.root();
        let found = greedy(&mut grower, root, shape, &monitor);
        let partition = found.tree.partition(&matrix);
        let wrong =
            task.objective(Placed::rows(&partition, found.tree.n_leaves())).objective * n as f64;
        (found.tree.n_leaves(), wrong.round() as i64)
    }

    #[test]
    fn a_split_may_pay_only_together_with_the_next() {
        let bytes: Vec<u8> = (0..4u8).flat_map(|r| [r & 1, r >> 1]).collect();
        assert_eq!(errors(&[0, 1, 1, 0], &bytes, 2, usize::MAX), (4, 0));
        assert_eq!(errors(&[0, 1, 1, 0], &bytes, 1, usize::MAX), (1, 2));
    }

    #[test]
    fn the_last_levels_are_exact_where_asked_for() {
        // The first column determines which of two pairs of other columns has the parity. A greedy
        // split on any of them gains nothing, and the last column misleads it.
        let rows = 0..64usize;
        let bit = |r: usize, i: usize| (r >> i & 1) as u8;
        let label = |r: usize| {
            let pair = if bit(r, 0) == 1 { bit(r, 1) ^ bit(r, 2) } else { bit(r, 3) ^ bit(r, 4) };
            usize::from(pair == 1)
        };
        let labels: Vec<usize> = rows.clone().map(|r| label(r) | usize::from(r == 0)).collect();
        let bytes: Vec<u8> = rows
            .flat_map(|r| (0..5).map(move |i| bit(r, i)).chain([u8::from(label(r) == 1 && r < 9)]))
            .collect();
        let (_, greedy) = errors(&labels, &bytes, 3, usize::MAX);
        let (leaves, near) = errors_near(&labels, &bytes, 3, usize::MAX, [2, 0]);
        assert!(near < greedy, "{near} {greedy}");
        assert!(leaves <= 8);
        let mut before = i64::MAX;
        for most in 1..=leaves {
            let (leaves, wrong) = errors_near(&labels, &bytes, 3, most, [2, 0]);
            assert!(leaves <= most && wrong <= before, "{most}: {leaves} {wrong}");
            before = wrong;
        }
        assert_eq!(before, near);
        // Splits that look ahead all the way are those of the best tree.
        assert_eq!(errors_near(&labels, &bytes, 3, usize::MAX, [0, 3]), (8, 1));
        let (leaves, wrong) = errors_near(&labels, &bytes, 3, 5, [0, 3]);
        assert!(leaves <= 5 && wrong > 1);
    }

    #[test]
    fn impurity_chooses_a_split_where_no_split_lowers_the_errors() {
        // Class 1 is rare, and each of three columns makes it more frequent on one side, where it
        // is still rare. Together they identify it. The first column says nothing.
        let rows = || 0..64u8;
        let bytes: Vec<u8> = rows().flat_map(|r| [r >> 5, r & 1, r >> 1 & 1, r >> 2 & 1]).collect();
        let labels: Vec<usize> = rows().map(|r| usize::from(r & 7 == 7)).collect();
        let shape = Shape { depth: 3, leaves: usize::MAX, exact: 0, ahead: 0 };
        assert_eq!(errors_by(&labels, &bytes, shape, true), (4, 0));
        assert_eq!(errors_by(&labels, &bytes, shape, false), (1, 8));
    }

    #[test]
    fn a_budget_keeps_the_cheapest_subtree() {
        // The label is the first column, except for one row that the two others identify.
        let bytes: Vec<u8> = (0..8u8).flat_map(|r| [r & 1, r >> 1 & 1, r >> 2]).collect();
        let labels: Vec<usize> = (0..8).map(|r| usize::from(r & 1 == 1 && r != 7)).collect();
        assert_eq!(errors(&labels, &bytes, 3, usize::MAX), (4, 0));
        assert_eq!(errors(&labels, &bytes, 3, 3), (2, 1));
        assert_eq!(errors(&labels, &bytes, 3, 2), (2, 1));
        assert_eq!(errors(&labels, &bytes, 3, 1), (1, 3));
    }
}

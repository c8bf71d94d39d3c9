//! Greedy trees that look ahead: the splits are those of the best trees of a few levels.

use super::nodes::{SumNodes, add};
use crate::data::Sample;
use crate::search::Stop;
use crate::search::grow::look_ahead;
use crate::search::lattice::Query;
use crate::search::nodes::Found;
use crate::task::LaneTask;
use crate::tree::Tree;

impl<T: LaneTask> SumNodes<'_, T> {
    /// A greedy tree that chooses each split by the best tree with this number of levels below it.
    /// With a `width` above 1, that many columns with the best such trees are compared by the
    /// greedy trees below them.
    pub fn dive(
        &self,
        sample: &Sample,
        depth: usize,
        levels: usize,
        width: usize,
    ) -> Result<Found, Stop> {
        let reach = depth.min(levels).min(self.lattice_depth(sample, usize::MAX).max(1));
        let mut solved = self.lattice(sample, Query::full(reach, i64::MAX))?;
        let near = solved.found.remove(0);
        if reach == depth || near.tree.n_nodes() == 1 {
            return Ok(near);
        }
        let (values, prices) = (solved.root_values, self.prices(sample));
        let below = |c: usize, width| {
            let side = |value| self.dive(&sample.restrict(c, value), depth - 1, levels, width);
            let (no, yes) = (side(false)?, side(true)?);
            let tree = Tree::on(sample.columns[c], [&no.tree, &yes.tree]);
            Ok(Found { cost: add([no.cost, yes.cost], prices[c]), tree })
        };
        let root = sample.column_of(near.tree.feature[0] as usize).expect("a column");
        let mut order: Vec<usize> = (0..values.len()).filter(|&c| c != root).collect();
        order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
        order.insert(0, root);
        look_ahead(near, &order, width, below, &mut |_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::BinaryMatrix;
    use crate::search::sums::Problem;
    use crate::search::sums::solve::{cost, solve};
    use crate::search::{Monitor, Settings};
    use crate::task::Statistics;
    use crate::task::accuracy::Accuracy;
    use bristlecone_oracle::instances::Random;

    #[test]
    fn a_wide_dive_is_no_worse_and_over_all_columns_it_is_optimal_one_level_deeper() {
        let mut better = 0;
        for seed in 0..60 {
            let random = &mut Random::new(seed);
            let (n, columns) = (20 + random.below(60), 4 + random.below(4));
            let bytes: Vec<u8> = (0..n * columns).map(|_| u8::from(random.chance(0.4))).collect();
            let labels: Vec<usize> = (0..n).map(|_| random.below(3)).collect();
            let features = BinaryMatrix::from_bytes(n, columns, &bytes).unwrap();
            let task = Accuracy::new(&labels, 3, None, 0.01, 16).unwrap();
            let sample = Sample::new(&features, task.statistics(), 3);
            let never = || false;
            let monitor = Monitor::new(None, &never);
            let settings = Settings::default().with_limits(|s| s.max_depth = 4);
            let settings = settings.checked(n, n).unwrap();
            let problem = Problem::new(&task, &sample, &settings, &monitor);
            let nodes = SumNodes::new(&problem, &settings);
            for depth in 2..=4 {
                let dive = |width| nodes.dive(&sample, depth, 2, width).unwrap();
                let dives: Vec<Found> = [1, 2, columns].into_iter().map(dive).collect();
                for found in &dives {
                    assert_eq!(found.cost, cost(&task, &features, &found.tree));
                    assert!(found.tree.depth() <= depth);
                }
                assert!(dives.iter().all(|wider| wider.cost <= dives[0].cost), "seed {seed}");
                better += usize::from(dives[0].cost > dives[2].cost);
                if depth == 3 {
                    let settings = Settings::default().with_limits(|s| s.max_depth = depth);
                    let settings = settings.checked(n, n).unwrap();
                    let best = solve(&task, &features, &settings, &monitor).unwrap();
                    let best = cost(&task, &features, &best.tree);
                    assert_eq!(dives[2].cost, best, "seed {seed}");
                }
            }
        }
        assert!(better > 10, "{better}");
    }
}

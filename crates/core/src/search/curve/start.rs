//! Greedy splits for tasks whose leaves are curves.

use super::EXACT_LEVELS;
use super::node::{Candidate, CurveNode, CurveNodes, OpenCurveNode};
use crate::search::Stop;
use crate::search::branch::Branch;
use crate::search::grow::{BestOf, BestSplit, Grower, look_ahead};
use crate::search::nodes::{Allowed, Found, Nodes, Rooted};
use crate::tree::Tree;

/// Chooses splits by their sides as leaves.
pub struct CurveGrower<'a, 'b>(pub &'b mut Branch<'a, CurveNodes<'a>>);

impl<'a> Grower for CurveGrower<'a, '_> {
    type Cost = f64;
    type Node = CurveNode;
    type Split = (OpenCurveNode, Candidate);

    fn leaf(&self, node: &CurveNode) -> f64 {
        self.0.nodes.leaf(node).value
    }

    fn best(
        &mut self,
        node: &mut CurveNode,
        depth: usize,
        on: Option<usize>,
    ) -> Result<Option<BestOf<Self>>, Stop> {
        let nodes = &mut self.0.nodes;
        if nodes.useful(node, Allowed::of(depth, usize::MAX)).leaves == 1 {
            return Ok(None);
        }
        let (open, candidates) = nodes.all_splits(node);
        let columns = &nodes.tables.columns;
        let asked = |it: &&Candidate| on.is_none_or(|on| columns[it.column].feature == on);
        let Some(&best) = candidates.iter().find(asked) else {
            nodes.close(open);
            return Ok(None);
        };
        let best = nodes.settled(node, best);
        let (column, price, cost) = (nodes.tables.columns[best.column], 0.0, best.leaves);
        Ok(Some(BestSplit { split: (open, best), column, price, cost }))
    }

    fn sides(
        &mut self,
        node: CurveNode,
        (open, best): Self::Split,
        _again: bool,
    ) -> Result<[CurveNode; 2], Stop> {
        let sides = self.0.nodes.sides(&node, &open, &best);
        self.0.nodes.close(open);
        sides
    }

    fn exact(&mut self, node: &CurveNode, levels: usize) -> Result<Found<f64>, Stop> {
        let allowed = self.0.nodes.useful(node, Allowed::of(levels, usize::MAX));
        let known = self.0.solve(node, None, allowed, f64::INFINITY)?;
        let tree = CurveNodes::whole(self.0, node, allowed, &known)?;
        Ok(Found { cost: known.value, tree })
    }

    fn slack(&self) -> f64 {
        self.0.nodes.slack()
    }
}

/// A greedy tree whose splits are those of the best trees of a few levels. With a `width` above 1,
/// that many columns with the best such trees are compared by the greedy trees below them, which
/// `hear` receives.
pub fn dive<'a>(
    branch: &mut Branch<'a, CurveNodes<'a>>,
    node: &CurveNode,
    depth: usize,
    width: usize,
    hear: &mut dyn FnMut(&Found<f64>),
) -> Result<Found<f64>, Stop> {
    let near = CurveGrower(branch).exact(node, depth.min(EXACT_LEVELS))?;
    if depth <= EXACT_LEVELS || near.tree.n_nodes() == 1 {
        return Ok(near);
    }
    let (open, mut splits) = branch.nodes.all_splits(node);
    let (columns, root) = (&branch.nodes.tables.columns, near.tree.feature[0] as usize);
    splits.sort_by_key(|split| columns[split.column].feature != root);
    if width > 1 {
        let allowed = Allowed::of(EXACT_LEVELS, usize::MAX);
        for split in &mut splits[1..] {
            // From here on, the order of the columns is that of their best trees of a few levels.
            split.bound = branch.below(node, &open, split, allowed, f64::INFINITY)?.known.value;
        }
        splits[1..].sort_by(|a, b| a.bound.total_cmp(&b.bound));
    }
    let below = |split: Candidate, width: usize| {
        let sides = branch.nodes.sides(node, &open, &split)?;
        let no = dive(branch, &sides[0], depth - 1, width, &mut |_| ())?;
        let yes = dive(branch, &sides[1], depth - 1, width, &mut |_| ())?;
        branch.nodes.give_back(sides);
        let tree = Tree::on(branch.nodes.column(node, &split), [&no.tree, &yes.tree]);
        Ok(Found { cost: no.cost + yes.cost, tree })
    };
    let found = look_ahead(near, &splits, width, below, hear);
    branch.nodes.close(open);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::BinaryMatrix;
    use crate::search::curve::Prepared;
    use crate::search::grow::{Shape, greedy};
    use crate::search::{Monitor, Settings};
    use crate::survival::Observations;
    use crate::task::brier::Brier;
    use crate::task::curve::LeafCurve;
    use bristlecone_oracle::instances::Random;

    #[test]
    fn a_wide_dive_is_no_worse_and_over_all_columns_it_is_optimal_one_level_deeper() {
        let mut better = 0;
        for seed in 0..40 {
            let random = &mut Random::new(seed);
            let (n, columns) = (30 + random.below(60), 4 + random.below(4));
            let bytes: Vec<u8> = (0..n * columns).map(|_| u8::from(random.chance(0.4))).collect();
            let features = BinaryMatrix::from_bytes(n, columns, &bytes).unwrap();
            let time: Vec<f64> = (0..n).map(|_| 1.0 + random.below(20) as f64).collect();
            let event: Vec<bool> = (0..n).map(|_| random.chance(0.6)).collect();
            let obs = Observations { time: &time, event: &event, ..Observations::default() };
            let task = Brier::new(&obs, 1e-3, LeafCurve::KaplanMeier, None).unwrap();
            let never = || false;
            let monitor = Monitor::new(None, &never);
            for depth in [EXACT_LEVELS + 1, EXACT_LEVELS + 2] {
                let settings = Settings::default().with_limits(|s| s.max_depth = depth);
                let settings = settings.checked(n, n).unwrap();
                let mut prepared = Prepared::new(&task, &features, &settings).unwrap();
                let best = prepared.solve(&settings, &monitor, None).unwrap().objective;
                let mut branch = prepared.branch(&settings, &monitor);
                let found = [1, 2, columns].map(|width| {
                    dive(&mut branch, &prepared.root, depth, width, &mut |_| ()).unwrap()
                });
                for Found { cost, tree } in &found {
                    assert!((cost - prepared.objective(tree)).abs() <= 1e-9 * best, "seed {seed}");
                    assert!(tree.depth() <= depth && *cost >= best * (1.0 - 1e-9));
                    assert!(*cost <= found[0].cost, "seed {seed}");
                }
                better += usize::from(found[2].cost < found[0].cost * (1.0 - 1e-9));
                let mut grown = |leaves| {
                    let shape = Shape { depth, leaves, exact: 0, ahead: depth };
                    let mut grower = CurveGrower(&mut branch);
                    let found = greedy(&mut grower, prepared.root.clone(), shape, &monitor);
                    let cost = prepared.objective(&found.tree);
                    assert!((found.cost - cost).abs() <= 1e-9 * best, "seed {seed}");
                    assert!(found.tree.n_leaves() <= leaves && cost >= best * (1.0 - 1e-9));
                    cost
                };
                assert!(grown(3) >= grown(usize::MAX));
                assert!(grown(usize::MAX) <= best * (1.0 + 1e-9), "seed {seed}");
                if depth == EXACT_LEVELS + 1 {
                    assert!(found[2].cost <= best * (1.0 + 1e-9), "seed {seed}");
                }
            }
        }
        assert!(better > 5, "{better}");
    }
}

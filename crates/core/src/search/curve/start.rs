//! Greedy splits for tasks whose leaves are curves.

use super::node::{Candidate, CurveNode, CurveNodes, OpenCurveNode};
use crate::search::Stop;
use crate::search::branch::Branch;
use crate::search::grow::{BestOf, BestSplit, Grower};
use crate::search::nodes::{Allowed, Found, Nodes, Rooted};

/// Chooses splits by their sides as leaves.
pub struct CurveGrower<'a, 'b>(pub &'b mut Branch<'a, CurveNodes<'a>>);

impl<'a> Grower for CurveGrower<'a, '_> {
    type Cost = f64;
    type Node = CurveNode;
    type Split = (OpenCurveNode, Candidate);

    fn leaf(&self, node: &CurveNode) -> f64 {
        self.0.nodes.leaf(node).value
    }

    fn best(&mut self, node: &mut CurveNode, depth: usize) -> Result<Option<BestOf<Self>>, Stop> {
        let nodes = &mut self.0.nodes;
        if nodes.useful(node, Allowed::of(depth, usize::MAX)).leaves == 1 {
            return Ok(None);
        }
        let (open, candidates) = nodes.all_splits(node);
        let Some(&best) = candidates.first() else {
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

//! Greedy splits for tasks whose costs are computed by the caller.

use super::nodes::{BatchNode, BatchNodes, Prior};
use crate::data::Sample;
use crate::search::Stop;
use crate::search::grow::{BestOf, BestSplit, Grower};
use crate::search::nodes::{Allowed, Found};
use std::borrow::Cow;

/// Chooses splits by their sides as leaves, for all columns of a node at once.
pub struct BatchGrower<'a, 'n>(pub &'n BatchNodes<'a>);

/// Rows to be split, and what is known about them.
pub type GrownBatch<'n> = (Cow<'n, Sample>, Prior);

impl<'n> BatchGrower<'_, 'n> {
    /// The root of a greedy tree.
    pub fn root(&self, node: &'n BatchNode) -> GrownBatch<'n> {
        (Cow::Borrowed(&node.sample), node.prior)
    }
}

impl<'n> Grower for BatchGrower<'_, 'n> {
    type Cost = f64;
    type Node = GrownBatch<'n>;
    /// A column, and what is known about its two sides.
    type Split = (usize, [Prior; 2]);

    fn leaf(&self, (_, prior): &GrownBatch) -> f64 {
        prior.leaf
    }

    fn best(
        &mut self,
        (sample, prior): &mut GrownBatch<'n>,
        depth: usize,
        on: Option<usize>,
    ) -> Result<Option<BestOf<Self>>, Stop> {
        let allowed = Allowed::of(depth, usize::MAX);
        if self.0.useful_of(prior, sample.n_columns(), allowed).leaves == 1 {
            return Ok(None);
        }
        let sides = self.0.sides_of(sample)?;
        let leaves = |[yes, no]: &[Prior; 2]| yes.leaf + no.leaf;
        let asked = |c: usize| on.is_none_or(|on| sample.columns[c].feature == on);
        let columns = sides.as_chunks().0.iter().enumerate().filter(|(c, _)| asked(*c));
        let best = columns.min_by(|(_, a), (_, b)| leaves(a).total_cmp(&leaves(b)));
        let Some((c, sides)) = best.filter(|(_, sides)| leaves(sides) < f64::INFINITY) else {
            return Ok(None);
        };
        let (price, cost) = (prior.price, leaves(sides) + prior.price);
        Ok(Some(BestSplit { split: (c, *sides), column: sample.columns[c], price, cost }))
    }

    fn sides(
        &mut self,
        (sample, _): GrownBatch<'n>,
        (column, [yes, no]): Self::Split,
        _again: bool,
    ) -> Result<[GrownBatch<'n>; 2], Stop> {
        let side = |value, prior| (Cow::Owned(sample.restrict(column, value)), prior);
        Ok([side(false, no), side(true, yes)])
    }

    fn exact(&mut self, (sample, _): &GrownBatch, levels: usize) -> Result<Found<f64>, Stop> {
        let levels = levels.min(self.0.lattice_depth(sample, usize::MAX).max(1));
        Ok(self.0.lattice(sample, levels, &[usize::MAX])?.found.remove(0))
    }

    fn slack(&self) -> f64 {
        self.0.slack
    }
}

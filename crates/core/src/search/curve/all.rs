//! Every tree that reaches the optimum.

use super::node::{Allowed, Candidate, Nodes};
use super::rows::Rows;
use super::{Prepared, Search};
use crate::data::BinaryMatrix;
use crate::error::Error;
use crate::search::all::{Costed, TOLERANCE, solutions};
use crate::search::{Monitor, Settings, Solution, Status, Stop};
use crate::task::brier::Brier;
use crate::tree::Tree;
use rustc_hash::FxHashSet;

/// All trees whose objective is within 1e-9 of the best one's, at most `limit`, by leaves.
///
/// Columns that split a node's rows in the same way count once, by the first of them. When
/// a limit ends the search or the enumeration, only the best tree is returned.
pub fn all_optimal_brier(
    task: &Brier,
    features: &BinaryMatrix,
    settings: &Settings,
    monitor: &Monitor,
    limit: usize,
) -> Result<Vec<Solution>, Error> {
    let prepared = Prepared::new(task, features, settings)?;
    let mut search = Search::new(&prepared, settings, monitor);
    let stop = search.run();
    let (nodes, best) = (search.nodes(), search.best.0);
    let first = search.finish(stop)?;
    if !matches!(first.status, Status::Optimal | Status::ReferenceOptimal) {
        return Ok(vec![first]);
    }
    let cut = best + TOLERANCE * best.max(1.0);
    let leaves = settings.max_leaves.unwrap_or(usize::MAX);
    let allowed = Allowed { depth: settings.max_depth, leaves };
    let mut all = All { nodes, limit, budget: settings.max_leaves.is_some() };
    let mut found = match all.trees(&prepared.root, prepared.leaf, allowed, cut) {
        Ok(found) => found,
        Err(stop) => return Ok(vec![Solution { status: Status::from(stop), ..first }]),
    };
    let objective = |tree: &Tree| task.objective(&tree.partition(features), tree.n_leaves());
    let most = first.objective + TOLERANCE * first.objective.max(1.0);
    found.retain(|(_, tree)| objective(tree) <= most);
    Ok(solutions(found, limit, &first, objective))
}

struct All<'a> {
    nodes: Nodes<'a>,
    limit: usize,
    /// Whether the number of leaves is limited, so that not all pairs of subtrees fit.
    budget: bool,
}

impl All<'_> {
    /// Trees on these rows that cost at most `cut`.
    fn trees(
        &mut self,
        rows: &Rows,
        leaf: f64,
        allowed: Allowed,
        cut: f64,
    ) -> Result<Vec<Costed<f64>>, Stop> {
        let mut found = Vec::new();
        if leaf + self.nodes.price <= cut {
            found.push((leaf + self.nodes.price, Tree::leaf()));
        }
        if allowed.depth == 0 || allowed.leaves < 2 {
            return Ok(found);
        }
        let splits = self.nodes.splits(rows, None, true);
        let mut candidates = self.nodes.candidates(rows, &splits);
        self.nodes.drop_splits(splits);
        candidates.sort_by_key(|c| c.column);
        let mut seen = FxHashSet::default();
        for c in candidates.into_iter().filter(|c| c.bound <= cut) {
            if found.len() >= self.limit && !self.budget {
                break;
            }
            let sides = self.nodes.sides(rows, &c);
            if seen.insert(sides[0].hash.min(sides[1].hash)) {
                self.with_root(&c, &sides, allowed, cut, &mut found)?;
            }
            self.nodes.drop_rows(sides);
        }
        Ok(found)
    }

    fn with_root(
        &mut self,
        split: &Candidate,
        sides: &[Rows; 2],
        allowed: Allowed,
        cut: f64,
        found: &mut Vec<Costed<f64>>,
    ) -> Result<(), Stop> {
        let leaf = split.leaf;
        let below = Allowed { depth: allowed.depth - 1, leaves: allowed.leaves - 1 };
        let ties = 2.0 * self.nodes.tables.slack;
        let bound = self.nodes.bound(leaf[1], sides[1].floor, sides[1].count);
        let yes = self.nodes.solve(&sides[0], None, leaf[0], below, cut - bound + ties)?.value;
        if yes + bound > cut {
            return Ok(());
        }
        let no = self.nodes.solve(&sides[1], None, leaf[1], below, cut - yes + ties)?.value;
        if yes + no > cut {
            return Ok(());
        }
        let yes_trees = self.trees(&sides[0], leaf[0], below, cut - no)?;
        let no_trees = self.trees(&sides[1], leaf[1], below, cut - yes)?;
        let most = if self.budget { usize::MAX } else { self.limit };
        for (a, l) in &yes_trees {
            for (b, r) in &no_trees {
                let fits = a + b <= cut && l.n_leaves() + r.n_leaves() <= allowed.leaves;
                if fits && found.len() < most {
                    found.push((a + b, self.nodes.join(split.column, l, r)));
                }
            }
        }
        Ok(())
    }
}

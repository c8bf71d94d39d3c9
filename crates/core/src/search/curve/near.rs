//! Every tree that is nearly as good as the best one.

use super::node::{Allowed, Candidate, Nodes};
use super::rows::Rows;
use super::{Prepared, Search};
use crate::data::BinaryMatrix;
use crate::error::Error;
use crate::search::near::{Costed, MOST, Near, TOLERANCE, solutions};
use crate::search::{Monitor, Settings, Status, Stop};
use crate::task::brier::Brier;
use crate::tree::Tree;
use rustc_hash::FxHashSet;

/// All trees whose objective is within `slack` (and 1e-9) of the best one's, at most `limit`, by
/// leaves.
///
/// Columns that split a node's rows in the same way count once, by the first of them. When
/// a limit ends the search or the enumeration, only the best tree is returned.
pub fn near_optimal_brier(
    task: &Brier,
    features: &BinaryMatrix,
    settings: &Settings,
    monitor: &Monitor,
    (slack, limit): (f64, usize),
) -> Result<Near, Error> {
    let prepared = Prepared::new(task, features, settings)?;
    let mut search = Search::new(&prepared, settings, monitor);
    let stop = search.run();
    let (nodes, best) = (search.nodes(), search.best.0);
    let first = search.finish(stop)?;
    if !matches!(first.status, Status::Optimal | Status::ReferenceOptimal) {
        let status = first.status;
        return Ok(Near::stopped(first, status));
    }
    let cut = best + slack + TOLERANCE * best.max(1.0);
    let leaves = settings.max_leaves.unwrap_or(usize::MAX);
    let allowed = Allowed { depth: settings.max_depth, leaves };
    let objective = |tree: &Tree| task.objective(&tree.partition(features), tree.n_leaves());
    let worst = first.objective + slack + TOLERANCE * first.objective.max(1.0);
    let most = if settings.max_leaves.is_some() { MOST.max(limit) } else { limit };
    let most = most.saturating_add(1);
    let mut all = Enumeration { nodes, most, complete: true };
    loop {
        let mut found = match all.trees(&prepared.root, prepared.leaf, allowed, cut) {
            Ok(found) => found,
            Err(stop) => return Ok(Near::stopped(first, Status::from(stop))),
        };
        found.retain(|(_, tree)| objective(tree) <= worst);
        if all.complete || found.len() > limit {
            let complete = all.complete && found.len() <= limit;
            return Ok(Near { trees: solutions(found, limit, &first, objective), complete });
        }
        (all.most, all.complete) = (all.most.saturating_mul(4), true);
    }
}

struct Enumeration<'a> {
    nodes: Nodes<'a>,
    /// Trees that are kept of any rows.
    most: usize,
    /// Whether none was left out.
    complete: bool,
}

impl Enumeration<'_> {
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
            if !self.complete {
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
        for (a, l) in &yes_trees {
            for (b, r) in &no_trees {
                let fits = a + b <= cut && l.n_leaves() + r.n_leaves() <= allowed.leaves;
                if !fits {
                    continue;
                }
                if found.len() >= self.most {
                    self.complete = false;
                    return Ok(());
                }
                found.push((a + b, self.nodes.join(split.column, l, r)));
            }
        }
        Ok(())
    }
}

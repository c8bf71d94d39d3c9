//! Lists all trees that are nearly as good as the best one.

use super::branch::Branch;
use super::nodes::{Allowed, Bounded, Cost, Listed, Nodes, Parent, full_leaves};
use super::{Solution, Status, Stop};
use crate::tree::Tree;
use rustc_hash::FxHashSet;

/// The cost of a tree, and the tree.
type Costed<C> = (C, Tree);

/// Trees with their objectives, and whether the list is complete.
type Listing = (Vec<(f64, Tree)>, bool);

/// Trees near the optimum.
#[derive(Clone, Debug)]
pub struct Near {
    /// The trees, sorted by number of leaves and then by features.
    pub trees: Vec<Solution>,
    /// Whether all near trees are listed.
    pub complete: bool,
}

impl Near {
    /// The result of a search that was stopped.
    pub(super) fn stopped(first: Solution, status: Status) -> Self {
        Near { trees: vec![Solution { status, ..first }], complete: false }
    }
}

/// Which trees count as near.
pub(super) struct Nearness<C> {
    /// Upper bound on the cost of near trees; other trees may cost less than this, too.
    pub cut: C,
    /// Largest objective of a near tree.
    pub worst: f64,
    /// Most trees to list.
    pub limit: usize,
    /// Number of rows: no tree has more leaves than that.
    pub n_rows: usize,
}

/// All near trees in the order of their leaves, or those with the fewest leaves if there are too
/// many; `first` is the best.
///
/// Columns that split a node's rows in the same way count once, as the first of them. If a limit
/// ends the enumeration, only the best tree is returned.
pub(super) fn near_optimal<N: Listed>(
    branch: &mut Branch<N>,
    root: &N::Node,
    allowed: Allowed,
    first: Solution,
    nearness: &Nearness<N::Cost>,
    objective: impl Fn(&Tree) -> f64,
) -> Near {
    let mut all = Enumeration { branch, most: nearness.limit.saturating_add(1), complete: true };
    match all.near(root, allowed, nearness, &objective) {
        Ok((found, complete)) => Near { trees: solutions(found, nearness.limit, &first), complete },
        Err(stop) => Near::stopped(first, Status::from(stop)),
    }
}

/// The trees as solutions, sorted by leaves and then by the features in preorder.
fn solutions(mut found: Vec<(f64, Tree)>, limit: usize, first: &Solution) -> Vec<Solution> {
    found.sort_by(|(_, a), (_, b)| {
        a.n_leaves().cmp(&b.n_leaves()).then_with(|| a.feature.cmp(&b.feature))
    });
    found.truncate(limit);
    let solution = |(objective, tree): (f64, Tree)| {
        let lower_bound = first.lower_bound.min(objective);
        Solution { tree, objective, lower_bound, ..first.clone() }
    };
    found.into_iter().map(solution).collect()
}

struct Enumeration<'a, 'b, N: Listed> {
    branch: &'a mut Branch<'b, N>,
    /// Most trees that are kept for any set of rows.
    most: usize,
    /// Whether no tree was left out.
    complete: bool,
}

/// Leaves of the trees that are listed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// As many as the depth allows, or fewer.
    Any,
    /// Exactly as many as are allowed.
    All,
}

impl<N: Listed> Enumeration<'_, '_, N> {
    /// All near trees and true; if there are more than asked for, those with the fewest leaves and
    /// false.
    fn near(
        &mut self,
        root: &N::Node,
        allowed: Allowed,
        nearness: &Nearness<N::Cost>,
        objective: &impl Fn(&Tree) -> f64,
    ) -> Result<Listing, Stop> {
        let near = |trees: Vec<Costed<N::Cost>>| {
            let measured = trees.into_iter().map(|(_, tree)| (objective(&tree), tree));
            measured.filter(|(objective, _)| *objective <= nearness.worst).collect::<Vec<_>>()
        };
        let splits = allowed.depth > 0 && allowed.leaves > 1;
        // A bound for many leaves holds for fewer leaves, too.
        let known = match splits {
            true => Some(self.branch.nodes.questions(root, Some(allowed))?),
            false => None,
        };
        let known = known.as_ref();
        if allowed.is_full() {
            let found = near(self.trees(root, known, allowed, Leaves::Any, nearness.cut)?);
            if self.complete && found.len() <= nearness.limit {
                return Ok((found, true));
            }
        }
        let mut found = Vec::new();
        for leaves in 1..=allowed.leaves.min(nearness.n_rows) {
            let allowed = Allowed::of(allowed.depth, leaves);
            let wanted = nearness.limit.saturating_add(1) - found.len();
            self.most = wanted;
            loop {
                self.complete = true;
                let mut trees =
                    near(self.trees(root, known, allowed, Leaves::All, nearness.cut)?);
                // Too many of the kept trees may have been ties that are not near.
                if self.complete || trees.len() >= wanted {
                    found.append(&mut trees);
                    break;
                }
                self.most = self.most.saturating_mul(4);
            }
            if found.len() > nearness.limit {
                return Ok((found, false));
            }
        }
        Ok((found, true))
    }

    /// Trees on these rows that cost at most `cut`; `splits` are the questions, if known.
    fn trees(
        &mut self,
        node: &N::Node,
        known: Option<&Questions<N>>,
        allowed: Allowed,
        leaves: Leaves,
        cut: N::Cost,
    ) -> Result<Vec<Costed<N::Cost>>, Stop> {
        let mut found = Vec::new();
        let leaf = self.branch.nodes.leaf(node).value;
        if leaf <= cut && leaf < N::Cost::MOST && (leaves == Leaves::Any || allowed.leaves == 1) {
            found.push((leaf, Tree::leaf()));
        }
        if allowed.depth == 0 || allowed.leaves < 2 {
            return Ok(found);
        }
        let own = match known {
            Some(_) => None,
            None => Some(self.branch.nodes.questions(node, Some(allowed))?),
        };
        let (open, splits) = own.as_ref().or(known).expect("one of both");
        let mut seen = FxHashSet::default();
        for split in splits {
            if !self.complete {
                break;
            }
            if split.bound() > cut {
                continue;
            }
            let sides = self.branch.nodes.sides(node, open, split)?;
            let rows = [0, 1].map(|side| self.branch.nodes.key(&sides[side]));
            if seen.insert(rows[0].min(rows[1])) {
                let at = Split { node, open, split, sides: &sides };
                for share in shares(allowed, leaves) {
                    self.with_root(&at, share, leaves, cut, &mut found)?;
                }
            }
            self.branch.nodes.give_back(sides);
        }
        if let Some((open, _)) = own {
            self.branch.nodes.close(open);
        }
        Ok(found)
    }

    /// Trees with a split at the root and these shares of the leaves for its sides.
    fn with_root(
        &mut self,
        at: &Split<N>,
        share: [Allowed; 2],
        leaves: Leaves,
        cut: N::Cost,
        found: &mut Vec<Costed<N::Cost>>,
    ) -> Result<(), Stop> {
        let &Split { node, open, split, sides: [no, yes] } = at;
        let branch = &mut *self.branch;
        let cut = cut.minus(branch.nodes.price(split));
        let slack = branch.nodes.slack();
        // Trees that cost exactly this much are included.
        let ties = slack.plus(slack).plus(N::Cost::UNIT);
        let bound = branch.nodes.bound(no);
        let below = |sibling| Some(Parent { open, sibling });
        let a = branch.solve(yes, below(no), share[1], cut.minus(bound).plus(ties))?.value;
        if a.plus(bound) > cut {
            return Ok(());
        }
        let b = branch.solve(no, below(yes), share[0], cut.minus(a).plus(ties))?.value;
        if a.plus(b) > cut {
            return Ok(());
        }
        let yes_trees = self.trees(yes, None, share[1], leaves, cut.minus(b))?;
        let no_trees = self.trees(no, None, share[0], leaves, cut.minus(a))?;
        let (price, nodes) = (self.branch.nodes.price(split), &self.branch.nodes);
        for (a, yes) in &yes_trees {
            for (b, no) in &no_trees {
                let cost = a.plus(*b);
                if cost > cut {
                    continue;
                }
                if found.len() >= self.most {
                    self.complete = false;
                    return Ok(());
                }
                found.push((cost.plus(price), Tree::on(nodes.column(node, split), [no, yes])));
            }
        }
        Ok(())
    }
}

/// The questions of a node, with what is needed to make their sides.
type Questions<N> = (<N as Nodes>::Open, Vec<<N as Nodes>::Split>);

/// A question at a node, and its two sides.
struct Split<'a, N: Listed> {
    node: &'a N::Node,
    open: &'a N::Open,
    split: &'a N::Split,
    sides: &'a [N::Node; 2],
}

/// Ways to share the leaves between the false and the true side of a split.
fn shares(allowed: Allowed, leaves: Leaves) -> Vec<[Allowed; 2]> {
    let Allowed { depth, leaves: all } = allowed;
    match leaves {
        Leaves::Any => vec![[allowed.below(); 2]],
        Leaves::All => {
            let most = full_leaves(depth - 1).min(all - 1);
            let share = |yes| [all - yes, yes].map(|leaves| Allowed::of(depth - 1, leaves));
            (all - most..=most).map(share).collect()
        }
    }
}

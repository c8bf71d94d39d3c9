//! Every tree that is nearly as good as the best one.

use super::branch::Branch;
use super::nodes::{Allowed, Bounded, Cost, Listed};
use super::{Settings, Solution, Status, Stop};
use crate::tree::Tree;
use rustc_hash::FxHashSet;

/// The cost of a tree, and the tree.
type Costed<C> = (C, Tree);

/// Trees of a subtree that are kept where leaves are limited, so that not all pairs fit.
const MOST: usize = 1 << 20;

/// Trees near the optimum.
#[derive(Clone, Debug)]
pub struct Near {
    /// The best first, or few leaves first where all are near.
    pub trees: Vec<Solution>,
    /// Whether there are no others.
    pub complete: bool,
}

impl Near {
    /// A search that did not end by itself.
    pub(super) fn stopped(first: Solution, status: Status) -> Self {
        Near { trees: vec![Solution { status, ..first }], complete: false }
    }
}

/// Which trees are near.
pub(super) struct Nearness<C> {
    /// No near tree costs more, though some that are not near may cost less.
    pub cut: C,
    /// Largest objective of a near tree.
    pub worst: f64,
    /// Most trees to list.
    pub limit: usize,
}

/// All near trees by leaves, `first` being the best tree.
///
/// Columns that split a node's rows in the same way count once, by the first of them. When
/// a limit ends the enumeration, only the best tree is returned.
pub(super) fn near_optimal<N: Listed>(
    branch: &mut Branch<N>,
    root: &N::Node,
    settings: &Settings,
    first: Solution,
    nearness: &Nearness<N::Cost>,
    objective: impl Fn(&Tree) -> f64,
) -> Near {
    let &Nearness { cut, worst, limit } = nearness;
    let most = if settings.limits.max_leaves.is_some() { MOST.max(limit) } else { limit };
    let most = most.saturating_add(1);
    let mut all = Enumeration { branch, most, complete: true };
    loop {
        let mut found = match all.trees(root, settings.limits.allowed(), cut) {
            Ok(found) => found,
            Err(stop) => return Near::stopped(first, Status::from(stop)),
        };
        found.retain(|(_, tree)| objective(tree) <= worst);
        // Among those that were kept too many may have been ties of no interest.
        if all.complete || found.len() > limit {
            let complete = all.complete && found.len() <= limit;
            return Near { trees: solutions(found, limit, &first, objective), complete };
        }
        (all.most, all.complete) = (all.most.saturating_mul(4), true);
    }
}

/// The trees as solutions, few leaves first, then by the features in preorder.
fn solutions<C>(
    mut found: Vec<Costed<C>>,
    limit: usize,
    first: &Solution,
    objective: impl Fn(&Tree) -> f64,
) -> Vec<Solution> {
    found.sort_by(|(_, a), (_, b)| {
        a.n_leaves().cmp(&b.n_leaves()).then_with(|| a.feature.cmp(&b.feature))
    });
    found.truncate(limit);
    let solution = |(_, tree): Costed<C>| {
        let objective = objective(&tree);
        let lower_bound = first.lower_bound.min(objective);
        Solution { tree, objective, lower_bound, ..first.clone() }
    };
    found.into_iter().map(solution).collect()
}

struct Enumeration<'a, 'b, N: Listed> {
    branch: &'a mut Branch<'b, N>,
    /// Trees that are kept of any rows.
    most: usize,
    /// Whether none was left out.
    complete: bool,
}

impl<N: Listed> Enumeration<'_, '_, N> {
    /// Trees on these rows that cost at most `cut`.
    fn trees(
        &mut self,
        node: &N::Node,
        allowed: Allowed,
        cut: N::Cost,
    ) -> Result<Vec<Costed<N::Cost>>, Stop> {
        let mut found = Vec::new();
        let leaf = self.branch.nodes.leaf(node).value;
        if leaf <= cut && leaf < N::Cost::MOST {
            found.push((leaf, Tree::leaf()));
        }
        if allowed.depth == 0 || allowed.leaves < 2 {
            return Ok(found);
        }
        let (open, splits) = self.branch.nodes.questions(node);
        let mut seen = FxHashSet::default();
        for split in splits {
            if !self.complete {
                break;
            }
            if split.bound() > cut {
                continue;
            }
            let sides = self.branch.nodes.sides(node, &open, &split)?;
            let rows = [0, 1].map(|side| self.branch.nodes.key(&sides[side]));
            if seen.insert(rows[0].min(rows[1])) {
                self.with_root(node, &split, &sides, allowed, cut, &mut found)?;
            }
            self.branch.nodes.give_back(sides);
        }
        self.branch.nodes.close(open);
        Ok(found)
    }

    fn with_root(
        &mut self,
        node: &N::Node,
        split: &N::Split,
        sides: &[N::Node; 2],
        allowed: Allowed,
        cut: N::Cost,
        found: &mut Vec<Costed<N::Cost>>,
    ) -> Result<(), Stop> {
        let [no, yes] = sides;
        let below = allowed.below();
        let branch = &mut *self.branch;
        let cut = cut.minus(branch.nodes.price(split));
        let slack = branch.nodes.slack();
        // Trees of exactly this cost are found, too.
        let ties = slack.plus(slack).plus(N::Cost::UNIT);
        let bound = branch.nodes.bound(no);
        let a = branch.solve(yes, None, below, cut.minus(bound).plus(ties))?.value;
        if a.plus(bound) > cut {
            return Ok(());
        }
        let b = branch.solve(no, None, below, cut.minus(a).plus(ties))?.value;
        if a.plus(b) > cut {
            return Ok(());
        }
        let yes_trees = self.trees(yes, below, cut.minus(b))?;
        let no_trees = self.trees(no, below, cut.minus(a))?;
        let (price, nodes) = (self.branch.nodes.price(split), &self.branch.nodes);
        for (a, yes) in &yes_trees {
            for (b, no) in &no_trees {
                let cost = a.plus(*b);
                if cost > cut || yes.n_leaves() + no.n_leaves() > allowed.leaves {
                    continue;
                }
                if found.len() >= self.most {
                    self.complete = false;
                    return Ok(());
                }
                found.push((cost.plus(price), nodes.joined(node, split, [no, yes])));
            }
        }
        Ok(())
    }
}

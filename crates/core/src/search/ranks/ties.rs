//! Of the trees of least cost the first: that with the first question at its root, then on its true
//! and false side.
//!
//! A search leaves out trees that cost no less than one that is known, in an order that depends on
//! the kernel and on threads. This one looks at all that cost the same, of the nodes of one tree.
//! Trees of equal cost have equally many leaves.

use super::cost::Pair;
use super::nodes::{LEAF, Node, Open, RankNodes, Split, split_on};
use crate::search::Stop;
use crate::search::branch::Branch;
use crate::search::nodes::{Allowed, Cost, Nodes};
use crate::task::Swept;
use crate::tree::Tree;

/// The first tree of the node that costs `value`, which is the least; `None` where there is none.
pub fn first<T: Swept>(
    branch: &mut Branch<RankNodes<T>>,
    node: &Node,
    allowed: Allowed,
    value: i64,
) -> Result<Option<Tree>, Stop> {
    let allowed = branch.nodes.useful(node, allowed);
    if branch.nodes.leaf_cost(node) == value {
        return Ok(Some(Tree::leaf()));
    }
    if allowed.leaves == 1 {
        return Ok(None);
    }
    let question = if allowed.depth <= 2 {
        let problem = branch.nodes.problem;
        branch.nodes.solver.first(problem, node, allowed, value)?.filter(|&q| q != LEAF)
    } else {
        first_question(branch, node, allowed, value)?
    };
    let Some(question) = question else { return Ok(None) };
    let split = split_on(&branch.nodes, question as usize);
    let (open, _) = branch.nodes.intervals(node);
    let sides = branch.nodes.sides(node, &open, &split)?;
    let price = branch.nodes.problem.price;
    for [no, yes] in branch.ways(&sides, allowed).collect::<Vec<_>>() {
        let of_yes = branch.solve(&sides[1], None, yes, Pair::MOST)?;
        let of_no = branch.solve(&sides[0], None, no, Pair::MOST)?;
        let both = of_yes.value.plus(of_no.value).plus(Pair::of(price));
        if both.value != value {
            continue;
        }
        let yes = first(branch, &sides[1], yes, of_yes.value.value)?;
        let no = first(branch, &sides[0], no, of_no.value.value)?;
        if let (Some(yes), Some(no)) = (yes, no) {
            branch.nodes.give_back(sides);
            return Ok(Some(Tree::split(question as usize, &yes, &no)));
        }
    }
    Ok(None)
}

/// The first question of the trees of more levels.
fn first_question<T: Swept>(
    branch: &mut Branch<RankNodes<T>>,
    node: &Node,
    allowed: Allowed,
    value: i64,
) -> Result<Option<i32>, Stop> {
    let (open, splits) = branch.nodes.intervals(node);
    for split in splits {
        let mut walk = Walk { branch, node, open: &open, allowed, value };
        if let Some(question) = walk.within(split)? {
            return Ok(Some(question));
        }
    }
    Ok(None)
}

struct Walk<'b, 'a, 'p, T: Swept> {
    branch: &'b mut Branch<'a, RankNodes<'p, T>>,
    node: &'b Node,
    open: &'b Open,
    allowed: Allowed,
    value: i64,
}

impl<T: Swept> Walk<'_, '_, '_, T> {
    /// The first question of an interval.
    fn within(&mut self, split: Split) -> Result<Option<i32>, Stop> {
        if split.bound > self.value {
            return Ok(None);
        }
        let cut = Pair::of(self.value.plus(1));
        let below = self.branch.below(self.node, self.open, &split, self.allowed, cut)?;
        let problem = self.branch.nodes.problem;
        let proven = below.sides.map(|side| side.free.minus(problem.slack));
        let [before, behind] = split.rest(&self.open.cuts, proven, problem.price);
        if let Some(question) = before.map(|rest| self.within(rest)).transpose()?.flatten() {
            return Ok(Some(question));
        }
        if below.known.is_exact() && below.known.value.value == self.value {
            return Ok(Some(self.branch.nodes.question(split.column, split.rank) as i32));
        }
        Ok(behind.map(|rest| self.within(rest)).transpose()?.flatten())
    }
}

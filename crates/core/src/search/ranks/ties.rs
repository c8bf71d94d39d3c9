//! Of the trees of least cost the first: that with the first question at its root, then on its true
//! and false side.
//!
//! A search leaves out trees that cost no less than one that is known, in an order that depends on
//! the kernel and on threads. This one looks at all that cost the same, of the nodes of one tree.
//! Trees of equal cost have equally many leaves.

use super::cost::Pair;
use super::nodes::{LEAF, Node, Queue, RankNodes, split_on};
use crate::search::Stop;
use crate::search::branch::Branch;
use crate::search::nodes::{Allowed, Cost, Nodes, Pending};
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
        branch.solve(node, None, allowed, Pair::MOST)?.tree.filter(|&question| question != LEAF)
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

/// The first question of the trees of more levels. Intervals come in the order of the search, whose
/// subtrees are remembered.
fn first_question<T: Swept>(
    branch: &mut Branch<RankNodes<T>>,
    node: &Node,
    allowed: Allowed,
    value: i64,
) -> Result<Option<i32>, Stop> {
    let (open, splits) = branch.nodes.intervals(node);
    let mut queue = Queue::new(open.cuts.len(), splits);
    let mut first = None;
    while let Some((_, split)) = queue.next(&open) {
        if split.bound > value {
            // So are all others.
            break;
        }
        branch.monitor.check()?;
        let least = branch.nodes.question(split.column, open.cuts.rank[split.cuts[0]]);
        if first.is_some_and(|first| first <= least) {
            continue;
        }
        let below = branch.below(node, &open, &split, allowed, Pair::of(value.plus(1)))?;
        branch.nodes.learn(node, &open, &mut queue, &split, &below, allowed);
        if below.known.is_exact() && below.known.value.value == value {
            let question = branch.nodes.question(split.column, split.rank);
            first = Some(first.map_or(question, |first: usize| first.min(question)));
        }
    }
    Ok(first.map(|question| question as i32))
}

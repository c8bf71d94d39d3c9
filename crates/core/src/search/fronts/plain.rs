//! Dynamic programming over any separable task, total or partial order.
//!
//! The plain recursion of STreeD (eq. 8) with a memo over row subsets: a subproblem's
//! answer is the front of non-dominated costs, each with a tree. It asks nothing of a task
//! but [`Task`], and is what every faster search is compared with; O(2^d·F^d) subproblems.

use crate::data::{Sample, Smallest};
use crate::task::Task;
use crate::tree::Tree;
use rustc_hash::FxHashMap;

/// A non-dominated cost and a tree that attains it.
#[derive(Clone, Debug)]
pub struct Point<C> {
    /// Cost of the tree.
    pub cost: C,
    /// The tree, over the caller's features.
    pub tree: Tree,
}

/// Subproblem: row subset, remaining depth, remaining leaves.
type Key = (Vec<u32>, usize, usize);

/// All non-dominated costs of trees with at most `depth` levels of splits and `max_leaves`
/// leaves no smaller than `smallest`; empty when no tree is allowed.
pub fn solve<T: Task>(
    task: &T,
    sample: &Sample,
    depth: usize,
    max_leaves: usize,
    smallest: Smallest,
) -> Vec<Point<T::Cost>> {
    let rows: Vec<u32> = (0..sample.n_rows() as u32).collect();
    let mut search = Search { task, sample, smallest, memo: FxHashMap::default() };
    search.front(rows, depth, max_leaves)
}

struct Search<'a, T: Task> {
    task: &'a T,
    sample: &'a Sample,
    smallest: Smallest,
    memo: FxHashMap<Key, Vec<Point<T::Cost>>>,
}

impl<T: Task> Search<'_, T> {
    fn front(&mut self, rows: Vec<u32>, depth: usize, leaves: usize) -> Vec<Point<T::Cost>> {
        let leaves = leaves.min(1 << depth.min(32));
        let depth = depth.min(leaves.saturating_sub(1));
        let key = (rows, depth, leaves);
        if let Some(front) = self.memo.get(&key) {
            return front.clone();
        }
        let rows = &key.0;
        let mut front = Vec::new();
        let size: i64 = rows.iter().map(|&r| self.sample.size(r as usize)).sum();
        if self.smallest.allows_leaf(size) {
            let mut sums = vec![0; self.sample.channels];
            for &r in rows {
                for (sum, v) in sums.iter_mut().zip(self.sample.statistics(r as usize)) {
                    *sum += v;
                }
            }
            let mut candidates = Vec::new();
            self.task.leaf_candidates(&sums, &mut candidates);
            for cost in candidates {
                self.insert(&mut front, cost, Tree::leaf);
            }
        }
        if depth > 0 {
            for c in 0..self.sample.n_columns() {
                let (yes, no): (Vec<u32>, Vec<u32>) =
                    rows.iter().partition(|&&r| self.sample.get(r as usize, c));
                if yes.is_empty() || no.is_empty() {
                    continue;
                }
                for share in 1..leaves {
                    let with = self.front(yes.clone(), depth - 1, share);
                    let without = self.front(no.clone(), depth - 1, leaves - share);
                    for a in &with {
                        for b in &without {
                            let cost = self.task.combine(&a.cost, &b.cost);
                            let column = self.sample.columns[c];
                            self.insert(&mut front, cost, || {
                                let (l, r) = (&a.tree, &b.tree);
                                let (l, r) = if column.flipped { (r, l) } else { (l, r) };
                                Tree::split(column.feature, l, r)
                            });
                        }
                    }
                }
            }
        }
        self.memo.insert(key, front.clone());
        front
    }

    /// Adds a cost unless a kept one is at least as good; drops what it dominates.
    fn insert(&self, front: &mut Vec<Point<T::Cost>>, cost: T::Cost, tree: impl FnOnce() -> Tree) {
        if front.iter().any(|p| self.task.dominates(&p.cost, &cost)) {
            return;
        }
        front.retain(|p| !self.task.dominates(&cost, &p.cost));
        front.push(Point { cost, tree: tree() });
    }
}

//! The greedy tree that a search starts from.
//!
//! Grown breadth-first, so that a stop leaves a tree that is worth having, and pruned exactly:
//! of all subtrees of the grown tree with the leaves allowed, the cheapest.

use super::Problem;
use super::nodes::SumNodes;
use crate::data::Sample;
use crate::prune::{Costed, Pruned};
use crate::search::lattice::{Found, Query};
use crate::search::{Monitor, Stop};
use crate::task::LaneTask;
use crate::tree::Tree;
use std::collections::VecDeque;

/// Depth down to which a split need not pay for itself at once.
pub(crate) const PATIENCE: usize = 8;

/// Rows between two looks at the clock.
const ROWS_PER_CHECK: usize = 1 << 14;

struct GrownNode {
    /// Cost as a leaf, or of what stands here in its place; `i64::MAX` with too few rows or events.
    leaf: i64,
    split: Option<GrownSplit>,
    /// A best tree over its rows, where that is better than a leaf.
    best: Option<Tree>,
}

impl GrownNode {
    fn new(leaf: i64) -> Self {
        GrownNode { leaf, split: None, best: None }
    }
}

struct GrownSplit {
    column: usize,
    price: i64,
    yes: usize,
    no: usize,
}

/// A node still to be split.
struct OpenLeaf {
    node: usize,
    depth: usize,
    rows: Vec<u32>,
    /// Of each column, over the rows where it is true: statistics and size.
    yes: Vec<i64>,
    /// Of all rows.
    all: Vec<i64>,
    tested: Vec<usize>,
}

/// The size of a first tree.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Most questions on any path.
    pub depth: usize,
    /// Most leaves.
    pub leaves: usize,
    /// Levels at the bottom that are searched exactly: none, or fewer than `depth` and as many as
    /// a lattice has; they do not count their leaves.
    pub exact: usize,
}

/// The greedy tree of this shape; a limit ends it early.
///
/// O(rows · columns · channels) per level, and one lattice of all rows for the exact ones.
pub fn greedy<T: LaneTask>(search: &SumNodes<T>, sample: &Sample, shape: Shape) -> Found {
    let mut nodes = Vec::new();
    // What was grown before a stop is a tree, too.
    let _ = grow(search, sample, shape, &mut nodes);
    prune(sample, &nodes, shape.leaves)
}

fn grow<T: LaneTask>(
    search: &SumNodes<T>,
    sample: &Sample,
    shape: Shape,
    nodes: &mut Vec<GrownNode>,
) -> Result<(), Stop> {
    let Problem { task, monitor, .. } = *search.problem;
    let settings = &search.settings;
    let (channels, n) = (sample.channels, sample.n_columns());
    let width = channels + 1;
    let smallest = settings.limits.smallest();
    let cost = |sums: &[i64]| {
        let allowed = smallest.allows_leaf(sums[channels]);
        if allowed { task.leaf_cost(&sums[..channels]) } else { i64::MAX }
    };
    let rows: Vec<u32> = (0..sample.n_rows() as u32).collect();
    let mut all = sample.total.clone();
    all.push(sample.total_size());
    nodes.push(GrownNode::new(cost(&all)));
    let depth = shape.depth - shape.exact;
    if depth == 0 {
        return Ok(());
    }
    let yes = column_sums(sample, &rows, monitor)?;
    let tested = sample.tested.clone();
    let mut waiting = VecDeque::from([OpenLeaf { node: 0, depth: 0, rows, yes, all, tested }]);
    let mut no = vec![0i64; width];
    while let Some(open) = waiting.pop_front() {
        monitor.check_with_grace()?;
        if !smallest.allows_split(open.all[channels]) || !task.splits_help(&open.all[..channels]) {
            continue;
        }
        let mut best: Option<(i64, usize, i64)> = None;
        for c in 0..n {
            let yes = &open.yes[c * width..][..width];
            no.iter_mut().zip(&open.all).zip(yes).for_each(|((no, all), yes)| *no = all - yes);
            if !smallest.allows_leaf(yes[channels]) || !smallest.allows_leaf(no[channels]) {
                continue;
            }
            let price = if T::PRICED {
                let feature = sample.columns[c].feature;
                task.feature_price(feature, &open.tested, &open.all[..channels])
            } else {
                0
            };
            let price = price.saturating_add(task.split_price());
            let total = cost(yes).saturating_add(cost(&no)).saturating_add(price);
            if best.is_none_or(|(least, ..)| total < least) {
                best = Some((total, c, price));
            }
        }
        let Some((total, column, price)) = best else { continue };
        if open.depth >= PATIENCE && total >= nodes[open.node].leaf {
            continue;
        }
        let (yes_rows, no_rows): (Vec<u32>, Vec<u32>) =
            open.rows.iter().partition(|&&r| sample.get(r as usize, column));
        let yes_all = open.yes[column * width..][..width].to_vec();
        let no_all: Vec<i64> = open.all.iter().zip(&yes_all).map(|(all, yes)| all - yes).collect();
        let at = nodes.len();
        nodes.extend([GrownNode::new(cost(&yes_all)), GrownNode::new(cost(&no_all))]);
        nodes[open.node].split = Some(GrownSplit { column, price, yes: at, no: at + 1 });
        let depth_below = open.depth + 1;
        let mut tested = open.tested;
        if T::PRICED {
            tested.push(sample.columns[column].feature);
        }
        if depth_below == depth {
            for (node, rows) in [(at, &yes_rows), (at + 1, &no_rows)] {
                if shape.exact > 0 && nodes[node].leaf < i64::MAX {
                    let part = sample.of_rows(rows, tested.clone());
                    let query = Query::full(shape.exact, nodes[node].leaf);
                    let mut solved = search.lattice(&part, query)?;
                    let found = solved.found.remove(0);
                    if found.cost < nodes[node].leaf {
                        nodes[node] =
                            GrownNode { leaf: found.cost, split: None, best: Some(found.tree) };
                    }
                }
            }
            continue;
        }
        // Sums of the smaller side; those of the other are what is left.
        let smaller_is_yes = yes_rows.len() <= no_rows.len();
        let smaller = if smaller_is_yes { &yes_rows } else { &no_rows };
        let of_smaller = column_sums(sample, smaller, monitor)?;
        let mut of_larger = open.yes;
        of_larger.iter_mut().zip(&of_smaller).for_each(|(all, part)| *all -= part);
        let (yes_sums, no_sums) =
            if smaller_is_yes { (of_smaller, of_larger) } else { (of_larger, of_smaller) };
        let sides = [(at, yes_rows, yes_sums, yes_all), (at + 1, no_rows, no_sums, no_all)];
        for (node, rows, yes, all) in sides {
            let tested = tested.clone();
            waiting.push_back(OpenLeaf { node, depth: depth_below, rows, yes, all, tested });
        }
    }
    Ok(())
}

/// Statistics and size of the rows where each column is true, `[column][channel, …, size]`.
fn column_sums(sample: &Sample, rows: &[u32], monitor: &Monitor) -> Result<Vec<i64>, Stop> {
    let width = sample.channels + 1;
    let mut sums = vec![0i64; sample.n_columns() * width];
    for part in rows.chunks(ROWS_PER_CHECK) {
        monitor.check_with_grace()?;
        for &r in part {
            let (record, size) = (sample.statistics(r as usize), sample.size(r as usize));
            for c in sample.true_columns(r as usize) {
                let sums = &mut sums[c * width..][..width];
                sums.iter_mut().zip(record).for_each(|(sum, v)| *sum += v);
                sums[width - 1] += size;
            }
        }
    }
    Ok(sums)
}

/// The cheapest subtree with the same root and at most `most_leaves` leaves.
fn prune(sample: &Sample, nodes: &[GrownNode], most_leaves: usize) -> Found {
    let costed = |node: &GrownNode| Costed {
        leaf: node.leaf,
        split: node.split.as_ref().map(|split| (split.price, [split.yes, split.no])),
    };
    let pruned = Pruned::new(&nodes.iter().map(costed).collect::<Vec<_>>(), most_leaves);
    let (cost, place) = pruned.root();
    Found { cost, tree: tree(sample, nodes, &pruned, 0, place) }
}

fn tree(sample: &Sample, nodes: &[GrownNode], pruned: &Pruned, node: usize, place: usize) -> Tree {
    let (Some(split), Some((a, b))) = (&nodes[node].split, pruned.shares(node, place)) else {
        return nodes[node].best.clone().unwrap_or_else(Tree::leaf);
    };
    let yes = tree(sample, nodes, pruned, split.yes, a);
    let no = tree(sample, nodes, pruned, split.no, b);
    let column = sample.columns[split.column];
    let (left, right) = if column.flipped { (&no, &yes) } else { (&yes, &no) };
    Tree::split(column.feature, left, right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::BinaryMatrix;
    use crate::search::Settings;
    use crate::task::accuracy::Accuracy;
    use crate::task::{Placed, ScalarTask, Statistics};

    /// The greedy tree of at most these leaves and its number of errors.
    fn errors(labels: &[usize], bytes: &[u8], depth: usize, most: usize) -> (usize, i64) {
        errors_near(labels, bytes, depth, most, 0)
    }

    fn errors_near(
        labels: &[usize],
        bytes: &[u8],
        depth: usize,
        most: usize,
        exact: usize,
    ) -> (usize, i64) {
        let task = Accuracy::new(labels, 2, None, 0.0, 8).unwrap();
        let (n, p) = (labels.len(), bytes.len() / labels.len());
        let matrix = BinaryMatrix::from_bytes(n, p, bytes).unwrap();
        let sample = Sample::new(&matrix, task.statistics(), 2);
        let never = || false;
        let monitor = Monitor::new(None, &never);
        let shape = Shape { depth, leaves: most, exact };
        let settings = Settings::default();
        let problem = Problem::new(&task, &sample, &settings, &monitor);
        let found = greedy(&SumNodes::new(&problem, &settings), &sample, shape);
        let partition = found.tree.partition(&matrix);
        let wrong =
            task.objective(Placed::rows(&partition, found.tree.n_leaves())).objective * n as f64;
        (found.tree.n_leaves(), wrong.round() as i64)
    }

    #[test]
    fn a_split_may_pay_only_together_with_the_next() {
        let bytes: Vec<u8> = (0..4u8).flat_map(|r| [r & 1, r >> 1]).collect();
        assert_eq!(errors(&[0, 1, 1, 0], &bytes, 2, usize::MAX), (4, 0));
        assert_eq!(errors(&[0, 1, 1, 0], &bytes, 1, usize::MAX), (1, 2));
    }

    #[test]
    fn the_last_levels_are_exact_where_asked_for() {
        // The first column tells which of two pairs of others has the parity; a greedy split on
        // any of them gains nothing, and the last column draws it away.
        let rows = 0..64usize;
        let bit = |r: usize, i: usize| (r >> i & 1) as u8;
        let label = |r: usize| {
            let pair = if bit(r, 0) == 1 { bit(r, 1) ^ bit(r, 2) } else { bit(r, 3) ^ bit(r, 4) };
            usize::from(pair == 1)
        };
        let labels: Vec<usize> = rows.clone().map(|r| label(r) | usize::from(r == 0)).collect();
        let bytes: Vec<u8> = rows
            .flat_map(|r| (0..5).map(move |i| bit(r, i)).chain([u8::from(label(r) == 1 && r < 9)]))
            .collect();
        let (_, greedy) = errors(&labels, &bytes, 3, usize::MAX);
        let (leaves, near) = errors_near(&labels, &bytes, 3, usize::MAX, 2);
        assert!(near < greedy, "{near} {greedy}");
        assert!(leaves <= 8);
    }

    #[test]
    fn a_budget_keeps_the_cheapest_subtree() {
        // The label is the first column, but for one row that the two others tell.
        let bytes: Vec<u8> = (0..8u8).flat_map(|r| [r & 1, r >> 1 & 1, r >> 2]).collect();
        let labels: Vec<usize> = (0..8).map(|r| usize::from(r & 1 == 1 && r != 7)).collect();
        assert_eq!(errors(&labels, &bytes, 3, usize::MAX), (4, 0));
        assert_eq!(errors(&labels, &bytes, 3, 3), (2, 1));
        assert_eq!(errors(&labels, &bytes, 3, 2), (2, 1));
        assert_eq!(errors(&labels, &bytes, 3, 1), (1, 3));
    }
}

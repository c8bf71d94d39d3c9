//! Shares a limited number of leaves between the two sides of a split.

use super::geometry::MAX_DEPTH;

/// Slots of two children, and the slot of the parent that they make.
pub type Combination = (usize, usize, usize);

/// Number of leaf budgets for which the best splits of each level are kept.
pub fn slots(depth: usize, most_leaves: usize) -> [usize; MAX_DEPTH + 1] {
    let mut slots = [0; MAX_DEPTH + 1];
    for (m, slots) in slots.iter_mut().enumerate().take(depth) {
        *slots = if most_leaves == usize::MAX { 1 } else { cap(depth, most_leaves, m) - 1 };
    }
    slots
}

/// Most leaves that an itemset of level `m` can use, if each of its m siblings above has at least
/// one.
fn cap(depth: usize, most_leaves: usize, m: usize) -> usize {
    (1usize << (depth - m)).min(most_leaves.saturating_sub(m)).max(1)
}

/// Leaf budgets that are kept on each level, and how those of two children combine.
///
/// If the number of leaves is not limited, every level has one slot. Otherwise the value slots of
/// level m stand for at most 1, 2, … leaves. The first of them is the leaf itself, so best splits
/// have one slot fewer.
pub fn leaf_budgets(
    depth: usize,
    budgets: &[usize],
) -> ([Vec<Combination>; MAX_DEPTH + 1], [usize; MAX_DEPTH + 1]) {
    let mut combinations: [Vec<Combination>; MAX_DEPTH + 1] = Default::default();
    let most = budgets.iter().copied().max().unwrap_or(1);
    for m in 1..=depth {
        if most == usize::MAX {
            combinations[m] = vec![(0, 0, 0)];
            continue;
        }
        let [above, here] = [m - 1, m].map(|m| cap(depth, most, m));
        for a in 1..=here {
            for b in 1..=here {
                if a + b <= above {
                    combinations[m].push((a - 1, b - 1, a + b - 2));
                }
            }
        }
    }
    (combinations, slots(depth, most))
}

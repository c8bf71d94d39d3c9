//! Sharing a limited number of leaves between the two sides of a split.

use super::MAX_DEPTH;

/// Slots of two children, and the slot of the parent that they make.
pub type Combination = (usize, usize, usize);

/// Leaf budgets kept on each level, and how those of two children combine.
///
/// With a free number of leaves there is one slot per level. Otherwise the value slots of
/// level m stand for at most 1, 2, … leaves, of which the first is the leaf itself, so that
/// the best splits have one slot fewer.
pub fn leaf_budgets(
    depth: usize,
    budgets: &[usize],
) -> ([Vec<Combination>; MAX_DEPTH + 1], [usize; MAX_DEPTH + 1]) {
    let mut combinations: [Vec<Combination>; MAX_DEPTH + 1] = Default::default();
    let mut slots = [0; MAX_DEPTH + 1];
    let most = budgets.iter().copied().max().unwrap_or(1);
    if budgets == [usize::MAX] {
        for m in 1..=depth {
            combinations[m] = vec![(0, 0, 0)];
            slots[m - 1] = 1;
        }
        return (combinations, slots);
    }
    // An itemset of level m leaves at least one leaf to each of its m siblings above.
    let cap = |m: usize| (1usize << (depth - m)).min(most.saturating_sub(m)).max(1);
    for m in 0..depth {
        slots[m] = cap(m) - 1;
    }
    for m in 1..=depth {
        for a in 1..=cap(m) {
            for b in 1..=cap(m) {
                if a + b <= cap(m - 1) {
                    combinations[m].push((a - 1, b - 1, a + b - 2));
                }
            }
        }
    }
    (combinations, slots)
}

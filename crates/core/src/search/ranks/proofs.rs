//! Proofs from a search for trees with two levels, which also hold for nodes with more rows.

/// Lower bounds on the trees of a side: on a leaf, and on trees with one split, including its
/// price.
pub type Side = [i64; 2];

/// Proofs for the sides of a node from its search. They also hold for nodes with more rows.
#[derive(Clone, Debug, Default)]
pub struct Proofs {
    /// Sorted by column and rank.
    all: Vec<Proof>,
}

/// Bounds on the sides at a rank of a column.
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    pub column: u32,
    pub rank: u32,
    pub left: Side,
    pub right: Side,
}

impl Proof {
    fn place(&self) -> u64 {
        u64::from(self.column) << 32 | u64::from(self.rank)
    }
}

impl Proofs {
    /// Combines these with earlier proofs. A side has more rows at a higher rank, and the other
    /// side at a lower rank.
    pub fn new(mut all: Vec<Proof>, before: Option<&Proofs>) -> Proofs {
        if let Some(before) = before {
            all.extend_from_slice(&before.all);
        }
        all.sort_unstable_by_key(Proof::place);
        all.dedup_by(|same, kept| {
            let is_same = same.place() == kept.place();
            if is_same {
                kept.left = greater(kept.left, same.left);
                kept.right = greater(kept.right, same.right);
            }
            is_same
        });
        for at in 1..all.len() {
            if all[at].column == all[at - 1].column {
                all[at].left = greater(all[at].left, all[at - 1].left);
            }
        }
        for at in (1..all.len()).rev() {
            if all[at].column == all[at - 1].column {
                all[at - 1].right = greater(all[at - 1].right, all[at].right);
            }
        }
        Proofs { all }
    }

    pub fn of_column(&self, k: usize) -> &[Proof] {
        let from = self.all.partition_point(|proof| (proof.column as usize) < k);
        let n = self.all[from..].partition_point(|proof| proof.column as usize == k);
        &self.all[from..][..n]
    }
}

/// The larger of two bounds.
pub fn greater(a: Side, b: Side) -> Side {
    [a[0].max(b[0]), a[1].max(b[1])]
}

//! Where the value of an itemset lives.
//!
//! An itemset of size m is its sorted columns. Its first m − 1 columns are its prefix and
//! name a row of the tables of level m; the last one is the lane within the row. Rows hold
//! only the lanes beyond the prefix, plus padding for a vector that runs over the end.

use super::combine::PREFIX;

/// Lanes of padding behind every row: no vector overruns its row by more.
pub const PAD: usize = 8;

/// Prefixes and row positions of the levels below the deepest.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// Number of columns.
    pub n: usize,
    level: [Level; PREFIX],
    /// Rows of level 4 before those of each pair.
    triples: Vec<usize>,
}

#[derive(Clone, Debug, Default)]
struct Level {
    /// Position of the first lane of every row.
    start: Vec<usize>,
    total: usize,
}

/// A row of a level: `at + lane` is the position of a lane.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row {
    /// Position of the first lane of the row.
    pub start: usize,
    /// First lane.
    pub first: usize,
    /// Stored lanes, padding included.
    pub len: usize,
}

impl Geometry {
    /// Lays out the levels up to `levels` (at most [`PREFIX`]) for `n` columns.
    pub fn new(n: usize, levels: usize) -> Self {
        let mut level = <[Level; PREFIX]>::default();
        let firsts: [Box<dyn Iterator<Item = usize>>; PREFIX] = [
            Box::new(std::iter::once(0)),
            Box::new(1..=n),
            Box::new((0..n).flat_map(move |f| f + 2..=n)),
            Box::new((0..n).flat_map(move |f| (f + 1..n).flat_map(move |g| g + 2..=n))),
        ];
        for (level, firsts) in level.iter_mut().zip(firsts).take(levels) {
            for first in firsts {
                level.start.push(level.total);
                level.total += n - first + PAD;
            }
        }
        let mut triples = Vec::new();
        if levels == PREFIX {
            let mut before = 0;
            for g in (0..n).flat_map(|f| f + 1..n) {
                triples.push(before);
                before += n - g - 1;
            }
        }
        Geometry { n, level, triples }
    }

    /// Positions of level `m`, all rows together.
    pub fn total(&self, m: usize) -> usize {
        self.level[m - 1].total
    }

    /// The number of rows a level has without laying it out, and its total positions.
    pub fn positions(n: usize, m: usize) -> usize {
        match m {
            1 => n + PAD,
            2 => n * (n.saturating_sub(1)) / 2 + n * PAD,
            3 => {
                let pairs = n * n.saturating_sub(1) / 2;
                pairs * n.saturating_sub(2) / 3 + pairs * PAD
            }
            _ => {
                let triples = n * n.saturating_sub(1) * n.saturating_sub(2) / 6;
                triples * n.saturating_sub(3) / 4 + triples * PAD
            }
        }
    }

    /// Index of the pair (f, g), f < g, in row order.
    #[inline(always)]
    fn pair(&self, f: usize, g: usize) -> usize {
        f * self.n - f * (f + 1) / 2 + (g - f - 1)
    }

    /// The row of the itemsets `prefix ∪ {lane}`.
    #[inline(always)]
    pub fn row(&self, prefix: &[usize]) -> Row {
        let (index, first) = match *prefix {
            [] => (0, 0),
            [f] => (f, f + 1),
            [f, g] => (self.pair(f, g), g + 1),
            [f, g, k] => (self.triples[self.pair(f, g)] + (k - g - 1), k + 1),
            _ => unreachable!("no level has a longer prefix"),
        };
        let start = self.level[prefix.len()].start[index];
        Row { start, first, len: self.n - first + PAD }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_disjoint_and_cover_the_level() {
        let geometry = Geometry::new(7, 4);
        let mut taken = vec![false; geometry.total(3)];
        for f in 0..7 {
            for g in f + 1..7 {
                let row = geometry.row(&[f, g]);
                for h in g + 1..7 + PAD {
                    let at = row.start + (h - row.first);
                    assert!(!std::mem::replace(&mut taken[at], true));
                }
            }
        }
        assert!(taken.into_iter().all(|t| t));
        let mut taken = vec![false; geometry.total(4)];
        for f in 0..7 {
            for g in f + 1..7 {
                for k in g + 1..7 {
                    let row = geometry.row(&[f, g, k]);
                    for place in &mut taken[row.start..row.start + row.len] {
                        assert!(!std::mem::replace(place, true));
                    }
                }
            }
        }
        assert!(taken.into_iter().all(|t| t));
        for m in 1..=4 {
            assert_eq!(geometry.total(m), Geometry::positions(7, m));
        }
    }
}

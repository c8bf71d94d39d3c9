//! Columns that imply others, as the thresholds of a number and the levels of a category do.
//!
//! If one of the four sign patterns of two columns contains no row, two of the others are cells of
//! one column alone, and only the last is a cell that needs both. A tree gains nothing by asking
//! both questions if one determines the other. So the level of the leaves does not offer such
//! trees, and the best splits of cells that repeat those of fewer columns are copied from a lattice
//! with one level less.

use super::accumulate::Rows;
use super::geometry::{Best, Geometry, MAX_DEPTH, PREFIX, best_at};
use crate::search::{Monitor, Stop};
use crate::simd::{LaneInt, LaneReal};
use std::sync::{LazyLock, OnceLock};

/// A set of sign patterns of a prefix, as bits.
pub type Patterns = u16;

/// How two columns are related: 0 if every sign pattern contains rows, otherwise 1 + the empty
/// pattern, whose lowest bit is the sign of the first column.
type Relation = u8;

/// Number of relations.
const RELATIONS: usize = 5;

/// Number of pairs of columns in the longest prefix.
const PAIRS: u32 = (PREFIX * (PREFIX - 1) / 2) as u32;

/// What is known about a cell.
#[derive(Clone, Copy, PartialEq)]
enum Cell {
    Empty,
    /// Without this column the cell has the same rows.
    Without(usize),
    /// None of its columns can be left out.
    Own,
}

/// The cell of two columns with these signs.
fn cell_of_two(relation: Relation, signs: usize) -> Cell {
    let Some(empty) = relation.checked_sub(1) else { return Cell::Own };
    match signs ^ empty as usize {
        0b00 => Cell::Empty,
        // One column has the sign that determines the other.
        0b10 => Cell::Without(1),
        0b01 => Cell::Without(0),
        _ => Cell::Own,
    }
}

/// A split of a prefix's cell on one of its columns: the sign patterns of the sides, and those of
/// the other columns.
#[derive(Clone, Copy)]
pub struct Split {
    pub yes: u8,
    pub no: u8,
    pub column: u8,
    pub rest: u8,
}

/// The leaves that are needed for the cells of a prefix, and the splits that have to be offered.
pub struct Plan {
    /// What is known about every sign pattern of the prefix.
    known: Vec<Cell>,
    /// Sign patterns of the needed leaves, as a bitset.
    pub cells: Patterns,
    /// Sign patterns to be split on the lane.
    pub lane: Vec<u8>,
    pub splits: Vec<Split>,
}

impl Plan {
    /// The plan for columns with these relations.
    fn new(relation: impl Fn(usize, usize) -> Relation) -> Self {
        let size = PREFIX;
        let pairs = || (0..size).flat_map(|b| (0..b).map(move |a| (a, b)));
        // The cell of all columns except one.
        let cell = |signs: usize, but: usize| {
            let of_pair = |(a, b): (usize, usize)| {
                let two = signs >> a & 1 | (signs >> b & 1) << 1;
                match cell_of_two(relation(a, b), two) {
                    Cell::Without(which) => Cell::Without([a, b][which]),
                    cell => cell,
                }
            };
            let all = || pairs().filter(|&(a, b)| a != but && b != but).map(of_pair);
            let empty = all().find(|&cell| cell == Cell::Empty);
            empty.or_else(|| all().find(|&cell| cell != Cell::Own)).unwrap_or(Cell::Own)
        };
        let known: Vec<Cell> = (0..1 << size).map(|signs| cell(signs, size)).collect();
        let own = (0..1u8 << size).filter(|&signs| known[signs as usize] == Cell::Own);
        let (lane, mut splits): (Vec<u8>, _) = (own.collect(), Vec::new());
        for column in 0..size {
            for no in (0..1 << size).filter(|no| no >> column & 1 == 0) {
                let yes = no | 1 << column;
                let some = known[yes] != Cell::Empty && known[no] != Cell::Empty;
                if some && cell(no, column) == Cell::Own {
                    let rest = without(no, column);
                    let [yes, no, column, rest] = [yes, no, column, rest].map(|v| v as u8);
                    splits.push(Split { yes, no, column, rest });
                }
            }
        }
        let sides = splits.iter().flat_map(|split| [split.yes, split.no]);
        let cells = sides.chain(lane.iter().copied()).fold(0, |cells, s| cells | 1 << s);
        Plan { known, cells, lane, splits }
    }

    /// The plan of a longest prefix whose relations have this code.
    fn of(code: usize) -> &'static Plan {
        static PLANS: LazyLock<Vec<OnceLock<Box<Plan>>>> =
            LazyLock::new(|| (0..RELATIONS.pow(PAIRS)).map(|_| OnceLock::new()).collect());
        PLANS[code].get_or_init(|| {
            let pair = |a, b| code / RELATIONS.pow((b * (b - 1) / 2 + a) as u32) % RELATIONS;
            Box::new(Plan::new(|a, b| pair(a, b) as Relation))
        })
    }
}

/// The relations of all pairs of columns.
pub struct Implied {
    n: usize,
    /// Number of related pairs.
    related: usize,
    /// `[second · n + first]`
    relations: Vec<Relation>,
}

impl Implied {
    /// The relations of the columns of these rows; `None` if no pair is related. O(columns² · rows
    /// / 64).
    pub fn of<I: LaneInt>(rows: &Rows<I>, n: usize) -> Option<Implied> {
        let (everything, mut relations, mut related) = (rows.everything(), vec![0; n * n], 0);
        for b in 0..n {
            for a in 0..b {
                let columns = || rows.column(a).iter().zip(rows.column(b)).zip(&everything);
                let holds = |signs: usize| {
                    let signed = |word: u64, sign| if sign == 1 { word } else { !word };
                    columns().any(|((&a, &b), &all)| {
                        signed(a, signs & 1) & signed(b, signs >> 1) & all != 0
                    })
                };
                if let Some(empty) = (0..4).find(|&signs| !holds(signs)) {
                    relations[b * n + a] = 1 + empty as Relation;
                    related += 1;
                }
            }
        }
        (related > 0).then_some(Implied { n, related, relations })
    }

    /// Whether leaving out leaves saves more work than the lattice with one level less takes.
    pub fn pays(&self) -> bool {
        let Implied { n, related, .. } = *self;
        // A prefix has six pairs, and saves about two fifths if one of them is related.
        let saved = 0.4 * (related * PAIRS as usize) as f64 / (n * (n - 1) / 2) as f64;
        // Prefixes with a plan of their own take longer, too.
        saved > 3.0 * MAX_DEPTH as f64 / (2 * (n - PREFIX)) as f64
    }

    /// The plan for a prefix; `None` if none of its columns are related.
    #[inline(always)]
    pub fn plan(&self, columns: [usize; PREFIX]) -> Option<&'static Plan> {
        let mut code = 0;
        for b in (1..PREFIX).rev() {
            for a in (0..b).rev() {
                let relation = self.relations[columns[b] * self.n + columns[a]];
                code = code * RELATIONS + relation as usize;
            }
        }
        (code > 0).then(|| Plan::of(code))
    }

    /// Copies the best splits of those cells of four columns that are cells of three columns, from
    /// the first of `slots` slots of `fewer`, a table for three columns. O(cells).
    pub fn fill<R: LaneReal>(
        &self,
        geometry: &Geometry,
        Best(best): &mut Best<R>,
        (Best(fewer), slots): (&Best<R>, usize),
        monitor: &Monitor,
    ) -> Result<(), Stop> {
        let n = self.n;
        for (f, g) in (0..n).flat_map(|f| (f + 1..n).map(move |g| (f, g))) {
            monitor.check()?;
            for k in g + 1..n {
                self.fill_row(geometry, [f, g, k], best, (fewer, slots));
            }
        }
        Ok(())
    }

    /// The same for the itemsets of three columns and any later column.
    fn fill_row<R: LaneReal>(
        &self,
        geometry: &Geometry,
        [f, g, k]: [usize; 3],
        best: &mut [R],
        (fewer, slots): (&[R], usize),
    ) {
        let row = geometry.row(&[f, g, k]);
        let plan = |lane: usize| self.plan([f, g, k, lane]);
        let mut lane = k + 1;
        while lane < self.n {
            // Neighbouring lanes mostly have the same relations.
            let of_lane = plan(lane);
            let same = |other| match (plan(other), of_lane) {
                (Some(a), Some(b)) => std::ptr::eq(a, b),
                (a, b) => a.is_none() && b.is_none(),
            };
            let end = (lane + 1..self.n).find(|&other| !same(other)).unwrap_or(self.n);
            let len = end - lane;
            let known = of_lane.map_or(&[][..], |plan| &plan.known);
            for (signs, cell) in known.iter().enumerate() {
                let &Cell::Without(left_out) = cell else { continue };
                let (prefix, first) = match left_out {
                    0 => ([g, k], lane),
                    1 => ([f, k], lane),
                    2 => ([f, g], lane),
                    _ => ([f, g], k),
                };
                let (shorter, rest) = (geometry.row(&prefix), without(signs, left_out));
                let from = &fewer[best_at(shorter, slots, PREFIX - 1, 0, rest, first)..];
                let into = &mut best[best_at(row, 1, PREFIX, 0, signs, lane)..][..len];
                if left_out < PREFIX - 1 {
                    into.copy_from_slice(&from[..len]);
                } else {
                    into.fill(from[0]);
                }
            }
            lane = end;
        }
    }
}

/// The patterns in a set.
#[inline(always)]
pub fn bits(mut patterns: Patterns) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = (patterns != 0).then_some(patterns.trailing_zeros() as usize);
        patterns &= patterns.wrapping_sub(1);
        next
    })
}

/// The signs of all columns except one.
fn without(signs: usize, column: usize) -> usize {
    let low = (1 << column) - 1;
    signs & low | signs >> 1 & !low
}

//! Finds the best splits of both sides of many root thresholds at once.
//!
//! A lane is a threshold of the root. One pass over the rows in the order of a column sums, in
//! every lane, the rows on its left side up to each threshold of that column; the other rows up to
//! the threshold are on the right side. So a pass evaluates every split of both sides in all lanes.
//! Runs of thresholds that cannot contain the best split are skipped; see docs/maths/thresholds.md.

use super::losses::{Losses, States};
use super::rows::{Cuts, Rows, Table};
use crate::data::rows_of;
use crate::search::lattice::room_for;
use crate::simd::{FloatLanes, Job, LaneInt, LaneReal, Vector};
use std::ops::Range;

/// Largest number of lanes of any backend.
pub const LANES: usize = 16;

/// Columns with fewer thresholds than this are evaluated completely.
const LEAST_RUNS: usize = 80;

/// Number of thresholds whose sums are evaluated together; these fit into the fastest cache.
const TOGETHER: usize = 64;

/// Most numbers per row: labels, groups, rows and events.
const MOST: usize = 66;

/// Rows of a node in the form that lanes add up.
#[derive(Debug, Default)]
pub struct Scan<I> {
    /// Numbers per row: the channels, and, if leaves have minima, the rows and events.
    width: usize,
    /// `[column][position][number]`, in the order of the column.
    records: Vec<I>,
    /// Sums of the rows up to each threshold, `[threshold][number]`.
    pub below: Vec<I>,
    /// Sums of all rows.
    pub total: Vec<I>,
}

impl<I: LaneInt> Scan<I> {
    /// Computes the sums of these rows, whose numbers are `lanes[row]`; O(rows · columns).
    pub fn fill(&mut self, lanes: &[I], width: usize, table: &Table, rows: &Rows, cuts: &Cuts) {
        self.width = width;
        room_for(&mut self.records, table.n_columns() * rows.count * width);
        room_for(&mut self.below, cuts.len() * width);
        self.total.clear();
        self.total.resize(width, I::default());
        let mut sums = vec![0i64; width];
        for k in 0..table.n_columns() {
            let range = cuts.of(k);
            let mut next = range.start;
            sums.fill(0);
            for (at, &r) in rows.in_order(k).iter().enumerate() {
                if next < range.end && cuts.below[next] as usize == at {
                    self.below.extend(sums.iter().map(|&v| I::from_i64(v)));
                    next += 1;
                }
                let record = &lanes[r as usize * width..][..width];
                self.records.extend_from_slice(record);
                sums.iter_mut().zip(record).for_each(|(sum, v)| *sum += v.to_i64());
            }
        }
        for (total, &sum) in self.total.iter_mut().zip(&sums) {
            *total = I::from_i64(sum);
        }
    }
}

/// The least lane losses of a batch.
#[derive(Debug, Default)]
pub struct Minima<R> {
    /// The sides as leaves: left, then right.
    pub leaf: [[R; LANES]; 2],
    /// Lower bound on the splits of the side, for leaves of any size.
    pub free: [[R; LANES]; 2],
    /// Least loss of the allowed splits into two leaves.
    pub best: [[R; LANES]; 2],
    /// The same for each column, `[column][side][lane]`.
    pub columns: Vec<[[R; LANES]; 2]>,
}

/// Buffers of a pass.
#[derive(Debug, Default)]
pub struct Scratch<I, R> {
    runs: Vec<Run>,
    /// Sums at the start of each run, `[run][number][lane]`.
    begins: Vec<I>,
    /// Bounds for both sides, `[run][side][lane]`.
    bounds: Vec<R>,
    /// Sums of both sides, `[side][number][lane]`.
    whole: Vec<I>,
    /// Sums of the current column up to the last threshold, `[number][lane]`.
    sums: Vec<I>,
    /// Sums at the thresholds that are evaluated together, `[threshold][number][lane]`.
    left: Vec<I>,
    /// Sums of all rows up to these thresholds, `[threshold][number]`.
    below: Vec<I>,
    losses: Vec<R>,
    between: Vec<R>,
    /// Minimum sums of the last numbers in a leaf.
    minima: Vec<I>,
}

/// Thresholds of a column, except the last, which was evaluated.
#[derive(Clone, Copy, Debug)]
struct Run {
    column: usize,
    first: usize,
    last: usize,
}

/// Evaluates a batch; lanes that are not needed repeat others.
pub struct Batch<'a, I, R> {
    pub task: &'a dyn Losses<I, R>,
    pub scan: &'a Scan<I>,
    pub rows: &'a Rows,
    pub cuts: &'a Cuts,
    pub n_columns: usize,
    /// For each row, the lanes whose left side contains it.
    pub mask: &'a [u16],
    /// The threshold of each lane.
    pub lanes: &'a [usize],
    /// Minimum sums of the last numbers in a leaf.
    pub minima: &'a [i64],
    /// Splits whose loss exceeds the best by less than this are evaluated, too.
    pub margin: f64,
    pub scratch: &'a mut Scratch<I, R>,
    pub out: &'a mut Minima<R>,
}

impl<L: FloatLanes> Job<L> for Batch<'_, L::I, L::R> {
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
        Pass::<L>::new(self, lanes).run();
    }
}

/// Sums the rows of a column, and stores the sums at the last threshold of every run.
struct Gather<'a, I> {
    /// Rows and their numbers, in the order of the column.
    order: &'a [u32],
    records: &'a [I],
    mask: &'a [u16],
    /// Number of rows up to each threshold, and their sums, `[threshold][number]`.
    ends: &'a [u32],
    all: &'a [I],
    /// Number of thresholds in a run.
    size: usize,
    /// Number of rows before the first threshold.
    place: usize,
    width: usize,
    /// Sums before the first threshold, afterwards up to the last, `[number][lane]`.
    sums: &'a mut [I],
    /// Sums at the last threshold of every run, `[run][number][lane]`, and those of all rows.
    left: &'a mut [I],
    below: &'a mut [I],
}

impl<I: LaneInt> Gather<'_, I> {
    /// If the width is known at compile time, the sums stay in registers.
    #[inline(always)]
    fn of_width<L: FloatLanes<I = I>, const W: usize>(self, lanes: L) {
        let width = if W < MOST { W } else { self.width };
        let mut sums = [lanes.splat(I::default()); W];
        for (v, sum) in sums[..width].iter_mut().enumerate() {
            *sum = lanes.load(&self.sums[v * L::N..]);
        }
        let (mut place, mut next, mut run) = (self.place, 0, 0);
        while next < self.ends.len() {
            let last = (next + self.size).min(self.ends.len()) - 1;
            let to = self.ends[last] as usize;
            let records = self.records[place * width..to * width].chunks_exact(width);
            for (&r, record) in self.order[place..to].iter().zip(records) {
                let bits = u64::from(self.mask[r as usize]);
                for v in 0..width {
                    sums[v] = L::add_where(sums[v], bits, record[v]);
                }
            }
            for (v, sum) in sums[..width].iter().enumerate() {
                sum.store(&mut self.left[(run * width + v) * L::N..]);
            }
            self.below[run * width..][..width].copy_from_slice(&self.all[last * width..][..width]);
            (place, next, run) = (to, last + 1, run + 1);
        }
        for (v, sum) in sums[..width].iter().enumerate() {
            sum.store(&mut self.sums[v * L::N..]);
        }
    }
}

impl<L: FloatLanes> Job<L> for Gather<'_, L::I> {
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
        match self.width {
            1 => self.of_width::<L, 1>(lanes),
            2 => self.of_width::<L, 2>(lanes),
            3 => self.of_width::<L, 3>(lanes),
            4 => self.of_width::<L, 4>(lanes),
            _ => self.of_width::<L, MOST>(lanes),
        }
    }
}

/// Least losses of both sides so far: of all splits, and of the allowed ones.
#[derive(Clone, Copy)]
struct Least<V> {
    free: [V; 2],
    best: [V; 2],
}

struct Pass<'a, L: FloatLanes> {
    batch: Batch<'a, L::I, L::R>,
    lanes: L,
    width: usize,
    scratch: Scratch<L::I, L::R>,
}

impl<'a, L: FloatLanes> Pass<'a, L> {
    #[inline(always)]
    fn new(batch: Batch<'a, L::I, L::R>, lanes: L) -> Self {
        let width = batch.scan.width;
        let mut scratch = std::mem::take(batch.scratch);
        scratch.runs.clear();
        scratch.begins.clear();
        scratch.bounds.clear();
        scratch.whole.clear();
        scratch.minima.clear();
        // One more than are evaluated, for the sums before them.
        let most = TOGETHER + 1;
        scratch.sums.resize(width * L::N, L::I::default());
        scratch.left.resize(most * width * L::N, L::I::default());
        scratch.below.resize(most * width, L::I::default());
        scratch.losses.resize(2 * most * L::N, L::R::default());
        scratch.between.resize(2 * most * L::N, L::R::default());
        for side in 0..2 {
            for v in 0..width {
                for &cut in batch.lanes {
                    let left = batch.scan.below[cut * width + v];
                    let right = batch.scan.total[v].minus(left);
                    scratch.whole.push(if side == 0 { left } else { right });
                }
            }
        }
        for &least in batch.minima {
            scratch.minima.push(L::I::from_i64(least.min(L::I::MAX_SUM)));
        }
        Pass { batch, lanes, width, scratch }
    }

    /// Continues the sums of column `k` to the last of these thresholds, and stores those at the
    /// end of every run of `size` from `slot` on.
    #[inline(always)]
    fn gather(&mut self, k: usize, cuts: Range<usize>, size: usize, slot: usize) {
        let Batch { scan, rows, cuts: all, mask, .. } = &self.batch;
        let width = self.width;
        let begin = k * rows.count * width;
        let first_of_column = cuts.start == all.of(k).start;
        let Scratch { sums, left, below, .. } = &mut self.scratch;
        self.lanes.run(Gather {
            order: rows.in_order(k),
            records: &scan.records[begin..][..rows.count * width],
            mask,
            ends: &all.below[cuts.clone()],
            all: &scan.below[cuts.start * width..cuts.end * width],
            size,
            place: if first_of_column { 0 } else { all.below[cuts.start - 1] as usize },
            width,
            sums,
            left: &mut left[slot * width * L::N..],
            below: &mut below[slot * width..],
        });
    }

    /// Evaluates `n` thresholds whose sums were stored, except those before `first`.
    #[inline(always)]
    fn evaluate(&mut self, first: usize, n: usize, least: &mut Least<L::Real>) {
        let (width, lanes) = (self.width, self.lanes);
        let Scratch { left, below, whole, losses, minima, .. } = &mut self.scratch;
        let states = States { n, lanes: L::N, width, left, below, whole };
        self.batch.task.splits(&states, losses);
        let counted = width - minima.len();
        let never = lanes.splat_real(L::R::INFINITY);
        for at in first..n {
            for side in 0..2 {
                let loss = lanes.load_real(&losses[(2 * at + side) * L::N..]);
                least.free[side] = L::min_real(least.free[side], loss);
                let mut allowed = loss;
                for (v, &least) in (counted..).zip(&*minima) {
                    let mut part = lanes.load(&left[(at * width + v) * L::N..]);
                    if side == 1 {
                        part = lanes.splat(below[at * width + v]) - part;
                    }
                    let whole = lanes.load(&whole[(side * width + v) * L::N..]);
                    let fewer = L::min(part, whole - part);
                    allowed = L::if_less(fewer, lanes.splat(least), never, allowed);
                }
                least.best[side] = L::min_real(least.best[side], allowed);
            }
        }
    }

    /// Evaluates thresholds one by one, continuing the sums before them.
    #[inline(always)]
    fn each(&mut self, k: usize, cuts: Range<usize>, least: &mut Least<L::Real>) {
        let mut next = cuts.start;
        while next < cuts.end {
            let end = (next + TOGETHER).min(cuts.end);
            self.gather(k, next..end, 1, 0);
            self.evaluate(0, end - next, least);
            next = end;
        }
    }

    /// Evaluates the last threshold of every run, and bounds the others.
    #[inline(always)]
    fn runs(&mut self, k: usize, size: usize, least: &mut Least<L::Real>) {
        let cuts = self.batch.cuts.of(k);
        let width = self.width;
        let mut next = cuts.start;
        while next < cuts.end {
            let end = (next + TOGETHER * size).min(cuts.end);
            // Sums before the first run, whose loss is that of one leaf or of the previous run.
            self.scratch.left[..width * L::N].copy_from_slice(&self.scratch.sums);
            for v in 0..width {
                self.scratch.below[v] = match next == cuts.start {
                    true => L::I::default(),
                    false => self.batch.scan.below[(next - 1) * width + v],
                };
            }
            self.gather(k, next..end, size, 1);
            let n = (end - next).div_ceil(size);
            self.evaluate(1, n + 1, least);
            let Scratch { left, below, whole, losses, between, bounds, begins, runs, .. } =
                &mut self.scratch;
            let states = States { n: n + 1, lanes: L::N, width, left, below, whole };
            self.batch.task.between(&states, losses, between);
            bounds.extend_from_slice(&between[..2 * n * L::N]);
            begins.extend_from_slice(&left[..n * width * L::N]);
            for first in (next..end).step_by(size) {
                runs.push(Run { column: k, first, last: (first + size).min(end) - 1 });
            }
            next = end;
        }
    }

    /// Evaluates a threshold with few rows above it: their sums are subtracted from those of all
    /// rows.
    #[inline(always)]
    fn evaluate_from_above(&mut self, k: usize, cut: usize, least: &mut Least<L::Real>) {
        let Batch { scan, rows, cuts, mask, .. } = &self.batch;
        let (width, lanes) = (self.width, self.lanes);
        let begin = k * rows.count * width;
        let Scratch { sums, left, below, whole, .. } = &mut self.scratch;
        lanes.run(Gather {
            order: rows.in_order(k),
            records: &scan.records[begin..][..rows.count * width],
            mask,
            ends: &[rows.count as u32],
            all: &scan.below[cut * width..][..width],
            size: 1,
            place: cuts.below[cut] as usize,
            width,
            sums,
            left,
            below,
        });
        for v in 0..width {
            let above = lanes.load(&left[v * L::N..]);
            (lanes.load(&whole[v * L::N..]) - above).store(&mut left[v * L::N..]);
        }
        self.evaluate(0, 1, least);
    }

    #[inline(always)]
    fn run(mut self) {
        let lanes = self.lanes;
        let never = lanes.splat_real(L::R::INFINITY);
        let (width, n_rows) = (self.width, self.batch.rows.count);
        let nothing = Least { free: [never; 2], best: [never; 2] };
        let mut all = nothing;
        let mut columns = std::mem::take(&mut self.batch.out.columns);
        columns.clear();
        columns.resize(self.batch.n_columns, [[L::R::INFINITY; LANES]; 2]);
        for (k, column) in columns.iter_mut().enumerate() {
            let range = self.batch.cuts.of(k);
            let mut here = nothing;
            self.scratch.sums.fill(L::I::default());
            let size = run_length(range.len());
            let few_above = |cut: usize| self.batch.cuts.below[cut] as usize > n_rows / 2;
            if range.len() == 1 && few_above(range.start) {
                self.evaluate_from_above(k, range.start, &mut here);
            } else if size == 0 {
                self.each(k, range, &mut here);
            } else {
                self.runs(k, size, &mut here);
            }
            for side in 0..2 {
                all.free[side] = L::min_real(all.free[side], here.free[side]);
                all.best[side] = L::min_real(all.best[side], here.best[side]);
                here.best[side].store(&mut column[side]);
            }
        }
        let margin = lanes.splat_real(L::R::from_f64(self.batch.margin));
        let runs = std::mem::take(&mut self.scratch.runs);
        for (b, run) in runs.iter().enumerate() {
            if run.first == run.last {
                continue;
            }
            let bounds = &self.scratch.bounds[2 * b * L::N..];
            let mut bound = [margin; 2];
            let mut open = 0;
            for side in 0..2 {
                bound[side] = lanes.load_real(&bounds[side * L::N..]) - margin;
                open |= L::less_bits(bound[side], all.best[side]);
            }
            if open == 0 {
                for side in 0..2 {
                    all.free[side] = L::min_real(all.free[side], bound[side]);
                }
                continue;
            }
            let Scratch { sums, begins, .. } = &mut self.scratch;
            sums.copy_from_slice(&begins[b * width * L::N..][..width * L::N]);
            let column = &mut columns[run.column];
            let mut here = nothing;
            self.each(run.column, run.first..run.last, &mut here);
            for side in 0..2 {
                all.free[side] = L::min_real(all.free[side], here.free[side]);
                all.best[side] = L::min_real(all.best[side], here.best[side]);
                let least = L::min_real(here.best[side], lanes.load_real(&column[side]));
                least.store(&mut column[side]);
            }
        }
        self.scratch.runs = runs;
        let Scratch { whole, losses, .. } = &mut self.scratch;
        let states = States { n: 0, lanes: L::N, width, left: &[], below: &[], whole };
        self.batch.task.leaves(&states, losses);
        let out = &mut *self.batch.out;
        for side in 0..2 {
            lanes.load_real(&losses[side * L::N..]).store(&mut out.leaf[side]);
            all.free[side].store(&mut out.free[side]);
            all.best[side].store(&mut out.best[side]);
        }
        out.columns = columns;
        *self.batch.scratch = self.scratch;
    }
}

/// Number of thresholds in a run; at first only its last one is evaluated. 0 to evaluate all.
fn run_length(n_cuts: usize) -> usize {
    if n_cuts < LEAST_RUNS {
        return 0;
    }
    ((0.6 * (n_cuts as f64).sqrt()) as usize + 8).min(128)
}

/// Number of rows and events of a size.
pub fn counts_of(size: i64) -> [i64; 2] {
    [rows_of(size), size >> 32]
}

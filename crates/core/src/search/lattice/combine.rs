//! The kernel of one level: from the cells of itemsets to the best splits one level above.
//!
//! For a prefix of M − 1 columns and a vector of lanes, each lane h makes the itemset `prefix ∪
//! {h}` with 2^M sign patterns ("cells"). Inclusion–exclusion over sums of positive itemsets gives
//! the statistics of every cell (SurTree eqs. 16–19, in any order). The value of a cell is its leaf
//! loss or, above the last level, the better of that and its best split. Leaving out one column of
//! the itemset pairs the cells that differ in it: the sum of their values is a candidate for
//! splitting the smaller itemset on that column.

use super::above::{Above, Places};
use super::budgets::Combination;
use super::geometry::{Best, MAX_DEPTH, PATTERNS, PREFIX, best_at, has_row};
use super::implied::{Implied, Patterns, Plan, Split, bits};
use super::losses::Losses;
use super::rates::Rates;
use super::sums::{Last, Prefix, Source, Sums, View};
use crate::data::Smallest;
use crate::simd::{Job, LaneInt, LaneReal, Lanes, Vector};
use std::mem::MaybeUninit;

/// Everything that the kernels read, except the leaf losses of the task. Level 0 is the root, and
/// level `depth` has only leaves.
pub struct Problem<I, R> {
    pub depth: usize,
    /// Number of channels that contribute to the cost of a leaf, which are the first of `sums`.
    pub loss_channels: usize,
    /// Sums by channel: first the channels of the task, then the number of rows and the number of
    /// events. If a channel of the task is one of these numbers, it is not repeated.
    pub sums: Sums<I>,
    /// Channels of counts and of the numbers of rows and events, if they matter, and their minimum
    /// in a leaf.
    pub minima: Vec<(usize, i64)>,
    pub smallest: Smallest,
    /// Number of low bits that the lanes drop, per channel.
    pub shift: Vec<u32>,
    /// Number of bits by which all channels of the task are shifted up instead, so that prices are
    /// whole.
    pub lift: u32,
    /// Price of a split in lane units.
    pub price: R,
    /// How the leaf budgets of the two sides of a split combine: for the cells of level m, (budget
    /// slot, budget slot, slot of the level above).
    pub budgets: [Vec<Combination>; MAX_DEPTH + 1],
    /// Number of budget slots for the best splits of level m.
    pub slots: [usize; MAX_DEPTH + 1],
    /// Whether the number of leaves is not limited: one slot per level, with leaf and split in one.
    pub unlimited: bool,
    /// Prices of tests, if the task has them.
    pub rates: Rates<R>,
    /// Columns that imply others, if the last level leaves out cells that repeat others.
    pub implied: Option<Implied>,
}

/// Most channels that may contribute to the cost of a leaf: those of 32 labels, one for the weight
/// of the rows (for prices), and one for the bound on deeper trees.
pub const MAX_CHANNELS: usize = 34;

impl<I: LaneInt, R: LaneReal> Problem<I, R> {
    /// Runs the level of itemsets of size `M` for the prefix `view` of M − 1 columns, which has `P`
    /// sign patterns.
    ///
    /// On the level of the leaves, `last` contains the sums of `prefix ∪ {lane}` (`[channel ·
    /// stride + lane]`); above it they are in `self.sums`. `below` contains the best splits of
    /// these itemsets, and `above` takes candidates for the itemsets of size M − 1 (for M = 1: one
    /// value per slot, for the root). Returns the number of leaves evaluated.
    #[inline(always)]
    pub fn combine<
        L: Lanes<I = I, R = R>,
        W: Losses<L>,
        H: Losses<L::Half>,
        const PRICED: bool,
        const M: usize,
        const P: usize,
        const LEAVES: bool,
    >(
        &self,
        lanes: L,
        losses: &(W, H),
        view: &View<I>,
        last: Last<I>,
        below: &Best<R>,
        above: &mut Above<R>,
    ) -> u64 {
        let (mut h, n) = (view.prefix.first(), self.sums.geometry.n);
        let implied = if M == MAX_DEPTH { self.implied.as_ref() } else { None };
        let plan = implied.and_then(|implied| implied.plan(view.prefix.columns));
        let cells = plan.map_or(P, |plan| plan.cells.count_ones() as usize);
        if cells == 0 {
            return 0;
        }
        let evaluated = if LEAVES { (2 * cells * (n - h)) as u64 } else { 0 };
        let source = Source::<_, P>::new(&self.sums, view, LEAVES.then_some(last));
        let mut least = Least::default();
        let mut offers = self.offers::<M, P, LEAVES>(&view.prefix, below, above, &mut least);
        let half = lanes.half();
        macro_rules! block {
            ($lanes:ident, $losses:expr) => {{
                let (source, offers) = (&source, &mut offers);
                let block = Block::<_, _, _, PRICED, M, P, LEAVES> {
                    problem: self,
                    losses: $losses,
                    view,
                    source,
                    h,
                    offers,
                };
                match plan {
                    Some(plan) => $lanes.run(Planned { block, plan }),
                    None if M < MAX_DEPTH => block.run($lanes),
                    None => $lanes.run(block),
                }
            }};
        }
        if L::Half::N < L::N {
            while h < n && n - h > L::Half::N {
                block!(lanes, &losses.0);
                h += L::N;
            }
            if h < n {
                block!(half, &losses.1);
            }
        } else {
            while h < n {
                block!(lanes, &losses.0);
                h += L::N;
            }
        }
        match plan {
            Some(plan) => offers.end::<M>(plan.lane.iter().map(|&s| s as usize)),
            None => offers.end::<M>(0..P),
        }
        evaluated
    }

    /// The tables to which the cells of `prefix ∪ {lane}` are offered.
    #[inline(always)]
    pub fn offers<'a, const M: usize, const P: usize, const LEAVES: bool>(
        &'a self,
        prefix: &'a Prefix,
        below: &'a Best<R>,
        above: &'a mut Above<R>,
        least: &'a mut Least<R, P>,
    ) -> Offers<'a, I, R, P> {
        assert_eq!(prefix.size, M - 1);
        const { assert!(P == 1 << (M - 1)) };
        let (n, slots) = (self.sums.geometry.n, self.slots[M - 1]);
        assert!(LEAVES || below.has_row(prefix.rows[P - 1], self.slots[M], M, n));
        let above = above.places(prefix);
        for i in 0..M - 1 {
            assert!(has_row(above.len, prefix.rows[(P - 1) ^ 1 << i], slots, M - 1, n));
        }
        // Few trees have a budget, so often only the first of many slots is used.
        least.0[..slots].fill(MaybeUninit::new([R::INFINITY; P]));
        Offers { problem: self, prefix, below, above, least }
    }

    /// Evaluates one vector of lanes that starts at lane `h`.
    ///
    /// # Safety
    ///
    /// As [`Offers::block`].
    #[inline(always)]
    unsafe fn block<
        L: Lanes<I = I, R = R>,
        S: Losses<L>,
        const PRICED: bool,
        const M: usize,
        const P: usize,
        const LEAVES: bool,
    >(
        &self,
        lanes: L,
        losses: &S,
        view: &View<I>,
        source: &Source<I, P>,
        h: usize,
        offers: &mut Offers<I, R, P>,
    ) {
        let channels = self.loss_channels;
        offers.prefetch::<M>(h);
        // Cells by pattern of the prefix, where the lane's column is true and where it is false.
        let mut yes = [const { MaybeUninit::<[L::Int; P]>::uninit() }; MAX_CHANNELS];
        let yes = source.all_cells::<L, M>(lanes, h, &mut yes[..channels]);
        let infinity = lanes.splat_real(R::INFINITY);
        let mut of_leaves = [const { MaybeUninit::uninit() }; P];
        losses.write(
            lanes,
            yes.as_flattened(),
            &view.cells[..channels],
            &mut of_leaves,
            Patterns::MAX >> (PATTERNS - P),
        );
        // SAFETY: all entries were written.
        let value = unsafe { &mut *of_leaves.as_mut_ptr().cast::<[[L::Real; 2]; P]>() };
        // Copies a small array, so that the compiler can keep it in registers: writes to the tables
        // cannot change it.
        let mut held = *value;
        let value = if P <= 4 { &mut held } else { value };
        let weights = if PRICED {
            let c = channels - 1;
            let mut weights = [[infinity; 2]; P];
            for s in 0..P {
                let other = lanes.splat(view.cells[c][s]) - yes[c][s];
                weights[s] = [L::to_real(yes[c][s]), L::to_real(other)];
            }
            Some(weights)
        } else {
            None
        };
        for &(c, least) in &self.minima {
            let count = if c < channels { yes[c] } else { source.cells::<L, M>(lanes, c, h) };
            let fewest = lanes.splat(I::from_i64(least));
            for s in 0..P {
                let other = lanes.splat(view.cells[c][s]) - count[s];
                value[s][0] = L::if_less(count[s], fewest, infinity, value[s][0]);
                value[s][1] = L::if_less(other, fewest, infinity, value[s][1]);
            }
        }
        let price = lanes.splat_real(self.price);
        // SAFETY: as the caller promises.
        unsafe {
            offers.block::<L, PRICED, M, LEAVES>(lanes, h, value, |_, _| price, weights.as_ref())
        }
    }
}

/// See [`Problem::block`]. For the largest number of columns this is a separate function: inlined
/// in a loop, the addresses of many rows would be computed ahead and need more registers than there
/// are.
struct Block<
    'a,
    'b,
    S,
    I,
    R,
    const PRICED: bool,
    const M: usize,
    const P: usize,
    const LEAVES: bool,
> {
    problem: &'a Problem<I, R>,
    losses: &'a S,
    view: &'a View<I>,
    source: &'a Source<'b, I, P>,
    h: usize,
    offers: &'a mut Offers<'b, I, R, P>,
}

impl<L: Lanes, S: Losses<L>, const PRICED: bool, const M: usize, const P: usize, const LEAVES: bool>
    Job<L> for Block<'_, '_, S, L::I, L::R, PRICED, M, P, LEAVES>
{
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
        let Block { problem, losses, view, source, h, offers } = self;
        // SAFETY: no vector exceeds the last column by more than the padding.
        unsafe {
            problem.block::<_, _, PRICED, M, P, LEAVES>(lanes, losses, view, source, h, offers)
        }
    }
}

/// A block of leaves where the plan needs only some.
struct Planned<'a, B> {
    block: B,
    plan: &'a Plan,
}

impl<L: Lanes, S: Losses<L>, const PRICED: bool, const M: usize, const P: usize, const LEAVES: bool>
    Job<L> for Planned<'_, Block<'_, '_, S, L::I, L::R, PRICED, M, P, LEAVES>>
{
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
        let Planned { block: Block { problem, losses, view, source, h, offers }, plan } = self;
        let channels = problem.loss_channels;
        offers.prefetch::<M>(h);
        let mut yes = [const { MaybeUninit::<[L::Int; P]>::uninit() }; MAX_CHANNELS];
        let yes = source.all_cells::<L, M>(lanes, h, &mut yes[..channels]);
        let infinity = lanes.splat_real(L::R::INFINITY);
        let mut value = [const { MaybeUninit::uninit() }; P];
        losses.write(lanes, yes.as_flattened(), &view.cells[..channels], &mut value, plan.cells);
        for &(c, least) in &problem.minima {
            let count = if c < channels { yes[c] } else { source.cells::<L, M>(lanes, c, h) };
            let fewest = lanes.splat(L::I::from_i64(least));
            for s in bits(plan.cells) {
                let other = lanes.splat(view.cells[c][s]) - count[s];
                // SAFETY: losses of these cells were written.
                let value = unsafe { value[s].assume_init_mut() };
                value[0] = L::if_less(count[s], fewest, infinity, value[0]);
                value[1] = L::if_less(other, fewest, infinity, value[1]);
            }
        }
        // SAFETY: no vector exceeds the last column by more than the padding, and everything that
        // the plan needs was written.
        unsafe { offers.planned::<L, M>(lanes, h, &value, plan) }
    }
}

/// Takes the values of the cells of a prefix with each lane, and offers the sums of cells that
/// differ in one column to the itemset without that column.
pub struct Offers<'a, I, R, const P: usize> {
    problem: &'a Problem<I, R>,
    prefix: &'a Prefix,
    below: &'a Best<R>,
    above: Places<'a, R>,
    least: &'a mut Least<R, P>,
}

/// The prefix itself, split on any of the lanes so far: `[slot][pattern]`. It must not be moved,
/// because a copy right after the first write stalls the processor.
pub struct Least<R, const P: usize>([MaybeUninit<[R; P]>; 2 * PATTERNS]);

impl<R, const P: usize> Default for Least<R, P> {
    #[inline(always)]
    fn default() -> Self {
        Least([const { MaybeUninit::uninit() }; 2 * PATTERNS])
    }
}

impl<I: LaneInt, R: LaneReal, const P: usize> Offers<'_, I, R, P> {
    /// Offers the prefix itself with these sign patterns, split on any of the lanes.
    #[inline(always)]
    pub fn end<const M: usize>(&mut self, patterns: impl Iterator<Item = usize> + Clone) {
        let Offers { problem, prefix, above, least, .. } = self;
        let slots = problem.slots[M - 1];
        for (slot, least) in least.0[..slots].iter().enumerate() {
            // SAFETY: this many entries were written at the start.
            let least = unsafe { least.assume_init_ref() };
            for pattern in patterns.clone() {
                let at = if M == 1 {
                    slot
                } else {
                    let row = prefix.rows[P / 2 - 1];
                    best_at(row, slots, M - 1, slot, pattern, prefix.columns[M - 2])
                };
                assert!(at < above.len);
                // SAFETY: it is an entry of the prefix itself.
                let place = unsafe { &mut above.at(at, 1)[0] };
                let value = least[pattern & (P - 1)];
                *place = if value < *place { value } else { *place };
            }
        }
    }

    /// Prefetches the positions, from lane `h` on, of the itemsets without one of the first columns
    /// of the prefix. They are far from those of the last prefix.
    #[inline(always)]
    fn prefetch<const M: usize>(&self, h: usize) {
        let slots = self.problem.slots[M - 1];
        if M == MAX_DEPTH {
            for column in 0..2 {
                let row = self.prefix.rows[(P - 1) ^ 1 << column];
                for pattern in 0..P {
                    self.above.prefetch(best_at(row, slots, M - 1, 0, pattern, h));
                }
            }
        }
    }

    /// Offers one vector of lanes that starts at lane `h`: cells whose cost is `value` as leaves
    /// and `price` to be split, by pattern of the prefix and by whether the lane's column is false.
    /// `weights` is the amount that the price of a column is charged on.
    ///
    /// # Safety
    ///
    /// Lane `h` must be beyond the prefix, and the vector must not exceed the padding behind the
    /// last column.
    #[inline(always)]
    pub unsafe fn block<
        L: Lanes<I = I, R = R>,
        const PRICED: bool,
        const M: usize,
        const LEAVES: bool,
    >(
        &mut self,
        lanes: L,
        h: usize,
        value: &mut [[L::Real; 2]; P],
        price: impl Fn(usize, usize) -> L::Real,
        weights: Option<&[[L::Real; 2]; P]>,
    ) {
        let Problem { slots, budgets, unlimited, .. } = self.problem;
        let split = |slot: usize, s: usize, no: usize| {
            let (row, pattern) = (self.prefix.rows[P - 1], s | (1 - no) << (M - 1));
            let at = best_at(row, slots[M], M, slot, pattern, h);
            // SAFETY: `below` was checked to have the row, and the vector is within its padding.
            let best = unsafe { lanes.load_real_at(&self.below.0, at) };
            best + price(s, no)
        };
        if LEAVES {
            let (_, _, out) = budgets[M][0];
            // SAFETY: as the caller promises.
            unsafe { self.offer::<L, PRICED, M>(lanes, h, value, value, weights, out) };
            return;
        }
        let infinity = lanes.splat_real(R::INFINITY);
        let mut by_budget;
        let values = if *unlimited {
            // With one slot for everything: the better of leaf and split.
            for s in 0..P {
                for no in 0..2 {
                    value[s][no] = L::min_real(value[s][no], split(0, s, no));
                }
            }
            std::slice::from_ref(value)
        } else {
            by_budget = [[[infinity; 2]; P]; PATTERNS];
            by_budget[0] = *value;
            for slot in 0..slots[M] {
                for s in 0..P {
                    for no in 0..2 {
                        by_budget[slot + 1][s][no] = L::min_real(value[s][no], split(slot, s, no));
                    }
                }
            }
            &by_budget[..]
        };
        for &(a, b, out) in &budgets[M] {
            let (a, b) = (&values[a], &values[b]);
            // SAFETY: as the caller promises.
            unsafe { self.offer::<L, PRICED, M>(lanes, h, a, b, weights, out) };
        }
    }

    /// Offers one vector of lanes of leaves that starts at lane `h`: the splits of a plan, of cells
    /// whose cost is `value`.
    ///
    /// # Safety
    ///
    /// As [`Offers::block`].
    #[inline(always)]
    unsafe fn planned<L: Lanes<I = I, R = R>, const M: usize>(
        &mut self,
        lanes: L,
        h: usize,
        value: &[MaybeUninit<[L::Real; 2]>; P],
        plan: &Plan,
    ) {
        let Offers { problem, prefix, above, least, .. } = self;
        let slots = problem.slots[M - 1];
        // SAFETY: as the caller promises.
        let value = |s: u8| unsafe { value[s as usize & (P - 1)].assume_init_ref() };
        for some in plan.lane.chunks(8) {
            let mut sums = [lanes.splat_real(R::INFINITY); 8];
            for (sum, &s) in sums.iter_mut().zip(some) {
                *sum = value(s)[0] + value(s)[1];
            }
            let mut across = [R::INFINITY; 8];
            L::min_across(&sums, some.len(), &mut across);
            // SAFETY: all slots were written at the start.
            let least = unsafe { least.0[0].assume_init_mut() };
            for (&across, &s) in across.iter().zip(some) {
                let least = &mut least[s as usize & (P - 1)];
                if across < *least {
                    *least = across;
                }
            }
        }
        let above = *above;
        let rows: [(usize, usize); PREFIX] = std::array::from_fn(|column| {
            let row = prefix.rows[(P - 1) ^ 1 << column.min(M - 2)];
            (best_at(row, slots, M - 1, 0, 0, h), row.len)
        });
        for &Split { yes, no, column, rest } in &plan.splits {
            let (first, len) = rows[column as usize & (PREFIX - 1)];
            let (yes, no) = (value(yes), value(no));
            for side in 0..2 {
                let candidate = yes[side] + no[side];
                let at = first + (rest as usize + ((1 - side) << (M - 2))) * len;
                // SAFETY: `above` was checked to have the row, and the vector is within its
                // padding.
                unsafe {
                    let places = above.at(at, L::N);
                    let best = lanes.load_real_at(places, 0);
                    L::min_real(best, candidate).store_at(places, 0);
                }
            }
        }
    }

    /// Offers the sums of cells that differ in one column to the itemsets without it. `a` contains
    /// the values where that column is true, `b` those where it is false, and `weights` the amount
    /// that its price is charged on.
    ///
    /// # Safety
    ///
    /// As [`Offers::block`]; `out` must be one of the slots above.
    #[inline(always)]
    unsafe fn offer<L: Lanes<I = I, R = R>, const PRICED: bool, const M: usize>(
        &mut self,
        lanes: L,
        h: usize,
        a: &[[L::Real; 2]; P],
        b: &[[L::Real; 2]; P],
        weights: Option<&[[L::Real; 2]; P]>,
        out: usize,
    ) {
        let Offers { problem, prefix, above, least, .. } = self;
        let slots = problem.slots[M - 1];
        let columns = &prefix.columns[..M - 1];
        let mut lane_rate = problem.rates.of_lanes::<L, PRICED>(lanes, None, h);
        if PRICED {
            for &other in columns {
                lane_rate = L::min_real(
                    lane_rate,
                    problem.rates.of_lanes::<L, PRICED>(lanes, Some(other), h),
                );
            }
        }
        let cells = Cells::<L, PRICED, P> { a, b, weights };
        for group in (0..P).step_by(8) {
            let size = (P - group).min(8);
            let mut sums = [lanes.splat_real(R::INFINITY); 8];
            for s in 0..size {
                sums[s] = cells.pair((group + s, 0), (group + s, 1), lane_rate);
            }
            let mut across = [R::INFINITY; 8];
            L::min_across(&sums, size, &mut across);
            // SAFETY: all slots were written at the start.
            let least = unsafe { least.0[out].assume_init_mut() };
            for s in 0..size {
                let least = &mut least[group + s];
                if across[s] < *least {
                    *least = across[s];
                }
            }
        }
        // A copy, because the compiler would read the address again after every write.
        let above = *above;
        for i in 0..M - 1 {
            let low = (1usize << i) - 1;
            let row = prefix.rows[(P - 1) ^ 1 << i];
            let first = best_at(row, slots, M - 1, out, 0, h);
            let rate = problem.rates.of_prefix::<L, PRICED>(lanes, columns, i, h);
            for rest in 0..P / 2 {
                let s = (rest & low) | (rest & !low) << 1;
                for no in 0..2 {
                    let candidate = cells.pair((s | 1 << i, no), (s, no), rate);
                    let pattern = rest | (1 - no) << (M - 2);
                    let at = first + pattern * row.len;
                    // SAFETY: `above` was checked to have the row, and the vector is within its
                    // padding.
                    unsafe {
                        let places = above.at(at, L::N);
                        let best = lanes.load_real_at(places, 0);
                        L::min_real(best, candidate).store_at(places, 0);
                    }
                }
            }
        }
    }
}

/// The arguments of [`Offers::offer`]: values and weights by pattern of the prefix, and by whether
/// the lane's column is false.
struct Cells<'a, L: Lanes, const PRICED: bool, const P: usize> {
    a: &'a [[L::Real; 2]; P],
    b: &'a [[L::Real; 2]; P],
    weights: Option<&'a [[L::Real; 2]; P]>,
}

impl<L: Lanes, const PRICED: bool, const P: usize> Cells<'_, L, PRICED, P> {
    /// The sum of two cells that differ in one column, and its price at this rate. A method and not
    /// a closure, which the compiler can decide not to inline.
    #[inline(always)]
    fn pair(&self, with: (usize, usize), without: (usize, usize), rate: L::Real) -> L::Real {
        let sum = self.a[with.0][with.1] + self.b[without.0][without.1];
        match self.weights {
            Some(w) if PRICED => sum + rate * (w[with.0][with.1] + w[without.0][without.1]),
            _ => sum,
        }
    }
}

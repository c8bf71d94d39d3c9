//! Leaf losses: all that a task contributes to the passes over the lattice, and the only part that
//! is compiled for each task.

use super::geometry::PATTERNS;
use super::implied::{Patterns, bits};
use crate::simd::{FloatLanes, Job, LaneInt, Lanes};
use crate::task::LaneTask;
use std::mem::MaybeUninit;

/// Takes the statistics of cells where the column of the lane is true (by channel and pattern of
/// the prefix) and those of the prefix itself, and writes the losses of some patterns.
type Write<'a, L> = dyn Fn(
        &[<L as Lanes>::Int],
        &[[<L as Lanes>::I; PATTERNS]],
        &mut [MaybeUninit<[<L as Lanes>::Real; 2]>],
        Patterns,
    ) + 'a;

/// The leaf losses of a task.
pub struct LossOf<'a, L: Lanes>(Box<Write<'a, L>>);

impl<'a, L: FloatLanes> LossOf<'a, L> {
    /// The losses for sums divided by `2^shift[channel]`.
    pub fn new<T: LaneTask>(task: &'a T, lanes: L, shift: &[u32]) -> Self {
        let constants = task.lane_constants(lanes, shift);
        LossOf(Box::new(move |yes, both, out, which| {
            lanes.run(LeafLosses { task, constants, yes, both, out, which });
        }))
    }
}

/// The losses of leaves, as the kernels need them.
///
/// # Safety
///
/// An implementation must write all requested losses.
pub unsafe trait Losses<L: Lanes> {
    /// Writes the losses of a block of cells, where the column of the lane is true and where it is
    /// false, for the patterns `which` of the prefix. `yes` contains the statistics where the
    /// column is true, `[channel · patterns + pattern]`, and `both` those of the prefix.
    fn write(
        &self,
        lanes: L,
        yes: &[L::Int],
        both: &[[L::I; PATTERNS]],
        out: &mut [MaybeUninit<[L::Real; 2]>],
        which: Patterns,
    );
}

// SAFETY: `LeafLosses` writes them all.
unsafe impl<L: Lanes> Losses<L> for LossOf<'_, L> {
    #[inline(always)]
    fn write(
        &self,
        _: L,
        yes: &[L::Int],
        both: &[[L::I; PATTERNS]],
        out: &mut [MaybeUninit<[L::Real; 2]>],
        which: Patterns,
    ) {
        (self.0)(yes, both, out, which);
    }
}

/// The least of the channels, with an amount added to the last one. This is the same for all tasks,
/// so it is compiled into the kernels.
pub struct LeastChannel<L: Lanes>(L::Int);

impl<L: Lanes> LeastChannel<L> {
    pub fn new(lanes: L, more: i64) -> Self {
        LeastChannel(lanes.splat(L::I::from_i64(more)))
    }
}

// SAFETY: every requested pattern is written.
unsafe impl<L: Lanes> Losses<L> for LeastChannel<L> {
    #[inline(always)]
    fn write(
        &self,
        lanes: L,
        yes: &[L::Int],
        both: &[[L::I; PATTERNS]],
        out: &mut [MaybeUninit<[L::Real; 2]>],
        which: Patterns,
    ) {
        let patterns = out.len();
        let (last_both, both) = both.split_last().expect("a channel");
        let (yes, last_yes) = yes.split_at(both.len() * patterns);
        for (s, out) in out.iter_mut().enumerate() {
            if which >> s & 1 == 0 {
                continue;
            }
            let no = lanes.splat(last_both[s]) - last_yes[s];
            let (mut with, mut without) = (last_yes[s] + self.0, no + self.0);
            for (yes, both) in yes.chunks_exact(patterns).zip(both) {
                with = L::min(with, yes[s]);
                without = L::min(without, lanes.splat(both[s]) - yes[s]);
            }
            out.write([L::to_real(with), L::to_real(without)]);
        }
    }
}

struct LeafLosses<'a, L: FloatLanes, T: LaneTask> {
    task: &'a T,
    constants: T::Constants<L>,
    yes: &'a [L::Int],
    both: &'a [[L::I; PATTERNS]],
    out: &'a mut [MaybeUninit<[L::Real; 2]>],
    which: Patterns,
}

impl<L: FloatLanes, T: LaneTask> Job<L> for LeafLosses<'_, L, T> {
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
        let LeafLosses { task, constants, yes, both, out, which } = self;
        // A number that is known at compile time for most tasks.
        let (patterns, channels) = (out.len(), task.loss_channels());
        assert!(patterns <= PATTERNS && both.len() == channels);
        assert!(yes.len() == channels * patterns);
        for s in bits(which) {
            let out = &mut out[s];
            let (mut with, mut without) = (task.lane_start(lanes), task.lane_start(lanes));
            for (c, both) in both[..channels].iter().enumerate() {
                let yes = yes[c * patterns + s];
                with = task.lane_fold(lanes, &constants, with, c, yes);
                without = task.lane_fold(lanes, &constants, without, c, lanes.splat(both[s]) - yes);
            }
            let loss = |state| task.lane_loss(lanes, constants, state);
            out.write([loss(with), loss(without)]);
        }
    }
}

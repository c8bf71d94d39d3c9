//! Leaf losses: all that a task adds to the passes over the lattice, and all that is compiled for
//! each task.

use super::geometry::PATTERNS;
use crate::simd::{Job, Lanes};
use crate::task::LaneTask;
use std::mem::MaybeUninit;

/// Told the statistics of cells where the column of the lane is true, by channel and pattern of the
/// prefix, and those of the prefix itself; writes every loss.
type Write<'a, L> = dyn Fn(
        &[<L as Lanes>::Int],
        &[[<L as Lanes>::I; PATTERNS]],
        &mut [MaybeUninit<[<L as Lanes>::Real; 2]>],
    ) + 'a;

/// The leaf losses of a task.
pub struct LossOf<'a, L: Lanes>(Box<Write<'a, L>>);

impl<'a, L: Lanes> LossOf<'a, L> {
    /// With sums divided by `2^shift[channel]`.
    pub fn new<T: LaneTask>(task: &'a T, lanes: L, shift: &[u32]) -> Self {
        let constants = task.lane_constants(lanes, shift);
        LossOf(Box::new(move |yes, both, out| {
            lanes.run(LeafLosses { task, constants, yes, both, out });
        }))
    }

    /// Losses of a block of cells, where the column of the lane is true and where it is false, by
    /// pattern of the prefix. `yes` are the statistics of the former, `both` those of the prefix.
    #[inline(always)]
    pub fn write<'b, const P: usize>(
        &self,
        yes: &[[L::Int; P]],
        both: &[[L::I; PATTERNS]],
        out: &'b mut [MaybeUninit<[L::Real; 2]>; P],
    ) -> &'b mut [[L::Real; 2]; P] {
        (self.0)(yes.as_flattened(), both, out);
        // SAFETY: `LeafLosses` has written every one.
        unsafe { &mut *out.as_mut_ptr().cast::<[[L::Real; 2]; P]>() }
    }
}

/// The losses of a task in whole vectors and in those for tails.
pub struct Losses<'a, L: Lanes> {
    pub whole: LossOf<'a, L>,
    pub half: LossOf<'a, L::Half>,
}

struct LeafLosses<'a, L: Lanes, T: LaneTask> {
    task: &'a T,
    constants: T::Constants<L>,
    yes: &'a [L::Int],
    both: &'a [[L::I; PATTERNS]],
    out: &'a mut [MaybeUninit<[L::Real; 2]>],
}

impl<L: Lanes, T: LaneTask> Job<L> for LeafLosses<'_, L, T> {
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
        let LeafLosses { task, constants, yes, both, out } = self;
        // A number that most tasks know when they are compiled.
        let (patterns, channels) = (out.len(), task.channels());
        assert!(patterns <= PATTERNS && both.len() == channels);
        assert!(yes.len() == channels * patterns);
        for (s, out) in out.iter_mut().enumerate() {
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

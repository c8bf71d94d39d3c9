//! Lane losses of splits: the only part of the kernel that is compiled for each task.

use crate::simd::{Backend, FloatLanes, Job, Lanes, Vector, with_token};
use crate::task::Swept;

/// Most channels.
const MOST: usize = 32;

/// Sums of one column at some of its thresholds.
pub struct States<'a, I> {
    /// Number of thresholds.
    pub n: usize,
    /// Number of lanes of the backend.
    pub lanes: usize,
    /// Numbers per row; the first ones are the channels of the task.
    pub width: usize,
    /// Sums of the rows on the left side, `[threshold][number][lane]`.
    pub left: &'a [I],
    /// Sums of all rows of the node up to the threshold, `[threshold][number]`.
    pub below: &'a [I],
    /// Sums of all rows on both sides, `[side][number][lane]`.
    pub whole: &'a [I],
}

/// The losses of a task in lanes.
pub trait Losses<I, R>: Sync {
    /// Losses of both sides as leaves, `[side][lane]`.
    fn leaves(&self, states: &States<I>, out: &mut [R]);

    /// Losses of the splits of both sides, `[threshold][side][lane]`.
    fn splits(&self, states: &States<I>, out: &mut [R]);

    /// Lower bounds on the losses of the splits between each threshold and the next,
    /// `[threshold][side][lane]`, given the losses at these thresholds.
    fn between(&self, states: &States<I>, losses: &[R], out: &mut [R]);
}

/// The losses of a task, for statistics that were shifted for the lanes.
pub struct OfTask<'a, T> {
    pub task: &'a T,
    pub shift: &'a [u32],
    pub backend: Backend,
}

/// What to compute.
#[derive(Clone, Copy)]
enum What<'a, R> {
    Leaves,
    Splits,
    Between(&'a [R]),
}

macro_rules! losses {
    ($i:ty, $r:ty, $width:ident) => {
        impl<T: Swept> Losses<$i, $r> for OfTask<'_, T> {
            fn leaves(&self, states: &States<$i>, out: &mut [$r]) {
                self.$width(states, What::Leaves, out);
            }
            fn splits(&self, states: &States<$i>, out: &mut [$r]) {
                self.$width(states, What::Splits, out);
            }
            fn between(&self, states: &States<$i>, losses: &[$r], out: &mut [$r]) {
                self.$width(states, What::Between(losses), out);
            }
        }

        impl<T: Swept> OfTask<'_, T> {
            fn $width(&self, states: &States<$i>, what: What<$r>, out: &mut [$r]) {
                let OfTask { task, shift, backend } = *self;
                with_token!(backend, token => {
                    token.$width().run(Evaluate { task, shift, states, what, out });
                });
            }
        }
    };
}

losses!(i32, f32, single);
losses!(i64, f64, double);

struct Evaluate<'a, T, I, R> {
    task: &'a T,
    shift: &'a [u32],
    states: &'a States<'a, I>,
    what: What<'a, R>,
    out: &'a mut [R],
}

impl<L: FloatLanes, T: Swept> Job<L> for Evaluate<'_, T, L::I, L::R> {
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
        let Evaluate { task, shift, states, what, out } = self;
        let constants = task.lane_constants(lanes, shift);
        // A number that is known at compile time for most tasks.
        let n = task.loss_channels();
        assert!(n <= MOST && n <= states.width && states.lanes == L::N);
        // No closures, because they would not be compiled for the instruction set.
        match what {
            What::Leaves => {
                for side in 0..2 {
                    let mut state = task.lane_start(lanes);
                    for v in 0..n {
                        let sum = lanes.load(&states.whole[(side * states.width + v) * L::N..]);
                        state = task.lane_fold(lanes, &constants, state, v, sum);
                    }
                    task.lane_loss(lanes, constants, state).store(&mut out[side * L::N..]);
                }
            }
            What::Splits => {
                for at in 0..states.n {
                    let start = task.lane_start(lanes);
                    let (mut left, mut left_rest) = (start, start);
                    let (mut right, mut right_rest) = (start, start);
                    for v in 0..n {
                        let sum = lanes.load(&states.left[(at * states.width + v) * L::N..]);
                        let whole = lanes.load(&states.whole[v * L::N..]);
                        left = task.lane_fold(lanes, &constants, left, v, sum);
                        left_rest = task.lane_fold(lanes, &constants, left_rest, v, whole - sum);
                        let sum = lanes.splat(states.below[at * states.width + v]) - sum;
                        let whole = lanes.load(&states.whole[(states.width + v) * L::N..]);
                        right = task.lane_fold(lanes, &constants, right, v, sum);
                        right_rest = task.lane_fold(lanes, &constants, right_rest, v, whole - sum);
                    }
                    let one = task.lane_loss(lanes, constants, left)
                        + task.lane_loss(lanes, constants, left_rest);
                    one.store(&mut out[2 * at * L::N..]);
                    let two = task.lane_loss(lanes, constants, right)
                        + task.lane_loss(lanes, constants, right_rest);
                    two.store(&mut out[(2 * at + 1) * L::N..]);
                }
            }
            What::Between(losses) => {
                let zero = lanes.splat(L::I::default());
                let (mut from, mut to, mut whole) = ([zero; MOST], [zero; MOST], [zero; MOST]);
                for side in 0..2 {
                    for v in 0..n {
                        whole[v] = lanes.load(&states.whole[(side * states.width + v) * L::N..]);
                    }
                    for at in 0..states.n {
                        for v in 0..n {
                            from[v] = to[v];
                            to[v] = lanes.load(&states.left[(at * states.width + v) * L::N..]);
                            if side == 1 {
                                to[v] = lanes.splat(states.below[at * states.width + v]) - to[v];
                            }
                        }
                        if at == 0 {
                            continue;
                        }
                        let others =
                            task.lane_least(lanes, &constants, &from[..n], &to[..n], &whole[..n]);
                        let before = lanes.load_real(&losses[(2 * (at - 1) + side) * L::N..]);
                        let here = lanes.load_real(&losses[(2 * at + side) * L::N..]);
                        let bound = L::min_real(others, L::min_real(before, here));
                        bound.store(&mut out[(2 * (at - 1) + side) * L::N..]);
                    }
                }
            }
        }
    }
}

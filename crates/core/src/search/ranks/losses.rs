//! Lane losses of splits: all of the kernel that is compiled for each task.

use crate::simd::{Backend, Job, LaneInt, Lanes, Vector, with_token};
use crate::task::{Swept, lane_loss_of};

/// Most channels.
const MOST: usize = 32;

/// Sums of one column at some of its thresholds.
pub struct States<'a, I> {
    /// Lanes of the backend.
    pub lanes: usize,
    /// Numbers per row, of which the first are the channels of the task.
    pub width: usize,
    /// Of the rows on the left side, `[threshold][number][lane]`.
    pub left: &'a [I],
    /// Of all rows, `[threshold][number]`.
    pub below: &'a [I],
    /// Of all rows of both sides, `[side][number][lane]`.
    pub whole: &'a [I],
}

impl<I: LaneInt> States<'_, I> {
    fn len(&self) -> usize {
        self.below.len() / self.width
    }
}

/// The losses of a task in lanes.
pub trait Losses<I, R>: Sync {
    /// Loss of both sides as leaves, `[side][lane]`.
    fn leaves(&self, states: &States<I>, out: &mut [R]);

    /// Loss of the splits of both sides, `[threshold][side][lane]`.
    fn splits(&self, states: &States<I>, out: &mut [R]);

    /// What no split between a threshold and the next loses less than, `[threshold][side][lane]`,
    /// given the loss of these themselves.
    fn between(&self, states: &States<I>, losses: &[R], out: &mut [R]);
}

/// Those of a task with statistics that lanes have shifted.
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

impl<L: Lanes, T: Swept> Job<L> for Evaluate<'_, T, L::I, L::R> {
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
        let Evaluate { task, shift, states, what, out } = self;
        let constants = task.lane_constants(lanes, shift);
        // A number that most tasks know when they are compiled.
        let n = task.channels();
        assert!(n <= MOST && n <= states.width && states.lanes == L::N);
        let zero = lanes.splat(L::I::default());
        let loss = |sums: &[L::Int; MOST]| lane_loss_of(task, lanes, &constants, &sums[..n]);
        let whole = [0, 1].map(|side: usize| {
            let mut whole = [zero; MOST];
            for (v, whole) in whole[..n].iter_mut().enumerate() {
                *whole = lanes.load(&states.whole[(side * states.width + v) * L::N..]);
            }
            whole
        });
        // Sums of the rows not above a threshold on either side.
        let sides = |at: usize| {
            let (mut left, mut right) = ([zero; MOST], [zero; MOST]);
            let below = &states.below[at * states.width..][..n];
            let begin = at * states.width * L::N;
            for v in 0..n {
                left[v] = lanes.load(&states.left[begin + v * L::N..]);
                right[v] = lanes.splat(below[v]) - left[v];
            }
            [left, right]
        };
        match what {
            What::Leaves => {
                for side in 0..2 {
                    loss(&whole[side]).store(&mut out[side * L::N..]);
                }
            }
            What::Splits => {
                for at in 0..states.len() {
                    let parts = sides(at);
                    for side in 0..2 {
                        let mut rest = [zero; MOST];
                        for v in 0..n {
                            rest[v] = whole[side][v] - parts[side][v];
                        }
                        let both = loss(&parts[side]) + loss(&rest);
                        both.store(&mut out[(2 * at + side) * L::N..]);
                    }
                }
            }
            What::Between(losses) => {
                if states.len() == 0 {
                    return;
                }
                let mut from = sides(0);
                for at in 1..states.len() {
                    let to = sides(at);
                    for side in 0..2 {
                        let (from, to) = (&from[side][..n], &to[side][..n]);
                        let whole = &whole[side][..n];
                        let others = task.lane_least(lanes, &constants, from, to, whole);
                        let end = |at: usize| lanes.load_real(&losses[(2 * at + side) * L::N..]);
                        let bound = L::min_real(others, L::min_real(end(at - 1), end(at)));
                        bound.store(&mut out[(2 * (at - 1) + side) * L::N..]);
                    }
                    from = to;
                }
            }
        }
    }
}

//! Smoothed outcomes, as from a teacher.

use bristlecone_oracle::instances::{Instance, Random};
use bristlecone_oracle::sums::one_hot;

use crate::harness::{SCALE, ensure, for_each_of};

/// How outcomes are smoothed. The smoothed outcome of a row depends only on its own values, so it
/// stays the same if other rows are removed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Smoothing {
    /// The outcomes themselves.
    Observed,
    /// Half of the outcome and half of a multiple of an eighth, with ties.
    Halved,
    /// Half of the outcome and half of any number.
    Mixed,
    /// Weights of any size, or zero.
    Wide,
    /// Numbers from 1e-16 to 1, so that the smallest do not change the sums.
    Steep,
}

use Smoothing::{Halved, Mixed, Observed, Steep, Wide};

impl Smoothing {
    /// A random kind, or None in half of the cases.
    pub fn random(random: &mut Random) -> Option<Smoothing> {
        random.chance(0.5).then(|| random.pick(&[Observed, Halved, Mixed, Mixed, Wide, Steep]))
    }

    /// A random number for a row.
    fn value(self, random: &mut Random) -> f64 {
        match self {
            Observed => 0.0,
            Halved => random.below(9) as f64 / 8.0,
            Mixed => random.unit(),
            Wide if random.chance(0.2) => 0.0,
            Wide => 10f64.powf(6.0 * random.unit() - 4.0),
            Steep => 10f64.powf(-16.0 * random.unit()),
        }
    }

    /// Events of every row.
    pub fn events(self, instance: &Instance) -> Vec<f64> {
        let observed = instance.sample.event.iter().map(|&event| f64::from(u8::from(event)));
        let of_row = |(i, observed): (usize, f64)| {
            let value = self.value(&mut of_row(instance, i));
            match self {
                Observed => observed,
                Halved | Mixed => 0.5 * (observed + value),
                Wide | Steep => value,
            }
        };
        observed.enumerate().map(of_row).collect()
    }

    /// Share of every class in every row; the shares of a row sum to 1 except for rounding.
    pub fn shares(self, instance: &Instance) -> Vec<Vec<f64>> {
        let one_hot = one_hot(&instance.labels, instance.n_classes);
        let of_row = |(i, observed): (usize, Vec<f64>)| {
            let random = &mut of_row(instance, i);
            if self == Halved {
                // One half and two quarters, which sum to exactly 1.
                let mut row: Vec<f64> = observed.iter().map(|share| 0.5 * share).collect();
                (0..2).for_each(|_| row[random.below(instance.n_classes)] += 0.25);
                return row;
            }
            let values: Vec<f64> = observed.iter().map(|_| self.value(random)).collect();
            let total: f64 = values.iter().sum();
            if total == 0.0 {
                return observed;
            }
            let own = if self == Mixed { 0.5 } else { 0.0 };
            let mix = |(share, value)| own * share + (1.0 - own) * value / total;
            observed.iter().zip(values).map(mix).collect()
        };
        one_hot.into_iter().enumerate().map(of_row).collect()
    }
}

/// Random numbers of a row.
fn of_row(instance: &Instance, i: usize) -> Random {
    let (time, target) = (instance.sample.time[i].to_bits(), instance.target[i].to_bits());
    Random::new(time ^ target.rotate_left(17))
}

#[test]
fn outcomes_that_are_no_different_change_nothing() {
    for_each_of(&["likelihood", "gini", "entropy"], 30 * SCALE, (40, 6, &[1, 2, 3, 5]), |case| {
        let answer = |smoothing| {
            let mut case = case.clone();
            case.question.parameters.smoothing = smoothing;
            case.solve(&case.settings()).map(|a| (a.tree, a.objective, a.lower_bound, a.nodes))
        };
        let (without, with) = (answer(None)?, answer(Some(Observed))?);
        ensure(without == with, || format!("{without:?} but {with:?}"))
    });
}

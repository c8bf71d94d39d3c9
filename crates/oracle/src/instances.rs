//! Small random instances with everything that can go wrong: ties, zeros, constants, duplicates,
//! complements, nested thresholds, heavy censoring, unusual weights.
//!
//! The same seed gives the same instance on every machine.

use crate::survival::Sample;

/// SplitMix64 (Steele, Lea, Flood 2014).
pub struct Random(u64);

impl Random {
    /// A separate stream for every seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform on [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform on 0, …, n − 1.
    pub fn below(&mut self, n: usize) -> usize {
        (self.unit() * n as f64) as usize
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// One of the values.
    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// 0, …, n − 1 in random order.
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }
}

/// One problem for all tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// `features[row][feature]`.
    pub features: Vec<Vec<bool>>,
    /// Outcome for the survival task, and the weights for all tasks. At least one event has a
    /// positive weight.
    pub sample: Sample,
    /// Class of every row, below `n_classes`; some classes may be absent.
    pub labels: Vec<usize>,
    /// Number of classes, 2 to 4.
    pub n_classes: usize,
    /// Cost of every label for every row, non-negative.
    pub costs: Vec<Vec<f64>>,
    /// Target of a regression.
    pub target: Vec<f64>,
    /// Group of every row, of two; all rows may belong to one group.
    pub group: Vec<bool>,
}

impl Instance {
    /// An instance of 1 to `max_rows` rows and 0 to `max_features` features.
    pub fn random(seed: u64, max_rows: usize, max_features: usize) -> Instance {
        let random = &mut Random::new(seed);
        let n = 1 + random.below(max_rows);
        let n_features = random.below(max_features + 1);
        // The outcome depends on the features, so that trees are useful.
        let signal: Vec<f64> = (0..n).map(|_| random.unit()).collect();
        let columns = columns(random, &signal, n_features);
        let n_classes = 2 + random.below(3);
        Instance {
            features: (0..n).map(|i| columns.iter().map(|column| column[i]).collect()).collect(),
            labels: labels(random, &signal, n_classes),
            sample: sample(random, &signal),
            costs: costs(random, &signal, n_classes),
            target: target(random, &signal),
            group: (0..n).map(|_| random.chance(0.4)).collect(),
            n_classes,
        }
    }

    /// Rows with these features and labels, a weight of one, and an event at time one.
    pub fn of_labels(features: Vec<Vec<bool>>, labels: Vec<usize>, n_classes: usize) -> Instance {
        let n = labels.len();
        let (time, event, weight) = (vec![1.0; n], vec![true; n], vec![1.0; n]);
        Instance {
            features,
            sample: Sample { time, event, weight, entry: None },
            labels,
            n_classes,
            costs: vec![vec![0.0; n_classes]; n],
            target: vec![0.0; n],
            group: vec![false; n],
        }
    }

    /// All rows.
    pub fn rows(&self) -> Vec<usize> {
        self.sample.rows()
    }

    /// Number of features.
    pub fn n_features(&self) -> usize {
        self.features[0].len()
    }

    /// These rows and features, in this order.
    pub fn select(&self, rows: &[usize], features: &[usize]) -> Instance {
        let of = |values: &[f64]| rows.iter().map(|&i| values[i]).collect::<Vec<f64>>();
        let row = |i: usize| features.iter().map(|&f| self.features[i][f]).collect();
        Instance {
            features: rows.iter().map(|&i| row(i)).collect(),
            sample: Sample {
                time: of(&self.sample.time),
                event: rows.iter().map(|&i| self.sample.event[i]).collect(),
                weight: of(&self.sample.weight),
                entry: self.sample.entry.as_deref().map(of),
            },
            labels: rows.iter().map(|&i| self.labels[i]).collect(),
            n_classes: self.n_classes,
            costs: rows.iter().map(|&i| self.costs[i].clone()).collect(),
            target: of(&self.target),
            group: rows.iter().map(|&i| self.group[i]).collect(),
        }
    }

    /// Removes rows and features, one at a time, as long as `fails` returns true, so that the
    /// result is a minimal example of a failure. At least one event with a positive weight remains.
    pub fn minimise(self, fails: impl Fn(&Instance) -> bool) -> Instance {
        let without = |n: usize, k: usize| (0..n).filter(|&i| i != k).collect::<Vec<_>>();
        let mut smallest = self;
        loop {
            let (rows, features) =
                (smallest.rows(), (0..smallest.n_features()).collect::<Vec<_>>());
            let fewer_rows = rows.iter().map(|&i| (without(rows.len(), i), features.clone()));
            let fewer_features =
                features.iter().map(|&f| (rows.clone(), without(features.len(), f)));
            let smaller = fewer_rows
                .chain(fewer_features)
                .map(|(rows, features)| smallest.select(&rows, &features))
                .find(|instance| {
                    !instance.sample.event_times(&instance.rows()).is_empty() && fails(instance)
                });
            match smaller {
                Some(instance) => smallest = instance,
                None => return smallest,
            }
        }
    }
}

fn columns(random: &mut Random, signal: &[f64], n_features: usize) -> Vec<Vec<bool>> {
    let n = signal.len();
    let mut columns: Vec<Vec<bool>> = vec![];
    for f in 0..n_features {
        let column = match random.below(10) {
            0 => vec![random.chance(0.5); n],
            1 if f > 0 => columns[random.below(f)].clone(),
            2 if f > 0 => columns[random.below(f)].iter().map(|value| !value).collect(),
            3 if f > 0 => {
                let mut near = columns[random.below(f)].clone();
                let row = random.below(n);
                near[row] = !near[row];
                near
            }
            4..7 => {
                let threshold = random.unit();
                let noise = random.pick(&[0.0, 0.1, 0.3]);
                signal.iter().map(|&x| (x <= threshold) != random.chance(noise)).collect()
            }
            _ => {
                let density = random.pick(&[0.05, 0.2, 0.5, 0.8, 0.95]);
                (0..n).map(|_| random.chance(density)).collect()
            }
        };
        columns.push(column);
    }
    columns
}

fn labels(random: &mut Random, signal: &[f64], n_classes: usize) -> Vec<usize> {
    let noise = random.pick(&[0.0, 0.2, 1.0]);
    let of_signal = |x: f64| (x * n_classes as f64) as usize;
    let of_row = |&x: &f64| {
        if random.chance(noise) { random.below(n_classes) } else { of_signal(x) }
    };
    signal.iter().map(of_row).collect()
}

fn costs(random: &mut Random, signal: &[f64], n_labels: usize) -> Vec<Vec<f64>> {
    let style = random.below(3);
    let row = |x: &f64| {
        let mut of_label = |k: usize| {
            let far = (x * n_labels as f64 - k as f64 - 0.5).abs();
            match style {
                0 => (3.0 * far).floor(),
                1 => random.below(4) as f64,
                _ => far * 10f64.powf(3.0 * random.unit() - 2.0),
            }
        };
        (0..n_labels).map(&mut of_label).collect()
    };
    signal.iter().map(row).collect()
}

fn target(random: &mut Random, signal: &[f64]) -> Vec<f64> {
    let style = random.below(4);
    let offset = random.pick(&[0.0, -7.5, 1e4]);
    let of_row = |&x: &f64| match style {
        0 => (10.0 * x).floor(),
        1 => offset + x + 0.3 * random.unit(),
        2 => offset + (6.0 * random.unit() - 3.0).exp() * x,
        _ => 2.0,
    };
    signal.iter().map(of_row).collect()
}

fn sample(random: &mut Random, signal: &[f64]) -> Sample {
    let n = signal.len();
    let style = random.below(5);
    let effect = random.pick(&[0.0, 1.0, 3.0]);
    let time = signal.iter().map(|x| {
        let t = -(1.0 - random.unit()).ln() * (effect * x).exp();
        match style {
            0 => t,
            1 => t.round(),
            2 => (4.0 * t).floor(),
            3 => 10f64.powf(t - 4.0),
            _ => 1.0,
        }
    });
    let time: Vec<f64> = time.collect();
    let observed = random.pick(&[0.1, 0.5, 0.9, 1.0]);
    let mut event: Vec<bool> = (0..n).map(|_| random.chance(observed)).collect();
    let style = random.below(5);
    let weight = (0..n).map(|_| match style {
        0 => 1.0,
        1 => (1 + random.below(5)) as f64,
        2 => 0.1 + random.unit(),
        3 => 10f64.powf(6.0 * random.unit() - 3.0),
        _ => random.below(3) as f64,
    });
    let mut weight: Vec<f64> = weight.collect();
    let sure = random.below(n);
    event[sure] = true;
    weight[sure] = weight[sure].max(0.5);
    let entry = (random.chance(0.2) && !time.contains(&0.0)).then(|| {
        let before = |t: f64| {
            let candidate = random.pick(&time);
            if candidate < t { candidate } else { 0.0 }
        };
        time.iter().copied().map(before).collect()
    });
    Sample { time, event, weight, entry }
}

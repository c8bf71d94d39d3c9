//! Tests of the kernels of the Brier score: the losses of both sides of a split, as by the oracle.

use bristlecone_core::error::Error;
use bristlecone_core::search::curve::{kernel, rows};
use bristlecone_core::simd::Backend;
use bristlecone_core::survival::Observations;
use bristlecone_core::task::brier::Brier;
use bristlecone_core::task::curve::{CurveTask, LeafCurve, Rounding};
use bristlecone_core::task::fair_brier::FairBrier;
use bristlecone_oracle::brier::Brier as Reference;
use bristlecone_oracle::instances::{Instance, Random};
use bristlecone_oracle::survival::Sample;

use crate::harness::{SCALE, agree, ensure, for_each_of, matrix};
use crate::losses::restricted_mean;

fn observations(sample: &Sample) -> Observations<'_> {
    let (time, event, weight) = (&sample.time, &sample.event, Some(&sample.weight[..]));
    Observations { time, event, weight, ..Observations::default() }
}

pub fn task(sample: &Sample, curve: LeafCurve) -> Result<Brier, Error> {
    Brier::new(&observations(sample), 0.0, curve, None)
}

/// Curve tasks over these rows: with each kind of curve, and with restricted means.
fn tasks(sample: &Sample) -> Result<Vec<Box<dyn CurveTask>>, Error> {
    let mut tasks: Vec<Box<dyn CurveTask>> = Vec::new();
    for curve in [LeafCurve::KaplanMeier, LeafCurve::BrierOptimal] {
        tasks.push(Box::new(task(sample, curve)?));
    }
    // One horizon is before the last time and one after it. The groups do not matter here.
    let group: Vec<bool> = (0..sample.time.len()).map(|i| i % 2 == 0).collect();
    let last = sample.time.iter().copied().fold(0.0, f64::max);
    for tau in [0.6 * last, 1.3 * last].into_iter().filter(|&tau| tau > 0.0) {
        if let Ok(task) = FairBrier::new(&observations(sample), &group, 1.0, tau, 0.0) {
            tasks.push(Box::new(task));
        }
    }
    Ok(tasks)
}

/// Compares every split of the root on every backend with the oracle's losses of its sides.
fn kernels_agree(instance: &Instance) -> Result<(), String> {
    let reference = Reference::new(&instance.sample);
    for task in tasks(&instance.sample).map_err(|e| e.to_string())? {
        let (curve, horizon) = (task.curve(), task.horizon());
        let (root, tables) =
            rows::Tables::new(&*task, &matrix(instance), true, None, false).unwrap();
        let off_means = Rounding::of_means(task.timeline());
        let passes = Rounding::of_passes(task.timeline(), curve, 1, 0);
        let loss_of = |rows: &[usize]| match curve {
            LeafCurve::KaplanMeier => reference.kaplan_meier(rows).to_f64(),
            LeafCurve::BrierOptimal => reference.antitonic(rows).to_f64(),
        };
        let mean_of = |rows: &[usize]| {
            horizon.map_or(0.0, |tau| restricted_mean(&instance.sample, rows, tau) / tau)
        };
        // The rows on both sides of every column, and their losses.
        let sides: Vec<[(usize, f64, f64); 2]> = tables
            .columns
            .iter()
            .map(|column| {
                let value = |i: &usize| instance.features[*i][column.feature] != column.flipped;
                let (yes, no): (Vec<usize>, Vec<usize>) =
                    instance.rows().into_iter().partition(value);
                [yes, no].map(|side| (side.len(), loss_of(&side), mean_of(&side)))
            })
            .collect();
        for backend in Backend::available() {
            for min_leaf in [1, 7] {
                let mut splits = kernel::Splits::default();
                let kernel = kernel::Kernel { backend, curve, min_leaf };
                kernel.splits(&root, &tables, None, true, &mut splits);
                for (c, [yes, no]) in sides.iter().enumerate() {
                    let Some(lane) = splits.columns.iter().position(|&column| column == c) else {
                        ensure(yes.0.min(no.0) < min_leaf, || "left out".into())?;
                        continue;
                    };
                    ensure(splits.count[lane] == yes.0 as f64, || "miscounted".into())?;
                    let losses = [(yes, splits.yes[lane]), (no, splits.no[lane])];
                    for ((_, expected, ..), loss) in losses {
                        let name = format!("{} loss", backend.name());
                        let off = passes.above(*expected) - expected;
                        agree(&name, loss, *expected, off)?;
                    }
                    for ((.., expected), means) in [no, yes].into_iter().zip(&splits.means) {
                        if horizon.is_some() {
                            let name = format!("{} mean", backend.name());
                            agree(&name, means[lane], *expected, off_means)?;
                        }
                    }
                }
                for lane in 0..splits.columns.len() {
                    sides_agree(kernel, &root, &tables, &splits, lane)?;
                }
            }
        }
    }
    Ok(())
}

/// Checks that a side counted from its parent and its sibling is the same.
fn sides_agree(
    kernel: kernel::Kernel,
    root: &rows::Rows,
    tables: &rows::Tables,
    splits: &kernel::Splits,
    lane: usize,
) -> Result<(), String> {
    let of_yes = (splits.count[lane], splits.floor[lane]);
    let (mut yes, mut no) = Default::default();
    root.split(splits.columns[lane], tables, of_yes, &mut yes, &mut no);
    for (rows, sibling) in [(&yes, &no), (&no, &yes)] {
        let parent = Some(kernel::Parent { splits, sibling });
        let [with, without] = [parent, None].map(|parent| {
            let mut out = kernel::Splits::default();
            kernel.splits(rows, tables, parent, true, &mut out);
            let n = out.columns.len();
            [out.yes, out.no, out.count, out.floor].map(|values| values[..n].to_vec())
        });
        ensure(with == without, || "a side differs when counted from its sibling".into())?;
    }
    Ok(())
}

#[test]
fn kernels_agree_with_the_oracle() {
    for_each_of(&["brier"], 100 * SCALE, (60, 20, &[1]), |case| kernels_agree(&case.instance));
    for_each_of(&["brier"], 5 * SCALE, (30, 130, &[1]), |case| kernels_agree(&case.instance));
}

#[test]
fn kernels_that_count_runs_agree_with_the_oracle() {
    for seed in 0..8 {
        let random = &mut Random::new(seed);
        let (n, n_times) = (400, 1 + random.below(12));
        let n_features = [5, 31, 40, 70][seed as usize % 4];
        let (weighted, share) = (seed < 4, if seed < 4 { 0.4 } else { 0.025 });
        let features =
            (0..n).map(|_| (0..n_features).map(|_| random.chance(share)).collect()).collect();
        let mut instance = Instance::of_labels(features, vec![0; n], 2);
        for i in 0..n {
            instance.sample.time[i] = random.below(n_times) as f64;
            instance.sample.event[i] = random.chance(0.6);
            let weight = if weighted { 1 + random.below(3) } else { 1 };
            instance.sample.weight[i] = weight as f64;
        }
        kernels_agree(&instance).unwrap();
    }
}

/// There are many distinct times, and the censoring distribution falls to almost 0: 1/G is in the
/// hundreds on average. The errors of passes are still below what certificates must resolve.
#[test]
fn passes_resolve_many_distinct_times() {
    let random = &mut Random::new(5);
    let n = 60_000;
    let mut sample = Instance::of_labels(vec![vec![]; n], vec![0; n], 2).sample;
    for i in 0..n {
        // Exponential times, because their last ones are far apart.
        sample.time[i] = -((random.below(1 << 30) as f64 + 0.5) / (1u64 << 30) as f64).ln();
        sample.event[i] = random.chance(0.4);
    }
    let task = task(&sample, LeafCurve::KaplanMeier).unwrap();
    let features = (0..n).map(|i| vec![i % 3 == 0, random.chance(0.02), sample.time[i] > 6.0]);
    let mut instance = Instance::of_labels(features.collect(), vec![0; n], 2);
    instance.sample = sample;
    let (root, tables) = rows::Tables::new(&task, &matrix(&instance), false, None, false).unwrap();
    let passes = Rounding::of_passes(task.timeline(), LeafCurve::KaplanMeier, 6, 0);
    for backend in Backend::available() {
        let mut splits = kernel::Splits::default();
        let kernel = kernel::Kernel { backend, curve: LeafCurve::KaplanMeier, min_leaf: 1 };
        kernel.splits(&root, &tables, None, false, &mut splits);
        for (lane, &c) in splits.columns.iter().enumerate() {
            let column = tables.columns[c];
            let value = |i: &usize| instance.features[*i][column.feature] != column.flipped;
            let (yes, no): (Vec<usize>, Vec<usize>) = (0..n).partition(value);
            let tree = task.leaf_loss(&yes) + task.leaf_loss(&no);
            assert!(passes.above(tree) - tree < 5e-10 * tree);
            for (side, loss) in [(yes, splits.yes[lane]), (no, splits.no[lane])] {
                let exact = task.leaf_loss(&side);
                assert!((loss - exact).abs() <= passes.above(exact) - exact);
            }
        }
    }
}

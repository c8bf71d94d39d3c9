//! Trees by integrated Brier score against the exhaustive reference.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bristlecone_core::search::curve::{kernel, rows};
use bristlecone_core::search::{
    Monitor, Settings, Solution, Status, alternatives_brier, near_optimal_brier, path_brier,
    solve_brier,
};
use bristlecone_core::simd::Backend;
use bristlecone_core::survival::Observations;
use bristlecone_core::task::brier::{Brier, LeafCurve};
use bristlecone_oracle::brier::Brier as Reference;
use bristlecone_oracle::instances::{Instance, Random};
use bristlecone_oracle::survival::Sample;
use bristlecone_oracle::{Limits, admit_tree, best, best_by_leaves, score_tree};

use crate::harness::{CERTIFIED, SCALE, agree, agree_on_status, ensure, matrix, oracle_tree};
use crate::near::{
    SLACKS, near_trees, same_alternatives, same_trees, says_that_trees_are_left_out,
};
use crate::watch::Watch;

const CURVES: [LeafCurve; 2] = [LeafCurve::KaplanMeier, LeafCurve::BrierOptimal];

/// A random problem.
#[derive(Clone, Debug)]
struct Question {
    curve: LeafCurve,
    limits: Limits,
    leaf_penalty: f64,
    min_events: usize,
}

impl Question {
    fn random(seed: u64, depths: &[usize]) -> Question {
        let random = &mut Random::new(!seed);
        let min_leaf = if random.chance(0.5) { 1 } else { 1 + random.below(6) };
        let max_leaves = random.chance(0.3).then(|| 1 + random.below(9));
        let leaf_penalty = if random.chance(0.3) { 0.0 } else { 10f64.powf(-3.5 * random.unit()) };
        let limits = Limits { max_depth: random.pick(depths), max_leaves, min_leaf };
        let curve = random.pick(&CURVES);
        let min_events = if random.chance(0.5) { random.below(5) } else { 0 };
        Question { curve, limits, leaf_penalty, min_events }
    }

    fn settings(&self) -> Settings {
        Settings {
            max_depth: self.limits.max_depth,
            max_leaves: self.limits.max_leaves,
            min_leaf: self.limits.min_leaf,
            min_events: self.min_events,
            ..Settings::default()
        }
    }

    fn cost<'a>(&self, reference: &'a Reference) -> impl Fn(&[usize]) -> f64 + use<'a> {
        let (curve, penalty, min_events) = (self.curve, self.leaf_penalty, self.min_events);
        move |leaf| {
            let loss = match curve {
                _ if reference.n_events(leaf) < min_events => f64::INFINITY,
                LeafCurve::KaplanMeier => reference.kaplan_meier(leaf),
                LeafCurve::BrierOptimal => reference.antitonic(leaf),
            };
            loss + penalty
        }
    }

    fn task(&self, sample: &Sample) -> Brier {
        task(sample, self.leaf_penalty, self.curve, None)
    }

    fn solve(&self, instance: &Instance, settings: &Settings) -> Solution {
        self.solve_until(instance, settings, &|| false)
    }

    fn solve_until(
        &self,
        instance: &Instance,
        settings: &Settings,
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Solution {
        let monitor = Monitor::new(None, interrupted);
        solve_brier(&self.task(&instance.sample), &matrix(instance), settings, &monitor).unwrap()
    }
}

fn observations(sample: &Sample) -> Observations<'_> {
    let (time, event, weight) = (&sample.time, &sample.event, Some(&sample.weight[..]));
    Observations { time, event, weight, entry: None }
}

fn task(sample: &Sample, penalty: f64, curve: LeafCurve, reference: Option<&[f64]>) -> Brier {
    Brier::new(&observations(sample), penalty, curve, reference).unwrap()
}

/// Whether weights span more than sums of the search bear.
fn refused(sample: &Sample) -> bool {
    Brier::new(&observations(sample), 0.0, LeafCurve::KaplanMeier, None).is_err()
}

/// Runs `check` on random instances without delayed entry; reduces and reports a failure.
///
/// Few instances are refused for their weights.
fn for_each(
    seeds: u64,
    (max_rows, max_features): (usize, usize),
    depths: &[usize],
    check: impl Fn(&Instance, &Question) -> Result<(), String>,
) {
    let guarded = |instance: &Instance, question: &Question| {
        let (rows, sample) = (instance.rows(), &instance.sample);
        let too_few =
            question.limits.min_leaf > rows.len() || question.min_events > sample.n_events(&rows);
        if too_few || refused(sample) {
            return Ok(());
        }
        catch_unwind(AssertUnwindSafe(|| check(instance, question)))
            .unwrap_or_else(|_| Err("panic".into()))
    };
    let mut n_refused = 0;
    for seed in 0..seeds {
        let mut instance = Instance::random(seed, max_rows, max_features);
        instance.sample.entry = None;
        n_refused += u64::from(refused(&instance.sample));
        let question = Question::random(seed, depths);
        if guarded(&instance, &question).is_err() {
            let smallest = instance.minimise(|smaller| guarded(smaller, &question).is_err());
            let message = guarded(&smallest, &question).unwrap_err();
            panic!("seed {seed}: {message}\n{question:?}\n{smallest:?}");
        }
    }
    assert!(20 * n_refused <= seeds, "{n_refused} of {seeds} samples were refused");
}

fn equals_oracle(instance: &Instance, question: &Question) -> Result<(), String> {
    let (features, rows) = (&instance.features, &instance.rows());
    let reference = Reference::new(&instance.sample);
    let cost = question.cost(&reference);
    let optimum = best(features, rows, &question.limits, &cost);
    let solution = question.solve(instance, &question.settings());
    agree_on_status(&solution, Status::Optimal)?;
    agree("objective", solution.objective, optimum, CERTIFIED)?;
    let tree = oracle_tree(&solution.tree);
    admit_tree(&tree, features, rows, &question.limits)?;
    let score = score_tree(&tree, features, rows, &cost)?;
    agree("objective of the tree", solution.objective, score, 1e-12)?;
    ensure(solution.lower_bound <= solution.objective, || "bound above objective".into())
}

#[test]
fn leaf_losses_equal_the_oracle() {
    for_each(500 * SCALE, (40, 0), &[0], |instance, _| {
        let reference = Reference::new(&instance.sample);
        let (n, random) = (instance.rows().len(), &mut Random::new(7));
        let unrestricted = |rows: &[usize]| reference.unrestricted(rows);
        for curve in CURVES {
            let question = Question {
                curve,
                limits: Limits { max_depth: 0, max_leaves: None, min_leaf: 1 },
                leaf_penalty: 0.0,
                min_events: 0,
            };
            let (task, cost) = (question.task(&instance.sample), question.cost(&reference));
            for _ in 0..5 {
                let rows: Vec<usize> = (0..n).filter(|_| random.chance(0.6)).collect();
                agree("loss", task.leaf_loss(&rows), cost(&rows), 1e-12)?;
                let (km, fit) = (reference.kaplan_meier(&rows), reference.antitonic(&rows));
                ensure(fit <= km + 1e-12, || format!("fitted {fit} above Kaplan–Meier {km}"))?;
                ensure(unrestricted(&rows) <= fit + 1e-12, || "fitted below the least".into())?;
            }
        }
        Ok(())
    });
}

#[test]
fn the_fitted_curve_is_superadditive() {
    for_each(500 * SCALE, (40, 1), &[1], |instance, _| {
        let reference = Reference::new(&instance.sample);
        let (yes, no): (Vec<usize>, Vec<usize>) = instance
            .rows()
            .into_iter()
            .partition(|&i| instance.features[i].first().copied().unwrap_or(false));
        let (parts, whole) = (
            reference.antitonic(&yes) + reference.antitonic(&no),
            reference.antitonic(&instance.rows()),
        );
        ensure(parts <= whole + 1e-12, || format!("{parts} above {whole}"))
    });
}

#[test]
fn the_kaplan_meier_loss_is_not_monotone() {
    // The example of docs/maths/brier.md: a subset loses more than the whole.
    let sample = Sample {
        time: vec![1.0, 10.0, 3.0, 1.0],
        event: vec![false, false, false, true],
        weight: vec![1.0; 4],
        entry: None,
    };
    let reference = Reference::new(&sample);
    let task = task(&sample, 0.0, LeafCurve::KaplanMeier, None);
    for (rows, expected) in [(vec![1, 2, 3], 0.2), (vec![1, 3], 5.0 / 24.0)] {
        assert!((reference.kaplan_meier(&rows) - expected).abs() < 1e-12);
        assert!((task.leaf_loss(&rows) - expected).abs() < 1e-12);
    }
}

#[test]
fn optimum_equals_the_oracle() {
    for_each(400 * SCALE, (24, 6), &[0, 1, 2, 3], equals_oracle);
    for_each(10 * SCALE, (60, 6), &[2, 3], equals_oracle);
    for_each(10 * SCALE, (16, 5), &[4, 9], equals_oracle);
}

#[test]
fn optimum_equals_the_oracle_on_more_columns_than_lanes() {
    for_each(20 * SCALE, (30, 90), &[1], equals_oracle);
    for_each(10 * SCALE, (24, 24), &[2], equals_oracle);
}

#[test]
fn the_size_path_equals_the_oracle_at_every_number_of_leaves() {
    for_each(60 * SCALE, (20, 5), &[0, 1, 2, 3], |instance, question| {
        let (features, rows, limits) = (&instance.features, &instance.rows(), &question.limits);
        let reference = Reference::new(&instance.sample);
        let optima = best_by_leaves(features, rows, limits, question.cost(&reference));
        let monitor = Monitor::new(None, &|| false);
        let task = question.task(&instance.sample);
        let path = path_brier(&task, &matrix(instance), &question.settings(), &monitor).unwrap();
        for (k, solution) in path.iter().enumerate() {
            agree_on_status(solution, Status::Optimal)?;
            let optimum = optima[k.min(optima.len() - 1)];
            agree(&format!("with {} leaves", k + 1), solution.objective, optimum, CERTIFIED)?;
            let limits = Limits { max_leaves: Some(k + 1), ..limits.clone() };
            admit_tree(&oracle_tree(&solution.tree), features, rows, &limits)?;
        }
        agree("at the end", path[path.len() - 1].objective, optima[optima.len() - 1], CERTIFIED)
    });
}

#[test]
fn no_switch_changes_the_objective() {
    for_each(100 * SCALE, (30, 6), &[1, 2, 3, 4], |instance, question| {
        let base = question.settings();
        let reference = question.solve(instance, &base);
        let mut all = vec![
            Settings { equivalent_points: false, ..base.clone() },
            Settings { look_ahead: false, ..base.clone() },
            Settings { cache: false, ..base.clone() },
            Settings { memory_limit: Some(1 << 18), ..base.clone() },
            Settings { n_threads: 2, cells_per_thread: Some(1), ..base.clone() },
            Settings { planted: Some(reference.objective), ..base.clone() },
        ];
        all.extend(Backend::available().map(|b| Settings { backend: Some(b), ..base.clone() }));
        for settings in all {
            let solution = question.solve(instance, &settings);
            agree("objective", solution.objective, reference.objective, 1e-12)
                .map_err(|message| format!("{message}: {settings:?}"))?;
        }
        Ok(())
    });
}

#[test]
fn a_stopped_search_gives_a_valid_bound_and_an_allowed_tree() {
    use std::sync::atomic::{AtomicU64, Ordering};
    for_each(100 * SCALE, (24, 6), &[2, 3, 4], |instance, question| {
        let (features, rows) = (&instance.features, &instance.rows());
        let optimum = question.solve(instance, &question.settings()).objective;
        for patience in [0, 1, 3, 10, 30] {
            let asked = AtomicU64::new(0);
            let interrupted = || asked.fetch_add(1, Ordering::Relaxed) >= patience;
            let monitor = Monitor::new(None, &interrupted);
            let (task, matrix) = (question.task(&instance.sample), matrix(instance));
            let solution = solve_brier(&task, &matrix, &question.settings(), &monitor).unwrap();
            ensure(solution.lower_bound <= optimum + 1e-12, || {
                format!("bound {} above {optimum} after {patience}", solution.lower_bound)
            })?;
            ensure(solution.objective >= optimum - 1e-9, || "better than the best".into())?;
            admit_tree(&oracle_tree(&solution.tree), features, rows, &question.limits)?;
            let mut last = (f64::INFINITY, f64::NEG_INFINITY);
            for point in &solution.trace {
                ensure(
                    point.objective <= last.0 + 1e-12 && point.lower_bound >= last.1 - 1e-12,
                    || "the trace goes back".into(),
                )?;
                last = (point.objective, point.lower_bound);
            }
        }
        Ok(())
    });
}

/// Every split of the root by every backend, against the oracle's loss of either side.
fn kernels_agree(instance: &Instance) -> Result<(), String> {
    let reference = Reference::new(&instance.sample);
    for curve in CURVES {
        let task = task(&instance.sample, 0.0, curve, None);
        let (root, tables) = rows::Tables::new(&task, &matrix(instance), true).unwrap();
        // Weights that are no whole numbers are rounded to 2^-51 of their sum.
        let whole = instance.sample.weight.iter().all(|w| w.fract() == 0.0);
        let heaviest = task.inverse_censoring.iter().copied().fold(1.0, f64::max);
        let unit = if whole { 0.0 } else { 2f64.powi(-50) };
        let rounding = unit * instance.rows().len() as f64 * heaviest;
        for backend in Backend::available() {
            for min_leaf in [1, 7] {
                let mut splits = kernel::Splits::default();
                let kernel = kernel::Kernel { backend, curve, min_leaf };
                kernel.splits(&root, &tables, None, true, &mut splits);
                for (c, column) in tables.columns.iter().enumerate() {
                    let value = |i: &usize| instance.features[*i][column.feature] != column.flipped;
                    let (yes, no): (Vec<usize>, Vec<usize>) =
                        instance.rows().into_iter().partition(value);
                    let Some(lane) = splits.columns.iter().position(|&column| column == c) else {
                        let fewer = yes.len().min(no.len());
                        ensure(fewer < min_leaf, || "left out".into())?;
                        continue;
                    };
                    ensure(splits.count[lane] == yes.len() as f64, || "miscounted".into())?;
                    for (rows, loss) in [(yes, splits.yes[lane]), (no, splits.no[lane])] {
                        let expected = match curve {
                            LeafCurve::KaplanMeier => reference.kaplan_meier(&rows),
                            LeafCurve::BrierOptimal => reference.antitonic(&rows),
                        };
                        let name = format!("{} loss", backend.name());
                        agree(&name, loss, expected, 1e-12 + rounding)?;
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

/// Counting a side from its parent and sibling changes nothing.
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
    for_each(100 * SCALE, (60, 20), &[1], |instance, _| kernels_agree(instance));
    for_each(5 * SCALE, (30, 130), &[1], |instance, _| kernels_agree(instance));
}

#[test]
fn kernels_that_count_runs_agree_with_the_oracle() {
    for seed in 0..8 {
        let random = &mut Random::new(seed);
        let (n, n_times) = (400, 1 + random.below(12));
        let n_features = [5, 31, 40, 70][seed as usize % 4];
        let (weighted, share) = (seed < 4, if seed < 4 { 0.4 } else { 0.025 });
        let mut instance = Instance::random(seed, 1, 0).select(&[], &[]);
        for _ in 0..n {
            instance.features.push((0..n_features).map(|_| random.chance(share)).collect());
            instance.sample.time.push(random.below(n_times) as f64);
            instance.sample.event.push(random.chance(0.6));
            let weight = if weighted { 1 + random.below(3) } else { 1 };
            instance.sample.weight.push(weight as f64);
        }
        instance.sample.entry = None;
        kernels_agree(&instance).unwrap();
    }
}

#[test]
fn threads_do_not_change_the_tree() {
    let ran = [2, 3].map(|n_threads| (n_threads, Cell::new(0)));
    for_each(50 * SCALE, (40, 6), &[2, 3, 4, 5], |instance, question| {
        for backend in Backend::available() {
            let one = Settings { backend: Some(backend), ..question.settings() };
            let expected = question.solve(instance, &one);
            for (n_threads, ran) in &ran {
                let several =
                    Settings { n_threads: *n_threads, cells_per_thread: Some(1), ..one.clone() };
                let watch = Watch::default();
                let solution = question.solve_until(instance, &several, &|| watch.look());
                ran.set(ran.get() + u64::from(watch.threads() >= *n_threads));
                let told =
                    |s: &Solution| (s.tree.clone(), s.objective.to_bits(), s.lower_bound.to_bits());
                ensure(told(&solution) == told(&expected), || {
                    format!("{solution:?} not {expected:?} on {n_threads} threads")
                })?;
            }
        }
        Ok(())
    });
    for (n_threads, ran) in ran {
        // On a busy machine the first thread is often done before the next one begins.
        assert!(ran.get() > SCALE, "{n_threads} threads ran {} times", ran.get());
    }
}

#[test]
fn weights_count_as_repetition() {
    for_each(50 * SCALE, (20, 5), &[1, 2, 3], |instance, question| {
        let settings = Settings { min_leaf: 1, min_events: 0, ..question.settings() };
        let mut weighted = instance.clone();
        let whole = |w: &f64| 1.0 + (w * 8.0).floor() % 3.0;
        weighted.sample.weight = weighted.sample.weight.iter().map(whole).collect();
        let copies = |i: usize| std::iter::repeat_n(i, weighted.sample.weight[i] as usize);
        let rows: Vec<usize> = weighted.rows().into_iter().flat_map(copies).collect();
        let features: Vec<usize> = (0..instance.n_features()).collect();
        let mut repeated = weighted.select(&rows, &features);
        repeated.sample.weight.fill(1.0);
        let solution = question.solve(&weighted, &settings);
        let expected = question.solve(&repeated, &settings);
        agree("objective", solution.objective, expected.objective, 1e-12)
    });
}

#[test]
fn a_reference_model_keeps_its_guarantee() {
    for_each(150 * SCALE, (24, 6), &[1, 2, 3], |instance, question| {
        let optimum = question.solve(instance, &question.settings()).objective;
        let random = &mut Random::new(instance.rows().len() as u64);
        let total = instance.sample.total_weight();
        for scale in [0.0, 0.05, 0.5] {
            let losses: Vec<f64> = instance.rows().iter().map(|_| scale * random.unit()).collect();
            let mean = losses.iter().zip(&instance.sample.weight).map(|(l, w)| l * w).sum::<f64>();
            let task = task(&instance.sample, question.leaf_penalty, question.curve, Some(&losses));
            let monitor = Monitor::new(None, &|| false);
            let solution =
                solve_brier(&task, &matrix(instance), &question.settings(), &monitor).unwrap();
            // A score of zero is proven by itself.
            let proven = solution.lower_bound >= solution.objective;
            let status = if proven { Status::Optimal } else { Status::ReferenceOptimal };
            agree_on_status(&solution, status)?;
            let guarantee = optimum + mean / total + 1e-9;
            ensure(solution.objective <= guarantee, || {
                format!("{} above {guarantee}", solution.objective)
            })?;
            ensure(solution.lower_bound <= optimum + 1e-12, || {
                format!("bound {} above the optimum {optimum}", solution.lower_bound)
            })?;
        }
        Ok(())
    });
}

#[test]
fn near_optimal_trees_are_those_of_the_oracle() {
    for_each(60 * SCALE, (12, 4), &[0, 1, 2, 3], |instance, question| {
        let reference = Reference::new(&instance.sample);
        let cost = question.cost(&reference);
        let (task, matrix) = (question.task(&instance.sample), matrix(instance));
        for slack in SLACKS {
            let expected = near_trees(instance, &question.limits, &cost, slack);
            if expected.len() > 3000 {
                continue;
            }
            let monitor = Monitor::new(None, &|| false);
            let settings = question.settings();
            let of = |limit| {
                near_optimal_brier(&task, &matrix, &settings, &monitor, (slack, limit)).unwrap()
            };
            same_trees(&of(1_000_000), &expected)?;
            if question.limits.max_leaves.is_none() {
                says_that_trees_are_left_out(&of(2), expected.len())?;
            }
        }
        Ok(())
    });
}

#[test]
fn alternatives_are_those_of_the_oracle() {
    for_each(60 * SCALE, (14, 4), &[1, 2, 3], |instance, question| {
        let reference = Reference::new(&instance.sample);
        let cost = question.cost(&reference);
        let monitor = Monitor::new(None, &|| false);
        let (task, matrix) = (question.task(&instance.sample), matrix(instance));
        let settings = question.settings();
        let tree = solve_brier(&task, &matrix, &settings, &monitor).unwrap().tree;
        let found = alternatives_brier(&task, &matrix, &settings, &monitor, &tree);
        let (found, _) = found.map_err(|e| e.to_string())?;
        same_alternatives(instance, &question.limits, &cost, &oracle_tree(&tree), &found)
    });
}

//! Small whole numbers, where everything ties, and penalties of every size.

use bristlecone_core::data::BinaryMatrix;
use bristlecone_core::search::fronts::{Metric, solve_front, solve_metric};
use bristlecone_core::search::{Monitor, Settings, Status};
use bristlecone_core::task::confusion::Confusion;
use bristlecone_oracle::instances::Random;
use bristlecone_oracle::{Limits, all_costs, pareto_front};

use crate::certificates::searched;
use crate::harness::SCALE;

fn packed(features: &[Vec<bool>]) -> BinaryMatrix {
    let bytes: Vec<u8> = features.iter().flatten().map(|&v| u8::from(v)).collect();
    BinaryMatrix::from_bytes(features.len(), features[0].len(), &bytes).expect("a byte per entry")
}

fn limits(settings: &Settings) -> Limits {
    Limits {
        max_depth: settings.max_depth,
        max_leaves: settings.max_leaves,
        min_leaf: settings.min_leaf,
    }
}

/// The measure of a problem against all trees there are.
fn check_measure(
    metric: Metric,
    features: &[Vec<bool>],
    positive: &[bool],
    penalty: f64,
    settings: &Settings,
) -> Result<(), String> {
    let rows: Vec<usize> = (0..positive.len()).collect();
    let count =
        |leaf: &[usize], class: bool| leaf.iter().filter(|&&i| positive[i] == class).count() as f64;
    let total = [count(&rows, false), count(&rows, true)];
    let objective = |c: &[f64; 3]| 1.0 - metric.value([c[0], c[1]], total) + c[2];
    let all = all_costs(features, &rows, &limits(settings), |leaf| {
        vec![[0.0, count(leaf, true), penalty], [count(leaf, false), 0.0, penalty]]
    });
    let optimum = all.iter().map(objective).fold(f64::INFINITY, f64::min);
    let matrix = packed(features);
    let of_point = |point: &bristlecone_core::search::fronts::FrontPoint| {
        let mut costs = [0.0, 0.0, penalty * point.tree.n_leaves() as f64];
        for (i, &p) in positive.iter().enumerate() {
            let predicted = point.labels[point.tree.leaf_of(&matrix, i)] == 1;
            if predicted != p {
                costs[usize::from(p)] += 1.0;
            }
        }
        Ok(objective(&costs))
    };
    searched(optimum, of_point, |monitor| {
        solve_metric(metric, positive, None, penalty, &matrix, settings, monitor)
    })
    .map(|_| ())
}

#[test]
fn measures_of_balanced_classes_are_proven() {
    for seed in 0..600 * SCALE {
        let random = &mut Random::new(seed);
        let (n, n_features) = (2 + random.below(11), 1 + random.below(4));
        let features: Vec<Vec<bool>> =
            (0..n).map(|_| (0..n_features).map(|_| random.chance(0.5)).collect()).collect();
        let balanced = random.chance(0.7);
        let order = random.permutation(n);
        let positive: Vec<bool> =
            (0..n).map(|i| if balanced { order[i] < n / 2 } else { random.chance(0.3) }).collect();
        let settings = Settings {
            max_depth: random.below(4),
            max_leaves: random.chance(0.5).then(|| 1 + random.below(6)),
            min_leaf: 1 + random.below(2),
            ..Settings::default()
        };
        let penalty = match random.below(3) {
            0 => 0.0,
            1 => random.pick(&[0.01, 0.02, 0.05, 0.1]),
            _ => 10f64.powf(6.0 * random.unit() - 3.0),
        };
        let metric = random.pick(&[Metric::Matthews, Metric::Matthews, Metric::FBeta(1.0)]);
        if let Err(e) = check_measure(metric, &features, &positive, penalty, &settings) {
            panic!(
                "seed {seed}: {e}\n{metric:?} {penalty} {settings:?}\n{features:?}\n{positive:?}"
            );
        }
    }
}

#[test]
fn symmetric_vertices_do_not_end_the_search() {
    let rows = [[1, 1], [0, 1], [1, 1], [1, 0], [0, 1], [0, 1]];
    let features: Vec<Vec<bool>> = rows.iter().map(|r| r.map(|v| v == 1).to_vec()).collect();
    let positive = [0, 0, 1, 1, 0, 1].map(|v| v == 1);
    let settings = Settings { max_depth: 1, ..Settings::default() };
    check_measure(Metric::Matthews, &features, &positive, 0.0, &settings).expect("the optimum");
}

#[test]
fn fronts_under_a_leaf_budget_hold_no_dominated_tree() {
    for seed in 0..60 * SCALE {
        let random = &mut Random::new(seed);
        let (n, n_features) = (6 + random.below(14), 2 + random.below(4));
        let features: Vec<Vec<bool>> =
            (0..n).map(|_| (0..n_features).map(|_| random.chance(0.5)).collect()).collect();
        let positive: Vec<bool> = (0..n).map(|_| random.chance(0.5)).collect();
        let settings = Settings {
            max_depth: 2 + random.below(2),
            max_leaves: Some(2 + random.below(6)),
            min_leaf: 1 + random.below(3),
            ..Settings::default()
        };
        let rows: Vec<usize> = (0..n).collect();
        let expected = pareto_front(&features, &rows, &limits(&settings), |leaf| {
            let positives = leaf.iter().filter(|&&i| positive[i]).count() as f64;
            vec![[0.0, positives], [leaf.len() as f64 - positives, 0.0]]
        });
        let task = Confusion::new(&positive, None).expect("rows");
        let monitor = Monitor::new(None, &|| false);
        let front = solve_front(&task, &packed(&features), &settings, &monitor).expect("rows");
        let costs: Vec<[f64; 2]> = front.points.iter().map(|p| [p.costs[0], p.costs[1]]).collect();
        assert_eq!(costs, expected, "seed {seed}: {settings:?}");
        assert_eq!(front.status, Status::Optimal);
    }
}

//! Tests that cost: by origin, group and discount, whatever was tested above.

use bristlecone_core::registry::{self, Column, Columns, Problem};
use bristlecone_core::search::{Monitor, Precision, Settings, Status};
use bristlecone_core::tree::Tree;
use bristlecone_oracle::instances::{Instance, Random};
use bristlecone_oracle::{admit_tree, best_priced, price_tree, score_tree, sums};

use crate::harness::{
    CERTIFIED, Question, SCALE, agree, agree_on_status, ensure, for_each_allowed, matrix,
    oracle_tree,
};

/// Prices of the features of an instance.
#[derive(Clone, Debug)]
struct Prices {
    cost: Vec<f64>,
    discount: Vec<f64>,
    origin: Vec<i64>,
    group: Vec<i64>,
}

impl Prices {
    /// About as large as what a test can save where costs are about `scale`, some of them
    /// nothing, some all alike.
    fn random(seed: u64, n_features: usize, scale: f64) -> Prices {
        let random = &mut Random::new(seed);
        let style = random.below(3);
        let size = scale * random.pick(&[0.02, 0.1, 0.5]);
        let cost: Vec<f64> = (0..n_features)
            .map(|_| match style {
                0 => scale * random.below(3) as f64,
                1 => size,
                _ => size * random.unit(),
            })
            .collect();
        let share = |random: &mut Random, c: &f64| c * random.pick(&[0.0, 0.25, 0.5, 1.0]);
        Prices {
            discount: cost.iter().map(|c| share(random, c)).collect(),
            origin: (0..n_features).map(|_| random.below(5) as i64 - 1).collect(),
            group: (0..n_features).map(|_| random.below(4) as i64 - 1).collect(),
            cost,
        }
    }

    /// Price of a feature per unit of weight, as it is defined.
    fn of(&self, feature: usize, above: &[usize]) -> f64 {
        let shared =
            |of: &[i64]| of[feature] >= 0 && above.iter().any(|&other| of[other] == of[feature]);
        if above.contains(&feature) || shared(&self.origin) {
            0.0
        } else if shared(&self.group) {
            self.discount[feature].min(self.cost[feature])
        } else {
            self.cost[feature]
        }
    }
}

fn equals_oracle(
    instance: &Instance,
    question: &Question,
    settings: &[Settings],
    scale: f64,
) -> Result<(), String> {
    let seed = (instance.rows().len() * 7919 + question.limits.max_depth) as u64;
    let prices = Prices::random(seed, instance.n_features(), scale);
    let Prices { cost, discount, origin, group } = &prices;
    let (weight, total) = (&instance.sample.weight, instance.sample.total_weight());
    let price = |feature: usize, above: &[usize], rows: &[usize]| {
        prices.of(feature, above) * rows.iter().map(|&i| weight[i]).sum::<f64>() / total
    };
    let leaf_cost = |leaf: &[usize]| {
        sums::cheapest_label(leaf, &instance.costs, weight) / total + question.leaf_penalty
    };
    let (features, rows, limits) = (&instance.features, &instance.rows(), &question.limits);
    let optima = best_priced(features, rows, limits, &leaf_cost, &price);
    let costs = instance.costs.concat();
    let mut columns = Columns::default();
    columns.insert("costs", Column::Table { values: &costs, width: instance.n_classes });
    columns.insert("weight", Column::Numbers(weight));
    columns.insert("feature_cost", Column::Numbers(cost));
    columns.insert("feature_discount", Column::Numbers(discount));
    columns.insert("feature_origin", Column::Codes(origin));
    columns.insert("feature_group", Column::Codes(group));
    let problem = Problem {
        columns,
        n_rows: rows.len(),
        n_features: instance.n_features(),
        leaf_penalty: question.leaf_penalty,
        max_leaves: question.settings().most_leaves(),
    };
    let task = registry::prepare("priced-costs", &problem).map_err(|e| e.to_string())?;
    let matrix = matrix(instance);
    let check = |tree: &Tree, objective: f64, optimum: f64| {
        agree("objective", objective, optimum, CERTIFIED)?;
        let tree = oracle_tree(tree);
        admit_tree(&tree, features, rows, limits)?;
        let score = score_tree(&tree, features, rows, leaf_cost)?;
        let score = score + price_tree(&tree, features, rows, &price);
        agree("objective of the tree", objective, score, 1e-12)
    };
    for settings in settings {
        let monitor = Monitor::new(None, &|| false);
        let solution = task.solve(&matrix, settings, &monitor);
        let solution = solution.map_err(|e| e.to_string())?;
        agree_on_status(&solution, Status::Optimal)?;
        check(&solution.tree, solution.objective, optima[optima.len() - 1])
            .map_err(|message| format!("{message}: {settings:?}"))?;
        ensure(solution.lower_bound <= solution.objective, || "bound above objective".into())?;
    }
    let monitor = Monitor::new(None, &|| false);
    let path = task.path(&matrix, &settings[0], &monitor);
    for (k, solution) in path.map_err(|e| e.to_string())?.iter().enumerate() {
        agree_on_status(solution, Status::Optimal)?;
        check(&solution.tree, solution.objective, optima[k.min(optima.len() - 1)])?;
    }
    Ok(())
}

#[test]
fn prices_that_depend_on_the_tests_above_equal_the_oracle() {
    let check = |instance: &Instance, question: &Question| {
        let question = &question.without_events();
        let base = question.settings();
        let mut settings = vec![base.clone()];
        for lattice_depth in [1, 2, 3] {
            settings.push(Settings { lattice_depth, ..base.clone() });
            settings.push(Settings { lattice_depth, cache: false, ..base.clone() });
        }
        equals_oracle(instance, question, &settings, 1.0)
    };
    for_each_allowed(200 * SCALE, (30, 6), &[1, 2, 3, 4], check);
    for_each_allowed(20 * SCALE, (16, 6), &[5, 6], check);
    for_each_allowed(5 * SCALE, (30, 20), &[2, 3], check);
}

#[test]
fn costs_beyond_the_mantissa_of_single_lanes_equal_the_oracle() {
    const LARGE: f64 = 311_041.0;
    let check = |instance: &Instance, question: &Question| {
        let mut large = instance.clone();
        large.sample.weight.fill(1.0);
        large.costs.iter_mut().flatten().for_each(|c| *c = (*c * LARGE).round());
        let question = &question.without_events();
        let base = question.settings();
        let settings = [None, Some(Precision::Single), Some(Precision::Double)]
            .map(|precision| Settings { precision, ..base.clone() });
        let question = Question { leaf_penalty: LARGE * question.leaf_penalty, ..question.clone() };
        equals_oracle(&large, &question, &settings, LARGE)
    };
    for_each_allowed(100 * SCALE, (60, 6), &[1, 2, 3, 4], check);
}

#[test]
fn a_cheap_test_may_pay_as_the_way_to_a_discount() {
    // The second feature decides; the first parts off one row and makes it cheaper.
    let features: Vec<Vec<bool>> = (0..20).map(|i| vec![i == 0, i % 2 == 0]).collect();
    let costs: Vec<f64> =
        (0..20).flat_map(|i| if i % 2 == 0 { [0.0, 1.0] } else { [1.0, 0.0] }).collect();
    let mut columns = Columns::default();
    columns.insert("costs", Column::Table { values: &costs, width: 2 });
    columns.insert("feature_cost", Column::Numbers(&[0.01, 0.4]));
    columns.insert("feature_discount", Column::Numbers(&[0.01, 0.1]));
    columns.insert("feature_group", Column::Codes(&[0, 0]));
    let problem = Problem { columns, n_rows: 20, n_features: 2, leaf_penalty: 0.0, max_leaves: 4 };
    let task = registry::prepare("priced-costs", &problem).unwrap();
    let instance = Instance { features, ..Instance::random(1, 20, 0) };
    let bytes: Vec<u8> = instance.features.iter().flatten().map(|&v| u8::from(v)).collect();
    let matrix = bristlecone_core::data::BinaryMatrix::from_bytes(20, 2, &bytes).unwrap();
    let settings = Settings { max_depth: 2, ..Settings::default() };
    let monitor = Monitor::new(None, &|| false);
    let solution = task.solve(&matrix, &settings, &monitor).unwrap();
    assert_eq!(solution.tree.feature[0], 0);
    assert!((solution.objective - (0.01 + 0.1 * 19.0 / 20.0)).abs() < 1e-12);
}

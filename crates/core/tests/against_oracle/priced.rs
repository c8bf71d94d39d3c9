//! Tests of priced features: prices that lanes round, and splits that only pay by a discount.

use bristlecone_core::search::Precision;
use bristlecone_oracle::instances::{Instance, Random};

use crate::harness::{Case, Question, SCALE, Until, ensure, for_each_of};
use crate::promises::stopped;
use crate::tasks::Prices;

#[test]
fn costs_beyond_the_mantissa_of_single_lanes_equal_the_oracle() {
    const LARGE: f64 = 311_041.0;
    for_each_of(&["priced-costs"], 100 * SCALE, (60, 6, &[1, 2, 3, 4]), |case| {
        let mut large = case.clone();
        large.instance.sample.weight.fill(1.0);
        large.instance.costs.iter_mut().flatten().for_each(|c| *c = (*c * LARGE).round());
        large.question.leaf_penalty *= LARGE;
        let Prices { cost, discount, .. } = &mut large.question.parameters.prices;
        cost.iter_mut().chain(discount).for_each(|price| *price *= LARGE);
        let optimum = large.optimum();
        for precision in
            [None, Some(Precision::Single), Some(Precision::Double), Some(Precision::Exact)]
        {
            let settings = large.settings().with_switches(|s| s.precision = precision);
            let status = stopped(&large, &settings, optimum, Until::End)?;
            ensure(status.is_none(), || format!("{status:?}"))?;
        }
        Ok(())
    });
}

#[test]
fn prices_beside_costs_and_weights_of_a_wide_range_equal_the_oracle() {
    for_each_of(&["priced-costs"], 150 * SCALE, (16, 5, &[1, 2, 3]), |case| {
        let mut random = Random::new(case.instance.rows().len() as u64);
        // The largest values are divided by a power of two before the search.
        for outward in [0, 90] {
            let mut wide = case.clone();
            let mut power = |value: &mut f64| *value *= 10f64.powi(random.below(25) as i32 - 12);
            wide.instance.sample.weight.iter_mut().for_each(&mut power);
            wide.instance.costs.iter_mut().flatten().for_each(&mut power);
            if let Some(first) = wide.instance.costs.first_mut() {
                first.iter_mut().step_by(2).for_each(|c| *c *= 10f64.powi(outward));
            }
            let stopped = stopped(&wide, &wide.settings(), wide.optimum(), Until::End)?;
            ensure(stopped.is_none(), || format!("{stopped:?}"))?;
        }
        Ok(())
    });
}

#[test]
fn a_cheap_test_may_pay_as_the_way_to_a_discount() {
    // The second feature predicts the label. The first separates one row and gives a discount.
    let features: Vec<Vec<bool>> =
        (0..20usize).map(|i| vec![i == 0, i.is_multiple_of(2)]).collect();
    let costs = |i: usize| if i.is_multiple_of(2) { vec![0.0, 1.0] } else { vec![1.0, 0.0] };
    let instance = Instance::of_labels(features, vec![0; 20], 2);
    let instance = Instance { costs: (0..20).map(costs).collect(), ..instance };
    let mut question = Question::of("priced-costs", 2);
    question.parameters.prices = Prices {
        cost: vec![0.01, 0.4],
        discount: vec![0.01, 0.1],
        origin: vec![-1, -1],
        group: vec![0, 0],
    };
    let case = Case::new(&instance, &question);
    let answer = case.solve(&case.settings()).unwrap();
    assert_eq!(answer.tree.unwrap().0.feature[0], 0);
    assert!((answer.objective - (0.01 + 0.1 * 19.0 / 20.0)).abs() < 1e-12);
}

//! Spec values worked by hand.

use bristlecone_oracle::Real;
use bristlecone_oracle::instances::{Instance, Random};
use bristlecone_oracle::survival::Sample;

fn sample(time: &[f64], event: &[bool]) -> Sample {
    let weight = vec![1.0; time.len()];
    Sample { time: time.to_vec(), event: event.to_vec(), weight, entry: None }
}

fn hazards(sample: &Sample) -> Vec<f64> {
    sample.baseline_hazard().iter().map(|hazard| hazard.value.to_f64()).collect()
}

fn assert_hazards<const N: usize>(sample: &Sample, expected: [f64; N]) {
    let found = hazards(sample);
    assert_eq!(found.len(), N);
    found.iter().zip(expected).for_each(|(&hazard, expected)| assert_close(hazard, expected));
}

fn assert_close(actual: f64, expected: f64) {
    let close = (actual - expected).abs() <= 1e-12 * expected.abs().max(1.0);
    assert!(close, "{actual} instead of {expected}");
}

#[test]
fn hazard_sums_events_over_the_rows_at_risk() {
    let sample = sample(&[4.0, 1.0, 3.0, 2.0], &[true, true, true, false]);
    assert_hazards(&sample, [0.25 + 0.5 + 1.0, 0.25, 0.25 + 0.5, 0.25]);
}

#[test]
fn hazard_counts_ties_together_and_rows_censored_at_an_event_as_at_risk() {
    let sample = sample(&[2.0, 1.0, 2.0, 3.0, 2.0], &[true, true, false, true, true]);
    let (first, second, third) = (1.0 / 5.0, 1.0 / 5.0 + 2.0 / 4.0, 1.0 / 5.0 + 2.0 / 4.0 + 1.0);
    assert_hazards(&sample, [second, first, second, third, second]);
}

#[test]
fn hazard_before_the_first_event_is_one_over_the_total_weight_plus_one() {
    let mut sample = sample(&[0.0, 1.0, 2.0, 3.0], &[false, false, true, true]);
    assert_hazards(&sample, [0.2, 0.2, 0.5, 1.5]);
    sample.weight = vec![0.5, 0.25, 1.0, 0.25];
    assert_hazards(&sample, [1.0 / 3.0, 1.0 / 3.0, 0.8, 1.8]);
}

#[test]
fn hazard_of_an_event_at_time_zero_is_not_floored() {
    let sample = sample(&[0.0, 0.0, 2.0], &[true, false, true]);
    let at_zero = 1.0 / 3.0;
    assert_hazards(&sample, [at_zero, at_zero, at_zero + 1.0]);
}

#[test]
fn a_weight_below_one_may_give_a_hazard_below_the_floor() {
    let mut sample = sample(&[1.0, 2.0], &[true, true]);
    sample.weight = vec![0.125, 1.0];
    assert_hazards(&sample, [0.125 / 1.125, 0.125 / 1.125 + 1.0]);
    assert!(hazards(&sample)[0] < 1.0 / (1.125 + 1.0));
}

#[test]
fn hazard_under_delayed_entry_is_that_of_the_time_at_risk() {
    // Events at 2 (rows 0, 2 and 3 at risk) and at 3 (rows 1 and 2): Λ = 1/3, 1/3 + 1/2.
    let mut sample = sample(&[2.0, 3.0, 3.0, 2.5, 2.5], &[true, true, false, false, false]);
    sample.entry = Some(vec![0.0, 2.0, 1.0, 1.5, 2.0]);
    let hazard = hazards(&sample);
    assert_close(hazard[0], 1.0 / 3.0);
    assert_close(hazard[1], 1.0 / 2.0);
    assert_close(hazard[2], 1.0 / 3.0 + 1.0 / 2.0);
    assert_close(hazard[3], 1.0 / 3.0);
    assert_close(hazard[4], 1.0 / 6.0);
}

#[test]
fn kaplan_meier_multiplies_and_nelson_aalen_adds() {
    let sample = sample(&[2.0, 1.0, 2.0, 3.0, 2.0], &[true, true, false, true, true]);
    let rows = sample.rows();
    let at = [0.5, 1.0, 1.5, 2.0, 3.0];
    let survival = at.map(|t| sample.kaplan_meier(&rows, t).to_f64());
    assert_eq!(survival, [1.0, 0.8, 0.8, 0.4, 0.0]);
    let hazard = at.map(|t| sample.nelson_aalen(&rows, t).to_f64());
    assert_eq!(hazard, [0.0, 0.2, 0.2, 0.2 + 0.5, 0.2 + 0.5 + 1.0]);
    assert_close(sample.kaplan_meier(&[0, 2, 4], 2.0).to_f64(), 1.0 / 3.0);
}

#[test]
fn leaf_loss_is_the_saturated_less_the_fitted_log_likelihood() {
    let sample = sample(&[1.0, 2.0, 3.0, 4.0], &[true, false, true, true]);
    let hazard = sample.baseline_hazard();
    let loss = |rows: &[usize]| sample.likelihood_loss(&hazard, rows).to_f64();
    // All rows: 3 events, hazard sum .25 + .25 + .75 + 1.75 = 3, so the second term is 0.
    assert_close(loss(&[0, 1, 2, 3]), -(0.25f64.ln() + 0.75f64.ln() + 1.75f64.ln()));
    assert_close(loss(&[0, 1]), -0.25f64.ln() - 2.0f64.ln());
    assert_close(loss(&[2, 3]), -(0.75f64.ln() + 1.75f64.ln()) - 2.0 * 0.8f64.ln());
    assert_eq!(loss(&[1]), 0.0);
    assert_eq!(loss(&[]), 0.0);
    // A single event is fitted exactly.
    assert_eq!(loss(&[2]), 0.0);
}

#[test]
fn a_whole_weight_is_that_many_rows() {
    for seed in 0..200 {
        let mut sample = Instance::random(seed, 12, 0).sample;
        sample.weight = sample.weight.iter().map(|w| (w * 8.0).floor() % 4.0).collect();
        let copies = |i: usize| std::iter::repeat_n(i, sample.weight[i] as usize);
        let origin: Vec<usize> = sample.rows().into_iter().flat_map(copies).collect();
        let repeated = Sample {
            time: origin.iter().map(|&i| sample.time[i]).collect(),
            event: origin.iter().map(|&i| sample.event[i]).collect(),
            weight: vec![1.0; origin.len()],
            entry: sample.entry.as_ref().map(|entry| origin.iter().map(|&i| entry[i]).collect()),
        };
        let (short, long) = (sample.baseline_hazard(), repeated.baseline_hazard());
        for (copy, &i) in origin.iter().enumerate() {
            assert_eq!(long[copy].value, short[i].value);
        }
        assert_close(
            repeated.likelihood_loss(&long, &repeated.rows()).to_f64(),
            sample.likelihood_loss(&short, &sample.rows()).to_f64(),
        );
    }
}

#[test]
fn splitting_a_leaf_never_raises_the_loss() {
    let mut lowered = 0;
    for seed in 0..2000 {
        let random = &mut Random::new(seed);
        let sample = Instance::random(seed, 20, 0).sample;
        let hazard = sample.baseline_hazard();
        let (yes, no): (Vec<_>, Vec<_>) = sample.rows().iter().partition(|_| random.chance(0.5));
        let whole = sample.likelihood_loss(&hazard, &sample.rows());
        let parts = sample.likelihood_loss(&hazard, &yes) + sample.likelihood_loss(&hazard, &no);
        let (rounding, least) = (Real::from(1e-120), Real::from(1e-6));
        assert!(parts <= whole + rounding, "seed {seed}: {parts:?} > {whole:?}");
        assert!(parts >= -rounding, "seed {seed}: {parts:?} < 0");
        lowered += usize::from(parts < whole - least);
    }
    assert!(lowered > 1000, "only {lowered} of 2000 splits did anything");
}

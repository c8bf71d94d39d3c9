use super::*;
use crate::task::Task;

fn observations() -> (Vec<f64>, Vec<bool>) {
    (vec![1.0, 2.0, 2.0, 3.0, 5.0], vec![false, true, false, true, false])
}

#[test]
fn hazard_is_floored_before_the_first_event() {
    let (time, event) = observations();
    let obs = Observations { time: &time, event: &event, ..Observations::default() };
    let hazard = baseline_hazard(&obs);
    let expected = [1.0 / 6.0, 0.25, 0.25, 0.75, 0.75];
    for (h, e) in hazard.iter().zip(expected) {
        assert!((h - e).abs() < 1e-15);
    }
}

#[test]
fn cost_and_objective_agree() {
    let (time, event) = observations();
    let obs = Observations { time: &time, event: &event, ..Observations::default() };
    let task = Likelihood::new(&obs, 0.01).unwrap();
    let leaf_of = [0, 0, 1, 1, 1];
    let sums = |leaf: usize| {
        let mut sums = [0i64; 2];
        for (i, _) in leaf_of.iter().enumerate().filter(|&(_, &l)| l == leaf) {
            sums[0] += task.statistics()[2 * i];
            sums[1] += task.statistics()[2 * i + 1];
        }
        sums
    };
    let cost = task.combine(&task.leaf_cost(&sums(0)), &task.leaf_cost(&sums(1)));
    assert!(
        (task.objective_of_cost(cost) - task.objective(Placed::rows(&leaf_of, 2)).objective).abs()
            < 1e-14
    );
}

#[test]
fn no_event_is_an_error() {
    let obs = Observations { time: &[1.0], event: &[false], ..Observations::default() };
    assert!(Likelihood::new(&obs, 0.0).unwrap_err().to_string().starts_with("event"));
    let smoothed = Likelihood::of_smoothed(&obs, Some(&[0.5]), 0.0, 0.0);
    assert!(smoothed.unwrap_err().to_string().starts_with("event"));
}

#[test]
fn smoothed_events_are_counted_in_place_of_the_observed_ones() {
    let (time, event) = observations();
    let obs = Observations { time: &time, event: &event, ..Observations::default() };
    let of = |smoothed: &[f64], prior| Likelihood::of_smoothed(&obs, Some(smoothed), prior, 0.0);
    let smoothed = [0.25, 0.0, 1.5, 0.5, 0.5];
    let hazard = baseline_hazard(&obs);
    for prior in [0.0, 2.0] {
        let task = of(&smoothed, prior).unwrap();
        let (mut loss, mut events, mut total) = (0.0, prior, prior);
        for (e, h) in smoothed.iter().zip(&hazard) {
            loss += if *e > 0.0 { e * f64::ln(e / h) } else { 0.0 };
            (events, total) = (events + e, total + h);
        }
        loss -= events * f64::ln(events / total);
        assert!((task.objective(Placed::rows(&[0; 5], 1)).objective - loss / 5.0).abs() < 1e-15);
        // Leaves count the observed events.
        assert_eq!(task.events(), event);
    }
    // Without any event no leaf costs anything.
    assert_eq!(
        of(&[0.0; 5], 0.0).unwrap().objective(Placed::rows(&[0, 0, 1, 1, 1], 2)).objective,
        0.0
    );
    for wrong in [-0.5, f64::NAN, f64::INFINITY, 1e-320] {
        let refusal = of(&[0.5, 0.5, wrong, 0.5, 0.5], 0.0).unwrap_err().to_string();
        assert!(refusal.starts_with("smoothed: row 2 is "), "{refusal}");
    }
}

#[test]
fn far_more_smoothed_events_than_hazard_leave_room_for_prices() {
    let (time, event) = observations();
    let obs = Observations { time: &time, event: &event, ..Observations::default() };
    let smoothed = [1e280, 1e250, 1e280, 1e200, 0.0];
    let task = Likelihood::of_smoothed(&obs, Some(&smoothed), 3.0, 0.0).unwrap();
    let cost = |row: usize| task.leaf_cost(&task.statistics()[2 * row..2 * row + 2]);
    let all = (0..5).map(cost).map(i64::abs).sum::<i64>() + task.leaf_cost(&task.total).abs();
    assert!(all < 1 << 55, "{all}");
}

//! Tests of the Brier score only: the losses of curves, and reference models.

use bristlecone_core::search::{Monitor, Status};
use bristlecone_core::task::curve::{CurveTask, LeafCurve, Rounding};
use bristlecone_oracle::Real;
use bristlecone_oracle::brier::Brier as Reference;
use bristlecone_oracle::instances::Random;
use bristlecone_oracle::survival::Sample;

use crate::harness::{CERTIFIED, EVALUATED, SCALE, agree, ensure, for_each_of};
use crate::kernels::task;

#[test]
fn leaf_losses_equal_the_oracle() {
    for_each_of(&["brier"], 500 * SCALE, (40, 0, &[0]), |case| {
        let sample = &case.instance.sample;
        let reference = Reference::new(sample);
        let [by_product, fitted] = [LeafCurve::KaplanMeier, LeafCurve::BrierOptimal]
            .map(|curve| task(sample, curve).expect("acceptable"));
        let random = &mut Random::new(7);
        for _ in 0..5 {
            let rows = case.instance.rows().into_iter().filter(|_| random.chance(0.6));
            let rows: Vec<usize> = rows.collect();
            let (km, fit) = (reference.kaplan_meier(&rows), reference.antitonic(&rows));
            let least = reference.unrestricted(&rows);
            ensure(least <= fit && fit <= km, || format!("{least}, {fit}, {km}"))?;
            let (km, fit) = (km.to_f64(), fit.to_f64());
            // See docs/maths/brier.md, "Numbers". The oracle rounds only once.
            let relative = Rounding::of_leaves(by_product.timeline(), 0, 0).relative;
            agree("loss", by_product.leaf_loss(&rows), km, relative * km)?;
            agree("fitted loss", fitted.leaf_loss(&rows), fit, relative * fit)?;
        }
        Ok(())
    });
}

#[test]
fn the_fitted_curve_is_superadditive() {
    for_each_of(&["brier"], 500 * SCALE, (40, 1, &[1]), |case| {
        let reference = Reference::new(&case.instance.sample);
        let features = &case.instance.features;
        let (yes, no): (Vec<usize>, Vec<usize>) =
            case.instance.rows().into_iter().partition(|&i| features[i] == [true]);
        let parts = reference.antitonic(&yes) + reference.antitonic(&no);
        let whole = reference.antitonic(&case.instance.rows());
        ensure(parts <= whole + Real::from(1e-120), || format!("{parts} above {whole}"))
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
    let task = task(&sample, LeafCurve::KaplanMeier).expect("acceptable");
    for (rows, expected) in [(vec![1, 2, 3], 0.2), (vec![1, 3], 5.0 / 24.0)] {
        for loss in [reference.kaplan_meier(&rows).to_f64(), task.leaf_loss(&rows)] {
            agree("loss", loss, expected, EVALUATED * expected).unwrap();
        }
    }
}

#[test]
fn a_reference_model_keeps_its_guarantee() {
    for_each_of(&["brier"], 150 * SCALE, (24, 6, &[1, 2, 3]), |case| {
        let optimum = case.solve(&case.settings())?.objective;
        let random = &mut Random::new(case.instance.rows().len() as u64);
        let sample = &case.instance.sample;
        for scale in [0.0, 0.05, 0.5] {
            let losses = sample.weight.iter().map(|_| scale * random.unit());
            let losses: Vec<f64> = losses.collect();
            let sum: f64 = losses.iter().zip(&sample.weight).map(|(l, w)| l * w).sum();
            let monitor = Monitor::new(None, &|| false);
            let answer = case.beside(&losses, &monitor).map_err(|e| e.to_string())?;
            // No bound is needed for a score of 0.
            let proven = answer.objective - answer.lower_bound <= CERTIFIED * answer.objective;
            let status = if proven { Status::Optimal } else { Status::ReferenceOptimal };
            ensure(answer.status == status, || format!("{:?} not {status:?}", answer.status))?;
            let guarantee = optimum * (1.0 + CERTIFIED) + sum / sample.total_weight();
            ensure(answer.objective <= guarantee, || {
                format!("{} above {guarantee}", answer.objective)
            })?;
            ensure(answer.lower_bound <= optimum * (1.0 + EVALUATED), || {
                format!("bound {} above the optimum {optimum}", answer.lower_bound)
            })?;
        }
        Ok(())
    });
}

//! Prices of testing a feature, given the features tested above.

use crate::error::Error;

/// Price of testing each feature, per unit of weight of the tested rows.
///
/// A test is free if a feature of the same origin was tested above, has the discounted cost if a
/// feature of its group was, and has its full cost otherwise. So it is the smallest `pair(feature,
/// above)` over the features above, in any order.
#[derive(Clone, Debug)]
pub struct FeaturePrices {
    cost: Vec<f64>,
    discount: Vec<f64>,
    /// −1 if no other feature has the same origin.
    origin: Vec<i64>,
    group: Vec<i64>,
    /// Other features of the same origin or group, per feature.
    relatives: Vec<Vec<usize>>,
}

impl FeaturePrices {
    /// One entry per feature; negative origins and groups stand for none.
    pub fn new(
        cost: &[f64],
        discount: Option<&[f64]>,
        origin: Option<&[i64]>,
        group: Option<&[i64]>,
    ) -> Result<Self, Error> {
        let n = cost.len();
        let none = vec![-1; n];
        let (discount, origin, group) =
            (discount.unwrap_or(cost), origin.unwrap_or(&none), group.unwrap_or(&none));
        for (name, len) in [
            ("feature_discount", discount.len()),
            ("feature_origin", origin.len()),
            ("feature_group", group.len()),
        ] {
            if len != n {
                let reason = format!("has {len} entries, feature_cost has {n}");
                return Err(Error::invalid(name, reason));
            }
        }
        for (f, (&cost, &discount)) in cost.iter().zip(discount).enumerate() {
            let reason = |text: &str| format!("feature {f} {text}");
            if !cost.is_finite() || cost < 0.0 {
                return Err(Error::invalid(
                    "feature_cost",
                    reason("has a cost that is not a number >= 0"),
                ));
            }
            if !(0.0..=cost).contains(&discount) {
                let text = "has a discount that is not between 0 and its cost";
                return Err(Error::invalid("feature_discount", reason(text)));
            }
        }
        let alone = |all: &[i64], f: usize| {
            all[f] < 0 || all.iter().filter(|&&other| other == all[f]).count() < 2
        };
        let shared = |all: &[i64]| -> Vec<i64> {
            (0..n).map(|f| if alone(all, f) { -1 } else { all[f] }).collect()
        };
        let (origin, group) = (shared(origin), shared(group));
        let related = |f: usize, g: usize| {
            f != g && [&origin, &group].iter().any(|of| of[f] >= 0 && of[f] == of[g])
        };
        let relatives = (0..n).map(|f| (0..n).filter(|&g| related(f, g)).collect()).collect();
        let (cost, discount) = (cost.to_vec(), discount.to_vec());
        Ok(FeaturePrices { cost, discount, origin, group, relatives })
    }

    /// Number of features.
    pub fn n_features(&self) -> usize {
        self.cost.len()
    }

    /// All costs and discounts.
    pub fn values(&self) -> impl Iterator<Item = f64> {
        self.cost.iter().chain(&self.discount).copied()
    }

    /// Price of `feature` if `above` was tested above it.
    pub fn pair(&self, feature: usize, above: usize) -> f64 {
        let shares = |of: &[i64]| of[feature] >= 0 && of[feature] == of[above];
        if feature == above || shares(&self.origin) {
            0.0
        } else if shares(&self.group) {
            self.discount[feature]
        } else {
            self.cost[feature]
        }
    }

    /// Features that may make `feature` cheaper if they are tested above it; ascending.
    pub fn relatives(&self, feature: usize) -> &[usize] {
        &self.relatives[feature]
    }

    /// Price of `feature` below all `tested` features.
    pub fn price(&self, feature: usize, tested: &[usize]) -> f64 {
        let pairs = tested.iter().map(|&above| self.pair(feature, above));
        pairs.fold(self.cost[feature], f64::min)
    }

    /// Features of one kind may replace each other if they agree on all rows.
    pub fn kinds(&self) -> Vec<u32> {
        let same = |f: usize, g: usize| {
            self.cost[f] == self.cost[g]
                && self.origin[f] == self.origin[g]
                && self.group[f] == self.group[g]
                && (self.group[f] < 0 || self.discount[f] == self.discount[g])
        };
        let first = |f: usize| (0..f).find(|&g| same(f, g)).unwrap_or(f) as u32;
        (0..self.n_features()).map(first).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_free_and_groups_discounted() {
        let prices = FeaturePrices::new(
            &[3.0, 3.0, 5.0, 7.0],
            Some(&[1.0, 1.0, 2.0, 7.0]),
            Some(&[0, 0, 1, 2]),
            Some(&[4, 4, 4, -1]),
        )
        .unwrap();
        assert_eq!(prices.price(2, &[]), 5.0);
        assert_eq!(prices.price(2, &[3]), 5.0);
        assert_eq!(prices.price(2, &[3, 0]), 2.0);
        assert_eq!(prices.price(1, &[2]), 1.0);
        assert_eq!(prices.price(1, &[2, 0]), 0.0);
        assert_eq!(prices.kinds(), [0, 0, 2, 3]);
    }

    #[test]
    fn a_discount_above_the_cost_is_refused() {
        let refused = FeaturePrices::new(&[1.0, 2.0], Some(&[1.0, 3.0]), None, None).unwrap_err();
        let expected =
            "feature_discount: feature 1 has a discount that is not between 0 and its cost";
        assert_eq!(refused.to_string(), expected);
    }
}

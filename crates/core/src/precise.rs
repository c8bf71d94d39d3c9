//! Sums, products and quotients of real numbers with twice the precision of f64.

/// A real number as an unevaluated sum of two f64 values, which doubles the precision.
#[derive(Clone, Copy, Debug, Default)]
pub struct Precise {
    /// The sum, rounded.
    pub sum: f64,
    /// What rounding removed from `sum`.
    pub rest: f64,
}

impl From<f64> for Precise {
    fn from(sum: f64) -> Self {
        Precise { sum, rest: 0.0 }
    }
}

impl Precise {
    /// Sum of numbers.
    pub fn of(values: impl Iterator<Item = f64>) -> Precise {
        let mut sum = Precise::default();
        values.for_each(|v| sum.add(v));
        sum
    }

    /// Adds a number.
    #[inline(always)]
    pub fn add(&mut self, value: f64) {
        let (sum, rest) = two_sum(self.sum, value);
        (self.sum, self.rest) = (sum, self.rest + rest);
    }

    /// Adds a product without losing any of its digits.
    #[inline(always)]
    pub fn add_product(&mut self, a: f64, b: f64) {
        let product = a * b;
        self.add(product);
        self.rest += a.mul_add(b, -product);
    }

    /// Adds a number `count` times.
    #[inline(always)]
    pub fn add_times(&mut self, value: f64, count: f64) {
        // The product is a library call on processors without a fused multiply-add.
        if count == 1.0 { self.add(value) } else { self.add_product(value, count) }
    }

    /// Adds a product `count` times without losing any of its digits.
    #[inline(always)]
    pub fn add_product_times(&mut self, a: f64, b: f64, count: f64) {
        if a == 1.0 {
            self.add_times(b, count);
        } else if count == 1.0 {
            self.add_product(a, b);
        } else {
            let mut product = Precise::default();
            product.add_product(a, b);
            *self = self.plus(product.times(count.into()));
        }
    }

    /// The sum, rounded once.
    pub fn value(self) -> f64 {
        self.sum + self.rest
    }

    /// The sum of two such numbers.
    #[inline(always)]
    pub fn plus(mut self, other: Precise) -> Precise {
        self.add(other.sum);
        self.add(other.rest);
        self
    }

    /// The difference; exact to twice the digits of `self`.
    #[inline(always)]
    pub fn minus(mut self, other: Precise) -> Precise {
        self.add(-other.sum);
        self.add(-other.rest);
        self
    }

    /// The product.
    #[inline(always)]
    pub fn times(self, other: Precise) -> Precise {
        let mut product = Precise::default();
        product.add_product(self.sum, other.sum);
        product.rest += self.sum * other.rest + self.rest * other.sum;
        product
    }

    /// The quotient.
    #[inline(always)]
    pub fn over(self, divisor: Precise) -> Precise {
        let quotient = self.value() / divisor.value();
        let mut left = self;
        left.add_product(-quotient, divisor.sum);
        left.add_product(-quotient, divisor.rest);
        Precise { sum: quotient, rest: left.value() / divisor.value() }
    }
}

/// The rounded sum of two numbers and the exact rounding error.
#[inline(always)]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precise_sums_keep_what_cancels() {
        let values = [1e16, 1.0, -1e16, 1e-8];
        assert_eq!(Precise::of(values.into_iter()).value(), 1.0 + 1e-8);
        let mut product = Precise::default();
        product.add_product(1.0 + f64::EPSILON, 1.0 - f64::EPSILON);
        product.add(-1.0);
        assert_eq!(product.value(), -f64::EPSILON * f64::EPSILON);
        let (sum, count) = (Precise::of([0.1; 3].into_iter()), Precise::of([1.0; 3].into_iter()));
        let mean = sum.over(count);
        assert_eq!((mean.value(), mean.sum == 0.1), (0.1, false));
        let third = Precise::from(1.0).over(3.0.into());
        assert!(third.times(3.0.into()).minus(1.0.into()).value().abs() < 1e-30);
        assert_eq!(third.plus(third).minus(third).value(), 1.0 / 3.0);
    }
}

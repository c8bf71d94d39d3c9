//! The best non-increasing curve for a Brier loss, by pooling adjacent violators.

/// Pooled pieces of a curve, in the order of time.
///
/// A piece with curve value s loses s²·p + (1 − s)²·q, least at s = q/(p + q). Where the
/// pieces' own minimisers rise they are pooled (Barlow, Bartholomew, Bremner, Brunk 1972);
/// amortised O(1) per piece.
#[derive(Clone, Debug, Default)]
pub struct Fit {
    pieces: Vec<[f64; 2]>,
}

impl Fit {
    /// Forgets all pieces.
    pub fn clear(&mut self) {
        self.pieces.clear();
    }

    /// Appends the next piece.
    #[inline]
    pub fn push(&mut self, p: f64, q: f64) {
        if p + q <= 0.0 {
            return;
        }
        let mut last = [p, q];
        // q/(p+q) of the new piece above that of the one before.
        while let Some(&[p, q]) = self.pieces.last() {
            if last[1] * p <= q * last[0] {
                break;
            }
            last = [last[0] + p, last[1] + q];
            self.pieces.pop();
        }
        self.pieces.push(last);
    }

    /// Loss of the fitted curve: Σ p·q/(p + q).
    pub fn loss(&self) -> f64 {
        self.pieces.iter().map(|[p, q]| p * q / (p + q)).sum()
    }
}

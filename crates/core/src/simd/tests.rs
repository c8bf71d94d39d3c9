//! Compares every operation of every backend with scalar arithmetic.

use super::*;

/// Tests the lanes of the lattice.
struct Check;

impl<L: Lanes> Job<L> for Check {
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
        let n = L::N;
        let ints = |f: &dyn Fn(usize) -> i64| -> Vec<L::I> {
            (0..16).map(|i| L::I::from_i64(f(i))).collect()
        };
        let (fa, fb) = (|i: usize| (i * i * 31 + 5) as i64, |i: usize| 900 - 57 * i as i64);
        let (a, b) = (lanes.load(&ints(&fa)), lanes.load(&ints(&fb)));
        let expect = |v: L::Int, f: &dyn Fn(usize) -> i64| {
            let mut out = ints(&|_| 0);
            v.store(&mut out);
            assert_eq!(out[..n], ints(f)[..n]);
        };
        expect(a + b, &|i| fa(i) + fb(i));
        expect(a - b, &|i| fa(i) - fb(i));
        expect(L::max(a, b), &|i| fa(i).max(fb(i)));
        expect(L::min(a, b), &|i| fa(i).min(fb(i)));
        expect(L::add_where(a, 0b1010_0110_1100_0101, L::I::from_i64(1000)), &|i| {
            fa(i) + 1000 * (0b1010_0110_1100_0101 >> i & 1)
        });
        let splat = |v| lanes.splat_real(L::R::from_f64(v));
        let values = |v: L::Real| -> Vec<f64> {
            let mut out = [L::R::from_f64(0.0); 16];
            v.store(&mut out);
            out[..n].iter().map(|v| v.to_f64()).collect()
        };
        let one_or_two = values(L::if_less(a, b, splat(1.0), splat(2.0)));
        for i in 0..n {
            assert_eq!(one_or_two[i], if fa(i) < fb(i) { 1.0 } else { 2.0 });
        }
        let (x, y) = (L::to_real(a), splat(2.0));
        for (v, f) in [
            (x + y, (|x| x + 2.0) as fn(f64) -> f64),
            (x * y, |x| x * 2.0),
            (L::min_real(x, splat(100.0)), |x| x.min(100.0)),
        ] {
            let expected: Vec<f64> = (0..n).map(|i| f(fa(i) as f64)).collect();
            assert_eq!(values(v), expected);
        }
        let infinity = lanes.splat_real(L::R::INFINITY);
        assert_eq!(values(x + infinity), vec![f64::INFINITY; n]);
        assert_eq!(values(infinity + infinity), vec![f64::INFINITY; n]);
        assert_eq!(values(L::min_real(infinity, x)), values(x));
        let mut rows = [splat(1.0); 8];
        for (r, row) in rows.iter_mut().enumerate() {
            let values: Vec<L::R> =
                (0..16).map(|i| L::R::from_f64(((i * 7 + r * 3) % 11) as f64)).collect();
            *row = lanes.load_real(&values);
        }
        let mut least = [L::R::INFINITY; 8];
        L::min_across(&rows, 8, &mut least);
        for (r, v) in least.iter().enumerate() {
            let expected = (0..n).map(|i| (i * 7 + r * 3) % 11).min().unwrap();
            assert_eq!(v.to_f64(), expected as f64);
        }
    }
}

/// Tests the floating-point lanes of the lattice.
struct CheckFloats;

impl<L: FloatLanes> Job<L> for CheckFloats {
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
        lanes.run(Check);
        let n = L::N;
        let fa = |i: usize| (i * i * 31 + 5) as f64;
        let splat = |v| lanes.splat_real(L::R::from_f64(v));
        let values = |v: L::Real| -> Vec<f64> {
            let mut out = [L::R::from_f64(0.0); 16];
            v.store(&mut out);
            out[..n].iter().map(|v| v.to_f64()).collect()
        };
        let of_lanes: Vec<L::R> = (0..16).map(|i| L::R::from_f64(fa(i))).collect();
        let (x, y) = (lanes.load_real(&of_lanes), splat(2.0));
        for (v, f) in [(x - y, (|x| x - 2.0) as fn(f64) -> f64), (x / y, |x| x / 2.0)] {
            assert_eq!(values(v), (0..n).map(|i| f(fa(i))).collect::<Vec<f64>>());
        }
        let mut state = 1u64;
        for _ in 0..20_000 {
            // Integers up to 2^31, and shifts up to those that cancel the logarithm.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (a, b) = ((state >> 33) as f64 + 1.0, (state >> 50) as f64 + 1.0);
            for shift in [0.25, -21.3, f64::ln(b / a) + 0.1] {
                let value = values(L::ln_ratio(splat(a), splat(b), splat(shift)))[0];
                let exact = f64::ln(a / b) + shift;
                let relative = 2.0 * exact.abs() + 3.0 * shift.abs();
                // The scalar reference is rounded, too.
                let reference = 3e-16 * (1.0 + exact.abs() + shift.abs());
                let bound = L::R::LN_ERROR + L::R::ROUNDOFF * relative + reference;
                let error = (value - exact).abs();
                assert!(error <= bound, "ln({a} / {b}) + {shift}: off by {error:e}");
            }
        }
        // The loss of a cell without rows or events is a weight of 0 times a finite number.
        for (x, y) in [(0.0, 0.0), (5.0, 0.0), (0.0, 5.0)] {
            let product = splat(0.0) * L::ln_ratio(splat(x), splat(y), splat(0.0));
            assert_eq!(values(product), vec![0.0; n]);
        }
        for sum in [L::I::MAX_SUM - 12345, 12345 - L::I::MAX_SUM, -1, 0, 1] {
            let exact = sum as f64;
            let real = L::to_real(lanes.splat(L::I::from_i64(sum)));
            assert!((values(real)[0] - exact).abs() <= exact.abs() * L::R::ROUNDOFF);
            let error = (values(real / splat(3.0))[n - 1] - exact / 3.0).abs();
            assert!(error <= exact.abs() * L::R::ROUNDOFF);
        }
    }
}

/// Tests the lanes of kernels that walk over rows.
struct CheckRows;

impl<L: RowLanes> Job<L> for CheckRows {
    type Output = ();

    #[inline(always)]
    fn run(self, lanes: L) {
        let (n, counters) = (L::N, L::COUNTERS);
        let bits = 0b1010_0110_1100_0101_0011_1001_0110_0101_u64;
        let set = |i: usize| bits >> i & 1 == 1;
        let values = |v: L::Real| -> Vec<f64> {
            let mut out = [0.0; 8];
            v.store(&mut out);
            out[..n].to_vec()
        };
        let each = |f: &dyn Fn(usize) -> f64| -> Vec<f64> { (0..n).map(f).collect() };
        let fx = |i: usize| i as f64 * 1.5 - 2.0;
        let x = lanes.load_real(&(0..8).map(fx).collect::<Vec<f64>>());
        let splat = |v| lanes.splat_real(v);
        let added = L::add_real_where(x, bits as u32, 10.0);
        assert_eq!(values(added), each(&|i| fx(i) + if set(i) { 10.0 } else { 0.0 }));
        assert_eq!(values(L::max_real(x, splat(1.0))), each(&|i| fx(i).max(1.0)));
        assert_eq!(values(L::mul_add(x, splat(2.0), splat(3.0))), each(&|i| fx(i) * 2.0 + 3.0));
        let chosen = values(L::if_positive(x, splat(1.0), splat(2.0)));
        assert_eq!(chosen, each(&|i| if fx(i) > 0.0 { 1.0 } else { 2.0 }));
        for x in [1.0, 3.0, 7.0, 1e6 + 1.0, 9e15] {
            assert!((values(L::reciprocal(splat(x)))[0] * x - 1.0).abs() < 1e-15);
        }

        let numbers: Vec<u16> = (0..64).map(|i| i * 1021 + 7).collect();
        assert_eq!(values(lanes.load_counts(&numbers)), each(&|i| f64::from(numbers[i])));
        let counted = |c: L::Counts| -> Vec<u16> {
            let mut out = [0; 32];
            c.store(&mut out);
            out[..counters].to_vec()
        };
        let all = lanes.load_all(&numbers);
        assert_eq!(counted(all), numbers[..counters]);
        let chosen = L::count_where(lanes.no_counts(), bits as u32, 9);
        let expected: Vec<u16> = (0..counters).map(|i| if set(i) { 9 } else { 0 }).collect();
        assert_eq!(counted(chosen), expected);
        let sums: Vec<u16> = (0..counters).map(|i| numbers[i].wrapping_add(expected[i])).collect();
        assert_eq!(counted(all + chosen), sums);
        assert_eq!(counted(all + chosen - chosen), numbers[..counters]);
        let within = |i: &usize| (2000..=9000).contains(&numbers[*i]);
        let expected: u32 = (0..counters).filter(within).map(|i| 1 << i).sum();
        assert_eq!(L::between(all, 2000, 9000), expected);

        assert_eq!(lanes.compact(0b1_0110_1001, 0b1_1100_1011), 0b10_1101);
        let mut positions = [0; 80];
        let n_set = lanes.positions(bits, 100, &mut positions);
        let expected: Vec<u32> = (0..64).filter(|&i| set(i)).map(|i| 100 + i as u32).collect();
        assert_eq!(positions[..n_set], expected);
        for (width, keep) in [(counters, bits & ((1 << counters) - 1)), (64, bits | bits << 31)] {
            let from: Vec<u16> = (0..3 * width as u16).collect();
            let mut to = vec![0; 3 * width];
            lanes.narrow(&from, &mut to, &[0, 2], width, keep);
            for row in [0, 2] {
                let kept = (0..width).filter(|&lane| keep >> lane & 1 == 1);
                let expected: Vec<u16> = kept.map(|lane| from[row * width + lane]).collect();
                assert_eq!(to[row * width..][..expected.len()], expected);
            }
        }
    }
}

#[test]
fn every_backend_computes_what_scalars_do() {
    for backend in Backend::available() {
        with_token!(backend, token => {
            token.short().run(Check);
            token.short().half().run(Check);
            token.single().run(CheckFloats);
            token.single().half().run(CheckFloats);
            token.double().run(CheckFloats);
            token.double().run(CheckRows);
        });
        println!("kernel tested: {}", backend.name());
    }
}

//! Decimal numbers.

/// Fewer digits than this and one are an integer below 2^53, which a power of ten divides exactly
/// rounded.
const EXACT: usize = 15;

const POWERS: [f64; EXACT + 1] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// What cells hold.
#[derive(Default)]
pub struct Numbers {
    /// Correctly rounded; NaN where the cell is blank or odd.
    pub values: Vec<f64>,
    /// Cells that are neither blank nor a number.
    pub odd: Vec<usize>,
    /// Whether a cell is blank.
    pub blank: bool,
    /// First number with a decimal mark.
    pub marked: Option<usize>,
    /// Whether no number has a decimal mark or an exponent.
    pub whole: bool,
    /// Most digits of a number, those of exponents apart.
    pub n_digits: usize,
}

/// Numbers as they are written: digits with a sign before them, a decimal mark among them and an
/// exponent behind them, or not. Spaces around them do not count.
pub fn numbers(cells: &[&[u8]], mark: u8) -> Numbers {
    let mut found = Numbers { whole: true, ..Numbers::default() };
    found.values.reserve_exact(cells.len());
    for (row, &cell) in cells.iter().enumerate() {
        let cell = trimmed(cell);
        let mut value = f64::NAN;
        if cell.is_empty() {
            found.blank = true;
        } else if let Some(number) = parse(cell, mark) {
            value = number.value;
            found.n_digits = found.n_digits.max(number.n_digits);
            found.whole &= !number.marked && !number.scaled;
            if number.marked && found.marked.is_none() {
                found.marked = Some(row);
            }
        } else {
            found.odd.push(row);
        }
        found.values.push(value);
    }
    found
}

/// Whole numbers, with a sign and spaces around them or not; None where one does not fit.
pub fn integers(cells: &[&[u8]]) -> Option<Vec<i64>> {
    cells.iter().map(|cell| str::from_utf8(trimmed(cell)).ok()?.parse().ok()).collect()
}

fn trimmed(mut cell: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] | [rest @ .., b' '] = cell {
        cell = rest;
    }
    cell
}

struct Number {
    value: f64,
    n_digits: usize,
    /// Has a decimal mark.
    marked: bool,
    /// Has an exponent.
    scaled: bool,
}

fn parse(cell: &[u8], mark: u8) -> Option<Number> {
    let unsigned = without_sign(cell);
    let mut mantissa = 0;
    let whole = digits(unsigned, &mut mantissa);
    let mut rest = &unsigned[whole..];
    let mut decimals = 0;
    let marked = rest.first() == Some(&mark);
    if marked {
        rest = &rest[1..];
        decimals = digits(rest, &mut mantissa);
        rest = &rest[decimals..];
    }
    let n_digits = whole + decimals;
    let scaled = !rest.is_empty();
    if n_digits == 0 || scaled && !is_exponent(rest) {
        return None;
    }
    let value = if n_digits <= EXACT && !scaled {
        let value = mantissa as f64 / POWERS[decimals];
        if cell[0] == b'-' { -value } else { value }
    } else if mark == b'.' || !marked {
        str::from_utf8(cell).ok()?.parse().ok()?
    } else {
        let pointed = str::from_utf8(cell).ok()?.replacen(char::from(mark), ".", 1);
        pointed.parse().ok()?
    };
    Some(Number { value, n_digits, marked, scaled })
}

fn without_sign(text: &[u8]) -> &[u8] {
    match text {
        [b'+' | b'-', rest @ ..] => rest,
        _ => text,
    }
}

/// Number of digits that the text begins with, each put behind those of the mantissa; this one
/// holds for `EXACT` of them.
fn digits(text: &[u8], mantissa: &mut u64) -> usize {
    let mut count = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        *mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        count += 1;
    }
    count
}

fn is_exponent(text: &[u8]) -> bool {
    let [b'e' | b'E', rest @ ..] = text else { return false };
    let rest = without_sign(rest);
    !rest.is_empty() && rest.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::{integers, numbers};

    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    #[test]
    fn numbers_are_correctly_rounded() {
        let texts = ["1", "-0.1", " .5 ", "5.", "+9007199254740993", "1e-5", "-1.25E+300", "-0"];
        let cells: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        let found = numbers(&cells, b'.');
        let expected = [1.0, -0.1, 0.5, 5.0, 9007199254740992.0, 1e-5, -1.25e300, -0.0];
        assert_eq!(bits(&found.values), bits(&expected));
        assert!(found.odd.is_empty() && !found.blank && !found.whole);
        assert_eq!((found.marked, found.n_digits), (Some(1), 16));
    }

    #[test]
    fn whole_numbers_are_exact() {
        let cells: [&[u8]; 3] = [b" +12345678901234567", b"-1 ", b"007"];
        assert_eq!(integers(&cells), Some(vec![12345678901234567, -1, 7]));
        assert_eq!(integers(&[b"1.0"]), None);
    }

    #[test]
    fn what_is_no_number_is_odd() {
        let cells: [&[u8]; 9] = [b"", b"  ", b".", b"-", b"1.2.3", b"1e", b"e5", b"1,5", b"inf"];
        let found = numbers(&cells, b'.');
        assert_eq!(found.odd, [2, 3, 4, 5, 6, 7, 8]);
        assert!(found.blank && found.whole && found.values.iter().all(|value| value.is_nan()));
        assert_eq!(numbers(&[b"-1,5e1", b"1.5"], b',').values[0], -15.0);
    }
}

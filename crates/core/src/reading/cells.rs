//! Cells of a regular table.

/// Where every cell of a table begins and ends, row by row, if every mark in it is what it seems;
/// None when some may not be.
///
/// That is: each line has `n_columns` cells, quotation marks (left out) enclose whole cells and do
/// not occur in them, no line is empty, every carriage return stands before a line end, and there
/// is no NUL. Line ends behind the last cell do not count. `start` is where the first line begins,
/// and `place` makes an offset of a position.
pub fn split<T>(
    text: &[u8],
    start: usize,
    delimiter: u8,
    n_columns: usize,
    place: impl Fn(usize) -> T,
) -> Option<Vec<[T; 2]>> {
    let behind = start + text.get(start..)?.iter().rposition(|byte| !b"\r\n".contains(byte))? + 1;
    let text = &text[..behind + text[behind..].iter().position(|&byte| byte == b'\n')? + 1];
    let mut ends_cell = [false; 256];
    for byte in [delimiter, b'\n', b'\r', b'"', b'\0'] {
        ends_cell[usize::from(byte)] = true;
    }
    let mut bounds = Vec::new();
    let mut at = start;
    while at < text.len() {
        for column in 0..n_columns {
            let begin = at;
            let quoted = text[begin] == b'"';
            let (cell, end) = if quoted {
                let length = text[begin + 1..].iter().position(|&byte| byte == b'"')?;
                let cell = begin + 1..begin + 1 + length;
                if !is_quotable(&text[cell.clone()]) {
                    return None;
                }
                let end = cell.end + 1;
                (cell, end)
            } else {
                let ends = text[begin..].iter().position(|&byte| ends_cell[usize::from(byte)]);
                let end = begin + ends?;
                (begin..end, end)
            };
            at = match (text.get(end)?, text.get(end + 1)) {
                (&mark, _) if mark == delimiter && column + 1 < n_columns => end + 1,
                (b'\n', _) if column + 1 == n_columns => end + 1,
                (b'\r', Some(b'\n')) if column + 1 == n_columns => end + 2,
                _ => return None,
            };
            if n_columns == 1 && end == begin {
                return None;
            }
            bounds.push([place(cell.start), place(cell.end)]);
        }
    }
    Some(bounds)
}

/// Whether there is no NUL and no carriage return but before a line end.
fn is_quotable(cell: &[u8]) -> bool {
    !cell.contains(&b'\0')
        && cell.split(|&byte| byte == b'\r').skip(1).all(|rest| rest.starts_with(b"\n"))
}

#[cfg(test)]
mod tests {
    use super::split;

    fn cells(text: &str, n_columns: usize) -> Option<Vec<&str>> {
        let bounds = split(text.as_bytes(), 0, b',', n_columns, |at| at)?;
        Some(bounds.iter().map(|&[start, end]| &text[start..end]).collect())
    }

    #[test]
    fn regular_tables_are_split() {
        assert_eq!(cells("a,b\r\n,\"c, \r\nd\"\n\r\n\n", 2), Some(vec!["a", "b", "", "c, \r\nd"]));
        assert_eq!(cells("a\n\"\"\n", 1), Some(vec!["a", ""]));
    }

    #[test]
    fn odd_ones_are_left_to_the_rules() {
        for text in
            ["a\n", "a,b,c\n", "a,b\n\nc,d\n", "a,b\rc\n", "a,\"b\"c\n", "a,b\"\n", "a,\"b\n"]
        {
            assert_eq!(cells(text, 2), None, "{text}");
        }
        for text in ["", "\n", "a\n\nb\n", "a\0\n", "\"a\0\"\n", "\"a\rb\"\n", "\"a\r\"\n", "a"] {
            assert_eq!(cells(text, 1), None, "{text}");
        }
    }
}

//! Cells of text files for Python.

use bristlecone_core::reading::{integers, levels, numbers, split};
use numpy::ndarray::{ArrayView1, ArrayView2};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Where cells begin and end, shape (n, 2); narrow where the text has less than 4 GiB.
#[derive(FromPyObject)]
pub enum Bounds<'py> {
    Narrow(PyReadonlyArray2<'py, u32>),
    Wide(PyReadonlyArray2<'py, u64>),
}

impl Bounds<'_> {
    /// The cells; ValueError for bounds that are not those of a piece of the text.
    fn cells<'a>(&self, text: &'a [u8]) -> PyResult<Vec<&'a [u8]>> {
        match self {
            Bounds::Narrow(bounds) => cells(text, bounds.as_array(), |at| at as usize),
            Bounds::Wide(bounds) => cells(text, bounds.as_array(), |at| at as usize),
        }
    }
}

fn cells<'a, T: Copy>(
    text: &'a [u8],
    bounds: ArrayView2<T>,
    place: impl Fn(T) -> usize,
) -> PyResult<Vec<&'a [u8]>> {
    let (n, width) = bounds.dim();
    if width != 2 || u32::try_from(n).is_err() {
        return Err(PyValueError::new_err("bounds must have shape (n, 2), n < 2^32"));
    }
    let beyond = || PyValueError::new_err("bounds beyond the text");
    let cell = |row: ArrayView1<T>| text.get(place(row[0])..place(row[1])).ok_or_else(beyond);
    bounds.rows().into_iter().map(cell).collect()
}

/// Bounds of the cells of a regular table, shape (rows, columns, 2); None for any other.
#[pyfunction]
pub fn split_cells<'py>(
    py: Python<'py>,
    text: &[u8],
    start: usize,
    delimiter: char,
    n_columns: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let delimiter = u8::try_from(delimiter)
        .map_err(|_| PyValueError::new_err("delimiter must be a single byte"))?;
    let bounds = if u32::try_from(text.len()).is_ok() {
        split(text, start, delimiter, n_columns, |at| at as u32).map(|found| flat(py, found))
    } else {
        split(text, start, delimiter, n_columns, |at| at as u64).map(|found| flat(py, found))
    };
    bounds.map(|flat| flat.call_method1("reshape", ((-1, n_columns, 2),))).transpose()
}

fn flat<T: numpy::Element>(py: Python<'_>, bounds: Vec<[T; 2]>) -> Bound<'_, PyAny> {
    bounds.into_flattened().into_pyarray(py).into_any()
}

/// Numbers in cells, with this decimal mark.
///
/// Returns a dict: `values` (float64, correctly rounded, NaN where the cell is blank or odd),
/// `odd` (rows of the cells that are neither blank nor a number), `blank` (whether a cell is),
/// `marked` (row of the first number with a decimal mark, or None), `whole` (whether no number has
/// a decimal mark or an exponent) and `n_digits` (most digits of a number, exponents apart).
#[pyfunction]
pub fn read_numbers<'py>(
    py: Python<'py>,
    text: &[u8],
    bounds: Bounds<'py>,
    mark: char,
) -> PyResult<Bound<'py, PyDict>> {
    let mark =
        u8::try_from(mark).map_err(|_| PyValueError::new_err("mark must be a single byte"))?;
    let found = numbers(&bounds.cells(text)?, mark);
    let out = PyDict::new(py);
    out.set_item("values", found.values.into_pyarray(py))?;
    out.set_item("odd", found.odd.into_pyarray(py))?;
    out.set_item("blank", found.blank)?;
    out.set_item("marked", found.marked)?;
    out.set_item("whole", found.whole)?;
    out.set_item("n_digits", found.n_digits)?;
    Ok(out)
}

/// Whole numbers in cells, exactly; ValueError where there is anything else.
#[pyfunction]
pub fn read_integers<'py>(
    py: Python<'py>,
    text: &[u8],
    bounds: Bounds<'py>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let found = integers(&bounds.cells(text)?);
    let found = found.ok_or_else(|| PyValueError::new_err("a cell is no whole number"))?;
    Ok(found.into_pyarray(py))
}

/// Code of every cell among the distinct ones, numbered as they occur, and these as strings.
///
/// ValueError for bytes that are no UTF-8.
#[pyfunction]
pub fn find_levels<'py>(
    py: Python<'py>,
    text: &[u8],
    bounds: Bounds<'py>,
) -> PyResult<(Bound<'py, PyArray1<u32>>, Bound<'py, PyList>)> {
    let cells = bounds.cells(text)?;
    let found = levels(&cells);
    let distinct: Result<Vec<&str>, _> =
        found.first.iter().map(|&row| str::from_utf8(cells[row as usize])).collect();
    let distinct = distinct.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((found.codes.into_pyarray(py), PyList::new(py, distinct)?))
}

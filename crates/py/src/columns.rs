//! The data of a task from Python: named arrays, numbers and words, all borrowed.

use bristlecone_core::registry::{Column, Columns};
use numpy::{
    PyArrayDescrMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A value in the form in which Python holds it.
enum Held<'py> {
    Word(String),
    Numbers(PyReadonlyArray1<'py, f64>),
    Codes(PyReadonlyArray1<'py, i64>),
    Flags(PyReadonlyArray1<'py, bool>),
    Table(PyReadonlyArray2<'py, f64>),
    Number(f64),
}

impl<'py> Held<'py> {
    fn of(value: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(match type_of(value) {
            Some((b'f', 8, 2)) => Held::Table(value.extract()?),
            Some((b'f', 8, _)) => Held::Numbers(value.extract()?),
            Some((b'i', 8, _)) => Held::Codes(value.extract()?),
            Some((b'b', ..)) => Held::Flags(value.extract()?),
            _ => match value.extract() {
                Ok(word) => Held::Word(word),
                Err(_) => Held::Number(value.extract()?),
            },
        })
    }
}

/// Kind and item size of an array, as NumPy names them, and its number of dimensions. Trying one
/// type after another would take longer than a small search, because every failure formats an
/// error.
pub(crate) fn type_of(value: &Bound<'_, PyAny>) -> Option<(u8, usize, usize)> {
    let array = value.cast::<PyUntypedArray>().ok()?;
    Some((array.dtype().kind(), array.dtype().itemsize(), array.ndim()))
}

/// All values that are not None.
pub(crate) struct Data<'py>(Vec<(String, Held<'py>)>);

impl<'py> Data<'py> {
    /// ValueError for values that are neither arrays of a known dtype nor numbers or strings.
    pub(crate) fn new(data: &Bound<'py, PyDict>) -> PyResult<Self> {
        let mut held = Vec::with_capacity(data.len());
        for (name, value) in data {
            let name: String = name.extract()?;
            if value.is_none() {
                continue;
            }
            let Ok(value) = Held::of(&value) else {
                return Err(PyValueError::new_err(format!(
                    "{name} must be a float64, int64 or bool array, a number or a string"
                )));
            };
            held.push((name, value));
        }
        Ok(Data(held))
    }

    /// ValueError for arrays that are not C-contiguous.
    pub(crate) fn columns(&self) -> PyResult<Columns<'_>> {
        let mut columns = Columns::default();
        for (name, value) in &self.0 {
            let scattered = |_| PyValueError::new_err(format!("{name} is not C-contiguous"));
            let column = match value {
                Held::Word(word) => Column::Word(word),
                Held::Numbers(array) => Column::Numbers(array.as_slice().map_err(scattered)?),
                Held::Codes(array) => Column::Codes(array.as_slice().map_err(scattered)?),
                Held::Flags(array) => Column::Flags(array.as_slice().map_err(scattered)?),
                Held::Table(array) => Column::Table {
                    values: array.as_slice().map_err(scattered)?,
                    width: array.as_array().ncols(),
                },
                Held::Number(number) => Column::Number(*number),
            };
            columns.insert(name, column);
        }
        Ok(columns)
    }
}

//! Binary features of rows, packed eight to a byte, for Python.

use crate::cuts::{Ranked, check_rows, slice};
use crate::memory::{ensure, return_freed};
use crate::run::to_py;
use crate::solution::{TreeArrays, tree_of};
use bristlecone_core::data::{BinaryMatrix, Questions};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use std::borrow::Cow;

/// Binary features of rows, shape (rows, features), with one bit each. `numpy.asarray` turns them
/// into an array with one byte each.
#[pyclass(frozen, name = "BinaryMatrix", module = "bristlecone._core")]
pub struct PyBinaryMatrix(BinaryMatrix);

#[pymethods]
impl PyBinaryMatrix {
    /// From a C-contiguous array of zeros and ones with one byte each.
    #[new]
    fn new(values: PyReadonlyArray2<'_, u8>) -> PyResult<Self> {
        of_bytes(&values).map(Self)
    }

    /// Features of training rows. Feature k is true if the rank in column `place[k]` is at most
    /// `gap[k]`; for a column of answers, it is the answer.
    #[staticmethod]
    fn of_ranks(
        py: Python<'_>,
        columns: Vec<Ranked<'_>>,
        place: Vec<usize>,
        gap: Vec<u32>,
        n_rows: usize,
    ) -> PyResult<Self> {
        check_rows(&columns, n_rows)?;
        if place.len() != gap.len() || place.iter().any(|&place| place >= columns.len()) {
            return Err(PyValueError::new_err("place: not a column for every gap"));
        }
        let asked: Vec<(usize, u32)> = place.into_iter().zip(gap).collect();
        let mut questions = Vec::new();
        for own in asked.chunk_by(|a, b| a.0 == b.0) {
            let gaps = || own.iter().map(|asked| asked.1).collect();
            questions.push(match &columns[own[0].0] {
                Ranked::Ranks(ranks) => Questions::Cuts(slice(ranks)?, gaps()),
                Ranked::Bins(ranks) => Questions::FewCuts(slice(ranks)?, gaps()),
                Ranked::Answers(answers) => Questions::Answers(slice(answers)?, own.len()),
            });
        }
        ensure(BinaryMatrix::bytes_to_encode(n_rows, &questions))?;
        let cells = n_rows * columns.len();
        let encoded = py.detach(|| {
            return_freed(cells);
            BinaryMatrix::encode(n_rows, &questions)
        });
        encoded.map(Self).map_err(to_py)
    }

    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.0.n_rows(), self.0.n_features())
    }

    fn __len__(&self) -> usize {
        self.0.n_rows()
    }

    /// The bits of every row, with the first feature lowest, shape (rows, words).
    fn words<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let shape = [self.0.n_rows(), self.0.words()];
        ensure(size_of_val(self.0.bits()))?;
        self.0.bits().to_vec().into_pyarray(py).reshape(shape)
    }

    /// One feature, for all rows.
    fn column<'py>(&self, py: Python<'py>, feature: usize) -> PyResult<Bound<'py, PyArray1<bool>>> {
        if feature >= self.0.n_features() {
            return Err(PyIndexError::new_err(format!("feature {feature} of {}", self.shape().1)));
        }
        Ok(py.detach(|| self.0.column(feature)).into_pyarray(py))
    }

    /// These rows, in this order.
    fn take(&self, rows: PyReadonlyArray1<'_, i64>) -> PyResult<Self> {
        let n_rows = self.0.n_rows();
        let place = |&row: &i64| usize::try_from(row).ok().filter(|&row| row < n_rows);
        let Some(rows) = slice(&rows)?.iter().map(place).collect::<Option<Vec<_>>>() else {
            return Err(PyIndexError::new_err(format!("rows: not all of the {n_rows}")));
        };
        ensure(BinaryMatrix::bytes(rows.len(), self.0.n_features()))?;
        Ok(Self(self.0.take(&rows)))
    }

    /// Number of rows in which every feature is true: of all rows, or of those in `among`.
    #[pyo3(signature = (among=None))]
    fn count_true<'py>(
        &self,
        py: Python<'py>,
        among: Option<PyReadonlyArray1<'py, bool>>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let among = among.as_ref().map(slice).transpose()?;
        if among.is_some_and(|among| among.len() != self.0.n_rows()) {
            return Err(PyValueError::new_err("among: not an answer for every row"));
        }
        Ok(py.detach(|| self.0.count_true(among)).into_pyarray(py))
    }

    /// For every feature, the first feature that divides the rows in the same way: an equal one, or
    /// its complement.
    fn first_alike(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        // A copy by columns.
        ensure(BinaryMatrix::bytes(self.0.n_features(), self.0.n_rows()))?;
        Ok(py.detach(|| self.0.first_alike()))
    }

    /// For every row, its leaf in a tree of these features (given by the feature, left and right
    /// child of every node, in preorder); leaves are counted from left to right.
    fn leaf_index<'py>(
        &self,
        py: Python<'py>,
        tree: TreeArrays,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let tree = tree_of(tree);
        if tree.feature.iter().any(|&feature| feature >= self.0.n_features() as i64) {
            return Err(PyIndexError::new_err("tree: a feature that the rows do not have"));
        }
        let leaves = py.detach(|| tree.partition(&self.0));
        Ok(leaves.into_iter().map(|leaf| leaf as i64).collect::<Vec<_>>().into_pyarray(py))
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(PyValueError::new_err("an array of these bits is a copy"));
        }
        ensure(self.0.n_rows().saturating_mul(self.0.n_features()))?;
        let bytes = py.detach(|| self.0.to_bytes());
        let array = bytes.into_pyarray(py).reshape([self.0.n_rows(), self.0.n_features()])?;
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array.into_any()),
        }
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>,))> {
        let array = slf.get().__array__(slf.py(), None, None)?;
        Ok((slf.get_type().into_any(), (array,)))
    }
}

fn of_bytes(values: &PyReadonlyArray2<'_, u8>) -> PyResult<BinaryMatrix> {
    let (n_rows, n_features) = values.as_array().dim();
    let scattered = |_| PyValueError::new_err("features: not C-contiguous");
    let bytes = values.as_slice().map_err(scattered)?;
    ensure(BinaryMatrix::bytes(n_rows, n_features))?;
    BinaryMatrix::from_bytes(n_rows, n_features, bytes).map_err(to_py)
}

/// Features of a problem, with one bit or one byte each.
#[derive(FromPyObject)]
pub enum Features<'py> {
    Bits(Bound<'py, PyBinaryMatrix>),
    Bytes(PyReadonlyArray2<'py, u8>),
}

impl Features<'_> {
    /// Number of rows and of features.
    pub(crate) fn shape(&self) -> (usize, usize) {
        match self {
            Features::Bits(bits) => bits.get().shape(),
            Features::Bytes(bytes) => bytes.as_array().dim(),
        }
    }

    /// The features as bits, borrowed if Python already has them as bits.
    pub(crate) fn packed(&self) -> PyResult<Cow<'_, BinaryMatrix>> {
        match self {
            Features::Bits(bits) => Ok(Cow::Borrowed(&bits.get().0)),
            Features::Bytes(values) => of_bytes(values).map(Cow::Owned),
        }
    }
}

//! The data of a task: named columns, each with one type.

use crate::error::Error;
use std::cell::Cell;

/// The values of a column, borrowed from the caller.
#[derive(Clone, Copy, Debug)]
pub enum Column<'a> {
    /// A real number per row, feature or label.
    Numbers(&'a [f64]),
    /// A whole number per row or feature.
    Codes(&'a [i64]),
    /// A truth value per row.
    Flags(&'a [bool]),
    /// Real numbers per row, row after row.
    Table {
        /// `[row][column]`.
        values: &'a [f64],
        /// Columns of a row.
        width: usize,
    },
    /// One number for all rows.
    Number(f64),
    /// A word that the task defines.
    Word(&'a str),
}

impl Column<'_> {
    /// Number of entries; `None` for a single value.
    fn len(&self) -> Option<usize> {
        match *self {
            Column::Numbers(values) => Some(values.len()),
            Column::Codes(values) => Some(values.len()),
            Column::Flags(values) => Some(values.len()),
            Column::Table { values, width } => Some(values.len() / width.max(1)),
            Column::Number(_) | Column::Word(_) => None,
        }
    }
}

/// Columns by name. Every column that is read is recorded, so that columns that no task reads can
/// be rejected.
#[derive(Clone, Debug, Default)]
pub struct Columns<'a> {
    columns: Vec<(&'a str, Column<'a>, Cell<bool>)>,
}

/// Readers of one type of column: one that returns an option, and one that requires the column.
macro_rules! readers {
    ($($maybe:ident, $need:ident: $variant:pat => $value:expr, $type:ty, $kind:literal;)*) => {$(
        #[doc = concat!("The column of that name, ", $kind, "; none where absent.")]
        pub fn $maybe(&self, name: &'static str) -> Result<Option<$type>, Error> {
            match self.find(name) {
                None => Ok(None),
                Some($variant) => Ok(Some($value)),
                Some(_) => Err(Error::invalid(name, concat!("must be ", $kind))),
            }
        }

        #[doc = concat!("The column of that name, ", $kind, "; an error where absent.")]
        pub fn $need(&self, name: &'static str) -> Result<$type, Error> {
            self.$maybe(name)?.ok_or_else(|| Error::invalid(name, "is missing"))
        }
    )*};
}

impl<'a> Columns<'a> {
    /// Adds a column. If a name is given twice, the first column counts.
    pub fn insert(&mut self, name: &'a str, column: Column<'a>) {
        self.columns.push((name, column, Cell::new(false)));
    }

    fn find(&self, name: &str) -> Option<Column<'a>> {
        let (_, column, read) = self.columns.iter().find(|(known, ..)| *known == name)?;
        read.set(true);
        Some(*column)
    }

    /// Rejects columns whose length is not the number of rows.
    pub fn check_rows(&self, names: &[&'static str], n_rows: usize) -> Result<(), Error> {
        for &name in names {
            let length = self.columns.iter().find(|(known, ..)| *known == name);
            match length.and_then(|(_, column, _)| column.len()) {
                Some(n) if n != n_rows => {
                    return Err(Error::invalid(name, format!("has {n} rows, X has {n_rows}")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Rejects columns that were never read.
    pub fn check_read(&self) -> Result<(), Error> {
        match self.columns.iter().find(|(.., read)| !read.get()) {
            Some((name, ..)) => {
                Err(Error::invalid("data", format!("{name:?} is not a column of the task")))
            }
            None => Ok(()),
        }
    }

    readers! {
        numbers_if_any, numbers: Column::Numbers(v) => v, &'a [f64], "a float64 array";
        codes_if_any, codes: Column::Codes(v) => v, &'a [i64], "an int64 array";
        flags_if_any, flags: Column::Flags(v) => v, &'a [bool], "a bool array";
        table_if_any, table: Column::Table { values, width } => (values, width),
            (&'a [f64], usize), "a float64 array of two dimensions";
        number_if_any, number: Column::Number(v) => v, f64, "a number";
        word_if_any, word: Column::Word(v) => v, &'a str, "a string";
    }
}

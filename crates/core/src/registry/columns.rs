//! Data of a task: columns by name, each of one type.

use crate::error::Error;
use std::cell::Cell;

/// Values under one name, borrowed from the caller.
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
    /// One of the words a task knows.
    Word(&'a str),
}

impl Column<'_> {
    /// Rows, features or labels; none for what is one value.
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

/// Columns by name. What is asked for is noted, so that what nobody wants can be refused.
#[derive(Clone, Debug, Default)]
pub struct Columns<'a> {
    columns: Vec<(&'a str, Column<'a>, Cell<bool>)>,
}

/// Reads one type of column: as an option, and as what must be there.
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
    /// Adds a column; of two with one name the first counts.
    pub fn insert(&mut self, name: &'a str, column: Column<'a>) {
        self.columns.push((name, column, Cell::new(false)));
    }

    fn find(&self, name: &str) -> Option<Column<'a>> {
        let (_, column, read) = self.columns.iter().find(|(known, ..)| *known == name)?;
        read.set(true);
        Some(*column)
    }

    /// Refuses columns of another length than there are rows.
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

    /// Refuses columns that were never asked for.
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

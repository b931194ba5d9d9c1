//! Arguments that Python programs give in several forms: one path or many, lists of offsets or arrays.

use std::path::PathBuf;

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use symdex::{ImageId, ImageOffset, LinePolicy};
use symdex_store::StoreUrl;

use crate::errors::of_argument;

/// A path, or an iterable of paths.
pub(crate) struct Paths(pub(crate) Vec<PathBuf>);

impl<'a, 'py> FromPyObject<'a, 'py> for Paths {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        many(given).map(Self)
    }
}

/// The paths of an argument; none if it is not given.
pub(crate) fn paths(given: Option<Paths>) -> Vec<PathBuf> {
    given.map(|paths| paths.0).unwrap_or_default()
}

/// The URL of a store: text is a URL or the path of a folder, and a path object is that of a folder.
pub(crate) struct StoreLocation(pub(crate) StoreUrl);

impl<'a, 'py> FromPyObject<'a, 'py> for StoreLocation {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match given.extract::<String>() {
            Ok(text) => text.parse().map(Self).map_err(of_argument),
            Err(_) => Ok(Self(given.extract::<PathBuf>()?.into())),
        }
    }
}

/// The URL of a store, or an iterable of them.
pub(crate) struct StoreLocations(pub(crate) Vec<StoreLocation>);

impl<'a, 'py> FromPyObject<'a, 'py> for StoreLocations {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        // Text that is not the URL of a store is not a list of letters.
        if given.extract::<PathBuf>().is_ok() {
            return Ok(Self(vec![given.extract()?]));
        }
        many(given).map(Self)
    }
}

/// A `T`, or an iterable of them.
fn many<'a, 'py, T>(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Vec<T>>
where
    T: for<'i> FromPyObject<'i, 'py, Error = PyErr>,
{
    match given.extract() {
        Ok(one) => Ok(vec![one]),
        Err(_) => given.try_iter()?.map(|item| item?.extract()).collect(),
    }
}

/// Image offsets: a one-dimensional buffer of 64-bit integers, such as a NumPy array, or an iterable of integers.
pub(crate) struct Offsets(pub(crate) Vec<ImageOffset>);

impl<'a, 'py> FromPyObject<'a, 'py> for Offsets {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Some(offsets) = buffer::<u64>(given)? {
            return Ok(Self(offsets.into_iter().map(ImageOffset).collect()));
        }
        if let Some(offsets) = buffer::<i64>(given)? {
            let offset = |offset: i64| {
                let negative = || PyOverflowError::new_err(format!("the image offset {offset} is negative"));
                offset.try_into().map(ImageOffset).map_err(|_| negative())
            };
            return offsets.into_iter().map(offset).collect::<PyResult<_>>().map(Self);
        }
        let offset = |(number, item): (usize, PyResult<Bound<'py, PyAny>>)| {
            if number.is_multiple_of(1 << 16) {
                given.py().check_signals()?;
            }
            Ok(ImageOffset(item?.extract()?))
        };
        given.try_iter()?.enumerate().map(offset).collect::<PyResult<_>>().map(Self)
    }
}

/// The items of a buffer of this type; `None` if `given` is something else.
fn buffer<T: Element>(given: Borrowed<'_, '_, PyAny>) -> PyResult<Option<Vec<T>>> {
    let Ok(buffer) = PyBuffer::<T>::get(&given) else { return Ok(None) };
    // PyO3 takes items of the other byte order for native ones.
    let swapped: &[u8] = if cfg!(target_endian = "little") { b">!" } else { b"<" };
    if buffer.format().to_bytes().first().is_some_and(|order| swapped.contains(order)) {
        return Ok(None);
    }
    match buffer.dimensions() {
        1 => buffer.to_vec(given.py()).map(Some),
        found => Err(PyValueError::new_err(format!("the array has {found} dimensions, expected 1"))),
    }
}

/// An image id, as text.
pub(crate) struct Id(pub(crate) ImageId);

impl<'a, 'py> FromPyObject<'a, 'py> for Id {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        given.extract::<String>()?.parse().map(Self).map_err(of_argument)
    }
}

/// The line policy of this name.
pub(crate) fn line_policy(name: &str) -> PyResult<LinePolicy> {
    one_of(name, "lines", &[("statement", LinePolicy::Statement), ("exact", LinePolicy::Exact)])
}

/// The value in `values` that has this name.
pub(crate) fn one_of<T: Copy>(name: &str, argument: &str, values: &[(&str, T)]) -> PyResult<T> {
    let named = values.iter().find(|(known, _)| *known == name);
    let expected = || values.iter().map(|(known, _)| format!("{known:?}")).collect::<Vec<_>>().join(", ");
    let unknown = || of_argument(format!("{argument}={name:?} is unknown; expected one of {}", expected()));
    named.map(|(_, value)| *value).ok_or_else(unknown)
}

//! Many addresses of many images, as a table of Arrow.

use std::sync::{Mutex, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString};
use symdex::LinePolicy;
use symdex_answer::Symbolicator;
use symdex_answer::resolve::arrow::{record_batch, schema};
use symdex_answer::resolve::request::{self, Request};

use crate::errors::of_argument;

/// The table of pyarrow with the answers for each of `addresses`, which are in the images `ids`.
pub(crate) fn table<'py>(
    py: Python<'py>,
    symbolicator: &Symbolicator,
    ids: &Bound<'py, PyAny>,
    addresses: &Bound<'py, PyAny>,
    lines: LinePolicy,
) -> PyResult<Bound<'py, PyAny>> {
    let missing = |error| {
        let raised = PyImportError::new_err("resolve needs pyarrow; install it, or use lookup_columns");
        raised.set_cause(py, Some(error));
        raised
    };
    let pyarrow = py.import("pyarrow").map_err(missing)?;
    let bytes = request_bytes(&pyarrow, ids, addresses)?;
    let batches = py.detach(|| {
        let request = request::read(bytes, usize::MAX).map_err(of_argument)?;
        batches(symbolicator, &request, lines)
    })?;
    pyarrow.call_method1("table", (ArrowStream(Mutex::new(batches)),))
}

/// The addresses and the ids as a stream of Arrow's IPC format. pyarrow converts lists and NumPy arrays.
fn request_bytes<'py>(
    pyarrow: &Bound<'py, PyModule>,
    ids: &Bound<'_, PyAny>,
    addresses: &Bound<'_, PyAny>,
) -> PyResult<Vec<u8>> {
    let py = pyarrow.py();
    let column = |name: &str, values: &Bound<'_, PyAny>| {
        let columns = PyDict::new(py);
        columns.set_item(name, values)?;
        pyarrow.call_method1("table", (columns,))?.call_method1("column", (name,))
    };
    let of_kind = |column: &Bound<'py, PyAny>, kinds: &[&str]| -> PyResult<bool> {
        Ok(kinds.contains(&column.getattr("type")?.str()?.to_str()?))
    };
    let mut addresses = column("address", addresses)?;
    // An empty list has the type `null`.
    if of_kind(&addresses, &["null", "int8", "int16", "int32", "uint8", "uint16", "uint32"])? {
        addresses = addresses.call_method1("cast", ("int64",))?;
    }
    let ids = if ids.is_instance_of::<PyString>() {
        let int32 = pyarrow.call_method0("int32")?;
        let zero = pyarrow.call_method1("scalar", (0, int32))?;
        let keys = pyarrow.call_method1("repeat", (zero, addresses.len()?))?;
        let dictionary = pyarrow.call_method1("array", ([ids],))?;
        pyarrow.getattr("DictionaryArray")?.call_method1("from_arrays", (keys, dictionary))?
    } else {
        let mut ids = column("id", ids)?;
        if of_kind(&ids, &["null"])? {
            ids = ids.call_method1("cast", ("string",))?;
        }
        // A dictionary stays as it is.
        ids.call_method0("dictionary_encode")?
    };
    let columns = PyDict::new(py);
    columns.set_item("id", ids)?;
    columns.set_item("address", addresses)?;
    let table = pyarrow.call_method1("table", (columns,))?;
    let sink = py.import("io")?.call_method0("BytesIO")?;
    let writer = py.import("pyarrow.ipc")?.call_method1("new_stream", (&sink, table.getattr("schema")?))?;
    writer.call_method1("write_table", (table,))?;
    writer.call_method0("close")?;
    PyBuffer::<u8>::get(&sink.call_method0("getbuffer")?)?.to_vec(py)
}

fn batches(symbolicator: &Symbolicator, request: &Request, lines: LinePolicy) -> PyResult<Vec<RecordBatch>> {
    let ignored = |_: symdex_answer::Event<'_>| {};
    let mut session = symbolicator.session(&ignored);
    let mut left = &request.addresses[..];
    let mut batches = Vec::new();
    while !left.is_empty() {
        Python::attach(|py| py.check_signals())?;
        let resolved = symbolicator.resolve_batch(&mut session, &request.ids, left, lines);
        left = left.get(resolved.len()..).unwrap_or_default();
        batches.push(record_batch(resolved).map_err(of_argument)?);
    }
    Ok(batches)
}

/// Record batches that other libraries take over without a copy, by the PyCapsule interface of Arrow.
#[pyclass(frozen, module = "symdex")]
struct ArrowStream(Mutex<Vec<RecordBatch>>);

#[pymethods]
impl ArrowStream {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Consumers convert what they want in another type.
        drop(requested_schema);
        let batches = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

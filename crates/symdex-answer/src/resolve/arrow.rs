//! Batches of answers as record batches of Arrow.

use std::sync::{Arc, LazyLock};

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, ListArray, RecordBatch, StringArray, StructArray, UInt32Array,
    UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
pub use arrow_schema::ArrowError;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use symdex::Table;

use super::Resolved;
use super::columns::{NO_LINE, NONE};

/// A string of a dictionary, with its number in 32 bits.
fn text() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

static FRAME: LazyLock<Fields> = LazyLock::new(|| {
    let field = |name, kind| Field::new(name, kind, true);
    let fields = [
        field("function", text()),
        field("name", text()),
        field("file", text()),
        field("line", DataType::UInt32),
    ];
    Fields::from_iter(fields)
});

fn item() -> Field {
    Field::new("item", DataType::Struct(FRAME.clone()), false)
}

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let fields = [
        Field::new("status", text(), false),
        Field::new("reason", text(), true),
        Field::new("function_start", DataType::UInt64, true),
        Field::new("table", text(), true),
        Field::new("frames", DataType::List(Arc::new(item())), false),
    ];
    Arc::new(Schema::new(Fields::from_iter(fields)))
});

/// The schema of all batches: a row for each address, in their order. `docs/SERVICE.md` describes the columns.
#[must_use]
pub fn schema() -> SchemaRef {
    SchemaRef::clone(&SCHEMA)
}

/// The answers as a record batch. Numbers are not copied.
///
/// # Errors
///
/// [`ArrowError`] if the columns do not fit together, which only a defect can cause.
pub fn record_batch(resolved: Resolved) -> Result<RecordBatch, ArrowError> {
    let Resolved { outcome, function_start, table, ends, frames, names, files, outcomes, .. } = resolved;
    let functions = strings(names.readable());
    let name = numbers(frames.name);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(dictionary(name.clone(), functions)?),
        Arc::new(dictionary(name, strings(names.texts()))?),
        Arc::new(dictionary(numbers(frames.file), strings(files.texts()))?),
        Arc::new(UInt32Array::new(
            frames.line.clone().into(),
            nulls(frames.line.iter().map(|line| *line != NO_LINE)),
        )),
    ];
    let frames = StructArray::try_new(FRAME.clone(), columns, None)?;
    let offsets: ScalarBuffer<i32> = std::iter::once(0).chain(ends).collect::<Vec<_>>().into();
    let frames = ListArray::try_new(Arc::new(item()), OffsetBuffer::new(offsets), Arc::new(frames), None)?;

    let has_reason = |outcome: &i32| {
        let outcome = usize::try_from(*outcome).ok().and_then(|outcome| outcomes.get(outcome));
        outcome.is_some_and(|outcome| outcome.reason.is_some())
    };
    let reason = Int32Array::new(outcome.clone().into(), nulls(outcome.iter().map(has_reason)));
    let reasons = strings(outcomes.iter().map(|outcome| outcome.reason.as_deref().unwrap_or_default()));
    let statuses = strings(outcomes.iter().map(|outcome| outcome.status));
    let table = table.iter().map(|table| {
        let number = table.and_then(|table| Table::ALL.iter().position(|known| *known == table));
        number.and_then(|number| i32::try_from(number).ok()).unwrap_or(NONE)
    });
    let tables = strings(Table::ALL.iter().map(|table| table.name()));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(dictionary(Int32Array::from(outcome), statuses)?),
        Arc::new(dictionary(reason, reasons)?),
        Arc::new(UInt64Array::from(function_start)),
        Arc::new(dictionary(numbers(table.collect()), tables)?),
        Arc::new(frames),
    ];
    RecordBatch::try_new(schema(), columns)
}

fn dictionary(numbers: Int32Array, strings: StringArray) -> Result<DictionaryArray<Int32Type>, ArrowError> {
    DictionaryArray::try_new(numbers, Arc::new(strings))
}

fn strings(texts: impl Iterator<Item = impl AsRef<str>>) -> StringArray {
    StringArray::from_iter_values(texts)
}

/// Numbers of strings.
fn numbers(numbers: Vec<i32>) -> Int32Array {
    let nulls = nulls(numbers.iter().map(|number| *number != NONE));
    Int32Array::new(numbers.into(), nulls)
}

/// Which values are there.
fn nulls(are_there: impl Iterator<Item = bool>) -> Option<NullBuffer> {
    let nulls: NullBuffer = are_there.collect::<Vec<_>>().into();
    (nulls.null_count() != 0).then_some(nulls)
}

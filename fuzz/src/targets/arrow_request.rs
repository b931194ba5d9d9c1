//! Addresses in a stream of Arrow's IPC format, as clients send them to `/v1/resolve`.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, StringArray, StringViewArray, UInt64Array};
use arrow_ipc::writer::StreamWriter;
use symdex_answer::resolve::request::{Request, read};

/// The most addresses of a request.
const MAX: usize = 1000;

pub fn run(data: &[u8]) {
    let Ok(Request { ids, addresses, .. }) = read(data.to_vec(), MAX) else { return };
    assert!(addresses.len() <= MAX && addresses.len() * 8 <= data.len(), "{} addresses", addresses.len());
    assert!(addresses.iter().all(|(image, _)| ids.get(*image as usize).is_some()));
    let distinct: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let texts = ["6dcd4e9dd3b13a0e8dff6a5a4be1b1b0", "6DCD4E9D-D3B1-3A0E-8DFF-6A5A4BE1B1B0", "aa"];
    let columns: [ArrayRef; 3] = [
        Arc::new(StringArray::from_iter_values(texts)),
        Arc::new(StringViewArray::from_iter_values(texts)),
        Arc::new(texts.into_iter().collect::<DictionaryArray<Int32Type>>()),
    ];
    let stream = |ids: ArrayRef| {
        let addresses: ArrayRef = Arc::new(UInt64Array::from(vec![1, 0x1000, u64::MAX]));
        let batch = RecordBatch::try_from_iter([("id", ids), ("address", addresses)]).expect("a batch");
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a schema");
        writer.write(&batch).expect("written");
        writer.into_inner().expect("written")
    };
    columns.map(stream).into()
}

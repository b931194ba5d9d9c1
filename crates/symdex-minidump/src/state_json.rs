//! The process as a report that `symdex-report` reads: the JSON of minidump-stackwalk, with further members.

use serde_json::{Value, json};

use crate::error::Error;
use crate::process::Process;

/// Returns the report of a process whose stacks are walked. `is_cut` says of each thread whether frames are left out.
///
/// Modules have their `path` besides the name, the innermost frame of each thread has its `registers`, and a thread
/// with frames that are left out `is_cut`; `threads_left_out` is the number of threads past the limit, or of further
/// microdumps. The second copy
/// of the crashed thread is left out.
pub(crate) fn report(process: &Process<'_>, is_cut: &[bool]) -> Result<Vec<u8>, Error> {
    let Process { state, images, skipped_threads, .. } = process;
    let unwritten = |error: serde_json::Error| Error::Damaged { what: error.to_string() };
    let mut text = Vec::new();
    state.print_json(&mut text, false).map_err(unwritten)?;
    let mut report: Value = serde_json::from_slice(&text).map_err(unwritten)?;
    drop(text);
    if let Some(members) = report.as_object_mut() {
        members.remove("crashing_thread");
        if *skipped_threads != 0 {
            members.insert("threads_left_out".to_owned(), json!(skipped_threads));
        }
    }
    for (module, image) in elements(&mut report, "modules").zip(images) {
        module["path"] = json!(image.path);
        // Modules that do not come from a minidump state no ids.
        if let Some(id) = image.id.as_ref().filter(|_| !image.is_id_cut) {
            let id = id.to_string();
            module["code_id"] = json!(id);
        }
    }
    for ((thread, walked), is_cut) in elements(&mut report, "threads").zip(&state.threads).zip(is_cut) {
        if *is_cut {
            thread["is_cut"] = json!(true);
        }
        if let (Some(innermost), Some(frame)) = (walked.frames.first(), elements(thread, "frames").next()) {
            let registers = innermost.context.valid_registers();
            let registers = registers.map(|(name, value)| (name.to_owned(), json!(format!("{value:#x}"))));
            frame["registers"] = Value::Object(registers.collect());
        }
    }
    serde_json::to_vec(&report).map_err(unwritten)
}

/// The elements of the array `key` of an object.
fn elements<'v>(object: &'v mut Value, key: &str) -> impl Iterator<Item = &'v mut Value> {
    object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

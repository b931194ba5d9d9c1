//! The functions that C calls. All `unsafe` code of this library is here.
//!
//! No panic leaves a function: it becomes SYMDEX_STATUS_INTERNAL. Handles are `Option`s of references and boxes, which
//! have the layout of pointers that can be NULL. The caller promises that a pointer that is not NULL points to what its
//! type says, that a handle was not freed, and that no two threads use a context at the same time.

#![expect(unsafe_code, reason = "C has no references and no lifetimes")]

use std::ffi::{CStr, OsStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use symdex::{FrameAddress, LinePolicy as Policy};

use crate::context::Context;
use crate::index::{Failure, Index};
use crate::types::{Answer, Frame, LinePolicy, Metadata, SYMDEX_EXACT, SYMDEX_STATEMENT, Status};

/// Returns the version of this library, such as "0.1.0".
// SAFETY: no other function of a program has this name; the prefix is that of the library. The same holds below.
#[unsafe(no_mangle)]
pub extern "C" fn symdex_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Creates the memory of one thread: what lookups cache (up to 16 MiB), the last answers, and the last message. A
/// thread needs one for any number of indexes. Free it with symdex_context_free. NULL if there is a bug in this
/// library.
#[unsafe(no_mangle)]
pub extern "C" fn symdex_context_new() -> Option<Box<Context>> {
    catch_unwind(|| Box::new(Context::new())).ok()
}

/// Frees a context, with the answers and the message that it holds. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn symdex_context_free(context: Option<Box<Context>>) {
    // Nothing can be done about a panic here.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(context)));
}

/// Returns the message of the last call with this context that did not return SYMDEX_STATUS_OK: one line of UTF-8. It
/// lives in the context until its next call.
#[unsafe(no_mangle)]
pub extern "C" fn symdex_message(context: Option<&Context>) -> *const c_char {
    context.map_or(c"the context is NULL".as_ptr(), |context| context.message().data)
}

/// Reads the index file at `path` into memory and opens it. On SYMDEX_STATUS_OK, `*index` is the index; otherwise it is
/// NULL. Free it with symdex_index_free.
#[unsafe(no_mangle)]
pub extern "C" fn symdex_index_open(
    context: Option<&mut Context>,
    path: *const c_char,
    index: *mut Option<Box<Index>>,
) -> Status {
    open(context, index, || Index::read(path_of(text(path, "path")?)?))
}

/// Maps the index file at `path` into memory and opens it: faster, and the pages are shared by all processes. Nobody
/// may change or truncate the file while the index is open, or the process can end with SIGBUS. Otherwise as
/// symdex_index_open.
#[unsafe(no_mangle)]
pub extern "C" fn symdex_index_map(
    context: Option<&mut Context>,
    path: *const c_char,
    index: *mut Option<Box<Index>>,
) -> Status {
    open(context, index, || Index::map(path_of(text(path, "path")?)?))
}

/// Opens the index in the `size` bytes at `bytes`. They are copied. Otherwise as symdex_index_open.
#[unsafe(no_mangle)]
pub extern "C" fn symdex_index_open_bytes(
    context: Option<&mut Context>,
    bytes: *const u8,
    size: usize,
    index: *mut Option<Box<Index>>,
) -> Status {
    open(context, index, || Index::from_bytes(slice(bytes, size, "bytes")?.to_vec()))
}

/// Opens the index of the image `id` in a folder: the file `<id>.symdex` in it, or in the subfolder that has the first
/// two digits as its name. `id` is in hexadecimal, with dashes or without. Otherwise as symdex_index_open.
#[unsafe(no_mangle)]
pub extern "C" fn symdex_index_find(
    context: Option<&mut Context>,
    folder: *const c_char,
    id: *const c_char,
    index: *mut Option<Box<Index>>,
) -> Status {
    open(context, index, || {
        let id = text(id, "id")?.to_str();
        let id = id.map_err(|_| Failure::new(Status::InvalidArgument, "id is not hexadecimal"))?;
        Index::find(path_of(text(folder, "folder")?)?, id)
    })
}

/// Frees an index. No call may be using it. Answers from it stay valid. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn symdex_index_free(index: Option<Box<Index>>) {
    // Nothing can be done about a panic here.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(index)));
}

/// Writes what an index states about its image and its build to `*metadata`. The texts live as long as the index.
#[unsafe(no_mangle)]
pub extern "C" fn symdex_index_metadata(
    context: Option<&mut Context>,
    index: Option<&Index>,
    metadata: *mut Metadata,
) -> Status {
    call(context, |_| {
        let index = not_null(index, "index")?;
        write(metadata, index.metadata(), "metadata")
    })
}

/// Writes the image offset to look up for an address of a stack to `*offset`. `load_address` is where the image was
/// loaded. `is_return_address` is true for all frames but the one that the signal or exception interrupted: their code
/// is that before the address. Fails with SYMDEX_STATUS_INVALID_ARGUMENT if the address lies below the image.
#[unsafe(no_mangle)]
pub extern "C" fn symdex_image_offset(
    context: Option<&mut Context>,
    index: Option<&Index>,
    address: u64,
    load_address: u64,
    is_return_address: bool,
    offset: *mut u64,
) -> Status {
    call(context, |_| {
        let kind = if is_return_address { FrameAddress::ReturnAddress } else { FrameAddress::ProgramCounter };
        let arch = &not_null(index, "index")?.index.metadata().arch;
        let below = || {
            let message = format!("address {address:#x} lies below the load address {load_address:#x}");
            Failure::new(Status::InvalidArgument, message)
        };
        let found = kind(address).image_offset(load_address, arch).ok_or_else(below)?;
        write(offset, found.0, "offset")
    })
}

/// Looks up one image offset. On SYMDEX_STATUS_OK, `*frames` has `*len` frames, the innermost inlined function first.
/// `*len` is 0 if the index knows no code there. The frames and their texts live in the context until its next call.
#[unsafe(no_mangle)]
pub extern "C" fn symdex_lookup(
    context: Option<&mut Context>,
    index: Option<&Index>,
    offset: u64,
    policy: LinePolicy,
    frames: *mut *const Frame,
    len: *mut usize,
) -> Status {
    call(context, |context| {
        write(frames, std::ptr::null(), "frames")?;
        write(len, 0, "len")?;
        let found = context.lookup(not_null(index, "index")?, offset, policy_of(policy)?)?;
        if !found.is_empty() {
            write(frames, found.as_ptr(), "frames")?;
        }
        write(len, found.len(), "len")
    })
}

/// Looks up `len` image offsets, such as a whole stack, in any order. On SYMDEX_STATUS_OK, `*answers` has `len`
/// answers, in the order of the offsets, each with a status of its own. The message is that of one of the answers that
/// failed. The answers, frames and texts live in the context until its next call.
#[unsafe(no_mangle)]
pub extern "C" fn symdex_lookup_many(
    context: Option<&mut Context>,
    index: Option<&Index>,
    offsets: *const u64,
    len: usize,
    policy: LinePolicy,
    answers: *mut *const Answer,
) -> Status {
    call(context, |context| {
        write(answers, std::ptr::null(), "answers")?;
        let offsets = slice(offsets, len, "offsets")?;
        let found = context.lookup_many(not_null(index, "index")?, offsets, policy_of(policy)?);
        write(answers, found.as_ptr(), "answers")
    })
}

/// Runs `work`, and keeps the message if it fails.
fn call(context: Option<&mut Context>, work: impl FnOnce(&mut Context) -> Result<(), Failure>) -> Status {
    let Some(context) = context else { return Status::InvalidArgument };
    let done = catch_unwind(AssertUnwindSafe(|| work(&mut *context)));
    let failure = match done {
        Ok(Ok(())) => return Status::Ok,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(Status::Internal, "a bug of symdex: a panic"),
    };
    context.set_message(&failure.message);
    failure.status
}

/// As [`call`]; writes the index that `work` opens to `index`, or NULL.
fn open(
    context: Option<&mut Context>,
    index: *mut Option<Box<Index>>,
    work: impl FnOnce() -> Result<Index, Failure>,
) -> Status {
    call(context, |_| {
        write(index, None, "index")?;
        write(index, Some(Box::new(work()?)), "index")
    })
}

fn policy_of(policy: LinePolicy) -> Result<Policy, Failure> {
    match policy {
        SYMDEX_STATEMENT => Ok(Policy::Statement),
        SYMDEX_EXACT => Ok(Policy::Exact),
        _ => Err(Failure::new(Status::InvalidArgument, format!("there is no line policy {policy}"))),
    }
}

fn not_null<T>(value: Option<T>, what: &str) -> Result<T, Failure> {
    value.ok_or_else(|| Failure::new(Status::InvalidArgument, format!("{what} is NULL")))
}

/// Writes `value` to `*place`, without dropping what is there: it may not be initialised.
fn write<T>(place: *mut T, value: T, what: &str) -> Result<(), Failure> {
    not_null((!place.is_null()).then_some(()), what)?;
    // SAFETY: the caller promises that a pointer that is not NULL points to memory for a `T`.
    unsafe { place.write(value) };
    Ok(())
}

/// The `len` values at `start`, which can be NULL if there are none.
fn slice<'a, T>(start: *const T, len: usize, what: &str) -> Result<&'a [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    not_null((!start.is_null()).then_some(()), what)?;
    if len > isize::MAX.unsigned_abs() / size_of::<T>() || !start.is_aligned() {
        return Err(Failure::new(
            Status::InvalidArgument,
            format!("{what} has an impossible size or address"),
        ));
    }
    // SAFETY: the caller promises `len` values at `start`, which do not change during the call. No slice outlives it.
    Ok(unsafe { std::slice::from_raw_parts(start, len) })
}

/// The text at `start` up to its 0.
fn text<'a>(start: *const c_char, what: &str) -> Result<&'a CStr, Failure> {
    not_null((!start.is_null()).then_some(()), what)?;
    // SAFETY: the caller promises a text that ends with a 0 and does not change during the call. It does not outlive
    // it.
    Ok(unsafe { CStr::from_ptr(start) })
}

#[cfg(unix)]
fn path_of(text: &CStr) -> Result<&Path, Failure> {
    use std::os::unix::ffi::OsStrExt;
    Ok(Path::new(OsStr::from_bytes(text.to_bytes())))
}

#[cfg(not(unix))]
fn path_of(text: &CStr) -> Result<&Path, Failure> {
    let text = text.to_str().map_err(|_| Failure::new(Status::InvalidArgument, "a path is not UTF-8"))?;
    Ok(Path::new(OsStr::new(text)))
}

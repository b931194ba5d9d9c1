//! The exported functions. None has an unsafe block: JavaScript writes to buffers that this module owns.

use std::cell::RefCell;

use symdex::{FrameAddress, ImageOffset, LinePolicy, Scratch};
use symdex_report::IndexView;

use crate::answers::{AnswerEncoder, EncodedAnswers};
use crate::build::build_indexes;
use crate::failure::Failure;
use crate::indexes::{Indexes, OpenIndex};
use crate::report;
use crate::sent_strings::SentStrings;

/// Everything that lives between calls. WebAssembly has one thread.
#[derive(Default)]
struct State {
    input: Vec<u8>,
    out: EncodedAnswers,
    sent: SentStrings,
    indexes: Indexes,
    scratch: Scratch,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn with<T>(work: impl FnOnce(&mut State) -> T) -> T {
    STATE.with_borrow_mut(work)
}

/// What [`index_open`] returns if the index cannot be opened, and [`image_offset`] if the address is below the image.
const NOTHING: f64 = -1.0;

/// The largest whole number that JavaScript's numbers represent with all those below it: 2^53 - 1.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// Returns a buffer of `len` bytes for the input of the next call, or null if there is no memory for it.
#[unsafe(no_mangle)]
pub extern "C" fn input(len: usize) -> *mut u8 {
    with(|state| {
        state.input = Vec::new();
        if state.input.try_reserve_exact(len).is_err() {
            return std::ptr::null_mut();
        }
        state.input.resize(len, 0);
        state.input.as_mut_ptr()
    })
}

/// Where the text of the last result is.
#[unsafe(no_mangle)]
pub extern "C" fn text() -> *const u8 {
    with(|state| state.out.text.as_ptr())
}

/// How many bytes the text of the last result has.
#[unsafe(no_mangle)]
pub extern "C" fn text_len() -> usize {
    with(|state| state.out.text.len())
}

/// Where the numbers of the last result are.
#[unsafe(no_mangle)]
pub extern "C" fn numbers() -> *const u32 {
    with(|state| state.out.numbers.as_ptr())
}

/// Releases the input and the result of the last call. What a large report has needed is not kept.
#[unsafe(no_mangle)]
pub extern "C" fn release() {
    with(|state| {
        state.input = Vec::new();
        state.out = EncodedAnswers::default();
    });
}

/// Opens the index in the input. Returns its number, or -1 and an error as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn index_open() -> f64 {
    with(|state| {
        let bytes = std::mem::take(&mut state.input);
        match state.indexes.open(bytes) {
            Ok(number) => f64::from(number),
            Err(failure) => {
                state.fail(&failure);
                NOTHING
            }
        }
    })
}

/// Closes an index.
#[unsafe(no_mangle)]
pub extern "C" fn index_close(number: u32) {
    with(|state| state.indexes.close(number));
}

/// Sets the name of an index to the text in the input.
#[unsafe(no_mangle)]
pub extern "C" fn index_name(number: u32) {
    with(|state| {
        let name = String::from_utf8_lossy(&state.input).into_owned();
        state.indexes.rename(number, name);
    });
}

/// The metadata of an index as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn index_metadata(number: u32) {
    with(|state| {
        let view = state.indexes.get(number).map(|open| IndexView::from(open.index.metadata()));
        // Text and numbers alone are always serialized.
        state.out.text = serde_json::to_vec(&view).unwrap_or_default();
    });
}

/// The answer at an offset, encoded. Returns where its numbers are.
#[unsafe(no_mangle)]
pub extern "C" fn lookup(number: u32, offset: f64, is_exact: bool, demangle: bool) -> *const u32 {
    with(|state| {
        let State { out, sent, indexes, scratch, .. } = state;
        let Some(OpenIndex { index, sent: numbers, .. }) = indexes.get_mut(number) else {
            return std::ptr::null();
        };
        let mut encoder = AnswerEncoder::begin(out, sent, numbers, demangle);
        encoder.add(index.lookup(image_offset_of(offset), lines(is_exact), scratch));
        encoder.end()
    })
}

/// Forgets the strings that were sent. JavaScript calls it if it may not have read those of the last call.
#[unsafe(no_mangle)]
pub extern "C" fn forget_strings() {
    with(|state| state.sent.forget());
}

/// The answers at the offsets in the input, which are numbers of 64 bits in the format of IEEE 754, in their order.
/// Returns where their numbers are.
#[unsafe(no_mangle)]
pub extern "C" fn lookup_many(number: u32, is_exact: bool, demangle: bool) -> *const u32 {
    with(|state| {
        let State { input, out, sent, indexes, scratch } = state;
        let Some(OpenIndex { index, sent: numbers, .. }) = indexes.get_mut(number) else {
            return std::ptr::null();
        };
        let mut encoder = AnswerEncoder::begin(out, sent, numbers, demangle);
        let (offsets, _) = input.as_chunks();
        for offset in offsets {
            let offset = image_offset_of(f64::from_le_bytes(*offset));
            encoder.add(index.lookup(offset, lines(is_exact), scratch));
        }
        encoder.end()
    })
}

/// The offset of an address in an image that is loaded at `load_address`. Returns -1 if the address is below it, or so
/// far above it that no number of JavaScript is exact.
#[unsafe(no_mangle)]
pub extern "C" fn image_offset(number: u32, address: u64, load_address: u64, is_return: bool) -> f64 {
    with(|state| {
        let kind = if is_return { FrameAddress::ReturnAddress } else { FrameAddress::ProgramCounter };
        let address = kind(address);
        let open = state.indexes.get(number);
        let offset = open.and_then(|open| address.image_offset(load_address, &open.index.metadata().arch));
        #[expect(clippy::cast_precision_loss, reason = "the offset has at most 53 bits")]
        offset.filter(|offset| offset.0 <= MAX_SAFE).map_or(NOTHING, |offset| offset.0 as f64)
    })
}

/// Symbolicates a report. The input is the request, `request_len` bytes of JSON, and then the report. Returns whether
/// the text is the result; otherwise, it is an error as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn symbolicate(request_len: usize) -> bool {
    with(|state| {
        let (request, report) = state.input.split_at_checked(request_len).unwrap_or_default();
        let result = report::symbolicated(request, report, &state.indexes);
        state.finish(result)
    })
}

/// The images that a report needs indexes of, as JSON. Input and result are those of [`symbolicate`].
#[unsafe(no_mangle)]
pub extern "C" fn needed_images(request_len: usize) -> bool {
    with(|state| {
        let (request, report) = state.input.split_at_checked(request_len).unwrap_or_default();
        let result = report::needed_images(request, report);
        state.finish(result)
    })
}

/// Builds the indexes of a debug file. The input is its name, `name_len` bytes of text, and then its bytes. Returns
/// whether the text and the numbers are the result, which `build.rs` describes; otherwise, the text is an error as
/// JSON.
#[unsafe(no_mangle)]
pub extern "C" fn build(name_len: usize) -> bool {
    with(|state| {
        let State { input, out, .. } = state;
        out.clear();
        let (name, bytes) = input.split_at_checked(name_len).unwrap_or_default();
        match build_indexes(&String::from_utf8_lossy(name), bytes, out) {
            Ok(()) => true,
            Err(failure) => {
                state.fail(&failure);
                false
            }
        }
    })
}

impl State {
    fn finish(&mut self, result: Result<Vec<u8>, Failure>) -> bool {
        match result {
            Ok(text) => {
                self.out.text = text;
                true
            }
            Err(failure) => {
                self.fail(&failure);
                false
            }
        }
    }

    fn fail(&mut self, failure: &Failure) {
        // Text alone is always serialized.
        self.out.text = serde_json::to_vec(failure).unwrap_or_default();
    }
}

fn lines(is_exact: bool) -> LinePolicy {
    if is_exact { LinePolicy::Exact } else { LinePolicy::Statement }
}

/// JavaScript has checked that the number is whole, not negative and at most 2^53 - 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number of at most 53 bits"
)]
fn image_offset_of(number: f64) -> ImageOffset {
    ImageOffset(number as u64)
}

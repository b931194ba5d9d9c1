//! What `minidump-unwind` asks: whether there is code at an address, and the caller of a frame.

use std::collections::{HashMap, HashSet};
use std::future::pending;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use minidump::Module;
use minidump_unwind::{FileError, FileKind, FillSymbolError, FrameSymbolizer, FrameWalker, SymbolProvider};
use symdex::{ImageOffset, LinePolicy};
use symdex_report::{Answer, AnswerBytes, Function, Question, ReportImage, Source};

use crate::limits::{FRAMES, FRAMES_OF_THREAD, LOOKUPS};
use crate::process::Process;
use crate::registers::Registers;
use crate::row::{Caller, caller, return_at_entry};

/// The functions of C libraries to which signal handlers return.
const SIGNAL_RETURNS: [&str; 4] =
    ["__default_sa_restorer", "__default_rt_sa_restorer", "__restore", "__restore_rt"];

/// Answers from a [`Source`]. If a limit is reached, or if a signal has interrupted the next frame, it does not answer
/// at all, so that the walk stops there. [`take_stop`](Self::take_stop) says why.
pub(crate) struct Provider<'s> {
    state: Mutex<State<'s>>,
    /// As [`Process::by_base`].
    by_base: &'s HashMap<u64, usize>,
}

/// Why a walk stops before the end of the stack.
pub(crate) enum Stop {
    /// A limit is reached.
    Limit,
    /// A signal has interrupted the next frame. These are its registers, by name.
    Interrupted(Vec<(&'static str, u64)>),
}

struct State<'s> {
    source: &'s mut (dyn Source + Send),
    images: &'s [ReportImage],
    registers: Registers,
    /// What there is, by image and offset.
    known: HashMap<(usize, u64), Code>,
    /// The images that the source does not have.
    missing: HashSet<usize>,
    /// The bytes that answers may still have. It bounds the time that they take.
    answer_bytes: AnswerBytes,
    lookups_left: usize,
    /// How many frames may still be found, besides the innermost one of each thread: in the process, in the thread and
    /// by the walk.
    frames_left: usize,
    frames_of_thread_left: usize,
    frames_of_walk_left: usize,
    stop: Option<Stop>,
}

impl<'s> Provider<'s> {
    /// Answers for the images of `process`, which has so many `threads`, from `source`. The file has `size` bytes.
    pub(crate) fn new(
        source: &'s mut (dyn Source + Send),
        process: &'s Process<'_>,
        registers: Registers,
        threads: usize,
        size: usize,
    ) -> Self {
        let state = State {
            source,
            images: &process.images,
            registers,
            known: HashMap::new(),
            missing: HashSet::new(),
            answer_bytes: AnswerBytes::written(size),
            lookups_left: LOOKUPS,
            frames_left: FRAMES.saturating_sub(threads),
            frames_of_thread_left: 0,
            frames_of_walk_left: 0,
            stop: None,
        };
        Self { state: Mutex::new(state), by_base: &process.by_base }
    }

    fn state(&self) -> MutexGuard<'_, State<'s>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stack of the next thread is walked now.
    pub(crate) fn start_thread(&self) {
        self.state().frames_of_thread_left = FRAMES_OF_THREAD - 1;
    }

    /// A walk starts at a frame. Returns how many others it may find. The walker asks for frames in modules only.
    pub(crate) fn start_walk(&self) -> usize {
        let mut state = self.state();
        state.frames_of_walk_left = state.frames_left.min(state.frames_of_thread_left);
        state.frames_of_walk_left
    }

    /// Counts the frames that were found, and are kept.
    pub(crate) fn keep_frames(&self, count: usize) {
        let mut state = self.state();
        state.frames_left = state.frames_left.saturating_sub(count);
        state.frames_of_thread_left = state.frames_of_thread_left.saturating_sub(count);
    }

    /// Why the last walk stopped; `None` if it came to the end of the stack.
    pub(crate) fn take_stop(&self) -> Option<Stop> {
        self.state().stop.take()
    }

    /// Whether signal handlers return to the code at `address` of `module`.
    pub(crate) fn is_signal_return(&self, module: &(dyn Module + Sync), address: u64) -> bool {
        let place = self.place(module, address);
        place.is_some_and(|(image, offset)| {
            matches!(self.state().code_at(image, offset), CodeAt::Code(Code::SignalReturn))
        })
    }

    /// The bits of a return address that count.
    pub(crate) fn address_mask(&self) -> u64 {
        self.state().registers.address_mask
    }

    /// The image of a module, and the offset of an address in it.
    fn place(&self, module: &(dyn Module + Sync), address: u64) -> Option<(usize, u64)> {
        let base = module.base_address();
        Some((*self.by_base.get(&base)?, address.checked_sub(base)?))
    }
}

#[async_trait]
impl SymbolProvider for Provider<'_> {
    /// Sets a name if there is a function at the address. The function is resolved after the walk.
    async fn fill_symbol(
        &self,
        module: &(dyn Module + Sync),
        frame: &mut (dyn FrameSymbolizer + Send),
    ) -> Result<(), FillSymbolError> {
        let address = frame.get_instruction();
        let Some((image, offset)) = self.place(module, address) else { return Err(FillSymbolError {}) };
        let found = self.state().code_at(image, offset);
        match found {
            CodeAt::Code(Code::Function | Code::Entry | Code::SignalReturn) => {
                frame.set_function("?", address, 0)
            }
            CodeAt::Code(Code::Nothing) => {}
            CodeAt::NoImage => return Err(FillSymbolError {}),
            CodeAt::Stopped => pending().await,
        }
        Ok(())
    }

    async fn walk_frame(
        &self,
        module: &(dyn Module + Sync),
        walker: &mut (dyn FrameWalker + Send),
    ) -> Option<()> {
        let place = self.place(module, walker.get_instruction());
        let walked = self.state().walk(place, walker);
        match walked {
            Walked::Caller => Some(()),
            Walked::Unknown => None,
            Walked::Stopped => pending().await,
        }
    }

    async fn get_file_path(&self, _: &(dyn Module + Sync), _: FileKind) -> Result<PathBuf, FileError> {
        Err(FileError::NotFound)
    }
}

/// What is at an address of an image.
#[derive(Clone, Copy)]
enum Code {
    Function,
    /// The first instruction of a function, or a stub that jumps to a function of another image. Nothing is on the
    /// stack yet but what the caller has put there.
    Entry,
    /// A function to which signal handlers return.
    SignalReturn,
    Nothing,
}

/// The answer for an address.
enum CodeAt {
    Code(Code),
    /// The source does not have the image, so that any address may be code.
    NoImage,
    Stopped,
}

/// The answer for a frame.
enum Walked {
    /// The registers of the caller are set.
    Caller,
    /// There are no rules for the frame.
    Unknown,
    Stopped,
}

/// What `function` is at `offset` of its image.
fn code_of(function: &Function, offset: u64) -> Code {
    let name = function.name().unwrap_or_default();
    if SIGNAL_RETURNS.contains(&name) {
        Code::SignalReturn
    } else if function.start == Some(ImageOffset(offset)) || name.ends_with("@plt") {
        Code::Entry
    } else {
        Code::Function
    }
}

impl State<'_> {
    fn stop(&mut self, why: Stop) {
        self.stop = Some(why);
    }

    fn code_at(&mut self, image: usize, offset: u64) -> CodeAt {
        if self.missing.contains(&image) {
            return CodeAt::NoImage;
        }
        if let Some(known) = self.known.get(&(image, offset)) {
            return CodeAt::Code(*known);
        }
        if self.lookups_left == 0 {
            self.stop(Stop::Limit);
            return CodeAt::Stopped;
        }
        self.lookups_left -= 1;
        let offsets = [ImageOffset(offset)];
        let question = Question::new(&self.images[image], &offsets, LinePolicy::Exact);
        let answered = self.source.answer(&[question]).into_iter().next();
        let Some(Ok(answers)) = answered else {
            self.missing.insert(image);
            return CodeAt::NoImage;
        };
        let code = match answers.answers.first() {
            Some(Answer::Functions(functions)) => {
                if !self.answer_bytes.take_functions(functions) {
                    self.stop(Stop::Limit);
                    return CodeAt::Stopped;
                }
                functions.last().map_or(Code::Nothing, |function| code_of(function, offset))
            }
            // What is lost or damaged may be a function.
            Some(Answer::TooLarge | Answer::Unreadable(..)) => Code::Function,
            _ => Code::Nothing,
        };
        self.known.insert((image, offset), code);
        CodeAt::Code(code)
    }

    fn walk(&mut self, place: Option<(usize, u64)>, walker: &mut (dyn FrameWalker + Send)) -> Walked {
        let Some(left) = self.frames_of_walk_left.checked_sub(1) else {
            self.stop(Stop::Limit);
            return Walked::Stopped;
        };
        self.frames_of_walk_left = left;
        let Some((image, offset)) = place else { return Walked::Unknown };
        if self.missing.contains(&image) {
            return Walked::Unknown;
        }
        let row = self.source.unwind_row(&self.images[image], ImageOffset(offset));
        // Why the image cannot be asked is said when its functions are asked for.
        let row = row.ok().flatten();
        let is_innermost = !walker.has_grand_callee();
        let is_entry = is_innermost && matches!(self.known.get(&(image, offset)), Some(Code::Entry));
        let holds = row.as_ref().is_some_and(|row| !row.row().holds_at_calls_only());
        let at_entry = (is_entry && !holds).then(|| self.caller_at_entry(walker)).flatten();
        let found = at_entry.or_else(|| caller(&row?.row(), &self.registers, walker));
        match found {
            Some(Caller::Returned) => Walked::Caller,
            Some(Caller::Interrupted(registers)) => {
                self.stop(Stop::Interrupted(registers));
                Walked::Stopped
            }
            None => Walked::Unknown,
        }
    }

    /// Finds the caller of the frame of `walker`, which is at the first instruction of a function. `None` if the return
    /// address is not in a function.
    fn caller_at_entry(&mut self, walker: &mut (dyn FrameWalker + Send)) -> Option<Caller> {
        let (return_address, cfa) = return_at_entry(&self.registers, walker)?;
        let call = return_address.checked_sub(1)?;
        let image = self.images.iter().position(|image| image.contains(call))?;
        match self.code_at(image, call - self.images[image].load_address) {
            CodeAt::Code(Code::Nothing) | CodeAt::Stopped => None,
            CodeAt::Code(_) | CodeAt::NoImage => {
                walker.set_cfa(cfa)?;
                walker.set_ra(return_address)?;
                Some(Caller::Returned)
            }
        }
    }
}

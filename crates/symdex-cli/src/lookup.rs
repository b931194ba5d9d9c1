//! `symdex lookup`: answers from an index or a debug file.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufWriter, Write};
use std::path::PathBuf;

use serde::Serialize;
use symdex::{Frame, ImageOffset, LinePolicy, Scratch, Table};
use symdex_report::{AnsweredFunction, Function, FunctionWithOffset};

use crate::failure::{self, Cause, CommandError, Failure, complain};
use crate::image_lookup::ImageLookup;
use crate::number::ListNotation;
use crate::open::AccessOption;
use crate::source;
use crate::stores::StoreArgs;
use crate::unwind::UnwindView;
use crate::{archive, number, text};
use symdex_store::IdPrefix;

/// Answer addresses from an index or a debug file: functions, files and lines, innermost inlined function first
///
/// An address is hexadecimal if it begins with 0x, has a digit from a to f or a leading zero, or has 8, 12 or 16
/// digits, as programs print addresses; otherwise it is decimal. A list with addresses of both kinds is an error.
/// Addresses are offsets from the start of the image unless --load or --svma is given. They are looked up unchanged:
/// for a return address, give the address minus one. Without addresses, standard input is answered line by line.
///
/// From a debug file, only the compile units that have code at the addresses are read, and no index is built. The
/// answers are those of its index. For many addresses, build the index once with `symdex build`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// An index, a folder of indexes (with --id), or a debug file: a dSYM bundle, the file in it, a binary, an archive
    /// of these. With --store, there is no FILE
    #[arg(value_name = "FILE", required_unless_present = "urls")]
    file: Option<PathBuf>,
    /// Addresses. Without any, they are read from standard input, one per line
    #[arg(value_name = "ADDR")]
    addresses: Vec<String>,
    #[command(flatten)]
    stores: StoreArgs,
    /// The image to use, if FILE has several, or in a store: its UUID, with or without dashes, its build id, or the
    /// first digits of one, at least four
    #[arg(long, value_name = "ID")]
    id: Option<IdPrefix>,
    #[command(flatten)]
    access: AccessOption,
    /// The architecture to use, if FILE has several
    #[arg(long, value_name = "ARCH")]
    arch: Option<String>,
    /// A folder to search for files to which a debug file refers, such as /usr/lib/debug. May be repeated
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,
    /// Addresses are those of a process that loaded the image at ADDR
    #[arg(long, value_name = "ADDR", value_parser = number::parse_address, conflicts_with = "svma")]
    load: Option<u64>,
    /// Addresses are those in the debug file, without a slide
    #[arg(long)]
    svma: bool,
    /// Which rows of the line table answer for code with line 0, which the compiler generated or merged
    #[arg(long, value_enum, value_name = "POLICY", default_value = "statement")]
    lines: LinePolicy,
    /// Print only the concrete function, with the line at which it calls the inlined function
    #[arg(long)]
    no_inlines: bool,
    /// Print mangled names, as they are in the symbol table
    #[arg(long)]
    no_demangle: bool,
    /// Print the unwind row of each address, too: where the caller's registers and the return address are. FILE has to
    /// be an index that was built with `symdex build --unwind`
    #[arg(long)]
    unwind_rows: bool,
    /// Print JSON, one object per line for each address
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  symdex lookup 0c37c502aba03641a08f84c794684f36.symdex 0x5ed8
  symdex lookup MyApp.app.dSYM --arch arm64 --load 0x102bc4000 0x102bc9ed8
  symdex lookup indexes --id 0C37C502-ABA0-3641-A08F-84C794684F36 --load 0x102bc4000 0x102bc9ed8
  symdex lookup --store s3://bucket/indexes --id 0C37C502-ABA0-3641-A08F-84C794684F36 0x5ed8
  echo 0x5ed8 | symdex lookup 0c37c502aba03641a08f84c794684f36.symdex --json

JSON:
  {\"address\", \"functions\": [{\"function\", \"name\", \"file\", \"line\", \"inlined\",
    \"table\", \"function_offset\", \"function_start\", \"aliases\"}],
   \"unwind\": {\"start\", \"end\", \"cfa\", \"return_address\", \"registers\": {NAME: WHERE},
    \"signal_frame\", \"signed\", \"at_calls_only\"},
   \"reason\", \"error\": {\"kind\", \"message\"}}
The address is the offset in the image. If nothing is known there, functions is empty, reason says \
why, and there is no error. A function that the linker folded with others has their names as \
aliases. With --unwind-rows, unwind is null for code without unwind information. It is left out \
if the index has no unwind rows; standard error then says so once, and the exit code is 3. \
docs/schema/lookup.schema.json describes every member.

Exit codes:
  0  every address was answered
  3  an address has no answer, FILE has no such image, or it has no unwind rows
  2  an argument is not an address, or a list mixes decimal and hexadecimal addresses
  4  the index or debug file is damaged, or the store has lost a part of the index
  5  it is missing
  1  a store cannot be queried, and no other store has the image
  6  it is of a kind or version that symdex does not read
If several apply, the first of 4, 6, 5, 1, 2, 3 counts.";

pub(crate) fn run(args: &Args) -> failure::CommandResult {
    // With a store, the first argument is an address.
    let file = args.file.as_deref().filter(|_| !args.stores.are_given());
    archive::check_addresses(file, !args.addresses.is_empty())?;
    let source = source::open(file, &args.stores, args.arch.as_deref(), args.id.as_ref(), args.access)?;
    source.answer(&args.debug_dir, source::Warnings::All, |answers| answer_all(args, answers))
}

fn answer_all(args: &Args, answers: &mut ImageLookup<'_, '_>) -> failure::CommandResult {
    let (scratch, notation) = (Scratch::default(), ListNotation::default());
    let mut lookup = Lookup { args, answers, scratch, notation, gravest: None, has_complained: false };
    let mut out = BufWriter::new(io::stdout().lock());
    let first = args.file.as_ref().filter(|_| args.stores.are_given()).map(|first| first.to_string_lossy());
    let addresses: Vec<_> =
        first.as_deref().into_iter().chain(args.addresses.iter().map(String::as_str)).collect();
    let mut notation = ListNotation::default();
    let mixed = addresses.iter().try_for_each(|typed| notation.check(typed));
    mixed.map_err(|message| Failure::new(Cause::Usage, message))?;
    lookup.answer(addresses.iter().copied(), &mut out)?;
    if addresses.is_empty() {
        let mut input = io::stdin().lock();
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line).map_err(|error| stdin_failed(&error))? != 0 {
            let address = String::from_utf8_lossy(&line);
            if !address.trim().is_empty() {
                lookup.answer(std::iter::once(address.trim()), &mut out)?;
                out.flush()?;
            }
            line.clear();
        }
    }
    out.flush()?;
    Ok(lookup.gravest)
}

pub(crate) fn stdin_failed(error: &io::Error) -> Failure {
    Failure::new(Cause::Other, format!("cannot read standard input: {error}"))
}

/// The lookups in one image.
struct Lookup<'a, 'i, 'd> {
    args: &'a Args,
    answers: &'a mut ImageLookup<'i, 'd>,
    scratch: Scratch,
    notation: ListNotation,
    gravest: Option<Cause>,
    /// Whether standard error says that there are no unwind rows.
    has_complained: bool,
}

/// The answer for one address. With `--json`, it is one line.
#[derive(Serialize)]
struct AddressAnswer {
    address: String,
    /// Innermost first.
    functions: Vec<LookedUp>,
    /// With `--unwind-rows`, the unwind row, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    unwind: Option<Option<UnwindView>>,
    /// Why there are no frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorText>,
}

#[derive(Serialize)]
struct LookedUp {
    #[serde(flatten)]
    answered: FunctionWithOffset<'static>,
    function_start: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<String>,
}

#[derive(Serialize)]
struct ErrorText {
    kind: &'static str,
    message: String,
}

/// The frames of an address, and its unwind row, if unwind rows are printed and there are any.
type Answered = (Vec<LookedUp>, Option<Option<UnwindView>>);

impl Lookup<'_, '_, '_> {
    /// Answers each of these addresses.
    fn answer<'t>(
        &mut self,
        typed: impl Iterator<Item = &'t str> + Clone,
        out: &mut impl Write,
    ) -> Result<(), CommandError> {
        let offsets: Vec<_> = typed.clone().filter_map(|typed| self.offset(typed).ok()).collect();
        self.answers.prepare(&offsets)?;
        typed.into_iter().try_for_each(|typed| self.answer_one(typed, out))
    }

    fn answer_one(&mut self, typed: &str, out: &mut impl Write) -> Result<(), CommandError> {
        let mixed = |message| (Cause::Usage, message);
        let offset = self.notation.check(typed).map_err(mixed).and_then(|()| self.offset(typed));
        let (address, result) = match &offset {
            Ok(offset) => (offset.to_string(), self.all(*offset)),
            Err(failure) => (typed.to_owned(), Err(failure.clone())),
        };
        let cause = match &result {
            Ok((frames, row)) => {
                (frames.is_empty() && !matches!(row, Some(Some(_)))).then_some(Cause::NotFound)
            }
            Err((cause, _)) => Some(*cause),
        };
        self.gravest = self.gravest.max(cause);
        let (frames, unwind, error) = match result {
            Ok((frames, row)) => (frames, row, None),
            Err((cause, message)) => (Vec::new(), None, Some(ErrorText { kind: cause.name(), message })),
        };
        let is_unknown = frames.is_empty() && error.is_none();
        let reason = offset.ok().filter(|_| is_unknown).map(|offset| self.why_nothing(offset));
        let answer = AddressAnswer { address, functions: frames, unwind, reason, error };
        if self.args.json {
            writeln!(out, "{}", serde_json::to_string(&answer).map_err(io::Error::from)?)?;
        } else {
            write!(out, "{}", human(typed, &answer))?;
        }
        Ok(())
    }

    /// The image offset of an address.
    fn offset(&self, typed: &str) -> Result<ImageOffset, (Cause, String)> {
        let address = number::address(typed)
            .ok_or_else(|| (Cause::Usage, format!("not an address: {}", number::EXPECTED)))?;
        let base = match (self.args.load, self.args.svma) {
            (Some(load), _) => load,
            (None, true) => self.answers.metadata().base,
            (None, false) => 0,
        };
        let below = || {
            let hint = if self.args.svma { "; is it an offset, without --svma?" } else { "" };
            (Cause::NotFound, format!("below the image, which starts at {base:#x}{hint}"))
        };
        let offset = ImageOffset(address.wrapping_sub(base));
        if address < base && !self.answers.is_far(offset) { Err(below()) } else { Ok(offset) }
    }

    /// Why there is no answer at `offset`.
    fn why_nothing(&self, offset: ImageOffset) -> String {
        let metadata = self.answers.metadata();
        let has_code =
            |offset: u64| metadata.executable.iter().any(|(start, end)| (*start..*end).contains(&offset));
        let end = metadata.image_size;
        if has_code(offset.0) {
            return "no function here".to_owned();
        }
        if offset.0 < end {
            return "not in the image's code".to_owned();
        }
        let hint = match (self.args.load, self.args.svma) {
            (Some(_), _) => "is it the load address of another image, or of another run?",
            (None, true) => "is it an address of a process? Then give --load and the address of the image",
            (None, false)
                if metadata.base != 0 && offset.0.checked_sub(metadata.base).is_some_and(has_code) =>
            {
                "did you mean --svma?"
            }
            (None, false) => {
                "an address of a process needs --load and the address at which that process loaded the image; \
                 a position-independent executable gets another one in each run"
            }
        };
        format!("beyond the end of the image's code, {end:#x}: {hint}")
    }

    /// The frames and, with `--unwind-rows`, the unwind row.
    fn all(&mut self, offset: ImageOffset) -> Result<Answered, (Cause, String)> {
        let failed = |failure: Failure| (failure.cause, failure.message);
        let frames = self.frames(offset)?;
        if !self.args.unwind_rows {
            return Ok((frames, None));
        }
        if !self.answers.has_unwind_rows(offset).map_err(failed)? {
            self.complain_without_rows();
            return Ok((frames, None));
        }
        let row = self.answers.unwind_row(offset).map_err(failed)?;
        let arch = &self.answers.metadata().arch;
        Ok((frames, Some(row.map(|row| UnwindView::of(&row.row(), arch)))))
    }

    /// Says once that there are no unwind rows.
    fn complain_without_rows(&mut self) {
        self.gravest = self.gravest.max(Some(Cause::NotFound));
        if !std::mem::replace(&mut self.has_complained, true) {
            let path = self.answers.location();
            complain(&format!(
                "{path}: no unwind rows; give an index that was built with `symdex build --unwind`"
            ));
        }
    }

    fn frames(&mut self, offset: ImageOffset) -> Result<Vec<LookedUp>, (Cause, String)> {
        let failed = |failure: Failure| (failure.cause, failure.message);
        let found = self.answers.lookup(offset, self.args.lines, &mut self.scratch);
        let Some(frames) = found.map_err(failed)? else {
            return Ok(Vec::new());
        };
        let skip = if self.args.no_inlines { frames.len() - 1 } else { 0 };
        let mut texts: Vec<_> =
            frames.iter().skip(skip).map(|frame| self.args.frame(offset, &frame)).collect();
        // Only the concrete function, the last frame, has a start and other names.
        let concrete = frames.iter().last().map(|frame| (frame.name.map(Vec::from), frame.function_start));
        if let (Some(text), Some((name, Some(start)))) = (texts.last_mut(), concrete) {
            let others = self.answers.aliases(name.as_deref(), start, &mut self.scratch);
            text.aliases = others
                .map_err(failed)?
                .iter()
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .collect();
        }
        Ok(texts)
    }
}

impl Args {
    fn frame(&self, offset: ImageOffset, frame: &Frame<'_>) -> LookedUp {
        let function = Function::from(frame);
        let mut view = AnsweredFunction::from(&function).into_owned();
        if self.no_demangle {
            view.function.clone_from(&view.name);
        }
        LookedUp {
            answered: FunctionWithOffset { function: view, function_offset: function.distance(offset) },
            function_start: function.start.map(|start| start.to_string()),
            aliases: Vec::new(),
        }
    }
}

/// The answer as text: the address, and beside it one line for each frame.
fn human(typed: &str, answer: &AddressAnswer) -> String {
    let typed = text::printable(typed.into());
    let mut out = String::new();
    let mut first = typed.as_ref();
    let mut line = |what: std::fmt::Arguments<'_>| {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{first:width$}  {what}", width = typed.chars().count().max(12));
        first = "";
    };
    match &answer.error {
        Some(error) => line(format_args!("error: {}", text::printable(error.message.as_str().into()))),
        None if answer.functions.is_empty() => {
            let reason = answer.reason.as_deref().unwrap_or_default();
            line(format_args!("nothing known here: {reason}"));
        }
        None => answer.functions.iter().for_each(|frame| line(format_args!("{}", one_frame(frame)))),
    }
    match &answer.unwind {
        Some(Some(row)) => line(format_args!("unwind: {row}")),
        Some(None) => line(format_args!("unwind: no information here")),
        None => {}
    }
    out
}

fn one_frame(frame: &LookedUp) -> String {
    let AnsweredFunction { function, file, line, inlined, table, .. } = &frame.answered.function;
    let mut out = text::printable(function.as_deref().unwrap_or("??").into()).into_owned();
    // The offset counts from the start of the concrete function, so only the concrete function shows it.
    if let Some(distance) = frame.answered.function_offset.filter(|_| !inlined) {
        let _ = write!(out, " + {distance:#x}");
    }
    if let Some(file) = file {
        out += " at ";
        out += &text::printable(file.as_ref().into());
    }
    if let Some(line) = line {
        let separator = if file.is_some() { ":" } else { " at line " };
        let _ = write!(out, "{separator}{line}");
    }
    out += if *inlined { " (inlined)" } else { "" };
    out += if *table == Table::SymbolTable.name() { " (symbol table)" } else { "" };
    let _ = match frame.aliases.len() {
        0 => Ok(()),
        1 => write!(out, " (and 1 other name)"),
        others => write!(out, " (and {others} other names)"),
    };
    out
}

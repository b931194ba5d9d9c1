//! `symdex llvm-symbolizer --filter-markup`: prints a text in which the elements of symbolizer markup are replaced,
//! those with addresses by functions, files and lines.
//!
//! An element `reset`, `module` or `mmap` states what is loaded. What follows it in its line is left out. One line is
//! printed for each module with its maps; text before further maps of the same module is left out, too. An element that
//! is malformed is left out, with a message; one whose address has no answer is printed in brackets.

mod context;
mod markup;
mod styles;

use std::io::{self, BufRead as _, BufReader, BufWriter, StdoutLock};

use symdex::OwnedFrame;

use self::context::{Context, Module};
use self::markup::{Element, Node, Problem, address, nodes};
use self::styles::Styles;
use super::modules::{ModuleName, Modules};
use super::names::{Functions, Naming};
use crate::failure::{CommandError, complain};
use crate::lookup::stdin_failed;
use crate::text;

/// What stands for a name or a file that is unknown.
const UNKNOWN: &str = "<invalid>";

/// Why the work on an element ended early.
enum Stop {
    /// The element is malformed or has no answer.
    Problem(Problem),
    Failed(CommandError),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// The line of a module, which the first line about something else ends.
struct ModuleLine {
    module: u64,
    /// Where its maps start.
    maps: Vec<u64>,
}

pub(super) struct Filter {
    found: Modules,
    naming: Naming,
    context: Context,
    module_line: Option<ModuleLine>,
    /// The end of the current line.
    line_end: &'static str,
    out: Styles<BufWriter<StdoutLock<'static>>>,
}

impl Filter {
    pub(super) fn new(found: Modules, naming: Naming, is_colored: bool) -> Self {
        let out = Styles::new(BufWriter::new(io::stdout().lock()), is_colored);
        Self { found, naming, context: Context::default(), module_line: None, line_end: "\n", out }
    }

    /// Filters standard input. Each line is answered when it has arrived.
    pub(super) fn run(mut self) -> Result<(), CommandError> {
        let mut input = BufReader::new(io::stdin().lock());
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line).map_err(|error| stdin_failed(&error))? > 0 {
            if !line.ends_with(b"\n") {
                line.push(b'\n');
            }
            self.line(&line)?;
            if !input.buffer().contains(&b'\n') {
                self.out.flush()?;
            }
            line.clear();
        }
        self.end_module_line()?;
        self.out.reset()?;
        Ok(self.out.flush()?)
    }

    fn line(&mut self, line: &[u8]) -> Result<(), CommandError> {
        self.line_end = if line.ends_with(b"\r\n") { "\r\n" } else { "\n" };
        self.out.reset()?;
        let nodes = nodes(line);
        for (at, node) in nodes.iter().enumerate() {
            let Node::Element(element) = node else { continue };
            let before = &nodes[..at];
            let done = match element.tag {
                b"mmap" => self.mmap(element, before),
                b"module" => self.module(element, before),
                b"reset" => self.reset(element, before),
                _ => continue,
            };
            return explain(element, done);
        }
        self.end_module_line()?;
        self.nodes(&nodes)
    }

    fn nodes(&mut self, nodes: &[Node<'_>]) -> Result<(), CommandError> {
        for node in nodes {
            match node {
                Node::Text(text) => self.out.text(text)?,
                Node::Style(change) => self.out.change(*change)?,
                Node::Element(element) => explain(element, self.element(element))?,
            }
        }
        Ok(())
    }

    fn element(&mut self, element: &Element<'_>) -> Result<(), Stop> {
        match element.tag {
            b"symbol" => self.symbol(element),
            b"pc" => self.pc(element),
            b"bt" => self.backtrace(element),
            b"data" => self.data(element),
            tag if tag.iter().all(u8::is_ascii_lowercase) => Ok(self.out.text(element.text)?),
            _ => Err("a tag has lower-case letters only".to_owned().into()),
        }
    }

    fn mmap(&mut self, element: &Element<'_>, before: &[Node<'_>]) -> Result<(), Stop> {
        let start = self.context.add_map(element)?;
        let module = self.context.maps[&start].module;
        if self.module_line.as_ref().is_none_or(|line| line.module != module) {
            self.begin_module_line(module, before)?;
            self.out.text("; adds")?;
        }
        if let Some(line) = &mut self.module_line {
            line.maps.push(start);
        }
        Ok(())
    }

    fn module(&mut self, element: &Element<'_>, before: &[Node<'_>]) -> Result<(), Stop> {
        let number = self.context.add_module(element)?;
        self.begin_module_line(number, before)?;
        self.out.text("; BuildID=")?;
        Ok(self.out.value(&self.context.modules[&number].build_id)?)
    }

    fn reset(&mut self, element: &Element<'_>, before: &[Node<'_>]) -> Result<(), Stop> {
        element.at_most(0);
        if !self.context.modules.is_empty() {
            self.end_module_line()?;
            self.nodes(before).map_err(Stop::Failed)?;
            self.raw(element)?;
            self.out.text(self.line_end)?;
            self.context = Context::default();
        }
        Ok(())
    }

    /// Begins the line of a module, after what was before the element in its line.
    fn begin_module_line(&mut self, module: u64, before: &[Node<'_>]) -> Result<(), Stop> {
        self.end_module_line()?;
        self.nodes(before).map_err(Stop::Failed)?;
        self.out.begin()?;
        self.out.text("[[[ELF module")?;
        self.out.value(format!(" #{module:#x} "))?;
        self.out.text("\"")?;
        self.out.value(&self.context.modules[&module].name)?;
        self.out.text("\"")?;
        self.module_line = Some(ModuleLine { module, maps: Vec::new() });
        Ok(())
    }

    fn end_module_line(&mut self) -> io::Result<()> {
        let Some(ModuleLine { mut maps, .. }) = self.module_line.take() else { return Ok(()) };
        maps.sort_unstable();
        for (number, start) in maps.iter().enumerate() {
            let map = &self.context.maps[start];
            self.out.text(if number == 0 { " [" } else { ",[" })?;
            self.out.value(format!("{start:#x}"))?;
            self.out.text("-")?;
            self.out.value(format!("{:#x}", map.last(*start)))?;
            self.out.text("](")?;
            self.out.value(&map.mode)?;
            self.out.text(")")?;
        }
        self.out.text("]]]")?;
        self.out.text(self.line_end)?;
        self.out.end()
    }

    fn symbol(&mut self, element: &Element<'_>) -> Result<(), Stop> {
        let [name] = element.exactly()?;
        self.out.begin()?;
        self.out.text(text::demangled(name).as_bytes())?;
        Ok(self.out.end()?)
    }

    /// The function that contains the code, and the line in it, as with `--no-inlines`.
    fn pc(&mut self, element: &Element<'_>) -> Result<(), Stop> {
        let [stated] = element.at_least()?;
        element.at_most(2);
        let kind = if let [_, kind] = element.fields[..] { kind } else { b"pc" };
        let address = code_address(stated, kind)?;
        let found = frames(&self.context, &mut self.found, address);
        let (_, _, frames) = self.answered(element, found)?;
        let Some(frame) = frames.last() else { return Ok(self.raw(element)?) };
        let [name, file] = self.name_and_file(frame);
        self.out.begin()?;
        self.out.value(name)?;
        self.out.text("[")?;
        self.out.value(file)?;
        self.out.text(":")?;
        self.out.value(line_of(frame))?;
        self.out.text("]")?;
        Ok(self.out.end()?)
    }

    /// A line for each function at the address, the innermost one first.
    fn backtrace(&mut self, element: &Element<'_>) -> Result<(), Stop> {
        let [number, stated] = element.at_least()?;
        element.at_most(3);
        let number = text::lossy(number);
        let parsed = number.parse::<u64>().ok().filter(|_| !number.starts_with('+'));
        let number = parsed.ok_or_else(|| format!("expected the number of a frame, found {number:?}"))?;
        let kind = if let [_, _, kind] = element.fields[..] { kind } else { b"ra" };
        let address = code_address(stated, kind)?;
        let found = frames(&self.context, &mut self.found, address);
        let (module, in_module, frames) = self.answered(element, found)?;
        let last = frames.len().saturating_sub(1);
        self.out.begin()?;
        for at in 0..=last {
            let number = number.to_string();
            self.out.text(format!("{:>width$}", "#", width = 6usize.saturating_sub(number.len())))?;
            self.out.value(number)?;
            if at == last {
                self.out.text("   ")?;
            } else {
                self.out.text(".")?;
                self.out.value(format!("{:<2}", at + 1))?;
            }
            self.out.value(format!(" {address:#018x} "))?;
            if let Some(frame) = frames.get(at) {
                let [name, file] = self.name_and_file(frame);
                for (value, after) in [(name, " "), (file, ":"), (line_of(frame), ":"), ("0".to_owned(), " ")]
                {
                    self.out.value(value)?;
                    self.out.text(after)?;
                }
            }
            self.out.text("(")?;
            self.out.value(&module)?;
            self.out.text("+")?;
            self.out.value(format!("{in_module:#x}"))?;
            self.out.text(")")?;
            if at < last {
                self.out.text(self.line_end)?;
            }
        }
        Ok(self.out.end()?)
    }

    fn data(&mut self, element: &Element<'_>) -> Result<(), Stop> {
        let [stated] = element.exactly()?;
        let address = address(stated)?;
        let found = self.context.find(address).and_then(|(module, in_module)| {
            let wanted = wanted(module)?;
            self.found.data(wanted, in_module).map_err(|failure| failure.message)
        });
        let data = self.answered(element, found)?;
        self.out.begin()?;
        let name = data.symbol.map_or_else(|| UNKNOWN.to_owned(), |symbol| self.naming.data(&symbol));
        self.out.text(name)?;
        Ok(self.out.end()?)
    }
    /// The answer for an element, which is printed in brackets if there is none.
    fn answered<T>(&mut self, element: &Element<'_>, answer: Result<T, Problem>) -> Result<T, Stop> {
        if answer.is_err() {
            self.raw(element)?;
        }
        Ok(answer?)
    }

    fn raw(&mut self, element: &Element<'_>) -> io::Result<()> {
        self.out.begin()?;
        self.out.text("[[[")?;
        self.out.value(element.tag)?;
        for field in &element.fields {
            self.out.text(":")?;
            self.out.value(field)?;
        }
        self.out.text("]]]")?;
        self.out.end()
    }

    fn name_and_file(&self, frame: &OwnedFrame) -> [String; 2] {
        let name = match self.naming.functions {
            Functions::None => None,
            Functions::Short | Functions::Linkage => self.naming.function(frame),
        };
        [name, self.naming.file(frame)].map(|text| text.unwrap_or_else(|| UNKNOWN.to_owned()))
    }
}

/// Says why an element was left out or has no answer.
fn explain(element: &Element<'_>, done: Result<(), Stop>) -> Result<(), CommandError> {
    match done {
        Ok(()) => Ok(()),
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Problem(problem)) => {
            complain(&format!("{}: {problem}", text::lossy(element.text)));
            Ok(())
        }
    }
}

fn line_of(frame: &OwnedFrame) -> String {
    frame.line.unwrap_or(0).to_string()
}

/// The address to look up: of a return address, that of the byte before it.
fn code_address(stated: &[u8], kind: &[u8]) -> Result<u64, Problem> {
    let address = address(stated)?;
    match kind {
        b"pc" => Ok(address),
        b"ra" => Ok(address.wrapping_sub(1)),
        _ => Err(format!("expected pc or ra, found {:?}", text::lossy(kind))),
    }
}

fn wanted(module: &Module) -> Result<&ModuleName, Problem> {
    module.wanted.as_ref().ok_or_else(|| format!("no file can have the build id {}", module.build_id))
}

/// The name of the module at `address`, the address as the module's file states it, and the frames there.
fn frames(
    context: &Context,
    found: &mut Modules,
    address: u64,
) -> Result<(Vec<u8>, u64, Vec<OwnedFrame>), Problem> {
    let (module, in_module) = context.find(address)?;
    let mut answer = Ok(Vec::new());
    let each = |_, frames| {
        answer = frames;
        Ok(())
    };
    if let Err(CommandError::Failure(failure)) = found.code(wanted(module)?, &[in_module], each) {
        return Err(failure.message);
    }
    let mut frames = answer.map_err(|failure| failure.message)?;
    // Code of a range without a symbol.
    frames.retain(|frame| frame.name.is_some() || frame.file.is_some());
    Ok((module.name.clone(), in_module, frames))
}

//! Makes `testdata/demo`: the debug files of an app, an image without debug file, and a crash of the app.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use object::{Object, ObjectSegment};
use serde_json::Value;

use super::backtrace::{Frame, Image, THREADS};
use super::disassembly::Disassembly;
use super::image::Builder;
use super::recipes::{DEMO_APP, DEMO_KIT, DEMO_PLAIN};
use super::report::{self, Line, Loaded};
use crate::tools::Tools;

const COMPILER_GENERATED: &str = "<compiler-generated>";

/// An image of the demo.
struct Module {
    disassembly: Disassembly,
    /// The debug file; `None` for the image without one.
    dwarf: Option<PathBuf>,
    loaded: Loaded,
    /// The address of `__TEXT`.
    base: u64,
}

/// Makes the demo in the folder `out`.
///
/// # Errors
/// A tool fails, or a stack does not match the images.
pub(crate) fn build(builder: &Builder<'_>, out: &Path) -> Result<()> {
    std::fs::create_dir_all(out)?;
    // The order matters: each image links against those before it.
    let plain = builder.link(&DEMO_PLAIN)?;
    let kit = builder.link(&DEMO_KIT)?;
    let app = builder.link(&DEMO_APP)?;
    let app_dwarf = builder.debug_file(&DEMO_APP, out)?;
    let kit_dwarf = builder.debug_file(&DEMO_KIT, out)?;
    std::fs::copy(&plain, out.join(DEMO_PLAIN.name))?;

    let tools = builder.tools;
    let modules = [
        Module::new(tools, &app, Some(app_dwarf), "DemoApp", 0x1_0483_4000)?,
        Module::new(tools, &kit, Some(kit_dwarf), "Frameworks/DemoKit.framework/DemoKit", 0x1_0498_c000)?,
        Module::new(tools, &plain, None, "Frameworks/DemoPlain.dylib", 0x1_0490_8000)?,
    ];
    let mut expected = String::from("# thread\tframe\timage\tlookup_svma\tdepth\tfunction\tfile\tline\n");
    let mut threads = Vec::new();
    let mut null_registers = Vec::new();
    for (thread_number, thread) in THREADS.iter().enumerate() {
        let mut lines = Vec::new();
        for (number, frame) in thread.frames.iter().enumerate() {
            let context = || format!("thread {thread_number}, frame {number}");
            let resolved = resolve(tools, &modules, frame).with_context(context)?;
            for answer in &resolved.answers {
                expected += &format!("{thread_number}\t{number}\t{answer}\n");
            }
            null_registers.extend(resolved.null_registers);
            lines.push(resolved.line);
        }
        threads.push((thread.name, lines));
    }
    let loaded: Vec<&Loaded> = modules.iter().map(|module| &module.loaded).collect();
    std::fs::write(out.join("demo.crash"), report::write(&threads, &loaded, &null_registers)?)?;
    std::fs::write(out.join("demo.expected.tsv"), expected)?;
    Ok(())
}

impl Module {
    fn new(tools: &Tools, image: &Path, dwarf: Option<PathBuf>, path: &str, address: u64) -> Result<Self> {
        let bytes = std::fs::read(image)?;
        let file = object::File::parse(bytes.as_slice())?;
        let uuid = file.mach_uuid()?.context("an image without LC_UUID")?;
        let text = file.segments().find(|segment| segment.name() == Ok(Some("__TEXT")));
        let text = text.context("an image without __TEXT")?;
        let name = image.file_name().and_then(|name| name.to_str()).context("an image without a name")?;
        Ok(Self {
            disassembly: Disassembly::of(tools, image)?,
            dwarf,
            loaded: Loaded { name: name.to_owned(), path: path.to_owned(), address, size: text.size(), uuid },
            base: text.address(),
        })
    }
}

/// A frame with its addresses.
struct Resolved {
    line: Line,
    /// The answers of llvm-symbolizer: rows of `demo.expected.tsv` without the first two columns.
    answers: Vec<String>,
    null_registers: Vec<usize>,
}

fn resolve(tools: &Tools, modules: &[Module; 3], frame: &Frame) -> Result<Resolved> {
    let (image, svma, lookup, chain, null_registers) = match frame {
        Frame::System { image, offset, known_as } => {
            let line = report::system_line(image, *offset, *known_as)?;
            return Ok(Resolved { line, answers: Vec::new(), null_registers: Vec::new() });
        }
        Frame::Fault { image, function, mnemonic, nth, chain } => {
            let (pc, registers) = module(modules, *image).disassembly.access(function, mnemonic, *nth)?;
            (*image, pc, pc, *chain, registers)
        }
        Frame::Call { image, function, callee, nth, chain } => {
            let address = module(modules, *image).disassembly.return_address(function, callee, *nth)?;
            (*image, address, address - 1, *chain, Vec::new())
        }
    };
    let module = module(modules, image);
    let offset = svma - module.base;
    let line = Line::raw(&module.loaded.name, module.loaded.address, offset);
    let name = &module.loaded.name;
    let rows = match &module.dwarf {
        Some(dwarf) => symbolize(tools, dwarf, lookup, chain)?,
        None => vec![module.disassembly.function_at(lookup)?.to_owned() + "\t-\t-"],
    };
    let answers = rows.iter().enumerate().map(|(depth, row)| format!("{name}\t{lookup:#x}\t{depth}\t{row}"));
    Ok(Resolved { line, answers: answers.collect(), null_registers })
}

fn module(modules: &[Module; 3], image: Image) -> &Module {
    match image {
        Image::App => &modules[0],
        Image::Kit => &modules[1],
        Image::Plain => &modules[2],
    }
}

/// The linkage name, file and line of each function at `address`, innermost first, separated by tabs.
///
/// # Errors
/// The chain of functions differs from `chain`.
fn symbolize(tools: &Tools, dwarf: &Path, address: u64, chain: &[&str]) -> Result<Vec<String>> {
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let short = ask(tools, dwarf, address, "short")?;
    let names: Vec<String> =
        short.iter().map(|entry| without_arguments(&text(entry, "FunctionName"))).collect();
    ensure!(names == chain, "{address:#x} is in {names:?}; expected {chain:?}");
    let linkage = ask(tools, dwarf, address, "linkage")?;
    let row = |entry: &Value| {
        let file = text(entry, "FileName");
        // llvm-symbolizer prefixes the compilation folder even if the name is no file; symdex does not.
        let file = if file.ends_with(COMPILER_GENERATED) { COMPILER_GENERATED } else { &file };
        format!("{}\t{file}\t{}", text(entry, "FunctionName"), entry["Line"])
    };
    Ok(linkage.iter().map(row).collect())
}

fn ask(tools: &Tools, dwarf: &Path, address: u64, functions: &str) -> Result<Vec<Value>> {
    let folder = dwarf.parent().context("a debug file without a parent folder")?;
    let args = [
        format!("--obj={}", dwarf.display()),
        format!("--functions={functions}"),
        "--no-demangle".to_owned(),
        "--output-style=JSON".to_owned(),
        format!("{address:#x}"),
    ];
    let answer: Value = serde_json::from_str(&tools.run("llvm-symbolizer", folder, args)?)?;
    Ok(answer[0]["Symbol"].as_array().cloned().unwrap_or_default())
}

/// Removes template arguments: `each_span<(lambda at Decoder.cpp:61:26)>` becomes `each_span`.
fn without_arguments(name: &str) -> String {
    name.split('<').next().unwrap_or_default().to_owned()
}

//! Compiles the program that crashes, and builds indexes with unwind rows of the files that it loads.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use symdex::{ImageId, ImageOffset, Index, OwnedUnwindRow, Scratch};
use symdex_build::{BuildOptions, Companions, Image, slices};
use symdex_report::{Answers, Question, ReportImage, Source, Unanswered, answer_from_index};
use symdex_testkit::minidump::{DumpedModule, DumpedProcess, DumpedThread, Processor};

use super::captures::{Capture, Target};

/// Compiles the program with `compiler` into a folder of its own. Returns its path.
pub(crate) fn compile(compiler: &str, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crashes/crash.c");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("crash-{compiler}"));
    std::fs::create_dir_all(&folder).expect("created");
    let program = folder.join("crash");
    let mut compile = symdex_testkit::program(compiler, "--version");
    compile.args(options).arg("-Wl,--build-id=sha1").arg(source).arg("-o").arg(&program);
    assert!(compile.status().expect("the compiler starts").success(), "{compiler} {options:?}");
    program
}

/// The registers of a processor, in the order of a minidump.
fn registers(target: Target) -> (Processor, Vec<String>) {
    let names = |names: &str| names.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let numbered = |prefix: &str, count, last: &str| {
        let numbered = (0..count).map(|number| format!("{prefix}{number}"));
        numbered.chain(names(last)).collect()
    };
    match target {
        Target::X86_64 => {
            (Processor::X86_64, names("rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15 rip"))
        }
        Target::Arm64 => (Processor::Arm64, numbered("x", 31, "sp pc")),
        Target::Arm => (Processor::Arm, numbered("r", 13, "sp lr pc")),
    }
}

/// The indexes of the files of a process.
pub(crate) struct Indexes {
    indexes: HashMap<ImageId, Index<Vec<u8>>>,
    by_path: HashMap<String, ImageId>,
    /// The images of a program without mappings: it is at the addresses that its file states.
    is_static: bool,
    scratch: Scratch,
}

impl Indexes {
    /// The indexes of all files that the captured processes have mapped, as far as they are ELF files with an id.
    pub(crate) fn of(captures: &[Capture]) -> Self {
        let mut paths: Vec<_> =
            captures.iter().flat_map(|capture| &capture.maps).map(|(_, _, path)| path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        Self::of_files(&paths, false)
    }

    /// The index of a program that is linked statically.
    pub(crate) fn of_static(program: &Path) -> Self {
        Self::of_files(&[program.to_str().expect("UTF-8")], true)
    }

    fn of_files(paths: &[&str], is_static: bool) -> Self {
        let (mut indexes, mut by_path) = (HashMap::new(), HashMap::new());
        for path in paths {
            let Some(index) = index_of(Path::new(path)) else { continue };
            by_path.insert((*path).to_owned(), index.id().clone());
            indexes.insert(index.id().clone(), index);
        }
        Self { indexes, by_path, is_static, scratch: Scratch::default() }
    }

    /// The minidump of a capture.
    pub(crate) fn minidump(&self, capture: &Capture) -> Vec<u8> {
        let module = |(path, id, range): (&String, &ImageId, Range<u64>)| DumpedModule {
            base: range.start,
            size: u32::try_from(range.end - range.start).expect("less than 4 GiB"),
            path: path.clone(),
            build_id: id.as_bytes().to_vec(),
        };
        let (stack_address, stack) = capture.memory();
        let (processor, names) = registers(capture.target);
        let registers = names.iter().map(|name| capture.register(name)).collect();
        let thread = DumpedThread { id: 1, registers, stack_address, stack };
        let modules = self.images(capture).map(module).collect();
        DumpedProcess { modules, threads: vec![thread], processor, ..DumpedProcess::default() }.to_bytes()
    }

    /// The path, the id and the addresses of each image of a capture.
    fn images(&self, capture: &Capture) -> impl Iterator<Item = (&String, &ImageId, Range<u64>)> {
        self.by_path.iter().filter_map(|(path, id)| {
            let metadata = self.indexes[id].metadata();
            let maps = || capture.maps.iter().filter(|(_, _, mapped)| mapped == path);
            let (start, end) = if self.is_static {
                (metadata.base, metadata.base + metadata.image_size)
            } else {
                maps().map(|map| map.0).min().zip(maps().map(|map| map.1).max())?
            };
            Some((path, id, start..end))
        })
    }

    /// The paths of the files.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &String> {
        self.by_path.keys()
    }

    /// Puts the indexes into a folder.
    pub(crate) fn put_into(&self, folder: &Path) {
        for index in self.indexes.values() {
            let path = folder.join(format!("{}.symdex", index.id()));
            std::fs::write(path, index.as_bytes()).expect("written");
        }
    }

    fn index(&self, image: &ReportImage) -> Result<&Index<Vec<u8>>, Unanswered> {
        image.id.as_ref().and_then(|id| self.indexes.get(id)).ok_or(Unanswered::Missing)
    }
}

impl Source for Indexes {
    fn answer(&mut self, questions: &[Question<'_>]) -> Vec<Result<Answers, Unanswered>> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut answer = |question: &Question<'_>| {
            Ok(answer_from_index(self.index(question.image)?, question, &mut scratch)?.into())
        };
        let answers = questions.iter().map(&mut answer).collect();
        self.scratch = scratch;
        answers
    }

    fn unwind_row(
        &mut self,
        image: &ReportImage,
        offset: ImageOffset,
    ) -> Result<Option<OwnedUnwindRow>, Unanswered> {
        let row = self.index(image)?.unwind_row(offset).expect("intact");
        Ok(row.map(OwnedUnwindRow::from))
    }
}

/// The index of the file at `path`; `None` if it is not an ELF file.
fn index_of(path: &Path) -> Option<Index<Vec<u8>>> {
    let bytes = std::fs::read(path).ok()?;
    let slice = slices(&bytes).ok()?.into_iter().next()?;
    let companions = Companions::default();
    let image = Image::load(&slice, path, &companions).expect("loads");
    let built = BuildOptions::new().unwind_rows(true).build(&image).expect("builds");
    Some(Index::open(built.bytes).expect("opens"))
}

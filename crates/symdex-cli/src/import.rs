//! `symdex import`: indexes of symbol files.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use symdex::{Arch, ImageId};
use symdex_pipeline::{BuiltIndex, Pipeline, PipelineOptions};

use crate::build::{self, BuildLimits, BuildOutput, Destination, Reporting, UnwindOption};
use crate::failure::{Cause, CommandResult, Failure};
use crate::lookup::stdin_failed;

/// Make an index of a symbol file: Breakpad's, LLVM's GSYM, or the symbols of a Linux kernel
///
/// Use this if there are symbol files but no debug files. `symdex build` makes a better index from a debug file,
/// because a symbol file says less: it has the lines of one line policy, and one name of each function.
///
/// The content of a FILE says which format it has. The index is named after the id of the image, and published as
/// `symdex build` does.
///
/// The id of a symbol file of Breakpad is that of its MODULE line: a UUID for mac, ios and windows. For other systems,
/// it is the build id in the record INFO CODE_ID; without that record, it is the first 16 bytes of the build id, which
/// is enough for reports that state no more. The id of GSYM is its UUID.
///
/// /proc/kallsyms and System.map have the names of a kernel, without its id: give the build id of the kernel with --id,
/// as `file vmlinux` and /sys/kernel/notes state it. Symbols of modules are left out. `symdex build` of vmlinux has
/// lines, too.
///
/// A function without lines becomes an entry of the symbol table, as does a record PUBLIC. Records STACK CFI say where
/// such functions end. With --unwind, they become unwind rows. Records STACK WIN are not used.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Symbol files of Breakpad (.sym) or GSYM (.gsym), kallsyms or System.map, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    destination: Destination,
    #[command(flatten)]
    limits: BuildLimits,
    /// The id of the image, for a file that states none or a wrong one. Only for one FILE
    #[arg(long, value_name = "ID")]
    id: Option<ImageId>,
    /// The architecture of the images, such as arm64 or x86_64. GSYM does not state it. Reports of 32-bit ARM need it
    #[arg(long, value_name = "ARCH", value_parser = arch)]
    arch: Option<Arch>,
    #[command(flatten)]
    unwind: UnwindOption,
    #[command(flatten)]
    reporting: Reporting,
}

const EXAMPLES: &str = "\
Examples:
  symdex import MyApp.sym -o indexes
  symdex import symbols/libxul.so/*/libxul.so.sym --store s3://bucket/indexes
  symdex import app.gsym --arch x86_64 --json | jq -r .location
  dump_syms libapp.so | symdex import - -o indexes
  symdex import System.map-6.1.0 --arch x86_64 --id 4409ab2b8a5a626c1ee41412e8e6189fb23ae77c
  symdex import old.gsym --arch arm64 --id 4c4c442d55553144a16f02b9d32d2ce1

With --json, standard output has the same objects as that of `symdex build`, as in
docs/schema/build.schema.json. The help of `symdex export` says what each format can express.

Exit codes:
  0  every index was made
  4  a file is damaged
  6  a file is not a symbol file, or is GSYM of another version
  5  a file is missing
  1  a store cannot be queried, an index could not be written, or a limit was exceeded
  2  a file states no id, and --id is not given
If several apply, the first of these after 0 counts.";

fn arch(name: &str) -> Result<Arch, String> {
    Arch::from_name(name)
        .ok_or_else(|| "expected an architecture such as arm64, arm, x86_64 or i386".to_owned())
}

pub(crate) fn run(args: &Args) -> CommandResult {
    if args.id.is_some() && args.files.len() > 1 {
        let message = "--id is for one file; give the files one by one";
        return Err(Failure::new(Cause::Usage, message).into());
    }
    let mut options = args.limits.add_to(PipelineOptions::default());
    options.unwind_rows = args.unwind.is_wanted();
    let pipeline = Pipeline::new(options)?;
    let stores = args.destination.open()?;
    let (put, are_many) = (args.destination.put_options(), args.files.len() > 2);
    let mut output = BuildOutput::new(&args.reporting);
    for path in &args.files {
        match import(path, args, &pipeline).and_then(|built| build::publish(built, &stores, &put)) {
            Ok(image) => output.image(image, are_many)?,
            Err(failure) => output.fail(&failure)?,
        }
    }
    output.finish(are_many)
}

/// Builds the index of the symbol file at `path`, or of standard input.
fn import(path: &Path, args: &Args, pipeline: &Pipeline) -> Result<BuiltIndex, Failure> {
    if path == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map_err(|error| stdin_failed(&error))?;
        return import_bytes("stdin".as_ref(), &bytes, args, pipeline);
    }
    let bytes = symdex::map_file(path).map_err(|error| Failure::unreadable(path, &error))?;
    import_bytes(path, &bytes, args, pipeline)
}

fn import_bytes(path: &Path, bytes: &[u8], args: &Args, pipeline: &Pipeline) -> Result<BuiltIndex, Failure> {
    let mut file = symdex_symbol_files::read(bytes).map_err(|error| Failure::debug_file(path, &error))?;
    if let Some(name) = path.file_name() {
        file = file.named(&name.to_string_lossy());
    }
    if let Some(id) = &args.id {
        file = file.with_id(id.clone());
    }
    if let Some(arch) = &args.arch {
        file = file.with_arch(arch.clone());
    }
    pipeline.import(path, &file)
}

//! The command line of `symdex build`.

use std::path::{Path, PathBuf};

use symdex::ImageId;
use symdex_pipeline::PipelineOptions;
use symdex_pipeline::isolate::Isolation;
use symdex_store::{IdPrefix, OnConflict};

use super::common::{BuildLimits, Destination, Reporting, UnwindOption};
use super::input_args::InputArgs;
use crate::failure::Failure;
use crate::stores::whole_id;

/// Build an index of every image in debug files
///
/// An INPUT is one of these:
///
/// * a dSYM bundle, the DWARF file in one, or another Mach-O file, thin or universal;
///
/// * an ELF file: an executable, a library, or a .debug file;
///
/// * the main file of a dyld shared cache, such as dyld_shared_cache_arm64e, with the other files of the cache next to
///   it;
///
/// * a package of split units (.dwp) or a supplementary file of dwz, beside the debug files that refer to it;
///
/// * a folder or an .xcarchive, which is searched for all of these;
///
/// * an archive of these, recognised by its content: zip (.xcarchive.zip, .ipa, .aar, .apk), tar, tar compressed by
///   gzip or zstd, and archives in such an archive. - reads an archive from standard input.
///
/// Each architecture of each file is an image. It becomes one index, named after the id of the image:
/// DIR/0c37c502aba03641a08f84c794684f36.symdex. If several files have the same image, such as a stripped binary and its
/// debug file, their symbols are joined in one index.
///
/// An index is published whole or not at all. If DIR already has a different index of the same id, the one with more
/// functions stays, unless --on-conflict says otherwise. The summary says `conflict` if both are of whole debug files,
/// written by the same version. An image whose whole index is in DIR already is `unchanged`: its debug information is
/// not read, unless --force is given. Without DIR, the first store is asked for the index.
///
/// The stores are asked before archives are unpacked and files are built. If none can be reached, nothing is built. A
/// store that cannot be reached is not asked again; the others get the indexes, and the exit code is 1.
///
/// Names in archives are never used as paths. Entries that lead out of the archive, that exceed a limit, or that are
/// damaged are skipped and named. Of a compressed tar archive whose stream is damaged, nothing is used. Archives in a
/// folder are not read. Standard error names them. For more than two files, standard error ends with totals: how many
/// indexes were written or unchanged, how many images have two debug files, and how many inputs failed, by reason.
///
/// With --json, standard output has one object per line: one for each image, with its id, architecture, location, sizes
/// and outcome; {"file", "error": {"kind", "message"}} for each input that failed; and {"totals": {...}} as the last
/// line. A kind is damaged, lost, unsupported, missing, limit, unavailable, other, usage or not_found.
/// docs/schema/build.schema.json describes the objects.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) build: BuildArgs,
    #[command(flatten)]
    pub(super) destination: Destination,
    #[command(flatten)]
    pub(super) embed: EmbedArgs,
    /// Build images whose index exists already, in DIR or in the first store. --on-conflict replace implies it
    #[arg(long)]
    force: bool,
}

/// What is built, and how: the options that `symdex build` and `symdex upload` share.
#[derive(clap::Args)]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    #[command(flatten)]
    pub(crate) required: RequiredArgs,
    /// Build only images of this architecture: arm64, arm64e, armv7, x86_64, ... May be repeated. Files without such an
    /// image are skipped. If all files are skipped, that is an error
    #[arg(long, value_name = "ARCH")]
    arch: Vec<String>,
    #[command(flatten)]
    limits: BuildLimits,
    /// A symbol map, <UUID>.bcsymbolmap, or a folder of them. It resolves the hidden names of a bitcode build. May be
    /// repeated
    #[arg(long, value_name = "FILE|DIR")]
    symbol_map: Vec<PathBuf>,
    /// A folder that is searched for files that a debug file refers to, such as /usr/lib/debug: the debug files of
    /// stripped ELF files, .dwo and .dwp files, dwz files. May be repeated
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,
    /// Compare every answer of an index with its debug file. An index with a wrong answer is not published. The
    /// comparison may take four times the memory, and its time counts towards --max-seconds
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    unwind: UnwindOption,
    /// Read each debug file in a child process with limits. Use this for untrusted debug files
    ///
    /// A child may use 1.25 times --max-memory and 256 MB. It is killed 2 seconds after --max-seconds. On Linux, it can
    /// read the debug file, the folder of that file and the folders of --debug-dir and --symbol-map, and can neither
    /// open other files nor connect to a network. A child that ends early is an error of its debug file, and the others
    /// are built. Standard error says which limits this system has.
    #[arg(long)]
    isolate: bool,
    #[command(flatten)]
    pub(crate) reporting: Reporting,
}

/// The options for images that a build must find.
#[derive(clap::Args)]
pub(crate) struct RequiredArgs {
    /// Build only the image of this id, or of the only id of the inputs that begins with these digits, at least four,
    /// and fail if no input has it. May be repeated. A single --id that is complete is also the id of the one image of
    /// the inputs that states none, such as Flutter's app.ios-arm64.symbols
    #[arg(long, value_name = "ID")]
    pub(super) id: Vec<IdPrefix>,
    /// Fail if an image of the inputs gets no index with debug information, for example because its dSYM is missing
    #[arg(long)]
    pub(super) require_all: bool,
}

/// The options for indexes that debug files carry.
#[derive(clap::Args)]
#[group(multiple = false, conflicts_with_all = ["output", "urls", "symbol_map"])]
pub(super) struct EmbedArgs {
    /// Write each index into its dSYM bundle, X.dSYM/Contents/Resources/symdex/ID.symdex. atos, lookup, symbolicate and
    /// addr2line then answer from the index when they are given the dSYM
    ///
    /// The dSYM may be copied and moved with it. If its debug information has changed since, the index is not used, and
    /// a warning says so. A bundle that already carries the index that would be built is `unchanged`. Do this before
    /// the bundle is signed. `symdex verify X.dSYM` compares both.
    #[arg(long)]
    pub(super) embed: bool,
    /// Write the ELF file of the input with its index, in the section .symdex, to FILE. No program loads the section,
    /// and all other bytes stay where they are. FILE may be the input: it is written anew and then renamed. The file
    /// must have debug information, and keep its name
    #[arg(long, value_name = "FILE")]
    pub(super) embed_into: Option<PathBuf>,
}

impl EmbedArgs {
    /// The options, if debug files get the indexes.
    pub(super) fn wanted(&self) -> Option<&Self> {
        Some(self).filter(|_| self.embed || self.embed_into.is_some())
    }
}

impl RequiredArgs {
    /// Whether the image is one of `--id`, or all are wanted.
    pub(crate) fn wants(&self, id: &ImageId) -> bool {
        self.id.is_empty() || self.id.iter().any(|wanted| wanted.matches(id))
    }
}

impl BuildArgs {
    /// `unpublished` is the folder for indexes of children.
    pub(crate) fn pipeline_options(&self, unpublished: Option<&Path>) -> Result<PipelineOptions, Failure> {
        let mut options = self.limits.add_to(PipelineOptions::default());
        options.archs.clone_from(&self.arch);
        if let [id] = &self.required.id[..] {
            options.given_id = whole_id(id);
        }
        options.debug_dirs.clone_from(&self.debug_dir);
        options.symbol_maps.clone_from(&self.symbol_map);
        options.verify = self.verify;
        options.unwind_rows = self.unwind.is_wanted();
        options.isolation = self.isolate.then(Isolation::of_this_program).transpose()?;
        if let Some(folder) = unpublished {
            folder.clone_into(&mut options.unpublished);
        }
        Ok(options)
    }
}

impl Args {
    /// Whether images are built whose index exists already. An index that is to be replaced may only look like the one
    /// that a build would make.
    pub(super) fn builds_all(&self) -> bool {
        self.force || self.destination.on_conflict == OnConflict::Replace
    }
}

const EXAMPLES: &str = "\
Examples:
  symdex build MyApp.app.dSYM
  symdex build MyApp.xcarchive other/dSYMs -o indexes --jobs 8
  symdex build MyApp.app.dSYM --arch arm64 --json | jq -r 'select(.location).location'
  symdex build MyApp.xcarchive --arch arm64 --arch arm64e -o indexes
  symdex build MyApp.xcarchive --symbol-map MyApp.xcarchive/BCSymbolMaps
  symdex build libapp.so symbols/libapp.so.debug -o indexes
  symdex build /usr/lib --debug-dir /usr/lib/debug -o indexes
  symdex build MyApp.app.dSYM --max-memory 256MB
  symdex build app.ios-arm64.symbols --id 0c37c502-aba0-3641-a08f-84c794684f36
  symdex build uploads --isolate --max-seconds 60 -o indexes
  symdex build MyApp.xcarchive --store s3://bucket/indexes
  symdex build MyApp.xcarchive --embed
  symdex build libapp.so --embed-into libapp.so
  symdex build MyApp.ipa appDsyms.zip --require-all -o indexes
  curl https://example.com/dsyms.tar.gz | symdex build - -o indexes
  find dsyms -name '*.zip' -print0 | symdex build --inputs-from - -0 --shard 0/16

A debug file that cannot be read is reported on standard error, and the others are built.

Exit codes:
  0  every index was built
  4  a debug file or an archive is damaged
  6  a file is not a debug file, an index would have nothing of what its file has, or an entry of an archive is refused
  5  a file is missing
  1  a store cannot be queried, an index could not be written or has a wrong answer, or a limit of --isolate has ended
     its build
  3  a file has nothing to answer, no image has the architecture, an image of --id is missing, or --require-all lacks
     debug information
If several apply, the first of these after 0 counts.";

//! `symdex ids`: the images in files.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;
use symdex::{Grade, ImageId, Metadata};
use symdex_build::debug_files::{FileError, ListedImage, images_in, slices_of};
use symdex_build::{Error, FoundFiles};
use symdex_pipeline::Batch;
use symdex_store::{Store, StoredImage};

use crate::archive;
use crate::failure::{self, Cause, Failure, complain};
use crate::open::AccessOption;
use crate::output::Output;
use crate::stores::StoreArgs;
use crate::text;

/// List the images in debug files, binaries and indexes: id, architecture, kind, grade, size and path
///
/// A PATH is a dSYM, another Mach-O file, an ELF file, the main file of a dyld shared cache, an index, a folder, which
/// is searched for all of these, or an archive of debug files, as for `symdex build`. Only headers are read. The id is
/// the one that crash reports state: the LC_UUID, in ELF the build id. If an image states no id, its id is h- and a
/// hash of its code.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Files or folders
    #[arg(required_unless_present = "urls", value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    stores: StoreArgs,
    /// Print JSON, one object per line for each image
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  symdex ids MyApp.app.dSYM MyApp.app/MyApp
  symdex ids indexes | grep -i 0c37c502
  symdex ids --store s3://bucket/indexes
  symdex ids appDsyms.zip
  symdex ids MyApp.xcarchive --json | jq -r .id

JSON:
  {\"id\", \"arch\", \"kind\", \"has_dwarf\", \"grade\", \"size\", \"location\", \"name\"} for an image
  {\"location\", \"error\": {\"kind\", \"message\"}} for a file that cannot be read
The grade is the most that an index answers: lines, names, bounds or nothing. Of a debug file only the \
headers are read: lines if it has debug information, else null, and - in text. \
The size is in bytes. Images of a shared cache have their path in the cache as name, and indexes \
have the name of their image.

Exit codes:
  0  every file was read
  4  a file is damaged
  6  a file is not a debug file or an index
  5  a file is missing
  1  a file cannot be read";

/// An image in a file. With `--json`, its line.
#[derive(Serialize)]
struct ImageRow {
    id: String,
    arch: String,
    kind: &'static str,
    has_dwarf: bool,
    grade: Option<Grade>,
    size: u64,
    location: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

/// Where something is that cannot be read, in JSON.
#[derive(Serialize)]
struct Unread {
    location: String,
}

/// The images of one file. Some of them may not be readable.
type ImageRows = Vec<Result<ImageRow, (PathBuf, Failure)>>;

pub(crate) fn run(args: &Args) -> failure::CommandResult {
    let mut images = ImageRows::new();
    for path in &args.paths {
        match archive::debug_files(path, &()) {
            Ok(Some(archive)) => images.extend(rows_of_archive(archive)),
            Ok(None) => images.extend(rows_below(path)),
            Err(failure) => images.push(Err((path.clone(), failure))),
        }
    }
    if args.stores.are_given() {
        for store in args.stores.open(AccessOption::default())? {
            images.extend(rows_of_store(&*store));
        }
    }
    print(&images, args.json)
}

/// The images in the debug files and indexes at or below `path`.
fn rows_below(path: &Path) -> ImageRows {
    let rows: Vec<ImageRows> = files_of(path)
        .into_par_iter()
        .map(|file| match file {
            Ok(path) => rows_in(&path).unwrap_or_else(|failure| vec![Err((path, failure))]),
            Err(failed) => vec![Err(failed)],
        })
        .collect();
    rows.into_iter().flatten().collect()
}

/// The images in the debug files of an archive.
fn rows_of_archive(mut archive: Batch) -> ImageRows {
    let (mut rows, mut companions) = (ImageRows::new(), ImageRows::new());
    for file in std::mem::take(&mut archive.files).into_files() {
        let of_file = |error: FileError| (error.path().to_owned(), error.into());
        match file.and_then(|file| Ok((slices_of(&file)?, file))) {
            Ok((images, file)) => rows.extend(
                images.into_iter().map(|image| image.map(|image| row(image, file.name())).map_err(of_file)),
            ),
            Err(error) if error.is_companion() => companions.push(Err(of_file(error))),
            Err(error) => rows.push(Err(of_file(error))),
        }
    }
    if rows.is_empty() {
        rows = companions;
    }
    let failures = std::mem::take(&mut archive.failures).into_iter();
    rows.extend(failures.map(|failure| Err((failure.path.clone().unwrap_or_default(), failure))));
    rows
}

/// The indexes in `store`, sorted by id. Each is opened.
fn rows_of_store(store: &dyn Store) -> ImageRows {
    let mut ids = Vec::new();
    let listed = store.list(&mut |entry| {
        ids.push(entry.id);
        ControlFlow::Continue(())
    });
    ids.sort();
    let failed = |failure: Failure, location: String| (PathBuf::from(location), failure);
    let row = |id: &ImageId| {
        let location = store.location(id);
        match store.open(id) {
            Ok(Some(StoredImage::Index(index))) => Some(Ok(row_of_metadata(
                index.metadata().clone(),
                index.as_bytes().len() as u64,
                location.as_ref(),
            ))),
            Ok(Some(image)) => {
                let size = store.stat(id).ok().flatten().and_then(|entry| entry.index_size);
                Some(Ok(row_of_metadata(
                    image.metadata().clone(),
                    size.unwrap_or_default(),
                    location.as_ref(),
                )))
            }
            // It was removed in the meantime.
            Ok(None) => None,
            Err(error) => Some(Err(failed(error.into(), location))),
        }
    };
    let mut rows: ImageRows = ids.iter().filter_map(row).collect();
    rows.extend(listed.err().map(|error| Err(failed(error.into(), store.url().to_string()))));
    rows
}

/// Prints the images, and reports the failures. Returns the gravest failure.
fn print(images: &[Result<ImageRow, (PathBuf, Failure)>], is_json: bool) -> failure::CommandResult {
    let width = |column: fn(&ImageRow) -> &str| {
        images.iter().flatten().map(|row| column(row).len()).max().unwrap_or(0)
    };
    let widths = [width(|row| &row.id), width(|row| &row.arch), width(|row| row.kind)];
    let mut output = Output::new(is_json);
    for image in images {
        match image {
            Ok(row) => output.line(row, || row.text(widths))?,
            Err((path, failure)) => {
                output.fail(&Unread { location: path.display().to_string() }, failure)?;
            }
        }
    }
    Ok(output.gravest())
}

impl ImageRow {
    /// The row with columns of these widths for id, architecture and kind.
    fn text(&self, [id, arch, kind]: [usize; 3]) -> String {
        let inside = self.name.as_ref().map(|name| format!(": {name}")).unwrap_or_default();
        let path = text::printable(format!("{}{inside}", self.location).into()).into_owned();
        let size = text::size(self.size);
        let grade = self.grade.map_or("-", Grade::name);
        format!("{:id$}  {:arch$}  {:kind$}  {grade:7}  {size:>10}  {path}", self.id, self.arch, self.kind)
    }
}

/// The debug files and indexes at or below `path`, sorted by path.
fn files_of(path: &Path) -> Vec<Result<PathBuf, (PathBuf, Failure)>> {
    let FoundFiles { debug_files, indexes, special, .. } = symdex_build::search(path);
    if !special.is_empty() {
        complain(&format!("warning: {special}"));
    }
    let failed = |error: Error| match error {
        Error::NoDebugFile { archives, .. } if archives.is_empty() => {
            let message = format!("{}: no debug file and no index in this folder", path.display());
            (path.to_owned(), Failure::new(Cause::Missing, message))
        }
        error => (path.to_owned(), Failure::debug_file(path, &error)),
    };
    let is_empty = |found: &Result<_, Error>| matches!(found, Err(Error::NoDebugFile { .. }));
    let debug_files = debug_files.into_iter().filter(|found| indexes.is_empty() || !is_empty(found));
    let mut files: Vec<_> = debug_files.map(|found| found.map_err(failed)).collect();
    files.extend(indexes.iter().cloned().map(Ok));
    files.sort_by(|a, b| path_of(a).cmp(path_of(b)));
    files
}

/// The path of a file, for sorting.
fn path_of(file: &Result<PathBuf, (PathBuf, Failure)>) -> &Path {
    match file {
        Ok(path) | Err((path, _)) => path,
    }
}

/// The images in the debug file or index at `path`.
fn rows_in(path: &Path) -> Result<ImageRows, Failure> {
    match Metadata::read_file(path) {
        Ok(metadata) => {
            let size = path.metadata().map_or(0, |file| file.len());
            return Ok(vec![Ok(row_of_metadata(metadata, size, path))]);
        }
        Err(symdex::Error::NotAnIndex { .. }) => {}
        Err(error) => return Err(Failure::index(path, &error)),
    }
    let of_file = |error: FileError| (path.to_owned(), error.into());
    let rows = images_in(path)?.into_iter().map(|image| image.map(|image| row(image, path)).map_err(of_file));
    Ok(rows.collect())
}

fn row(ListedImage { identity, arch, size, cached_path, .. }: ListedImage, path: &Path) -> ImageRow {
    ImageRow {
        id: identity.id.to_string(),
        arch,
        kind: identity.kind.name(),
        has_dwarf: identity.has_dwarf,
        grade: identity.has_lines.then_some(Grade::Lines),
        size,
        location: path.display().to_string(),
        name: cached_path,
    }
}

fn row_of_metadata(metadata: Metadata, size: u64, path: &Path) -> ImageRow {
    let grade = metadata.grade();
    ImageRow {
        id: metadata.id.to_string(),
        arch: metadata.arch.name,
        kind: "index",
        has_dwarf: metadata.counts.units != 0,
        grade: Some(grade),
        size,
        location: path.display().to_string(),
        name: Some(metadata.image_name),
    }
}

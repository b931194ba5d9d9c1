//! `--debug-files`: the debug files themselves, as archives.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use symdex::{Grade, ImageId};
use symdex_pipeline::{Batch, Input, Pipeline};

use super::args::Args;
use super::known::Known;
use super::parcel::{Image, Parcel};
use crate::archive;
use crate::build::{BuildOutput, Required, report_batch};
use crate::failure::{Cause, CommandError, Failure};
use crate::text;

/// The uploads of `inputs` that the server does not answer with lines, in files of `folder`.
pub(super) fn collect(
    args: &Args,
    inputs: &[PathBuf],
    known: &mut Known<'_>,
    folder: &Path,
    output: &mut BuildOutput<'_>,
) -> Result<Vec<Parcel>, CommandError> {
    let pipeline = Pipeline::new(args.build.pipeline_options(None)?)?;
    let mut required = Required::new(&args.build.required);
    let mut parcels = Vec::new();
    let (mut has_images, mut without_arch) = (false, None);
    for path in inputs {
        if archive::is_pipe(path) {
            let message = format!("{}: --debug-files sends files and folders, no pipes", path.display());
            return Err(Failure::new(Cause::Usage, message).into());
        }
        let mut intake = args.build.inputs.intake(std::slice::from_ref(path));
        let Some(batch) = intake.next_batch(&())? else { continue };
        report_batch(&batch, &args.build, &mut required, output)?;
        let plan = pipeline.plan(&batch, &())?;
        for failure in plan.failures() {
            output.fail(failure)?;
        }
        required.planned(&plan)?;
        if plan.ids.is_empty() {
            match &plan.no_such_arch {
                Some(failure) => without_arch = Some(failure.clone()),
                None if batch.failures.is_empty() && plan.failures().next().is_none() => {
                    let message =
                        "no image of it has an id that can be read, so that no server can answer it";
                    output.fail(&Failure::of_file(path, Cause::NotFound, message))?;
                }
                None => {}
            }
            continue;
        }
        has_images = true;
        let answered = known.ask(&plan)?;
        let is_wanted = |id: &ImageId| args.build.required.wants(id) && plan.ids.contains(id);
        let images: Vec<_> = plan.images().filter(|(_, (id, _))| is_wanted(id)).collect();
        if images.iter().all(|(_, (id, _))| answered.contains(id)) {
            continue;
        }
        let image = |(file, (id, arch)): &(&Path, (ImageId, String))| {
            let file_of_upload = path.display().to_string();
            Image { file: file_of_upload, ..Image::of_plan(file, id, arch, Grade::Bounds) }
        };
        let mut images: Vec<_> = images.iter().map(image).collect();
        images.sort_by(|a, b| (&a.id, &a.arch).cmp(&(&b.id, &b.arch)));
        images.dedup_by(|a, b| (&a.id, &a.arch) == (&b.id, &b.arch));
        let mut name = text::file_name(path);
        let file = if Input::of_argument(path).is_archive_or_pipe() {
            path.clone()
        } else {
            name += ".zip";
            let target = folder.join(format!("{}.zip", parcels.len()));
            zip(path, &batch, &target)
                .map_err(|error| Failure::of_file(path, Cause::Other, &format!("cannot zip it: {error}")))?;
            target
        };
        parcels.push(Parcel::of_file(images, name, &file)?);
    }
    // If an input has an image of a wanted architecture, the others are skipped, as `symdex build` does it.
    if let Some(failure) = without_arch.filter(|_| !has_images) {
        output.fail(&failure)?;
    }
    for failure in required.failures() {
        output.fail(&failure)?;
    }
    Ok(parcels)
}

/// Writes a zip of the debug files of `input`, with names that begin with that of the input. Its bytes depend on the
/// files alone, so that the upload resumes in another run.
fn zip(input: &Path, batch: &Batch, target: &Path) -> io::Result<()> {
    let mut archive = ZipArchiveWriter::new(io::BufWriter::new(File::create(target)?));
    let above = input.parent().unwrap_or(Path::new(""));
    for file in batch.files.files().iter().flatten() {
        let name = file.path().strip_prefix(above).unwrap_or(file.path());
        let name = name.to_string_lossy().replace('\\', "/");
        let entry = archive.new_file(name.as_str()).compression_method(CompressionMethod::DEFLATE);
        let (mut entry, config) = entry.start().map_err(io::Error::other)?;
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
        io::copy(&mut File::open(file.path())?, &mut writer)?;
        let (encoder, data) = writer.finish().map_err(io::Error::other)?;
        encoder.finish()?;
        entry.finish(data).map_err(io::Error::other)?;
    }
    archive.finish().map_err(io::Error::other)?.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(())
}

//! An open index, which threads share.

use std::path::{Path, PathBuf};

use symdex::{Cause, ImageId, MappedFile};

use crate::types::{Metadata, Status, Text};

/// An open index. Any number of threads can use it at the same time.
pub struct Index {
    pub(crate) index: symdex::Index<Bytes>,
    /// The id, the name of the image, the architecture, the builder and the grade, each with a 0 after it.
    texts: [Vec<u8>; 5],
}

/// What holds the bytes of an index.
pub(crate) enum Bytes {
    Own(Vec<u8>),
    Mapped(MappedFile),
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Mapped(file) => file.as_ref(),
        }
    }
}

/// Why a call failed.
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// The failure to read the file at `path`.
    fn of_file(path: &Path, error: symdex::Error) -> Self {
        let failure = Self::from(error);
        Self { message: format!("{}: {}", path.display(), failure.message), ..failure }
    }
}

impl From<symdex::Error> for Failure {
    fn from(error: symdex::Error) -> Self {
        let status = match error.cause() {
            Cause::Missing => Status::NotFound,
            Cause::Unsupported => Status::Unsupported,
            Cause::Damaged => Status::Damaged,
            Cause::Limit => Status::TooLarge,
            _ => Status::Io,
        };
        Self::new(status, error.to_string())
    }
}

impl Index {
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Result<Self, Failure> {
        Ok(Self::new(symdex::Index::open(Bytes::Own(bytes))?))
    }

    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::of_file(path, error);
        let bytes = symdex::read_index_file(path).map_err(failed)?;
        Ok(Self::new(symdex::Index::open(Bytes::Own(bytes)).map_err(failed)?))
    }

    pub(crate) fn map(path: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::of_file(path, error);
        let file = symdex::map_file(path).map_err(|error| failed(error.into()))?;
        Ok(Self::new(symdex::Index::open(Bytes::Mapped(file)).map_err(failed)?))
    }

    /// The index of the image `id` in `folder`, or in its subfolder of the first two digits.
    pub(crate) fn find(folder: &Path, id: &str) -> Result<Self, Failure> {
        let id: ImageId = id.parse().map_err(|error: symdex::ParseImageIdError| {
            Failure::new(Status::InvalidArgument, error.to_string())
        })?;
        let name = format!("{id}.symdex");
        let digits = name.get(..2).unwrap_or_default();
        let places: [PathBuf; 2] = [folder.join(&name), folder.join(digits).join(&name)];
        for path in &places {
            match Self::read(path) {
                Err(failure) if failure.status == Status::NotFound => {}
                found => return found,
            }
        }
        let message = format!("{}: there is no {name}, nor {digits}/{name}", folder.display());
        Err(Failure::new(Status::NotFound, message))
    }

    fn new(index: symdex::Index<Bytes>) -> Self {
        let metadata = index.metadata();
        let texts = [
            metadata.id.to_string(),
            metadata.image_name.clone(),
            metadata.arch.name.to_string(),
            metadata.builder.clone(),
            metadata.grade().name().to_owned(),
        ];
        let texts = texts.map(|text| [text.as_bytes(), b"\0"].concat());
        Self { index, texts }
    }

    /// What the index states. Its texts live as long as the index.
    pub(crate) fn metadata(&self) -> Metadata {
        let metadata = self.index.metadata();
        let [id, image_name, arch, builder, grade] = self.texts.each_ref().map(|text| Text::of(text));
        let counts = metadata.counts;
        Metadata {
            id,
            image_name,
            arch,
            builder,
            grade,
            base: metadata.base,
            image_size: metadata.image_size,
            units: counts.units,
            functions: counts.functions,
            ranges: counts.ranges,
            symbols: counts.symbols,
            partial: metadata.partial.iter().fold(0, |sum: u64, partial| sum.saturating_add(partial.count)),
            cputype: metadata.arch.cputype,
            cpusubtype: metadata.arch.cpusubtype,
            format_version: u32::from(self.index.format_version()),
            has_readable_names: self.index.has_readable_names(),
        }
    }
}

//! Asks each tool in this process: opens its file and looks up one address after the other.

use std::path::Path;

use anyhow::{Result, anyhow};
use blazesym::symbolize::source::{GsymFile, Source};
use blazesym::symbolize::{CodeInfo, Input, Symbolized, Symbolizer};
use symbolic_symcache::SymCache;
use symdex::{ImageOffset, Index, LinePolicy, Scratch};

/// A frame of an answer, as the tool returns it.
#[derive(Default)]
pub struct Frame<'a> {
    pub name: Option<&'a [u8]>,
    /// The folder, if the tool stores it separately from the file.
    pub folder: Option<&'a [u8]>,
    pub file: Option<&'a [u8]>,
    pub line: Option<u32>,
}

/// A tool with its file open.
pub trait Reader: Sized {
    /// Opens `file`, which is the tool's index or the debug file. `base` is the base of the image.
    ///
    /// # Errors
    /// The tool fails.
    fn open(file: &Path, base: u64) -> Result<Self>;

    /// Calls `each` with the frames at `offset`, innermost first. It is not called if the tool has no answer.
    ///
    /// # Errors
    /// The tool fails.
    fn lookup(&mut self, offset: u64, each: &mut impl FnMut(&Frame<'_>)) -> Result<()>;

    /// Calls `each` with the frames at all of the ascending `offsets`, in order. Returns how many offsets were
    /// answered: all, or enough of them to tell the mean time of one.
    ///
    /// # Errors
    /// The tool fails.
    fn lookup_ascending(&mut self, offsets: &[u64], each: &mut impl FnMut(&Frame<'_>)) -> Result<usize> {
        let some = offsets.get(offsets.len() / 2..offsets.len() * 6 / 10).unwrap_or_default();
        some.iter().try_for_each(|offset| self.lookup(*offset, each))?;
        Ok(some.len())
    }
}

pub struct SymdexReader {
    index: Index<symdex::MappedFile>,
    scratch: Scratch,
}

impl Reader for SymdexReader {
    fn open(file: &Path, _base: u64) -> Result<Self> {
        Ok(Self { index: Index::open_file(file)?, scratch: Scratch::default() })
    }

    /// Looks up under the `exact` policy, because the peers have no other.
    fn lookup(&mut self, offset: u64, each: &mut impl FnMut(&Frame<'_>)) -> Result<()> {
        let answer = self.index.lookup(ImageOffset(offset), LinePolicy::Exact, &mut self.scratch)?;
        answer.iter().flat_map(symdex::Frames::iter).for_each(|frame| each(&symdex_frame(&frame)));
        Ok(())
    }

    fn lookup_ascending(&mut self, offsets: &[u64], each: &mut impl FnMut(&Frame<'_>)) -> Result<usize> {
        let mut failed = None;
        let all = offsets.iter().copied().map(ImageOffset);
        self.index.lookup_ascending(all, LinePolicy::Exact, |_, answer| match answer {
            Ok(frames) => {
                frames.iter().flat_map(symdex::Frames::iter).for_each(|frame| each(&symdex_frame(&frame)));
            }
            Err(error) => failed = Some(error),
        });
        failed.map_or(Ok(offsets.len()), |error| Err(error.into()))
    }
}

fn symdex_frame<'a>(frame: &symdex::Frame<'a>) -> Frame<'a> {
    Frame { name: frame.name, folder: None, file: frame.file, line: frame.line }
}

pub struct SymcacheReader(SymCache<'static>);

impl Reader for SymcacheReader {
    fn open(file: &Path, _base: u64) -> Result<Self> {
        // The cache borrows from the map and would have to lie beside it; the process ends soon.
        let bytes: &'static symdex::MappedFile = Box::leak(Box::new(symdex::map_file(file)?));
        Ok(Self(SymCache::parse(bytes)?))
    }

    fn lookup(&mut self, offset: u64, each: &mut impl FnMut(&Frame<'_>)) -> Result<()> {
        for location in self.0.lookup(offset) {
            let file = location.file().map(|file| file.full_path());
            each(&Frame {
                name: Some(location.function().name().as_bytes()),
                folder: None,
                file: file.as_ref().map(|file| file.as_bytes()),
                line: Some(location.line()),
            });
        }
        Ok(())
    }
}

pub struct GsymReader {
    symbolizer: Symbolizer,
    source: Source<'static>,
    base: u64,
}

impl Reader for GsymReader {
    fn open(file: &Path, base: u64) -> Result<Self> {
        // Checking at each lookup whether the file changed is not part of the measurement.
        let symbolizer = Symbolizer::builder()
            .enable_auto_reload(false)
            .enable_code_info(true)
            .enable_inlined_fns(true)
            .enable_demangling(false)
            .build();
        Ok(Self { symbolizer, source: GsymFile::new(file).into(), base })
    }

    fn lookup(&mut self, offset: u64, each: &mut impl FnMut(&Frame<'_>)) -> Result<()> {
        let answer = self.symbolizer.symbolize_single(&self.source, Input::VirtOffset(self.base + offset));
        let Ok(Symbolized::Sym(symbol)) = answer else { return Ok(()) };
        for inlined in symbol.inlined.iter().rev() {
            each(&gsym_frame(&inlined.name, inlined.code_info.as_ref()));
        }
        each(&gsym_frame(&symbol.name, symbol.code_info.as_deref()));
        Ok(())
    }
}

fn gsym_frame<'a>(name: &'a str, location: Option<&'a CodeInfo<'_>>) -> Frame<'a> {
    Frame {
        name: Some(name.as_bytes()),
        folder: location.and_then(|location| Some(location.dir.as_ref()?.as_os_str().as_encoded_bytes())),
        file: location.map(|location| location.file.as_encoded_bytes()),
        line: location.and_then(|location| location.line),
    }
}

pub struct Addr2lineReader {
    loader: addr2line::Loader,
    base: u64,
}

impl Reader for Addr2lineReader {
    fn open(file: &Path, base: u64) -> Result<Self> {
        let loader = addr2line::Loader::new(file).map_err(|error| anyhow!("{error}"))?;
        Ok(Self { loader, base })
    }

    /// An address at which addr2line fails has no answer. It drops whole units because of one bad sequence.
    fn lookup(&mut self, offset: u64, each: &mut impl FnMut(&Frame<'_>)) -> Result<()> {
        let svma = self.base + offset;
        let Ok(mut frames) = self.loader.find_frames(svma) else { return Ok(()) };
        let mut any = false;
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let (file, line) = frame.location.map_or((None, None), |location| (location.file, location.line));
            any |= name.is_some();
            each(&Frame {
                name: name.as_ref().map(|name| name.as_bytes()),
                folder: None,
                file: file.map(str::as_bytes),
                line,
            });
        }
        if !any && let Some(name) = self.loader.find_symbol(svma) {
            each(&Frame { name: Some(name.as_bytes()), ..Frame::default() });
        }
        Ok(())
    }
}

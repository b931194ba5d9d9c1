//! The processes that ask stores.

use std::fmt::Debug;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};
use symbolic_symcache::SymCache;
use symdex::{ImageId, ImageOffset, Index, LinePolicy, Metadata, Scratch};
use symdex_store::{Store, StoreOptions, StoredImage, StoredValues, open_store};

use super::proxy::Traffic;
use super::{Home, http};

/// A process that asks one home.
pub struct Child {
    pub home: Home,
    pub url: String,
    pub environment: Vec<(&'static str, String)>,
}

/// The time of a question in nanoseconds, and its traffic.
#[derive(Clone, Copy)]
pub struct Asked {
    pub time: f64,
    pub traffic: Traffic,
}

/// What a process is to do.
#[derive(Serialize, Deserialize)]
struct Task {
    home: Home,
    url: String,
    /// The port of the server with the symcache.
    port: Option<u16>,
    id: String,
    work: Work,
    /// The folder of the local cache.
    cache: String,
}

#[derive(Serialize, Deserialize)]
enum Work {
    /// Put this index into the store, and print its size there.
    Put(String),
    /// Ask the first addresses with nothing open, then the second. After each question, print the time and wait.
    Ask([Vec<u64>; 2]),
    /// Print the answers.
    Answers(Vec<u64>),
}

impl Child {
    /// Puts the index into the store. Returns the bytes that the store has of it.
    pub fn put(&self, index: &Path) -> Result<u64> {
        let cache = tempfile::tempdir()?;
        let path = index.to_str().context("a path that is not UTF-8")?.to_owned();
        let printed = self.run(&self.task(index, Work::Put(path), cache.path())?)?;
        Ok(serde_json::from_slice(&printed)?)
    }

    /// The answers for `offsets`, as bytes that are equal for equal answers.
    pub fn answers(&self, index: &Path, offsets: &[u64]) -> Result<Vec<u8>> {
        let cache = tempfile::tempdir()?;
        self.run(&self.task(index, Work::Answers(offsets.to_vec()), cache.path())?)
    }

    /// Asks `offsets` in a new process. `traffic` is read after each question.
    pub fn ask(
        &self,
        index: &Path,
        offsets: &[Vec<u64>; 2],
        traffic: impl Fn() -> Traffic,
    ) -> Result<[Asked; 2]> {
        let cache = tempfile::tempdir()?;
        if self.home == Home::S3Cached {
            // Another process has left the index in the cache.
            self.run(&self.task(index, Work::Answers(offsets[0].clone()), cache.path())?)?;
        }
        let task = self.task(index, Work::Ask(offsets.clone()), cache.path())?;
        let before = traffic();
        let mut child = self.command(&task)?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut input = child.stdin.take().context("a pipe")?;
        let mut lines = BufReader::new(child.stdout.take().context("a pipe")?).lines();
        let mut next = |before: Traffic| -> Result<(Asked, Traffic)> {
            let time = lines.next().with_context(|| format!("{:?}: no answer", self.home))??.parse()?;
            let now = traffic();
            Ok((Asked { time, traffic: now - before }, now))
        };
        let (cold, before) = next(before)?;
        writeln!(input)?;
        let (warm, _) = next(before)?;
        drop(input);
        ensure!(child.wait()?.success(), "{:?} failed", self.home);
        Ok([cold, warm])
    }

    fn task(&self, index: &Path, work: Work, cache: &Path) -> Result<String> {
        let id = Metadata::read_file(index)?.id.to_string();
        let endpoint = self.environment.iter().find(|(name, _)| *name == "AWS_ENDPOINT_URL");
        let port = endpoint.and_then(|(_, url)| url.rsplit(':').next()?.parse().ok());
        let cache = cache.to_str().context("a path that is not UTF-8")?.to_owned();
        Ok(serde_json::to_string(&Task { home: self.home, url: self.url.clone(), port, id, work, cache })?)
    }

    fn command(&self, task: &str) -> Result<Command> {
        let file = tempfile::NamedTempFile::new()?.into_temp_path().keep()?;
        std::fs::write(&file, task)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("ask-store").arg(file).envs(self.environment.iter().cloned());
        Ok(command)
    }

    fn run(&self, task: &str) -> Result<Vec<u8>> {
        let output = self.command(task)?.stdin(Stdio::null()).output()?;
        ensure!(
            output.status.success(),
            "{:?}: {}",
            self.home,
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(output.stdout)
    }
}

/// The work of a child process, which the file `task` describes.
///
/// # Errors
/// The store fails.
pub fn run(task: &Path) -> Result<()> {
    let text = std::fs::read(task)?;
    std::fs::remove_file(task)?;
    let task: Task = serde_json::from_slice(&text)?;
    let id: ImageId = task.id.parse().map_err(|error| anyhow!("{error}"))?;
    let mut out = std::io::stdout();
    match &task.work {
        Work::Put(path) => {
            let bytes = std::fs::read(path)?;
            let store = task.store()?;
            store.put(&Index::open(&bytes[..])?)?;
            let entry = store.stat(&id)?.context("the index that was put is not there")?;
            write!(out, "{}", entry.stored_size)?;
        }
        Work::Answers(offsets) => {
            let mut opened = task.open(&id)?;
            let mut text = Vec::new();
            let both = [LinePolicy::Statement, LinePolicy::Exact];
            opened.answer(offsets, &both, &mut |frame, _| Ok(writeln!(text, "{frame:?}")?))?;
            out.write_all(&text)?;
        }
        Work::Ask([cold, warm]) => {
            let begun = Instant::now();
            let mut opened = task.open(&id)?;
            let mut ask = |offsets: &[u64], begun: Instant| -> Result<()> {
                let mut size = 0;
                opened.answer(offsets, &[LinePolicy::Exact], &mut |_, len| {
                    size += len;
                    Ok(())
                })?;
                ensure!(size > 0, "no answer");
                writeln!(out, "{}", begun.elapsed().as_secs_f64() * 1e9)?;
                Ok(out.flush()?)
            };
            ask(cold, begun)?;
            std::io::stdin().lock().read_line(&mut String::new())?;
            ask(warm, Instant::now())?;
            std::io::stdin().lock().read_line(&mut String::new())?;
        }
    }
    Ok(())
}

/// An image that was opened.
enum Opened {
    Stored(Box<StoredImage>),
    Symcache(SymCache<'static>),
}

impl Task {
    fn store(&self) -> Result<Box<dyn Store>> {
        let options = StoreOptions::new();
        let options = match self.home {
            Home::S3 | Home::S3Cached => options.cache(&self.cache, 10 << 30),
            _ => options,
        };
        Ok(open_store(&self.url.parse()?, &options)?)
    }

    fn open(&self, id: &ImageId) -> Result<Opened> {
        if self.home == Home::Symcache {
            let port = self.port.context("no port")?;
            // The symcache borrows from the bytes. The process ends soon.
            let bytes: &'static [u8] = Box::leak(http::get(port, self.home.object())?.into_boxed_slice());
            return Ok(Opened::Symcache(SymCache::parse(bytes)?));
        }
        let image = self.store()?.open(id)?.context("the store does not have the index")?;
        Ok(Opened::Stored(Box::new(image)))
    }
}

/// Takes a frame, and how many bytes its strings have.
type Each<'e> = &'e mut dyn FnMut(&dyn Debug, usize) -> Result<()>;

impl Opened {
    /// Calls `each` with each frame at each of `offsets`. A symcache has no line policies.
    fn answer(&mut self, offsets: &[u64], policies: &[LinePolicy], each: Each<'_>) -> Result<()> {
        match self {
            Self::Symcache(cache) => {
                for location in offsets.iter().flat_map(|offset| cache.lookup(*offset)) {
                    let file = location.file().map(|file| file.full_path());
                    let (name, line) = (location.function().name(), location.line());
                    let len = name.len() + file.as_ref().map_or(0, String::len);
                    each(&(name, file, line), len)?;
                }
                Ok(())
            }
            Self::Stored(image) => match &**image {
                StoredImage::Index(index) => answer(index, offsets, policies, each),
                StoredImage::Values(values) => answer_from_values(&**values, offsets, policies, each),
            },
        }
    }
}

/// Fetches the values for `offsets` at once, and answers each from its value.
fn answer_from_values(
    values: &dyn StoredValues,
    offsets: &[u64],
    policies: &[LinePolicy],
    each: Each<'_>,
) -> Result<()> {
    let number = |offset: &u64| values.metadata().value_number(ImageOffset(*offset));
    let mut numbers: Vec<_> = offsets.iter().map(number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let fetched = values.fetch(&numbers)?;
    for offset in offsets {
        let at = numbers.binary_search(&number(offset)).map_err(|_| anyhow!("no value"))?;
        let Some(value) = fetched[at].found() else { bail!("a value was lost") };
        answer(value, std::slice::from_ref(offset), policies, each)?;
    }
    Ok(())
}

fn answer<B: AsRef<[u8]>>(
    index: &Index<B>,
    offsets: &[u64],
    policies: &[LinePolicy],
    each: Each<'_>,
) -> Result<()> {
    let mut scratch = Scratch::default();
    for offset in offsets {
        for policy in policies {
            let frames = index.lookup(ImageOffset(*offset), *policy, &mut scratch)?;
            for frame in frames.iter().flat_map(symdex::Frames::iter) {
                let len = [frame.name, frame.file].into_iter().flatten().map(<[u8]>::len).sum();
                each(&(offset, policy, &frame), len)?;
            }
        }
    }
    Ok(())
}

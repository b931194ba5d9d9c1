//! Measures lookups in one process: their time and the memory they take. Every answer is checked while it is timed.

use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::answers::{self, Digest, Summary};
use crate::cost::{median, memory};
use crate::questions::Questions;
use crate::readers::Reader;
use crate::report::{LookupFigures, Percentiles};

/// Passes over all questions of one kind.
const PASSES: usize = 3;
/// Ascending addresses.
const ASCENDING: u64 = 10_000_000;
/// The number of cold first answers, and of cold crash reports.
const COLD: usize = 50;
const REPORTS: usize = 20;

/// The work of a child process: asks one tool, whose index or debug file is `file`, and writes its answers to the
/// uniform questions to `to`. Answers that change between passes are counted.
///
/// # Errors
/// The tool fails.
pub fn run<R: Reader>(file: &Path, questions: &Questions, to: &Path) -> Result<LookupFigures> {
    let (mut reader, anonymous, rss) = held(|| {
        let mut reader = R::open(file, questions.base)?;
        questions.uniform.iter().try_for_each(|offset| digest(&mut reader, *offset).map(drop))?;
        Ok(reader)
    })?;
    let summaries = questions.uniform.iter().map(|offset| summary(&mut reader, *offset));
    answers::write(to, &summaries.collect::<Result<Vec<_>>>()?)?;
    let mut wrong = 0;
    let uniform = Expected::of(&mut reader, &questions.uniform)?.warm(&mut reader, &mut wrong)?;
    let zipf = Expected::of(&mut reader, &questions.zipf)?.warm(&mut reader, &mut wrong)?;
    let first = Expected::of(&mut reader, &questions.uniform[..COLD.min(questions.uniform.len())])?;
    let report = Expected::of(&mut reader, &questions.report)?;
    drop(reader);
    let firsts = first.pairs().map(|pair| cold::<R>(file, questions.base, &[pair], &mut wrong));
    let cold_first = median(firsts.collect::<Result<Vec<_>>>()?).context("no questions")?;
    let frames: Vec<_> = report.pairs().collect();
    let reports = (0..REPORTS).map(|_| cold::<R>(file, questions.base, &frames, &mut wrong));
    let cold_report = median(reports.collect::<Result<Vec<_>>>()?).context("no reports")?;
    let fresh = fresh::<R>(file, questions, &mut wrong)?;
    let ascending = ascending::<R>(file, questions)?;
    let threads = two_threads::<R>(file, questions)?;
    Ok(LookupFigures {
        uniform,
        zipf,
        fresh,
        ascending,
        uniform_two_threads: threads,
        cold_first,
        cold_report,
        held_anonymous: anonymous,
        held_rss: rss,
        wrong,
    })
}

/// Calls `make`. Returns its result, and by how many bytes the anonymous and the resident memory of this process grew.
fn held<T>(make: impl FnOnce() -> Result<T>) -> Result<(T, Option<u64>, Option<u64>)> {
    let status = PathBuf::from("/proc/self/status");
    let now = || ["RssAnon", "VmRSS"].map(|field| memory(&status, field));
    let before = now();
    let made = make()?;
    let after = now();
    let grown = |field: usize| Some(after[field]?.saturating_sub(before[field]?));
    Ok((made, grown(0), grown(1)))
}

fn digest<R: Reader>(reader: &mut R, offset: u64) -> Result<Digest> {
    let mut digest = Digest::default();
    reader.lookup(offset, &mut |frame| digest.add(frame))?;
    Ok(digest)
}

fn summary<R: Reader>(reader: &mut R, offset: u64) -> Result<Summary> {
    let mut summary = Summary::default();
    reader.lookup(offset, &mut |frame| summary.add(frame))?;
    Ok(summary)
}

/// Questions with the answers that the tool gave before.
struct Expected<'q> {
    offsets: &'q [u64],
    digests: Vec<Digest>,
}

impl<'q> Expected<'q> {
    fn of<R: Reader>(reader: &mut R, offsets: &'q [u64]) -> Result<Self> {
        let digests = offsets.iter().map(|offset| digest(reader, *offset)).collect::<Result<_>>()?;
        Ok(Self { offsets, digests })
    }

    fn pairs(&self) -> impl Iterator<Item = (u64, Digest)> {
        self.offsets.iter().copied().zip(self.digests.iter().copied())
    }

    /// Asks all questions once. Counts changed answers in `wrong` and returns the time of the pass.
    fn pass<R: Reader>(&self, reader: &mut R, wrong: &mut u64) -> Result<Duration> {
        let begun = Instant::now();
        for (offset, expected) in self.pairs() {
            *wrong += u64::from(digest(reader, offset)? != expected);
        }
        Ok(begun.elapsed())
    }

    /// Nanoseconds per lookup: the mean of passes without a clock between lookups, and percentiles of a pass with one.
    fn warm<R: Reader>(&self, reader: &mut R, wrong: &mut u64) -> Result<Percentiles> {
        let passes = (0..PASSES).map(|_| self.pass(reader, wrong)).collect::<Result<Vec<_>>>()?;
        let mut each = Vec::with_capacity(self.offsets.len());
        for (offset, expected) in self.pairs() {
            let begun = Instant::now();
            let answer = digest(reader, offset)?;
            each.push(nanoseconds(begun.elapsed()));
            *wrong += u64::from(answer != expected);
        }
        each.sort_by(f64::total_cmp);
        let at = |percent: usize| each.get(each.len() * percent / 100).copied().unwrap_or_default();
        let pass = median(passes).context("no pass")?;
        Ok(Percentiles { mean: nanoseconds(pass) / self.offsets.len() as f64, p50: at(50), p99: at(99) })
    }
}

/// Nanoseconds to open the tool's file, which is in the page cache, and to answer the questions.
fn cold<R: Reader>(file: &Path, base: u64, questions: &[(u64, Digest)], wrong: &mut u64) -> Result<f64> {
    let begun = Instant::now();
    let mut reader = R::open(file, base)?;
    for (offset, expected) in questions {
        *wrong += u64::from(digest(&mut reader, *offset)? != *expected);
    }
    Ok(nanoseconds(begun.elapsed()))
}

/// Nanoseconds per lookup of an address that the reader was never asked for. The reader has answered all uniform
/// questions before, so that its caches can help with related code. A second reader provides the expected answers.
fn fresh<R: Reader>(file: &Path, questions: &Questions, wrong: &mut u64) -> Result<Option<f64>> {
    let expected = Expected::of(&mut R::open(file, questions.base)?, &questions.fresh)?;
    let mut reader = R::open(file, questions.base)?;
    questions.uniform.iter().try_for_each(|offset| digest(&mut reader, *offset).map(drop))?;
    let time = expected.pass(&mut reader, wrong)?;
    Ok((!questions.fresh.is_empty()).then(|| nanoseconds(time) / questions.fresh.len() as f64))
}

/// Ascending addresses, evenly spread over the functions that are asked for.
///
/// # Errors
/// There are no questions.
pub fn ascending_offsets(questions: &Questions) -> Result<impl Iterator<Item = u64> + use<>> {
    let (first, last) = (questions.uniform.iter().min(), questions.uniform.iter().max());
    let (first, last) = first.copied().zip(last.copied()).context("no questions")?;
    // Images have less than 4 GiB of code.
    Ok((0..ASCENDING).map(move |number| first + (last - first) * number / ASCENDING))
}

/// Nanoseconds per lookup of ascending addresses, evenly spread over the functions that are asked for.
fn ascending<R: Reader>(file: &Path, questions: &Questions) -> Result<f64> {
    let offsets: Vec<u64> = ascending_offsets(questions)?.collect();
    let mut reader = R::open(file, questions.base)?;
    let begun = Instant::now();
    let mut digest = Digest::default();
    let answered = reader.lookup_ascending(&offsets, &mut |frame| digest.add(frame))?;
    let time = nanoseconds(begun.elapsed());
    std::hint::black_box(digest);
    Ok(time / answered as f64)
}

/// Nanoseconds per lookup if two threads share the uniform questions, each with a warm reader: the time until both are
/// done, divided by the number of lookups.
fn two_threads<R: Reader>(file: &Path, questions: &Questions) -> Result<f64> {
    let halves = questions.uniform.split_at(questions.uniform.len() / 2);
    let together = Barrier::new(2);
    let half = |offsets| -> Result<Duration> {
        let ready = R::open(file, questions.base)
            .and_then(|mut reader| Expected::of(&mut reader, offsets).map(|expected| (reader, expected)));
        together.wait();
        let (mut reader, expected) = ready?;
        let mut wrong = 0;
        let time = expected.pass(&mut reader, &mut wrong)?;
        ensure!(wrong == 0, "{wrong} answers changed in one of two threads");
        Ok(time)
    };
    let times = std::thread::scope(|threads| {
        let other = threads.spawn(|| half(halves.1));
        let own = half(halves.0);
        [own, other.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a thread panicked")))]
    });
    let times = times.into_iter().collect::<Result<Vec<_>>>()?;
    let last = times.into_iter().max().unwrap_or_default();
    Ok(nanoseconds(last) / questions.uniform.len() as f64)
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

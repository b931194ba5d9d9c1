//! Prints how much memory a report takes: `memory REPORT INDEX`. The report is read, symbolicated with the index for
//! every image, and written, as `symdex symbolicate` does for a large report. The figure is the peak of the process in
//! MB, as Linux states it.

use std::fs;
use std::io;

use symdex::{Index, Scratch};
use symdex_report::{Options, Question, Report, answer_from_index, formats, symbolicate};

/// Counts the bytes that are written.
#[derive(Default)]
struct Count(u64);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(report), Some(index)) = (arguments.next(), arguments.next()) else {
        return Err(format!("usage: memory REPORT INDEX, for one of {} formats", formats().len()).into());
    };
    let (index, mut scratch) = (Index::open(fs::read(index)?)?, Scratch::default());
    // One index for all images.
    let mut source = |question: &Question<'_>| {
        let mut image = question.image.clone();
        image.arch = None;
        let question = Question::new(&image, question.offsets, question.lines);
        Ok(answer_from_index(&index, &question, &mut scratch)?.into())
    };
    let before = peak();
    let text = fs::read(report)?;
    let report = Report::parse(&text)?;
    let parsed = peak();
    let symbolicated = symbolicate(&report, &mut source, &Options::new());
    let answered = peak();
    let mut out = Count::default();
    symbolicated.write(&mut out)?;
    let frames: usize = report.threads().iter().map(|thread| thread.frames.len()).sum();
    let size = text.len() as f64;
    println!(
        "{:<24} {:.2} x  before {before:.0} MB, read {parsed:.0}, answered {answered:.0}, written {:.0}; {frames} \
         frames, {} not read, {} bytes written",
        report.format_name(),
        peak() * 1e6 / size,
        peak(),
        report.unread_frames(),
        out.0
    );
    Ok(())
}

/// The most memory that the process has had, in MB; 0 on systems without `/proc`.
fn peak() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kilobytes.unwrap_or_default() * 1024.0 / 1e6
}

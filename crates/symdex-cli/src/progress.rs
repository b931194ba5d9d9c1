//! Progress of work that takes long: a bar on a terminal, lines elsewhere.

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::failure::note;
use crate::text;

/// Work shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often a line is printed if standard error is no terminal, as in the log of a build pipeline.
const LINE_EVERY: Duration = Duration::from_secs(30);
/// How often the bar moves while no progress is reported. One compile unit may take long.
const TICK: Duration = Duration::from_millis(200);

/// The progress of the work on all images, in bytes of debug files or of stored indexes.
pub(crate) struct Progress {
    bar: Bar,
    /// The thread that shows the bar or prints lines, and the channel that tells it that the work has ended.
    shows: Option<(Sender<()>, JoinHandle<()>)>,
}

/// The bar of a [`Progress`]. Threads that may outlive the progress have copies of it.
#[derive(Clone)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Adds work on `size` bytes.
    pub(crate) fn add(&self, size: u64) {
        self.0.inc_length(size);
    }

    /// `size` more bytes are done.
    pub(crate) fn done(&self, size: u64) {
        self.0.inc(size);
    }

    /// The progress of one image, whose file counts for `size` bytes.
    pub(crate) fn of_image(&self, size: u64) -> ImageProgress {
        ImageProgress { all: self.clone(), size, counted: AtomicU64::new(0) }
    }

    /// Hides the bar while `print` writes to the terminal.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }
}

impl Progress {
    /// The progress of work on `size` bytes.
    pub(crate) fn new(size: u64) -> Self {
        if io::stderr().is_terminal() {
            Self::drawn_on(size, ProgressDrawTarget::stderr, PATIENCE)
        } else {
            Self::printed(size, note, LINE_EVERY)
        }
    }

    /// The progress of work of unknown size, which is not shown if `is_quiet`.
    pub(crate) fn unless(is_quiet: bool) -> Self {
        if is_quiet { Self { bar: Bar(ProgressBar::hidden()), shows: None } } else { Self::new(0) }
    }

    /// Prints a line now and then.
    fn printed(size: u64, print: impl Fn(&str) + Send + 'static, every: Duration) -> Self {
        Self::shown(size, move |bar, is_done| {
            while is_done.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let (done, size) = (bar.position(), bar.length().unwrap_or(size));
                // A command that asks a server has nothing to read yet.
                if size == 0 {
                    continue;
                }
                let percent = done.saturating_mul(100) / size.max(1);
                let left = left(done, size, bar.eta());
                print(&format!("progress: {} % of {}, {left}", percent.min(100), text::size(size)));
            }
        })
    }

    fn drawn_on(
        size: u64,
        target: impl FnOnce() -> ProgressDrawTarget + Send + 'static,
        after: Duration,
    ) -> Self {
        let style =
            ProgressStyle::with_template("{spinner} {wide_bar} {percent} % of {decimal_total_bytes}, {left}");
        Self::shown(size, move |bar, is_done| {
            if let Ok(style) = style {
                bar.set_style(style.with_key(
                    "left",
                    move |state: &ProgressState, out: &mut dyn fmt::Write| {
                        // Writing to a string does not fail.
                        let _ = out.write_str(&left(state.pos(), state.len().unwrap_or(size), state.eta()));
                    },
                ));
            }
            // Shows the bar unless the work ends first.
            if is_done.recv_timeout(after) == Err(RecvTimeoutError::Timeout) {
                bar.set_draw_target(target());
                bar.enable_steady_tick(TICK);
            }
        })
    }

    /// Calls `show` on a thread, with what tells it that the work has ended.
    fn shown(size: u64, show: impl FnOnce(&ProgressBar, &Receiver<()>) + Send + 'static) -> Self {
        let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::hidden());
        let (done, is_done) = mpsc::channel();
        let shown = bar.clone();
        // Without a thread, the work goes on and nothing is shown.
        let thread = thread::Builder::new().spawn(move || show(&shown, &is_done)).ok();
        Self { bar: Bar(bar), shows: thread.map(|thread| (done, thread)) }
    }

    /// Adds work on `size` bytes.
    pub(crate) fn add(&self, size: u64) {
        self.bar.add(size);
    }

    /// The bar.
    pub(crate) fn bar(&self) -> &Bar {
        &self.bar
    }

    /// The progress of one image, whose file counts for `size` bytes.
    pub(crate) fn of_image(&self, size: u64) -> ImageProgress {
        self.bar.of_image(size)
    }

    /// Hides the bar while `print` writes to the terminal.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

/// The remaining work, as text.
fn left(done: u64, all: u64, time: Duration) -> String {
    match done {
        0 => "starting".to_owned(),
        // After all units are read, names are compressed.
        _ if done >= all => "finishing".to_owned(),
        _ => format!("{} s left", time.as_secs()),
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((done, thread)) = self.shows.take() {
            // Fails if the bar was shown and its thread has ended.
            let _ = done.send(());
            let _ = thread.join();
        }
        self.bar.0.finish_and_clear();
    }
}

/// The share of one image in the progress.
pub(crate) struct ImageProgress {
    all: Bar,
    size: u64,
    counted: AtomicU64,
}

impl ImageProgress {
    /// Sets the progress to `done` of `total`. Calls may come from any thread, in any order.
    pub(crate) fn set(&self, done: u64, total: u64) {
        let part = u128::from(self.size) * u128::from(done.min(total)) / u128::from(total.max(1));
        let bytes = u64::try_from(part).unwrap_or(self.size);
        let before = self.counted.fetch_max(bytes, Ordering::Relaxed);
        self.all.done(bytes.saturating_sub(before));
    }
}

impl Drop for ImageProgress {
    fn drop(&mut self) {
        self.set(1, 1);
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use indicatif::TermLike;

    use super::*;

    /// A terminal that sends its output to a channel.
    #[derive(Debug)]
    struct Terminal(Sender<String>);

    impl TermLike for Terminal {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            // Fails after the end of the test.
            let _ = self.0.send(text.to_owned());
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_bar_moves_before_any_work_is_reported() {
        let (written, texts) = mpsc::channel();
        let terminal = || ProgressDrawTarget::term_like(Box::new(Terminal(written)));
        let progress = Progress::drawn_on(1000, terminal, Duration::ZERO);
        // The first character changes with time, although no work is done.
        let mut frames = texts.iter().filter(|text| text.contains("0 % of 1.00 kB, starting"));
        let first = frames.next().expect("drawn");
        assert!(frames.any(|frame| frame != first));
        progress.of_image(500).set(1, 2);
        drop(progress);
    }

    #[test]
    fn without_a_terminal_lines_say_how_far_the_work_is() {
        let (written, lines) = mpsc::channel();
        let print = move |line: &str| _ = written.send(line.to_owned());
        let progress = Progress::printed(1000, print, Duration::from_millis(1));
        assert!(lines.iter().any(|line| line == "progress: 0 % of 1.0 kB, starting"));
        progress.of_image(500).set(1, 1);
        assert!(lines.iter().any(|line| line.starts_with("progress: 50 % of 1.0 kB, ")));
        drop(progress);
        assert_eq!(lines.iter().last(), None);
    }

    #[test]
    fn the_bar_appears_within_a_second() {
        let (written, texts) = mpsc::channel();
        let terminal = || ProgressDrawTarget::term_like(Box::new(Terminal(written)));
        let progress = Progress::drawn_on(1000, terminal, PATIENCE);
        let begun = std::time::Instant::now();
        texts.recv().expect("drawn");
        assert!(begun.elapsed() < Duration::from_secs(1));
        drop(progress);
    }

    #[test]
    fn the_bar_shows_the_start_the_end_and_the_time_between() {
        let time = Duration::from_millis(4700);
        assert_eq!([0, 1, 10].map(|done| left(done, 10, time)), ["starting", "4 s left", "finishing"]);
    }
}

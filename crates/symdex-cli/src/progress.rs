//! A progress bar, on a terminal, for work that takes more than half a second.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Work shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the bar moves while no progress is reported. One compile unit may take long.
const TICK: Duration = Duration::from_millis(200);

/// The progress of the work on all images, in bytes of debug files or of stored indexes.
pub(crate) struct Progress {
    bar: Bar,
    /// The thread that shows the bar, and the channel that tells it that the work has ended.
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
        // Draws only if standard error is a terminal.
        Self::drawn_on(size, ProgressDrawTarget::stderr, PATIENCE)
    }

    /// Progress that is never shown.
    pub(crate) fn hidden() -> Self {
        Self { bar: Bar(ProgressBar::hidden()), shows: None }
    }

    fn drawn_on(
        size: u64,
        target: impl FnOnce() -> ProgressDrawTarget + Send + 'static,
        after: Duration,
    ) -> Self {
        let style =
            ProgressStyle::with_template("{spinner} {wide_bar} {percent} % of {decimal_total_bytes}, {left}");
        let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::hidden());
        if let Ok(style) = style {
            bar.set_style(style.with_key("left", move |state: &ProgressState, out: &mut dyn fmt::Write| {
                // Writing to a string does not fail.
                let _ = out.write_str(&left(state.pos(), state.len().unwrap_or(size), state.eta()));
            }));
        }
        let (done, is_done) = mpsc::channel();
        let shown = bar.clone();
        // Shows the bar unless the work ends first.
        let show = move || {
            if is_done.recv_timeout(after) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(target());
                shown.enable_steady_tick(TICK);
            }
        };
        // Without a thread, the work goes on and there is no bar.
        let thread = thread::Builder::new().spawn(show).ok();
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

//! A progress bar, on a terminal, for work that takes more than a second.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// How far the work on all images together has come, in bytes of debug files.
pub(crate) struct Progress {
    bar: ProgressBar,
    begun: Instant,
}

impl Progress {
    /// Progress of work on debug files of `size` bytes together.
    pub(crate) fn new(size: u64) -> Self {
        let style =
            ProgressStyle::with_template("{wide_bar} {percent} % of {decimal_total_bytes}, {eta} left");
        let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::hidden());
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self { bar, begun: Instant::now() }
    }

    /// Progress of one image, whose debug file counts for `size` bytes.
    pub(crate) fn of_image(&self, size: u64) -> ImageProgress<'_> {
        ImageProgress { all: self, size, counted: AtomicU64::new(0) }
    }

    fn advance(&self, bytes: u64) {
        if self.bar.is_hidden() && self.begun.elapsed() > PATIENCE {
            // Draws only where standard error is a terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(bytes);
    }

    /// Lets `print` write to the terminal without the bar in its way.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The share of one image in the progress.
pub(crate) struct ImageProgress<'p> {
    all: &'p Progress,
    size: u64,
    counted: AtomicU64,
}

impl ImageProgress<'_> {
    /// Takes note that `done` of `total` is done; from any thread, in any order.
    pub(crate) fn set(&self, done: u64, total: u64) {
        let part = u128::from(self.size) * u128::from(done.min(total)) / u128::from(total.max(1));
        let bytes = u64::try_from(part).unwrap_or(self.size);
        let before = self.counted.fetch_max(bytes, Ordering::Relaxed);
        self.all.advance(bytes.saturating_sub(before));
    }
}

impl Drop for ImageProgress<'_> {
    fn drop(&mut self) {
        self.set(1, 1);
    }
}

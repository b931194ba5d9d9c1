//! `cargo xtask scale`: the keys, bytes, round trips and cost of a fleet that keeps indexes in Redis or in an object
//! store.
//!
//! The sizes are measured on the indexes that are given. The reads come from a simulation of one reading server: its
//! reports name images by Zipf's law, and functions of an image by Zipf's law.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use self::measure::MeasuredIndex;

mod fleet;
mod measure;
mod missing;
mod report;
mod server;

/// The arguments of `cargo xtask scale`.
pub(crate) struct Arguments {
    fleet: Fleet,
    indexes: Vec<PathBuf>,
}

/// What is simulated.
#[derive(Clone, Debug)]
struct Fleet {
    /// Images that have an index in the store.
    images: u64,
    /// New images a day.
    uploads_per_day: u64,
    /// Reports a second, of all servers together.
    reports_per_second: f64,
    /// Images of a report that have an index in the store.
    images_per_report: usize,
    /// Frames of a report in these images.
    frames_per_report: usize,
    /// Images of a report that have no index.
    missing_per_report: u64,
    /// Reading servers. Each gets the same share of the reports, at random.
    servers: u64,
    /// Memory of a server for values of Redis, in bytes.
    memory: u64,
    /// Disk of a server for indexes of an object store, in bytes.
    disk: u64,
    /// Days without a read after which an image expires.
    ttl_days: f64,
    /// The exponent of Zipf's law for images.
    image_exponent: f64,
    /// The exponent of Zipf's law for the functions of an image.
    function_exponent: f64,
    /// Reports that the simulation counts, after as many that only fill the caches.
    reports: u64,
}

impl Default for Fleet {
    fn default() -> Self {
        Self {
            images: 300_000,
            uploads_per_day: 5_000,
            reports_per_second: 1_000.0,
            images_per_report: 4,
            frames_per_report: 60,
            missing_per_report: 500,
            servers: 8,
            memory: 4_000_000_000,
            disk: 100_000_000_000,
            ttl_days: 45.0,
            image_exponent: 1.0,
            function_exponent: 1.0,
            reports: 400_000,
        }
    }
}

impl Arguments {
    /// Parses the words after `scale`. Returns `None` if they are invalid.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let mut arguments = Self { fleet: Fleet::default(), indexes: Vec::new() };
        let fleet = &mut arguments.fleet;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if !word.starts_with("--") {
                arguments.indexes.push(word.into());
                continue;
            }
            let number = words.next()?;
            match *word {
                "--images" => fleet.images = number.parse().ok()?,
                "--uploads-per-day" => fleet.uploads_per_day = number.parse().ok()?,
                "--reports-per-second" => fleet.reports_per_second = number.parse().ok()?,
                "--images-per-report" => fleet.images_per_report = number.parse().ok()?,
                "--missing-per-report" => fleet.missing_per_report = number.parse().ok()?,
                "--frames-per-report" => fleet.frames_per_report = number.parse().ok()?,
                "--servers" => fleet.servers = number.parse().ok()?,
                "--memory-gb" => fleet.memory = number.parse::<u64>().ok()?.checked_mul(1_000_000_000)?,
                "--disk-gb" => fleet.disk = number.parse::<u64>().ok()?.checked_mul(1_000_000_000)?,
                "--ttl-days" => fleet.ttl_days = number.parse().ok()?,
                "--image-exponent" => fleet.image_exponent = number.parse().ok()?,
                "--function-exponent" => fleet.function_exponent = number.parse().ok()?,
                "--reports" => fleet.reports = number.parse().ok()?,
                _ => return None,
            }
        }
        (!arguments.indexes.is_empty()).then_some(arguments)
    }
}

/// Measures the indexes, simulates a server and prints the tables of docs/SCALE.md.
///
/// # Errors
/// An index cannot be read, or a number makes no sense.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let fleet = &arguments.fleet;
    ensure!(fleet.images > 0 && fleet.servers > 0 && fleet.reports > 0, "a count is 0");
    ensure!(
        fleet.images_per_report > 0 && fleet.frames_per_report > 0,
        "a report without frames reads nothing"
    );
    ensure!(fleet.reports_per_second > 0.0 && fleet.ttl_days > 0.0, "a rate or a time is not positive");
    ensure!(fleet.image_exponent >= 0.0 && fleet.function_exponent >= 0.0, "an exponent is negative");
    let measured =
        arguments.indexes.iter().map(|path| MeasuredIndex::of(path)).collect::<Result<Vec<_>>>()?;
    let reads = server::simulate(fleet, &measured)?;
    print!("{}", report::render(fleet, &measured, &fleet::Kept::of(fleet, &measured), &reads)?);
    Ok(())
}

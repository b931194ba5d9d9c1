//! Prints the figures of a fleet as the tables of docs/SCALE.md.

use std::fmt::{self, Write as _};

use super::Fleet;
use super::fleet::Kept;
use super::measure::MeasuredIndex;
use super::missing::Missing;
use super::server::Reads;

const SECONDS_PER_MONTH: f64 = 30.0 * 86_400.0;
const GB: f64 = 1e9;

/// Prices in US dollars, near the list prices of large providers in 2026. docs/SCALE.md states them.
struct Prices {
    /// A GB of memory in a managed Redis, for a month.
    memory_gb: f64,
    /// A GB in an object store, for a month.
    object_gb: f64,
    /// 1,000 reads of an object.
    gets: f64,
    /// 1,000 writes of an object, or 1,000 pages of lists.
    puts: f64,
    /// A GB of local disk, for a month.
    disk_gb: f64,
}

const PRICES: Prices = Prices { memory_gb: 9.0, object_gb: 0.023, gets: 0.0004, puts: 0.005, disk_gb: 0.08 };

/// Returns the tables as Markdown.
///
/// # Errors
/// Formatting fails. Formatting into a string does not fail.
pub(crate) fn render(
    fleet: &Fleet,
    measured: &[MeasuredIndex],
    kept: &Kept,
    reads: &Reads,
) -> Result<String, fmt::Error> {
    let mut text = String::new();
    sizes(&mut text, measured)?;
    redis(&mut text, fleet, kept, reads)?;
    objects(&mut text, fleet, kept, reads)?;
    missing(&mut text, fleet)?;
    Ok(text)
}

fn sizes(text: &mut String, measured: &[MeasuredIndex]) -> fmt::Result {
    writeln!(text, "| index | functions | file | object | values | mean value | all values |")?;
    writeln!(text, "| --- | ---: | ---: | ---: | ---: | ---: | ---: |")?;
    for index in measured {
        let (stored, values) = (index.stored_size(), index.values.len() as u64);
        writeln!(
            text,
            "| {} | {} | {} kB | {} kB | {values} | {} kB | {} kB |",
            index.name,
            index.functions,
            index.index_size / 1000,
            index.object_size / 1000,
            stored / values / 1000,
            stored / 1000
        )?;
    }
    writeln!(text)
}

fn redis(text: &mut String, fleet: &Fleet, kept: &Kept, reads: &Reads) -> fmt::Result {
    let per_report = |count: u64| count as f64 / reads.reports as f64;
    let per_second = |count: u64| per_report(count) * fleet.reports_per_second;
    row(text, "Redis", "")?;
    row(text, "---", "---:")?;
    row(text, "images that did not expire", &format!("{:.0}", kept.images))?;
    row(text, "keys, million", &format!("{:.1}", kept.redis_keys / 1e6))?;
    row(text, "memory of values", &format!("{:.0} GB", kept.redis_values / GB))?;
    row(text, "memory, one copy", &format!("{:.0} GB", kept.redis_memory / GB))?;
    row(text, "renewals a second", &format!("{:.2}", kept.renewals_per_second))?;
    row(text, "values a report needs", &format!("{:.1}", per_report(reads.values)))?;
    row(text, "of them read from Redis", &format!("{:.1}", per_report(reads.values_read)))?;
    row(text, "kB a report reads", &format!("{:.0}", per_report(reads.bytes_read) / 1e3))?;
    row(text, "round trips of a report", &format!("{:.2}", per_report(reads.round_trips)))?;
    row(text, "reports that read nothing", &percent(reads.reports_from_memory, reads.reports))?;
    row(text, "values a second, all servers", &format!("{:.0}", per_second(reads.values_read)))?;
    row(text, "network, all servers", &format!("{:.0} MB/s", per_second(reads.bytes_read) / 1e6))?;
    let cost = 2.0 * kept.redis_memory / GB * PRICES.memory_gb;
    row(text, "a month, with one replica", &format!("{cost:.0} USD"))?;
    writeln!(text)
}

fn objects(text: &mut String, fleet: &Fleet, kept: &Kept, reads: &Reads) -> fmt::Result {
    let per_report = |count: u64| count as f64 / reads.reports as f64;
    let per_second = |count: u64| per_report(count) * fleet.reports_per_second;
    row(text, "object store and local caches", "")?;
    row(text, "---", "---:")?;
    row(text, "objects", &format!("{:.0}", kept.images))?;
    row(text, "bytes of objects", &format!("{:.0} GB", kept.object_bytes / GB))?;
    row(text, "images a report needs", &format!("{:.1}", per_report(reads.images)))?;
    let found = reads.images - reads.objects_read;
    row(text, "of them in the local cache", &percent(found, reads.images))?;
    row(text, "objects read a second, all servers", &format!("{:.0}", per_second(reads.objects_read)))?;
    row(text, "network, all servers", &format!("{:.0} MB/s", per_second(reads.object_bytes_read) / 1e6))?;
    let gets = per_second(reads.objects_read) * SECONDS_PER_MONTH / 1e3 * PRICES.gets;
    let puts = fleet.uploads_per_day as f64 * 30.0 / 1e3 * PRICES.puts;
    let disk = fleet.servers as f64 * fleet.disk as f64 / GB * PRICES.disk_gb;
    let cost = kept.object_bytes / GB * PRICES.object_gb + gets + puts + disk;
    row(text, "a month, with the disks of the caches", &format!("{cost:.0} USD"))
}

fn missing(text: &mut String, fleet: &Fleet) -> fmt::Result {
    let cost = |requests: f64, price: f64| requests * SECONDS_PER_MONTH / 1e3 * price;
    writeln!(text)?;
    writeln!(text, "| distinct missing images | GETs a second | a month | pages a second | a month |")?;
    writeln!(text, "| ---: | ---: | ---: | ---: | ---: |")?;
    for distinct in [2_000, 20_000, 200_000] {
        let Missing { gets, pages } = Missing::of(fleet, distinct);
        write!(text, "| {distinct} | {gets:.0} | {:.0} USD |", cost(gets, PRICES.gets))?;
        match pages {
            Some(pages) => writeln!(text, " {pages:.0} | {:.0} USD |", cost(pages, PRICES.puts))?,
            None => writeln!(text, " not listed | |")?,
        }
    }
    Ok(())
}

fn row(text: &mut String, what: &str, figure: &str) -> fmt::Result {
    writeln!(text, "| {what} | {figure} |")
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

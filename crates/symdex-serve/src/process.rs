//! What the process takes from its machine, in the names that clients of Prometheus share. Only Linux states it.

#[cfg(not(target_os = "linux"))]
use prometheus_client::registry::Registry;

/// The metrics of the process now.
#[cfg(not(target_os = "linux"))]
pub(crate) fn registry() -> Registry {
    Registry::default()
}

#[cfg(target_os = "linux")]
pub(crate) use self::linux::registry;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::time::UNIX_EPOCH;

    use prometheus_client::metrics::counter::ConstCounter;
    use prometheus_client::metrics::gauge::ConstGauge;
    use prometheus_client::registry::{Registry, Unit};
    use rustix::process::{Resource, getrlimit};
    use rustix::time::{ClockId, clock_gettime};

    pub(crate) fn registry() -> Registry {
        let mut registry = Registry::default();
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let seconds = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
        let help = "CPU time of the process, without its children";
        registry.register_with_unit("process_cpu", help, Unit::Seconds, ConstCounter::new(seconds));

        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let number = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name))?;
            value.split_ascii_whitespace().next()?.parse::<i64>().ok()
        };
        if let Some(kibibytes) = number("VmRSS:") {
            let (help, bytes) = ("Memory of the process in RAM", ConstGauge::new(kibibytes * 1024));
            registry.register_with_unit("process_resident_memory", help, Unit::Bytes, bytes);
        }
        if let Some(threads) = number("Threads:") {
            registry.register("process_threads", "Threads of the process", ConstGauge::new(threads));
        }

        // One of them is that of this list.
        let open = fs::read_dir("/proc/self/fd").map_or(0, |files| files.count().saturating_sub(1));
        let as_gauge = |number: u64| ConstGauge::new(i64::try_from(number).unwrap_or(i64::MAX));
        registry.register("process_open_fds", "Open files of the process", as_gauge(open as u64));
        if let Some(max) = getrlimit(Resource::Nofile).current {
            registry.register("process_max_fds", "How many files the process may open", as_gauge(max));
        }
        // The folder is made when the process starts.
        let started = fs::metadata("/proc/self").and_then(|folder| folder.modified());
        if let Some(since) = started.ok().and_then(|started| started.duration_since(UNIX_EPOCH).ok()) {
            let help = "When the process was started, since 1970";
            let seconds = ConstGauge::new(since.as_secs_f64());
            registry.register_with_unit("process_start_time", help, Unit::Seconds, seconds);
        }
        registry
    }
}

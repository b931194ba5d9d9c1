//! Limits of resources.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::Protections;
use crate::isolate::limits::{Limits, OPEN_FILES};

pub(super) fn limit(limits: &Limits, protections: &mut Protections) -> io::Result<()> {
    set(Resource::Core, 0)?;
    set(Resource::Nofile, OPEN_FILES)?;
    protections.add("no core files", true);
    protections.add("open files", true);
    if let Some(bytes) = limits.memory {
        // Counts private memory that can be written. On Linux, mapped debug files do not count.
        set(Resource::Data, bytes)?;
        // Elsewhere it counts only the heap that grows with brk, and allocators use mmap.
        #[cfg(not(any(target_os = "linux", target_os = "openbsd")))]
        set(Resource::As, bytes)?;
        protections.add("memory", true);
    }
    if let Some(bytes) = limits.file_size {
        set(Resource::Fsize, bytes)?;
        protections.add("file size", true);
    }
    if limits.seconds.is_some() {
        renew_cpu_time(limits)?;
        protections.add("CPU time", true);
    }
    Ok(())
}

/// Sets the limit of CPU time to the time that is used already and that of one result.
pub(super) fn renew_cpu_time(limits: &Limits) -> io::Result<()> {
    let Some(seconds) = limits.cpu_seconds() else { return Ok(()) };
    let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or(0);
    let Rlimit { maximum, .. } = getrlimit(Resource::Cpu);
    // The hard limit stays: it would kill the process with a signal that does not name the limit.
    let wanted = used.saturating_add(seconds);
    let current = Some(maximum.map_or(wanted, |maximum| maximum.min(wanted)));
    Ok(setrlimit(Resource::Cpu, Rlimit { current, maximum })?)
}

/// Sets both limits of `resource` to `wanted`, or to the hard limit if that is smaller.
fn set(resource: Resource, wanted: u64) -> io::Result<()> {
    let limit = getrlimit(resource).maximum.map_or(wanted, |maximum| maximum.min(wanted));
    Ok(setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?)
}

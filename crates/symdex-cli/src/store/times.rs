//! Times and ages as text.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last second of the year 9999. Later times have no text by RFC 3339.
const LAST_SECOND: u64 = 253_402_300_799;

/// A time by RFC 3339, in UTC: `2026-11-22T12:00:00Z`. Times before 1970 and after 9999 are moved to these years.
pub(super) fn stamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let time = UNIX_EPOCH + Duration::from_secs(since.min(LAST_SECOND));
    humantime::format_rfc3339_seconds(time).to_string()
}

/// The time since `time`, or until `time`, in its largest unit: `45 d`. `-` if there is no time.
pub(super) fn distance(time: Option<SystemTime>) -> String {
    let Some(time) = time else { return "-".to_owned() };
    let now = SystemTime::now();
    rough(now.duration_since(time).unwrap_or_else(|error| error.duration()))
}

/// A duration in its largest unit.
fn rough(duration: Duration) -> String {
    let units = [(24 * 60 * 60, "d"), (60 * 60, "h"), (60, "min")];
    let seconds = duration.as_secs();
    match units.into_iter().find(|(unit, _)| seconds >= *unit) {
        Some((unit, name)) => format!("{} {name}", seconds / unit),
        None => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_shown_in_their_largest_unit() {
        let text = |seconds| rough(Duration::from_secs(seconds));
        assert_eq!([0, 59, 60, 3599, 3600].map(text), ["0 s", "59 s", "1 min", "59 min", "1 h"]);
        assert_eq!([86_399, 86_400, 45 * 86_400].map(text), ["23 h", "1 d", "45 d"]);
    }

    #[test]
    fn times_that_rfc_3339_cannot_write_are_moved() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(stamp(at(1_000_000_000)), "2001-09-09T01:46:40Z");
        assert_eq!(stamp(at(u64::MAX >> 2)), "9999-12-31T23:59:59Z");
        assert_eq!(stamp(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00Z");
    }
}

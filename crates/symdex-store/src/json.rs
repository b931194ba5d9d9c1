//! Ids and times in JSON.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize as _, Serializer};
use symdex::ImageId;

/// The last second of the year 9999. Later times have no text by RFC 3339.
const LAST_SECOND: u64 = 253_402_300_799;

/// A time by RFC 3339, in UTC: `2026-11-22T12:00:00Z`. Times before 1970 and after 9999 are moved to these years.
#[must_use]
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let time = UNIX_EPOCH + Duration::from_secs(since.min(LAST_SECOND));
    humantime::format_rfc3339_seconds(time).to_string()
}

pub(crate) fn id_as_text<S: Serializer>(id: &ImageId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

pub(crate) fn time_as_text<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*time))
}

pub(crate) fn some_time_as_text<S: Serializer>(
    time: &Option<SystemTime>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    time.map(rfc3339).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_rfc_3339_cannot_write_are_moved() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(rfc3339(at(1_000_000_000)), "2001-09-09T01:46:40Z");
        assert_eq!(rfc3339(at(u64::MAX >> 2)), "9999-12-31T23:59:59Z");
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00Z");
    }
}

//! Ages as text.

use std::time::{Duration, SystemTime};

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
}

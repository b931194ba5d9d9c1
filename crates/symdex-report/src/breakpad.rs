//! Breakpad's debug ids: a GUID and an age. Sentry and the tools for minidumps state them.

use symdex::ImageId;

/// The digits of a GUID.
const GUID_DIGITS: usize = 32;

/// Returns the GUID of `debug_id`, without dashes and without the age. It is the `LC_UUID` of a Mach-O image. `None` if
/// it is too short.
fn guid(debug_id: &str) -> Option<String> {
    let digits: String = debug_id.chars().filter(|digit| *digit != '-').take(GUID_DIGITS).collect();
    (digits.len() == GUID_DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(digits)
}

/// Returns the id of the Mach-O image with Breakpad's `debug_id`: its UUID. The debug id may have dashes and an age.
/// `None` if it has fewer than 32 hexadecimal digits.
#[must_use]
pub fn uuid(debug_id: &str) -> Option<ImageId> {
    guid(debug_id)?.parse().ok()
}

/// Returns the first 16 bytes of the build id of the ELF image with Breakpad's `debug_id`, which has them in the order
/// of a GUID: the first three fields are little-endian. `None` if it has fewer than 32 hexadecimal digits.
///
/// An [`ReportImage`](crate::ReportImage) with this id has [`is_id_cut`](crate::ReportImage::is_id_cut).
///
/// ```
/// let start = symdex_report::build_id_start_of_debug_id("33221100554477668899AABBCCDDEEFF0");
/// assert_eq!(start.map(|id| id.to_string()).as_deref(), Some("00112233445566778899aabbccddeeff"));
/// ```
#[must_use]
pub fn build_id_start(debug_id: &str) -> Option<ImageId> {
    /// The position of each byte's digits in the GUID.
    const ORDER: [usize; GUID_DIGITS / 2] = [6, 4, 2, 0, 10, 8, 14, 12, 16, 18, 20, 22, 24, 26, 28, 30];
    let guid = guid(debug_id)?;
    ORDER.iter().filter_map(|at| guid.get(*at..at + 2)).collect::<String>().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debug_id_has_the_first_bytes_of_the_build_id_in_the_order_of_a_guid() {
        let text = |id: Option<ImageId>| id.map(|id| id.to_string());
        let expected = Some("00112233445566778899aabbccddeeff".to_owned());
        for debug_id in ["33221100-5544-7766-8899-aabbccddeeff", "33221100554477668899AABBCCDDEEFF0"] {
            assert_eq!(text(build_id_start(debug_id)), expected);
        }
        assert_eq!(text(uuid("00112233-4455-6677-8899-aabbccddeeff-1")), expected);
        assert_eq!((text(uuid("00112233-4455")), text(build_id_start("é"))), (None, None));
    }
}

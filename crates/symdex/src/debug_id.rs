//! Breakpad's debug ids: a GUID and an age. Symbol files, Sentry and the tools for minidumps state them.

use crate::image::ImageId;

/// The digits of a GUID.
const GUID_DIGITS: usize = 32;
/// The place in a GUID's digits of each byte of a build id: the first three fields are little-endian.
const ORDER: [usize; GUID_DIGITS / 2] = [6, 4, 2, 0, 10, 8, 14, 12, 16, 18, 20, 22, 24, 26, 28, 30];

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
/// ```
/// let start = symdex::debug_id::build_id_start("33221100554477668899AABBCCDDEEFF0");
/// assert_eq!(start.map(|id| id.to_string()).as_deref(), Some("00112233445566778899aabbccddeeff"));
/// ```
#[must_use]
pub fn build_id_start(debug_id: &str) -> Option<ImageId> {
    let guid = guid(debug_id)?;
    ORDER.iter().filter_map(|at| guid.get(*at..at + 2)).collect::<String>().parse().ok()
}

/// Returns the debug id of the Mach-O image with the UUID `id`: 32 upper-case digits, and the age 0. Only the first 16
/// bytes of an id count. Missing ones are 0.
#[must_use]
pub fn of_uuid(id: &ImageId) -> String {
    written((0..GUID_DIGITS / 2).map(|number| (2 * number, number)), id)
}

/// Returns the debug id of the ELF image with the build id `id`, as [`of_uuid`] with the order of [`build_id_start`].
#[must_use]
pub fn of_build_id(id: &ImageId) -> String {
    written(ORDER.into_iter().zip(0..), id)
}

/// Writes bytes of `id`: for each a place among the digits, and its number.
fn written(places: impl Iterator<Item = (usize, usize)>, id: &ImageId) -> String {
    let mut sorted: Vec<(usize, usize)> = places.collect();
    sorted.sort_unstable();
    let digits = sorted.iter().map(|(_, number)| id.as_bytes().get(*number).copied().unwrap_or(0));
    digits.map(|byte| format!("{byte:02X}")).collect::<String>() + "0"
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

    #[test]
    fn ids_and_debug_ids_are_turned_into_each_other() {
        let id: ImageId = "00112233445566778899aabbccddeeff0123".parse().expect("an id");
        assert_eq!(of_build_id(&id), "33221100554477668899AABBCCDDEEFF0");
        assert_eq!(of_uuid(&id), "00112233445566778899AABBCCDDEEFF0");
        let short = ImageId::new(&[1, 2, 3, 4, 5]).expect("an id");
        assert_eq!(of_build_id(&short), "040302010005000000000000000000000");
    }
}

//! The modules of a request: which one an address lies in, and the image of each.

use serde::{Deserialize, Serialize};
use symdex_report::{ReportImage, apple_uuid, build_id_start_of_debug_id, uuid_of_debug_id};

use super::request::AddrMode;
use crate::v1::Address;

/// A module that was loaded, as the request and the answer state it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Module {
    #[serde(rename = "type", default = "unknown")]
    pub(super) kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) code_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) code_file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) debug_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) debug_file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) debug_checksum: Option<String>,
    /// 0 if the module has no place in the memory of the process.
    #[serde(default)]
    pub(super) image_addr: Address,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "as_number")]
    pub(super) image_size: Option<Address>,
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn as_number<S: serde::Serializer>(size: &Option<Address>, serializer: S) -> Result<S::Ok, S::Error> {
    size.map(|size| size.0).serialize(serializer)
}

impl Module {
    /// The address of an offset in the module; `None` if the module has no place in the memory of the process.
    pub(super) fn address(&self, offset: u64) -> Option<u64> {
        if self.image_addr.0 == 0 { None } else { self.image_addr.0.checked_add(offset) }
    }

    /// The image to look up. `None` if the module has no id.
    ///
    /// An ELF image has its build id in `code_id`, or the start of it in `debug_id`.
    pub(super) fn image(&self) -> Option<ReportImage> {
        let mut image = ReportImage::default();
        let debug_id = self.debug_id.as_deref();
        let code_id = || self.code_id.as_deref()?.parse().ok();
        image.id = match self.kind.as_str() {
            "elf" => code_id().or_else(|| {
                image.is_id_cut = true;
                build_id_start_of_debug_id(debug_id?)
            }),
            _ => debug_id.and_then(uuid_of_debug_id).or_else(code_id),
        };
        image.id.is_some().then_some(image)
    }

    /// The module with its ids in the form in which Symbolicator states them. Ids that it cannot read are left out.
    fn normalized(self) -> Self {
        let code_id = self.code_id.filter(|id| !id.is_empty()).map(|id| id.to_ascii_lowercase());
        let debug_id = self.debug_id.as_deref().and_then(normalized_debug_id);
        Self { code_id, debug_id, ..self }
    }
}

/// A debug id with dashes, in lower case; its age follows if it is not 0.
fn normalized_debug_id(debug_id: &str) -> Option<String> {
    let uuid = apple_uuid(&uuid_of_debug_id(debug_id)?).to_ascii_lowercase();
    let age: String = debug_id.chars().filter(|digit| *digit != '-').skip(32).collect();
    match age.trim_start_matches('0') {
        "" => Some(uuid),
        age => u32::from_str_radix(age, 16).ok().map(|age| format!("{uuid}-{age:x}")),
    }
}

/// The modules of a request.
pub(super) struct Modules {
    pub(super) modules: Vec<Module>,
    /// Their positions, by address.
    by_address: Vec<usize>,
}

impl Modules {
    /// A module without a size ends where the next one begins. The last one has no end then.
    pub(super) fn new(modules: Vec<Module>) -> Self {
        let mut modules: Vec<_> = modules.into_iter().map(Module::normalized).collect();
        let mut by_address: Vec<_> = (0..modules.len()).collect();
        by_address.sort_by_key(|at| modules[*at].image_addr.0);
        for pair in by_address.windows(2) {
            let next = modules[pair[1]].image_addr.0;
            let module = &mut modules[pair[0]];
            if module.image_size.is_none_or(|size| size.0 == 0) {
                module.image_size = Some(Address(next - module.image_addr.0));
            }
        }
        Self { modules, by_address }
    }

    /// The position of the module that `address` lies in, and its offset there. The offset is `None` if the module has
    /// no place in the memory of the process.
    pub(super) fn find(&self, address: u64, mode: AddrMode) -> Option<(usize, Option<u64>)> {
        if let AddrMode::Rel(at) = mode {
            return (at < self.modules.len()).then_some((at, Some(address)));
        }
        let after = self.by_address.partition_point(|at| self.modules[*at].image_addr.0 <= address);
        let at = *self.by_address.get(after.checked_sub(1)?)?;
        let Module { image_addr: Address(start), image_size, .. } = &self.modules[at];
        let size = image_size.map_or(0, |size| size.0);
        // Its end counts as a part of a module: a return address can be there.
        let is_after = size != 0 && start.checked_add(size).is_none_or(|end| end < address);
        (!is_after).then(|| (at, (*start != 0).then(|| address - start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(ranges: &[(u64, Option<u64>)]) -> Modules {
        let module = |&(start, size): &(u64, Option<u64>)| Module {
            image_addr: Address(start),
            image_size: size.map(Address),
            ..Module::default()
        };
        Modules::new(ranges.iter().map(module).collect())
    }

    #[test]
    fn a_module_without_a_size_ends_where_the_next_one_begins() {
        let modules = modules(&[(0x2000, Some(0x1000)), (0x1000, None), (0x4000, Some(0))]);
        let find = |address| modules.find(address, AddrMode::Abs);
        assert_eq!(find(0xfff), None);
        assert_eq!(find(0x1234), Some((1, Some(0x234))));
        assert_eq!(find(0x2000), Some((0, Some(0))));
        assert_eq!(find(0x3000), Some((0, Some(0x1000))));
        assert_eq!(find(0x3456), None);
        assert_eq!(find(u64::MAX), Some((2, Some(u64::MAX - 0x4000))));
        assert_eq!(modules.find(0x3456, AddrMode::Rel(0)), Some((0, Some(0x3456))));
        assert_eq!(modules.find(0, AddrMode::Rel(3)), None);
        assert_eq!(modules.modules[1].image_size, Some(Address(0x1000)));
    }

    #[test]
    fn addresses_in_a_module_without_a_place_are_not_known() {
        assert_eq!(modules(&[(0, None)]).find(5, AddrMode::Abs), Some((0, None)));
        assert_eq!(modules(&[]).find(5, AddrMode::Abs), None);
    }

    #[test]
    fn ids_are_stated_as_symbolicator_does() {
        let uuid = "0c37c502-aba0-3641-a08f-84c794684f36";
        for (stated, expected) in [
            ("0C37C502-ABA0-3641-A08F-84C794684F36", Some(uuid.to_owned())),
            ("0C37C502ABA03641A08F84C794684F360", Some(uuid.to_owned())),
            ("0c37c502-aba0-3641-a08f-84c794684f36-a", Some(format!("{uuid}-a"))),
            ("0c37c502", None),
            ("0c37c502-aba0-3641-a08f-84c794684f36-xyz", None),
            ("", None),
        ] {
            assert_eq!(normalized_debug_id(stated), expected, "{stated}");
        }
    }

    #[test]
    fn an_elf_image_is_found_by_its_build_id_or_the_start_of_it() {
        let image = |kind: &str, code_id: Option<&str>, debug_id: Option<&str>| {
            let (code_id, debug_id) = (code_id.map(str::to_owned), debug_id.map(str::to_owned));
            let module = Module { kind: kind.to_owned(), code_id, debug_id, ..Module::default() };
            module
                .image()
                .map(|image| (image.id.map(|id| id.to_string()).unwrap_or_default(), image.is_id_cut))
        };
        let (build_id, start) =
            ("00112233445566778899aabbccddeeff01020304", "00112233445566778899aabbccddeeff");
        let debug_id = Some("33221100-5544-7766-8899-aabbccddeeff");
        assert_eq!(image("elf", Some(build_id), debug_id), Some((build_id.to_owned(), false)));
        assert_eq!(image("elf", None, debug_id), Some((start.to_owned(), true)));
        let uuid = "33221100554477668899aabbccddeeff";
        assert_eq!(image("macho", Some(start), debug_id), Some((uuid.to_owned(), false)));
        assert_eq!(image("macho", Some(uuid), None), Some((uuid.to_owned(), false)));
        assert_eq!((image("elf", None, None), image("macho", Some("x"), Some(""))), (None, None));
    }
}

//! Images that are objects of JSON.

use std::collections::HashSet;

use symdex::{Arch, ImageId, debug_id};

use crate::formats::frame_object::hexadecimal;
use crate::formats::json::{Descendant, Value};
use crate::report::ReportImage;

/// The members of images in all formats, by what they state. If an object has several of a list, the first counts.
#[rustfmt::skip]
const MEMBERS: [&[&str]; 12] = [
    /* path */ &["path", "code_file", "machoFile", "imagePath", "image_path", "file"],
    /* name */ &["name", "binaryName", "imageName", "image_name"],
    /* id */ &["uuid", "UUID", "buildId", "build_id", "binaryUUID", "imageUuid", "machoUUID", "codeIdentifier", "id"],
    /* Breakpad's debug id */ &["debug_id"],
    /* build id of an ELF image */ &["code_id"],
    /* `elf`, `macho` */ &["type"],
    /* load address */ &["image_addr", "load_address", "loadAddress", "machoLoadAddress", "baseAddress", "base_addr",
        "startAddress", "start_addr", "base", "la"],
    /* size */ &["image_size", "imageSize", "size"],
    /* last address in some formats and versions, and the next one in others */
    &["max_address", "endAddress", "endOfText", "end_addr"],
    /* architecture */ &["arch"],
    /* Mach-O's numbers of it */ &["cpu_type", "primaryArchitectureId"], &["cpu_subtype", "architectureVariantId"],
];

/// Reads the image that `object` describes, with `number` for its addresses. What it does not state is empty.
pub(crate) fn image<'j>(object: Value<'j>, number: fn(Value<'j>) -> Option<u64>) -> ReportImage {
    let mut found = MEMBERS.map(|_| None);
    for (name, value) in object.members().filter(|(_, value)| !matches!(value.bytes(), b"null" | b"\"\"")) {
        let position = |keys: &&[&str]| keys.iter().position(|key| name.is_string(key));
        let place = MEMBERS.iter().zip(&mut found).find_map(|(keys, slot)| Some((position(keys)?, slot)));
        if let Some((at, slot)) = place.filter(|(at, slot)| slot.is_none_or(|(before, _)| at < &before)) {
            *slot = Some((at, value));
        }
    }
    let [path, name, id, debug_id, code_id, kind, load_address, size, end, arch, cpu_type, cpu_subtype] =
        found.map(|found| found.map(|(_, value)| value));
    let text = |value: Option<Value<'_>>| value.and_then(Value::text).unwrap_or_default().into_owned();
    let (mut path, mut name) = (text(path), text(name));
    // Some formats have a path as the name.
    if path.is_empty() && name.contains('/') {
        path = std::mem::take(&mut name);
    }
    if name.is_empty() {
        name = path.rsplit('/').next().unwrap_or_default().to_owned();
    }
    let of_macho = || debug_id.and_then(|id| debug_id::uuid(&id.text()?)).or_else(|| text(id).parse().ok());
    let (id, is_id_cut) = match (text(kind).as_str(), text(code_id).parse().ok()) {
        // Older clients of Sentry state the debug id as the UUID.
        ("elf", None) => (debug_id::build_id_start(&text(debug_id.or(id))), true),
        ("elf", build_id) => (build_id, false),
        _ => (of_macho(), false),
    };
    let load_address = load_address.and_then(number).unwrap_or_default();
    let end = end.and_then(number).and_then(|end| end.checked_sub(load_address));
    let macho = || Some(Arch::from_macho(cpu_number(cpu_type?)?, cpu_number(cpu_subtype?)?));
    ReportImage {
        name,
        path,
        arch: Arch::from_name(&text(arch)).or_else(macho),
        id,
        is_id_cut,
        load_address,
        size: size.and_then(number).or_else(|| end.map(|size| size.saturating_add(1))),
        ..ReportImage::default()
    }
}

/// Reads a 32-bit number of Mach-O. Some versions write a number with the top bit set as a negative one.
fn cpu_number(value: Value<'_>) -> Option<u32> {
    let negative = || std::str::from_utf8(value.bytes()).ok()?.parse().ok().map(i32::cast_unsigned);
    value.number().and_then(|number| u32::try_from(number).ok()).or_else(negative)
}

/// The images that the objects in `root` describe, at any depth and each once: objects with an id and a load address.
/// An image without a name has its key. The caller limits their number.
pub(crate) fn images<'j>(root: Value<'j>) -> impl Iterator<Item = ReportImage> + use<'j> {
    /// The length of a UUID. Shorter numbers are often ids of something else.
    const ID: usize = 16;
    let mut known = HashSet::new();
    root.descendants().filter_map(move |Descendant { key, value, .. }| {
        let mut image = image(value, hexadecimal);
        let id: ImageId = image.id.clone().filter(|id| id.as_bytes().len() >= ID)?;
        let is_new = image.load_address != 0 && known.insert((image.load_address, id));
        if image.name.is_empty() {
            image.name = key.and_then(Value::text).unwrap_or_default().into_owned();
        }
        is_new.then_some(image)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::json::Json;

    #[test]
    fn an_object_states_name_path_place_and_architecture_by_its_keys() {
        const ID: &str = "6dcd4e9dd3b13a0e8dff6a5a4be1b1b0";
        let read = |text: &str| {
            let text = text.replace("%ID", ID);
            let json = Json::parse(text.as_bytes(), 0).expect("JSON");
            let image = image(json.root(), hexadecimal);
            assert_eq!(image.id.expect("an id").to_string(), ID);
            (image.name, image.path, image.load_address, image.size, image.arch.map(|arch| arch.name))
        };
        let app = |path: &str, load, size, arch: Option<&str>| {
            ("App".to_owned(), path.to_owned(), load, size, arch.map(str::to_owned))
        };
        let listed = r#"{"uuid":"%ID","name":"App","is_system":false,"load_address":"0x104834000",
            "max_address":"0x10483bfff","arch":"arm64"}"#;
        assert_eq!(read(listed), app("", 0x1_0483_4000, Some(0x8000), Some("arm64")));
        let short = r#"{"la":"0x104834000","id":"%ID","name":"App"}"#;
        assert_eq!(read(short), app("", 0x1_0483_4000, None, None));
        let of_macho = r#"{"image_addr":4096,"image_size":16,"name":"/x/App","uuid":"%ID","cpu_type":16777228,
            "cpu_subtype":-2147483646}"#;
        assert_eq!(read(of_macho), app("/x/App", 0x1000, Some(16), Some("arm64e")));
    }
}

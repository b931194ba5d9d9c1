//! `symdex ids`: the images in debug files, folders and indexes.

use std::ffi::OsStr;
use std::fs;

use crate::common::{CommandOutput, debug_file, dsym, folder, index_of, symdex, testdata};
use serde_json::{Value, json};

fn ids<A: AsRef<OsStr>>(paths: impl IntoIterator<Item = A>, more: &[&str]) -> CommandOutput {
    let paths: Vec<_> = paths.into_iter().map(|path| path.as_ref().to_owned()).collect();
    let words = ["ids".as_ref()].into_iter().chain(paths.iter().map(|path| path.as_os_str()));
    symdex(words.chain(more.iter().map(|word| OsStr::new(*word))))
}

#[test]
fn every_slice_and_index_is_listed_with_id_arch_kind_and_size() {
    let root = folder();
    let index = index_of("cxx", root.path());
    let listed =
        ids([&dsym("fat"), &testdata().join("demo/DemoPlain.dylib"), &root.path().to_owned()], &["--json"]);
    assert_eq!((listed.code, listed.err.as_str()), (Some(0), ""));
    let images = listed.json();
    let column = |key: &str| -> Vec<&str> { images.iter().filter_map(|image| image[key].as_str()).collect() };
    assert_eq!(column("arch"), ["x86_64", "arm64", "arm64e", "arm64", "arm64"]);
    assert_eq!(column("kind"), ["dSYM", "dSYM", "dSYM", "Mach-O library", "index"]);
    let fat = fs::metadata(debug_file("fat")).expect("there").len();
    let sizes: Vec<_> = images.iter().filter_map(|image| image["size"].as_u64()).collect();
    assert!(sizes[..3].iter().sum::<u64>() < fat && sizes[4] == fs::metadata(&index).expect("there").len());
    assert_eq!((&images[3]["has_dwarf"], &images[4]["has_dwarf"]), (&false.into(), &true.into()));
    assert_eq!(column("id")[4], index.file_stem().expect("a name"));
    assert_eq!(column("location")[4], index.to_string_lossy());
    assert_eq!((&images[0]["name"], &images[4]["name"]), (&Value::Null, &"cxx".into()));

    let people = ids([&index], &[]).ok();
    let id = index.file_stem().expect("a name").to_string_lossy();
    assert!(people.starts_with(&format!("{id}  arm64  index  ")), "{people}");
    assert!(people.ends_with(&format!("  {}: cxx\n", index.display())), "{people}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_kind_of_an_elf_file_follows_from_its_headers() {
    // The test program, which may have no debug information, and a copy without code.
    let program = std::env::current_exe().expect("a program");
    let bytes = fs::read(&program).expect("readable");
    assert_eq!(ids([&program], &["--json"]).json()[0]["kind"], "ELF executable");
    let root = folder();
    let stripped = root.path().join("program.debug");
    fs::write(&stripped, without_code(bytes)).expect("written");
    let debug_file = ids([&stripped], &["--json"]);
    assert_eq!(debug_file.json()[0]["kind"], "ELF debug file", "{}", debug_file.err);
}

/// A 64-bit ELF file with its code sections as `objcopy --only-keep-debug` leaves them.
#[cfg(target_os = "linux")]
fn without_code(mut bytes: Vec<u8>) -> Vec<u8> {
    let number = |bytes: &[u8], at: usize, size: usize| {
        let mut number = [0; 8];
        number[..size].copy_from_slice(&bytes[at..at + size]);
        usize::try_from(u64::from_le_bytes(number)).expect("small")
    };
    let (table, entry, len) = (number(&bytes, 40, 8), number(&bytes, 58, 2), number(&bytes, 60, 2));
    for section in (0..len).map(|index| table + index * entry) {
        // SHF_ALLOC and SHF_EXECINSTR.
        if number(&bytes, section + 8, 8) & 6 == 6 {
            bytes[section + 4..section + 8].copy_from_slice(&8_u32.to_le_bytes());
        }
    }
    bytes
}

#[test]
fn images_of_a_shared_cache_are_listed_by_their_paths() {
    use symdex_testkit::images::shared_cache::{CacheImage, Layout, cache, write};
    let path = "/usr/lib/libone.dylib";
    let image = CacheImage {
        path,
        uuid: 0x11,
        exported: vec![("_f", 0x1000)],
        locals: vec![],
        function_starts: vec![0],
    };
    let root = folder();
    let main = write(&cache(&[image], Layout::Split), root.path());
    let listed = ids([root.path()], &["--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    let [row] = &listed.json()[..] else { panic!("{}", listed.out) };
    let expected = ("11".repeat(16), "shared cache image", path, &*main.to_string_lossy());
    let text = |key: &str| row[key].as_str().unwrap_or_default();
    assert_eq!((text("id").to_owned(), text("kind"), text("name"), text("location")), expected);
    assert!(ids([&main], &[]).ok().ends_with(&format!("  {}: {path}\n", main.display())));
}

#[test]
fn unreadable_files_are_reported_and_the_rest_is_listed() {
    let root = folder();
    let write = |name: &str, bytes: &[u8]| {
        let path = root.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    };
    let notes = write("notes.txt", b"hello");
    let whole = fs::read(debug_file("cxx")).expect("there");
    let cut = write("cut", &whole[..40]);
    let missing = root.path().join("missing");
    let index = index_of("cxx", root.path());
    let damaged = write("damaged.symdex", &fs::read(&index).expect("there")[..200]);

    assert_eq!(ids([&missing], &[]).code, Some(5));
    assert_eq!(ids([&missing, &notes], &[]).code, Some(6), "unsupported is graver than missing");
    // In a folder, text files are ignored.
    let listed = ids([root.path()], &["--json"]);
    assert_eq!((listed.code, listed.err.lines().count()), (Some(4), 2), "{}", listed.err);
    let rows = listed.json();
    let of = |path: &std::path::Path| {
        rows.iter()
            .find(|row| row["location"] == *path.to_string_lossy())
            .unwrap_or_else(|| panic!("{path:?}"))
    };
    assert_eq!(
        (&of(&cut)["error"]["kind"], &of(&damaged)["error"]["kind"]),
        (&json!("damaged"), &json!("damaged"))
    );
    assert_eq!((rows.len(), &of(&index)["kind"]), (3, &json!("index")));

    let empty = folder();
    let nothing = ids([empty.path()], &[]);
    assert!(nothing.code == Some(5) && nothing.err.contains("no debug file and no index"), "{}", nothing.err);
}

//! Several files of one image: stripped files, their debug files, and their names (docs/DEBUG-INFO.md, "Separate debug
//! files").

use std::fs;
use std::io::Write as _;

use object::elf;
use symdex::ImageId;
use symdex::Table::{Dwarf, SymbolTable};
use symdex_build::debug_files::{DebugFile, JoinedImage};
use symdex_build::{Companions, Image, slices};
use symdex_testkit::images::debug_file::{BASE, Elf, Unit, debug_sections, write};

use super::sections::error;
use super::{LINES, function, of, symbols, with_dwarf};
use crate::checks::{found, image_answers};

/// `.gnu_debuglink`: a name, zeros up to a multiple of four, and a checksum.
fn debug_link(name: &str, of: &[u8]) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize((name.len() / 4 + 1) * 4, 0);
    [bytes, crc32fast::hash(of).to_le_bytes().to_vec()].concat()
}

#[test]
fn names_of_other_files_may_be_as_long_as_they_like() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("liba.so");
    let link = debug_link(&"a".repeat(1 << 20), b"");
    fs::write(&path, Elf::default().section(".gnu_debuglink", link).bytes()).expect("written");
    let (_, missing) = found(&path, &Companions::default());
    assert!(missing[0].starts_with("the debug file aaaa") && missing[0].len() < 500, "{missing:?}");
}

#[test]
fn a_stripped_file_finds_its_debug_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let debug = Elf { code: None, ..with_dwarf() };
    let stripped = Elf { sections: Vec::new(), symbols: Vec::new(), ..with_dwarf() };
    for build_id in [Some(vec![7; 20]), None] {
        let debug = Elf { build_id: build_id.clone(), ..debug.clone() }.bytes();
        let stripped = Elf { build_id: build_id.clone(), ..stripped.clone() }
            .section(".gnu_debuglink", debug_link("a.debug", &debug));
        let path = folder.path().join("liba.so");
        fs::write(&path, stripped.bytes()).expect("written");

        let (answers, missing) = found(&path, &Companions::default());
        assert_eq!(answers, [""; 0]);
        assert!(missing[0].contains("the debug file a.debug ("), "{missing:?}");
        for beside in ["a.debug", ".debug/a.debug"] {
            let beside = folder.path().join(beside);
            fs::create_dir_all(beside.parent().expect("a folder")).expect("a folder");
            fs::write(&beside, &debug).expect("written");
            assert_eq!(found(&path, &Companions::default()), (LINES.map(str::to_owned).into(), Vec::new()));
            // A file with the right name and another build id or checksum is not used.
            let other = Elf { build_id: Some(vec![8; 20]), ..Elf::default() }.bytes();
            fs::write(&beside, other).expect("written");
            let (answers, missing) = found(&path, &Companions::default());
            assert_eq!(answers, [""; 0]);
            let expected = match build_id {
                Some(_) => {
                    format!("(build id {}) does not match: a.debug has the build id ", "07".repeat(20))
                }
                None => format!(
                    "(CRC-32 {:08x}) does not match: a.debug has the CRC-32 ",
                    crc32fast::hash(&debug)
                ),
            };
            assert!(missing[0].contains(&expected), "{missing:?}");
            fs::remove_file(&beside).expect("there");
        }
    }
}

#[test]
fn a_stripped_file_finds_its_debug_file_by_build_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("liba.so");
    fs::write(&path, Elf { sections: Vec::new(), symbols: Vec::new(), ..with_dwarf() }.bytes())
        .expect("written");
    let debug = folder.path().join(format!("debug/.build-id/07/{}.debug", "07".repeat(19)));
    fs::create_dir_all(debug.parent().expect("a folder")).expect("a folder");
    fs::write(&debug, Elf { code: None, ..with_dwarf() }.bytes()).expect("written");
    let companions = Companions::new(vec![folder.path().join("debug")]);
    assert_eq!(found(&path, &companions), (LINES.map(str::to_owned).into(), Vec::new()));
    assert_eq!(found(&path, &Companions::default()), (Vec::new(), Vec::new()));
    // prelink moves a library, and not its debug file.
    fs::write(&debug, Elf { code: None, base: 0, ..with_dwarf() }.bytes()).expect("written");
    let (answers, missing) = found(&path, &companions);
    assert_eq!(answers, [""; 0]);
    let moved = format!("07.debug has other addresses, from 0x0 on and not from {BASE:#x} on");
    assert!(
        missing[0].starts_with("the debug file (build id 07") && missing[0].contains(&moved),
        "{missing:?}"
    );
}

#[test]
fn companions_alone_say_what_they_belong_to() {
    let unlinked = Elf { kind: elf::ET_REL, code: None, ..Elf::default() };
    let debug = || unlinked.clone().debug(debug_sections(&[Unit::bare()]));
    for (file, kind) in [
        (debug(), "a supplementary file of dwz"),
        (debug().section(".debug_info.dwo", Vec::new()), "an object file of split units (.dwo)"),
        (debug().section(".debug_cu_index", Vec::new()), "a package of split units (.dwp)"),
    ] {
        let expected = format!(
            "{kind}, which is no image of its own; give it together with the debug files that refer to it"
        );
        assert_eq!(error(&file.bytes()), expected);
        assert!(error(&Elf { code: Some(0), ..file }.bytes()).contains("an object file; give"));
    }
}

#[test]
fn an_image_has_the_name_of_its_binary() {
    let folder = tempfile::tempdir().expect("a folder");
    let by_id = &*format!("root/.build-id/07/{}.debug", "07".repeat(19));
    let debug = Elf { code: None, ..with_dwarf() };
    let binary = Elf { sections: Vec::new(), ..with_dwarf() };
    for (path, elf) in [(by_id, &debug), ("root/a.debug", &debug), ("root/liba.so", &binary)] {
        write(&folder.path().join(path), elf);
    }
    let companions = Companions::new(vec![folder.path().join("root")]);
    let name = |paths: &[&str]| {
        let mut joined = JoinedImage::default();
        for path in paths {
            let file = DebugFile::on_disk(folder.path().join(path));
            joined.add_file(&file, &ImageId::new(&[7; 20]).expect("an id"), "arm64", &companions);
        }
        joined.image.expect("readable").info().image_name.clone()
    };
    for paths in [[by_id, "root/liba.so"], ["root/liba.so", by_id], ["root/a.debug", "root/liba.so"]] {
        assert_eq!(name(&paths), "liba.so", "{paths:?}");
    }
    assert_eq!(name(&[by_id, "root/a.debug"]), "a.debug");
    #[cfg(unix)]
    {
        let link = folder.path().join("root/.build-id/07/link");
        std::os::unix::fs::symlink("../../liba.so", link).expect("a link");
        assert_eq!(name(&["root/.build-id/07/link"]), "liba.so");
    }
}

#[test]
fn mini_debug_info_has_the_symbols_that_were_stripped() {
    let mini = of(&[function("hidden", 0x1000, 0x20)]).bytes();
    let mut packed =
        lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).expect("options");
    packed.write_all(&mini).expect("compresses");
    let packed = packed.finish().expect("compresses");
    let dynamic = Elf { dynamic_symbols: vec![function("exported", 0x1100, 0x20)], ..Elf::default() };
    let elf = dynamic.clone().section(".gnu_debugdata", packed.clone());
    assert_eq!(symbols(&elf), ["1000..1020 hidden", "1100..1120 exported"]);

    let broken = dynamic.section(".gnu_debugdata", packed[..40].to_vec());
    assert_eq!(symbols(&broken), ["1100..1120 exported"]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("liba.so");
    fs::write(&path, broken.bytes()).expect("written");
    let missing = found(&path, &Companions::default()).1;
    assert!(missing[0].contains(".gnu_debugdata"), "{missing:?}");
}

#[test]
fn two_files_of_one_image_make_one() {
    let (debug, stripped) = (
        Elf { code: None, ..with_dwarf() }.bytes(),
        Elf {
            base: BASE,
            dynamic_symbols: vec![function("exported", BASE + 0x2000, 0x20)],
            ..Elf::default()
        }
        .bytes(),
    );
    let companions = Companions::default();
    let image = |file| {
        let slice = slices(file).expect("an ELF file").remove(0);
        Image::load(&slice, "made-up", &companions).expect("loads")
    };
    for (one, other) in [(&debug, &stripped), (&stripped, &debug)] {
        let (one, other) = (image(one), image(other));
        assert!(one.can_join(&other));
        let both = one.join(other);
        assert_eq!(image_answers(&both, Dwarf), LINES);
        assert_eq!(
            image_answers(&both, SymbolTable),
            ["1000..1100 f", "1200..1220 g", "2000..2020 exported"]
        );
    }
}

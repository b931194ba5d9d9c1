//! `symdex atos`: the options and the lines of Apple's atos.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use crate::common::{command, debug_file, dsym, folder, index_of, symdex_on, testdata};

/// inline-dwarf4 has its base at 0x100000000; see the tests of `lookup`.
const PLAIN: &str = "pyramid (in inline-dwarf4) (mip.h:11)\n";
const INLINED: &str = "\
row (in inline-dwarf4) (grid.h:15)
mip (in inline-dwarf4) (mip.h:7)
pyramid (in inline-dwarf4) (mip.h:11)

";

#[test]
fn bundles_debug_files_and_indexes_answer_alike() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    for object in [dsym("inline-dwarf4"), debug_file("inline-dwarf4"), index.clone()] {
        assert_eq!(symdex_on(&object, "atos -o {} 0x100000400").ok(), PLAIN, "{object:?}");
        assert_eq!(symdex_on(&object, "atos -o {} -arch arm64 0x100000400").ok(), PLAIN, "{object:?}");
        let other = symdex_on(&object, "atos -o {} -arch x86_64 0x100000400");
        assert_eq!((other.code, other.out.as_str()), (Some(3), ""));
        assert!(other.err.contains("arm64"), "{}", other.err);
    }
    let id = index.file_stem().expect("a name").to_string_lossy();
    assert_eq!(symdex_on(root.path(), &format!("atos -o {{}} --id {id} 0x100000400")).ok(), PLAIN);
    let dsyms = testdata().join("dsyms");
    assert_eq!(symdex_on(&dsyms, &format!("atos -o {{}} --id {id} 0x100000400")).ok(), PLAIN);
}

#[test]
fn the_first_digits_of_an_id_are_enough_if_one_image_has_them() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    let id = index.file_stem().expect("a name").to_string_lossy().into_owned();
    let dsyms = testdata().join("dsyms");
    let atos = |object: &Path, id: &str| symdex_on(object, &format!("atos -o {{}} --id {id} 0x100000400"));
    // All ids of the test data begin with 4c4c44.
    for object in [root.path(), &index, &dsyms, &dsym("inline-dwarf4")] {
        assert_eq!(atos(object, &id[..8]).ok(), PLAIN, "{object:?}");
    }
    let other = atos(&index, "ffff");
    assert_eq!(other.code, Some(3), "{}", other.err);
    let short = atos(root.path(), "4c4");
    assert!(short.code == Some(2) && short.err.contains("4 to 64 hexadecimal digits"), "{}", short.err);

    index_of("cxx", root.path());
    let several = atos(root.path(), "4c4c");
    assert_eq!((several.code, several.out.as_str()), (Some(2), ""));
    assert!(
        several.err.contains("several ids begin with 4c4c: 4c4c") && several.err.contains(&id),
        "{}",
        several.err
    );
    // In a debug file, the message lists the slices.
    let slices = atos(&dsym("fat"), "4c4c");
    assert!(slices.code == Some(2) && slices.err.contains("fat (arm64e, 4c4c"), "{}", slices.err);
}

#[test]
fn a_folder_of_indexes_without_an_id_lists_the_ids() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    let which = symdex_on(root.path(), "atos -o {} 0x100000400");
    assert_eq!((which.code, which.out.as_str()), (Some(2), ""));
    let id = index.file_stem().expect("a name").to_string_lossy();
    assert!(which.err.contains(&format!("with --id; it has {id} (inline-dwarf4, arm64)")), "{}", which.err);
}

#[test]
fn only_a_prefix_makes_an_address_hexadecimal() {
    let object = dsym("inline-dwarf4");
    let atos = |address: &str| symdex_on(&object, &format!("atos -o {{}} -l b0000 {address}")).ok();
    assert_eq!(atos("0xb0400"), PLAIN);
    assert_eq!(atos("721920"), PLAIN, "0xb0400 in decimal");
    assert_eq!(atos("0000000000721920"), PLAIN, "16 digits are decimal, too");
    assert_eq!(atos("b0400"), "b0400\n", "no address, and echoed as one outside of the image");
    assert_eq!(atos("0xb0400 721920"), PLAIN.repeat(2));
}

#[test]
fn options_set_the_origin_of_addresses() {
    let object = dsym("inline-dwarf4");
    for line in [
        "-l 0x5000000 0x5000400",
        "-l 5000000 0x5000400",
        "-l 5000000 83887104",
        "-s 0x10 0x100000410",
        "-s 16 0x100000410",
        "-offset 0x400",
        "--offset 1024",
    ] {
        assert_eq!(symdex_on(&object, &format!("atos -o {{}} {line}")).ok(), PLAIN, "{line}");
    }
    for line in ["-l 1 -s 1", "-l 1 -offset", "-s 1 -textExecAddress 1", "-textExecAddress 1 -offset"] {
        let both = symdex_on(&object, &format!("atos -o {{}} {line} 0x400"));
        assert_eq!(both.code, Some(2), "{line}");
        assert!(both.err.contains("cannot be used with"), "{}", both.err);
    }
    let no_kernel = symdex_on(&object, "atos -o {} -textExecAddress 0x1000 0x1400");
    assert_eq!(no_kernel.code, Some(2));
    assert!(no_kernel.err.contains("no __TEXT_EXEC segment"), "{}", no_kernel.err);
}

#[test]
fn addresses_are_converted_from_the_load_address_of_text_exec() {
    let root = folder();
    // The only code segment gets the name of the kernel's. Its address stays.
    let mut bytes = fs::read(debug_file("inline-dwarf4")).expect("there");
    let at = bytes
        .windows(16)
        .position(|name| name == b"__DATA\0\0\0\0\0\0\0\0\0\0" || name == b"__LINKEDIT\0\0\0\0\0\0");
    let at = at.expect("a segment besides __TEXT");
    bytes[at..at + 16].copy_from_slice(b"__TEXT_EXEC\0\0\0\0\0");
    let address = u64::from_le_bytes(bytes[at + 16..at + 24].try_into().expect("eight bytes"));
    let object = root.path().join("kernel");
    fs::write(&object, bytes).expect("written");
    // The image is loaded 0x7000 above the address that it states.
    let line =
        format!("atos -o {{}} -textExecAddress {:x} {:#x}", address + 0x7000, 0x1_0000_0400_u64 + 0x7000);
    assert_eq!(symdex_on(&object, &line).ok(), PLAIN.replace("inline-dwarf4", "kernel"));
}

#[test]
fn lines_without_a_name_or_a_line() {
    let object = dsym("inline-dwarf4");
    let line = |address: &str| symdex_on(&object, &format!("atos -o {{}} {address}")).ok();
    assert_eq!(line("0x100000730"), "plain_hidden (in inline-dwarf4) + 4\n");
    assert_eq!(line("0x100000001"), "0x0000000100000001 (in inline-dwarf4)\n");
    assert_eq!(line("-l 0x5000 0x5001"), "0x0000000000005001 (in inline-dwarf4)\n");
    assert_eq!(line("0xDEADbeef"), "0xDEADbeef\n");
    assert_eq!(line("4096"), "4096\n");
    assert_eq!(line("main"), "main\n");
    assert_eq!(line("-l 0x5000 0x4fff"), "0x4fff\n");
    // Outlined code has a function in the debug information and no line.
    assert_eq!(
        symdex_on(&dsym("outliner"), "atos -o {} 0x654").ok(),
        "OUTLINED_FUNCTION_0 (in outliner) + 4\n"
    );
}

#[test]
fn dedup_prints_every_name_of_a_function_that_was_folded() {
    let object = dsym("icf");
    let atos = |line: &str| symdex_on(&object, &format!("atos -o {{}} -arch arm64 {line}")).ok();
    let all = atos("-dedup 0x374");
    let lines: Vec<_> = all.lines().collect();
    let [first, second, third] = lines[..] else { panic!("{all}") };
    assert_eq!(atos("0x374"), format!("{first}\n"));
    // Each name has the same file and line.
    let place = first.split_once(' ').expect("a name and a place").1;
    let mut names: Vec<_> = [first, second, third].map(|line| line.split_once(' ').expect("both")).into();
    assert!(names.iter().all(|(_, at)| *at == place), "{all}");
    names.sort_unstable();
    assert_eq!(names.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["price_a", "price_b", "price_c"]);
    assert_eq!(atos("-i -dedup 0x374"), format!("{all}\n"));
    assert_eq!(atos("-i -d ; --dedup 0x374"), format!("{first};{second};{third}\n\n"));
}

#[test]
fn a_function_without_a_name_is_answered_by_its_start() {
    let root = folder();
    // Every symbol becomes a stab. Stabs name no functions, so only function starts are left.
    let mut bytes = fs::read(testdata().join("demo/DemoPlain.dylib")).expect("there");
    let symtab =
        bytes.windows(8).position(|window| window == [2, 0, 0, 0, 24, 0, 0, 0]).expect("an LC_SYMTAB");
    let number =
        |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let (at, count) = (number(&bytes, symtab + 8) as usize, number(&bytes, symtab + 12) as usize);
    for symbol in 0..count {
        bytes[at + 16 * symbol + 4] = 0x20;
    }
    let object = root.path().join("Stripped.dylib");
    fs::write(&object, bytes).expect("written");
    assert_eq!(
        symdex_on(&testdata().join("demo/DemoPlain.dylib"), "atos -o {} 0x4137").ok(),
        "fold_bytes (in DemoPlain.dylib) + 83\n"
    );
    assert_eq!(symdex_on(&object, "atos -o {} 0x4137").ok(), "0x0000000000004137 (in Stripped.dylib) + 83\n");
}

#[test]
fn inlined_functions_paths_and_delimiters() {
    let object = dsym("inline-dwarf4");
    let atos = |line: &str| symdex_on(&object, &format!("atos -o {{}} {line}")).ok();
    for flag in ["-i", "-inlineFrames", "--inlineFrames"] {
        assert_eq!(atos(&format!("{flag} 0x100000400")), INLINED, "{flag}");
    }
    assert_eq!(atos("-i 0x1 0x100000730"), "0x1\n\nplain_hidden (in inline-dwarf4) + 4\n\n");
    let joined = "row (in inline-dwarf4) (grid.h:15);mip (in inline-dwarf4) (mip.h:7);\
                  pyramid (in inline-dwarf4) (mip.h:11)\n\n";
    assert_eq!(atos("-i -d ; 0x100000400"), joined);
    assert_eq!(atos("-i --delimiter ; 0x100000400"), joined);
    assert_eq!(atos("-d ; 0x100000400"), PLAIN);
    for flag in ["-fullPath", "--fullPath"] {
        let full = "pyramid (in inline-dwarf4) (/src/symdex/inline/level/mip.h:11)\n";
        assert_eq!(atos(&format!("{flag} 0x100000400")), full);
    }
    assert_eq!(atos("-printHeader -dedup --dedup 0x100000400"), PLAIN, "a function of one name");
    // atos uses every row: the row of line 0 is not merged into the statement before it.
    assert!(atos("-i 0x100000408").starts_with("row (in inline-dwarf4) (grid.h:0)\n"));
}

#[test]
fn names_are_demangled_as_atos_does() {
    let swift = symdex_on(&dsym("swift-names"), "atos -o {} 0x388 0x404").ok();
    let lines: Vec<_> = swift.lines().collect();
    for (line, (number, place)) in lines.iter().zip([(1, "57"), (2, "61")]) {
        assert!(line.starts_with(&format!("closure #{number} ")), "{line}");
        assert!(line.contains(" in Timeline.append("), "{line}");
        assert!(line.ends_with(&format!(" (in swift-names) (Feed.swift.c:{place})")), "{line}");
    }
    assert_eq!(lines.len(), 2);
}

#[test]
fn a_universal_file_needs_an_architecture() {
    let which = symdex_on(&dsym("fat"), "atos -o {} 0x100000400");
    assert_eq!((which.code, which.out.as_str()), (Some(2), ""));
    for part in ["-arch", "fat (x86_64, 4c4c", "fat (arm64, 4c4c", "fat (arm64e, 4c4c"] {
        assert!(which.err.contains(part), "{part}: {}", which.err);
    }
    assert_eq!(
        symdex_on(&dsym("fat"), "atos -arch arm64e -o {} 0x100000400").ok(),
        "pyramid (in fat) (mip.h:11)\n"
    );
}

#[test]
fn addresses_come_from_files_too() {
    let root = folder();
    let addresses = root.path().join("addresses.txt");
    fs::write(&addresses, "0x100000400\t0x1\n\n  0x100000730 ").expect("written");
    let output =
        command().arg("atos").arg("-o").arg(dsym("inline-dwarf4")).arg("-f").arg(&addresses).output();
    let expected = format!("{PLAIN}0x1\nplain_hidden (in inline-dwarf4) + 4\n");
    assert_eq!(crate::common::CommandOutput::from(output.expect("ran")).ok(), expected);
    let missing = symdex_on(&dsym("inline-dwarf4"), "atos -o {} -f /nowhere/addresses");
    assert_eq!(missing.code, Some(5));
    assert!(missing.err.contains("/nowhere/addresses: cannot read"), "{}", missing.err);
}

#[test]
fn standard_input_is_answered_line_by_line() {
    let mut child = command()
        .arg("atos")
        .arg("-o")
        .arg(dsym("inline-dwarf4"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut input = child.stdin.take().expect("piped");
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let mut ask = |line: &str| {
        input.write_all(line.as_bytes()).expect("taken");
        let mut answer = String::new();
        output.read_line(&mut answer).expect("answered");
        answer
    };
    assert_eq!(ask("0x100000400\n"), PLAIN);
    assert_eq!(ask("nonsense\n"), "nonsense\n");
    assert_eq!(ask("\n0x100000730\n"), "plain_hidden (in inline-dwarf4) + 4\n");
    drop(input);
    assert_eq!(child.wait().expect("ended").code(), Some(0));
}

#[test]
fn a_return_address_behind_a_call_that_ends_its_function_is_looked_up_as_given() {
    let atos = |address: &str| symdex_on(&dsym("calls"), &format!("atos -o {{}} {address}")).ok();
    let before_padding = "ending::before_padding(int) (in calls)";
    assert_eq!(atos("0x388"), format!("{before_padding} (no_return.cpp:7)\n"));
    assert_eq!(atos("0x38c"), format!("{before_padding} + 12\n"));
    assert_eq!(atos("0x3d8"), "ending::before_function(int) (in calls) (no_return.cpp:15)\n");
    assert_eq!(atos("0x3dc"), "ending::following(int) (in calls) (no_return.cpp:19)\n");
    // Behind the end of the unit.
    assert_eq!(atos("0x414"), "target(_:) (in calls) (thunk.swift:2)\n");
}

/// The high bits of a return address may be its pointer authentication code.
#[test]
fn a_signed_address_is_answered() {
    let debug = dsym("inline-dwarf4");
    assert_eq!(symdex_on(&debug, "atos -o {} -l 0x104a34000 0x552d810104a34400").ok(), PLAIN);
    assert_eq!(symdex_on(&debug, "atos -o {} 0x552d810100000400").ok(), PLAIN);
    // An offset and an address of another image have none.
    for wrong in ["-offset 0x552d810100000400", "-l 0x104a34000 0x552d810204a34400"] {
        let done = symdex_on(&debug, &format!("atos -o {{}} {wrong}"));
        assert!(done.ok().starts_with("0x552d"), "{wrong}");
    }
}

//! `symdex build` in a pipeline: required images, indexes that exist, shards, listings.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{
    CommandOutput, command, debug_file, dsym, folder, names_in, symdex, testdata, without_debug_information,
};
use symdex_testkit::images::archive::zip_of;
use symdex_testkit::images::debug_file::{Elf, ElfSymbol};

fn build(out: &Path, args: &[&str]) -> CommandOutput {
    let mut run = command();
    run.arg("build").arg("-o").arg(out).args(args);
    CommandOutput::from(run.output().expect("the command starts"))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn id_of(name: &str) -> String {
    let listed = symdex(["ids".as_ref(), dsym(name).as_os_str(), "--json".as_ref()]);
    listed.json()[0]["id"].as_str().expect("an id").to_owned()
}

#[test]
fn only_the_images_of_the_ids_are_built_and_missing_ones_are_named() {
    let root = folder();
    let (cxx, lto) = (id_of("cxx"), id_of("lto"));
    let dsyms = testdata().join("dsyms");
    let upper = cxx.to_uppercase();
    let built = build(root.path(), &[text(&dsyms), "--id", &upper, "--id", &lto]);
    assert_eq!(built.code, Some(0), "{}", built.err);
    let mut expected = [&cxx, &lto].map(|id| format!("{id}.symdex"));
    expected.sort();
    assert_eq!(names_in(root.path()), expected);
    // What the command built is found by a lookup.
    let found = symdex(["lookup", text(root.path()), "--id", &cxx, "0x1000"]);
    assert!(found.code == Some(0) || found.code == Some(3), "{}", found.err);

    let gone = "00112233445566778899aabbccddeeff";
    let out = root.path().join("out");
    let built = build(&out, &[text(&dsym("cxx")), "--id", gone, "--id", &cxx, "--json"]);
    assert_eq!((built.code, names_in(&out).len()), (Some(3), 1), "{}", built.err);
    assert!(
        built.err.contains(&format!(
            "no input has the image {gone}, which --id asks for; the inputs have {cxx}\n"
        )),
        "{}",
        built.err
    );
    assert_eq!(built.json()[1]["error"]["kind"], "not_found");
    let prefix =
        build(&root.path().join("prefix"), &[text(&dsym("fat")), text(&dsym("cxx")), "--id", &cxx[..24]]);
    assert_eq!(prefix.code, Some(0), "{}", prefix.err);
    assert_eq!(names_in(&root.path().join("prefix")), [format!("{cxx}.symdex")]);
    let several = build(&root.path().join("several"), &[text(&dsyms), "--id", "4c4c"]);
    assert_eq!(several.code, Some(2), "{}", several.err);
    assert!(several.err.contains("several ids begin with 4c4c: 4c4c44"), "{}", several.err);
    assert!(!root.path().join("several").exists());
    assert_eq!(build(&out, &[text(&dsym("cxx")), "--id", "cxx"]).code, Some(2));
}

#[test]
fn require_all_fails_for_each_image_without_debug_information() {
    let root = folder();
    let binary = root.path().join("App");
    fs::write(&binary, without_debug_information(&debug_file("cxx"))).expect("written");
    let out = root.path().join("out");
    let run = |inputs: &[&Path]| {
        let mut args: Vec<_> = inputs.iter().map(|path| text(path)).collect();
        args.push("--require-all");
        build(&out, &args)
    };
    let failed = run(&[&binary, &dsym("lto")]);
    assert_eq!(failed.code, Some(3), "{}", failed.err);
    let message =
        format!("{}: no input has debug information of App (arm64, {})", binary.display(), id_of("cxx"));
    assert!(failed.err.contains(&message), "{}", failed.err);
    assert_eq!(run(&[&binary, &dsym("cxx")]).code, Some(0));
    let without: CommandOutput = build(&root.path().join("other"), &[text(&binary)]);
    assert_eq!(without.code, Some(0), "only --require-all makes it a failure");
    // An archive that is not opened may have other images.
    let inner = zip_of(&[("cxx", &fs::read(debug_file("cxx")).expect("there"))]);
    let deep = root.path().join("deep.zip");
    fs::write(
        &deep,
        zip_of(&[
            ("b.zip", &zip_of(&[("c.zip", &inner)])),
            ("cxx", &fs::read(debug_file("cxx")).expect("there")),
        ]),
    )
    .expect("written");
    assert_eq!(run(&[&deep]).code, Some(3));
    assert_eq!(build(&out, &[text(&deep)]).code, Some(0));
}

#[test]
fn require_all_asks_whether_the_index_that_is_kept_has_debug_information() {
    let root = folder();
    let [binary, other] = ["App", "Other"].map(|name| root.path().join(name));
    for path in [&binary, &other] {
        fs::write(path, without_debug_information(&debug_file("cxx"))).expect("written");
    }
    let kept = |before: &Path| {
        let out = folder();
        assert_eq!(build(out.path(), &[text(before)]).code, Some(0));
        let options = ["--on-conflict", "keep", "--require-all", "--json"];
        let built = build(out.path(), &[&[text(&other)], &options[..]].concat());
        assert_eq!(built.images()[0]["outcome"], "kept", "{}", built.out);
        built.code
    };
    assert_eq!(kept(&binary), Some(3), "the index that is kept has symbols only");
    assert_eq!(kept(&dsym("cxx")), Some(0));
}

#[test]
fn require_all_asks_for_the_dsym_of_each_binary_of_an_xcarchive() {
    let root = folder();
    let archive = root.path().join("App.xcarchive");
    let app = archive.join("Products/Applications/App.app");
    let dwarf = archive.join("dSYMs/lto.dSYM/Contents/Resources/DWARF");
    for folder in [&app, &dwarf] {
        fs::create_dir_all(folder).expect("a folder");
    }
    fs::copy(debug_file("lto"), dwarf.join("lto")).expect("copied");
    fs::write(app.join("lto"), without_debug_information(&debug_file("lto"))).expect("written");
    let run = || build(&root.path().join("out"), &[text(&archive), "--require-all"]);
    assert_eq!(run().code, Some(0), "{}", run().err);
    fs::write(app.join("cxx"), without_debug_information(&debug_file("cxx"))).expect("written");
    let failed = run();
    assert_eq!(failed.code, Some(3), "{}", failed.err);
    assert!(
        failed.err.contains(&format!("debug information of cxx (arm64, {})", id_of("cxx"))),
        "{}",
        failed.err
    );
}

#[test]
fn an_image_whose_index_exists_is_not_read_again_without_force() {
    let root = folder();
    let out = root.path().join("out");
    let path = root.path().join("cxx");
    let whole = fs::read(debug_file("cxx")).expect("there");
    fs::write(&path, &whole).expect("written");
    let first = build(&out, &[text(&path), "--json"]).images();
    // The same file, with entries that cannot be read. The unit headers stay.
    let mut broken = whole.clone();
    let section = broken.windows(16).position(|name| name == b"__debug_info\0\0\0\0").expect("DWARF");
    let at = u32::from_le_bytes(broken[section + 48..section + 52].try_into().expect("4 bytes")) as usize;
    broken[at + 11..at + 40].fill(0xff);
    fs::write(&path, &broken).expect("written");
    let again = build(&out, &[text(&path), "--json"]);
    assert_eq!((again.code, again.err.as_str()), (Some(0), ""));
    for member in ["outcome", "functions", "coverage", "index_size", "debug_size", "has_dwarf"] {
        let [first, again] = [&first[0], &again.images()[0]].map(|image| image[member].clone());
        assert_eq!(again, if member == "outcome" { "unchanged".into() } else { first }, "{member}");
    }
    let forced = build(&out, &[text(&path), "--json", "--force"]);
    assert!(!forced.images()[0]["partial"].as_array().expect("a list").is_empty(), "{}", forced.out);
    assert_eq!(forced.images()[0]["outcome"], "kept");
}

#[test]
fn every_input_of_a_listing_is_in_one_shard() {
    let root = folder();
    let whole = root.path().join("whole");
    let dsyms: Vec<PathBuf> = ["cxx", "lto", "icf", "objc", "outliner"].map(dsym).to_vec();
    let listing = root.path().join("listing");
    fs::write(&listing, dsyms.iter().map(|path| format!("{}\n", path.display())).collect::<String>())
        .expect("written");
    assert_eq!(build(&whole, &["--inputs-from", text(&listing)]).code, Some(0));
    assert!(names_in(&whole).len() >= 5);
    let (mut built, parts) = (Vec::new(), root.path().join("parts"));
    fs::write(&listing, dsyms.iter().map(|path| format!("{}\0", path.display())).collect::<String>())
        .expect("written");
    for shard in ["0/3", "1/3", "2/3"] {
        let out = parts.join(&shard[..1]);
        let done = build(&out, &["--inputs-from", text(&listing), "-0", "--shard", shard]);
        assert_eq!(done.code, Some(0), "{}", done.err);
        built.extend(names_in(&out));
    }
    built.sort();
    assert_eq!(built, names_in(&whole));
    assert_eq!(build(&whole, &["--shard", "3/3", text(&dsyms[0])]).code, Some(2));
    assert_eq!(build(&whole, &["--inputs-from", "gone"]).code, Some(5));
    assert_eq!(build(&whole, &[]).code, Some(2), "an input or a listing is needed");
}

/// A library at `path` with these symbols, and with a build id if `id` is set.
fn library(path: &Path, symbols: Vec<ElfSymbol>, id: bool) -> String {
    let build_id = id.then(|| vec![7; 20]);
    fs::write(path, Elf { symbols, build_id, ..Elf::default() }.bytes()).expect("written");
    text(path).to_owned()
}

#[test]
fn a_file_with_nothing_to_answer_gets_an_index_only_if_that_is_wanted() {
    let (root, out) = (folder(), folder());
    let stripped = library(&root.path().join("stripped"), Vec::new(), true);
    for options in [&[][..], &["--isolate"]] {
        let refused = build(out.path(), &[&[&stripped[..], "--json"], options].concat());
        assert_eq!((refused.code, names_in(out.path()).len()), (Some(3), 0), "{}", refused.err);
        let error = &refused.json()[0]["error"];
        assert_eq!(error["kind"], "not_found");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains("nothing to answer") && message.contains("--allow-empty"), "{message}");

        let wanted = build(out.path(), &[&[&stripped[..], "--allow-empty", "--force"], options].concat());
        assert_eq!((wanted.code, names_in(out.path()).len()), (Some(0), 1), "{}", wanted.err);
        assert!(wanted.err.contains("the index is empty"), "{}", wanted.err);
        // The index that exists is not one to keep, and not one that is right.
        let verified = symdex(["verify", text(&out.path().join(&names_in(out.path())[0]))]);
        assert_eq!(verified.code, Some(3), "{}", verified.err);
        assert!(verified.err.contains("the index is empty"), "{}", verified.err);
        assert_eq!(build(out.path(), &[&stripped]).code, Some(3));
        fs::remove_file(out.path().join(&names_in(out.path())[0])).expect("removed");
    }
    // Symbols outside of the code are something to answer, and --allow-empty does not hide that they are lost.
    let outside = vec![ElfSymbol::function("f", 0x9000, 0x10)];
    let outside = library(&root.path().join("outside"), outside, true);
    let refused = build(out.path(), &[&outside, "--allow-empty"]);
    assert_eq!((refused.code, names_in(out.path()).len()), (Some(6), 0), "{}", refused.err);
    assert!(refused.err.contains("outside of its executable sections"), "{}", refused.err);
}

#[test]
fn an_image_that_states_no_id_gets_that_of_the_command_line() {
    let root = folder();
    let function = || vec![ElfSymbol::function("f", 0x1000, 0x10)];
    let [one, other] = ["one", "other"].map(|name| library(&root.path().join(name), function(), false));
    let with_id = library(&root.path().join("with-id"), function(), true);
    let (id, own) = ("00112233-4455-6677-8899-aabbccddeeff", "07".repeat(20));
    for options in [&[][..], &["--isolate", "--verify"]] {
        let out = folder();
        let built = build(out.path(), &[&[&one[..], &with_id, "--id", id], options].concat());
        assert_eq!(built.code, Some(0), "{}", built.err);
        assert_eq!(names_in(out.path()), [format!("{}.symdex", id.replace('-', ""))]);
        let found = symdex(["lookup", text(out.path()), "--id", id, "0x1004"]).ok();
        assert!(found.contains("f + 0x4"), "{found}");
        // Two images cannot have one id, and a stated id counts.
        let several = build(out.path(), &[&[&one[..], &other, "--id", id], options].concat());
        assert_eq!(several.code, Some(2), "{}", several.err);
        assert!(several.err.contains("2 images of the inputs state no id"), "{}", several.err);
        let stated = build(out.path(), &[&[&one[..], &with_id, "--id", &own], options].concat());
        assert_eq!(stated.code, Some(0), "{}", stated.err);
        assert_eq!(names_in(out.path()).len(), 2);
    }
}

#[test]
fn an_image_without_code_lacks_nothing_and_proves_nothing() {
    let (root, out) = (folder(), folder());
    let resources = root.path().join("resources");
    fs::write(&resources, Elf { code: Some(0), is_unsized: true, ..Elf::default() }.bytes())
        .expect("written");
    let built = build(out.path(), &[text(&resources), "--verify"]);
    assert_eq!((built.code, names_in(out.path()).len()), (Some(0), 1), "{}", built.err);
    assert!(built.err.contains("the index is empty"), "{}", built.err);
    let index = out.path().join(&names_in(out.path())[0]);
    assert_eq!(symdex(["verify", text(&index)]).code, Some(0));
    let compared = symdex(["verify", text(&index), "--against", text(&resources)]);
    assert_eq!(compared.code, Some(1), "{}", compared.err);
    assert!(compared.out.contains("nothing was compared"), "{}{}", compared.out, compared.err);
}

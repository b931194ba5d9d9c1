//! The option `--store` of the commands.

mod common;

use std::path::Path;

use common::{CommandOutput, command, dsym, folder, names_in, symdex, symdex_on, testdata};

/// The id of the image of `inline-dwarf4.dSYM`, and its index in a new store below `root`.
fn build(root: &Path) -> String {
    let store = root.join("store");
    let built = symdex([
        "build".as_ref(),
        dsym("inline-dwarf4").as_os_str(),
        "--json".as_ref(),
        "--store".as_ref(),
        store.as_os_str(),
    ]);
    assert_eq!(built.code, Some(0), "{}", built.err);
    let [image] = &built.images()[..] else { panic!("more than one image: {}", built.out) };
    let id = image["id"].as_str().expect("an id").to_owned();
    let path = store.join(&id[..2]).join(format!("{id}.symdex"));
    assert_eq!(image["index"].as_str(), path.to_str());
    assert!(path.is_file());
    id
}

#[test]
fn every_command_reads_a_store_as_it_reads_the_index() {
    let root = folder();
    let id = build(root.path());
    let store = root.path().join("store");
    let index = store.join(&id[..2]).join(format!("{id}.symdex"));
    for (from_index, from_store) in [
        ("lookup {} 0x3cf --json", format!("lookup --store {{}} --id {id} 0x3cf --json")),
        ("lookup {} 0x3cf 0x3d0", format!("lookup --store {{}} --id {} 0x3cf 0x3d0", &id[..8])),
        ("atos -o {} -i -offset 0x3cf", format!("atos --store {{}} --id {id} -i -offset 0x3cf")),
        ("inspect {}", format!("inspect --store {{}} --id {id}")),
        ("inspect {} --json", format!("inspect --store {{}} --id {} --json", id.to_uppercase())),
        ("ids {}", "ids --store {}".to_owned()),
        ("ids {} --json", "ids --store {} --json".to_owned()),
    ] {
        let expected = symdex_on(&index, from_index).ok();
        assert!(!expected.is_empty());
        assert_eq!(symdex_on(&store, &from_store).ok(), expected, "{from_store}");
    }
}

#[test]
fn an_index_that_no_store_has_is_not_found() {
    let root = folder();
    build(root.path());
    let store = root.path().join("store");
    let missing = symdex_on(&store, "lookup --store {} --id 00000000000000000000000000000000 0x3cf");
    assert_eq!(missing.code, Some(3), "{}", missing.err);
    assert!(missing.err.contains("no index has an id that begins with 0000"), "{}", missing.err);
    let any = symdex_on(&store, "lookup --store {} 0x3cf");
    assert_eq!(any.code, Some(2), "{}", any.err);
    assert!(any.err.contains("choose an index of the store with --id"), "{}", any.err);
}

#[test]
fn an_index_is_put_into_the_folder_and_into_all_stores() {
    let root = folder();
    let [flat, near, far] = ["flat", "near", "far"].map(|name| root.path().join(name));
    let input = dsym("inline-dwarf4");
    let run = || {
        let mut run = command();
        run.arg("build").arg(&input).arg("--json").arg("-o").arg(&flat).arg("--store").arg(&near);
        CommandOutput::from(run.arg("--store").arg(&far).output().expect("the command starts"))
    };
    for outcome in ["written", "unchanged"] {
        let built = run();
        assert_eq!(built.code, Some(0), "{}", built.err);
        let image = &built.images()[0];
        let id = image["id"].as_str().expect("an id");
        let name = format!("{id}.symdex");
        let copies = [&near, &far].map(|store| store.join(&id[..2]).join(&name).display().to_string());
        assert_eq!(image["index"].as_str(), flat.join(&name).to_str());
        assert_eq!(
            (image["copies"].clone(), image["outcome"].as_str()),
            (copies.as_slice().into(), Some(outcome))
        );
        assert_eq!(names_in(&flat), [name]);
    }
}

#[test]
fn an_index_that_one_store_cannot_take_is_still_put_into_the_others() {
    let root = folder();
    let file = root.path().join("file");
    std::fs::write(&file, b"").expect("written");
    let mut run = command();
    run.arg("build").arg(dsym("inline-dwarf4")).arg("--store").arg(file.join("below"));
    let built = CommandOutput::from(run.arg("--store").arg(root.path().join("good")).output().expect("ran"));
    assert_eq!(built.code, Some(1), "{}", built.err);
    assert!(built.err.contains("below") && built.err.contains("cannot create the folder"), "{}", built.err);
    assert_eq!(names_in(&root.path().join("good")).len(), 1);
}

#[test]
fn the_environment_names_the_stores_if_the_command_line_does_not() {
    let root = folder();
    let (one, two) = (root.path().join("one"), root.path().join("two"));
    let input = testdata().join("demo");
    let both = format!("{} {}", one.display(), two.display());
    let build = |more: &[&str]| {
        let mut run = command();
        run.arg("build").arg(&input).args(more).env("SYMDEX_STORE", &both).current_dir(root.path());
        CommandOutput::from(run.output().expect("the command starts"))
    };
    assert_eq!(build(&[]).code, Some(0));
    assert!(!names_in(&one).is_empty() && names_in(&one) == names_in(&two));
    assert_eq!(build(&["-o", "three"]).code, Some(0));
    assert!(!names_in(&root.path().join("three")).is_empty());
    let crash = testdata().join("demo/demo.crash");
    let done = command().arg("symbolicate").arg(crash).env("SYMDEX_STORE", &both).output().expect("ran");
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn urls_with_secrets_are_refused_on_the_command_line_and_errors_say_what_is_accepted() {
    for (url, part) in [
        ("redis://:hunter2@host/0", "SYMDEX_REDIS_PASSWORD_FILE"),
        ("https://me:hunter2@host/x", "SYMDEX_STORE"),
        ("https://host/x?token=hunter2", "SYMDEX_STORE"),
        ("s3://key:hunter2@bucket/x", "AWS_SECRET_ACCESS_KEY"),
        ("ftp://host/x", "expected a path, dir:PATH, s3://"),
        ("s3://", "the bucket is missing"),
    ] {
        let refused = symdex(["ids", "--store", url]);
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        assert!(refused.err.contains(part) && !refused.err.contains("hunter2"), "{url}: {}", refused.err);
    }
    let wrong =
        command().args(["build", "x"]).env("SYMDEX_STORE", "ftp://me:hunter2@host").output().expect("ran");
    let text = String::from_utf8_lossy(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(2), "{text}");
    assert!(text.contains("SYMDEX_STORE") && !text.contains("hunter2"), "{text}");
}

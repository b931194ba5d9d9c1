//! Images without ids: which formats have them, and how they are matched by name.

use crate::common::APP;
use symdex::{Arch, Cause, Table};
use symdex_report::{
    Answer, AnsweredBy, Answers, Function, ImageOutcome, KnownImage, KnownImageMap, MatchedBy, Nearness,
    Options, Question, Report, ReportImage, Source, Unanswered, match_by_name, nearness, symbolicate,
};

fn known(name: &str, arch: &str, id: u8) -> KnownImage {
    KnownImage {
        name: name.to_owned(),
        arch: arch.to_owned(),
        id: format!("{id:032x}").parse().expect("an id"),
    }
}

fn image(name: &str, arch: &str) -> ReportImage {
    let mut image = ReportImage::default();
    (image.name, image.path, image.arch) = (name.to_owned(), format!("/opt/{name}"), Arch::from_name(arch));
    image
}

/// The image of [`image`], with the id of the app.
fn image_with_id(name: &str, arch: &str) -> ReportImage {
    let mut image = image(name, arch);
    image.id = APP.parse().ok();
    image
}

#[test]
fn the_only_image_of_a_name_is_matched() {
    let all = [known("libf.so", "arm64", 1), known("libg.so", "arm64", 2), known("libf.so", "arm", 3)];
    assert_eq!(match_by_name(&image("libf.so", "arm64"), &all), Ok(&all[0]));
    assert_eq!(match_by_name(&image("libf.so", "arm64e"), &all), Ok(&all[0]), "of one family");
    assert_eq!(match_by_name(&image("libf.so", "arm"), &all), Ok(&all[2]));
    assert_eq!(match_by_name(&image("libf.so", "x86_64"), &all), Err(Unanswered::Missing));
    assert_eq!(match_by_name(&image("f.so", "arm64"), &all), Err(Unanswered::Missing));
    let debug = [known("libf.so.debug", "arm64", 1), known("", "arm64", 2)];
    assert_eq!(match_by_name(&image("libf.so", "arm64"), &debug), Ok(&debug[0]));
    assert_eq!(match_by_name(&ReportImage::default(), &debug), Err(Unanswered::Missing));
    let mut in_package = image("libg.so", "arm64");
    in_package.path = "/data/base.apk!libg.so".to_owned();
    assert_eq!(match_by_name(&in_package, &all), Ok(&all[1]));
}

#[test]
fn several_images_of_a_name_are_ambiguous() {
    let all = [known("libf.so", "arm64", 2), known("libf.so", "arm64", 1), known("libf.so", "arm", 3)];
    let ambiguous = Err(Unanswered::ambiguous([&all[1], &all[0]]));
    assert_eq!(match_by_name(&image("libf.so", "arm64"), &all), ambiguous);
    // If the report does not state the architecture, all images of the name count.
    let of_any = match_by_name(&image("libf.so", "unknown"), &all);
    assert!(matches!(&of_any, Err(Unanswered::Ambiguous { count: 3, .. })), "{of_any:?}");
    let Err(reason) = match_by_name(&image("libf.so", "arm64"), &all) else { panic!("ambiguous") };
    assert_eq!(
        reason.reason(),
        "the report does not say which of these it is: libf.so arm64 00000000-0000-0000-0000-000000000001, \
         libf.so arm64 00000000-0000-0000-0000-000000000002"
    );
    // The same build in two folders is one image.
    let twice = [all[0].clone(), all[0].clone()];
    assert_eq!(match_by_name(&image("libf.so", "arm64"), &twice), Ok(&all[0]));
}

#[test]
fn an_ambiguous_image_lists_few_of_many_builds() {
    let all: Vec<_> = (0..200).map(|id| known("App", "arm64", id)).collect();
    let Err(ambiguous) = match_by_name(&image("App", "arm64"), &all) else { panic!("ambiguous") };
    let Unanswered::Ambiguous { candidates, count } = &ambiguous else { panic!("{ambiguous}") };
    assert_eq!((&candidates[..], *count), (&all[..5], 200));
    let reason = ambiguous.reason();
    assert!(reason.ends_with("App arm64 00000000-0000-0000-0000-000000000004, 195 more"), "{reason}");
}

#[test]
fn the_three_nearest_images_share_the_name_or_the_id() {
    let app: u8 = 7;
    let mut all: Vec<_> = (1..6).rev().map(|id| known("App.debug", "arm64", id)).collect();
    all.extend([known("Kit", "arm64", 9), known("Other", "x86_64", app), known("App", "arm64", app)]);
    let mut missing = image("App", "arm64");
    let all_twice = [&all[..], &all[..]].concat();
    let map = KnownImageMap::new(&all_twice);
    let near =
        |ids: &[u8], nearness| -> Vec<_> { ids.iter().map(|id| (nearness, format!("{id:032x}"))).collect() };
    let nearest = |missing: &ReportImage| -> Vec<_> {
        map.nearest(missing).into_iter().map(|(nearness, known)| (nearness, known.id.to_string())).collect()
    };
    assert_eq!(nearest(&missing), near(&[7, 1, 2], Nearness::SameName));
    missing.id = Some(known("", "", app).id);
    let mut expected = near(&[app], Nearness::OtherArch);
    expected.extend(near(&[1, 2], Nearness::OtherBuild));
    assert_eq!(nearest(&missing), expected);
    assert_eq!(nearest(&image("Nothing", "arm64")), []);
}

#[test]
fn an_image_with_an_id_is_never_matched_by_name() {
    let all = [known("App", "arm64", 1)];
    let with_id = image_with_id("App", "arm64");
    assert_eq!(match_by_name(&with_id, &all), Err(Unanswered::Missing));
    assert_eq!(nearness(&with_id, &all[0]), Some(Nearness::OtherBuild));
    assert_eq!(nearness(&image("App", "arm64"), &all[0]), Some(Nearness::SameName));
    assert_eq!(nearness(&image("App", "x86_64"), &all[0]), Some(Nearness::SameNameOtherArch));
    assert_eq!(nearness(&image_with_id("App", "x86_64"), &all[0]), Some(Nearness::OtherBuildAndArch));
}

/// A report of each format that can lack an id. Each has one frame in `App`, at offset 0x10 of the image or of its
/// file.
fn without_ids() -> Vec<(&'static str, String)> {
    let ips = r#"{"bug_type":"309"}
{"threads":[{"frames":[{"imageOffset":16,"imageIndex":0}]}],
"usedImages":[{"source":"P","base":4096,"size":4096,"name":"App"UUID}]}
"#;
    vec![
        (
            "crash without images",
            "Thread 0 Crashed:\n0   App   0x0000000104a34010 0x104a34000 + 16\n".to_owned(),
        ),
        ("crash, by name", "Thread 0 Crashed:\n0   App   0x0000000104a34010 App + 16\n".to_owned()),
        (
            "crash with an unknown id",
            "Thread 0 Crashed:\n0   App   0x0000000104a34010 0x104a34000 + 16\n\nBinary Images:\n\
             0x104a34000 - 0x104a37fff App arm64  <???> /var/App\n"
                .to_owned(),
        ),
        ("ips", ips.replace("UUID", "")),
        ("ips with zeros", ips.replace("UUID", r#","uuid":"00000000-0000-0000-0000-000000000000""#)),
        (
            "sample",
            "Call graph:\n    12 Thread_1\n      12 ???  (in App)  load address 0x104a34000 + 0x10  \
             [0x104a34010]\n"
                .to_owned(),
        ),
        (
            "kscrash",
            r#"{"crash":{"threads":[{"backtrace":{"contents":[{"instruction_addr":4112}]}}]},
               "binary_images":[{"image_addr":4096,"image_size":4096,"name":"/var/App"}]}"#
                .to_owned(),
        ),
        (
            "sentry",
            r#"{"debug_meta":{"images":[{"code_file":"/var/App","image_addr":"0x1000","image_size":4096}]},
               "threads":{"values":[{"stacktrace":{"frames":[{"instruction_addr":"0x1010"}]}}]}}"#
                .to_owned(),
        ),
        (
            "metrickit",
            r#"{"callStackTree":{"callStackPerThread":true,"callStacks":[{"callStackRootFrames":[
               {"binaryName":"App","offsetIntoBinaryTextSegment":16,"address":4112}]}]}}"#
                .to_owned(),
        ),
        ("tombstone", "backtrace:\n      #00 pc 00000010  /data/App\n".to_owned()),
        ("asan", "==1==ERROR: AddressSanitizer: SEGV on x\n    #0 0x55d1  (/opt/App+0x10)\n".to_owned()),
        ("list", "App 0x104a34010 0x104a34000\n".to_owned()),
    ]
}

/// A source that matches every image by its name.
struct ByName(Vec<(ReportImage, Vec<u64>)>);

impl ByName {
    fn answer_one(&mut self, question: &Question<'_>) -> Result<Answers, Unanswered> {
        let Question { image, offsets, .. } = *question;
        match_by_name(image, &[known("App", "arm64", 1)])?;
        self.0.push((image.clone(), offsets.iter().map(|offset| offset.0).collect()));
        let function = Function::new(Table::SymbolTable, Some(b"f"), None);
        Ok(vec![Answer::functions(vec![function]); offsets.len()].into())
    }
}

impl Source for ByName {
    fn answer(&mut self, questions: &[Question<'_>]) -> Vec<Result<Answers, Unanswered>> {
        questions.iter().map(|question| self.answer_one(question)).collect()
    }
}

#[test]
fn images_without_ids_are_matched_by_name_in_every_format() {
    for (what, text) in without_ids() {
        let report = Report::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut source = ByName(Vec::new());
        let symbolicated = symbolicate(&report, &mut source, &Options::new());
        let [(image, offsets)] = &source.0[..] else { panic!("{what}: {} asked", source.0.len()) };
        assert_eq!((&image.id, image.file_name()), (&None, "App"), "{what}");
        assert!(matches!(offsets[..], [0x10 | 0xf]), "{what}: {offsets:?}");
        assert_eq!(symbolicated.matched_by(0, 0), Some(MatchedBy::Name), "{what}");
        let view = serde_json::to_value(symbolicated.view(&[])).expect("JSON");
        assert_eq!(view["threads"][0]["frames"][0]["matched_by"], "name", "{what}");
    }
}

#[test]
fn a_source_that_matches_by_id_leaves_images_without_ids() {
    for (what, text) in without_ids() {
        let report = Report::parse(text.as_bytes()).expect("a report");
        let symbolicated =
            symbolicate(&report, &mut crate::common::App { asked: Vec::new() }, &Options::new());
        assert!(symbolicated.images().contains(&ImageOutcome::NoId), "{what}");
        assert_eq!(symbolicated.matched_by(0, 0), None, "{what}");
        let mut out = Vec::new();
        symbolicated.write(&mut out).expect("memory");
        assert_eq!(out, text.as_bytes(), "{what}");
    }
}

#[test]
fn build_ids_of_tombstones_are_read_from_other_lines() {
    let id = "53a1a7c9c7d64427afe9baeb4b654b91";
    let ids = |lines: &str| {
        let text = format!("backtrace:\n    #00 pc 00000010  /data/App\n\n{lines}");
        let report = Report::parse(text.as_bytes()).expect("a tombstone");
        report.images()[0].id.as_ref().map(ToString::to_string)
    };
    let of_xcrash = format!("build id:\n    /data/App (BuildId: {id}. FileSize: 12. MD5: 29)\n");
    let of_map = format!("memory map:\n    e1f00000-e1f0ffff r-x  0  10000  /data/App (BuildId: {id})\n");
    assert_eq!(ids(&of_xcrash).as_deref(), Some(id));
    assert_eq!(ids(&of_map).as_deref(), Some(id));
    assert_eq!(ids(&(of_xcrash.clone() + &of_map)).as_deref(), Some(id));
    assert_eq!(ids(&(of_xcrash + &of_map.replace(id, "0a1b2c3d"))), None, "two builds of one path");
    assert_eq!(ids(&of_map.replace("/data/App", "/data/Other")), None);
}

#[test]
fn the_architecture_of_an_excerpt_comes_from_the_registers() {
    let text = "Thread 0 Crashed:\n0   App   0x0000000104a34010 0x104a34000 + 16\n\n\
                Thread 0 crashed with X86 Thread State (64-bit):\n  rax: 0xa5ff0907b303003b\n";
    let report = Report::parse(text.as_bytes()).expect("a stack");
    assert_eq!(report.images()[0].arch.as_ref().map(|arch| arch.name.as_str()), Some("x86_64"));
}

/// The line of a frame with a name does not state the load address.
#[test]
fn frames_of_an_excerpt_share_the_load_address_of_their_image() {
    let text = "Thread 0 Crashed:\n0   App   0x0000000104a34010 main + 16\n\
                1   App   0x0000000104a34020 0x104a34000 + 32\n\
                2   Other   0x0000000204a34020 0x204a34000 + 32\n3   Other   0x0000000304a34020 0x304a34000 + 32\n\
                4   Other   0x0000000304a34020 f + 32\n";
    let report = Report::parse(text.as_bytes()).expect("a stack");
    let images: Vec<_> = report.threads()[0].frames.iter().map(|frame| frame.image()).collect();
    // Two images have the name `Other`.
    assert_eq!(images, [Some(0), Some(0), Some(1), Some(2), None]);
}

/// A source with a damaged index and a second, intact one.
fn second(question: &Question<'_>) -> Result<Answers, Unanswered> {
    let Question { offsets, .. } = *question;
    let passed_over = vec![Unanswered::Failed(Cause::Damaged, "a: checksum".to_owned())];
    let mut by = AnsweredBy::new(MatchedBy::Id);
    (by.source, by.passed_over) = (Some("b".to_owned()), passed_over);
    Ok(Answers { answers: vec![Answer::NoFunction; offsets.len()], by })
}

#[test]
fn an_image_with_a_damaged_index_is_malformed_even_if_another_one_answers() {
    let text = crate::common::crash("0   App   0x0000000100001010 0x100000000 + 4112", "arm64");
    let report = Report::parse(text.as_bytes()).expect("a report");
    let symbolicated = symbolicate(&report, &mut second, &Options::new());
    let view = serde_json::to_value(symbolicated.view(&[])).expect("JSON");
    let image = &view["images"][0];
    assert_eq!((&image["status"], &image["source"]), (&"damaged".into(), &"b".into()));
    assert_eq!(image["reason"], "a: checksum; answered from b");
    assert_eq!(view["threads"][0]["frames"][0]["status"], "missing_symbol");
}

/// Sentry's events state the build id of an ELF image as `code_id`, and its first 16 bytes as `debug_id`, in the order
/// of a GUID.
#[test]
fn an_elf_image_of_sentry_has_its_build_id_or_the_start_of_it() {
    let image = |members: &str| {
        let text = format!(
            r#"{{"debug_meta":{{"images":[{{"type":"elf","image_addr":"0x1000",{members}}}]}},"exception":
            {{"values":[{{"stacktrace":{{"frames":[{{"instruction_addr":"0x1010"}}]}}}}]}}}}"#
        );
        let report = Report::parse(text.as_bytes()).expect("a report");
        let image = &report.images()[0];
        (image.id.as_ref().map(ToString::to_string).unwrap_or_default(), image.is_id_cut)
    };
    let debug_id = r#""debug_id":"33221100-5544-7766-8899-aabbccddeeff""#;
    let code_id = r#""code_id":"00112233445566778899aabbccddeeff01020304""#;
    let start = "00112233445566778899aabbccddeeff";
    assert_eq!(image(&format!("{debug_id},{code_id}")), (format!("{start}01020304"), false));
    assert_eq!(image(debug_id), (start.to_owned(), true));
}

/// The index that `symdex import` makes of a symbol file for Windows has this id.
#[test]
fn a_module_of_windows_has_the_guid_of_its_debug_id() {
    let text = r#"{"system_info":{"os":"Windows NT","cpu_arch":"amd64"},"modules":[{"base_addr":"0x140000000",
        "end_addr":"0x140008000","filename":"app.exe","code_id":"5cde14e98000",
        "debug_id":"33221100554477668899AABBCCDDEEFF1"}],"threads":[{"frames":[
        {"module":"app.exe","module_offset":"0x3d0","offset":"0x1400003d0"}]}]}"#;
    let report = Report::parse(text.as_bytes()).expect("a report");
    let image = &report.images()[0];
    let id = image.id.as_ref().map(ToString::to_string);
    assert_eq!(id.as_deref(), Some("33221100554477668899aabbccddeeff"));
    assert!(!image.is_id_cut);
}

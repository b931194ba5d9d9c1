//! Properties of the public types.

use symdex_report::{
    Answers, Error, ImageOutcome, KnownImage, Options, Question, Report, ReportView, Resolution,
    Symbolicated, Unanswered, Unresolved, symbolicate,
};

#[test]
fn reports_and_answers_can_be_shared_between_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Report<'_>>();
    is_send_and_sync::<Symbolicated<'_, '_>>();
    is_send_and_sync::<Resolution<'_>>();
    is_send_and_sync::<ReportView<'_>>();
    is_send_and_sync::<Answers>();
    is_send_and_sync::<ImageOutcome>();
    is_send_and_sync::<KnownImage>();
    is_send_and_sync::<Options>();
    is_send_and_sync::<Error>();
    is_send_and_sync::<Unanswered>();
    is_send_and_sync::<Unresolved>();
}

/// A source that has no index.
fn empty(_: &Question<'_>) -> Result<Answers, Unanswered> {
    Err(Unanswered::Missing)
}

#[test]
fn a_source_can_be_a_trait_object() {
    let report = Report::parse(b"App 0x1010 0x1000 6dcd4e9dd3b13a0e8dff6a5a4be1b1b0").expect("a list");
    let source: &mut dyn symdex_report::Source = &mut empty;
    let symbolicated = symbolicate(&report, source, &Options::new());
    assert_eq!(symbolicated.unresolved(0, 0), Some(&Unresolved::NoAnswer));
}

#[test]
fn the_debug_form_of_a_report_leaves_its_text_out() {
    let report = Report::parse(b"App 0x1010 0x1000 some words").expect("a list");
    let debug = format!("{report:?}");
    assert!(debug.contains("address-list") && !debug.contains("some words"), "{debug}");
    let symbolicated = symbolicate(&report, &mut empty, &Options::new());
    for debug in [format!("{symbolicated:?}"), format!("{:?}", symbolicated.view(&[]))] {
        assert!(debug.contains("App") && !debug.contains("some words"), "{debug}");
    }
}

#[test]
fn the_reason_of_an_unanswered_image_is_its_error_text() {
    let why = Unanswered::other_arch("arm64");
    assert_eq!(why.to_string(), "its index is for arm64");
}

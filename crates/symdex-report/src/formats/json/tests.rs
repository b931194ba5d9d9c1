use super::parser::MAX_DEPTH;
use super::*;

fn text(value: Option<Value<'_>>) -> String {
    value.and_then(Value::text).expect("a string").into_owned()
}

#[test]
fn values_have_spans() {
    let source = br#" {"a" : [1, {"b":"x\"\u00e4"}, []], "c":{}, "d":-1.5e3 , "a\/b": null } tail"#;
    let json = Json::parse(source, 0).expect("JSON");
    let root = json.root();
    assert_eq!(&source[json.end()..], b" tail");
    let array: Vec<_> = root.get("a").expect("a").elements().collect();
    assert_eq!(array.len(), 3);
    assert_eq!(array[0].number(), Some(1));
    assert_eq!(text(array[1].get("b")), "x\"ä");
    assert_eq!(array[2].bytes(), b"[]");
    assert_eq!(root.get("c").expect("c").members().count(), 0);
    assert_eq!(root.get("d").expect("d").bytes(), b"-1.5e3");
    assert_eq!(root.get("d").expect("d").number(), None);
    assert_eq!(root.members().count(), 4);
    assert!(root.get("b").is_none() && array[0].get("b").is_none());
}

#[test]
fn integers_are_read_in_each_way_to_write_them() {
    let number = |text: &str| Json::parse(text.as_bytes(), 0).expect("JSON").root().number();
    for text in ["16", "16.0", "16.000", "1.6e1", "1.6E+1", "\"16\"", "\"16.0\"", "\"0x10\""] {
        assert_eq!(number(text), Some(16), "{text}");
    }
    assert_eq!(number("18446744073709551615"), Some(u64::MAX));
    assert_eq!(number("4294967296.0"), Some(1 << 32));
    for text in ["9007199254740991.0", "9007199254740991e0"] {
        assert_eq!(number(text), Some((1 << 53) - 1), "{text}");
    }
    for text in [
        "16.5",
        "-16",
        "-16.0",
        "1e30",
        "18446744073709551616",
        "null",
        "true",
        "[16]",
        "\"\"",
        "\"sixteen\"",
        "\"-1\"",
        "\"inf\"",
        "inf",
        "\".5\"",
        "\"0x\"",
        "\"0x+1\"",
        "\" 16\"",
        "16.00000000000000001",
        "9007199254740992.0",
        "9007199254740993.0",
        "9007199254740993e0",
        "9007199254740993.0e1",
    ] {
        assert_eq!(number(text), None, "{text}");
    }
}

#[test]
fn text_after_the_document_is_measured() {
    let rest = |text: &[u8]| Json::parse(text, 0).expect("JSON").rest();
    assert_eq!((rest(b"{} \n\0\n"), rest(b"{}\n{\"a\":1}"), rest(b"{}x\n")), (0, 7, 2));
}

#[test]
fn cut_or_invalid_json_is_an_error_with_its_position() {
    let source = br#"{"a":[1,{"b":"x\"y"},[]],"c":{},"d":true}"#;
    for cut in 0..source.len() {
        assert!(Json::parse(&source[..cut], 0).is_err(), "{cut}");
    }
    for wrong in ["{1:2}", "[1 2]", "[1,]", "{\"a\" 1}", "[}", "{\"a\":1]", ",", "\"\\\""] {
        assert!(Json::parse(wrong.as_bytes(), 0).is_err(), "{wrong}");
    }
    let error = Json::parse(b"[1 2]", 0).err();
    let what = "expected a comma or the end of an object or array";
    assert_eq!(error, Some(Error::Malformed { what, at: 3 }));
}

#[test]
fn nesting_does_not_recurse() {
    let depth = MAX_DEPTH;
    let source = "[".repeat(depth) + &"]".repeat(depth);
    let json = Json::parse(source.as_bytes(), 0).expect("JSON");
    assert_eq!(json.root().span(), 0..2 * depth);
    let deeper = format!("[{source}]");
    let error = Error::Malformed { what: "objects and arrays nested too deep", at: depth };
    assert_eq!(Json::parse(deeper.as_bytes(), 0).err(), Some(error));
}

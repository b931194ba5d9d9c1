//! Symbol maps (`.bcsymbolmap`).

use symdex_build::SymbolMap;

use crate::input::choice;

pub fn run(data: &[u8]) {
    let (kind, text) = choice(data);
    let version = if kind % 2 == 0 { &b"BCSymbolMap Version: 2.0\n"[..] } else { b"" };
    let text = [version, text].concat();
    let Ok(map) = SymbolMap::parse(text.clone()) else { return };
    for line in (0..=text.len() / 2).chain([usize::MAX]).take(200) {
        let hidden = format!("__hidden#{line}_").into_bytes();
        let name = map.resolve(&hidden);
        assert!(name == hidden || text.windows(name.len()).any(|part| part == name), "a name from elsewhere");
        assert!(!map.resolve_symbol(&hidden).is_empty());
    }
    // A name that is not hidden stays, whatever it is.
    let is_hidden = text.starts_with(b"__hidden#");
    assert!(is_hidden || map.resolve(&text) == text);
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let text = "_main\n-[Cart add:]\r\n\u{1}_plain\n\n_last";
    vec![format!("0{text}").into(), format!("1BCSymbolMap Version: 2.0\n{text}").into(), b"1other".to_vec()]
}

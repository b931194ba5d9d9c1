//! What an index says about an offset that the answers do not have.

use anyhow::Result;
use symdex::{ImageOffset, Index, LinePolicy, Scratch};

/// What explains a difference between two answers.
#[derive(Default)]
pub struct Facts {
    /// Whether the offset is in an executable section.
    pub is_code: bool,
    /// The names of the functions as wholesym's demanglers write them, innermost first.
    pub names: Vec<Option<String>>,
}

impl Facts {
    /// The facts of each offset.
    ///
    /// # Errors
    /// The index is damaged.
    pub fn of<B: AsRef<[u8]>>(index: &Index<B>, offsets: &[u64]) -> Result<Vec<Self>> {
        let is_code =
            |at| index.metadata().executable.iter().any(|(start, end)| (*start..*end).contains(&at));
        let of = |at: &u64| Self { is_code: is_code(*at), names: Vec::new() };
        let mut all: Vec<_> = offsets.iter().map(of).collect();
        let offsets: Vec<_> = offsets.iter().copied().map(ImageOffset).collect();
        let mut damage = None;
        index.lookup_many(&offsets, LinePolicy::Exact, &mut Scratch::default(), |at, found| match found {
            Ok(Some(frames)) => {
                all[at].names = frames.iter().map(|frame| frame.name.map(demangled)).collect();
            }
            Ok(None) => {}
            Err(error) => damage = Some(error),
        });
        damage.map_or(Ok(all), |error| Err(error.into()))
    }
}

/// `name` as wholesym writes it: by rustc-demangle, then by cpp_demangle, otherwise without the first underscore.
fn demangled(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    if let Ok(name) = rustc_demangle::try_demangle(&name) {
        return format!("{name:#}");
    }
    let Some(rest) = name.strip_prefix('_') else { return name.into_owned() };
    let options = cpp_demangle::DemangleOptions::default().no_return_type();
    let symbol = cpp_demangle::Symbol::new(name.as_bytes()).ok();
    symbol.and_then(|symbol| symbol.demangle(&options).ok()).unwrap_or_else(|| rest.to_owned())
}

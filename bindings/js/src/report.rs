//! Reports, answered from open indexes.

use serde::{Deserialize, Serialize};
use symdex::{Cause, ImageId, LinePolicy, Scratch};
use symdex_report::{
    Addresses, Answers, GatheredAnswers, KnownImage, MatchedBy, Options, OutputFormat, Question, Report,
    ReportImage, Source, SourceAnswers, Unanswered, answer_from_index, match_by_name, symbolicate,
};

use crate::failure::Failure;
use crate::indexes::{Indexes, OpenIndex};

/// The options of `symbolicate` and `neededImages`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct Request {
    /// The numbers of the indexes.
    indexes: Vec<u32>,
    format: OutputFormat,
    lines: LinePolicy,
    addresses: Addresses,
    inlines: bool,
    demangle: bool,
    only_missing: bool,
    match_by_name: bool,
    /// Names of images, and the id of the index that answers for each.
    assume: Vec<(String, String)>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            indexes: Vec::new(),
            format: OutputFormat::Json,
            lines: LinePolicy::default(),
            addresses: Addresses::default(),
            inlines: true,
            demangle: true,
            only_missing: false,
            match_by_name: false,
            assume: Vec::new(),
        }
    }
}

impl Request {
    fn options(&self) -> Options {
        Options::new()
            .lines(self.lines)
            .addresses(self.addresses)
            .inlines(self.inlines)
            .demangle(self.demangle)
            .only_missing(self.only_missing)
            .output(self.format)
    }
}

/// The report with the answers of its indexes, in the format that the request names.
///
/// # Errors
///
/// [`Failure`] if the report or the request cannot be read.
pub(crate) fn symbolicated(request: &[u8], report: &[u8], indexes: &Indexes) -> Result<Vec<u8>, Failure> {
    let request: Request = serde_json::from_slice(request)?;
    let report = Report::parse(report)?;
    let open: Vec<_> = request.indexes.iter().filter_map(|number| indexes.get(*number)).collect();
    let known: Vec<_> = open.iter().map(|index| index.known()).collect();
    let mut source = IndexList { request: &request, open: &open, known: &known, scratch: Scratch::default() };
    let symbolicated = symbolicate(&report, &mut source, &request.options());
    let mut out = Vec::new();
    // Writing to memory does not fail.
    match request.format {
        OutputFormat::Native => symbolicated.write(&mut out),
        OutputFormat::Text => symbolicated.write_text(&mut out),
        OutputFormat::Json => serde_json::to_writer(&mut out, &symbolicated.view(&known)).map_err(Into::into),
    }
    .map_err(|error| Failure { kind: Cause::Usage, message: error.to_string() })?;
    Ok(out)
}

/// An image that frames of a report lie in.
#[derive(Serialize)]
struct NeededImage {
    name: String,
    path: String,
    id: Option<String>,
    is_id_cut: bool,
    arch: Option<String>,
    is_app: bool,
}

impl From<&ReportImage> for NeededImage {
    fn from(image: &ReportImage) -> Self {
        Self {
            name: image.name.clone(),
            path: image.path.clone(),
            id: image.id.as_ref().map(ToString::to_string),
            is_id_cut: image.is_id_cut,
            arch: image.arch.as_ref().map(|arch| arch.name.clone()),
            is_app: image.is_app(),
        }
    }
}

/// The images that the report needs indexes of, as JSON.
///
/// # Errors
///
/// [`Failure`] if the report or the request cannot be read.
pub(crate) fn needed_images(request: &[u8], report: &[u8]) -> Result<Vec<u8>, Failure> {
    let request: Request = serde_json::from_slice(request)?;
    let report = Report::parse(report)?;
    let mut needed: Vec<NeededImage> = Vec::new();
    let mut source = |question: &Question<'_>| -> Result<Answers, Unanswered> {
        needed.push(question.image.into());
        Err(Unanswered::Missing)
    };
    symbolicate(&report, &mut source, &request.options());
    Ok(serde_json::to_vec(&needed)?)
}

/// Answers from a list of open indexes.
struct IndexList<'a> {
    request: &'a Request,
    open: &'a [&'a OpenIndex],
    /// The image of each open index.
    known: &'a [KnownImage],
    scratch: Scratch,
}

impl Source for IndexList<'_> {
    fn answer(&mut self, questions: &[Question<'_>]) -> Vec<Result<Answers, Unanswered>> {
        questions.iter().map(|question| self.answer_one(question)).collect()
    }
}

impl IndexList<'_> {
    fn answer_one(&mut self, question: &Question<'_>) -> Result<Answers, Unanswered> {
        let (id, matched) = self.wanted(question.image)?;
        let mut gathered = GatheredAnswers::default();
        for open in self.open.iter().filter(|open| *open.index.id() == id) {
            let (source, grade) = (open.name.clone(), open.index.metadata().grade());
            if gathered.lacks(grade) {
                let answers = answer_from_index(&open.index, question, &mut self.scratch);
                let failures = Vec::new();
                gathered.add(answers.map(|answers| SourceAnswers { answers, source, grade, failures }));
            }
        }
        gathered.finish(matched)
    }

    /// The id of the index that may answer for `image`, and how it was chosen.
    fn wanted(&self, image: &ReportImage) -> Result<(ImageId, MatchedBy), Unanswered> {
        let assumed = self.request.assume.iter().filter(|(name, _)| *name == image.name);
        let assumed = assumed.filter_map(|(_, id)| id.parse::<ImageId>().ok()).next();
        match (&image.id, assumed) {
            (Some(id), Some(assumed)) if *id == assumed => Ok((assumed, MatchedBy::Id)),
            (_, Some(assumed)) => Ok((assumed, MatchedBy::Assumed)),
            (Some(start), None) if image.is_id_cut => Ok((self.whole_id(image, start)?, MatchedBy::Id)),
            (Some(id), None) => Ok((id.clone(), MatchedBy::Id)),
            (None, None) if self.request.match_by_name => {
                Ok((match_by_name(image, self.known)?.id.clone(), MatchedBy::Name))
            }
            (None, None) => Err(Unanswered::Missing),
        }
    }

    /// The one id that begins with `start`.
    fn whole_id(&self, image: &ReportImage, start: &ImageId) -> Result<ImageId, Unanswered> {
        let begins = |known: &&KnownImage| known.id.as_bytes().starts_with(start.as_bytes());
        let mut candidates: Vec<_> =
            self.known.iter().filter(begins).filter(|known| known.fits(image)).collect();
        candidates.sort();
        candidates.dedup_by(|one, other| one.id == other.id);
        match candidates[..] {
            [] => Ok(start.clone()),
            [one] => Ok(one.id.clone()),
            _ => Err(Unanswered::ambiguous(candidates)),
        }
    }
}

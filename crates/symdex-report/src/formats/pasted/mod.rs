//! Reports as people paste them: quoted, with times of a log before each line, folded by a web page, in a JSON document
//! or its strings, cut.
//!
//! A text is read as it is. If its frames are then in no image with an id, or there are none, it is read again without
//! what can stand around a report. A [`Layer`] leaves out one such thing, and several can lie on each other. The
//! reading with the most frames in images with ids counts. The formats know nothing of layers.

mod characters;
mod document;
mod layer;
mod prefix;

use crate::engine::images::ImageMap;
use crate::error::Error;
use crate::formats::format::{Format, FormatKind};
use crate::report::{Parsed, Report};
use crate::text::is_object;
pub(crate) use layer::Layer;

/// How many readings of a text are tried.
const MAX_READINGS: usize = 40;
/// How much memory the layers of a text may take together: a part in proportion to the text, and one for short texts.
const ROOM_PER_BYTE: usize = 4;
const MIN_ROOM: usize = 4 << 10;
/// How many frames are looked at to decide whether a text is read well.
const FIRST_FRAMES: usize = 32;
/// How many frames and images of two readings are compared. They are far below the limits of reports, which depend on
/// the size of the text: a reading of a shorter text would have fewer.
const COMPARED: usize = 128;
/// Layers are first searched in so many bytes of the start of a longer text, and as many of its end.
const SAMPLE: usize = 32 << 10;

/// Why a report that is cut cannot be read. The position follows.
const CUT: &str = "its frames or its list of images are missing, because it is cut (copy all of it)";

/// A text as one format reads it.
pub(crate) struct Reading {
    /// The position of the format in the table of formats.
    pub(crate) format: usize,
    pub(crate) parsed: Parsed,
    /// The layers, from the outermost.
    pub(crate) layers: Vec<Layer>,
}

/// Reads a text as it is. Returns the position of its format in the table of formats, and the report.
pub(crate) type Read = fn(&[u8]) -> Result<(usize, Parsed), Error>;

/// Reads texts as formats do.
pub(crate) struct Reader<'f> {
    pub(crate) formats: &'f [Format],
    pub(crate) read: Read,
}

/// The best layers that were found, and the [`worth`] of the text within them. The report itself is read again, so that
/// only one is in memory at a time.
struct Best {
    worth: Worth,
    layers: Vec<Layer>,
}

impl Reader<'_> {
    /// Reads `text`.
    ///
    /// # Errors
    ///
    /// Why the whole text, as it is, cannot be read.
    pub(crate) fn read(&self, text: &[u8]) -> Result<Reading, Error> {
        if certain(text).is_none()
            && let Ok((format, parsed)) = (self.read)(text)
            && (self.is_good(text, format, &parsed) || self.is_plain(text, format))
        {
            return Ok(Reading { format, parsed, layers: Vec::new() });
        }
        let layers = self.search(text, &mut MAX_READINGS.clone(), room(text), true)?.layers;
        let (format, parsed) = (self.read)(layers.last().map_or(text, |layer| &layer.text))?;
        Ok(Reading { format, parsed, layers })
    }

    /// The best layers of `text`, which take at most `room` bytes, and may be prefixes of lines if `has_prefixes`.
    /// `left` readings are tried.
    fn search(&self, text: &[u8], left: &mut usize, room: usize, has_prefixes: bool) -> Result<Best, Error> {
        *left = left.saturating_sub(1);
        if let Some((layer, rest)) = certain(text).and_then(|layer| layer.fit(room))
            && let Ok(best) = self.search(&layer.text, left, rest, has_prefixes)
        {
            return Ok(best.within(layer));
        }
        let mut is_of_strings = false;
        let mut best = match (self.read)(text) {
            Ok((format, parsed)) => {
                let worth = worth(&parsed, COMPARED);
                if self.is_good(text, format, &parsed) {
                    return Ok(Best { worth, layers: Vec::new() });
                }
                is_of_strings = self.is_of_strings(text, format);
                Ok(Best { worth, layers: Vec::new() })
            }
            Err(error) => Err(error),
        };
        for (layer, is_prefix) in self.layers(text, has_prefixes) {
            if *left == 0 {
                break;
            }
            let Some((layer, rest)) = layer.fit(room) else { continue };
            let found = self.search(&layer.text, left, rest, has_prefixes && !is_prefix);
            let has_frames = found.as_ref().is_ok_and(|found| found.worth[2] != 0);
            if let (Err(Error::Malformed { what, .. }), true) = (&mut best, layer.cut != 0) {
                *what = CUT;
            }
            let Ok(found) = found else { continue };
            let is_better = match &best {
                Ok(best) => has_frames && (is_of_strings || found.worth > best.worth),
                Err(_) => has_frames || layer.cut == 0,
            };
            if is_better {
                (best, is_of_strings) = (Ok(found.within(layer)), false);
            }
        }
        best
    }

    /// What can be left out of `text`, each by itself, and whether it is a prefix of lines.
    fn layers<'t>(&'t self, text: &'t [u8], has_prefixes: bool) -> impl Iterator<Item = (Layer, bool)> + 't {
        let mut others: Vec<_> = characters::plain(text).into_iter().collect();
        if others.is_empty() {
            others = document::documents(text, self.formats);
        }
        let is_alone = others.is_empty();
        let shapes =
            if has_prefixes && !is_object(text) { prefix::shapes(text, self.formats) } else { Vec::new() };
        let is_last = is_alone && shapes.is_empty();
        let prefixes = shapes.into_iter().filter_map(|shape| Some((shape.strip(text)?, true)));
        let escaped = is_last.then(|| characters::with_line_ends(text)).flatten();
        others.into_iter().chain(escaped).map(|layer| (layer, false)).chain(prefixes)
    }

    /// Whether a reading of `text` needs no other: frames are in known images, or a format of JSON has frames, or is a
    /// whole document without escapes in its strings.
    fn is_good(&self, text: &[u8], format: usize, parsed: &Parsed) -> bool {
        let [in_known_images, _, frames, _] = worth(parsed, FIRST_FRAMES);
        let is_json = self.formats[format].kind() == FormatKind::Json;
        let is_whole = parsed.extent.bytes == 0;
        let has_no_other = || frames != 0 || (is_whole && memchr::memchr(b'\\', text).is_none());
        (in_known_images != 0 || (is_json && has_no_other())) && !self.is_of_strings(text, format)
    }

    /// Whether the start and the end of a long text, which a text format reads, have no layers.
    fn is_plain(&self, text: &[u8], format: usize) -> bool {
        if self.formats[format].kind() != FormatKind::Text || text.len() <= 2 * SAMPLE {
            return false;
        }
        let (start, end) = (&text[..SAMPLE], &text[text.len() - SAMPLE..]);
        let last_line = memchr::memrchr(b'\n', start).map_or(SAMPLE, |at| at + 1);
        let first_line = memchr::memchr(b'\n', end).map_or(0, |at| at + 1);
        let sample = [&start[..last_line], &end[first_line..]].concat();
        let found = self.search(&sample, &mut MAX_READINGS.clone(), room(&sample), true);
        found.is_ok_and(|found| found.layers.is_empty())
    }

    /// Whether a text format has found lines of its frames in the strings of a JSON document.
    fn is_of_strings(&self, text: &[u8], format: usize) -> bool {
        self.formats[format].kind() == FormatKind::Text && document::is_document(text)
    }
}

/// How much memory the layers of `text` may take.
fn room(text: &[u8]) -> usize {
    MIN_ROOM.saturating_add(text.len().saturating_mul(ROOM_PER_BYTE))
}

/// The layer that `text` certainly has: marks or indentation of all lines, or colours.
fn certain(text: &[u8]) -> Option<Layer> {
    prefix::without_marks(text).or_else(|| characters::without_colours(text))
}

impl Best {
    /// The same with `layer` around its layers.
    fn within(mut self, layer: Layer) -> Self {
        self.layers.insert(0, layer);
        self
    }
}

/// See [`worth`].
type Worth = [usize; 4];

/// How well a report is read: of its first `most` frames, the number in images with ids, the number in any image, and
/// the number of all. Of two readings with as many, the one with fewer images is better: a prefix is no part of names.
fn worth(parsed: &Parsed, most: usize) -> Worth {
    let map = ImageMap::new(&parsed.images);
    let mut worth = [0, 0, 0, usize::MAX - parsed.images.len().min(COMPARED)];
    for frame in parsed.threads.iter().flat_map(|thread| &thread.frames).take(most) {
        let image = map.of_frame(frame).and_then(|number| parsed.images.get(number));
        worth[0] += usize::from(image.is_some_and(|image| image.id.is_some()));
        worth[1] += usize::from(image.is_some());
        worth[2] += 1;
    }
    worth
}

impl Report<'_> {
    /// Whether parts of the report are missing at the start or the end of the text. What is whole is read, and
    /// [`unread_bytes`](Self::unread_bytes) counts the rest.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.layers.iter().any(|layer| layer.cut != 0)
    }
}

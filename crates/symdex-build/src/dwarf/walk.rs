//! A walk through the entries of a unit that stops at functions alone, or at what functions stand in.

use gimli::{Abbreviation, EntriesRaw, UnitOffset};

use super::attributes::Attributes;
use super::shapes::{Of, Passes, Shape, leb};
use super::units::UnitEntry;
use crate::image::Reader;

/// Goes through a unit's entries by their shapes, and by gimli where there is none or where something is wrong.
pub(crate) struct Walker<'a, 'd> {
    unit: &'a UnitEntry<'d>,
    /// All of the unit from its root entry on.
    bytes: &'d [u8],
    /// Where in it the next entry is.
    at: usize,
    /// The depth of the next entry.
    depth: isize,
    /// The lowest depth since the last stop.
    lowest: isize,
    /// Of the entries around the next one, whether they hide what they hold: a bit for each, the innermost is the lowest. Those at
    /// [`MAX_HIDING`] and below it are not among them.
    hides: u64,
    /// What the last function that states code says of itself, or the last scope.
    attributes: Attributes<'d>,
}

/// Where a walk stops.
pub(crate) struct Found {
    pub(crate) offset: UnitOffset,
    pub(crate) depth: isize,
    /// Entries at this depth and below have ended.
    pub(crate) ended: isize,
    pub(crate) is_subprogram: bool,
    pub(crate) is_namespace: bool,
    pub(crate) has_children: bool,
    pub(crate) states_code: bool,
    /// As [`Walker::hides`].
    hides: u64,
}

/// How deep subprograms without code can lie for the walk to pass them.
const MAX_HIDING: isize = 64;

impl Found {
    /// Whether between this entry and the one at `depth` that is around it there is a subprogram without code.
    pub(crate) fn is_hidden_from(&self, depth: isize) -> bool {
        let between = self.depth.min(MAX_HIDING) - 1 - depth.max(-1);
        between > 0 && self.hides << (MAX_HIDING - between) != 0
    }
}

impl<'a, 'd> Walker<'a, 'd> {
    /// Before the root entry.
    pub(crate) fn new(unit: &'a UnitEntry<'d>) -> gimli::Result<Self> {
        let header = &unit.unit.header;
        let bytes = header.range_from(header.root_offset()..)?.slice();
        Ok(Self { unit, bytes, at: 0, depth: 0, lowest: 0, hides: 0, attributes: Attributes::default() })
    }

    /// What the last function that states code says of itself, or the last scope.
    pub(crate) fn attributes(&self) -> &Attributes<'d> {
        &self.attributes
    }

    /// The next subprogram or inlined subroutine that states code. Below depth [`MAX_HIDING`] subprograms that state none, but have
    /// children, are among them.
    pub(crate) fn next(&mut self) -> gimli::Result<Option<Found>> {
        let deep = |shape: &Shape, depth| shape.hides() && !(0..MAX_HIDING).contains(&depth);
        let stops = |shape: &Shape, depth| shape.states_code || deep(shape, depth);
        self.next_of(&self.unit.shapes.functions, stops, |shape| shape.states_code)
    }

    /// The next namespace, type or subprogram.
    pub(crate) fn next_in_scopes(&mut self) -> gimli::Result<Option<Found>> {
        let stops = |shape: &Shape, _| shape.is_scope_or_in_one();
        self.next_of(&self.unit.shapes.scopes, stops, Shape::is_scope)
    }

    /// The next entry that the walk stops at; all that are read are among them.
    fn next_of(
        &mut self,
        passes: &Passes,
        stops: impl Fn(&Shape, isize) -> bool,
        reads: impl Fn(&Shape) -> bool,
    ) -> gimli::Result<Option<Found>> {
        let shapes = &self.unit.shapes;
        loop {
            self.pass(passes);
            if self.at == self.bytes.len() {
                return Ok(None);
            }
            let (start, depth, hides) = (self.at, self.depth, self.hides);
            let code = leb(self.bytes, &mut self.at);
            if code == Some(0) {
                self.end_children();
                continue;
            }
            let unknown;
            let shape = match code.and_then(|code| shapes.get(code)) {
                Some(shape) => shape,
                None => {
                    unknown = Shape::unknown(self.entry(start)?.0);
                    &unknown
                }
            };
            if shape.has_children {
                self.begin_children(shape);
            }
            if reads(shape) {
                self.read(shape, start)?;
            } else {
                match shapes.behind(shape, self.bytes, self.at) {
                    Some(behind) => self.at = behind,
                    None => self.skip(start)?,
                }
                if !stops(shape, depth) {
                    continue;
                }
            }
            return Ok(Some(Found {
                offset: self.offset_of(start),
                depth,
                ended: std::mem::replace(&mut self.lowest, self.depth).min(depth),
                is_subprogram: shape.of == Of::Subprogram,
                is_namespace: shape.of == Of::Namespace,
                has_children: shape.has_children,
                states_code: shape.states_code,
                hides,
            }));
        }
    }

    /// Passes over the entries that the walk does not stop at, as far as nothing about them is uncommon. Most of a walk is spent
    /// here.
    fn pass(&mut self, passes: &Passes) {
        let (shapes, bytes) = (&self.unit.shapes, self.bytes);
        // What begins in it, and is passed by its size alone, ends in the unit.
        let sure = &bytes[..bytes.len().saturating_sub(passes.longest)];
        let Self { mut at, mut depth, mut lowest, mut hides, .. } = *self;
        while let Some(first) = sure.get(at)
            && (0..MAX_HIDING).contains(&depth)
        {
            let mut pass = passes.by_byte[usize::from(*first)];
            if pass.size != 0 {
                at += usize::from(pass.size);
            } else {
                let Some(odd) = shapes.pass(passes, bytes, at) else { break };
                (pass, at) = odd;
            }
            hides = (hides << 1 | u64::from(pass.hides)) >> pass.up;
            depth += 1 - isize::from(pass.up);
            lowest = lowest.min(depth);
        }
        (self.at, self.depth, self.lowest, self.hides) = (at, depth, lowest, hides);
    }

    /// Goes below the entry before, which `shape` is of.
    fn begin_children(&mut self, shape: &Shape) {
        if (0..MAX_HIDING).contains(&self.depth) {
            self.hides = self.hides << 1 | u64::from(shape.hides());
        }
        self.depth += 1;
    }

    fn end_children(&mut self) {
        self.depth -= 1;
        self.lowest = self.lowest.min(self.depth);
        if (0..MAX_HIDING).contains(&self.depth) {
            self.hides >>= 1;
        }
    }

    /// Reads the attributes that come next, of the entry at `start`.
    fn read(&mut self, shape: &Shape, start: usize) -> gimli::Result<()> {
        let steps = self.unit.shapes.steps(shape);
        if steps.and_then(|steps| self.attributes.read_steps(steps, self.bytes, &mut self.at)).is_none() {
            let (abbreviation, mut entries) = self.entry(start)?;
            self.attributes = Attributes::read(&mut entries, abbreviation.attributes())?;
            self.at = self.at_of(entries.next_offset());
        }
        Ok(())
    }

    /// Skips the entry at `start` as gimli does.
    #[cold]
    fn skip(&mut self, start: usize) -> gimli::Result<()> {
        let (abbreviation, mut entries) = self.entry(start)?;
        entries.skip_attributes(abbreviation.attributes())?;
        self.at = self.at_of(entries.next_offset());
        Ok(())
    }

    /// The entry at `start` as gimli sees it: its abbreviation, and a reader of its attributes.
    fn entry(&self, start: usize) -> gimli::Result<(&'a Abbreviation, EntriesRaw<'a, Reader<'d>>)> {
        let UnitEntry { unit, .. } = self.unit;
        let mut entries = unit.entries_raw(Some(self.offset_of(start)))?;
        let abbreviation = entries.read_abbreviation()?.ok_or(gimli::Error::InvalidAbbreviationCode(0))?;
        Ok((abbreviation, entries))
    }

    /// The offset of what is at `at`.
    fn offset_of(&self, at: usize) -> UnitOffset {
        UnitOffset(self.unit.unit.header.root_offset().0 + at)
    }

    /// The reverse.
    fn at_of(&self, offset: UnitOffset) -> usize {
        offset.0 - self.unit.unit.header.root_offset().0
    }
}

/// The attributes of the function at `offset`.
pub(crate) fn attributes_at<'d>(unit: &UnitEntry<'d>, offset: UnitOffset) -> gimli::Result<Attributes<'d>> {
    let (bytes, mut at) = (unit.unit.header.range_from(offset..)?.slice(), 0);
    let shape = leb(bytes, &mut at).and_then(|code| unit.shapes.get(code));
    let mut attributes = Attributes::default();
    let steps = shape.and_then(|shape| unit.shapes.steps(shape));
    if steps.and_then(|steps| attributes.read_steps(steps, bytes, &mut at)).is_some() {
        return Ok(attributes);
    }
    let mut entries = unit.unit.entries_raw(Some(offset))?;
    let abbreviation = entries.read_abbreviation()?.ok_or(gimli::Error::InvalidAbbreviationCode(0))?;
    Attributes::read(&mut entries, abbreviation.attributes())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gimli::{DwAt, DwForm, Dwarf, constants};

    use super::super::roots::{Root, headers};
    use super::super::shapes::Shapes;
    use super::super::units::Units;
    use super::*;
    use crate::report::Problems;
    use crate::{Companions, Image};

    /// A function that states code: its offset, depth, the function around it if that does too, whether it is a subprogram, and its
    /// attributes.
    type Seen<'d> = (usize, isize, Option<usize>, bool, Option<Attributes<'d>>);
    /// What a walk comes upon, and how it ends.
    type Walked<'d> = (Vec<Seen<'d>>, Option<String>);

    fn walked<'d>(unit: &UnitEntry<'d>) -> Walked<'d> {
        let (mut all, mut open) = (Vec::new(), Vec::<(isize, Option<usize>)>::new());
        let mut walker = Walker::new(unit).expect("has a root entry");
        loop {
            let found = match walker.next() {
                Ok(Some(found)) => found,
                Ok(None) => return (all, None),
                Err(error) => return (all, Some(error.to_string())),
            };
            while open.pop_if(|(opened, _)| *opened >= found.ended).is_some() {}
            let attributes = found.states_code.then(|| *walker.attributes());
            let around = open.last().filter(|(depth, _)| !found.is_hidden_from(*depth));
            let around = around.and_then(|(_, offset)| *offset);
            if found.states_code {
                all.push((found.offset.0, found.depth, around, found.is_subprogram, attributes));
            }
            if found.has_children {
                open.push((found.depth, found.states_code.then_some(found.offset.0)));
            }
        }
    }

    /// The same by gimli alone, entry by entry.
    fn by_gimli<'d>(unit: &UnitEntry<'d>) -> Walked<'d> {
        let (mut all, mut open) = (Vec::new(), Vec::<(isize, Option<usize>)>::new());
        let mut entries = unit.unit.entries_raw(None).expect("has a root entry");
        let mut next = || -> gimli::Result<()> {
            while !entries.is_empty() {
                let (offset, depth) = (entries.next_offset(), entries.next_depth());
                let Some(abbreviation) = entries.read_abbreviation()? else { continue };
                while open.pop_if(|(opened, _)| *opened >= depth).is_some() {}
                let is_subprogram = abbreviation.tag() == constants::DW_TAG_subprogram;
                let attributes = match Shape::unknown(abbreviation).states_code {
                    true => Some(Attributes::read(&mut entries, abbreviation.attributes())?),
                    false => entries.skip_attributes(abbreviation.attributes()).map(|()| None)?,
                };
                let around = open.last().and_then(|(_, offset)| *offset);
                let states_code = attributes.is_some();
                if states_code {
                    all.push((offset.0, depth, around, is_subprogram, attributes));
                }
                // What an inlined subroutine that states nothing holds is held by what is around it.
                if abbreviation.has_children() && (is_subprogram || states_code) {
                    open.push((depth, states_code.then_some(offset.0)));
                }
            }
            Ok(())
        };
        let error = next().err();
        (all, error.map(|error| error.to_string()))
    }

    /// How a made-up unit is encoded.
    #[derive(Clone, Copy, Debug)]
    struct Made {
        version: u16,
        is_64: bool,
        address_size: u8,
    }

    impl Made {
        /// A unit with these bytes behind its header.
        fn unit(self, entries: &[u8]) -> Vec<u8> {
            let offset = |value: usize| match self.is_64 {
                true => (value as u64).to_le_bytes().to_vec(),
                false => u32::try_from(value).expect("small").to_le_bytes().to_vec(),
            };
            let mut rest = self.version.to_le_bytes().to_vec();
            match self.version {
                5 => rest.extend([vec![constants::DW_UT_compile.0, self.address_size], offset(0)].concat()),
                _ => rest.extend([offset(0), vec![self.address_size]].concat()),
            }
            rest.extend(entries);
            let escape = if self.is_64 { vec![0xff; 4] } else { Vec::new() };
            [escape, offset(rest.len()), rest].concat()
        }
    }

    /// Abbreviations 1 to 5 and 7: functions and a variable with the same attributes, and functions without any.
    fn abbreviations(attributes: &[(DwAt, DwForm)]) -> Vec<u8> {
        let mut table = Vec::new();
        let mut push = |value: u16| {
            let mut writer = Vec::new();
            gimli::leb128::write::unsigned(&mut writer, u64::from(value)).expect("a Vec takes all");
            table.extend(writer);
        };
        let tags = [
            (1, constants::DW_TAG_subprogram, 1, attributes),
            (2, constants::DW_TAG_inlined_subroutine, 1, attributes),
            (3, constants::DW_TAG_variable, 0, attributes),
            (4, constants::DW_TAG_subprogram, 1, &[]),
            (5, constants::DW_TAG_inlined_subroutine, 1, &[]),
            (7, constants::DW_TAG_inlined_subroutine, 0, attributes),
        ];
        for (code, tag, has_children, attributes) in tags {
            [code, tag.0, has_children].into_iter().for_each(&mut push);
            for (name, form) in attributes {
                [name.0, form.0].into_iter().for_each(&mut push);
                if *form == constants::DW_FORM_implicit_const {
                    push(0x7f);
                }
            }
            [0, 0].into_iter().for_each(&mut push);
        }
        push(0);
        table
    }

    /// Walks through a made-up unit both ways; how many functions are in it, and whether it can be read to its end.
    fn compare(made: Made, attributes: &[(DwAt, DwForm)], entries: &[u8]) -> (usize, bool) {
        let (info, abbreviations) = (made.unit(entries), abbreviations(attributes));
        let sections = |id| match id {
            gimli::SectionId::DebugInfo => &info[..],
            gimli::SectionId::DebugAbbrev => &abbreviations[..],
            _ => &[],
        };
        let load = |id| Ok::<_, gimli::Error>(Reader::new(sections(id), gimli::LittleEndian));
        let dwarf = Arc::new(Dwarf::load(load).expect("cannot fail"));
        let header = headers(&dwarf).0[0];
        let table = dwarf.abbreviations(&header).expect("a table");
        let shapes = Arc::new(Shapes::new(&table, header.encoding()));
        // Where the root entry is damaged there is no unit.
        let Ok(Some(Root { unit, .. })) = Root::read(&dwarf, header, table) else { return (0, false) };
        let mut unit = UnitEntry::of_supplementary(&dwarf, unit, None);
        unit.shapes = shapes;
        let walked = walked(&unit);
        assert_eq!(walked, by_gimli(&unit), "{made:?} {attributes:?} {entries:?}");
        for (offset, .., attributes) in walked.0.iter().filter(|seen| seen.4.is_some()) {
            assert_eq!(attributes_at(&unit, UnitOffset(*offset)).ok(), *attributes);
        }
        (walked.0.len(), walked.1.is_none())
    }

    /// A generator of its own: the cases must not depend on a random seed.
    fn random(state: &mut u64, below: u64) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((*state >> 33) % below).expect("small")
    }

    #[test]
    fn every_form_of_every_attribute_is_read_as_by_gimli() {
        let names = [
            constants::DW_AT_low_pc,
            constants::DW_AT_high_pc,
            constants::DW_AT_ranges,
            constants::DW_AT_name,
            constants::DW_AT_linkage_name,
            constants::DW_AT_MIPS_linkage_name,
            constants::DW_AT_abstract_origin,
            constants::DW_AT_specification,
            constants::DW_AT_call_file,
            constants::DW_AT_call_line,
            constants::DW_AT_location,
        ];
        let forms = (0..0x30).chain([0x1f01, 0x1f02, 0x1f20, 0x1f21]).map(DwForm);
        let first = (constants::DW_AT_decl_line, constants::DW_FORM_data1);
        let low_pc = (constants::DW_AT_low_pc, constants::DW_FORM_udata);
        let (mut state, mut functions, mut whole) = (1, 0, 0);
        for (form, name) in
            forms.flat_map(|form| names.map(|name| (form, name))).filter(|(form, _)| form.0 != 0)
        {
            for version in [2, 3, 4, 5] {
                for (is_64, address_size) in [(false, 4), (false, 8), (true, 8), (false, 2)] {
                    let made = Made { version, is_64, address_size };
                    // Of bytes that are codes of abbreviations, or null, any entry behind any other makes sense.
                    let bytes: Vec<u8> =
                        (0..60).map(|_| [1, 2, 3, 4, 5, 7, 0, 0][random(&mut state, 8)]).collect();
                    let bytes = [&[1], &bytes[..]].concat();
                    for attributes in [&[first, (name, form), low_pc, first][..], &[(name, form)]] {
                        let (found, is_whole) = compare(made, attributes, &bytes);
                        (functions, whole) = (functions + found, whole + usize::from(is_whole));
                    }
                }
            }
        }
        assert!(functions > 20_000 && whole > 1000, "{functions} {whole}");
    }

    #[test]
    fn deep_functions_are_seen_as_by_gimli() {
        let attributes = [(constants::DW_AT_low_pc, constants::DW_FORM_udata)];
        let (mut state, mut functions) = (5, 0);
        for _ in 0..500 {
            let made = Made { version: 4, is_64: false, address_size: 8 };
            // Down to depth 100 or so, up again a bit, and so on.
            let mut entries = vec![1, 0];
            for number in 0..400 {
                match random(&mut state, if number % 160 < 110 { 12 } else { 40 }) {
                    0..=2 => entries.extend([2, 0]),
                    3 => entries.extend([1, 0]),
                    4..=6 => entries.push(4),
                    7 => entries.push(5),
                    8 => entries.extend([3, 0]),
                    9 => entries.extend([7, 0]),
                    _ => entries.push(0),
                }
            }
            functions += compare(made, &attributes, &entries).0;
        }
        assert!(functions > 20_000, "{functions}");
    }

    #[test]
    fn any_bytes_are_read_as_by_gimli() {
        let attributes = [
            (constants::DW_AT_location, constants::DW_FORM_exprloc),
            (constants::DW_AT_low_pc, constants::DW_FORM_udata),
            (constants::DW_AT_high_pc, constants::DW_FORM_data2),
            (constants::DW_AT_abstract_origin, constants::DW_FORM_ref_udata),
            (constants::DW_AT_decl_line, constants::DW_FORM_indirect),
            (constants::DW_AT_call_line, constants::DW_FORM_data1),
        ];
        let (mut state, mut functions) = (7, 0);
        for _ in 0..20_000 {
            let made = Made { version: 4, is_64: false, address_size: 8 };
            let chosen = &attributes[random(&mut state, 6)..];
            let wild = random(&mut state, 20) as u64;
            let byte = |_| match random(&mut state, 20) as u64 {
                choice if choice < wild => random(&mut state, 256),
                _ => random(&mut state, 6),
            };
            let bytes: Vec<u8> = (0..80).map(byte).map(|byte| u8::try_from(byte).expect("a byte")).collect();
            functions += compare(made, chosen, &[&[1], &bytes[..]].concat()).0;
        }
        assert!(functions > 1000, "{functions}");
    }

    #[test]
    fn real_units_are_read_as_by_gimli() {
        let testdata = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
        let (mut functions, companions) = (0, Companions::default());
        for path in crate::find(&testdata).into_iter().flatten() {
            let bytes = std::fs::read(&path).expect("readable");
            for slice in crate::slices(&bytes).expect("a debug file") {
                let image = Image::load(&slice, &path, &companions).expect("loads");
                for unit in &Units::read(&image, &mut Problems::default()).all {
                    let walked = walked(unit);
                    assert_eq!(walked, by_gimli(unit), "{}", path.display());
                    functions += walked.0.len();
                }
            }
        }
        assert!(functions > 500, "{functions}");
    }
}

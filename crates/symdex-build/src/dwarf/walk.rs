//! A walk through the entries of a unit that stops at functions alone, or at what functions stand in.

use gimli::{Abbreviation, EntriesRaw, UnitOffset};

use super::attributes::Attributes;
use super::shapes::{Of, Shape, leb};
use super::units::UnitEntry;
use crate::image::Reader;

/// Goes through a unit's entries by their shapes, and by gimli where there is none or where something is wrong.
pub(crate) struct Walker<'a, 'd> {
    unit: &'a UnitEntry<'d>,
    input: Reader<'d>,
    /// The depth of the next entry.
    depth: isize,
    /// The lowest depth since the last stop.
    lowest: isize,
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
}

impl<'a, 'd> Walker<'a, 'd> {
    /// Before the root entry.
    pub(crate) fn new(unit: &'a UnitEntry<'d>) -> gimli::Result<Self> {
        let header = &unit.unit.header;
        let input = header.range_from(header.root_offset()..)?;
        Ok(Self { unit, input, depth: 0, lowest: 0, attributes: Attributes::default() })
    }

    /// What the last function that states code says of itself, or the last scope.
    pub(crate) fn attributes(&self) -> &Attributes<'d> {
        &self.attributes
    }

    /// The next subprogram or inlined subroutine that has code, or children.
    pub(crate) fn next(&mut self) -> gimli::Result<Option<Found>> {
        self.next_of(Shape::is_function, |shape| shape.states_code)
    }

    /// The next namespace, type or subprogram.
    pub(crate) fn next_in_scopes(&mut self) -> gimli::Result<Option<Found>> {
        self.next_of(|shape| shape.of == Of::Subprogram || shape.is_scope(), Shape::is_scope)
    }

    /// The next entry that the walk stops at; all that are read are among them. A loop of its own for each caller: most of a walk
    /// is spent here.
    #[inline(always)]
    fn next_of(
        &mut self,
        stops: impl Fn(&Shape) -> bool,
        reads: impl Fn(&Shape) -> bool,
    ) -> gimli::Result<Option<Found>> {
        let shapes = &self.unit.shapes;
        loop {
            self.pass(&stops);
            if self.input.is_empty() {
                return Ok(None);
            }
            let start = self.input;
            let code = leb(&mut self.input);
            if code == Some(0) {
                self.end_children();
                continue;
            }
            let depth = self.depth;
            let unknown;
            let shape = match code.and_then(|code| shapes.get(code)) {
                Some(shape) => shape,
                None => {
                    unknown = Shape::unknown(self.entry(start)?.0);
                    &unknown
                }
            };
            self.depth += isize::from(shape.has_children);
            if reads(shape) {
                self.read(shape, start)?;
            } else {
                match shapes.behind(shape, self.input) {
                    Some(behind) => self.input = behind,
                    None => self.skip(start)?,
                }
                if !stops(shape) {
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
            }));
        }
    }

    /// Passes over the entries that the walk does not stop at, as far as nothing about them is uncommon.
    #[inline(always)]
    fn pass(&mut self, stops: impl Fn(&Shape) -> bool) {
        let shapes = &self.unit.shapes;
        let mut input = self.input;
        while let [code @ 0..0x80, behind @ ..] = input.slice() {
            let behind = Reader::new(behind, gimli::LittleEndian);
            if *code == 0 {
                self.end_children();
                input = behind;
                continue;
            }
            let Some(shape) = shapes.get(u64::from(*code)).filter(|shape| !stops(shape)) else { break };
            let Some(behind) = shapes.behind(shape, behind) else { break };
            self.depth += isize::from(shape.has_children);
            input = behind;
        }
        self.input = input;
    }

    #[inline]
    fn end_children(&mut self) {
        self.depth -= 1;
        self.lowest = self.lowest.min(self.depth);
    }

    /// Reads the attributes that the input stands before, of the entry at `start`.
    fn read(&mut self, shape: &Shape, start: Reader<'d>) -> gimli::Result<()> {
        let steps = self.unit.shapes.steps(shape);
        if steps.and_then(|steps| self.attributes.read_steps(steps, &mut self.input)).is_none() {
            let (abbreviation, mut entries) = self.entry(start)?;
            self.attributes = Attributes::read(&mut entries, abbreviation.attributes())?;
            self.go_to(entries.next_offset())?;
        }
        Ok(())
    }

    /// Skips the entry at `start` as gimli does.
    #[cold]
    fn skip(&mut self, start: Reader<'d>) -> gimli::Result<()> {
        let (abbreviation, mut entries) = self.entry(start)?;
        entries.skip_attributes(abbreviation.attributes())?;
        self.go_to(entries.next_offset())
    }

    /// The entry at `start` as gimli sees it: its abbreviation, and a reader of its attributes.
    fn entry(&self, start: Reader<'d>) -> gimli::Result<(&'a Abbreviation, EntriesRaw<'a, Reader<'d>>)> {
        let UnitEntry { unit, .. } = self.unit;
        let mut entries = unit.entries_raw(Some(self.offset_of(start)))?;
        let abbreviation = entries.read_abbreviation()?.ok_or(gimli::Error::InvalidAbbreviationCode(0))?;
        Ok((abbreviation, entries))
    }

    fn go_to(&mut self, offset: UnitOffset) -> gimli::Result<()> {
        let end = self.unit.unit.header.length_including_self();
        // Behind the last entry there is no reader to be had, nor one needed.
        self.input = match offset.0 < end {
            true => self.unit.unit.header.range_from(offset..)?,
            false => Reader::new(&[], gimli::LittleEndian),
        };
        Ok(())
    }

    fn offset_of(&self, at: Reader<'d>) -> UnitOffset {
        UnitOffset(self.unit.unit.header.length_including_self() - at.slice().len())
    }
}

/// The attributes of the function at `offset`.
pub(crate) fn attributes_at<'d>(unit: &UnitEntry<'d>, offset: UnitOffset) -> gimli::Result<Attributes<'d>> {
    let mut input = unit.unit.header.range_from(offset..)?;
    let shape = leb(&mut input).and_then(|code| unit.shapes.get(code));
    let mut attributes = Attributes::default();
    let steps = shape.and_then(|shape| unit.shapes.steps(shape));
    if steps.and_then(|steps| attributes.read_steps(steps, &mut input)).is_some() {
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

    /// A function: its offset, depth, the function around it, whether it is a subprogram, and its attributes if it states code.
    type Seen<'d> = (usize, isize, Option<usize>, bool, Option<Attributes<'d>>);
    /// What a walk comes upon, and how it ends.
    type Walked<'d> = (Vec<Seen<'d>>, Option<String>);

    fn walked<'d>(unit: &UnitEntry<'d>) -> Walked<'d> {
        let (mut all, mut open) = (Vec::new(), Vec::<(isize, usize)>::new());
        let mut walker = Walker::new(unit).expect("has a root entry");
        loop {
            let found = match walker.next() {
                Ok(Some(found)) => found,
                Ok(None) => return (all, None),
                Err(error) => return (all, Some(error.to_string())),
            };
            while open.pop_if(|(opened, _)| *opened >= found.ended).is_some() {}
            let attributes = found.states_code.then(|| *walker.attributes());
            let around = open.last().map(|(_, offset)| *offset);
            all.push((found.offset.0, found.depth, around, found.is_subprogram, attributes));
            if found.has_children {
                open.push((found.depth, found.offset.0));
            }
        }
    }

    /// The same by gimli alone, entry by entry.
    fn by_gimli<'d>(unit: &UnitEntry<'d>) -> Walked<'d> {
        let (mut all, mut open) = (Vec::new(), Vec::<(isize, usize)>::new());
        let mut entries = unit.unit.entries_raw(None).expect("has a root entry");
        let mut next = || -> gimli::Result<()> {
            while !entries.is_empty() {
                let (offset, depth) = (entries.next_offset(), entries.next_depth());
                let Some(abbreviation) = entries.read_abbreviation()? else { continue };
                while open.pop_if(|(opened, _)| *opened >= depth).is_some() {}
                let is_subprogram = abbreviation.tag() == constants::DW_TAG_subprogram;
                let is_function = is_subprogram || abbreviation.tag() == constants::DW_TAG_inlined_subroutine;
                let attributes = match Shape::unknown(abbreviation).states_code {
                    true => Some(Attributes::read(&mut entries, abbreviation.attributes())?),
                    false => entries.skip_attributes(abbreviation.attributes()).map(|()| None)?,
                };
                if is_function && (attributes.is_some() || abbreviation.has_children()) {
                    all.push((offset.0, depth, open.last().map(|open| open.1), is_subprogram, attributes));
                }
                if is_function && abbreviation.has_children() {
                    open.push((depth, offset.0));
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

    /// Abbreviations 1, 2, 3 and 5, all with the same attributes between two bytes of data.
    fn abbreviations(attributes: &[(DwAt, DwForm)]) -> Vec<u8> {
        let mut table = Vec::new();
        let mut push = |value: u16| {
            let mut writer = Vec::new();
            gimli::leb128::write::unsigned(&mut writer, u64::from(value)).expect("a Vec takes all");
            table.extend(writer);
        };
        let tags = [
            (1, constants::DW_TAG_subprogram, 1),
            (2, constants::DW_TAG_inlined_subroutine, 1),
            (3, constants::DW_TAG_variable, 0),
            (5, constants::DW_TAG_inlined_subroutine, 0),
        ];
        for (code, tag, has_children) in tags {
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
                    let bytes: Vec<u8> = (0..60).map(|_| [1, 2, 3, 5, 0][random(&mut state, 5)]).collect();
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
                _ => random(&mut state, 4),
            };
            let bytes: Vec<u8> = (0..80).map(byte).map(|byte| u8::try_from(byte).expect("a byte")).collect();
            functions += compare(made, chosen, &[&[1], &bytes[..]].concat()).0;
        }
        assert!(functions > 10_000, "{functions}");
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

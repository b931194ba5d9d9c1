//! What the elements `module` and `mmap` of a text state: which modules are loaded, and where.

use std::collections::BTreeMap;

use symdex_store::IdPrefix;

use super::markup::{Element, Problem, address, number};
use crate::drop_in::modules::ModuleName;
use crate::text;

/// A module of the text.
pub(super) struct Module {
    pub(super) name: Vec<u8>,
    /// Its build id in lower-case hexadecimal.
    pub(super) build_id: String,
    /// Where it is searched. `None` if no file can have the build id.
    pub(super) wanted: Option<ModuleName>,
}

/// A range of addresses with the contents of a module.
pub(super) struct Map {
    size: u64,
    /// The number of the module.
    pub(super) module: u64,
    /// Such as `rx`.
    pub(super) mode: String,
    /// The address of the first byte as the module's file states it.
    in_module: u64,
}

impl Map {
    /// The last address of the map at `start`.
    pub(super) fn last(&self, start: u64) -> u64 {
        start.wrapping_add(self.size).wrapping_sub(1)
    }

    fn contains(&self, start: u64, address: u64) -> bool {
        start <= address && address < start.wrapping_add(self.size)
    }
}

/// The modules by their numbers, and the maps by their first addresses.
#[derive(Default)]
pub(super) struct Context {
    pub(super) modules: BTreeMap<u64, Module>,
    pub(super) maps: BTreeMap<u64, Map>,
}

impl Context {
    /// The element `{{{module:NUMBER:NAME:elf:BUILD ID}}}`. Returns the number.
    pub(super) fn add_module(&mut self, element: &Element<'_>) -> Result<u64, Problem> {
        let [at, name, kind] = element.at_least()?;
        let at = number(at, "the number of a module")?;
        if kind != b"elf" {
            return Err(format!("expected the type elf, found {:?}", text::lossy(kind)));
        }
        let [_, _, _, id] = element.exactly()?;
        let digits = text::lossy(id).to_ascii_lowercase();
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(format!("expected a build id in hexadecimal, found {digits:?}"));
        }
        let build_id = if digits.len().is_multiple_of(2) { digits } else { format!("0{digits}") };
        if self.modules.contains_key(&at) {
            return Err(format!("there is a module {at} already"));
        }
        let wanted = build_id.parse::<IdPrefix>().ok().map(ModuleName::BuildId);
        self.modules.insert(at, Module { name: name.to_vec(), build_id, wanted });
        Ok(at)
    }

    /// The element `{{{mmap:START:SIZE:load:MODULE:MODE:START IN MODULE}}}`. Returns the start.
    pub(super) fn add_map(&mut self, element: &Element<'_>) -> Result<u64, Problem> {
        let [start, size, kind] = element.at_least()?;
        let (start, size) = (address(start)?, number(size, "a size")?);
        if kind != b"load" {
            return Err(format!("expected the type load, found {:?}", text::lossy(kind)));
        }
        let [_, _, _, module, mode, in_module] = element.exactly()?;
        let module = number(module, "the number of a module")?;
        let mode = text::lossy(mode).to_ascii_lowercase();
        let rest = ["r", "w", "x"].iter().fold(&*mode, |rest, flag| rest.strip_prefix(flag).unwrap_or(rest));
        if mode.is_empty() || !rest.is_empty() {
            return Err(format!("expected a mode such as rx, found {mode:?}"));
        }
        if !self.modules.contains_key(&module) {
            return Err(format!("no element before states the module {module}"));
        }
        let map = Map { size, module, mode, in_module: address(in_module)? };
        let next = self.maps.range(start..).next().filter(|(other, _)| map.contains(start, **other));
        if let Some((other, _)) = next.or_else(|| self.map_at(start)) {
            return Err(format!("there is a map at {other:#x} already"));
        }
        self.maps.entry(start).or_insert(map);
        Ok(start)
    }

    /// The module that is loaded at `address`, and the address as the module's file states it.
    pub(super) fn find(&self, address: u64) -> Result<(&Module, u64), Problem> {
        let (start, map) = self.map_at(address).ok_or_else(|| format!("no module is at {address:#x}"))?;
        let module = &self.modules[&map.module];
        Ok((module, address.wrapping_sub(*start).wrapping_add(map.in_module)))
    }

    fn map_at(&self, address: u64) -> Option<(&u64, &Map)> {
        self.maps.range(..=address).next_back().filter(|(start, map)| map.contains(**start, address))
    }
}

//! Special names: virtual tables, thunks, guard variables.

use super::super::nodes::{Id, Node};
use super::Parser;

impl Parser<'_> {
    /// A special name: `T` or `G` and the code of an entity that the compiler generates.
    pub(super) fn special_name(&mut self) -> Option<Id> {
        let code = [self.look(), self.look_at(1)];
        if code[0] == b'T' && matches!(code[1], b'h' | b'v') {
            self.at += 1;
            self.call_offset()?;
            let text = if code[1] == b'v' { "virtual thunk to " } else { "non-virtual thunk to " };
            let encoding = self.encoding()?;
            return self.add(Node::Prefixed(text, encoding));
        }
        self.at += 2;
        let (text, of) = match &code {
            b"TA" => ("template parameter object for ", self.template_argument()?),
            b"TV" => ("vtable for ", self.a_type()?),
            b"TT" => ("VTT for ", self.a_type()?),
            b"TI" => ("typeinfo for ", self.a_type()?),
            b"TS" => ("typeinfo name for ", self.a_type()?),
            b"TW" => ("thread-local wrapper routine for ", self.a_name(None)?),
            b"TH" => ("thread-local initialization routine for ", self.a_name(None)?),
            b"Tc" => {
                self.call_offset()?;
                self.call_offset()?;
                ("covariant return thunk to ", self.encoding()?)
            }
            b"TC" => return self.construction_vtable(),
            b"GV" => ("guard variable for ", self.a_name(None)?),
            b"GR" => {
                let name = self.a_name(None)?;
                let has_number = self.sequence_number().is_some();
                (self.eat(b'_') || !has_number).then_some(())?;
                ("reference temporary for ", name)
            }
            // Of GCC's -fgnu-tm.
            b"GT" => {
                let text = match self.look() {
                    b't' => "transaction clone for ",
                    b'n' => "non-transaction clone for ",
                    _ => return None,
                };
                self.at += 1;
                (text, self.encoding()?)
            }
            b"GA" => ("hidden alias for ", self.encoding()?),
            b"GI" => ("initializer for module ", self.module_name(None)??),
            _ => return None,
        };
        self.add(Node::Prefixed(text, of))
    }

    fn construction_vtable(&mut self) -> Option<Id> {
        let derived = self.a_type()?;
        self.signed_number()?;
        self.expect(b'_')?;
        let base = self.a_type()?;
        self.add(Node::ConstructionVtable { base, derived })
    }

    /// `h <number> _` or `v <number> _ <number> _`.
    fn call_offset(&mut self) -> Option<()> {
        let numbers = match self.look() {
            b'h' => 1,
            b'v' => 2,
            _ => return None,
        };
        self.at += 1;
        for _ in 0..numbers {
            self.signed_number()?;
            self.expect(b'_')?;
        }
        Some(())
    }
}

//! Types, and the generic signatures of functions and types.

use super::{Kind, List, Old};

/// The conventions of the callee, the parameters and the results in a lowered function type. Each entry is the old
/// letter and the new one.
const CALLEES: &[(&str, &str)] = &[("t", "t"), ("d", "y"), ("g", "g"), ("o", "x")];
const PARAMETERS: &[(&str, &str)] =
    &[("d", "y"), ("g", "g"), ("e", "e"), ("i", "i"), ("G", "n"), ("l", "l"), ("o", "x")];
const RESULTS: &[(&str, &str)] = &[("a", "a"), ("d", "d"), ("D", "u"), ("i", "r"), ("o", "o")];
const CONVENTIONS: &[(&str, &str)] = &[("Cb", "B"), ("Cc", "C"), ("Cm", "M"), ("CO", "O"), ("Cw", "W")];

/// The old prefix of a type and the new suffix with the same meaning.
const WRAPPERS: &[(&str, &str)] = &[
    ("D", "XD"),
    ("R", "z"),
    ("PM", "Xp"),
    ("M", "m"),
    ("Xb", "Xb"),
    ("Xo", "Xo"),
    ("Xu", "Xu"),
    ("Xw", "Xw"),
];
const FUNCTIONS: &[(&str, &str)] =
    &[("F", "c"), ("f", "XU"), ("b", "XB"), ("c", "XC"), ("K", "XK"), ("Xf", "Xf")];
const METATYPES: &[(&str, &str)] = &[("XM", "XM"), ("XPM", "Xm")];

/// The codes of constraints in a generic signature: by a protocol, a base class, an equal type, or a layout. The first
/// code constrains a generic parameter, the second its associated type, the third a path of several associated types.
const BY_PROTOCOL: [&str; 3] = ["R", "Rp", "RP"];
const BY_CLASS: [&str; 3] = ["Rb", "Rc", "RC"];
const BY_TYPE: [&str; 3] = ["Rs", "Rt", "RT"];
const BY_LAYOUT: [&str; 3] = ["Rl", "Rm", "RM"];

impl Old<'_> {
    pub(super) fn a_type(&mut self) -> Option<String> {
        self.nested(|old| {
            if let Some(operator) = old.translate(WRAPPERS) {
                return Some(old.a_type()? + operator);
            }
            if let Some(operator) = old.translate(METATYPES) {
                let representation = old.take(1)?;
                return Some(old.a_type()? + operator + representation);
            }
            if let Some(operator) = old.translate(FUNCTIONS) {
                return Some(old.function()? + operator);
            }
            old.other_type()
        })
    }

    fn other_type(&mut self) -> Option<String> {
        match self.peek()? {
            b'B' => return self.builtin(),
            b'C' | b'V' | b'O' | b'S' => return Some(self.nominal()?.text),
            _ => {}
        }
        match self
            .eat_one_of(&["ERR", "G", "P", "Qu", "Q", "T", "W", "XF", "XP", "a", "q", "t", "u", "w", "x"])?
        {
            "ERR" => Some("Xe".to_owned()),
            "G" => self.bound_generic(),
            "P" | "XP" => self.protocols(),
            "Qu" => Some("Qr".to_owned()),
            "Q" => self.archetype(),
            "T" => self.tuple(false),
            "t" => self.tuple(true),
            "XF" => self.lowered_function(),
            "a" => Some(self.context()?.text + &self.declared_name()? + "a"),
            "q" => self.dependent(),
            "u" => {
                let signature = self.generic_signature()?;
                Some(self.a_type()? + &signature + "u")
            }
            "w" => Some(self.associated(false)?.as_type()),
            "W" => Some(self.associated(true)?.as_type()),
            _ => Some("x".to_owned()),
        }
    }

    /// Reads an old operator of `table` and returns the new operator.
    fn translate(&mut self, table: &[(&'static str, &'static str)]) -> Option<&'static str> {
        table.iter().find(|(old, _)| self.eat(old)).map(|(_, new)| *new)
    }

    fn builtin(&mut self) -> Option<String> {
        if self.eat("Bv") {
            let len = self.digits()?;
            return Some(self.builtin()? + "Bv" + len + "_");
        }
        match self.eat_one_of(&["Bf", "Bi", "Bb", "BB", "BO", "Bo", "Bp", "Bt", "Bw"])? {
            sized @ ("Bf" | "Bi") => Some(format!("{sized}{}", self.index()?)),
            plain => Some(plain.to_owned()),
        }
    }

    /// A nominal type with generic arguments. Each enclosing type and the type itself have a list, outermost first.
    fn bound_generic(&mut self) -> Option<String> {
        let nominal = self.nominal()?;
        let mut text = nominal.text + "y";
        for level in 0..nominal.levels.max(1) {
            if level > 0 {
                text += "_";
            }
            while !self.eat("_") {
                text += &self.a_type()?;
            }
        }
        Some(text + "G")
    }

    fn protocols(&mut self) -> Option<String> {
        let mut protocols = List::default();
        while !self.eat("_") {
            protocols.push(&self.protocol()?);
        }
        Some(protocols.text() + "p")
    }

    /// An archetype: a generic parameter inside its declaration, or an associated type of an archetype. Its `Q` is
    /// already read.
    fn archetype(&mut self) -> Option<String> {
        self.nested(|old| {
            let root = match old.eat_one_of(&["Q", "S"]) {
                Some("Q") => old.archetype()?,
                Some(_) => old.substitution()?.text,
                None => return old.primary_archetype(),
            };
            let text = root + &old.identifier()? + "Qa";
            Some(old.remember(Kind::Archetype, text, 0).text)
        })
    }

    /// An archetype of the outermost depth. The new mangling writes the first one as `x` and counts the others from the
    /// second one.
    fn primary_archetype(&mut self) -> Option<String> {
        match self.index()?.trim_end_matches('_') {
            "" => Some("x".to_owned()),
            "0" => Some("q_".to_owned()),
            digits => Some(format!("q{}_", digits.parse::<u32>().ok()?.checked_sub(1)?)),
        }
    }

    fn tuple(&mut self, variadic: bool) -> Option<String> {
        let mut elements = List::default();
        while !self.eat("_") {
            let label = match self.peek()? {
                b'0'..=b'9' | b'o' => self.identifier()?,
                _ => String::new(),
            };
            let element = self.a_type()? + &label;
            let last = variadic && self.rest.starts_with('_');
            elements.push(&(element + if last { "d" } else { "" }));
        }
        Some(elements.text() + "t")
    }

    /// The result and the parameters of a function type, and `K` if it throws. The letter of its kind is already read.
    fn function(&mut self) -> Option<String> {
        let throws = if self.eat("z") { "K" } else { "" };
        let parameters = self.a_type()?;
        Some(self.a_type()? + &parameters + throws)
    }

    /// The type of a declaration: `F` or `f` and a function type, perhaps generic, or another type. Each part is read
    /// once, whatever follows it.
    pub(super) fn declared_type(&mut self) -> Option<Declared> {
        self.nested(|old| {
            let signature = if old.eat("u") { Some(old.generic_signature()?) } else { None };
            if old.eat_one_of(&["F", "f"]).is_some() {
                return Some(Declared::Function(old.function()? + &signature.unwrap_or_default()));
            }
            let text = old.a_type()?;
            Some(Declared::Other(match signature {
                Some(signature) => text + &signature + "u",
                None => text,
            }))
        })
    }

    /// A lowered function type, with the conventions of its parameters and results.
    fn lowered_function(&mut self) -> Option<String> {
        let callee = self.translate(CALLEES)?;
        let convention = self.translate(CONVENTIONS).unwrap_or_default();
        let (generic, operator) = match self.eat_one_of(&["G", "g"]) {
            Some("G") => (self.generic_signature()?, "I"),
            Some(_) => (self.generic_signature()?, "IP"),
            None => (String::new(), "I"),
        };
        self.expect("_")?;
        let (mut types, mut conventions) = (String::new(), String::new());
        while !self.eat("_") {
            conventions += self.translate(PARAMETERS)?;
            types += &self.a_type()?;
        }
        let (mut error, mut error_convention) = (String::new(), String::new());
        while !self.eat("_") {
            if self.eat("z") {
                error_convention = format!("z{}", self.translate(RESULTS)?);
                error = self.a_type()?;
            } else {
                conventions += self.translate(RESULTS)?;
                types += &self.a_type()?;
            }
        }
        Some(format!("{types}{error}{generic}{operator}{callee}{convention}{conventions}{error_convention}_"))
    }

    /// A generic signature: the number of parameters at each depth, and their constraints.
    pub(super) fn generic_signature(&mut self) -> Option<String> {
        let mut counts = String::new();
        while !self.rest.starts_with(['R', 'r']) {
            counts += &if self.eat("z") { "z".to_owned() } else { self.index()? };
        }
        let mut requirements = String::new();
        if self.eat("R") {
            while !self.eat("r") {
                requirements += &self.requirement()?;
            }
        } else {
            self.expect("r")?;
        }
        let counts = if counts.is_empty() { counts } else { format!("r{counts}") };
        Some(format!("{requirements}{counts}l"))
    }

    fn requirement(&mut self) -> Option<String> {
        let subject = match self.eat_one_of(&["w", "W"]) {
            Some("w") => self.associated(false)?,
            Some(_) => self.associated(true)?,
            None => Member { path: String::new(), depth: 0, parameter: self.parameter()? },
        };
        let mut layout = "";
        let (constraint, operators) = if self.eat("z") {
            (self.a_type()?, BY_TYPE)
        } else if self.eat("l") {
            layout = self.eat_one_of(&["U", "R", "N", "T", "B"])?;
            (String::new(), BY_LAYOUT)
        } else if self.rest.starts_with('C') {
            (self.a_type()?, BY_CLASS)
        } else if self.eat("S") {
            let substitution = self.substitution()?;
            match substitution.kind {
                Kind::Module => (self.protocol_in(&substitution.text)?, BY_PROTOCOL),
                Kind::Protocol => (substitution.text, BY_PROTOCOL),
                _ => (substitution.text, BY_CLASS),
            }
        } else {
            (self.protocol()?, BY_PROTOCOL)
        };
        let operator = operators.get(subject.depth)?;
        Some(format!("{constraint}{}{operator}{}{layout}", subject.path, subject.parameter))
    }

    /// A generic parameter, or an associated type of the type that follows. The `q` is already read.
    fn dependent(&mut self) -> Option<String> {
        if matches!(self.peek()?, b'd' | b'_' | b'0'..=b'9') {
            return Some(format!("q{}", self.parameter()?));
        }
        Some(self.a_type()? + &self.associated_name()? + "Qx")
    }

    /// A generic parameter, as depth and index. `z` is the first parameter of the outermost depth.
    fn parameter(&mut self) -> Option<String> {
        if self.eat("x") {
            return Some("z".to_owned());
        }
        if self.eat("d") {
            return Some(format!("d{}{}", self.index()?, self.index()?));
        }
        self.index()
    }

    /// An associated type of a generic parameter. With `path`, a path of several associated types.
    fn associated(&mut self, path: bool) -> Option<Member> {
        let parameter = self.parameter()?;
        if !path {
            return Some(Member { path: self.associated_name()?, depth: 1, parameter });
        }
        let mut names = List::default();
        while !self.eat("_") {
            names.push(&self.associated_name()?);
        }
        Some(Member { path: names.text(), depth: 2, parameter })
    }

    fn associated_name(&mut self) -> Option<String> {
        if self.eat("S") {
            let substitution = self.substitution()?;
            return (substitution.kind == Kind::Associated).then_some(substitution.text);
        }
        let protocol = if self.eat("P") { self.protocol()? } else { String::new() };
        let text = self.identifier()? + &protocol;
        Some(self.remember(Kind::Associated, text, 0).text)
    }
}

/// The type of a declaration.
pub(super) enum Declared {
    /// The type of a function, without the operator for a function type.
    Function(String),
    Other(String),
}

/// An associated type of a generic parameter.
struct Member {
    /// The names of the associated types, from the parameter on.
    path: String,
    /// The number of names: 0 is the parameter itself, 1 is one associated type, 2 stands for a longer list.
    depth: usize,
    parameter: String,
}

impl Member {
    fn as_type(&self) -> String {
        let operator = match (self.depth, self.parameter.as_str()) {
            (1, "z") => "Qz".to_owned(),
            (1, parameter) => format!("Qy{parameter}"),
            (_, "z") => "QZ".to_owned(),
            (_, parameter) => format!("QY{parameter}"),
        };
        format!("{}{operator}", self.path)
    }
}

//! Writes the tree of a C++ name as LLVM's demangler does.
//!
//! The printer does not recurse. It keeps the remaining work as a stack of tasks. It counts the performed tasks, the
//! pending tasks and the bytes of the text, and stops at the limits in [`crate::limits`]. A task writes at most as many
//! bytes as the name has. Removing bytes counts as steps.
//!
//! A C++ declarator stands inside its type: `int (*)(char)` has the left part `int (*` and the right part `)(char)`.
//! So each part of a type has its own task.

mod expressions;
mod float;
mod names;
mod types;

use super::nodes::{Arena, Id, List, Node};
use super::operators::Precedence;
use crate::limits::{MAX_STEPS, MAX_TASKS, MAX_TEXT};

/// Prints the tree below `root`. A flag of the result is set if a limit cuts the text.
pub(super) fn print(arena: &Arena<'_>, root: Id) -> Printed {
    let mut printer = Printer {
        arena,
        out: String::with_capacity(256),
        tasks: Vec::with_capacity(64),
        steps: 0,
        open_brackets: 1,
        pack_len: None,
        pack_index: 0,
        active: Vec::new(),
    };
    printer.tasks.push(Task::Print(root));
    let is_cut = !printer.run();
    Printed { text: printer.out, is_cut, steps: printer.steps }
}

pub(super) struct Printed {
    pub(super) text: String,
    pub(super) is_cut: bool,
    /// The number of steps.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests compare it with the limit"))]
    pub(super) steps: usize,
}

#[derive(Clone, Copy)]
enum Task<'a> {
    Text(&'a str),
    /// Both parts.
    Print(Id),
    Left(Id),
    Right(Id),
    /// Both parts of an operand. Parentheses enclose them if the node's precedence is lower than the given one. Unless
    /// `is_strict` is set, parentheses also enclose an operand of equal precedence.
    Operand(Id, Precedence, bool),
    /// An opening bracket. Up to the closing bracket, `>` is an operator and does not end template arguments.
    Open(&'static str),
    Close(&'static str),
    /// Sets [`Printer::open_brackets`].
    OpenBrackets(u32),
    /// The elements from `next` on, separated by commas. `before` and `after` are the positions before and after the
    /// last comma. If the element after it printed nothing, the comma is removed.
    List {
        list: List,
        next: u32,
        is_first: bool,
        before: u32,
        after: u32,
    },
    /// A pack expansion: prints the child once for each element of its packs.
    Expand(Id),
    /// The elements from this one on, without separators.
    Each(List, u32),
    /// Continues a pack expansion after the element `index`.
    Expanded {
        child: Id,
        index: u32,
        start: u32,
        outer_len: Option<u32>,
        outer_index: u32,
    },
    /// A space, unless the type has a right part.
    SpaceUnlessRight(Id),
    /// The `*`, `&` or `&&` of a pointer to this type.
    PointerMark(Id, &'static str),
    /// The separator between the member's type and the class in a pointer to member.
    MemberMark(Id),
    /// The parenthesis that closes a pointer to this type.
    PointerEnd(Id),
    /// `[`, with a space before the first dimension of an array.
    Dimension,
    /// Ends the innermost active forward reference.
    EndForward,
}

// The documentation of MAX_TASKS states this size.
const _: () = assert!(size_of::<Task<'_>>() <= 32);

struct Printer<'t, 'a> {
    arena: &'t Arena<'a>,
    out: String,
    tasks: Vec<Task<'a>>,
    steps: usize,
    /// The number of open brackets since the last `<` of template arguments. If it is 0, `>` ends the arguments.
    open_brackets: u32,
    /// The number of elements of the packs in the innermost expansion. `None` until the first pack is printed.
    pack_len: Option<u32>,
    /// The index of the current pack element.
    pack_index: u32,
    /// The forward references that are being printed.
    active: Vec<Id>,
}

/// The properties of types that decide how they are written.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    HasRight,
    IsArray,
    IsFunction,
}

impl<'a> Printer<'_, 'a> {
    /// Performs all tasks. Returns `false` if a limit stops it.
    fn run(&mut self) -> bool {
        while let Some(task) = self.tasks.pop() {
            self.steps += 1;
            if self.steps > MAX_STEPS || self.tasks.len() > MAX_TASKS || self.out.len() > MAX_TEXT {
                return false;
            }
            self.perform(task);
        }
        self.out.len() <= MAX_TEXT
    }

    fn perform(&mut self, task: Task<'a>) {
        match task {
            Task::Text(text) => self.out.push_str(text),
            Task::Print(id) => self.print(id),
            Task::Left(id) => self.left(id),
            Task::Right(id) => self.right(id),
            Task::Operand(id, precedence, is_strict) => self.operand(id, precedence, is_strict),
            Task::Open(bracket) => {
                self.open_brackets += 1;
                self.out.push_str(bracket);
            }
            Task::Close(bracket) => {
                self.open_brackets = self.open_brackets.saturating_sub(1);
                self.out.push_str(bracket);
            }
            Task::OpenBrackets(count) => self.open_brackets = count,
            Task::List { list, next, is_first, before, after } => {
                self.list(list, next, is_first, before, after)
            }
            Task::Expand(child) => self.expand(child),
            Task::Each(list, next) => {
                if let Some(element) = self.arena.child(list, next) {
                    self.then([Task::Print(element), Task::Each(list, next + 1)]);
                }
            }
            Task::Expanded { .. } => self.next_expanded(task),
            Task::SpaceUnlessRight(id) => {
                if !self.has(Shape::HasRight, id) {
                    self.out.push(' ');
                }
            }
            Task::PointerMark(of, mark) => self.pointer_mark(of, mark),
            Task::MemberMark(of) => {
                let has_parenthesis = self.has(Shape::IsArray, of) || self.has(Shape::IsFunction, of);
                self.out.push(if has_parenthesis { '(' } else { ' ' });
            }
            Task::PointerEnd(of) => {
                if self.has(Shape::IsArray, of) || self.has(Shape::IsFunction, of) {
                    self.out.push(')');
                }
            }
            Task::Dimension => self.out.push_str(if self.out.ends_with(']') { "[" } else { " [" }),
            Task::EndForward => _ = self.active.pop(),
        }
    }

    /// The length of the text in bytes.
    fn position(&self) -> u32 {
        u32::try_from(self.out.len()).unwrap_or(u32::MAX)
    }

    /// Cuts the text back to `position`.
    fn go_back(&mut self, position: u32) {
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        self.steps += self.out.len().saturating_sub(position) / 32;
        self.out.truncate(position);
    }

    /// Schedules these tasks before all others. The first one runs first.
    fn then<const COUNT: usize>(&mut self, tasks: [Task<'a>; COUNT]) {
        self.tasks.extend(tasks.into_iter().rev());
    }

    /// The task for an optional child. The task for an absent child prints an empty text.
    fn optional(id: Option<Id>) -> Task<'a> {
        id.map_or(Task::Text(""), Task::Print)
    }

    /// The task for all elements of a list.
    fn elements(list: List) -> Task<'a> {
        Task::List { list, next: 0, is_first: true, before: 0, after: u32::MAX }
    }

    fn list(&mut self, list: List, next: u32, is_first: bool, before: u32, after: u32) {
        let printed_nothing = next > 0 && after == self.position();
        if printed_nothing {
            self.go_back(before);
        }
        let is_first = is_first && (next == 0 || printed_nothing);
        let Some(element) = self.arena.child(list, next) else { return };
        let before = self.position();
        if !is_first {
            self.out.push_str(", ");
        }
        let after = self.position();
        self.then([
            Task::Operand(element, Precedence::Comma, false),
            Task::List { list, next: next + 1, is_first, before, after },
        ]);
    }

    fn operand(&mut self, id: Id, precedence: Precedence, is_strict: bool) {
        let own = expressions::precedence(&self.arena.node(id));
        if own > precedence || (own == precedence && !is_strict) {
            self.then([Task::Open("("), Task::Print(id), Task::Close(")")]);
        } else {
            self.print(id);
        }
    }

    /// Prints both parts of a node.
    fn print(&mut self, id: Id) {
        if types::may_have_right(&self.arena.node(id)) {
            self.tasks.push(Task::Right(id));
        }
        self.left(id);
    }

    /// Prints the child once for each element of the first pack in it.
    fn expand(&mut self, child: Id) {
        let (outer_len, outer_index) = (self.pack_len.take(), self.pack_index);
        let start = self.position();
        self.then([Task::Print(child), Task::Expanded { child, index: 0, start, outer_len, outer_index }]);
    }

    fn next_expanded(&mut self, task: Task<'a>) {
        let Task::Expanded { child, index, start, outer_len, outer_index } = task else { return };
        match self.pack_len {
            // A function parameter pack. The number of its elements is not known.
            None => self.out.push_str("..."),
            Some(0) => self.go_back(start),
            Some(len) if index + 1 < len => {
                self.pack_index = index + 1;
                self.out.push_str(", ");
                self.then([
                    Task::Print(child),
                    Task::Expanded { child, index: index + 1, start, outer_len, outer_index },
                ]);
                return;
            }
            Some(_) => {}
        }
        (self.pack_len, self.pack_index) = (outer_len, outer_index);
    }

    /// The current element of a pack. The first pack in an expansion sets the number of elements.
    fn pack_element(&mut self, pack: List) -> Option<Id> {
        if self.pack_len.is_none() {
            (self.pack_len, self.pack_index) = (Some(pack.len), 0);
        }
        self.arena.child(pack, self.pack_index)
    }

    /// The target of a forward reference. Returns `None` if the reference is already being printed.
    fn forward_target(&mut self, id: Id, target: Option<Id>) -> Option<Id> {
        // The time of the search below grows with the number of active references.
        self.steps += self.active.len() / 8;
        target.filter(|_| !self.active.contains(&id))
    }

    /// Returns whether the type has this shape.
    fn has(&mut self, shape: Shape, of: Id) -> bool {
        let mut id = of;
        loop {
            self.steps += 1;
            let next = match self.arena.node(id) {
                Node::Array(..) => return shape != Shape::IsFunction,
                Node::Function { .. } | Node::Encoding { .. } => return shape != Shape::IsArray,
                Node::TypeParameter(_)
                | Node::ConstrainedParameter { .. }
                | Node::NonTypeParameter { .. }
                | Node::TemplateParameter { .. }
                | Node::ParameterPackDeclaration(_) => return shape == Shape::HasRight,
                Node::Qualified(of, _) => Some(of),
                Node::Pointer(of) | Node::Reference(of, _) | Node::MemberPointer { member: of, .. } => {
                    (shape == Shape::HasRight).then_some(of)
                }
                Node::Forward { target, .. } => self.forward_target(id, target),
                Node::ParameterPack(elements) => self.pack_element(elements),
                _ => None,
            };
            match next {
                Some(next) if self.steps <= MAX_STEPS => id = next,
                _ => return false,
            }
        }
    }

    /// Prints the left part, or the whole node if it has no parts.
    fn left(&mut self, id: Id) {
        let node = self.arena.node(id);
        match node {
            Node::Text(text) => self.out.push_str(text),
            Node::Forward { target, .. } => {
                if let Some(target) = self.forward_target(id, target) {
                    self.active.push(id);
                    self.then([Task::Left(target), Task::EndForward]);
                }
            }
            Node::ArgumentPack(elements) | Node::Children(elements) => {
                self.tasks.push(Self::elements(elements))
            }
            Node::ParameterPack(elements) => {
                if let Some(element) = self.pack_element(elements) {
                    self.tasks.push(Task::Left(element));
                }
            }
            Node::Expansion(child) => self.expand(child),
            _ if self.type_left(node) || self.name(node) => {}
            _ => self.expression(node),
        }
    }

    /// Prints the right part, if the node has one.
    fn right(&mut self, id: Id) {
        match self.arena.node(id) {
            Node::Forward { target, .. } => {
                if let Some(target) = self.forward_target(id, target) {
                    self.active.push(id);
                    self.then([Task::Right(target), Task::EndForward]);
                }
            }
            Node::ParameterPack(elements) => {
                if let Some(element) = self.pack_element(elements) {
                    self.tasks.push(Task::Right(element));
                }
            }
            node => self.type_right(node),
        }
    }
}

//! Stages of rings are used by the role that holds them, and all roles of a ring go through the same sequence of stages.

use std::collections::BTreeMap;

use tilewright_diag::{Diagnostic, Span};

use super::identifiers::check_name;
use crate::arena::Handle;
use crate::tile::buffer::Buffer;
use crate::tile::kernel::{Kernel, Loop, Part, Stmt};
use crate::tile::op::Effect;
use crate::tile::ring::{Hold, Ring, Side};
use crate::tile::role::Role;
use crate::tile::value::Value;

pub(super) fn check(kernel: &Kernel, found: &mut Vec<Diagnostic>) {
    kernel.rings.iter().for_each(|(_, ring)| check_ring(kernel, ring, found));
    if kernel.rings.is_empty() || !found.is_empty() {
        return;
    }
    let mut walk = Walk { kernel, open: Vec::new(), writers: BTreeMap::new(), conditions: 0, found };
    walk.body(&kernel.body);
    if found.is_empty() {
        kernel.rings.iter().for_each(|(ring, _)| check_roles(kernel, ring, found));
    }
}

/// A ring has a name of its own, stages, and something in them.
fn check_ring(kernel: &Kernel, ring: &Ring, found: &mut Vec<Diagnostic>) {
    check_name(&ring.name, ring.span, "a ring", found);
    let of_same_name = || kernel.buffers.iter().map(|(_, buffer)| (&buffer.name, buffer.span));
    if let Some((_, first)) = of_same_name().find(|(name, _)| **name == ring.name) {
        let finding = Diagnostic::error("K0204", format!("the name `{}` is taken", ring.name));
        let finding = finding.label(ring.span, "this ring").label(first, "first used here");
        found.push(finding.help("give the ring another name"));
    }
    let wrong =
        |message: String, help: &str| Diagnostic::error("K0281", message).label(ring.span, "this ring").help(help);
    if ring.stages < 1 {
        let message = format!("the ring `{}` cannot have {} stages", ring.name, ring.stages);
        found.push(wrong(message, "a ring has 1 stage or more; with 2 or more, one is filled while another is used"));
    }
    if ring.buffers.is_empty() && !ring.claims() {
        let message = format!("the stages of the ring `{}` carry nothing", ring.name);
        found.push(wrong(
            message,
            "declare what a stage carries: k.ring(\"ab\", 3, |r| r.shared(\"a\", BF16, [64, 64]))",
        ));
    }
    if ring.is_exchange() && !ring.buffers.iter().any(|buffer| kernel.is_in_tensor_memory(*buffer)) {
        let message = format!("the exchange `{}` has no tensor memory", ring.name);
        found.push(wrong(
            message,
            "roles exchange sums, r.tensor(..): pass shared memory on in rings, k.ring(..), one for each direction",
        ));
    }
}

/// A role that holds a stage.
struct Open {
    hold: Handle<Hold>,
    is_ended: bool,
}

struct Walk<'a> {
    kernel: &'a Kernel,
    /// The holds that began in the lists of statements around the current one.
    open: Vec<Open>,
    /// The role that writes each buffer of a ring.
    writers: BTreeMap<Handle<Buffer>, (Handle<Role>, Span)>,
    /// The number of conditions around the current statement.
    conditions: usize,
    found: &'a mut Vec<Diagnostic>,
}

impl Walk<'_> {
    fn body(&mut self, body: &[Stmt]) {
        let outside = self.open.len();
        for stmt in body {
            match stmt {
                Stmt::Begin(hold) => self.begin(*hold),
                Stmt::End(hold) => self.end(*hold, outside),
                Stmt::Op(op) => {
                    let op = &self.kernel.ops[*op];
                    for (place, tile) in op.operands.iter().enumerate() {
                        self.access(tile.buffer, op.effect(place), (op.role, op.span));
                    }
                }
                Stmt::Parallel(parallel) => {
                    let parallel = &self.kernel.parallels[*parallel];
                    for element in &parallel.body {
                        element.for_each_access(&mut |access, writes| {
                            let effect = if writes { Effect::Write } else { Effect::Read };
                            self.access(access.buffer, effect, (parallel.role, access.span));
                        });
                    }
                }
                Stmt::EachThread(elements) => {
                    for element in elements {
                        element.for_each_access(&mut |access, _| {
                            self.access(access.buffer, Effect::Read, (None, access.span))
                        });
                    }
                }
                Stmt::Loop(inner) => self.body(&inner.body),
                Stmt::If(branch) => {
                    self.condition(&branch.cond);
                    self.conditions += 1;
                    self.body(&branch.then);
                    self.body(&branch.otherwise);
                    self.conditions -= 1;
                }
            }
        }
        let left = self.open.split_off(outside);
        left.into_iter().filter(|open| !open.is_ended).for_each(|open| self.leaks(open.hold));
    }

    fn condition(&mut self, cond: &Value) {
        cond.for_each_load(&mut |access| self.access(access.buffer, Effect::Read, (None, access.span)));
    }

    fn begin(&mut self, handle: Handle<Hold>) {
        let hold = &self.kernel.holds[handle];
        let title = self.kernel.hold_title(hold);
        let wrong = |message: String| Diagnostic::error("K0282", message).label(hold.span, "here");
        let is_open = |open: &&Open| {
            let other = &self.kernel.holds[open.hold];
            !open.is_ended && (other.ring, other.role) == (hold.ring, hold.role)
        };
        if hold.role.is_none() {
            let message = format!("`{title}` stands outside of roles");
            self.found.push(wrong(message).help("a ring is between roles: write it in k.role(\"load\", 1, |k| ..)"));
        } else if let Some(open) = self.open.iter().find(is_open) {
            let first = self.kernel.holds[open.hold].span;
            let message = format!("`{title}` while the role holds another stage of the ring");
            let finding = wrong(message).label(first, "which begins here");
            self.found.push(finding.help("end that one first, or use a ring of its own for what is held longer"));
        } else if self.conditions > 0 {
            let message = format!("`{title}` is under a condition");
            let help = "all roles of a ring go through the same stages: take the stage always, and put the condition around the ops inside";
            self.found.push(wrong(message).help(help));
        }
        self.open.push(Open { hold: handle, is_ended: false });
    }

    /// The end of a hold that began in the same list of statements, which is from place `first` on.
    fn end(&mut self, handle: Handle<Hold>, first: usize) {
        let place = self.open.iter().position(|open| open.hold == handle);
        if let Some(at) = place {
            self.open[at].is_ended = true;
        }
        if place.is_none_or(|at| at < first) {
            self.leaks(handle);
        }
    }

    /// A stage is not given back where it was taken.
    fn leaks(&mut self, handle: Handle<Hold>) {
        let hold = &self.kernel.holds[handle];
        let name = &self.kernel.rings[hold.ring].name;
        let ([begin, end], closure) = (hold.side.ends(), hold.side.name());
        let message = format!("a stage of `{name}` has no `{end}` in the loop or branch of its `{begin}`");
        let finding = Diagnostic::error("K0282", message).label(hold.span, "the stage is taken here");
        let help = format!("call .{end}(k) on what .{begin}(k) returns, or use {name}.{closure}(k, |k, stage| ..)");
        self.found.push(finding.help(help));
    }

    /// A statement of a role accesses a buffer.
    fn access(&mut self, buffer: Handle<Buffer>, effect: Effect, (role, span): (Option<Handle<Role>>, Span)) {
        let kernel = self.kernel;
        let Some(handle) = kernel.ring_of(buffer) else { return };
        let (name, ring) = (&kernel.buffers[buffer].name, &kernel.rings[handle]);
        let is_held = |open: &&Open| {
            let hold = &kernel.holds[open.hold];
            !open.is_ended && hold.ring == handle && hold.role == role
        };
        let wrong = |message: String| Diagnostic::error("K0283", message).label(span, "here");
        let Some(open) = self.open.iter().find(is_held) else {
            let who = match role {
                Some(role) => format!("by the role `{}` while it holds none", kernel.roles[role].name),
                None => "outside of roles".to_string(),
            };
            let message = format!("`{name}` is in the stages of the ring `{}`, and is used {who}", ring.name);
            let finding = wrong(message).label(ring.span, "the ring is declared here");
            self.found.push(finding.help("use it inside of .produce or .consume, in the role that holds the stage"));
            return;
        };
        let hold = &kernel.holds[open.hold];
        match (hold.side, effect) {
            // Each of the two roles goes on with what the other one has left.
            _ if ring.is_exchange() && kernel.is_in_tensor_memory(buffer) => {}
            (Side::Consume, Effect::Read | Effect::Move) => {}
            (Side::Consume, Effect::Write | Effect::Update) => {
                let message = format!("`{name}` is written in a stage that the role consumes");
                let finding = wrong(message).label(hold.span, "the stage is taken here");
                self.found.push(
                    finding.help("other roles may read the same stage: write to a buffer that is not in the ring"),
                );
            }
            // Products are in order among each other.
            (Side::Produce, Effect::Update) if kernel.is_in_tensor_memory(buffer) => self.written(buffer, hold, span),
            (Side::Produce, Effect::Read | Effect::Move | Effect::Update) => {
                let message = format!("`{name}` is read in a stage that the role produces");
                let finding = wrong(message).label(hold.span, "the stage is taken here");
                self.found.push(finding.help(
                    "copies to a stage may still be in flight: compute in a fragment, and copy the result to the stage",
                ));
            }
            (Side::Produce, Effect::Write) => self.written(buffer, hold, span),
        }
    }

    /// A role writes a buffer of a ring, which no other role may write.
    fn written(&mut self, buffer: Handle<Buffer>, hold: &Hold, span: Span) {
        let kernel = self.kernel;
        let Some(role) = hold.role else { return };
        let (first, at) = *self.writers.entry(kernel.storage(buffer)).or_insert((role, span));
        if first != role {
            let [one, other] = [first, role].map(|role| &kernel.roles[role].name);
            let message = format!("`{}` is written by the roles `{one}` and `{other}`", kernel.buffers[buffer].name);
            let finding = Diagnostic::error("K0283", message).label(at, "written here").label(span, "and here");
            self.found
                .push(finding.help("each buffer of a stage is filled by one role: give each role buffers of its own"));
        }
    }
}

/// The roles that use a ring, each with the first hold, in the order of the text.
fn roles_of(kernel: &Kernel, ring: Handle<Ring>) -> Vec<(Handle<Role>, &Hold)> {
    let mut found: Vec<(Handle<Role>, &Hold)> = Vec::new();
    for (_, hold) in kernel.holds.iter().filter(|(_, hold)| hold.ring == ring) {
        let Some(role) = hold.role else { continue };
        if !found.iter().any(|(known, _)| *known == role) {
            found.push((role, hold));
        }
    }
    found
}

/// A ring has roles that produce and others that consume, which go through the same sequence.
fn check_roles(kernel: &Kernel, handle: Handle<Ring>, found: &mut Vec<Diagnostic>) {
    let ring = &kernel.rings[handle];
    let roles = roles_of(kernel, handle);
    for (role, first) in &roles {
        let is_other = |hold: &&Hold| (hold.ring, hold.role) == (handle, Some(*role)) && hold.side != first.side;
        if let Some(other) = kernel.holds.iter().map(|(_, hold)| hold).find(is_other) {
            let message =
                format!("the role `{}` both produces and consumes stages of `{}`", kernel.roles[*role].name, ring.name);
            let finding = Diagnostic::error("K0282", message).label(first.span, "here").label(other.span, "and here");
            found.push(finding.help("it would wait for itself: use a shared buffer that is not in a ring"));
            return;
        }
    }
    for side in [Side::Produce, Side::Consume] {
        if !roles.iter().any(|(_, hold)| hold.side == side) {
            let does = match side {
                Side::Produce => "fills",
                Side::Consume => "uses",
            };
            let message = format!("no role {does} the stages of the ring `{}`", ring.name);
            let finding = Diagnostic::error("K0281", message).label(ring.span, "this ring");
            found.push(finding.help("one role produces, k.role(\"load\", 1, |k| ..), and another consumes"));
            return;
        }
    }
    if let Some(finding) = wrong_parts(kernel, handle, &roles).or_else(|| wrong_exchange(kernel, handle, &roles)) {
        return found.push(finding);
    }
    let Some(((first, hold), rest)) = roles.split_first() else { return };
    let expected = kernel.sequence(handle, *first);
    for (role, other) in rest {
        let sequence = kernel.sequence(handle, *role);
        if sequence != expected {
            let [one, two] = [first, role].map(|role| &kernel.roles[*role].name);
            let message =
                format!("the roles `{one}` and `{two}` go through different numbers of stages of `{}`", ring.name);
            let finding = Diagnostic::error("K0284", message)
                .label(hold.span, format!("`{one}` goes through {expected}"))
                .label(other.span, format!("`{two}` goes through {sequence}"));
            found.push(
                finding.help("write the same loops around both; what a role skips, it skips inside of the stage"),
            );
        }
    }
}

/// The error for an exchange of more than two roles.
fn wrong_exchange(kernel: &Kernel, handle: Handle<Ring>, roles: &[(Handle<Role>, &Hold)]) -> Option<Diagnostic> {
    let ring = Some(&kernel.rings[handle]).filter(|ring| ring.is_exchange())?;
    let (role, hold) = roles.get(2)?;
    let message = format!("two roles exchange `{}`, and `{}` is another", ring.name, kernel.roles[*role].name);
    let finding = Diagnostic::error("K0281", message).label(hold.span, "here").label(ring.span, "this exchange");
    Some(finding.help("give the third role a buffer of its own"))
}

/// The error for roles that take turns, if there are not as many as they say, or if they fill stages.
fn wrong_parts(kernel: &Kernel, handle: Handle<Ring>, roles: &[(Handle<Role>, &Hold)]) -> Option<Diagnostic> {
    let (ring, parts) = (&kernel.rings[handle], kernel.parts(handle));
    let in_turn: Vec<(&Role, &Hold, Part)> =
        roles.iter().filter_map(|(role, hold)| Some((&kernel.roles[*role], *hold, *parts.get(role)?))).collect();
    let (first, hold, Part { of, .. }) = in_turn.first()?;
    let wrong = |message: String, hold: &Hold| Diagnostic::error("K0292", message).label(hold.span, "here");
    if let Some((role, hold, _)) = in_turn.iter().find(|(_, hold, _)| hold.side == Side::Produce) {
        let message = format!("the role `{}` fills stages of `{}` for some tiles only", role.name, ring.name);
        let help =
            "one role fills a buffer of a stage: fill the stages of all tiles in it, or use a ring for each role";
        return Some(wrong(message, hold).help(help));
    }
    if let Some((role, hold, part)) = in_turn.iter().find(|(_, _, part)| part.of != *of) {
        let message =
            format!("the roles `{}` and `{}` take turns with {of} and {} roles", first.name, role.name, part.of);
        return Some(wrong(message, hold).help("give all roles that take turns at a ring the same number of roles"));
    }
    let in_parts = kernel.holds_in_parts(handle);
    let is_other = |hold: &&Hold| {
        let part = hold.role.and_then(|role| parts.get(&role));
        let known = in_parts.iter().find(|(known, ..)| std::ptr::eq(*known, *hold)).map(|(_, part, _)| part);
        hold.ring == handle && part.is_some() && part != known
    };
    if let Some(hold) = kernel.holds.iter().map(|(_, hold)| hold).find(is_other) {
        let message = format!("a role uses stages of `{}` in turns, and others besides", ring.name);
        return Some(wrong(message, hold).help("let the role use all stages of the ring in the same turn"));
    }
    // The order of turns begins anew with a tile of the first role, which the tile before was not if their number is odd.
    let again = |(hold, _, around): &&(&Hold, Part, &Loop)| {
        let is_other =
            |(first, _, of_first): &(&Hold, Part, &Loop)| first.role == hold.role && !std::ptr::eq(*of_first, *around);
        in_parts.iter().any(is_other)
    };
    if let Some((hold, ..)) = in_parts.iter().rfind(again) {
        let message = format!("a role uses stages of `{}` in turns in two loops", ring.name);
        return Some(
            wrong(message, hold).help("let the role visit each tile once, and do there all that it does for the tile"),
        );
    }
    let turns = |index: i64| in_turn.iter().filter(move |(_, _, part)| part.index == index);
    for index in 0..*of {
        let message = match turns(index).map(|(role, ..)| &role.name).collect::<Vec<_>>()[..] {
            [_] => continue,
            [] => format!("no role uses the stages of `{}` in turn {index} of {of}", ring.name),
            [one, two, ..] => {
                format!("the roles `{one}` and `{two}` both take turn {index} of {of} at `{}`", ring.name)
            }
        };
        let help = format!(
            "a stage is used by one of the roles that take turns: let a role take each turn from 0 to {}",
            of - 1
        );
        return Some(wrong(message, hold).help(help));
    }
    None
}

//! The errors for components without layouts, at the user's lines: where a layout was fixed, which access needs another
//! one, the first element that differs, and what can be done.

use std::collections::BTreeMap;

use indexmap::IndexSet;
use tilewright_diag::{Diagnostic, Label, Span};
use tilewright_ir::Handle;
use tilewright_ir::tile::{Access, Buffer, Coord, Kernel, access_title};
use tilewright_layout::map::Map;

use crate::explain::{Clashing, Fault};
use crate::graph::Graph;
use crate::ids::MapId;
use crate::known::{Known, Reason};
use crate::nest::Touch;
use crate::node::{Node, Origin};
use crate::scene::{Kind, Scene, Work};
use crate::search;
use crate::state::State;
use crate::steps::{Violation, threads_title};
use crate::storage::Storages;
use crate::strict::iteration_title;
use crate::tables::Tables;
use crate::words::{Words, coordinates};

/// The maximum number of layouts of the user that are left out on trial, of fragments and of loops.
const TRIALS: usize = 4;

/// A component for which no layouts were found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) graph: &'a Graph,
    pub(crate) storages: &'a Storages,
    pub(crate) known: &'a Known,
    /// The steps of loops that the user laid out, by node.
    pub(crate) laid_out: &'a BTreeMap<usize, Map>,
    /// The nodes of the component.
    pub(crate) members: &'a [usize],
    pub(crate) scene: &'a Scene<'a>,
}

impl Refusal<'_> {
    /// The error: the first conflict with layouts that were given or follow from those, else the conflict in the
    /// attempt that got furthest.
    pub(crate) fn told(&self, tables: &mut Tables, violation: &Violation) -> Diagnostic {
        let mut state = self.scene.start();
        let everything = (0..self.scene.items.len()).collect();
        self.scene.propagate(tables, &mut state, everything, u64::MAX, &mut Vec::new());
        let fault = self.scene.fault(tables, &state);
        let finding = fault.and_then(|(item, fault)| self.of_fault(tables, &state, item, fault));
        let mut finding = finding.unwrap_or_else(|| self.of_search(violation));
        let mut help = self.dispensable(tables);
        help.append(&mut finding.help);
        finding.help = help;
        finding
    }

    fn of_fault(&self, tables: &mut Tables, state: &State, item: usize, fault: Fault) -> Option<Diagnostic> {
        match fault {
            Fault::Clash(clashing) => self.conflict(tables, state, item, clashing),
            Fault::Apart { touch, iteration } => self.apart(tables, state, item, (touch, iteration)),
            Fault::Row { row, thread } => self.stray_result(tables, state, item, (row, thread)),
            Fault::Several => Some(self.read_and_written(tables, state, item)),
            Fault::Missing { .. } | Fault::Nowhere => None,
        }
    }

    /// The error for a fragment that needs two layouts.
    fn conflict(&self, tables: &mut Tables, state: &State, item: usize, clashing: Clashing) -> Option<Diagnostic> {
        let Clashing { touch, steps, iteration, granule, .. } = clashing;
        let work = self.scene.work(item)?;
        let (used, told) = (work.touches[touch], &work.nest.touches[touch]);
        let (map, words) = (state.map(used.storage)?, self.words(used.storage));
        let wanted = tables.complete(steps, used.pattern);
        let threads = threads_title(tables.owners(steps).of(iteration));
        let verb = if used.writes { "written" } else { "read" };
        let needs = if tables.facts(wanted).is_whole {
            format!("`{}` needs {}", work.nest.title, words.layout(tables.map(wanted)))
        } else {
            format!("`{}` is {verb} here, on {threads}", told.title)
        };
        let place = words.place(tables.map(map), granule);
        let mut finding = Diagnostic::error("I0702", format!("`{}` needs two different layouts", words.name()));
        finding.labels.extend(self.fixed(tables, state, used.storage).map(label));
        finding = finding
            .label(told.span, needs)
            .note(format!("first difference: {} is on {place}, wanted on {threads}", words.element(granule)))
            .note(self.whereabouts(tables, state, (item, work), clashing));
        finding.notes.extend(self.descent(state, used.storage));
        Some(finding.help(if used.writes {
            format!("store to a separate fragment, and convert that to `{}` with k.convert_layout", words.name())
        } else {
            format!(
                "read a copy of `{}` made with k.convert_layout, or let k.allow_conversions() make one",
                words.name()
            )
        }))
    }

    /// Why an iteration is on its threads.
    fn whereabouts(&self, tables: &Tables, state: &State, (item, work): (usize, &Work), clashing: Clashing) -> String {
        let iteration = self.iteration(item, work, clashing.iteration);
        let threads = threads_title(tables.owners(clashing.steps).of(clashing.iteration));
        let there = clashing.follows.filter(|_| work.laid_out.is_none()).and_then(|storage| {
            let layout = self.words(storage).layout(tables.map(state.map(storage)?));
            let reason = self.reason(state, storage)?;
            Some(format!("where `{}` is: {layout}, {reason}", self.words(storage).name()))
        });
        match there {
            Some(there) => format!("{iteration} is on {threads}, {there}"),
            None if work.laid_out.is_some() => format!("{iteration} is on {threads}, as the layout of the loop says"),
            None => format!("{iteration} is on {threads}"),
        }
    }

    /// The error for an iteration that uses elements that no thread has all of.
    fn apart(
        &self,
        tables: &Tables,
        state: &State,
        item: usize,
        (touch, iteration): (usize, usize),
    ) -> Option<Diagnostic> {
        let work = self.scene.work(item)?;
        let (used, told) = (work.touches[touch], &work.nest.touches[touch]);
        let (map, words) = (state.map(used.storage)?, self.words(used.storage));
        let (pattern, owners) = (tables.pattern(used.pattern), tables.owners(map));
        let first = pattern.of(iteration).next()?;
        let is_far = |granule: &usize| owners.of(*granule).iter().all(|thread| !owners.has(first, *thread as usize));
        let is_other = |granule: &usize| owners.of(*granule) != owners.of(first);
        let other = pattern.of(iteration).find(is_far).or_else(|| pattern.of(iteration).find(is_other))?;
        let vars = self.variables(item, told);
        let message = match &vars[..] {
            [] => format!("data selects elements of `{}` that are on different threads", words.name()),
            [var] => format!("`{var}` runs over elements of `{}` that are on different threads", words.name()),
            [.., last] => {
                format!("`{last}` and others run over elements of `{}` that are on different threads", words.name())
            }
        };
        let title = self.iteration(item, work, iteration);
        let [one, two] = [first, other]
            .map(|granule| format!("{}, on {}", words.element(granule), words.place(tables.map(map), granule)));
        let mut finding =
            Diagnostic::error("I0707", message).label(told.span, format!("`{}` is used here", told.title));
        finding.labels.extend(self.fixed(tables, state, used.storage).map(label));
        finding = finding.note(format!("{title} touches {one}, and {two}"));
        finding.notes.extend(self.descent(state, used.storage));
        finding = finding
            .help(format!(
                "declare another fragment without a layout, convert `{0}` to it with k.convert_layout(other, {0}), and \
                 use that here",
                words.name()
            ))
            .help(format!("or copy `{}` to shared memory, where every thread can read it", words.name()));
        Some(match vars.last() {
            Some(var) => finding.help(format!(
                "or make `{var}` a variable of the parallel loop, so that each thread uses its own elements; k.reduce \
                 combines rows"
            )),
            None => finding,
        })
    }

    /// The variables in the index of an access, other than those of its nest.
    fn variables(&self, item: usize, told: &Touch) -> Vec<String> {
        let mut found: IndexSet<String> = IndexSet::new();
        let mut add = |name: &str| {
            found.insert(name.to_string());
        };
        match self.graph.nodes[self.scene.items[item].at].0 {
            Origin::Parallel(parallel) => {
                let parallel = &self.kernel.parallels[parallel];
                let mut look = |access: &Access, _: bool| {
                    if access.span != told.span || access_title(self.kernel, access) != told.title {
                        return;
                    }
                    for coord in &access.index {
                        let Coord::At(expr) = coord else { continue };
                        expr.for_each_var(&mut |var| {
                            if !parallel.vars.contains(var) {
                                add(var.name());
                            }
                        });
                    }
                };
                parallel.body.iter().for_each(|element| element.for_each_access(&mut look));
            }
            Origin::Op(op) => {
                let tiles = self.kernel.ops[op].operands.iter();
                for tile in tiles.filter(|tile| self.kernel.storage(tile.buffer) == told.storage) {
                    tile.starts.iter().for_each(|start| start.for_each_var(&mut |var| add(var.name())));
                }
            }
        }
        found.into_iter().collect()
    }

    /// The error for a result on a thread without any part of its row.
    fn stray_result(
        &self,
        tables: &mut Tables,
        state: &State,
        item: usize,
        (row, thread): (usize, u32),
    ) -> Option<Diagnostic> {
        let Kind::Reduce(fold) = &self.scene.items[item].kind else { return None };
        let node = self.scene.items[item].node;
        let rows = tables.complete(state.map(fold.src)?, fold.pattern);
        let (dst, src) = (self.words(fold.dst), self.words(fold.src));
        let message = format!("`{}` is not where `{}` leaves its results", dst.name(), node.title());
        let mut finding = Diagnostic::error("I0708", message);
        finding.labels.extend(self.fixed(tables, state, fold.dst).map(label));
        let layout = dst.layout(tables.map(rows));
        finding = finding
            .label(node.span(), format!("each result is on the threads that have part of its row: {layout}"))
            .note(format!(
                "first difference: {} of `{}` is on thread {thread}, and its row of `{}` is on {}",
                dst.element(row),
                dst.name(),
                src.name(),
                threads_title(tables.owners(rows).of(row))
            ));
        finding.notes.extend(self.descent(state, fold.dst));
        finding.notes.extend(self.descent(state, fold.src));
        Some(finding.help(format!(
            "reduce into a fragment without a layout, and convert that to `{}` with k.convert_layout",
            dst.name()
        )))
    }

    /// The error for a nest in which only one thread may do an iteration, but several threads have what it touches.
    fn read_and_written(&self, tables: &Tables, state: &State, item: usize) -> Diagnostic {
        let node = self.scene.items[item].node;
        let message =
            format!("`{}` reads memory that it writes, and several threads would do each iteration", node.title());
        let mut finding = Diagnostic::error("I0702", message).label(node.span(), "this loop");
        let is_crowded = |storage: &usize| state.map(*storage).is_some_and(|map| !tables.facts(map).is_sole);
        let crowded = self.scene.items[item].storages.iter().copied().find(is_crowded);
        finding.labels.extend(crowded.and_then(|storage| self.fixed(tables, state, storage)).map(label));
        finding.help("write to memory that is not read: one of the threads could read what another has written")
    }

    /// The error for the conflict in the attempt that got furthest.
    fn of_search(&self, violation: &Violation) -> Diagnostic {
        let message = format!("no layouts fit everything that `{}` touches", violation.op);
        let finding = Diagnostic::error("I0702", message).label(violation.span, "this op");
        let Some(clash) = &violation.clash else { return finding.note(violation.what.clone()) };
        let words = Words::of(self.kernel, self.storages, clash.fragment);
        let (executing, owning) = (threads_title(&clash.executing), threads_title(&clash.owning));
        let verb = if clash.writes { "written" } else { "read" };
        finding.label(clash.span, format!("`{}` is {verb} here", words.name())).note(format!(
            "in the best choice, {} is {verb} on {executing}, but it is on {owning}",
            words.element(clash.element)
        ))
    }

    fn words(&self, storage: usize) -> Words<'_> {
        Words::of(self.kernel, self.storages, self.scene.storages[storage].handle)
    }

    /// Why a storage has its map.
    fn reason(&self, state: &State, storage: usize) -> Option<Reason> {
        match state.fixed[storage]?.why {
            Some(why) => Some(self.scene.reason(&why)),
            None => Some(self.known.get(self.scene.storages[storage].handle)?.reason.clone()),
        }
    }

    /// Where the layout of a fragment was fixed, and the text of the label there.
    fn fixed(&self, tables: &Tables, state: &State, storage: usize) -> Option<(Span, String)> {
        let (map, reason): (MapId, Reason) = (state.map(storage)?, self.reason(state, storage)?);
        let words = self.words(storage);
        let layout = words.layout(tables.map(map));
        let text = if reason.is_written() {
            format!("`{}` is laid out here: {layout}", words.name())
        } else {
            format!("`{}` is fixed here by `{}` ({}): {layout}", words.name(), reason.op, reason.rule)
        };
        Some((reason.span, text))
    }

    /// A note on the fragment from which the layout of another follows in the end, if it follows from one.
    fn descent(&self, state: &State, storage: usize) -> Option<String> {
        let parent = |storage: usize| state.fixed[storage]?.why?.parent;
        let mut seen = vec![storage];
        while let Some(next) = parent(*seen.last()?).filter(|next| !seen.contains(next)) {
            seen.push(next);
        }
        let first = *seen.last().filter(|_| seen.len() > 1)?;
        let reason = self.reason(state, first)?;
        Some(format!("`{}` follows from `{}`: {reason}", self.words(storage).name(), self.words(first).name()))
    }

    /// An iteration by the values of its variables.
    fn iteration(&self, item: usize, work: &Work, iteration: usize) -> String {
        match self.graph.nodes[self.scene.items[item].at].0 {
            Origin::Parallel(parallel) => iteration_title(&self.kernel.parallels[parallel], work.nest, iteration),
            Origin::Op(_) => format!("element {} of the op", coordinates(&work.nest.extents, iteration)),
        }
    }

    /// Help about layouts of the user without which the search succeeds: each was left out, and the search ran again.
    fn dispensable(&self, tables: &mut Tables) -> Vec<String> {
        let mut help = Vec::new();
        for storage in self.droppable().into_iter().take(TRIALS) {
            if self.has_answer(tables, &self.known.without(storage), self.laid_out) {
                let buffer = &self.kernel.buffers[storage];
                help.push(format!(
                    "leave out the layout of `{}` ({}): there is one that fits",
                    buffer.name, buffer.span
                ));
            }
        }
        let loops: Vec<usize> = self.members.iter().copied().filter(|at| self.laid_out.contains_key(at)).collect();
        for at in loops.into_iter().take(TRIALS) {
            let mut laid_out = self.laid_out.clone();
            laid_out.remove(&at);
            if self.has_answer(tables, self.known, &laid_out) {
                help.push(format!("leave out the layout of the loop at {}", self.graph.nodes[at].1.span()));
            }
        }
        help
    }

    /// Fragments of the component that the user laid out, and whose layout nothing else dictates or demands.
    fn droppable(&self) -> Vec<Handle<Buffer>> {
        let handles = self.scene.storages.iter().map(|stored| stored.handle);
        let is_written =
            |storage: Handle<Buffer>| self.known.get(storage).is_some_and(|fixed| fixed.reason.is_written());
        let is_dictated = |storage: Handle<Buffer>| {
            self.graph.nodes.iter().any(|(_, node)| match node {
                Node::Gemm(dictation) => dictation.fragments.iter().any(|dictated| dictated.storage == storage),
                Node::Nest(_) | Node::Reduce(_) => false,
            })
        };
        let is_demanded = |storage: Handle<Buffer>| self.graph.floating.contains_key(&storage);
        handles.filter(|at| is_written(*at) && !is_dictated(*at) && !is_demanded(*at)).collect()
    }

    fn has_answer(&self, tables: &mut Tables, known: &Known, laid_out: &BTreeMap<usize, Map>) -> bool {
        let scene = Scene::of(tables, (self.graph, self.storages), known, laid_out, self.members);
        search::best(&scene, tables, tables.left).is_ok()
    }
}

fn label((span, text): (Span, String)) -> Label {
    Label { span, text }
}

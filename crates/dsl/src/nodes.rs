//! The nodes of the kernels being built. Handles of index expressions, values and sizes are numbers of nodes here, so
//! that they can be copied freely; the nodes live as long as the closure of [`kernel`](crate::kernel) runs.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};

use tilewright_diag::{Diagnostic, Span};
use tilewright_expr as expr;
use tilewright_ir::{Caching, Handle, tile};

use crate::known_size::KnownSize;
use crate::reads::{ReadAgain, Reads};

/// The kernel that a handle belongs to. The number distinguishes kernels of one source line; no order and no text
/// depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelId {
    /// Unique in the process.
    number: u32,
    /// Where the kernel was written.
    span: Span,
}

/// A body of the kernel, a loop or a branch, whose closure is running or has run. A value made of a loop variable or of
/// a name is valid only in its body. Bodies are numbered as they begin, so that among the open ones, the innermost has
/// the greatest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyId(u32);

impl BodyId {
    /// The body of the kernel, which is open as long as the kernel is being built.
    pub(crate) const KERNEL: BodyId = BodyId(0);

    /// The body in which a value is valid that is made of a part valid in this body and of one valid in the other. A
    /// part whose body has ended is reported where it is used, once.
    pub(crate) fn and(self, other: BodyId) -> BodyId {
        let both = with(|nodes| BodyId(self.while_open(nodes).0.max(other.while_open(nodes).0)));
        both.unwrap_or(BodyId::KERNEL)
    }

    /// The body itself while it is open, else that of the kernel.
    fn while_open(self, nodes: &Nodes) -> BodyId {
        if nodes.is_open(self) { self } else { BodyId::KERNEL }
    }
}

/// The nodes of one kernel.
pub(crate) struct Nodes {
    identity: KernelId,
    exprs: Vec<expr::Expr>,
    values: Vec<tile::Value>,
    /// The sizes, in the order of the parameters.
    sizes: Vec<KnownSize>,
    /// Misuses of handles, and other mistakes found while building.
    mistakes: Vec<Diagnostic>,
    /// Where each body begins, by its number; that of the kernel first.
    bodies: Vec<Span>,
    /// The open bodies except that of the kernel, the innermost last.
    open: Vec<BodyId>,
    /// When the values of elements were made.
    reads: Reads,
    /// The shared buffers whose storage no other may use.
    alone: BTreeSet<Handle<tile::Buffer>>,
    caching: BTreeMap<Handle<tile::Buffer>, Caching>,
}

/// What is known of a kernel when it ends, besides its statements.
#[derive(Default)]
pub(crate) struct Ended {
    pub(crate) sizes: Vec<KnownSize>,
    /// Misuses of handles, and other mistakes.
    pub(crate) mistakes: Vec<Diagnostic>,
    /// The elements that are read again after a store.
    pub(crate) read_again: Vec<ReadAgain>,
    /// The shared buffers whose storage no other may use.
    pub(crate) alone: BTreeSet<Handle<tile::Buffer>>,
    /// How accesses to tensors are cached, where the user says it.
    pub(crate) caching: BTreeMap<Handle<tile::Buffer>, Caching>,
}

impl Nodes {
    fn is_open(&self, body: BodyId) -> bool {
        body == BodyId::KERNEL || self.open.contains(&body)
    }

    /// Records a mistake, once for each place in the source.
    fn note(&mut self, found: Diagnostic) {
        let place = |of: &Diagnostic| of.labels.first().map(|label| label.span);
        let same = |known: &Diagnostic| known.message == found.message && place(known) == place(&found);
        if !self.mistakes.iter().any(same) {
            self.mistakes.push(found);
        }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        // The last one first: its operands precede it and still exist, so that no drop recurses through a long chain.
        while self.values.pop().is_some() {}
    }
}

thread_local! {
    /// The kernels that are being built in this thread, the innermost last.
    static OPEN: RefCell<Vec<Nodes>> = const { RefCell::new(Vec::new()) };
}

/// The number of the next kernel.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Keeps the nodes of a kernel while it lives.
pub(crate) struct OpenKernel(KernelId);

/// Begins a kernel.
pub(crate) fn open(span: Span) -> OpenKernel {
    let identity = KernelId { number: NEXT.fetch_add(1, Ordering::Relaxed), span };
    let nodes = Nodes {
        identity,
        exprs: Vec::new(),
        values: Vec::new(),
        sizes: Vec::new(),
        mistakes: Vec::new(),
        bodies: vec![span],
        open: Vec::new(),
        reads: Reads::default(),
        alone: BTreeSet::new(),
        caching: BTreeMap::new(),
    };
    OPEN.with_borrow_mut(|open| open.push(nodes));
    OpenKernel(identity)
}

impl OpenKernel {
    pub(crate) fn identity(&self) -> KernelId {
        self.0
    }

    /// Ends the kernel: its handles are valid no more.
    pub(crate) fn close(self) -> Option<Ended> {
        let own = OPEN.with_borrow_mut(|open| {
            let at = open.iter().position(|nodes| nodes.identity == self.0)?;
            Some(open.remove(at))
        });
        own.map(|mut nodes| {
            let reads = std::mem::take(&mut nodes.reads);
            Ended {
                sizes: std::mem::take(&mut nodes.sizes),
                mistakes: std::mem::take(&mut nodes.mistakes),
                read_again: reads.into_again(),
                alone: std::mem::take(&mut nodes.alone),
                caching: std::mem::take(&mut nodes.caching),
            }
        })
    }
}

impl Drop for OpenKernel {
    fn drop(&mut self) {
        OPEN.with_borrow_mut(|open| open.retain(|nodes| nodes.identity != self.0));
    }
}

/// The kernel that is being built, if there is one.
pub(crate) fn current() -> Option<KernelId> {
    with(|nodes| nodes.identity)
}

fn with<T>(act: impl FnOnce(&mut Nodes) -> T) -> Option<T> {
    OPEN.with_borrow_mut(|open| open.last_mut().map(act))
}

/// Sets a shared buffer of the innermost kernel apart.
pub(crate) fn set_apart(buffer: Handle<tile::Buffer>) {
    with(|nodes| nodes.alone.insert(buffer));
}

/// Says how accesses to a tensor of the innermost kernel are cached.
pub(crate) fn set_caching(buffer: Handle<tile::Buffer>, caching: Caching) {
    with(|nodes| nodes.caching.insert(buffer, caching));
}

/// A node that a handle refers to.
pub(crate) trait Node: Sized + Clone {
    /// The nodes of this kind.
    fn list(nodes: &mut Nodes) -> &mut Vec<Self>;

    /// A placeholder for a missing node, until the mistake is reported. It is not a constant: a value computed from it
    /// outside every kernel is a handle that is reported where it is used, rather than a number.
    fn none() -> Self;

    /// Its name, if it is a variable or a value with a name.
    fn name(&self) -> Option<&str>;
}

/// The variable of which nothing is known.
pub(crate) fn unknown() -> expr::Var {
    let expr::ValueRange { lo, hi } = expr::ValueRange::ALL;
    expr::Var::new("unknown", lo, hi)
}

impl Node for expr::Expr {
    fn list(nodes: &mut Nodes) -> &mut Vec<expr::Expr> {
        &mut nodes.exprs
    }

    fn none() -> expr::Expr {
        expr::Expr::var(&unknown())
    }

    fn name(&self) -> Option<&str> {
        match self.node() {
            expr::Node::Var(var) => Some(var.name()),
            _ => None,
        }
    }
}

impl Node for tile::Value {
    fn list(nodes: &mut Nodes) -> &mut Vec<tile::Value> {
        &mut nodes.values
    }

    fn none() -> tile::Value {
        tile::Value::from(expr::Expr::none())
    }

    fn name(&self) -> Option<&str> {
        match self {
            tile::Value::Named(name) => Some(name),
            tile::Value::Index(index) => index.name(),
            tile::Value::Const(_) | tile::Value::Load(_) | tile::Value::Op(..) | tile::Value::Cast(..) => None,
        }
    }
}

impl Node for KnownSize {
    fn list(nodes: &mut Nodes) -> &mut Vec<KnownSize> {
        &mut nodes.sizes
    }

    /// Five of them are still no tensor that is too large, which would be another mistake.
    fn none() -> KnownSize {
        let var = expr::Var::new("unknown", 1, 1 << 11);
        KnownSize { parameter: tile::Size { var, span: Span::here() }, most: None, used: None }
    }

    fn name(&self) -> Option<&str> {
        Some(self.parameter.var.name())
    }
}

/// A node by number, in its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId {
    kernel: KernelId,
    /// Index in the list of its kind.
    at: u32,
    /// The body in which it is valid.
    body: BodyId,
}

impl NodeId {
    pub(crate) fn body(self) -> BodyId {
        self.body
    }
}

/// Adds a node that is valid in `body` to the kernel that is being built; `None` if there is none.
pub(crate) fn add<T: Node>(node: T, body: BodyId) -> Option<NodeId> {
    with(|nodes| {
        let kernel = nodes.identity;
        let body = body.while_open(nodes);
        let list = T::list(nodes);
        list.push(node);
        NodeId { kernel, at: (list.len() - 1) as u32, body }
    })
}

/// The innermost body that is open.
pub(crate) fn innermost() -> BodyId {
    with(|nodes| nodes.open.last().copied()).flatten().unwrap_or(BodyId::KERNEL)
}

/// Runs `make` in a new body that begins at this line.
pub(crate) fn in_body<T>(begins: Span, make: impl FnOnce() -> T) -> T {
    let body = with(|nodes| {
        let body = BodyId(nodes.bodies.len() as u32);
        nodes.bodies.push(begins);
        nodes.open.push(body);
        body
    });
    let made = make();
    with(|nodes| nodes.open.retain(|open| Some(*open) != body));
    made
}

/// The node with this number. It is a mistake at the caller's line if it belongs to a kernel other than the one being
/// built, or if its body has ended.
#[track_caller]
pub(crate) fn get<T: Node>(number: NodeId) -> T {
    get_at(number, Span::here())
}

/// The same, where a mistake is at this line.
pub(crate) fn get_at<T: Node>(number: NodeId, span: Span) -> T {
    let found = with(|nodes| {
        if nodes.identity != number.kernel {
            nodes.note(foreign("a value", span, Some(number.kernel)));
            return None;
        }
        let found = T::list(nodes)[number.at as usize].clone();
        if !nodes.is_open(number.body) {
            let begins = nodes.bodies.get(number.body.0 as usize).copied();
            nodes.note(outside_its_body(found.name(), span, begins));
        }
        Some(found)
    });
    found.flatten().unwrap_or_else(T::none)
}

/// Replaces a node of the kernel that is being built.
pub(crate) fn set<T: Node>(number: NodeId, node: T) {
    with(|nodes| {
        if nodes.identity == number.kernel {
            T::list(nodes)[number.at as usize] = node;
        }
    });
}

/// The mistake of using a handle of another kernel, or of none.
pub(crate) fn foreign(what: &str, span: Span, of: Option<KernelId>) -> Diagnostic {
    let declare = if what == "a buffer" { "declare the buffer" } else { "make it" };
    let finding = Diagnostic::error("K0213", format!("{what} of another kernel")).label(span, "used here");
    let finding = match of {
        Some(of) => finding.label(of.span, "the kernel that it belongs to"),
        None => finding,
    };
    finding.help(format!("{declare} in this kernel; a function of `&mut KernelBuilder` can be called from both"))
}

/// The mistake of using a handle whose body has ended.
fn outside_its_body(name: Option<&str>, span: Span, begins: Option<Span>) -> Diagnostic {
    let (what, defined) = match name {
        Some(name) => (format!("`{name}`"), "it is defined in here"),
        None => ("a value".to_string(), "what it is made of is defined in here"),
    };
    let message = format!("{what} is used outside of the loop or branch that defines it");
    let finding = Diagnostic::error("K0217", message).label(span, "used here");
    let finding = begins.into_iter().fold(finding, |finding, begins| finding.label(begins, defined));
    finding
        .help("a loop variable or a name is known only inside its loop or branch: use it there, or rebuild the value")
}

/// Acts on what is known of the values of elements, in the kernel that is being built.
pub(crate) fn with_reads<T>(act: impl FnOnce(&mut Reads) -> T) -> Option<T> {
    with(|nodes| act(&mut nodes.reads))
}

/// Reports a mistake.
pub(crate) fn mistake(diagnostic: Diagnostic) {
    with(|nodes| nodes.note(diagnostic));
}

/// The names of the sizes declared so far.
pub(crate) fn size_names() -> Vec<String> {
    with(|nodes| nodes.sizes.iter().map(|size| size.parameter.var.name().to_string()).collect()).unwrap_or_default()
}

impl std::fmt::Debug for OpenKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

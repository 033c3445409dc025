//! Changes to ops, loops, stores and atomic operations after they were added. It lives as long as the closure of
//! [`kernel`](crate::kernel) runs, and the handles of ops, loops and stores borrow it: none of them outlives its kernel.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;

use tilewright_ir::tile::{Claim, Kernel, MemoryOrdering, OldElement};

/// A change to an op or a loop after it was added.
type Edit = Box<dyn FnOnce(&mut Kernel)>;

/// The number of a store or an atomic operation in its kernel, in the order in which they are added. No number is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WriteId(u32);

/// What is specified of a store or an atomic operation after it was added.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// What is claimed about the index of a store.
    pub(crate) claim: Claim,
    /// The name of the element before an atomic operation.
    pub(crate) old: Option<OldElement>,
    /// How an atomic operation is ordered.
    pub(crate) ordering: MemoryOrdering,
}

/// Changes to what is in a kernel already.
#[derive(Default)]
pub(crate) struct Later {
    /// Changes to apply when the kernel is complete, in order.
    edits: RefCell<Vec<Edit>>,
    /// What is specified of the stores and atomic operations whose loops are still being built.
    said: RefCell<BTreeMap<WriteId, Said>>,
    /// The number of the next one.
    next: Cell<u32>,
}

impl Later {
    /// Changes an op or a loop when the kernel is complete.
    pub(crate) fn edit(&self, change: impl FnOnce(&mut Kernel) + 'static) {
        self.edits.borrow_mut().push(Box::new(change));
    }

    /// Applies the changes to the complete kernel.
    pub(crate) fn apply(&self, kernel: &mut Kernel) {
        self.edits.take().into_iter().for_each(|edit| edit(kernel));
    }

    /// The number of the store or atomic operation that is added next.
    pub(crate) fn next_write(&self) -> WriteId {
        WriteId(self.next.get())
    }

    /// Adds a store or an atomic operation, of which nothing is specified yet.
    pub(crate) fn add_write(&self) -> WriteId {
        let write = self.next_write();
        self.next.set(write.0 + 1);
        let said = Said { claim: Claim::None, old: None, ordering: MemoryOrdering::default() };
        self.said.borrow_mut().insert(write, said);
        write
    }

    /// Specifies something of a store or an atomic operation; false if its loop is complete.
    pub(crate) fn say(&self, write: WriteId, change: impl FnOnce(&mut Said)) -> bool {
        self.said.borrow_mut().get_mut(&write).map(change).is_some()
    }

    /// Removes what is specified from `first` on, in order: their loop is complete.
    pub(crate) fn said_from(&self, first: WriteId) -> Vec<Said> {
        self.said.borrow_mut().split_off(&first).into_values().collect()
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Later { edits, said, next } = self;
        f.debug_struct("Later").field("edits", &edits.borrow().len()).field("said", said).field("next", next).finish()
    }
}

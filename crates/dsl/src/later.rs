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

/// The attributes that a store or an atomic operation gets after it was added.
#[derive(Clone, Debug)]
pub(crate) struct WriteAttributes {
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
    /// The attributes of the stores and atomic operations whose loops are still being built.
    attributes: RefCell<BTreeMap<WriteId, WriteAttributes>>,
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

    /// Adds a store or an atomic operation, with the default attributes.
    pub(crate) fn add_write(&self) -> WriteId {
        let write = self.next_write();
        self.next.set(write.0 + 1);
        let attributes = WriteAttributes { claim: Claim::None, old: None, ordering: MemoryOrdering::default() };
        self.attributes.borrow_mut().insert(write, attributes);
        write
    }

    /// Changes the attributes of a store or an atomic operation; false if its loop is complete.
    pub(crate) fn specify(&self, write: WriteId, change: impl FnOnce(&mut WriteAttributes)) -> bool {
        self.attributes.borrow_mut().get_mut(&write).map(change).is_some()
    }

    /// Removes the attributes of the writes from `first` on, in order: their loop is complete.
    pub(crate) fn attributes_from(&self, first: WriteId) -> Vec<WriteAttributes> {
        self.attributes.borrow_mut().split_off(&first).into_values().collect()
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Later { edits, attributes, next } = self;
        f.debug_struct("Later")
            .field("edits", &edits.borrow().len())
            .field("attributes", attributes)
            .field("next", next)
            .finish()
    }
}

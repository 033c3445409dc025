//! Changes to ops, loops and stores after they were added. It lives as long as the closure of
//! [`kernel`](crate::kernel) runs, and the handles of ops, loops and stores borrow it: none of them outlives its kernel.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;

use tilewright_ir::tile::{Claim, Kernel};

/// A change to an op or a loop after it was added.
type Edit = Box<dyn FnOnce(&mut Kernel)>;

/// The number of a store in its kernel, in the order in which stores are added. No number is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StoreId(u32);

/// Changes to what is in a kernel already.
#[derive(Default)]
pub(crate) struct Later {
    /// Changes to apply when the kernel is complete, in order.
    edits: RefCell<Vec<Edit>>,
    /// The claims of the stores whose loops are still being built.
    claims: RefCell<BTreeMap<StoreId, Claim>>,
    /// The number of the next store.
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

    /// The number of the store that is added next.
    pub(crate) fn next_store(&self) -> StoreId {
        StoreId(self.next.get())
    }

    /// Adds a store, about which nothing is claimed yet.
    pub(crate) fn add_store(&self) -> StoreId {
        let store = self.next_store();
        self.next.set(store.0 + 1);
        self.claims.borrow_mut().insert(store, Claim::None);
        store
    }

    /// Sets the claim of a store; false if its loop is complete.
    pub(crate) fn claim(&self, store: StoreId, claimed: Claim) -> bool {
        let mut claims = self.claims.borrow_mut();
        let known = claims.get_mut(&store);
        known.map(|known| *known = claimed).is_some()
    }

    /// Removes the claims of the stores from `first` on, in order: their loop is complete.
    pub(crate) fn claims_from(&self, first: StoreId) -> Vec<Claim> {
        self.claims.borrow_mut().split_off(&first).into_values().collect()
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Later { edits, claims, next } = self;
        f.debug_struct("Later")
            .field("edits", &edits.borrow().len())
            .field("claims", claims)
            .field("next", next)
            .finish()
    }
}

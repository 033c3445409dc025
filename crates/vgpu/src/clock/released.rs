//! What threads hand over to others: by flags, by phases of mbarriers, and by proxy fences.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::far::Far;
use crate::isa::Scope;

/// What proxy fences have made visible. The own CTA is among the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visible {
    /// To the asynchronous proxy, in shared memory.
    pub(crate) shared: Far,
    /// To the asynchronous proxy, in global memory.
    pub(crate) global: Far,
    /// What was released for tensor maps, to the own CTA and to all.
    pub(super) released_maps: [Far; 2],
    /// To the uses of tensor maps, by their addresses.
    pub(super) maps: Rc<BTreeMap<u64, Far>>,
}

impl Visible {
    pub(super) fn join(&self, other: &Visible) -> Visible {
        Visible {
            shared: self.shared.join(&other.shared),
            global: self.global.join(&other.global),
            released_maps: [0, 1].map(|at| self.released_maps[at].join(&other.released_maps[at])),
            maps: joined_maps(&self.maps, &other.maps),
        }
    }

    /// All that was made visible.
    pub(super) fn all(&self) -> impl Iterator<Item = &Far> {
        [&self.shared, &self.global].into_iter().chain(&self.released_maps).chain(self.maps.values())
    }

    /// What is visible to uses of the tensor map at an address.
    pub(crate) fn of_map(&self, address: u64) -> Option<&Far> {
        self.maps.get(&address)
    }
}

fn joined_maps(a: &Rc<BTreeMap<u64, Far>>, b: &Rc<BTreeMap<u64, Far>>) -> Rc<BTreeMap<u64, Far>> {
    if Rc::ptr_eq(a, b) || b.is_empty() {
        return Rc::clone(a);
    }
    let mut all = BTreeMap::clone(a);
    for (address, far) in b.iter() {
        let known = all.entry(*address).or_default();
        *known = known.join(far);
    }
    Rc::new(all)
}

/// A CTA and its cluster.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    /// Number of the CTA.
    pub(crate) own: u32,
    /// The numbers of all CTAs of the cluster, by rank.
    pub(crate) all: Rc<[u32]>,
}

impl Cluster {
    /// Whether a CTA is in the cluster.
    pub(crate) fn has(&self, cta: u32) -> bool {
        self.all.contains(&cta)
    }
}

/// What is ordered before those who wait for a phase of an mbarrier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Of the own CTA; `None` if nothing is.
    pub(super) base: Option<Rc<Vec<u32>>>,
    pub(super) far: Far,
    pub(super) visible: Visible,
}

impl Known {
    /// Adds what copies bring.
    pub(crate) fn add(&mut self, far: &Far) {
        self.far = self.far.join(far);
    }
}

/// What a write hands over to those that read it: everything ordered before a release.
#[derive(Clone, Debug)]
pub(crate) struct Released {
    /// The CTA of the thread that released it.
    pub(super) cta: u32,
    pub(super) scope: Scope,
    pub(super) known: Far,
    pub(super) visible: Visible,
}

impl Released {
    /// Whether a thread of a cluster's CTA that reads with `scope` observes it: each of the two must be in the scope of the
    /// other.
    pub(super) fn reaches(&self, cluster: &Cluster, scope: Scope) -> bool {
        let least = self.scope.min(scope);
        self.cta == cluster.own || least >= Scope::Gpu || (least >= Scope::Cluster && cluster.has(self.cta))
    }

    /// What was ordered before.
    pub(crate) fn known(&self) -> &Far {
        &self.known
    }

    /// Whether it was released to the cluster or to more.
    pub(crate) fn reaches_cluster(&self) -> bool {
        self.scope >= Scope::Cluster
    }

    /// Both together, released to those that `self` reaches.
    pub(crate) fn joined(self, other: &Released) -> Released {
        let (known, visible) = (self.known.join(&other.known), self.visible.join(&other.visible));
        Released { known, visible, ..self }
    }
}

/// The releases that a word of memory holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flag(pub(super) Vec<Released>);

impl Flag {
    /// Adds what a read-modify-write releases, which continues the release sequence.
    pub(crate) fn add(&mut self, released: Released) {
        let joins = |held: &&mut Released| {
            held.scope == released.scope && (held.cta == released.cta || held.scope >= Scope::Gpu)
        };
        match self.0.iter_mut().find(joins) {
            Some(held) => {
                let visible = held.visible.join(&released.visible);
                *held = Released { known: held.known.join(&released.known), visible, ..released };
            }
            None => self.0.push(released),
        }
    }
}

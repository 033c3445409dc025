//! What threads hand over to others: by flags, by phases of mbarriers, and by proxy fences.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::far::Far;
use crate::isa::Scope;

/// What proxy fences have made visible. Usually nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visible(Option<Arc<Fenced>>);

/// The own CTA is among the others.
#[derive(Clone, Debug, Default)]
pub(super) struct Fenced {
    /// To the asynchronous proxy, in shared memory.
    pub(super) shared: Far,
    /// To the asynchronous proxy, in global memory.
    pub(super) global: Far,
    /// What was released for tensor maps, to the own CTA and to all.
    pub(super) released_maps: [Far; 2],
    /// To the uses of tensor maps, by their addresses.
    pub(super) maps: BTreeMap<u64, Far>,
}

static NOTHING: Far = Far::NOTHING;

impl Visible {
    pub(super) fn of(fenced: Fenced) -> Visible {
        Visible(Some(Arc::new(fenced)))
    }

    /// Whether both are the same, at the same place.
    pub(super) fn is_same(&self, other: &Visible) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    pub(super) fn join(&self, other: &Visible) -> Visible {
        let (Some(own), Some(others)) = (&self.0, &other.0) else {
            return Visible(self.0.clone().or(other.0.clone()));
        };
        if Arc::ptr_eq(own, others) {
            return self.clone();
        }
        Visible::of(Fenced {
            shared: own.shared.join(&others.shared),
            global: own.global.join(&others.global),
            released_maps: [0, 1].map(|at| own.released_maps[at].join(&others.released_maps[at])),
            maps: joined_maps(&own.maps, &others.maps),
        })
    }

    /// To the asynchronous proxy, in shared memory.
    pub(crate) fn shared(&self) -> &Far {
        self.0.as_ref().map_or(&NOTHING, |fenced| &fenced.shared)
    }

    /// To the asynchronous proxy, in global memory.
    pub(crate) fn global(&self) -> &Far {
        self.0.as_ref().map_or(&NOTHING, |fenced| &fenced.global)
    }

    /// What was released for tensor maps, to the own CTA and to all.
    pub(super) fn released_maps(&self) -> [&Far; 2] {
        self.0.as_ref().map_or([&NOTHING; 2], |fenced| fenced.released_maps.each_ref())
    }

    /// All that was made visible.
    pub(super) fn all(&self) -> impl Iterator<Item = &Far> {
        self.0.iter().flat_map(|fenced| {
            [&fenced.shared, &fenced.global].into_iter().chain(&fenced.released_maps).chain(fenced.maps.values())
        })
    }

    /// What is visible to uses of the tensor map at an address.
    pub(crate) fn of_map(&self, address: u64) -> &Far {
        self.0.as_ref().and_then(|fenced| fenced.maps.get(&address)).unwrap_or(&NOTHING)
    }
}

fn joined_maps(a: &BTreeMap<u64, Far>, b: &BTreeMap<u64, Far>) -> BTreeMap<u64, Far> {
    let mut all = a.clone();
    for (address, far) in b {
        let known = all.entry(*address).or_default();
        *known = known.join(far);
    }
    all
}

/// A CTA and its cluster.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    /// Number of the CTA.
    pub(crate) own: u32,
    /// The numbers of all CTAs of the cluster, by rank.
    pub(crate) all: Arc<[u32]>,
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
    pub(super) base: Option<Arc<Vec<u32>>>,
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

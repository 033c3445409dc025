//! What is known of other CTAs and of copies, as sparse vectors of counts.

use std::collections::BTreeMap;
use std::sync::Arc;

/// In the number of a CTA: its copies, whose counts are numbers of copies. The clocks of a thread's copies are apart from
/// its own, since a copy takes its place in the order when its thread waits for it.
const COPIES: u32 = 1 << 31;

/// The copies that threads of a CTA start, as another CTA.
pub(crate) fn copies_of(cta: u32) -> u32 {
    cta | COPIES
}

/// Whether an agent is the copies of a CTA.
pub(crate) fn is_copy(agent: u32) -> bool {
    agent & COPIES != 0
}

/// The CTA that an agent belongs to.
pub(crate) fn cta_of(agent: u32) -> u32 {
    agent & !COPIES
}

/// What is ordered before a thread in other CTAs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Far {
    /// For each CTA, the counts of its threads. Usually nothing.
    pub(super) known: Option<Arc<BTreeMap<u32, Arc<Vec<u32>>>>>,
    /// All accesses of CTAs with smaller numbers, which belong to earlier launches.
    launched: u32,
}

impl Far {
    /// Nothing is known.
    pub(super) const NOTHING: Far = Far { known: None, launched: 0 };

    /// The counts of the threads of one CTA.
    #[cfg(test)]
    pub(crate) fn of(cta: u32, counts: &[u32]) -> Far {
        Far::default().with(cta, &Arc::new(counts.to_vec()))
    }

    /// All accesses of the CTAs of earlier launches.
    pub(crate) fn of_launches(first_cta: u32) -> Far {
        Far { known: None, launched: first_cta }
    }

    /// Whether both are the same vectors, at the same place.
    pub(super) fn is_same(&self, other: &Far) -> bool {
        let is_same_place = match (&self.known, &other.known) {
            (None, None) => true,
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (None, Some(_)) | (Some(_), None) => false,
        };
        is_same_place && self.launched == other.launched
    }

    /// Whether all accesses of a CTA are known, because it belongs to an earlier launch.
    pub(crate) fn has_launched(&self, cta: u32) -> bool {
        cta < self.launched
    }

    /// The count of a thread up to which its accesses are known; 0 if none are.
    pub(crate) fn count(&self, cta: u32, thread: u32) -> u32 {
        let counts = self.known.as_ref().and_then(|known| known.get(&cta));
        counts.and_then(|counts| counts.get(thread as usize)).copied().unwrap_or(0)
    }

    pub(super) fn with(&self, cta: u32, counts: &Arc<Vec<u32>>) -> Far {
        let mut all = self.known.as_deref().cloned().unwrap_or_default();
        all.insert(cta, Arc::clone(counts));
        Far { known: Some(Arc::new(all)), ..*self }
    }

    /// What both know.
    pub(crate) fn join(&self, other: &Far) -> Far {
        let launched = self.launched.max(other.launched);
        let (Some(own), Some(others)) = (&self.known, &other.known) else {
            return Far { known: self.known.clone().or(other.known.clone()), launched };
        };
        // Most joins bring nothing new. Then the result is the same vectors at the same place, so that later joins are short.
        if brings_nothing(own, others) {
            return Far { known: self.known.clone(), launched };
        }
        if brings_nothing(others, own) {
            return Far { known: other.known.clone(), launched };
        }
        let mut all = BTreeMap::clone(own);
        for (cta, counts) in others.iter() {
            all.entry(*cta)
                .and_modify(|known| *known = join_counts(known, counts))
                .or_insert_with(|| Arc::clone(counts));
        }
        Far { known: Some(Arc::new(all)), launched }
    }

    /// What is known of one CTA.
    pub(super) fn only(&self, cta: u32) -> Far {
        match self.known.as_ref().and_then(|known| known.get(&cta)) {
            Some(counts) => Far::default().with(cta, counts),
            None => Far::default(),
        }
    }

    pub(super) fn without(&self, cta: u32) -> Far {
        match &self.known {
            Some(known) if known.contains_key(&cta) => {
                let mut all = BTreeMap::clone(known);
                all.remove(&cta);
                Far { known: Some(Arc::new(all)), ..*self }
            }
            _ => self.clone(),
        }
    }
}

/// Joins for one thread after another: those that know the same share the result.
#[derive(Default)]
pub(super) struct Joins {
    last: Option<[Far; 3]>,
}

impl Joins {
    /// What both know.
    pub(super) fn join(&mut self, one: &Far, other: &Far) -> Far {
        if let Some([known, others, joined]) = &self.last
            && known.is_same(one)
            && others.is_same(other)
        {
            return joined.clone();
        }
        let joined = one.join(other);
        self.last = Some([one.clone(), other.clone(), joined.clone()]);
        joined
    }
}

pub(super) fn join_counts(a: &Arc<Vec<u32>>, b: &Arc<Vec<u32>>) -> Arc<Vec<u32>> {
    if Arc::ptr_eq(a, b) || has_counts(a, b) {
        return Arc::clone(a);
    }
    if has_counts(b, a) {
        return Arc::clone(b);
    }
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut all = Vec::clone(long);
    all.iter_mut().zip(short.iter()).for_each(|(a, b)| *a = *b.max(a));
    Arc::new(all)
}

/// Whether no count of `others` is greater than the same of `counts`.
fn has_counts(counts: &[u32], others: &[u32]) -> bool {
    counts.len() >= others.len() && counts.iter().zip(others).all(|(count, other)| count >= other)
}

/// Whether all that is known of CTAs in `others` is also known in `own`.
fn brings_nothing(own: &Arc<BTreeMap<u32, Arc<Vec<u32>>>>, others: &Arc<BTreeMap<u32, Arc<Vec<u32>>>>) -> bool {
    let is_known = |(cta, others): (&u32, &Arc<Vec<u32>>)| {
        own.get(cta).is_some_and(|counts| Arc::ptr_eq(counts, others) || has_counts(counts, others))
    };
    Arc::ptr_eq(own, others) || (own.len() >= others.len() && others.iter().all(is_known))
}

/// Who makes the accesses of a copy, among the copies of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agent {
    /// Its index: that of the thread for `cp.async`, above all threads for the copies of an engine.
    pub(crate) thread: u32,
    /// Its count.
    pub(crate) number: u32,
    /// An engine accesses memory by the asynchronous proxy.
    pub(crate) is_engine: bool,
}

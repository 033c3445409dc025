//! Families: nests and fragments that are connected by accesses in order. The map of one of them is the map of all.

use petgraph::unionfind::UnionFind;

use crate::scene::{Kind, Scene};
use crate::state::State;
use crate::tables::Tables;

/// Nests and storages without a map, all of which are shared among the threads in the same way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Family {
    /// Indices of the nests among the ops of the component.
    pub(crate) nests: Vec<usize>,
    /// Indices of the storages in the component.
    pub(crate) storages: Vec<usize>,
    /// The number of reductions of its fragments.
    pub(crate) reductions: usize,
}

impl Family {
    /// The number of elements that it shares.
    pub(crate) fn size(&self, scene: &Scene) -> usize {
        let nests = self.nests.iter().filter_map(|item| Some(scene.work(*item)?.iterations));
        let storages = self.storages.iter().map(|storage| scene.storages[*storage].granules);
        nests.chain(storages).max().unwrap_or(0)
    }
}

impl Scene<'_> {
    /// The families of all storages without a map, and the family of each storage. A nest that accesses none of them in
    /// order forms a separate family.
    pub(crate) fn families(&self, tables: &Tables, state: &State) -> (Vec<Family>, Vec<Option<usize>>) {
        let nests = self.items.len();
        let is_open = |storage: usize| state.fixed[storage].is_none();
        let mut sets: UnionFind<usize> = UnionFind::new(nests + self.storages.len());
        for item in 0..nests {
            let Some(work) = self.work(item) else { continue };
            for touch in work.touches.iter().filter(|touch| is_open(touch.storage)) {
                if tables.pattern(touch.pattern).is_identity() {
                    sets.union(item, nests + touch.storage);
                }
            }
        }
        let mut families: Vec<Family> = Vec::new();
        let mut number: Vec<Option<usize>> = vec![None; nests + self.storages.len()];
        let mut of = |at: usize, families: &mut Vec<Family>| {
            *number[sets.find(at)].get_or_insert_with(|| {
                families.push(Family::default());
                families.len() - 1
            })
        };
        for item in 0..nests {
            if self.work(item).is_some_and(|work| work.touches.iter().any(|touch| is_open(touch.storage))) {
                let family = of(item, &mut families);
                families[family].nests.push(item);
            }
        }
        let mut of_storage = vec![None; self.storages.len()];
        for storage in (0..self.storages.len()).filter(|storage| is_open(*storage)) {
            let family = of(nests + storage, &mut families);
            families[family].storages.push(storage);
            families[family].reductions += self.reductions_of(storage);
            of_storage[storage] = Some(family);
        }
        (families, of_storage)
    }

    fn reductions_of(&self, storage: usize) -> usize {
        let users = self.users[storage].iter();
        users.filter(|user| matches!(&self.items[**user].kind, Kind::Reduce(fold) if fold.src == storage)).count()
    }
}

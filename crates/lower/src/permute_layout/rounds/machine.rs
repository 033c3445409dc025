//! Executes an exchange on bytes that are numbers.

use super::recipe::{Action, VirtualReg};

/// The registers of a lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lane {
    pub(crate) words: [[i64; 4]; 4],
    pub(crate) scratch: [[i64; 4]; 4],
    pub(crate) selectors: Vec<i64>,
}

impl Lane {
    pub(crate) fn get(&self, place: VirtualReg) -> [i64; 4] {
        match place {
            VirtualReg::Word(at) => self.words[at as usize],
            VirtualReg::Scratch(at) => self.scratch[at as usize],
        }
    }

    fn set(&mut self, place: VirtualReg, value: [i64; 4]) {
        match place {
            VirtualReg::Word(at) => self.words[at as usize] = value,
            VirtualReg::Scratch(at) => self.scratch[at as usize] = value,
        }
    }
}

pub(crate) fn execute(actions: &[Action], lanes: &mut [Lane]) {
    for action in actions {
        let before = lanes.to_vec();
        for (number, lane) in lanes.iter_mut().enumerate() {
            match *action {
                Action::Shuffle { to, from, mask } => lane.set(to, before[number ^ mask as usize].get(from)),
                Action::Permute { to, from: [first, second], selector, flip } => {
                    let bytes = [lane.get(first), lane.get(second)].concat();
                    let selector = lane.selectors[selector] ^ flip;
                    lane.set(to, std::array::from_fn(|at| bytes[((selector >> (4 * at)) & 7) as usize]));
                }
            }
        }
    }
}

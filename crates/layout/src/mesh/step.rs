//! One collective: its pattern, its messages, and the bytes that they carry.

use std::collections::BTreeMap;
use std::ops::Range;

use tilewright_diag::counted;

use crate::axis::Axis;

/// A pattern of communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collective {
    /// Every device already holds exactly what it needs.
    None,
    /// Every device holds what it needs and drops the rest.
    Slice,
    /// In each group, one device sends the same elements to others, and keeps them or sends them to several.
    Broadcast,
    /// Each device of a group ends up with everything that any device of the group held.
    AllGather,
    /// In each group, every device sends a part of what it holds to every other, and each element stays on one device.
    AllToAll,
    /// The partial sums of each group are added up on one device.
    Reduce,
    /// The partial sums of each group are added up; each device gets the sums of some elements.
    ReduceScatter,
    /// The partial sums of each group are added up; every device gets all sums.
    AllReduce,
    /// A permutation: every device sends to at most one other and receives from at most one, equally much.
    CollectivePermute,
    /// Messages from device to device that match no pattern above.
    Send,
}

impl Collective {
    /// Its name as printed: `all-gather`.
    pub fn name(self) -> &'static str {
        match self {
            Collective::None => "none",
            Collective::Slice => "slice",
            Collective::Broadcast => "broadcast",
            Collective::AllGather => "all-gather",
            Collective::AllToAll => "all-to-all",
            Collective::Reduce => "reduce",
            Collective::ReduceScatter => "reduce-scatter",
            Collective::AllReduce => "all-reduce",
            Collective::CollectivePermute => "collective-permute",
            Collective::Send => "send",
        }
    }
}

/// A message from one device to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The device that sends.
    pub from: usize,
    /// The device that receives.
    pub to: usize,
    /// Flat indices of the elements, in order.
    pub elements: Vec<Range<i64>>,
    /// Whether the receiver adds them to its own partial sums; the sender then discards its own.
    pub adds: bool,
}

impl Transfer {
    /// How many elements it carries.
    pub fn count(&self) -> i64 {
        self.elements.iter().map(|range| range.end - range.start).sum()
    }
}

/// One collective, executed by all groups at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The pattern of communication.
    pub collective: Collective,
    /// The mesh axes on which senders and receivers differ, in the mesh's order.
    pub axes: Vec<Axis>,
    /// The devices that exchange with each other, directly or through others; devices in no group do not communicate.
    pub groups: Vec<Vec<usize>>,
    /// The messages; those that add come first.
    pub transfers: Vec<Transfer>,
}

impl Step {
    /// Bytes that a device receives in this step, for elements of `bits` bits.
    pub fn received(&self, device: usize, bits: i64) -> i64 {
        self.transfers.iter().filter(|transfer| transfer.to == device).map(|transfer| bytes(transfer, bits)).sum()
    }

    /// Bytes that a device sends in this step, for elements of `bits` bits.
    pub fn sent(&self, device: usize, bits: i64) -> i64 {
        self.transfers.iter().filter(|transfer| transfer.from == device).map(|transfer| bytes(transfer, bits)).sum()
    }

    /// A description such as `all-gather over gpuid_x, 3 x 1024 bytes received per device`.
    pub(super) fn describe(&self, bits: i64) -> String {
        if self.transfers.is_empty() {
            return format!("{}, no traffic", self.collective.name());
        }
        let axes: Vec<&str> = self.axes.iter().map(Axis::name).collect();
        format!("{} over {}, {}", self.collective.name(), axes.join(", "), self.describe_bytes(bits))
    }

    /// Peers times bytes if these are the same for every device that receives, else the most that any device receives.
    fn describe_bytes(&self, bits: i64) -> String {
        let mut received: BTreeMap<usize, BTreeMap<usize, i64>> = BTreeMap::new();
        for transfer in &self.transfers {
            let from = received.entry(transfer.to).or_default();
            *from.entry(transfer.from).or_insert(0) += bytes(transfer, bits);
        }
        let mut shares = received.values().map(|from| from.values().copied().collect::<Vec<i64>>());
        let first = shares.next().unwrap_or_default();
        let even = first.windows(2).all(|pair| pair[0] == pair[1]) && shares.all(|other| other == first);
        if !even {
            let most = received.values().map(|from| from.values().sum::<i64>()).max().unwrap_or(0);
            return format!("at most {} received per device", counted(most, "byte"));
        }
        let share = counted(first.first().copied().unwrap_or(0), "byte");
        let each = format!("{} x {share} received", first.len());
        match received.len() {
            all if all == self.groups.iter().map(Vec::len).sum::<usize>() => {
                format!("{each} per device")
            }
            1 => format!("{each} by one device"),
            several => format!("{each} by each of {several} devices"),
        }
    }
}

fn bytes(transfer: &Transfer, bits: i64) -> i64 {
    (transfer.count() * bits + 7) / 8
}

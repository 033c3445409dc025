//! Memory: the address map, regions of bytes, and the buffers of a device.

mod buffers;
mod bytes;
pub(crate) mod map;
mod region;

pub use buffers::{BufferId, Memory, Writer};
pub(crate) use bytes::Bytes;
pub(crate) use region::Region;

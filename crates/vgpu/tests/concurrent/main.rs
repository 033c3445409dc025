//! What threads, CTAs and asynchronous engines hand over to each other: kernels that are right under every schedule, and
//! what is missing in kernels that are almost right.

mod bulk;
mod cancel;
mod cluster;
mod copies;
mod endless;
mod flags;
mod harness;
mod host_threads;
mod launches;
mod mbarrier;
mod tensor;
mod tensor_copies;
mod tensor_maps;
mod warpgroup;

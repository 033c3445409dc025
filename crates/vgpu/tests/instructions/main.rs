//! Instructions one by one: small kernels whose results are compared with values computed from the definitions of the
//! PTX ISA.

mod atomic;
mod compare;
mod convert;
mod double;
mod half;
mod harness;
mod integer;
mod matrix;
mod memory;
mod mma;
mod single;
mod small;
mod warp;

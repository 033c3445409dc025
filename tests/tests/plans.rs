//! Plans for random layouts: conversions of fragments, collectives over meshes, swizzles against bank conflicts. The
//! expected results are computed only from `apply`, element by element.

mod banks;
mod fragments;
mod meshes;
mod random;

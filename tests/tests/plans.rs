//! Plans for random layouts: conversions of fragments, collectives over meshes, swizzles against bank conflicts. The
//! expected results are computed only from `apply`, element by element.

#[path = "plans/banks.rs"]
mod banks;
#[path = "plans/fragments.rs"]
mod fragments;
#[path = "plans/meshes.rs"]
mod meshes;
#[path = "plans/random.rs"]
mod random;

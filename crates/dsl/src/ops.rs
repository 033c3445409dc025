//! The methods that add tile ops: one for each row of the op table.

use tilewright_ir::Scalar;
// The rows of the table name types of attributes, all of which are in this module.
use tilewright_ir::tile::*;

use crate::builder::{KernelBuilder, ScopeRef};
use crate::op_ref::OpRef;
use crate::region::Region;

/// The short form of a method, for ops that the CTA may execute.
macro_rules! by_the_cta {
    ([Warp] $name:ident($($parameter:ident: $type:ty,)*)) => {};
    ([$(Warp,)? Cta] $name:ident($($parameter:ident: $type:ty,)*)) => {
        impl<'k> KernelBuilder<'k> {
            #[doc = concat!("[`ScopeRef::", stringify!($name), "`] by the CTA.")]
            #[track_caller]
            pub fn $name(&mut self, $($parameter: $type),*) -> OpRef<'k> {
                self.cta().$name($($parameter),*)
            }
        }
    };
}

macro_rules! op_methods {
    ($(
        $(#[$doc:meta])*
        $kind:ident $(($attributes:ident: $attributes_type:ty))? {
            builder: $name:ident
                [$($before:ident: $before_type:ty),*] ($($operand:ident: $effect:ident),*) [$($behind:ident: $behind_type:ty),*]
                => $made:expr,
            $(called: $called:expr,)?
            words: $words:expr,
            overwrites: $overwrites:expr,
            each: $each:ident,
            class: $class:ident,
            scopes: [$($scope:ident),*],
        }
    )*) => {$(
        op_method! {
            $each
            $(#[$doc])*
            $name [$($before: $before_type),*] ($($operand),*) [$($behind: $behind_type),*] => $made, [$($scope),*]
        }
    )*};
}

/// The method of an op on tiles; that of an op on tuples of them is in a file of its own.
macro_rules! op_method {
    (
        tile
        $(#[$doc:meta])*
        $name:ident [$($before:ident: $before_type:ty),*] ($($operand:ident),*) [$($behind:ident: $behind_type:ty),*]
            => $made:expr, [$($scope:ident),*]
    ) => {
        impl<'k> ScopeRef<'_, 'k> {
            $(#[$doc])*
            #[track_caller]
            pub fn $name(
                self,
                $($before: $before_type,)*
                $($operand: impl Into<Region>,)*
                $($behind: $behind_type,)*
            ) -> OpRef<'k> {
                self.op($made, vec![$($operand.into()),*])
            }
        }

        by_the_cta! {
            [$($scope),*]
            $name($($before: $before_type,)* $($operand: impl Into<Region>,)* $($behind: $behind_type,)*)
        }
    };
    (tuple $($rest:tt)*) => {};
}

tilewright_ir::tile_ops!(op_methods);

/// The methods of the other atomic operations, which share a row with `atomic_add`.
macro_rules! atomic_ops {
    ($($(#[$doc:meta])* $name:ident => $by:ident;)*) => {$(
        op_method! { tile $(#[$doc])* $name [] (dst, src) [] => OpKind::Atomic(AtomicOp::$by), [Cta] }
    )*};
}

atomic_ops! {
    /// `dst = min(dst, src)`, element by element, atomically.
    atomic_min => Min;
    /// `dst = max(dst, src)`, element by element, atomically.
    atomic_max => Max;
    /// `dst &= src`, element by element, atomically.
    atomic_and => And;
    /// `dst |= src`, element by element, atomically.
    atomic_or => Or;
    /// `dst ^= src`, element by element, atomically.
    atomic_xor => Xor;
}

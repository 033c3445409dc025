//! What a kernel itself refuses.

use tilewright::prelude::*;

use super::assert_mistake;

#[test]
fn a_configuration_that_the_kernel_refuses() {
    let of = |columns: i64| {
        kernel("k", |k| {
            if columns % 8 != 0 {
                k.refuse(format!("tiles of {columns} columns"), "columns are a multiple of 8");
            }
        })
    };
    assert_mistake("refused", of(12));
}

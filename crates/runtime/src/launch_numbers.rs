//! The numbers of a launch in the widths that devices take.

use std::fmt::Display;

use tilewright_compile::{Artifact, MapParameter};
use tilewright_diag::Diagnostic;

use crate::failure::{Failure, FailureKind};

/// Grid, block, dynamic shared memory and sizes. The verifier bounds them all, so one that does not fit is a defect.
pub(crate) struct LaunchNumbers {
    /// CTAs along x, y and z.
    pub(crate) grid: [u32; 3],
    /// Threads along x, y and z.
    pub(crate) block: [u32; 3],
    /// CTAs of a cluster along x, y and z.
    pub(crate) cluster: [u32; 3],
    pub(crate) dynamic_shared_bytes: u32,
    /// The values of the sizes, which are parameters of the kernel.
    pub(crate) sizes: Vec<i32>,
    /// The bytes of the scalar parameters, which follow the sizes.
    pub(crate) scalars: Vec<Vec<u8>>,
    /// The tensor maps, which follow the scalar parameters.
    pub(crate) maps: Vec<MapParameter>,
}

impl LaunchNumbers {
    pub(crate) fn of(artifact: &Artifact, sizes: &[i64], scalars: Vec<Vec<u8>>) -> Result<LaunchNumbers, Failure> {
        let [x, y, z] = artifact.grid().map(|ctas| narrow("the number of CTAs", ctas));
        let sizes: Result<Vec<i32>, Failure> = sizes.iter().map(|size| narrow("a size", *size)).collect();
        Ok(LaunchNumbers {
            grid: [x?, y?, z?],
            block: [narrow("the number of threads", artifact.threads())?, 1, 1],
            cluster: [narrow("the number of CTAs of a cluster", artifact.cluster_ctas())?, 1, 1],
            dynamic_shared_bytes: narrow("the size of shared memory", artifact.dynamic_shared_bytes())?,
            sizes: sizes?,
            scalars,
            maps: artifact.tensor_maps().map_err(|finding| Failure::new(FailureKind::BadInput, finding))?,
        })
    }
}

/// A number in the width that a device takes.
pub(crate) fn narrow<From: Copy + Display, To: TryFrom<From>>(what: &str, number: From) -> Result<To, Failure> {
    To::try_from(number).map_err(|_| {
        let finding = Diagnostic::internal("R0618", format!("{what} does not fit a launch: {number}"));
        Failure::new(FailureKind::Fault, finding)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_does_not_fit_is_not_cut_off() {
        let told =
            |number: i64| narrow::<i64, u32>("the number of CTAs", number).map_err(|failure| failure.to_string());
        assert_eq!(told(7), Ok(7));
        for number in [1 << 32, -1] {
            let expected = format!("internal error[R0618]: the number of CTAs does not fit a launch: {number}");
            assert_eq!(told(number), Err(expected));
        }
    }
}

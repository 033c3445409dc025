use super::choice::choices;

choices! {
    /// The first part of a name: which constructor it is for.
    pub(super) Family, "named layout";
    /// Accumulators in tensor memory.
    Tmem = "tmem",
    /// Operands in tensor memory, given the MMA.
    TmemOperand = "tmem-operand",
    /// Register tiles of `tcgen05.ld`.
    Tcgen05 = "tcgen05",
    /// Register tiles of a warpgroup, one row per thread.
    Wg = "wg",
    /// Fragments of `mma.sync`.
    Mma = "mma",
    /// Fragments of `wgmma`.
    Wgmma = "wgmma",
    /// Fragments of `ldmatrix`.
    Ldmatrix = "ldmatrix",
    /// Fragments of `stmatrix`.
    Stmatrix = "stmatrix",
    /// Swizzled tiles of shared memory.
    Shared = "shared",
    /// Scale factors in tensor memory.
    SfTmem = "sf-tmem",
    /// Scale factors in shared memory.
    SfSmem = "sf-smem",
    /// Scale factors in tensor memory, given the MMA.
    ScaleTmem = "scale-tmem",
    /// Scale factors in shared memory, given the MMA.
    ScaleSmem = "scale-smem",
}

/// A family of named layouts: its form, an example and a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedExample {
    /// The form of the family's names; parts in brackets are optional.
    pub pattern: &'static str,
    /// An example of a name of the family.
    pub example: &'static str,
    /// A one-line description of the family.
    pub about: &'static str,
}

/// Every family of named layouts, with an example.
pub fn catalogue() -> Vec<NamedExample> {
    Family::ALL.iter().copied().map(entry).collect()
}

fn entry(family: Family) -> NamedExample {
    let (pattern, example, about) = match family {
        Family::Tmem => (
            "tmem:<A..G>:<rows>x<cols>[:<sub slab>]",
            "tmem:D:128x256",
            "accumulator of tcgen05.mma in tensor memory, by datapath",
        ),
        Family::TmemOperand => (
            "tmem-operand:<a|d>:<shape>:<M>:<cta1|cta2>[:ws]",
            "tmem-operand:d:64x64:128:cta2",
            "operand of tcgen05.mma in tensor memory, by the M of the instruction",
        ),
        Family::Tcgen05 => (
            "tcgen05:<shape>:<rows>x<cols>:<type>",
            "tcgen05:32x32b:128x64:f32",
            "registers of a warpgroup after tcgen05.ld, before tcgen05.st",
        ),
        Family::Wg => ("wg:<rows>x<cols>", "wg:128x64", "registers of a warpgroup, one row in each thread"),
        Family::Mma => (
            "mma:<shape>:<a|b|c|d>:<type>[:<row|col>]",
            "mma:m16n8k16:a:f16",
            "registers of a warp for mma.sync; row or col only for m8n8k4 of f16",
        ),
        Family::Wgmma => {
            ("wgmma:m64n<N>k<K>:<a|d>:<type>", "wgmma:m64n128k16:d:f32", "registers of a warpgroup for wgmma.mma_async")
        }
        Family::Ldmatrix => (
            "ldmatrix:[<m8n8|m8n16|m16n16>:]<x1|x2|x4>[:trans]",
            "ldmatrix:x4",
            "registers of a warp after ldmatrix, by the rows in memory",
        ),
        Family::Stmatrix => (
            "stmatrix:[<m8n8|m16n8>:]<x1|x2|x4>[:trans]",
            "stmatrix:x2:trans",
            "registers of a warp before stmatrix, by the rows in memory",
        ),
        Family::Shared => (
            "shared:<none|32B|64B|128B>:<type>:<shape>",
            "shared:128B:f16:64x64",
            "tile of shared memory for wgmma, tcgen05.mma and TMA",
        ),
        Family::SfTmem => (
            "sf-tmem:<rows>x<factors>:<factors for one MMA>[:<MMAs that share them>]",
            "sf-tmem:128x4:4",
            "scale factors in tensor memory",
        ),
        Family::SfSmem => (
            "sf-smem:<rows>x<factors>:<factors for one MMA>[:<MMAs that share them>]",
            "sf-smem:128x4:4",
            "scale factors in shared memory, as tcgen05.cp takes them",
        ),
        Family::ScaleTmem => (
            "scale-tmem:<a|b>:<M>x<N>:<1X|2X|4X>:<cta1|cta2>[:<MMAs along K>]",
            "scale-tmem:b:128x128:4X:cta2",
            "scale factors of one operand of a block-scaled tcgen05.mma, in tensor memory",
        ),
        Family::ScaleSmem => (
            "scale-smem:<a|b>:<M>x<N>:<1X|2X|4X>:<cta1|cta2>[:<MMAs along K>]",
            "scale-smem:a:128x128:1X:cta1:4",
            "scale factors of one operand of a block-scaled tcgen05.mma, in shared memory",
        ),
    };
    NamedExample { pattern, example, about }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_an_example_of_its_own() {
        for family in Family::ALL.iter().copied() {
            let NamedExample { pattern, example, .. } = entry(family);
            let prefix = format!("{family}:");
            assert!(pattern.starts_with(&prefix) && example.starts_with(&prefix), "{pattern} {example}");
        }
    }
}

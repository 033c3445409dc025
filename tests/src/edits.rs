//! Generated CUDA, edited as a user might, and the error that the virtual GPU must report.

use std::path::PathBuf;

use tilewright::compile::Artifact;
use tilewright::prelude::Target;
use tilewright::runtime::{Built, CudaText, Failure, Toolchain};

use crate::cases::{Case, all};
use crate::toolchain::fixtures;

/// A case whose CUDA text is edited before it runs.
pub struct Edit {
    /// The name of the edit, which says what it demonstrates.
    pub name: &'static str,
    /// The name of the case.
    pub case: &'static str,
    /// Pairs of text and replacement. Every occurrence is replaced, and there must be at least one.
    pub replaced: &'static [(&'static str, &'static str)],
}

/// All edits used by the tests.
pub const EDITS: &[Edit] = &[
    Edit { name: "no_syncwarp", case: "sf_transpose-f32", replaced: &[("__syncwarp();", "")] },
    Edit {
        name: "past_the_end",
        case: "sf_transpose-f32",
        replaced: &[("reinterpret_cast<float4*>(b)[s*32 + lane]", "reinterpret_cast<float4*>(b)[s*32 + lane + 1]")],
    },
    Edit {
        name: "writes_an_input",
        case: "sf_transpose-f32",
        replaced: &[
            ("(const float* __restrict__ a, float* __restrict__ b)", "(float* __restrict__ a, float* __restrict__ b)"),
            ("reinterpret_cast<float4*>(b)[s*32 + lane]", "reinterpret_cast<float4*>(a)[s*32 + lane]"),
        ],
    },
    Edit {
        name: "no_xor",
        case: "sf_transpose-f32-warp_xor_swizzle",
        replaced: &[
            ("const int x = lane >> 3 & 3;", "const int x = 0;"),
            ("    transposed[", "    static_cast<volatile float*>(transposed)["),
        ],
    },
    Edit {
        name: "does_not_compile",
        case: "sf_transpose-f32",
        replaced: &[("r1[i] = tile[i*32 + lane];", "r1[i] = tyle[i*32 + lane];")],
    },
    Edit { name: "another_name", case: "sf_transpose-f32", replaced: &[("sf_transpose(const", "sf_transposed(const")] },
    Edit {
        name: "another_signature",
        case: "sf_transpose-f32",
        replaced: &[(
            "(const float* __restrict__ a, float* __restrict__ b)",
            "(const float* __restrict__ a, float* __restrict__ b, int n)",
        )],
    },
];

impl Edit {
    /// The case that is edited.
    pub fn case(&self) -> Case {
        all().into_iter().find(|case| case.name == self.case).expect("the edit names a case")
    }

    /// The generated artifact and the edited text.
    pub fn text(&self) -> (Artifact, CudaText) {
        let artifact = self.case().compile(Target::Sm100a).expect("the case compiles");
        let text = self.replaced.iter().fold(artifact.cuda().to_string(), |text, (from, to)| {
            assert!(text.contains(from), "{}: `{from}` is not in the text", self.name);
            text.replace(from, to)
        });
        (artifact, CudaText::Edited { path: PathBuf::from("edited.cu"), text })
    }

    /// Builds the edited text.
    pub fn build(&self, toolchain: &Toolchain) -> (Artifact, Result<Built, Failure>) {
        let (artifact, text) = self.text();
        let built = toolchain.build(&artifact, &text);
        (artifact, built)
    }
}

/// The edit called `name`.
pub fn find(name: &str) -> &'static Edit {
    EDITS.iter().find(|edit| edit.name == name).expect("an edit has this name")
}

/// The committed PTX that edits use.
pub fn committed(toolchain: &Toolchain) -> Vec<PathBuf> {
    let built = EDITS.iter().map(|edit| edit.build(toolchain));
    built.filter_map(|(artifact, built)| Some(fixtures().file_for(&artifact, &built.ok()?).0)).collect()
}

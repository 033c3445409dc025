//! The layouts that a newcomer should see first: those of the documents that this project grew from.

/// A layout with its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GalleryEntry {
    /// Name of its page, without an extension.
    pub file: &'static str,
    /// Heading of the layout in the gallery.
    pub title: &'static str,
    /// What to notice about it.
    pub about: &'static str,
    /// The layout.
    pub notation: &'static str,
    /// The shape it is drawn in.
    pub shape: &'static [i64],
    /// Bits of an element.
    pub bits: i64,
    /// An access to all of it, as a layout of the same shape over `laneid` and `reg`, which
    /// [`tilewright_layout::banks::AccessPattern::new`] takes. Only for linear memory.
    pub access: Option<&'static str>,
}

/// Every layout of the gallery, from plain memory to a mesh of devices.
pub fn gallery() -> Vec<GalleryEntry> {
    [MEMORY, FRAGMENTS, TENSOR_MEMORY, SWIZZLES, MESHES].concat()
}

const MEMORY: &[GalleryEntry] = &[
    GalleryEntry {
        file: "row-major-4x4",
        title: "Row-major 4 x 4",
        about: "A step down a column is 4 elements, a step along a row is 1: the address is 4*i + j.",
        notation: "S[(4,4):(4,1)]",
        shape: &[4, 4],
        bits: 32,
        access: None,
    },
    GalleryEntry {
        file: "permuted-4x3",
        title: "A 3 x 4 matrix, transposed without moving it",
        about: "With the strides of a row-major 3 x 4 matrix exchanged, the same memory reads as 4 x 3.",
        notation: "S[(4,3):(1,4)]",
        shape: &[4, 3],
        bits: 32,
        access: None,
    },
    GalleryEntry {
        file: "tiled-8x8",
        title: "8 x 8 in tiles of 2 x 4",
        about: "Row i is row i%2 of tile row i/2, column j is column j%4 of tile column j/4; a tile is 8 neighbours.",
        notation: "S[(4,2,2,4):(16,4,8,1)]",
        shape: &[8, 8],
        bits: 32,
        access: None,
    },
    GalleryEntry {
        file: "row-major-8x16",
        title: "Row-major 8 x 16, axes spelled out",
        about: "The default axis m is linear memory; it may be written explicitly.",
        notation: "S[(8,16):(16@m,1@m)]",
        shape: &[8, 16],
        bits: 32,
        access: None,
    },
];

const FRAGMENTS: &[GalleryEntry] = &[
    GalleryEntry {
        file: "fragment-8x8",
        title: "The 8 x 8 fragment of a warp",
        about: "Four lanes share a row and each keeps two neighbours, in registers 0 and 1. Tensor cores read and write \
                tiles in this form.",
        notation: "S[(8,4,2):(4@laneid,1@laneid,1@reg)]",
        shape: &[8, 8],
        bits: 32,
        access: None,
    },
    GalleryEntry {
        file: "register-tile-8x16",
        title: "An 8 x 16 register tile with copies and an offset",
        about: "Columns 0 to 7 are on warp 5, columns 8 to 15 on warp 6; the replica repeats both on warps 9 and 10.",
        notation: "S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1@m)] + R[2:4@warpid] + 5@warpid",
        shape: &[8, 16],
        bits: 32,
        access: None,
    },
];

const TENSOR_MEMORY: &[GalleryEntry] = &[
    GalleryEntry {
        file: "accumulator-128x256",
        title: "A 128 x 256 accumulator in tensor memory",
        about: "Rows are lanes of tensor memory and columns are its columns.",
        notation: "S[(128,256):(1@TLane,1@TCol)]",
        shape: &[128, 256],
        bits: 32,
        access: None,
    },
    GalleryEntry {
        file: "accumulator-224-columns",
        title: "An accumulator of 224 columns",
        about: "Two halves of 112 columns side by side. Extents need not be powers of two: with 224 columns, two \
                stages and the scale factors fit where 256 columns would not.",
        notation: "S[(2,128,112):(112@TCol,1@TLane,1@TCol)]",
        shape: &[2, 128, 112],
        bits: 32,
        access: None,
    },
    GalleryEntry {
        file: "scale-factors-32x4",
        title: "Scale factors of 32 rows, for four warps",
        about: "The shard fills lanes 0 to 31 of tensor memory; the replica repeats them every 32 lanes, so that each \
                warp of a warpgroup has all of them in its own window.",
        notation: "S[(32,4):(1@TLane,1@TCol)] + R[4:32@TLane]",
        shape: &[32, 4],
        bits: 8,
        access: None,
    },
    GalleryEntry {
        file: "scale-factors-128x4",
        title: "Scale factors of 128 rows, packed into 32 lanes",
        about: "Row m is on lane m%32, its four factors begin at column 4*(m/32), and every lane is repeated in the \
                windows of the other three warps.",
        notation: "S[(4,32,4):(4@TCol,1@TLane,1@TCol)] + R[4:32@TLane]",
        shape: &[128, 4],
        bits: 8,
        access: None,
    },
];

const SWIZZLES: &[GalleryEntry] = &[
    GalleryEntry {
        file: "toy-8x8-plain",
        title: "A toy: 8 x 8 elements of 16 bytes, row-major",
        about: "A row fills a line of shared memory, so that all of a column is in the same four banks: reading it \
                takes 8 wavefronts, one for each element.",
        notation: "S[(8,8):(8,1)]",
        shape: &[8, 8],
        bits: 128,
        access: Some("S[(8,8):(1@laneid,1@reg)]"),
    },
    GalleryEntry {
        file: "toy-8x8-swizzled",
        title: "The toy with its columns XORed by the row",
        about: "Element (i, j) moves to column j^i of its row. Rows and columns both touch every bank once: a column is \
                read in 1 wavefront.",
        notation: "swizzle(M=0,B=3,S=3) o S[(8,8):(8,1)]",
        shape: &[8, 8],
        bits: 128,
        access: Some("S[(8,8):(1@laneid,1@reg)]"),
    },
    GalleryEntry {
        file: "swizzle-32b",
        title: "The 32-byte swizzle on half precision",
        about: "The atom is 8 rows of 32 bytes; rows 4 to 7 exchange their two chunks of 16 bytes.",
        notation: "swizzle(M=3,B=1,S=3) o S[(8,16):(16,1)]",
        shape: &[8, 16],
        bits: 16,
        access: Some("S[(8,16):(1@laneid,1@reg)]"),
    },
    GalleryEntry {
        file: "swizzle-64b",
        title: "The 64-byte swizzle on half precision",
        about: "The atom is 8 rows of 64 bytes; the four chunks of a row are XORed with half its number.",
        notation: "swizzle(M=3,B=2,S=3) o S[(8,32):(32,1)]",
        shape: &[8, 32],
        bits: 16,
        access: Some("S[(8,32):(1@laneid,1@reg)]"),
    },
    GalleryEntry {
        file: "swizzle-128b",
        title: "The 128-byte swizzle on half precision",
        about: "The atom is 8 rows of 128 bytes; the eight chunks of a row are XORed with its number. Column 0 is in \
                banks 0, 4, ..., 28.",
        notation: "swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)]",
        shape: &[8, 64],
        bits: 16,
        access: Some("S[(8,64):(1@laneid,1@reg)]"),
    },
];

const MESHES: &[GalleryEntry] = &[
    GalleryEntry {
        file: "mesh-shard",
        title: "8 x 8 over a 2 x 2 mesh",
        about: "Rows are split over gpuid_y, columns over gpuid_x; each device has a 4 x 4 quarter in its own memory.",
        notation: "S[(2,4,2,4):(1@gpuid_y,4@m,1@gpuid_x,1@m)]",
        shape: &[8, 8],
        bits: 32,
        access: None,
    },
    GalleryEntry {
        file: "mesh-shard-replica",
        title: "Rows split, columns replicated",
        about: "Rows are split over gpuid_y; both devices along gpuid_x hold the same 4 rows.",
        notation: "S[(2,4,8):(1@gpuid_y,8@m,1@m)] + R[2:1@gpuid_x]",
        shape: &[8, 8],
        bits: 32,
        access: None,
    },
    GalleryEntry {
        file: "mesh-shard-offset",
        title: "Rows split, on one column of the mesh",
        about: "The offset puts everything on the devices with gpuid_x = 1; the others hold nothing.",
        notation: "S[(2,4,8):(1@gpuid_y,8@m,1@m)] + 1@gpuid_x",
        shape: &[8, 8],
        bits: 32,
        access: None,
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::Range;

    use tilewright_layout::access::AccessKind;
    use tilewright_layout::banks::{AccessPattern, bank_view};
    use tilewright_layout::{Layout, TileLayout};

    use super::*;
    use crate::layout::{LayoutView, hardware_svg, tensor_svg, tensor_text};

    fn views() -> Vec<(GalleryEntry, LayoutView)> {
        let view = |entry: &GalleryEntry| LayoutView::new(&entry.notation.parse().unwrap(), entry.shape, entry.bits);
        gallery().into_iter().map(|entry| (entry, view(&entry).unwrap())).collect()
    }

    /// Wavefronts of the access, and the fewest it could take.
    fn cost(entry: &GalleryEntry) -> (&str, u32, u32) {
        let (tile, lanes): (Layout, TileLayout) =
            (entry.notation.parse().unwrap(), entry.access.unwrap().parse().unwrap());
        let region: Vec<Range<i64>> = entry.shape.iter().map(|extent| 0..*extent).collect();
        let pattern = AccessPattern::new(entry.title, AccessKind::Load, &lanes, entry.shape, &region).unwrap();
        let view = bank_view(&tile, entry.bits, &pattern).unwrap();
        (entry.file, view.wavefronts(), view.ideal_wavefronts())
    }

    #[test]
    fn file_names_are_distinct() {
        let names: BTreeSet<&str> = gallery().iter().map(|entry| entry.file).collect();
        assert_eq!(names.len(), gallery().len());
    }

    #[test]
    fn every_entry_can_be_drawn() {
        let options = crate::layout::TextOptions { width: 100, height: 40, style: crate::Style::Plain };
        for (entry, view) in views() {
            for drawn in [tensor_text(&view, &options), tensor_svg(&view), hardware_svg(&view)] {
                assert!(drawn.is_ok(), "{}: {drawn:?}", entry.file);
            }
        }
    }

    #[test]
    fn swizzles_free_the_columns_of_conflicts() {
        let costs: Vec<(&str, u32, u32)> = SWIZZLES.iter().map(cost).collect();
        let expected = [
            ("toy-8x8-plain", 64, 8),
            ("toy-8x8-swizzled", 8, 8),
            ("swizzle-32b", 2, 2),
            ("swizzle-64b", 4, 4),
            ("swizzle-128b", 8, 8),
        ];
        assert_eq!(costs, expected);
    }

    #[test]
    fn the_accumulator_of_two_halves_has_224_columns() {
        let (_, view) = views().into_iter().find(|(entry, _)| entry.file == "accumulator-224-columns").unwrap();
        let columns: BTreeSet<i64> = view.cells().unwrap().map(|cell| cell.unwrap().places[0].slot[0]).collect();
        assert_eq!((columns.len(), columns.first(), columns.last()), (224, Some(&0), Some(&223)));
    }
}

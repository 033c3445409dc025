//! Shared-memory descriptors derived from layouts.

use tilewright_diag::counted;

use crate::axis::M;
use crate::error::LayoutError;
use crate::layout::Layout;
use crate::swizzle::SwizzleLayout;

use super::form::{Form, Major, STEP_BITS};
use super::pattern::SwizzlePattern;
use super::shared::{Tcgen05Descriptor, WgmmaDescriptor};

const TCGEN05: &str = "tcgen05 shared-memory descriptor";
const WGMMA: &str = "wgmma shared-memory descriptor";

/// Bytes that the 14 bits of an address or offset can reach.
const REACH: i64 = 1 << 18;

/// An operand tile in shared memory, as described to a matrix engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand<D> {
    /// The descriptor of the first K-step. Its start address is relative to the buffer, which must start at a multiple
    /// of 1024 bytes; add the buffer's address.
    pub descriptor: D,
    /// Elements of K that one instruction reads.
    pub step: i64,
    /// What each K-step, including the first (0), adds to the start address, in bytes.
    pub advance: Vec<i64>,
}

/// The descriptor with which `tcgen05.mma` reads a tile of `shape` (rows of M or N, columns of K) of elements of `bits`
/// bits: 4 (packed), 8, 16 or 32.
///
/// The form is checked for every element: the descriptor addresses exactly the places of the layout. Errors: a layout
/// that is not a canonical form of the PTX ISA, with the first element that differs; a table; a shape whose size is not
/// the layout's; a tile too large to enumerate.
pub fn tcgen05_descriptor(
    layout: &Layout,
    shape: [i64; 2],
    bits: i64,
    major: Major,
) -> Result<Operand<Tcgen05Descriptor>, LayoutError> {
    let tile = OperandTile::new(TCGEN05, &[4, 8, 16, 32], layout, shape, bits, major)?;
    tile.check_tcgen05_major()?;
    let found = tile.describe()?;
    let descriptor = Tcgen05Descriptor {
        start_address: units(found.start),
        leading_byte_offset: units(found.leading),
        stride_byte_offset: units(found.stride),
        base_offset: 0,
        leading_is_address: false,
        swizzle: tile.pattern,
    };
    Ok(Operand { descriptor, step: tile.step(), advance: found.advance })
}

/// The descriptor with which `wgmma.mma_async` reads a tile of `shape` (rows of M or N, columns of K) of elements of
/// `bits` bits: 1, 8, 16 or 32; only 16-bit elements may be MN-major. Otherwise like [`tcgen05_descriptor`].
pub fn wgmma_descriptor(
    layout: &Layout,
    shape: [i64; 2],
    bits: i64,
    major: Major,
) -> Result<Operand<WgmmaDescriptor>, LayoutError> {
    let tile = OperandTile::new(WGMMA, &[1, 8, 16, 32], layout, shape, bits, major)?;
    if major == Major::MN && bits != 16 {
        return Err(tile.refuse(format!("{bits}-bit elements are MN-major"), "MN-major tiles of 16-bit elements"));
    }
    let Some(swizzle) = tile.pattern.mode() else {
        return Err(tile.refuse(format!("it has {}", tile.pattern.name()), "swizzles of 16-byte chunks"));
    };
    let found = tile.describe()?;
    let descriptor = WgmmaDescriptor {
        start_address: units(found.start),
        leading_byte_offset: units(found.leading),
        stride_byte_offset: units(found.stride),
        base_offset: 0,
        swizzle,
    };
    Ok(Operand { descriptor, step: tile.step(), advance: found.advance })
}

/// Bytes below [`REACH`] in units of 16.
fn units(bytes: i64) -> u16 {
    (bytes >> 4) as u16
}

/// A tile to describe.
struct OperandTile {
    /// The descriptor to derive, as named in errors.
    name: &'static str,
    /// Extent of M or N.
    rows: i64,
    /// Extent of K.
    columns: i64,
    /// Bits of one element.
    bits: i64,
    major: Major,
    /// The swizzle of the layout.
    pattern: SwizzlePattern,
    /// Bit address of every element before the swizzle, row by row. The engine XORs the same bits of the same address
    /// as the layout, so forms that agree here agree after the swizzle.
    places: Vec<i64>,
}

/// Byte distances of a tile that is a canonical form.
struct MeasuredOffsets {
    /// Start of the first K-step, from the start of the buffer.
    start: i64,
    /// Leading dimension offset.
    leading: i64,
    /// Stride dimension offset.
    stride: i64,
    /// Start of every K-step, relative to the first.
    advance: Vec<i64>,
}

impl OperandTile {
    fn new(
        name: &'static str,
        widths: &[i64],
        layout: &Layout,
        [rows, columns]: [i64; 2],
        bits: i64,
        major: Major,
    ) -> Result<OperandTile, LayoutError> {
        let refuse = |problem, legal: &str| LayoutError::Descriptor { name, problem, legal: legal.to_string() };
        let iters = layout.tile()?;
        iters.check_shape(&[rows, columns])?;
        layout.check_enumerable()?;
        if !widths.contains(&bits) {
            let widths: Vec<String> = widths.iter().map(i64::to_string).collect();
            return Err(refuse(format!("elements have {bits} bits"), &format!("{} bits", widths.join(", "))));
        }
        if let Some(axis) = layout.axes().into_iter().find(|axis| *axis != M) {
            return Err(refuse(format!("it also lives on `{axis}`"), "linear memory `m` only"));
        }
        if !iters.canonicalize().replica().is_empty() {
            return Err(refuse("it has replicas".to_string(), "one place per element"));
        }
        let Some(pattern) = SwizzlePattern::of(layout, bits) else {
            let problem = format!("no engine supports its swizzle on {bits}-bit elements");
            return Err(refuse(problem, &legal_swizzles(bits)?));
        };
        let places = iters.positions(&M).into_iter().map(|position| position * bits).collect();
        Ok(OperandTile { name, rows, columns, bits, major, pattern, places })
    }

    /// PTX ISA, "Transpose and Negate operations": tf32 is transposed with 32-byte chunks, other types without; 4-bit
    /// operands are K-major.
    fn check_tcgen05_major(&self) -> Result<(), LayoutError> {
        let atom = self.pattern == SwizzlePattern::B128Atom32;
        match (self.major, self.bits) {
            (Major::K, _) if atom => Err(self.refuse(
                format!("it is K-major with {}", self.pattern.name()),
                "the swizzles of 16-byte chunks for K-major tiles",
            )),
            (Major::MN, 4) => {
                Err(self.refuse("elements of 4 bits are MN-major".to_string(), "K-major tiles of 4 bits"))
            }
            (Major::MN, 32) if !atom => Err(self.refuse(
                format!("elements of 32 bits are MN-major with {}", self.pattern.name()),
                "the 128-byte swizzle of 32-byte chunks for MN-major tiles of 32 bits",
            )),
            (Major::MN, 8 | 16) if atom => Err(self.refuse(
                format!("MN-major elements of {} bits have {}", self.bits, self.pattern.name()),
                "32-byte chunks only for MN-major tiles of 32 bits",
            )),
            _ => Ok(()),
        }
    }

    fn refuse(&self, problem: String, legal: &str) -> LayoutError {
        LayoutError::Descriptor { name: self.name, problem, legal: legal.to_string() }
    }

    /// Elements of K in one step.
    fn step(&self) -> i64 {
        STEP_BITS / self.bits
    }

    fn describe(&self) -> Result<MeasuredOffsets, LayoutError> {
        self.check_extents()?;
        let form = self.measured()?;
        let mut starts = Vec::new();
        for step in 0..self.columns / self.step() {
            starts.push(self.start(step)?);
            self.check_step(step, &form)?;
        }
        let (leading, stride) = form.offsets(self.pattern, self.major);
        let start = starts.first().copied().unwrap_or(0);
        let advance = starts.iter().map(|s| s - start).collect();
        Ok(MeasuredOffsets { start, leading: leading / 8, stride: stride / 8, advance })
    }

    fn check_extents(&self) -> Result<(), LayoutError> {
        if self.columns % self.step() != 0 {
            let bytes = bit_text(self.columns * self.bits);
            let problem = format!("K = {}, which is {bytes}; an instruction reads 32 bytes", self.columns);
            return Err(self.refuse(problem, &format!("K a multiple of {}", self.step())));
        }
        if self.rows % 8 != 0 {
            let problem = format!("the number of rows is {}, but an instruction reads groups of 8", self.rows);
            return Err(self.refuse(problem, "a multiple of 8 rows"));
        }
        Ok(())
    }

    /// Bit address of an element of a K-step, by its index along the major dimension and its other index.
    fn place(&self, step: i64, major: i64, minor: i64) -> i64 {
        let (row, k) = self.index(step, major, minor);
        self.places[(row * self.columns + k) as usize]
    }

    /// Row and column of an element of a K-step.
    fn index(&self, step: i64, major: i64, minor: i64) -> (i64, i64) {
        let first = step * self.step();
        match self.major {
            Major::K => (minor, first + major),
            Major::MN => (major, first + minor),
        }
    }

    /// Extents of a K-step along the major dimension and along the other one.
    fn extents(&self) -> (i64, i64) {
        match self.major {
            Major::K => (self.step(), self.rows),
            Major::MN => (self.rows, self.step()),
        }
    }

    /// The form with the distances measured in the first K-step.
    fn measured(&self) -> Result<Form, LayoutError> {
        let mut form = Form::packed(self.pattern, self.bits);
        let (majors, minors) = self.extents();
        let first = self.place(0, 0, 0);
        let packed = |index: &i64| self.place(0, *index, 0) - first == index * self.bits;
        if let Some(apart) = (0..form.run.min(majors)).find(|index| !packed(index)) {
            return Err(self.differs(0, apart, 0, &form));
        }
        let along = if self.major == Major::K { "K" } else { "MN" };
        if majors > form.run {
            form.across = self.distance(self.place(0, form.run, 0) - first, &format!("runs along {along}"))?;
        }
        if minors > form.rows {
            form.down = self.distance(self.place(0, 0, form.rows) - first, &format!("groups of {} runs", form.rows))?;
        }
        Ok(form)
    }

    /// A distance in bits between parts of the tile, if a descriptor can encode it.
    fn distance(&self, bits: i64, what: &str) -> Result<i64, LayoutError> {
        let unit = if self.pattern == SwizzlePattern::None { 16 } else { self.pattern.repeat() };
        if bits % (unit * 8) != 0 || !(0..REACH * 8).contains(&bits) {
            let problem = format!("{what} are {} apart", bit_text(bits));
            return Err(self.refuse(problem, &format!("multiples of {unit} bytes below {REACH}")));
        }
        Ok(bits)
    }

    /// Where a K-step starts, in bytes.
    fn start(&self, step: i64) -> Result<i64, LayoutError> {
        let bits = self.place(step, 0, 0);
        if bits % 128 != 0 || !(0..REACH * 8).contains(&bits) {
            let problem = format!("K-step {step} starts at {}", bit_text(bits));
            return Err(self.refuse(problem, &format!("starts at multiples of 16 bytes below {REACH}")));
        }
        let (bytes, repeat) = (bits / 8, self.pattern.repeat());
        if self.pattern != SwizzlePattern::None && bytes % repeat >= self.pattern.span() {
            let inside = bytes % repeat;
            let problem = format!("K-step {step} starts {inside} bytes into the swizzle's period of {repeat} bytes");
            return Err(self.refuse(problem, "tiles that start at a multiple of the swizzle's period"));
        }
        Ok(bytes)
    }

    /// Compares every element of a K-step with the form.
    fn check_step(&self, step: i64, form: &Form) -> Result<(), LayoutError> {
        let (majors, minors) = self.extents();
        let start = self.place(step, 0, 0);
        for minor in 0..minors {
            for major in 0..majors {
                if start + form.offset(major, minor) != self.place(step, major, minor) {
                    return Err(self.differs(step, major, minor, form));
                }
            }
        }
        Ok(())
    }

    /// The error for the first element that is not where the form puts it, with the rule that it breaks.
    fn differs(&self, step: i64, major: i64, minor: i64, form: &Form) -> LayoutError {
        let start = self.place(step, 0, 0);
        let (row, k) = self.index(step, major, minor);
        let got = bit_text(self.place(step, major, minor) - start);
        let wanted = bit_text(form.offset(major, minor));
        let (along, other) = if self.major == Major::K { ("K", "rows") } else { ("MN", "indices of K") };
        let span = self.pattern.span();
        let rule = if minor == 0 && major < form.run {
            format!("{span} bytes along {along} must be packed")
        } else if minor == 0 {
            format!("runs of {span} bytes along {along} must be evenly spaced")
        } else if minor < form.rows {
            format!("with {}, neighbouring {other} must be {span} bytes apart", self.pattern.name())
        } else {
            format!("groups of {} {other} must be evenly spaced", form.rows)
        };
        let problem = format!("element (row {row}, k {k}) is {got} from the start of its K-step, not {wanted}");
        self.refuse(problem, &rule)
    }
}

/// `12 bytes`, or `4 bits` for a number of bits that is not a whole number of bytes.
fn bit_text(bits: i64) -> String {
    if bits % 8 == 0 { counted(bits / 8, "byte") } else { counted(bits, "bit") }
}

/// The swizzles that the engines support, in notation, for elements of `bits` bits.
fn legal_swizzles(bits: i64) -> Result<String, LayoutError> {
    let of_patterns = SwizzlePattern::ALL.into_iter().map(|pattern| pattern.swizzle(bits));
    let swizzles: Vec<Option<SwizzleLayout>> = of_patterns.collect::<Result<_, _>>()?;
    let texts: Vec<String> = swizzles.into_iter().flatten().map(|swizzle| swizzle.to_string()).collect();
    Ok(texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str) -> Layout {
        text.parse().unwrap()
    }

    /// Leading and stride offset and the steps, in bytes.
    fn tcgen05(text: &str, shape: [i64; 2], bits: i64, major: Major) -> Result<(i64, i64, Vec<i64>), String> {
        let found = tcgen05_descriptor(&layout(text), shape, bits, major).map_err(|e| e.to_string())?;
        let bytes = |units: u16| i64::from(units) * 16;
        let d = found.descriptor;
        Ok((bytes(d.leading_byte_offset), bytes(d.stride_byte_offset), found.advance))
    }

    #[test]
    fn a_k_step_advances_inside_a_row_and_then_to_the_next_atom() {
        let text = "swizzle(M=3,B=3,S=3) o S[(64,2,64):(64,4096,1)]";
        let advance = vec![0, 32, 64, 96, 8192, 8224, 8256, 8288];
        assert_eq!(tcgen05(text, [64, 128], 16, Major::K), Ok((16, 1024, advance)));
    }

    #[test]
    fn without_a_swizzle_the_leading_offset_leads_to_the_next_chunk_of_k() {
        let text = "S[(16,2,8):(8,128,1)]";
        assert_eq!(tcgen05(text, [16, 16], 16, Major::K), Ok((256, 128, vec![0])));
    }

    #[test]
    fn an_mn_major_tile_leads_along_mn_and_strides_along_k() {
        let text = "swizzle(M=3,B=3,S=3) o S[(2,64,64):(4096,1,64)]";
        assert_eq!(tcgen05(text, [128, 64], 16, Major::MN), Ok((8192, 1024, vec![0, 2048, 4096, 6144])));
    }

    #[test]
    fn an_mn_major_tile_without_a_swizzle_leads_along_k() {
        let text = "S[(4,8,2,8):(64,1,256,8)]";
        assert_eq!(tcgen05(text, [32, 16], 16, Major::MN), Ok((512, 128, vec![0])));
    }

    #[test]
    fn tf32_is_mn_major_with_chunks_of_32_bytes() {
        let text = "swizzle(M=3,B=2,S=2) o S[(2,32,16):(512,1,32)]";
        assert_eq!(tcgen05(text, [64, 16], 32, Major::MN), Ok((2048, 512, vec![0, 1024])));
        let wrong = tcgen05("swizzle(M=2,B=3,S=3) o S[(32,16):(1,32)]", [32, 16], 32, Major::MN).unwrap_err();
        assert!(wrong.contains("elements of 32 bits are MN-major with the 128-byte swizzle"), "{wrong}");
    }

    #[test]
    fn wgmma_has_the_same_forms_in_its_own_word() {
        let tile = layout("swizzle(M=3,B=3,S=3) o S[(2,64,64):(4096,1,64)]");
        let found = wgmma_descriptor(&tile, [128, 64], 16, Major::MN).unwrap();
        assert_eq!(found.descriptor.encode(), (1 << 62) | (64 << 32) | (512 << 16));
        assert!(wgmma_descriptor(&tile, [128, 64], 8, Major::MN).is_err());
    }

    #[test]
    fn plain_rows_are_refused_at_the_second_row() {
        let said = "no tcgen05 shared-memory descriptor describes this layout: \
                    element (row 1, k 0) is 128 bytes from the start of its K-step, not 16 bytes";
        assert_eq!(tcgen05("S[(64,64):(64,1)]", [64, 64], 16, Major::K), Err(said.to_string()));
    }

    #[test]
    fn elements_that_are_not_packed_are_refused() {
        let said = tcgen05("S[(8,16):(2,16)]", [8, 16], 16, Major::K).unwrap_err();
        assert!(said.ends_with("element (row 0, k 1) is 32 bytes from the start of its K-step, not 2 bytes"), "{said}");
    }

    #[test]
    fn a_tile_that_starts_inside_the_swizzle_is_refused() {
        let said = tcgen05("swizzle(M=3,B=3,S=3) o S[(8,64):(64,1)] + 256", [8, 64], 16, Major::K).unwrap_err();
        assert!(said.ends_with("K-step 0 starts 512 bytes into the swizzle's period of 1024 bytes"), "{said}");
    }

    #[test]
    fn a_foreign_swizzle_is_refused() {
        let refused = tcgen05_descriptor(&layout("swizzle(M=3,B=3,S=4) o S[(8,64):(64,1)]"), [8, 64], 16, Major::K);
        let error = refused.unwrap_err();
        assert_eq!(error.code(), "L0114");
        assert!(error.to_string().ends_with("no engine supports its swizzle on 16-bit elements"), "{error}");
    }

    #[test]
    fn a_tile_of_half_an_instruction_is_refused() {
        let said = tcgen05("S[(8,4):(4,1)]", [8, 4], 16, Major::K).unwrap_err();
        assert!(said.ends_with("K = 4, which is 8 bytes; an instruction reads 32 bytes"), "{said}");
    }

    #[test]
    fn groups_off_the_repeat_of_the_swizzle_are_refused() {
        let said = tcgen05("swizzle(M=3,B=3,S=3) o S[(2,8,64):(576,64,1)]", [16, 64], 16, Major::K).unwrap_err();
        assert!(said.ends_with("groups of 8 runs are 1152 bytes apart"), "{said}");
    }
}

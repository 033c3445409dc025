//! Arrays in the `.npy` format of NumPy (its enhancement proposal 1). Only the plain numbers that launch files use are
//! read, in C order: the crates that read everything depend on a parser of Python literals.

use super::dtype::ElementType;

/// An array: the bytes of its elements in C order, little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// The element type.
    pub dtype: ElementType,
    /// The size of each dimension.
    pub shape: Vec<usize>,
    /// The elements.
    pub bytes: Vec<u8>,
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// The types that NumPy has.
const NAMES: [(ElementType, &str); 11] = [
    (ElementType::I8, "i1"),
    (ElementType::U8, "u1"),
    (ElementType::I16, "i2"),
    (ElementType::U16, "u2"),
    (ElementType::I32, "i4"),
    (ElementType::U32, "u4"),
    (ElementType::I64, "i8"),
    (ElementType::U64, "u8"),
    (ElementType::F16, "f2"),
    (ElementType::F32, "f4"),
    (ElementType::F64, "f8"),
];

impl Array {
    /// A row of bytes.
    pub fn of_bytes(bytes: Vec<u8>) -> Array {
        Array { dtype: ElementType::U8, shape: vec![bytes.len()], bytes }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(file: &[u8]) -> Result<Array, String> {
        let rest = file.strip_prefix(MAGIC).ok_or("the file is not in the format of NumPy (`.npy`)")?;
        let cut = || "the header is cut off".to_string();
        let (version, rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
        let (length, rest) = if version[0] == 1 {
            let (length, rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
            (u32::from(u16::from_le_bytes(*length)), rest)
        } else {
            let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
            (u32::from_le_bytes(*length), rest)
        };
        let (header, data) = rest.split_at_checked(length as usize).ok_or_else(cut)?;
        let header = std::str::from_utf8(header).map_err(|_| "the header is not text".to_string())?;
        if field(header, "fortran_order")? != "False" {
            return Err("the array is in Fortran order; store it in C order (`numpy.ascontiguousarray`)".to_string());
        }
        let dtype = dtype(field(header, "descr")?)?;
        let shape = shape(field(header, "shape")?)?;
        let count = shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
        let bytes = count.and_then(|count| count.checked_mul(dtype.bytes()));
        if bytes != Some(data.len()) {
            return Err(format!("{} bytes of data do not match the shape {shape:?} of {}", data.len(), dtype.name()));
        }
        Ok(Array { dtype, shape, bytes: data.to_vec() })
    }

    /// The file with this array. A type that NumPy lacks is stored as its bits.
    pub fn to_file(&self) -> Vec<u8> {
        let known = NAMES.iter().find(|(dtype, _)| *dtype == self.dtype);
        let name = known.map_or(if self.dtype.bytes() == 1 { "u1" } else { "u2" }, |(_, name)| name);
        let order = if self.dtype.bytes() == 1 { '|' } else { '<' };
        let sizes: Vec<String> = self.shape.iter().map(|size| format!("{size},")).collect();
        let mut header = format!(
            "{{'descr': '{order}{name}', 'fortran_order': False, 'shape': ({}), }}",
            sizes.join(" ").trim_end_matches(if self.shape.len() > 1 { ',' } else { ' ' })
        );
        // The data begin at a multiple of 64.
        let length = (MAGIC.len() + 4 + header.len() + 1).next_multiple_of(64) - MAGIC.len() - 4;
        header.push_str(&" ".repeat(length - header.len() - 1));
        let head = [MAGIC, &[1, 0], &(length as u16).to_le_bytes(), header.as_bytes(), b"\n"].concat();
        [head, self.bytes.clone()].concat()
    }
}

/// The text of a value in the header, without quotes.
fn field<'a>(header: &'a str, name: &str) -> Result<&'a str, String> {
    let missing = || format!("the header has no `{name}`");
    let (_, rest) = header.split_once(&format!("'{name}':")).ok_or_else(missing)?;
    let rest = rest.trim_start();
    let value = match rest.chars().next() {
        Some('(') => rest[1..].split_once(')').map(|(inside, _)| inside),
        Some('\'') => rest[1..].split_once('\'').map(|(inside, _)| inside),
        _ => rest.split([',', '}']).next().map(str::trim),
    };
    value.ok_or_else(missing)
}

fn dtype(name: &str) -> Result<ElementType, String> {
    let (order, rest) = name.split_at_checked(1).ok_or("the type is missing")?;
    let found = NAMES.iter().find(|(_, known)| *known == rest);
    match found {
        Some((dtype, _)) if matches!(order, "<" | "|" | "=") || dtype.bytes() == 1 => Ok(*dtype),
        _ => Err(format!("the type `{name}` is not supported: use little-endian integers, f2, f4 or f8")),
    }
}

fn shape(text: &str) -> Result<Vec<usize>, String> {
    let sizes = text.split(',').map(str::trim).filter(|size| !size.is_empty());
    sizes.map(|size| size.parse().map_err(|_| format!("the size `{size}` is not a number"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_survives_its_file() {
        for shape in [vec![], vec![3], vec![2, 3], vec![0, 4]] {
            let count: usize = shape.iter().product();
            for (dtype, _) in NAMES {
                let array = Array {
                    dtype,
                    shape: shape.clone(),
                    bytes: (0..count * dtype.bytes()).map(|at| at as u8).collect(),
                };
                let file = array.to_file();
                assert_eq!(file.len() % 64, array.bytes.len() % 64);
                assert_eq!(Array::parse(&file), Ok(array));
            }
        }
    }

    /// Written by NumPy 2.3: `numpy.save("a.npy", numpy.array([[1, 2], [3, 4]], dtype="<i2"))`.
    #[test]
    fn a_file_of_numpy_is_read() {
        let header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2), }";
        let padded = format!("{header:<117}\n");
        let file = [MAGIC, &[1, 0, 118, 0], padded.as_bytes(), &[1, 0, 2, 0, 3, 0, 4, 0]].concat();
        let array = Array::parse(&file).expect("it is read");
        assert_eq!((array.dtype, array.shape), (ElementType::I16, vec![2, 2]));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let array = Array { dtype: ElementType::F32, shape: vec![2], bytes: vec![0; 8] };
        let file = array.to_file();
        let said = |file: &[u8]| Array::parse(file).expect_err("it is wrong");
        assert!(said(b"PK").contains("not in the format"));
        assert!(said(&file[..20]).contains("cut off"));
        assert!(said(&file[..file.len() - 1]).contains("7 bytes of data do not match the shape [2] of f32"));
        let other = |from: &str, to: &str| {
            let text: Vec<u8> = file.iter().map(|byte| if byte.is_ascii() { *byte } else { b'?' }).collect();
            let text = String::from_utf8(text).expect("text").replace(from, to);
            [MAGIC, &text.as_bytes()[MAGIC.len()..]].concat()
        };
        assert!(said(&other("'<f4'", "'>f4'")).contains("`>f4` is not supported"));
        assert!(said(&other("False", "True ")).contains("Fortran order"));
    }
}

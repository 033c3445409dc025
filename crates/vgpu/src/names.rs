//! Names of variables in the CUDA source.

/// The CUDA name of a variable declared in a function: `tile` for `_ZZ12sf_transposeE4tile` (Itanium C++ ABI, local
/// names). Other names are returned unchanged.
pub(crate) fn source_name(mangled: &str) -> &str {
    local_name(mangled).unwrap_or(mangled)
}

fn local_name(mangled: &str) -> Option<&str> {
    let inside = mangled.strip_prefix("_ZZ")?;
    // The function comes first; the variable follows the last `E`, preceded by its length.
    let (_, last) = inside.rsplit_once('E').filter(|(_, name)| name.starts_with(|c: char| c.is_ascii_digit()))?;
    let digits = last.len() - last.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let length: usize = last[..digits].parse().ok()?;
    last.get(digits..digits.checked_add(length)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_of_a_function_has_its_own_name() {
        let names = ["_ZZ12sf_transposeE4tile", "_ZZ1kPfE4tile", "_ZZ1kE5tile2_0", "tile", "_ZZ1kE", "_ZZ1kE99x"];
        assert_eq!(source_name("_ZZ1kE18446744073709551615x"), "_ZZ1kE18446744073709551615x");
        assert_eq!(names.map(source_name), ["tile", "tile", "tile2", "tile", "_ZZ1kE", "_ZZ1kE99x"]);
    }
}

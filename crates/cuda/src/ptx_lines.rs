//! Maps a line of PTX back to the line of CUDA text it was generated from, using `.file` and `.loc`.

/// The line of the CUDA file `name` that line `ptx_line` of `ptx` was generated from (both count from 1).
///
/// With `-lineinfo`, `.loc FILE LINE COLUMN` precedes the instructions of a CUDA line, and `.file NUMBER "NAME"` gives
/// the number of a file. `None` if no `.loc` precedes the line in the same function, or if the nearest one belongs to
/// another file.
pub(crate) fn cuda_line(ptx: &str, ptx_line: u32, name: &str) -> Option<u32> {
    let file = file_number(ptx, name)?;
    let last = usize::try_from(ptx_line).ok()?;
    let before: Vec<&str> = ptx.lines().take(last).collect();
    let (number, line) =
        before.iter().rev().take_while(|text| !text.starts_with('}')).find_map(|text| location(text))?;
    (number == file).then_some(line)
}

/// The number of the `.file` line whose path is `name`, or ends in `name` after a `/`.
fn file_number(ptx: &str, name: &str) -> Option<u32> {
    ptx.lines().find_map(|line| {
        let (number, path) = line.trim().strip_prefix(".file")?.trim().split_once('"')?;
        let path = path.split('"').next()?;
        let same = path.strip_suffix(name).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'));
        if same { number.trim().parse().ok() } else { None }
    })
}

/// File number and line number of a `.loc` line.
fn location(line: &str) -> Option<(u32, u32)> {
    let mut words = line.trim().strip_prefix(".loc")?.split_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "\
.version 9.5
.visible .entry a(
)
{
\t.loc\t1 5 0
\tret;
}
.visible .entry k(
)
{
\tmov.u32 %r1, 0;
\t.loc\t1 6 3
\t{ // callseq 0, 0
\tcall f;
\t} // callseq 0
\t.loc\t1 2 3, function_name $L__info_string0, inlined_at 1 6 3
\tmov.bogus.b32 %r1, %r1;
\t.loc\t2 40 1
\tadd.s32 %r1, %r1, 1;
}
\t.file\t1 \"/tilewright/k.cu\"
\t.file\t2 \"/include/h.h\"
";

    #[test]
    fn the_nearest_location_before_the_line_counts() {
        assert_eq!(cuda_line(PTX, 6, "/tilewright/k.cu"), Some(5));
        assert_eq!(cuda_line(PTX, 15, "/tilewright/k.cu"), Some(6));
        assert_eq!(cuda_line(PTX, 17, "/tilewright/k.cu"), Some(2));
    }

    #[test]
    fn a_location_of_another_function_or_file_does_not_count() {
        assert_eq!(cuda_line(PTX, 11, "/tilewright/k.cu"), None);
        assert_eq!(cuda_line(PTX, 19, "/tilewright/k.cu"), None);
        assert_eq!(cuda_line(PTX, 17, "/tilewright/other.cu"), None);
    }

    #[test]
    fn lines_outside_the_text_and_empty_texts_have_no_cuda_line() {
        assert_eq!(cuda_line("", 3, "k.cu"), None);
        assert_eq!(cuda_line(PTX, 0, "/tilewright/k.cu"), None);
    }

    #[test]
    fn a_relative_name_matches_the_end_of_the_path() {
        assert_eq!(cuda_line(PTX, 17, "k.cu"), Some(2));
        assert_eq!(cuda_line(PTX, 17, ".cu"), None);
    }
}

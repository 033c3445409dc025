//! Bytes in pages, which copies share until they are written.

use std::borrow::Cow;
use std::iter::repeat_n;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a page; the last one may have fewer.
const PAGE: usize = 1 << 16;
static ZEROS: [u8; PAGE] = [0; PAGE];

/// Bytes in pages, which copies share until they are written.
#[derive(Clone, Debug)]
pub(crate) struct Bytes {
    len: usize,
    /// Pages that were never written are `None`: they have only zeros, and take no memory.
    pages: Vec<Option<Arc<[u8]>>>,
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        let page = |page: &[u8]| (page != &ZEROS[..page.len()]).then(|| Arc::from(page));
        Bytes { len: bytes.len(), pages: bytes.chunks(PAGE).map(page).collect() }
    }
}

impl Bytes {
    pub(crate) fn zeros(len: usize) -> Bytes {
        Bytes { len, pages: vec![None; len.div_ceil(PAGE)] }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether a range, which is not empty, is in one page.
    pub(crate) fn are_in_one_page(range: &Range<usize>) -> bool {
        range.start / PAGE == (range.end - 1) / PAGE
    }

    /// The pages of a range, each with the part of it that is in the range.
    fn parts(range: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
        (range.start / PAGE..range.end.div_ceil(PAGE)).map(move |index| {
            let start = index * PAGE;
            (index, range.start.max(start) - start..range.end.min(start + PAGE) - start)
        })
    }

    fn page(&self, index: usize) -> &[u8] {
        self.pages[index].as_deref().unwrap_or(&ZEROS)
    }

    fn page_mut(&mut self, index: usize) -> &mut [u8] {
        let len = (self.len - index * PAGE).min(PAGE);
        Arc::make_mut(self.pages[index].get_or_insert_with(|| repeat_n(0, len).collect()))
    }

    /// The byte at an offset, if it is inside.
    pub(crate) fn get(&self, offset: usize) -> Option<u8> {
        (offset < self.len).then(|| self.page(offset / PAGE)[offset % PAGE])
    }

    /// The bytes of a range in one page.
    pub(crate) fn in_page(&self, range: Range<usize>) -> &[u8] {
        let (index, start) = (range.start / PAGE, range.start % PAGE);
        &self.page(index)[start..start + range.len()]
    }

    /// The same, to be written.
    pub(crate) fn in_page_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        let (index, start) = (range.start / PAGE, range.start % PAGE);
        &mut self.page_mut(index)[start..start + range.len()]
    }

    /// The bytes of a range, which are inside.
    pub(crate) fn read(&self, range: Range<usize>) -> Cow<'_, [u8]> {
        if range.is_empty() {
            return Cow::Borrowed(&[]);
        }
        if Bytes::are_in_one_page(&range) {
            return Cow::Borrowed(self.in_page(range));
        }
        let mut all = Vec::with_capacity(range.len());
        Bytes::parts(range).for_each(|(index, part)| all.extend_from_slice(&self.page(index)[part]));
        Cow::Owned(all)
    }

    /// Writes bytes, which end inside.
    pub(crate) fn write(&mut self, offset: usize, data: &[u8]) {
        let mut rest = data;
        for (index, part) in Bytes::parts(offset..offset + data.len()) {
            let (own, others) = rest.split_at(part.len());
            self.page_mut(index)[part].copy_from_slice(own);
            rest = others;
        }
    }

    /// Takes the bytes of a range from another copy. A page that was never written here is shared with it from now on: so nothing
    /// else may have been written there that is not to be taken too.
    pub(crate) fn adopt(&mut self, other: &Bytes, range: Range<usize>) {
        for (index, part) in Bytes::parts(range) {
            match (&mut self.pages[index], &other.pages[index]) {
                (Some(own), Some(theirs)) if Arc::ptr_eq(own, theirs) => {}
                (Some(own), _) => Arc::make_mut(own)[part.clone()].copy_from_slice(&other.page(index)[part]),
                (own, theirs) => own.clone_from(theirs),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Different bytes in more than one page, the last of which is not full.
    fn pattern() -> Vec<u8> {
        (0..2 * PAGE + 10).map(|at| (at % 251) as u8).collect()
    }

    #[test]
    fn reads_across_pages() {
        let (bytes, pattern) = (Bytes::from(pattern()), pattern());
        for range in [0..0, 5..9, PAGE - 3..PAGE + 3, 2 * PAGE..2 * PAGE + 10, 0..pattern.len()] {
            assert_eq!(bytes.read(range.clone()), &pattern[range]);
        }
    }

    #[test]
    fn writes_across_pages_do_not_reach_copies() {
        let (mut bytes, pattern) = (Bytes::zeros(2 * PAGE + 10), pattern());
        let copy = bytes.clone();
        bytes.write(7, &pattern[7..pattern.len() - 1]);
        assert_eq!(bytes.read(0..7), [0; 7].as_slice());
        assert_eq!(bytes.read(7..pattern.len() - 1), &pattern[7..pattern.len() - 1]);
        assert_eq!(bytes.read(pattern.len() - 1..pattern.len()), [0].as_slice());
        assert!(copy.read(0..pattern.len()).iter().all(|byte| *byte == 0));
    }

    #[test]
    fn copies_adopt_what_they_have_not_written() {
        let (mut low, pattern) = (Bytes::zeros(2 * PAGE + 10), pattern());
        let mut high = low.clone();
        let middle = PAGE / 2;
        low.write(0, &pattern[..middle]);
        high.write(middle, &pattern[middle..]);
        low.adopt(&high, middle..pattern.len());
        assert_eq!(low.read(0..pattern.len()), pattern);
    }

    #[test]
    fn zeros_of_the_host_take_no_memory() {
        let bytes = Bytes::from(vec![0; PAGE + 1]);
        assert!(bytes.pages.iter().all(Option::is_none));
    }
}

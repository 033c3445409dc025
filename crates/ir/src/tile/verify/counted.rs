//! Numbers of things, as they are written in messages.

/// `1 index`, `2 indices`
pub(super) fn indices(count: usize) -> String {
    format!("{count} {}", if count == 1 { "index" } else { "indices" })
}

/// `1 dimension`, `2 dimensions`
pub(super) fn dimensions(count: usize) -> String {
    format!("{count} {}", if count == 1 { "dimension" } else { "dimensions" })
}

//! A JSON value with its path in the file, for error messages.

use serde_json::Value as Json;

/// A value with its path, such as `program.body[2].src`.
pub(crate) struct Node<'a> {
    pub(crate) json: &'a Json,
    path: String,
}

impl<'a> Node<'a> {
    /// The whole file.
    pub(crate) fn root(json: &'a Json) -> Node<'a> {
        Node { json, path: String::new() }
    }

    /// An error message about this value.
    pub(crate) fn wrong(&self, what: &str) -> String {
        let path = if self.path.is_empty() { "the file" } else { self.path.as_str() };
        format!("{path}: {what}")
    }

    /// The value of a key; `None` if it is missing or null.
    pub(crate) fn get(&self, key: &str) -> Option<Node<'a>> {
        let json = self.json.get(key).filter(|json| !json.is_null())?;
        Some(Node { json, path: self.path_of(key) })
    }

    /// The value of a required key.
    pub(crate) fn need(&self, key: &str) -> Result<Node<'a>, String> {
        self.get(key).ok_or_else(|| self.wrong(&format!("no `{key}`")))
    }

    /// Fails if this is not an object, or has a key other than these.
    pub(crate) fn only(&self, keys: &[&str]) -> Result<(), String> {
        let object = self.json.as_object().ok_or_else(|| self.wrong("no object"))?;
        match object.keys().find(|key| !keys.contains(&key.as_str())) {
            Some(unknown) => Err(self.wrong(&format!("unknown key `{unknown}`"))),
            None => Ok(()),
        }
    }

    /// The elements of a list.
    pub(crate) fn list(&self) -> Result<Vec<Node<'a>>, String> {
        let items = self.json.as_array().ok_or_else(|| self.wrong("expected a list"))?;
        let node = |(at, json): (usize, &'a Json)| Node { json, path: format!("{}[{at}]", self.path) };
        Ok(items.iter().enumerate().map(node).collect())
    }

    /// The keys and values of an object.
    pub(crate) fn entries(&self) -> Result<Vec<(&'a str, Node<'a>)>, String> {
        let object = self.json.as_object().ok_or_else(|| self.wrong("no object"))?;
        Ok(object.iter().map(|(key, json)| (key.as_str(), Node { json, path: self.path_of(key) })).collect())
    }

    pub(crate) fn text(&self) -> Result<String, String> {
        self.json.as_str().map(str::to_string).ok_or_else(|| self.wrong("expected a string"))
    }

    pub(crate) fn integer(&self) -> Result<i64, String> {
        self.json.as_i64().ok_or_else(|| self.wrong("expected an integer"))
    }

    pub(crate) fn number(&self) -> Result<f64, String> {
        self.json.as_f64().ok_or_else(|| self.wrong("expected a number"))
    }

    pub(crate) fn flag(&self) -> Result<bool, String> {
        self.json.as_bool().ok_or_else(|| self.wrong("expected true or false"))
    }

    /// An integer of at least 1.
    pub(crate) fn positive(&self) -> Result<i64, String> {
        let value = self.integer()?;
        if value >= 1 { Ok(value) } else { Err(self.wrong(&format!("{value} is less than 1"))) }
    }

    /// A list of extents, with a product that can be enumerated.
    pub(crate) fn extents(&self) -> Result<Vec<i64>, String> {
        let extents: Vec<i64> = self.list()?.iter().map(Node::positive).collect::<Result<_, _>>()?;
        let size = extents.iter().try_fold(1i64, |size, extent| size.checked_mul(*extent));
        match size {
            Some(size) if size <= MOST_ELEMENTS => Ok(extents),
            _ => Err(self.wrong("too many elements")),
        }
    }

    /// A list of strings.
    pub(crate) fn texts(&self) -> Result<Vec<String>, String> {
        self.list()?.iter().map(Node::text).collect()
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_string() } else { format!("{}.{key}", self.path) }
    }
}

/// The maximum number of elements: more than any case has, and few enough to enumerate.
const MOST_ELEMENTS: i64 = 1 << 40;

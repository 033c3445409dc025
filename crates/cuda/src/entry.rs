//! The file format of one cache entry.
//!
//! An eight-byte magic, the format number (u32), the fields of [`Compiled`] with lengths before texts and lists, and
//! the SHA-256 of everything before it. Numbers are little-endian; lengths are u64.

use crate::log::{LogLine, Severity};
use crate::request::Compiled;
use crate::resources::Resources;
use sha2::{Digest, Sha256};

/// The version of this format. Changing it turns every older entry into a miss, since it is also part of the key.
pub(crate) const FORMAT: u32 = 1;

const MAGIC: &[u8; 8] = b"TWCUBIN\0";
const DIGEST_BYTES: usize = 32;

pub(crate) fn encode(compiled: &Compiled) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(MAGIC);
    put_u32(&mut out, FORMAT);
    put_bytes(&mut out, compiled.ptx.as_bytes());
    put_bytes(&mut out, &compiled.cubin);
    put_length(&mut out, compiled.log.len());
    for line in &compiled.log {
        put_u32(&mut out, severity_code(line.severity));
        put_u32(&mut out, u32::from(line.line.is_some()));
        put_u32(&mut out, line.line.unwrap_or(0));
        put_bytes(&mut out, line.text.as_bytes());
    }
    put_length(&mut out, compiled.resources.len());
    for kernel in &compiled.resources {
        put_bytes(&mut out, kernel.kernel.as_bytes());
        put_u32(&mut out, kernel.registers);
        put_u32(&mut out, kernel.spill_store_bytes);
        put_u32(&mut out, kernel.spill_load_bytes);
        put_u32(&mut out, kernel.stack_bytes);
        put_u32(&mut out, kernel.shared_bytes);
        put_u32(&mut out, kernel.barriers);
    }
    let digest = sha256(&out);
    out.extend_from_slice(&digest);
    out
}

/// Reads an entry; the error says what is wrong with it.
pub(crate) fn decode(bytes: &[u8]) -> Result<Compiled, String> {
    let body = checked_body(bytes)?;
    let mut reader = Reader { rest: body };
    reader.take(MAGIC.len())?;
    let format = reader.u32()?;
    if format != FORMAT {
        return Err(format!("it has format {format}, but this version reads {FORMAT}"));
    }
    let ptx = reader.text()?;
    let cubin = reader.bytes()?.to_vec();
    let log = reader.list(log_line)?;
    let resources = reader.list(kernel)?;
    if !reader.rest.is_empty() {
        return Err("it has extra bytes".to_string());
    }
    Ok(Compiled { ptx, cubin, log, resources })
}

/// Everything except the checksum; an error if the checksum is wrong.
fn checked_body(bytes: &[u8]) -> Result<&[u8], String> {
    if !bytes.starts_with(MAGIC) {
        return Err("it is not a cache entry, or it is cut short".to_string());
    }
    let (body, stored) = bytes.split_last_chunk::<DIGEST_BYTES>().ok_or_else(|| "it is cut short".to_string())?;
    if sha256(body) == *stored {
        Ok(body)
    } else {
        Err("its checksum is wrong: it is damaged or cut short".to_string())
    }
}

fn sha256(bytes: &[u8]) -> [u8; DIGEST_BYTES] {
    Sha256::digest(bytes).into()
}

fn log_line(reader: &mut Reader<'_>) -> Result<LogLine, String> {
    let severity = severity_of(reader.u32()?)?;
    let has_line = reader.u32()? != 0;
    let line = reader.u32()?;
    Ok(LogLine { severity, line: has_line.then_some(line), text: reader.text()? })
}

fn kernel(reader: &mut Reader<'_>) -> Result<Resources, String> {
    Ok(Resources {
        kernel: reader.text()?,
        registers: reader.u32()?,
        spill_store_bytes: reader.u32()?,
        spill_load_bytes: reader.u32()?,
        stack_bytes: reader.u32()?,
        shared_bytes: reader.u32()?,
        barriers: reader.u32()?,
    })
}

fn severity_code(severity: Severity) -> u32 {
    match severity {
        Severity::Error => 0,
        Severity::Warning => 1,
        Severity::Info => 2,
        Severity::Remark => 3,
    }
}

fn severity_of(code: u32) -> Result<Severity, String> {
    match code {
        0 => Ok(Severity::Error),
        1 => Ok(Severity::Warning),
        2 => Ok(Severity::Info),
        3 => Ok(Severity::Remark),
        _ => Err(format!("it contains a message of unknown severity {code}")),
    }
}

fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// Eight bytes, so that a `usize` always fits.
fn put_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&(length as u64).to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Reads the fields of an entry. Lengths are checked against the remaining bytes before anything is allocated.
struct Reader<'a> {
    /// The bytes that are not read yet.
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(cut_short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or_else(cut_short)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn length(&mut self) -> Result<usize, String> {
        usize::try_from(u64::from_le_bytes(self.array()?)).map_err(|_| cut_short())
    }

    fn bytes(&mut self) -> Result<&'a [u8], String> {
        let length = self.length()?;
        self.take(length)
    }

    fn text(&mut self) -> Result<String, String> {
        let bytes = self.bytes()?.to_vec();
        String::from_utf8(bytes).map_err(|_| "it contains text that is not UTF-8".to_string())
    }

    fn list<T>(&mut self, item: fn(&mut Reader<'_>) -> Result<T, String>) -> Result<Vec<T>, String> {
        let length = self.length()?;
        let mut items = Vec::new();
        for _ in 0..length {
            items.push(item(self)?);
        }
        Ok(items)
    }
}

fn cut_short() -> String {
    "it is cut short".to_string()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A result with every kind of field in use.
    pub(crate) fn sample() -> Compiled {
        Compiled {
            ptx: ".version 9.5\n// \u{e9}\n".to_string(),
            cubin: (0..=255).collect(),
            log: vec![
                LogLine { severity: Severity::Warning, line: Some(7), text: "#177-D: unused".to_string() },
                LogLine { severity: Severity::Info, line: None, text: String::new() },
            ],
            resources: vec![Resources {
                kernel: "k".to_string(),
                registers: 32,
                spill_store_bytes: 1,
                spill_load_bytes: 2,
                stack_bytes: 3,
                shared_bytes: 1024,
                barriers: 5,
            }],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(decode(&encode(&sample())), Ok(sample()));
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_noticed() {
        let entry = encode(&sample());
        for length in 0..entry.len() {
            assert!(decode(&entry[..length]).is_err(), "cut at {length}");
        }
        for at in 0..entry.len() {
            let mut damaged = entry.clone();
            damaged[at] ^= 0x10;
            assert!(decode(&damaged).is_err(), "byte {at} changed");
        }
    }

    /// The checksum is right here, so the reader itself encounters the bad length.
    #[test]
    fn a_length_beyond_the_end_is_an_error_and_allocates_nothing() {
        let mut body = MAGIC.to_vec();
        put_u32(&mut body, FORMAT);
        body.extend_from_slice(&u64::MAX.to_le_bytes());
        let digest = sha256(&body);
        body.extend_from_slice(&digest);
        assert_eq!(decode(&body), Err("it is cut short".to_string()));
    }
}

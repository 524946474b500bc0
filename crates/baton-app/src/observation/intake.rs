//! Reads hook reports for `hook.report`.
//!
//! A small report becomes parameters. The tool input and output of a large report are redacted and compressed while
//! they are read and passed as an attachment, so they are never in memory as a whole. Owns the limit between the two.

use std::io::{self, BufWriter, Cursor, Read, Take, Write};
use std::sync::Arc;

use baton_core::{ErrorCode, Fault};
use baton_observation::{LenientError, ReadError, files_of, make_private, read_large, read_lenient};
use baton_store::{BlobFolder, MAX_RAW_BYTES, RawPacker, RawReader, StoreError};
use serde_json::{Map, Value, json};

use super::raw::blob_name;
use crate::call::PackedOutput;
use crate::clock::{Entropy, SystemEntropy};

/// Room for the fields of a report other than the tool output.
const ENVELOPE_BYTES: usize = 1024 * 1024;
/// Maximum size of a report in bytes.
pub const MAX_REPORT_BYTES: usize = MAX_RAW_BYTES + ENVELOPE_BYTES;
/// Maximum size in bytes of a report that is read into memory. Larger reports are streamed.
pub const MAX_WHOLE_BYTES: usize = 2 * 1024 * 1024;
/// Initial capacity of the read buffer.
const FIRST_BYTES: usize = 64 * 1024;
/// Buffer size of the compressor.
const SINK_BYTES: usize = 64 * 1024;

/// A report that was read.
#[derive(Debug, Clone)]
pub struct Report {
    /// All fields of a small report; an excerpt of the fields other than the tool output of a large one.
    pub fields: Map<String, Value>,
    /// Tool input and output of a large report.
    pub output: Option<Arc<PackedOutput>>,
}

/// Reads reports.
#[derive(Debug, Clone, Default)]
pub struct Intake {
    blobs: Option<BlobFolder>,
    blob: Option<String>,
    /// True if output that is over the limit or cannot be written is replaced with a text. Otherwise, the report is
    /// rejected.
    replaces_unkept_output: bool,
}

impl Intake {
    /// Creates an intake. Output that is large after compression is written to `blobs`; without a blob folder it stays
    /// in memory.
    pub const fn new(blobs: Option<BlobFolder>) -> Self {
        Self { blobs, blob: None, replaces_unkept_output: false }
    }

    /// Accepts reports whose output is over the limit or cannot be written. The output is replaced with a
    /// text that states the size of the report and the reason. The source is read to its end, regardless of
    /// its length.
    #[must_use]
    pub const fn replacing_unkept_output(mut self) -> Self {
        self.replaces_unkept_output = true;
        self
    }

    /// Names the blob of a report. Reading a report with the same name again replaces the blob.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.blob = Some(blob_name(name));
        self
    }

    /// Reads a report. The source is read to its end even if the report is rejected. `complete` can add fields to the
    /// report.
    pub fn read(
        &self,
        source: &mut dyn Read,
        complete: &mut dyn FnMut(&mut Map<String, Value>),
    ) -> Result<Report, Fault> {
        let limit = if self.replaces_unkept_output { u64::MAX } else { MAX_REPORT_BYTES as u64 };
        // A source from which one byte more can be read is too large.
        let mut source = source.take(limit.saturating_add(1));
        let read = self.read_limited(&mut source, complete);
        if read.is_err() {
            // Drain the source: the writer sends the whole report, whether or not it is accepted.
            let _ = io::copy(source.get_mut(), &mut io::sink());
        }
        read
    }

    fn read_limited(
        &self,
        source: &mut Take<&mut dyn Read>,
        complete: &mut dyn FnMut(&mut Map<String, Value>),
    ) -> Result<Report, Fault> {
        let limit = source.limit();
        let mut first = Vec::with_capacity(FIRST_BYTES);
        let unreadable = |error| fault(ReadError::Source(error));
        source.take(MAX_WHOLE_BYTES as u64 + 1).read_to_end(&mut first).map_err(unreadable)?;
        if first.len() <= MAX_WHOLE_BYTES {
            let mut fields = read_lenient(&first).map_err(|error| fault(error.into()))?;
            complete(&mut fields);
            return Ok(Report { fields, output: None });
        }
        let name = match &self.blob {
            Some(name) => name.clone(),
            None => blob_name(&format!("{:032x}", SystemEntropy.bits()?)),
        };
        let packer = RawPacker::new(self.blobs.as_ref(), &name)
            .map(|packer| BufWriter::with_capacity(SINK_BYTES, packer));
        let large =
            read_large(Cursor::new(first).chain(&mut *source), OutputSink { packer, unpacked_bytes: 0 });
        if source.limit() == 0 {
            let message = format!("the report is larger than {MAX_REPORT_BYTES} bytes; nothing was stored");
            return Err(Fault::new(ErrorCode::PayloadTooLarge, message)
                .details(json!({ "allowed_bytes": MAX_REPORT_BYTES })));
        }
        let mut large = large.map_err(fault)?;
        complete(&mut large.fields);
        let (fields, raw_bytes) = (std::mem::take(&mut large.fields), large.output_bytes);
        let folder = ["root", "cwd"].into_iter().find_map(|name| fields.get(name)?.as_str());
        let files = fields.get("tool_input").map(|input| files_of(input, folder)).unwrap_or_default();
        let packed = large.seal(folder).and_then(|sink| {
            let raw = sink.packer?.into_inner()?.finish()?;
            Ok(PackedOutput { raw, raw_bytes, unpacked_bytes: sink.unpacked_bytes, files })
        });
        match packed {
            Ok(packed) => Ok(Report { fields, output: Some(Arc::new(packed)) }),
            Err(error) if self.replaces_unkept_output => {
                Ok(without_output(fields, limit - source.limit(), &error))
            }
            Err(error) => Err(fault(ReadError::Sink(error))),
        }
    }

    /// Returns a redacted report as one JSON document.
    pub fn document(&self, report: &Report) -> Result<Box<dyn Read + Send>, Fault> {
        let mut fields = report.fields.clone();
        let Some(output) = &report.output else { return Ok(Box::new(Cursor::new(redacted(fields)))) };
        // The output contains all of it.
        fields.remove("tool_input");
        let raw = RawReader::open(output.raw.clone(), self.blobs.as_ref())?;
        if fields.is_empty() {
            return Ok(Box::new(raw));
        }
        // The output is an object too. The fields are added before its closing brace, so that they take precedence over
        // members of the output with the same name.
        let fields = redacted(fields).replacen('{', ",", 1);
        Ok(Box::new(raw.take(output.unpacked_bytes.saturating_sub(1)).chain(Cursor::new(fields))))
    }
}

fn redacted(fields: Map<String, Value>) -> String {
    let mut fields = Value::Object(fields);
    make_private(&mut fields);
    fields.to_string()
}

/// Writer that compresses output. After the first error, output is discarded, so that the rest of the report is still
/// read.
struct OutputSink {
    packer: io::Result<BufWriter<RawPacker>>,
    unpacked_bytes: u64,
}

impl Write for OutputSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unpacked_bytes += bytes.len() as u64;
        let written = match &mut self.packer {
            Ok(_) if self.unpacked_bytes > MAX_REPORT_BYTES as u64 => Err(io::ErrorKind::FileTooLarge.into()),
            Ok(packer) => packer.write_all(bytes),
            Err(_) => Ok(()),
        };
        if let Err(error) = written {
            self.packer = Err(error);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a report with a text in place of the tool output.
fn without_output(mut fields: Map<String, Value>, received: u64, error: &io::Error) -> Report {
    let why = match error.kind() {
        io::ErrorKind::FileTooLarge => format!("is over the limit of {MAX_REPORT_BYTES} bytes"),
        _ => format!("could not be written: {error}"),
    };
    if fields.contains_key("tool_name") {
        let text = format!("[output not kept: the report of {received} bytes {why}]");
        fields.insert("tool_response".into(), text.into());
    }
    Report { fields, output: None }
}

fn fault(error: ReadError) -> Fault {
    match error {
        ReadError::Document(error) => {
            let code = match error {
                LenientError::Empty | LenientError::NotJson(_) => ErrorCode::InvalidJson,
                LenientError::NotAnObject => ErrorCode::InvalidRequest,
            };
            Fault::new(code, error.to_string()).hint("send a JSON object")
        }
        ReadError::Source(error) => {
            Fault::new(ErrorCode::InvalidRequest, "cannot read the whole report").caused_by(error)
        }
        ReadError::Sink(error) if error.kind() == io::ErrorKind::StorageFull => Fault::from(StoreError::Full),
        ReadError::Sink(error) => {
            Fault::new(ErrorCode::StoreUnavailable, "cannot store the report").caused_by(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_document_reads_back_unchanged() {
        let home = tempfile::tempdir().unwrap();
        for intake in [Intake::default(), Intake::new(Some(BlobFolder::at(home.path())))] {
            for bytes in [10, 1_000, MAX_WHOLE_BYTES, 2 * MAX_WHOLE_BYTES] {
                let text: String = ('a'..='z').chain(['é', '"', '\n']).cycle().take(bytes).collect();
                let whole = json!({
                    "tool_response": text, "tool_name": "T", "tool_input": { "file_path": "/r/sub/x" },
                    "cwd": "/r/sub", "root": "/r",
                });
                let once = intake.read(&mut whole.to_string().as_bytes(), &mut |_| {}).unwrap();
                assert_eq!(once.output.is_some(), bytes >= MAX_WHOLE_BYTES);
                let again = intake.read(&mut intake.document(&once).unwrap(), &mut |_| {}).unwrap();
                assert_eq!(once.fields, again.fields);
                let seen = |report: &Report| {
                    let output = report.output.as_ref()?;
                    let hash = output.hash(intake.blobs.as_ref()).unwrap();
                    Some((hash, output.raw_bytes, output.files.clone()))
                };
                assert_eq!(seen(&once), seen(&again));
            }
        }
    }
}

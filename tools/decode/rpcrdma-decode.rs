// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Says what the module makes of RPC-over-RDMA messages: one a line of files, or of the standard
//! input, in hexadecimal digits, with or without blanks. Each is all that one Receive has brought,
//! or its front as far as the chunk lists go. What is of version 2 is decoded as the messages of
//! one end in the order in which it sent them, since a message may continue the one before it.

mod version_2;

use std::{
    env,
    ffi::OsString,
    fmt,
    fs::File,
    io::{
        self,
        BufRead,
        BufReader,
        IsTerminal, //
    },
    path::Path,
    process::ExitCode, //
};

use version_2::Peer;
use xdr::{
    v2,
    Call,
    CallPayload,
    ErrorMessage,
    FixedHeader,
    Inline,
    Limits,
    Message,
    RdmaError,
    ReadList,
    Rejected,
    Reply,
    ReplyPayload,
    Role,
    Segment,
    WriteChunk,
    WriteList, //
};

/// No receiver of anybody's, so nothing is refused for its size.
const LIMITS: Limits = Limits {
    read_segments: usize::MAX,
    read_chunks: usize::MAX,
    write_chunks: usize::MAX,
    write_segments: usize::MAX,
    chunk_segments: usize::MAX,
    read_chunk_bytes: u32::MAX,
    read_list_bytes: u32::MAX,
    write_chunk_bytes: u32::MAX,
    reply_chunk_bytes: u32::MAX,
};

const USAGE: &str = "\
usage: rpcrdma-decode [FILE...]
       rpcrdma-decode --help | --version

Decodes messages of RPC-over-RDMA, one a line in hexadecimal digits, of files or of the standard
input; see rpcrdma-decode(1).";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    match arguments.first().map(|first| first.to_str().unwrap_or("")) {
        Some("--help") => println!("{USAGE}"),
        Some("--version") => println!("{}", option_env!("RPCRDMA_VERSION").unwrap_or("unknown")),
        Some(option) if option.starts_with('-') => return misused(),
        None if io::stdin().is_terminal() => return misused(),
        _ => return decode(&arguments),
    }
    ExitCode::SUCCESS
}

fn misused() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn decode(files: &[OsString]) -> ExitCode {
    match decode_all(files) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // Who reads it has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rpcrdma-decode: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all lines of all files are messages.
fn decode_all(files: &[OsString]) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    if files.is_empty() {
        return decode_lines(io::stdin().lock(), &mut out);
    }
    let mut good = true;
    for file in files {
        let named = |error| io::Error::other(format!("{}: {error}", Path::new(file).display()));
        good &= decode_lines(BufReader::new(File::open(file).map_err(named)?), &mut out)?;
    }
    Ok(good)
}

/// Whether all lines are messages.
fn decode_lines(from: impl BufRead, out: &mut impl io::Write) -> io::Result<bool> {
    let mut good = true;
    let mut peer = Peer::new();
    for (line, number) in from.lines().zip(1_u64..) {
        match from_hex(&line?) {
            Ok(bytes) => match FixedHeader::peek(&bytes) {
                Some(header) if header.version == v2::VERSION => {
                    write!(out, "{}", peer.receive(&bytes))?;
                }
                _ => write!(out, "{}", Decoded(&bytes))?,
            },
            Err(error) => {
                good = false;
                eprintln!("rpcrdma-decode: line {number}: {error}");
            }
        }
    }
    Ok(good)
}

fn from_hex(line: &str) -> Result<Vec<u8>, String> {
    let mut digits = line.chars().filter(|c| !c.is_whitespace());
    let mut bytes = Vec::new();
    while let Some(high) = digits.next() {
        let low = digits.next().ok_or("an odd number of digits")?;
        bytes.push((value_of(high)? << 4) | value_of(low)?);
    }
    Ok(bytes)
}

fn value_of(digit: char) -> Result<u8, String> {
    let value = digit
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok());
    value.ok_or_else(|| format!("{digit:?} is no hexadecimal digit"))
}

/// A message, to be written in words.
struct Decoded<'a>(&'a [u8]);

impl fmt::Display for Decoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(xid) = xdr::peek_done(self.0) {
            return writeln!(f, "RDMA_DONE: XID {xid:#010x}");
        }
        match Message::decode(self.0, &LIMITS) {
            Ok(Message::Call(call)) => write_call(f, &call),
            Ok(Message::Reply(reply)) => write_reply(f, &reply),
            Ok(Message::Error(error)) => write_error(f, &error),
            Err(rejected) => write_rejected(f, &rejected),
        }
    }
}

fn write_call(f: &mut fmt::Formatter<'_>, call: &Call<'_>) -> fmt::Result {
    let procedure = match call.payload {
        CallPayload::Inline(_) => "RDMA_MSG",
        CallPayload::PositionZero(_) => "RDMA_NOMSG",
    };
    let (xid, credits) = (call.xid, call.credits);
    writeln!(
        f,
        "{procedure}, a Call: XID {xid:#010x}, {credits} credits asked for"
    )?;
    write_reads(f, &call.reads)?;
    write_writes(f, &call.writes, call.reply_chunk)?;
    match call.payload {
        CallPayload::Inline(inline) => write_inline(f, &inline),
        CallPayload::PositionZero(_) if call.as_provided_reply().is_ok() => {
            writeln!(f, "  between peers that pull Replies it may be a Reply")
        }
        CallPayload::PositionZero(_) => Ok(()),
    }
}

fn write_reply(f: &mut fmt::Formatter<'_>, reply: &Reply<'_>) -> fmt::Result {
    let procedure = match reply.payload {
        ReplyPayload::Inline(_) => "RDMA_MSG",
        ReplyPayload::ReplyChunk | ReplyPayload::Provided(_) => "RDMA_NOMSG",
    };
    let (xid, credits) = (reply.xid, reply.credits);
    writeln!(
        f,
        "{procedure}, a Reply: XID {xid:#010x}, {credits} credits granted"
    )?;
    write_writes(f, &reply.writes, reply.reply_chunk)?;
    match reply.payload {
        ReplyPayload::Inline(inline) => write_inline(f, &inline),
        ReplyPayload::ReplyChunk | ReplyPayload::Provided(_) => Ok(()),
    }
}

fn write_error(f: &mut fmt::Formatter<'_>, error: &ErrorMessage) -> fmt::Result {
    let (xid, credits) = (error.xid, error.credits);
    write!(
        f,
        "RDMA_ERROR: XID {xid:#010x}, {credits} credits granted, "
    )?;
    writeln!(f, "{}", Named(error.error))
}

/// An error, to be written as the RFC or the draft calls it.
struct Named(RdmaError);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            RdmaError::Version { low, high } => write!(f, "ERR_VERS, versions {low} to {high}"),
            RdmaError::Chunk => write!(f, "ERR_CHUNK"),
            RdmaError::BadXdr => write!(f, "ERR_BAD_XDR"),
            RdmaError::BadPropertyValue => write!(f, "ERR_BAD_PROPVAL"),
            RdmaError::InvalidHeaderType => write!(f, "ERR_INVAL_HTYPE"),
            RdmaError::InvalidContinuation => write!(f, "ERR_INVAL_CONT"),
            RdmaError::ReadChunks { max } => write!(f, "ERR_READ_CHUNKS, at most {max}"),
            RdmaError::WriteChunks { max } => write!(f, "ERR_WRITE_CHUNKS, at most {max}"),
            RdmaError::Segments { max } => write!(f, "ERR_SEGMENTS, at most {max}"),
            RdmaError::WriteResource { index, needed } => {
                write!(f, "ERR_WRITE_RESOURCE, chunk {index} needs {needed} octets")
            }
            RdmaError::ReplyResource { needed } => {
                write!(f, "ERR_REPLY_RESOURCE, {needed} octets needed")
            }
            RdmaError::VersionMismatch => write!(f, "ERR_VERS_MISMATCH"),
            RdmaError::System => write!(f, "ERR_SYSTEM"),
        }
    }
}

fn write_rejected(f: &mut fmt::Formatter<'_>, rejected: &Rejected) -> fmt::Result {
    write_reason(f, rejected, "procedure")?;
    match rejected.answer(Role::Responder) {
        Some(RdmaError::Version { .. }) => writeln!(f, "; a responder answers ERR_VERS"),
        Some(error) => writeln!(f, "; a responder answers {}", Named(error)),
        None => writeln!(f, "; nobody answers"),
    }
}

/// Writes why it was refused, and its fixed fields, the last of which has another name in each
/// version.
fn write_reason(f: &mut fmt::Formatter<'_>, rejected: &Rejected, last: &str) -> fmt::Result {
    write!(f, "refused: {}", rejected.reason.as_str())?;
    if let Some(header) = rejected.header {
        let (xid, version) = (header.xid, header.version);
        write!(
            f,
            "; XID {xid:#010x}, version {version}, {last} {}",
            header.procedure
        )?;
    }
    Ok(())
}

fn write_reads(f: &mut fmt::Formatter<'_>, reads: &ReadList<'_>) -> fmt::Result {
    for chunk in reads.chunks() {
        let (position, length) = (chunk.position(), chunk.length());
        writeln!(f, "  Read chunk at Position {position}: {length} octets")?;
        write_segments(f, chunk.segments())?;
    }
    Ok(())
}

fn write_writes(
    f: &mut fmt::Formatter<'_>,
    writes: &WriteList<'_>,
    reply_chunk: Option<WriteChunk<'_>>,
) -> fmt::Result {
    let writes = writes.chunks().map(|chunk| ("Write", chunk));
    for (kind, chunk) in writes.chain(reply_chunk.map(|chunk| ("Reply", chunk))) {
        writeln!(f, "  {kind} chunk: {} octets", chunk.length())?;
        write_segments(f, chunk.segments())?;
    }
    Ok(())
}

fn write_segments(
    f: &mut fmt::Formatter<'_>,
    segments: impl Iterator<Item = Segment>,
) -> fmt::Result {
    for Segment {
        handle,
        length,
        offset,
    } in segments
    {
        writeln!(
            f,
            "    handle {handle:#010x}: {length} octets at {offset:#018x}"
        )?;
    }
    Ok(())
}

fn write_inline(f: &mut fmt::Formatter<'_>, inline: &Inline<'_>) -> fmt::Result {
    let (length, offset) = (inline.bytes.len(), inline.offset);
    writeln!(
        f,
        "  Payload stream: {length} octets behind a header of {offset}"
    )
}

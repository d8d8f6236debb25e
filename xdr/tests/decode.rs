// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What people read of the protocol's messages.

#![allow(missing_docs, clippy::indexing_slicing, clippy::unwrap_used)]

use std::{
    io::Write,
    process::{
        Command,
        Output,
        Stdio, //
    },
};

use xdr::vectors;

/// What the program makes of these lines.
fn decode(lines: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_rpcrdma-decode"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = program.stdin.take().unwrap();
    stdin.write_all(lines.as_bytes()).unwrap();
    drop(stdin);
    program.wait_with_output().unwrap()
}

fn line(message: &[u8]) -> String {
    let digits: Vec<String> = message.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(" ") + "\n"
}

fn text_of(message: &[u8]) -> String {
    let output = decode(&line(message));
    assert!(output.status.success() && output.stderr.is_empty());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_valid_message_is_named() {
    for (name, message) in vectors::VALID {
        let text = text_of(message);
        assert!(text.starts_with("RDMA"), "{name}: {text}");
    }
}

#[test]
fn a_call_lists_its_chunks() {
    assert_eq!(
        text_of(vectors::READ_CHUNK),
        "RDMA_MSG, a Call: XID 0xa1b2c3d4, 128 credits asked for\n  \
         Read chunk at Position 88: 9193 octets\n    \
         handle 0x11111111: 4096 octets at 0x00007f0012345000\n    \
         handle 0x22222222: 4096 octets at 0x00007f0022345000\n    \
         handle 0x33333333: 1001 octets at 0xffffffff00000000\n  \
         Payload stream: 88 octets behind a header of 100\n"
    );
    assert!(text_of(vectors::LONG_CALL).starts_with("RDMA_NOMSG, a Call: "));
}

#[test]
fn a_reply_lists_what_was_written() {
    let text = text_of(vectors::ONE_WRITE_CHUNK_RETURNED);
    assert!(text.starts_with(
        "RDMA_MSG, a Reply: XID 0xa1b2c3d4, 64 credits granted\n  Write chunk: 5000 octets\n"
    ));
    let text = text_of(vectors::LONG_REPLY);
    assert!(text.starts_with("RDMA_NOMSG, a Reply: "));
    assert!(text.contains("  Reply chunk: "));
}

#[test]
fn what_is_pulled_is_named() {
    let text = text_of(vectors::PROVIDED_REPLY);
    assert!(text.ends_with("  between peers that pull Replies it may be a Reply\n"));
    assert_eq!(text_of(vectors::DONE), "RDMA_DONE: XID 0xa1b2c3d4\n");
}

#[test]
fn what_is_refused_says_why() {
    assert_eq!(
        text_of(vectors::MSGP),
        "refused: reserved procedure RDMA_MSGP; XID 0xa1b2c3d4, version 1, procedure 2; \
         a responder answers ERR_CHUNK\n"
    );
    assert_eq!(
        text_of(&[0; 3]),
        "refused: message shorter than a header; nobody answers\n"
    );
}

#[test]
fn a_call_of_version_2_lists_its_chunks() {
    assert_eq!(
        text_of(vectors::v2::EXTERNAL_CALL),
        "RDMA2_CALL_EXTERNAL: XID 0xa1b2c3d4, credits up to 44\n  \
         handle 0x66666666 may be made invalid\n  \
         Call chunk: 4100 octets\n    \
         handle 0x66666666: 4096 octets at 0x0000000000006000\n    \
         handle 0x77777777: 4 octets at 0x0000000000008000\n  \
         Read chunk at Position 200: 512 octets\n    \
         handle 0x88888888: 512 octets at 0x0000000000009000\n  \
         Reply chunk: 65536 octets\n    \
         handle 0x99999999: 65536 octets at 0x000000000000a000\n"
    );
    let text = text_of(vectors::v2::EXTERNAL_REPLY);
    assert!(text.starts_with("RDMA2_REPLY_EXTERNAL: ") && text.contains("5000 octets"));
}

#[test]
fn properties_errors_and_credits_are_named() {
    assert_eq!(
        text_of(vectors::v2::MIDDLE_PROPERTIES),
        "RDMA2_CONNPROP_MIDDLE: XID 0xa1b2c3d4, credits up to 33\n  \
         Receive Buffer Size (2): 0 octets\n  \
         unknown property (30583): 5 octets\n  \
         Host Authentication Message (6): 8 octets\n"
    );
    let text = text_of(vectors::v2::FINAL);
    assert!(text.contains("  Maximum Segment Count (4): 32\n"));
    assert_eq!(
        text_of(vectors::v2::GRANT),
        "RDMA2_GRANT: credits up to 2147483649\n"
    );
    assert_eq!(
        text_of(vectors::v2::ERRORS[8]),
        "RDMA2_ERROR: XID 0xa1b2c3d4, credits up to 7\n  \
         ERR_WRITE_RESOURCE, chunk 1 needs 65536 octets\n"
    );
}

#[test]
fn messages_of_version_2_continue_each_other() {
    let lines = [
        vectors::v2::FIRST_FRAGMENT,
        vectors::v2::GRANT,
        vectors::v2::REPLY,
        vectors::v2::SECOND_FRAGMENT,
        vectors::v2::LAST_FRAGMENT,
    ];
    let output = decode(&lines.map(line).concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(text.contains("  32 octets are to follow\n"));
    assert!(text.contains(
        "refused: message out of sequence; XID 0xa1b2c3d4, version 2, header type 13; \
         a responder answers ERR_INVAL_CONT\n"
    ));
    assert!(text.ends_with("  it ends a message of which 28 octets came before\n"));
}

#[test]
fn other_lines_are_told_by_number() {
    let output = decode(&(line(vectors::ERR_CHUNK) + "abc\n" + "zz\n"));
    assert!(!output.status.success());
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "RDMA_ERROR: XID 0xa1b2c3d4, 32 credits granted, ERR_CHUNK\n"
    );
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "rpcrdma-decode: line 2: an odd number of digits\n\
         rpcrdma-decode: line 3: 'z' is no hexadecimal digit\n"
    );
}

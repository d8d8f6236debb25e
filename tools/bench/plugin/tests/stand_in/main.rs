// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The plugin between a QEMU that is not one, and a host that asks: blocks are translated and
//! executed as this test wants.
//!
//! A plugin is installed once a process, so this is one test.

mod qemu;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use crate::qemu::{block, completion, execute, install, make_processor, request, set_arguments};

fn mark(number: u8) -> Vec<u8> {
    [&[0x0f, 0x1f, 0x84, 0x00, number], &b"RPC"[..]].concat()
}

fn ask(path: &str, command: &str) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    writeln!(stream, "{command}").unwrap();
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).unwrap();
    answer.trim().to_string()
}

const NOP: [u8; 1] = [0x90];
/// Of code in the kernel that runs inside and outside of the window.
const PLAIN: u64 = 0xffff_ffff_8100_0000;
/// Of the first window; blocks in the order of their translation. Of the block with a mark, all of
/// the last is counted, and nothing of the first.
const FIRST: [&str; 19] = [
    "window 1",
    "user 23",
    "lost 0",
    "used 8",
    "unreadable 1",
    "calls device_complete a0 5",
    "calls device_post_recv a0 1",
    "calls device_post_send a0 2",
    "calls device_post_send b0 2",
    "posted device_post_recv - 1 2",
    "posted device_post_send 2 1 3",
    "posted device_post_send 32 0 3",
    "block ffffffff81000000 3 6",
    "block ffffffff81000000 1 2",
    "block ffffffff81001000 1 1",
    "block ffffffffc0001000 2 4",
    "block ffffffffc0002000 1 1",
    "block ffffffffc0003000 1 5",
    "end 1",
];
/// Of the second one, in which nothing but user code was executed, and which was ended twice.
const SECOND: [&str; 7] = [
    "window 2",
    "user 2",
    "lost 0",
    "used 8",
    "unreadable 0",
    "end 2",
    "error a window ends that did not begin",
];

#[test]
fn counts_what_is_executed_between_the_marks() {
    let directory = std::env::temp_dir().join(format!("counting-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let path = |name: &str| directory.join(name).to_str().unwrap().to_string();
    let (out, control) = (path("counts"), path("control"));
    let counted = |skipped: usize| -> Vec<String> {
        let text = fs::read_to_string(&out).unwrap();
        text.lines().skip(skipped).map(String::from).collect()
    };

    install_once(&out, &control);
    assert_eq!(ask(&control, "begin"), "ok");
    make_processor();
    assert_eq!(counted(0), ["error a mark before there is a processor"]);

    watch(&control);
    execute_between_marks(&control);
    assert_eq!(counted(1), FIRST);

    assert_eq!(ask(&control, "begin"), "ok");
    execute(&block(0x40_0000, &[&NOP, &NOP]), 1);
    assert_eq!(ask(&control, "end"), "ok");
    assert_eq!(ask(&control, "end"), "ok");
    assert_eq!(counted(1 + FIRST.len()), SECOND);
    fs::remove_dir_all(&directory).unwrap();
}

fn install_once(out: &str, control: &str) {
    let words = [format!("out={out}"), format!("control={control}")];
    assert_ne!(
        install(&words[..1], 1),
        0,
        "installs without a control socket"
    );
    assert_ne!(install(&words, 2), 0, "installs for two processors");
    assert_eq!(install(&words, 1), 0);
}

fn watch(control: &str) {
    for watch in [
        "send device_post_send ffffffffc0001000",
        "receive device_post_recv ffffffffc0002000",
        "completion device_complete ffffffffc0003000",
    ] {
        assert_eq!(ask(control, &format!("watch {watch}")), "ok");
    }
    assert_eq!(ask(control, "watch other x 0"), "error");
}

/// Executes some blocks in front of the window, in it, and behind it.
fn execute_between_marks(control: &str) {
    let plain = block(PLAIN, &[&NOP, &NOP, &NOP]);
    let shorter = block(PLAIN, &[&NOP]);
    // What has been translated is not looked at again.
    assert_eq!(ask(control, "watch queue late ffffffff81000000"), "error");
    let user = block(0x40_0000, &[&NOP, &NOP]);
    let begin = block(0x40_1000, &[&NOP, &mark(1)]);
    let end = block(0x40_2000, &[&mark(2), &NOP]);
    // A mark counts in user mode alone; and a compiler's own padding is none.
    let kernel_mark = block(0xffff_ffff_8100_1000, &[&mark(1)]);
    let padding = block(0x40_3000, &[&[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]]);

    execute(&plain, 7);
    execute(&begin, 1);
    execute(&plain, 5);
    execute(&shorter, 2);
    execute(&user, 10);
    execute(&kernel_mark, 1);
    execute(&padding, 1);
    post_and_complete();
    let again = block(PLAIN, &[&NOP, &NOP, &NOP]);
    execute(&again, 1);
    execute(&end, 1);
    execute(&plain, 100);
}

/// Posts a RegMR with a Send that is signaled, a Receive, and what cannot be read; and completes a
/// Send.
fn post_and_complete() {
    let post_send = block(0xffff_ffff_c000_1000, &[&NOP, &NOP]);
    let post_receive = block(0xffff_ffff_c000_2000, &[&NOP]);
    let complete = block(0xffff_ffff_c000_3000, &[&NOP]);
    request(0x1000, 0x2000, 0x20, 0);
    request(0x2000, 0, 2, 2);
    set_arguments([0xa0, 0x1000]);
    execute(&post_send, 2);
    execute(&post_receive, 1);
    set_arguments([0xb0, 0x1000]);
    execute(&post_send, 1);
    set_arguments([0xb0, 0xdead]);
    execute(&post_send, 1);
    completion(0x3000, 0xa0);
    set_arguments([0xc0, 0x3000]);
    execute(&complete, 5);
}

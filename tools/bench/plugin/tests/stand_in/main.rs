// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The plugin between a QEMU that is not one, and a host that asks: blocks are translated and executed as this test wants.
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

#[test]
fn counts_what_is_executed_between_the_marks() {
    let directory = std::env::temp_dir().join(format!("counting-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let path = |name: &str| directory.join(name).to_str().unwrap().to_string();
    let (out, control) = (path("counts"), path("control"));
    let words = [format!("out={out}"), format!("control={control}")];

    assert_ne!(
        install(&words[..1], 1),
        0,
        "installs without a control socket"
    );
    assert_ne!(install(&words, 2), 0, "installs for two processors");
    assert_eq!(install(&words, 1), 0);
    assert_eq!(ask(&control, "begin"), "ok");
    make_processor();
    let early = fs::read_to_string(&out).unwrap();
    assert_eq!(early, "error a mark before there is a processor\n");

    for watch in [
        "send device_post_send ffffffffc0001000",
        "receive device_post_recv ffffffffc0002000",
        "completion device_complete ffffffffc0003000",
    ] {
        assert_eq!(ask(&control, &format!("watch {watch}")), "ok");
    }
    assert_eq!(ask(&control, "watch other x 0"), "error");

    let nop = [0x90u8];
    let plain = block(0xffff_ffff_8100_0000, &[&nop, &nop, &nop]);
    let shorter = block(0xffff_ffff_8100_0000, &[&nop]);
    // What has been translated is not looked at again.
    let late = "watch queue late ffffffff81000000";
    assert_eq!(ask(&control, late), "error");
    let user = block(0x40_0000, &[&nop, &nop]);
    let begin = block(0x40_1000, &[&nop, &mark(1)]);
    let end = block(0x40_2000, &[&mark(2), &nop]);
    let post_send = block(0xffff_ffff_c000_1000, &[&nop, &nop]);
    let post_receive = block(0xffff_ffff_c000_2000, &[&nop]);
    let complete = block(0xffff_ffff_c000_3000, &[&nop]);
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
    // RegMR, then a Send that is signaled.
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
    let again = block(0xffff_ffff_8100_0000, &[&nop, &nop, &nop]);
    execute(&again, 1);
    execute(&end, 1);
    execute(&plain, 100);

    let text = fs::read_to_string(&out).unwrap();
    let lines: Vec<_> = text.lines().skip(1).collect();
    // Of the block with a mark, all of the last is counted, and nothing of the first.
    assert_eq!(
        lines,
        [
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
            "block ffffffffc0001000 2 4",
            "block ffffffffc0002000 1 1",
            "block ffffffffc0003000 1 5",
            "block ffffffff81001000 1 1",
            "end 1",
        ]
    );

    assert_eq!(ask(&control, "begin"), "ok");
    execute(&user, 1);
    assert_eq!(ask(&control, "end"), "ok");
    assert_eq!(ask(&control, "end"), "ok");
    let text = fs::read_to_string(&out).unwrap();
    let last: Vec<_> = text.lines().skip(1 + lines.len()).collect();
    assert_eq!(
        last,
        [
            "window 2",
            "user 2",
            "lost 0",
            "used 8",
            "unreadable 0",
            "end 2",
            "error a window ends that did not begin"
        ]
    );
    fs::remove_dir_all(&directory).unwrap();
}

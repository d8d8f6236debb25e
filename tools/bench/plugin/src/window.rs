// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What was executed between two marks, written as lines of text:
//!
//! ```text
//! window NUMBER               a window's first line; the first window is 1
//! user INSTRUCTIONS           executed in user mode
//! lost INSTRUCTIONS           of blocks that no counter was left for
//! used COUNTERS               that have a meaning
//! unreadable CALLS            of watched functions whose arguments could not be read
//! calls FUNCTION QUEUE_PAIR COUNT
//!                             of a watched function; where the queue pair is, in hexadecimal
//! posted FUNCTION OPCODE SIGNALED COUNT
//!                             work requests; the operation's number or `-`, 1 or 0
//! block ADDRESS LENGTH COUNT  a block of the kernel, its address in hexadecimal, its length in
//! instructions
//! end NUMBER                  a window's last line
//! error TEXT                  what must not be
//! ```

use std::io::Write;

use crate::blocks::{Blocks, LOST, USER};
use crate::posts::Posts;

/// The window that is open, if one is, and where its counts go.
pub(crate) struct Window {
    out: Box<dyn Write + Send>,
    number: u64,
    began: Option<Vec<u64>>,
}

impl Window {
    pub(crate) fn new(out: Box<dyn Write + Send>) -> Self {
        Self {
            out,
            number: 0,
            began: None,
        }
    }

    pub(crate) fn begin(&mut self, counters: Vec<u64>) {
        self.number += 1;
        if self.began.replace(counters).is_some() {
            self.complain("a window begins in another");
        }
    }

    pub(crate) fn end(&mut self, counters: &[u64], blocks: &Blocks, posts: &Posts) {
        match self.began.take() {
            Some(began) => {
                let text = self.text(&began, counters, blocks, posts);
                self.write(&text);
            }
            None => self.complain("a window ends that did not begin"),
        }
    }

    /// Writes down what must not be, for whoever reads the counts.
    pub(crate) fn complain(&mut self, what: &str) {
        self.write(&format!("error {what}\n"));
    }

    fn text(&self, began: &[u64], counters: &[u64], blocks: &Blocks, posts: &Posts) -> String {
        let since = |slot: usize| {
            // A block that is new since the beginning began with nothing.
            counters.get(slot).copied().unwrap_or(0) - began.get(slot).copied().unwrap_or(0)
        };
        let mut lines = vec![
            format!("window {}", self.number),
            format!("user {}", since(USER)),
            format!("lost {}", since(LOST)),
            format!("used {}", counters.len()),
            format!("unreadable {}", posts.unreadable()),
        ];
        lines.extend(posts.calls().map(|((function, queue_pair), count)| {
            format!("calls {function} {queue_pair:x} {count}")
        }));
        lines.extend(posts.requests().map(|(posted, count)| {
            let opcode = posted
                .opcode
                .map_or("-".into(), |opcode| opcode.to_string());
            format!(
                "posted {} {opcode} {} {count}",
                posted.function,
                u8::from(posted.signaled)
            )
        }));
        lines.extend(
            blocks
                .all()
                .filter(|&(slot, _)| since(slot) > 0)
                .map(|(slot, block)| {
                    format!("block {:x} {} {}", block.address, block.length, since(slot))
                }),
        );
        lines.push(format!("end {}\n", self.number));
        lines.join("\n")
    }

    fn write(&mut self, text: &str) {
        if let Err(error) = self.out.write_all(text.as_bytes()) {
            eprintln!("counting plugin: {error}");
        }
    }
}

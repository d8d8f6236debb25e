// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The socket by which the host, or the plugin of another guest, tells this one what to do. Each
//! line is a command, and is answered by a line, `ok` or `error`:
//!
//! ```text
//! watch KIND NAME ADDRESS   look at the calls of the function at this address (hexadecimal), which
//!                           was never called yet; KIND tells its arguments: send, receive,
//!                           completion, queue (see posts.rs)
//! begin                     as if the guest had executed that mark
//! end
//! ```

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

use mark::Mark;

use crate::posts::Kind;
use crate::PLUGIN;

const PATIENCE: Duration = Duration::from_secs(20);

/// Takes commands on a socket of this name from now on, in a thread of its own.
pub(crate) fn listen(path: &str) -> io::Result<()> {
    // One of an earlier run may be left.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    thread::Builder::new()
        .name("counting".into())
        .spawn(move || {
            for stream in listener.incoming().flatten() {
                // A caller that goes away takes nothing with it.
                let _ = serve(&stream);
            }
        })?;
    Ok(())
}

/// Tells another plugin of a mark, and waits until it has seen to it.
pub(crate) fn tell(path: &str, mark: Mark) -> io::Result<()> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    writeln!(stream, "{}", word(mark))?;
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer)?;
    if answer.trim() == "ok" {
        Ok(())
    } else {
        Err(io::Error::other(format!("answered {:?}", answer.trim())))
    }
}

fn word(mark: Mark) -> &'static str {
    match mark {
        Mark::Begin => "begin",
        Mark::End => "end",
    }
}

fn serve(mut stream: &UnixStream) -> io::Result<()> {
    for line in BufReader::new(stream).lines() {
        let answer = if obey(&line?).is_some() {
            "ok"
        } else {
            "error"
        };
        writeln!(stream, "{answer}")?;
    }
    Ok(())
}

fn obey(line: &str) -> Option<()> {
    let plugin = PLUGIN.get()?;
    match line.split_whitespace().collect::<Vec<_>>()[..] {
        ["watch", kind, name, address] => {
            let kind = Kind::from_word(kind)?;
            let address = u64::from_str_radix(address, 16).ok()?;
            plugin.watch(kind, name, address)?;
        }
        ["begin"] => plugin.mark_here(Mark::Begin),
        ["end"] => plugin.mark_here(Mark::End),
        _ => return None,
    }
    Some(())
}

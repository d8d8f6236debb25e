// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Does one thing to a file system again and again, between marks that the counting plugin sees.
//!
//! ```text
//! workload REPETITIONS WARMUP COUNT OPERATION ARGUMENT...
//!   getattr FILE                    ask the server for the attributes of an open file
//!   lookup FILE                     look a name up; wants a mount with lookupcache=none
//!   open FILE                       open for reading, and close
//!   create FILE                     create, close and remove
//!   list DIRECTORY ENTRIES          read a directory of so many, without what is cached of it
//!   read|write BYTES DEPTH FILE...  with O_DIRECT, so many at once, the files in turn
//!   readlink DIRECTORY              read a symbolic link that was not read: entry-1, entry-2...
//!   getacl DIRECTORY                ask how long ACLs are that were not read: entry-1, entry-2...
//!   listxattr FILE                  ask how long the list of extended attributes is
//!   connect SOURCE OPTIONS PLACE    mount, and ask for the attributes of the root; COUNT is 1
//!   disconnect SOURCE OPTIONS PLACE unmount, until the connection is gone; COUNT is 1
//! ```
//!
//! Prints a line for each repetition: `repetition NUMBER NANOSECONDS NAME=VALUE...`, with what went
//! over the interfaces and devices meanwhile. Under an instruction clock the nanoseconds are
//! instructions.

mod data;
mod mounts;
mod names;
mod queue;
mod sys;
mod traffic;

use std::io;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use mark::Mark;

use crate::traffic::Traffic;

/// What the last repetition has left to do is done by then.
const SETTLE: Duration = Duration::from_millis(50);

/// One thing that can be done again and again.
trait Operation {
    /// Does what comes before so many, and is not measured.
    fn prepare(&mut self, _count: u64) -> io::Result<()> {
        Ok(())
    }

    /// Does it so often.
    fn run(&mut self, count: u64) -> io::Result<()>;
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match measure(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("workload {}: {error}", words.join(" "));
            ExitCode::FAILURE
        }
    }
}

fn measure(words: &[&str]) -> io::Result<()> {
    let [repetitions, warmup, count, operation @ ..] = words else {
        return Err(io::Error::other("wants REPETITIONS WARMUP COUNT OPERATION"));
    };
    let (repetitions, warmup, count) = (number(repetitions)?, number(warmup)?, number(count)?);
    let mut operation = choose(operation)?;
    operation.prepare(warmup)?;
    operation.run(warmup)?;
    for repetition in 1..=repetitions {
        operation.prepare(count)?;
        thread::sleep(SETTLE);
        let before = Traffic::now();
        let began = Instant::now();
        Mark::Begin.set();
        let outcome = operation.run(count);
        Mark::End.set();
        let nanoseconds = began.elapsed().as_nanos();
        outcome?;
        println!(
            "repetition {repetition} {nanoseconds}{}",
            Traffic::now().since(&before)
        );
    }
    Ok(())
}

fn choose(words: &[&str]) -> io::Result<Box<dyn Operation>> {
    Ok(match *words {
        ["getattr", file] => Box::new(names::Getattr::new(file)?),
        ["lookup", file] => Box::new(names::Lookup::new(file)?),
        ["open", file] => Box::new(names::Open::new(file)?),
        ["create", file] => Box::new(names::Create::new(file)?),
        ["list", directory, entries] => Box::new(names::List::new(directory, number(entries)?)?),
        [way @ ("read" | "write"), bytes, depth, ref files @ ..] if !files.is_empty() => {
            let writes = way == "write";
            let files = files
                .iter()
                .map(|file| data::File::open(file, number(bytes)?))
                .collect::<io::Result<Vec<_>>>()?;
            match number(depth)? {
                1 => Box::new(data::Single::new(files, writes)?),
                depth => Box::new(queue::Queue::new(files, writes, depth)?),
            }
        }
        ["readlink", directory] => Box::new(names::Each::readlink(directory)?),
        ["getacl", directory] => Box::new(names::Each::getacl(directory)?),
        ["listxattr", file] => Box::new(names::Listxattr::new(file)?),
        ["connect", source, options, place] => {
            Box::new(mounts::Connect(mounts::Mount::new(source, options, place)?))
        }
        ["disconnect", source, options, place] => Box::new(mounts::Disconnect(mounts::Mount::new(
            source, options, place,
        )?)),
        _ => return Err(io::Error::other("no such operation")),
    })
}

fn number(word: &str) -> io::Result<u64> {
    word.parse()
        .map_err(|_| io::Error::other(format!("{word} is not a number")))
}

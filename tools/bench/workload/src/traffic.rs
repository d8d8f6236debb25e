// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What the network interfaces and the RDMA devices have counted.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::{Path, PathBuf};

const INTERFACE_COUNTERS: [&str; 2] = ["tx_packets", "tx_bytes"];

/// Counters by their names: `lo.tx_bytes`, `rxe0.sent_pkts`.
#[derive(Default)]
pub(crate) struct Traffic(BTreeMap<String, u64>);

impl Traffic {
    pub(crate) fn now() -> Self {
        Self::below(Path::new("/sys/class"))
    }

    fn below(class: &Path) -> Self {
        let mut found = Self::default();
        for (name, directory) in entries(&class.join("net")) {
            for counter in INTERFACE_COUNTERS {
                found.note(&name, counter, &directory.join("statistics").join(counter));
            }
        }
        for (name, directory) in entries(&class.join("infiniband")) {
            for (counter, file) in entries(&directory.join("ports/1/hw_counters")) {
                found.note(&name, &counter, &file);
            }
        }
        found
    }

    fn note(&mut self, device: &str, counter: &str, file: &Path) {
        let value = fs::read_to_string(file)
            .ok()
            .and_then(|text| text.trim().parse().ok());
        if let Some(value) = value {
            self.0.insert(format!("{device}.{counter}"), value);
        }
    }

    /// What has changed, for the end of a line.
    pub(crate) fn since(&self, before: &Self) -> Change {
        let changed = self.0.iter().filter_map(|(name, &now)| {
            let then = before.0.get(name).copied().unwrap_or(0);
            (now != then).then(|| (name.clone(), now.wrapping_sub(then)))
        });
        Change(changed.collect())
    }
}

/// Differences of counters.
pub(crate) struct Change(Vec<(String, u64)>);

impl Display for Change {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|(name, value)| write!(formatter, " {name}={value}"))
    }
}

/// What a directory holds, by name; nothing if it is not there.
fn entries(directory: &Path) -> Vec<(String, PathBuf)> {
    let found = fs::read_dir(directory).into_iter().flatten().flatten();
    found
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                entry.path(),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_said_and_nothing_else() {
        let class = std::env::temp_dir().join(format!("workload-class-{}", std::process::id()));
        let (lo, rxe) = (
            class.join("net/lo/statistics"),
            class.join("infiniband/rxe0/ports/1/hw_counters"),
        );
        for directory in [&lo, &rxe] {
            fs::create_dir_all(directory).unwrap();
        }
        fs::write(lo.join("tx_bytes"), "100\n").unwrap();
        fs::write(rxe.join("sent_pkts"), "7\n").unwrap();
        fs::write(rxe.join("lifespan"), "no number\n").unwrap();
        let before = Traffic::below(&class);
        fs::write(rxe.join("sent_pkts"), "12\n").unwrap();
        assert_eq!(
            Traffic::below(&class).since(&before).to_string(),
            " rxe0.sent_pkts=5"
        );
        fs::remove_dir_all(&class).unwrap();
    }
}

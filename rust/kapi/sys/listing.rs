// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The file `rpcrdma/connections` of debugfs, which says how each connection of either end is.

use crate::kapi::bindings;
use core::fmt;
use kernel::{
    list::{
        impl_list_arc_safe,
        impl_list_item,
        List,
        ListArc,
        ListLinks, //
    },
    prelude::*,
    seq_file::SeqFile,
    sync::{
        Arc,
        SetOnce, //
    },
};

/// What is described in the file.
pub(crate) trait Listed: Send + Sync {
    /// Writes a line without an indent, and lines of the form `\tNAME: VALUE` about it. Takes no
    /// lock under which RPCs are sent or answered.
    fn describe(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result;
}

#[pin_data]
struct Lines {
    of: Arc<dyn Listed>,
    #[pin]
    links: ListLinks,
}

impl_list_arc_safe! {
    impl ListArcSafe<0> for Lines { untracked; }
}
impl_list_item! {
    impl ListItem<0> for Lines { using ListLinks { self.links }; }
}

kernel::sync::global_lock! {
    // SAFETY: Initialised by `Listing::new`, which then sets `OPEN`; used only where that is set.
    unsafe(uninit) static LISTED: Mutex<List<Lines>> = List::new();
}

/// Whether there was a list before.
static OPENED: SetOnce<()> = SetOnce::new();
/// Whether the list is initialised.
static OPEN: SetOnce<()> = SetOnce::new();

/// Something is described in the file until this is dropped, which may sleep.
pub(crate) struct Entry(Arc<Lines>);

impl Entry {
    /// Adds its lines, if there is a list, and memory for an entry. May sleep.
    pub(crate) fn new(of: Arc<dyn Listed>) -> Option<Self> {
        OPEN.as_ref()?;
        let links = ListLinks::new();
        let lines = ListArc::pin_init(try_pin_init!(Lines { of, links <- links }), GFP_KERNEL);
        let lines = lines.ok()?;
        let entry = Self(lines.clone_arc());
        LISTED.lock().push_back(lines);
        Some(entry)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // SAFETY: It is in no other list: lines are only made to be put into this one.
        let listed = unsafe { LISTED.lock().remove(&self.0) };
        drop(listed);
    }
}

/// All that is listed.
struct All;

impl fmt::Display for All {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        LISTED
            .lock()
            .iter()
            .try_for_each(|lines| lines.of.describe(to))
    }
}

/// Writes all to the file.
///
/// # Safety
///
/// To be called by seq_file alone, with a file that is being shown.
unsafe extern "C" fn show(seq: *mut kernel::bindings::seq_file) {
    // SAFETY: It is the caller's for the time of the call.
    let seq = unsafe { SeqFile::from_raw(seq) };
    seq.call_printf(format_args!("{All}"));
}

/// The list of what has an entry.
pub(crate) struct Listing(());

impl Listing {
    /// Makes the list, once while the module is loaded.
    ///
    /// `EBUSY` if it was made before.
    pub(crate) fn new() -> Result<Self> {
        if !OPENED.populate(()) {
            return Err(EBUSY);
        }
        // SAFETY: Only the first call comes here.
        unsafe { LISTED.init() };
        OPEN.populate(());
        Ok(Self(()))
    }

    /// Makes the file, which root alone may read. From then on somebody may have it open, and keep
    /// the module: nothing is to wait for the end of its use. May sleep.
    pub(crate) fn publish(self) -> Published {
        // SAFETY: Called once, since there is one list. The function is one for seq_file.
        unsafe { bindings::show_connections(Some(show)) };
        Published(())
    }
}

/// The file is there while this lives.
pub(crate) struct Published(());

impl Drop for Published {
    fn drop(&mut self) {
        // SAFETY: The file was made, once.
        unsafe { bindings::hide_connections() };
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The file `rpcrdma/connections` of debugfs, with a line for each connection of either end.

use kernel::{
    debugfs::{
        Dir,
        File, //
    },
    fmt::{
        self,
        Formatter, //
    },
    list::{
        impl_list_arc_safe,
        impl_list_item,
        List,
        ListArc,
        ListLinks, //
    },
    prelude::*,
    sync::{
        Arc,
        SetOnce, //
    },
};

/// What has a line in the file.
pub(crate) trait Listed: Send + Sync {
    /// Writes its line. Does not sleep.
    fn describe(&self, to: &mut Formatter<'_>) -> fmt::Result;
}

#[pin_data]
struct Line {
    of: Arc<dyn Listed>,
    #[pin]
    links: ListLinks,
}

impl_list_arc_safe! {
    impl ListArcSafe<0> for Line { untracked; }
}
impl_list_item! {
    impl ListItem<0> for Line { using ListLinks { self.links }; }
}

kernel::sync::global_lock! {
    // SAFETY: Initialised by `Listing::open`, which then sets `OPEN`; used only where that is set.
    unsafe(uninit) static LINES: SpinLock<List<Line>> = List::new();
}

/// Whether the file was made before.
static OPENED: SetOnce<()> = SetOnce::new();
/// Whether the lines are initialised.
static OPEN: SetOnce<()> = SetOnce::new();

/// Something has a line in the file until this is dropped, which does not sleep.
pub(crate) struct Entry(Arc<Line>);

impl Entry {
    /// Adds a line, if there is a file. May sleep.
    pub(crate) fn new(of: Arc<dyn Listed>) -> Result<Option<Self>> {
        if OPEN.as_ref().is_none() {
            return Ok(None);
        }
        let links = ListLinks::new();
        let line = ListArc::pin_init(try_pin_init!(Line { of, links <- links }), GFP_KERNEL)?;
        let entry = Self(line.clone_arc());
        LINES.lock().push_back(line);
        Ok(Some(entry))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut lines = LINES.lock();
        let mut cursor = lines.cursor_front();
        while let Some(next) = cursor.peek_next() {
            if core::ptr::eq(&*next, &*self.0) {
                next.remove();
                break;
            }
            cursor.move_next();
        }
    }
}

/// All that is listed.
struct All;

fn describe_all(_: &All, to: &mut Formatter<'_>) -> fmt::Result {
    LINES
        .lock()
        .iter()
        .try_for_each(|line| line.of.describe(to))
}

/// The file is there while this lives.
pub(crate) struct Listing {
    _file: Pin<KBox<File<All>>>,
    _directory: Dir,
}

impl Listing {
    /// Makes the file, once while the module is loaded. Root alone may read what is in debugfs. May
    /// sleep.
    ///
    /// `EBUSY` if it was made before.
    pub(crate) fn open() -> Result<Self> {
        if !OPENED.populate(()) {
            return Err(EBUSY);
        }
        // SAFETY: Only the first call comes here.
        unsafe { LINES.init() };
        OPEN.populate(());
        let directory = Dir::new(c"rpcrdma");
        let file = directory.read_callback_file(c"connections", All, &describe_all);
        Ok(Self {
            _file: KBox::pin_init(file, GFP_KERNEL)?,
            _directory: directory,
        })
    }
}

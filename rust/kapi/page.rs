// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory of the RPC layer, as a list of pieces of pages that a region can cover.

use super::bindings;
use core::marker::PhantomData;
use kernel::page::PAGE_SIZE;

/// A run of memory: bytes of the kernel's direct map, or of an array of pages.
#[derive(Clone, Copy)]
enum Run {
    /// `len` bytes at `addr` of the direct map.
    Linear { addr: *const u8, len: usize },
    /// `len` bytes that begin `base` bytes into the first of `pages`.
    Paged {
        pages: *const *mut bindings::page,
        base: usize,
        len: usize,
    },
}

/// A piece of one page.
#[derive(Clone, Copy)]
struct Piece {
    page: *mut bindings::page,
    offset: usize,
    len: usize,
}

impl Run {
    const EMPTY: Self = Self::Linear {
        addr: core::ptr::null(),
        len: 0,
    };

    /// The first piece of the run.
    ///
    /// # Safety
    ///
    /// The memory that the run names must be valid.
    unsafe fn first(&self) -> Option<Piece> {
        match *self {
            Self::Linear { len: 0, .. } | Self::Paged { len: 0, .. } => None,
            Self::Linear { addr, len } => {
                let offset = addr as usize % PAGE_SIZE;
                Some(Piece {
                    // SAFETY: The address is of the direct map by contract.
                    page: unsafe { bindings::virt_to_page(addr.cast()) },
                    offset,
                    len: len.min(PAGE_SIZE - offset),
                })
            }
            Self::Paged { pages, base, len } => {
                let offset = base % PAGE_SIZE;
                Some(Piece {
                    // SAFETY: The array reaches to the end of the run by contract.
                    page: unsafe { *pages.add(base / PAGE_SIZE) },
                    offset,
                    len: len.min(PAGE_SIZE - offset),
                })
            }
        }
    }

    /// The run without its first `n` bytes; `n` is at most its length.
    fn skip(self, n: usize) -> Self {
        match self {
            Self::Linear { addr, len } => Self::Linear {
                addr: addr.wrapping_add(n),
                len: len.saturating_sub(n),
            },
            Self::Paged { pages, base, len } => Self::Paged {
                pages,
                base: base.wrapping_add(n),
                len: len.saturating_sub(n),
            },
        }
    }

    fn len(&self) -> usize {
        match *self {
            Self::Linear { len, .. } | Self::Paged { len, .. } => len,
        }
    }
}

/// What is left of a message, or of its payload, for regions to cover.
///
/// # Invariants
///
/// All runs name memory that is valid for `'a`.
pub(crate) struct Pieces<'a> {
    runs: [Run; 3],
    _memory: PhantomData<&'a ()>,
}

impl<'a> Pieces<'a> {
    /// The pieces of a head, an array of pages and a tail, in this order; any may be empty.
    ///
    /// # Safety
    ///
    /// For `'a`: head and tail must be memory of the direct map, and `pages` an array that
    /// reaches `paged_len` bytes beyond `base`.
    pub(super) unsafe fn new(
        head: (*const u8, usize),
        pages: *const *mut bindings::page,
        base: usize,
        paged_len: usize,
        tail: (*const u8, usize),
    ) -> Self {
        // INVARIANT: Valid by the contract of this function.
        Self {
            runs: [
                Run::Linear {
                    addr: head.0,
                    len: head.1,
                },
                Run::Paged {
                    pages,
                    base,
                    len: paged_len,
                },
                Run::Linear {
                    addr: tail.0,
                    len: tail.1,
                },
            ],
            _memory: PhantomData,
        }
    }

    /// Bytes that no region covers yet.
    pub(crate) fn remaining(&self) -> usize {
        self.runs.iter().map(Run::len).sum()
    }

    fn take_first(&mut self, fits: impl FnOnce(&Piece) -> bool) -> Option<Piece> {
        let run = self.runs.iter_mut().find(|run| run.len() != 0)?;
        // SAFETY: The memory is valid by the type invariant.
        let piece = unsafe { run.first() }?;
        if !fits(&piece) {
            return None;
        }
        let rest = run.skip(piece.len);
        *run = if rest.len() == 0 { Run::EMPTY } else { rest };
        Some(piece)
    }

    /// Moves pieces into a scatter list, as many as one region can cover, and says how many.
    ///
    /// Unless the device allows gaps, only the first piece may begin, and only the last may end,
    /// off a page boundary.
    pub(super) fn fill(&mut self, sg: &mut [bindings::scatterlist], gaps: bool) -> usize {
        let mut filled = 0;
        let mut open_end = true;
        for element in sg.iter_mut() {
            let first = filled == 0;
            let joins = |piece: &Piece| gaps || first || (open_end && piece.offset == 0);
            let Some(piece) = self.take_first(joins) else {
                break;
            };
            // SAFETY: The element is one of an initialised list, the page is valid by the type
            // invariant.
            unsafe {
                bindings::sg_set_page(element, piece.page, piece.len as u32, piece.offset as u32)
            };
            open_end = (piece.offset + piece.len) % PAGE_SIZE == 0;
            filled += 1;
        }
        filled
    }
}

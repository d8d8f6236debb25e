// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: what is put into a queue comes out once and in order, and what finds no room comes
//! back.

use crate::{
    kapi::sys::fifo::*,
    kunit::{
        claim,
        same, //
    },
};
use core::cell::Cell;

/// Counts those that are gone.
struct Item<'a>(&'a Cell<u32>);

impl Drop for Item<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[kunit_tests(rpcrdma_fifo)]
mod suite {
    use super::*;

    #[test]
    fn in_order_around_the_end() -> Result {
        for room in [1, 2, 3, 7] {
            let mut fifo = Fifo::with_capacity(room)?;
            let (mut next, mut expected) = (0, 0);
            // Filled to each level at each place.
            for level in (1..=room).cycle().take(4 * room * room) {
                for _ in 0..level {
                    same("put in", fifo.push(next), Ok(&mut next.clone()))?;
                    next += 1;
                }
                same("items", fifo.len(), level)?;
                claim(!fifo.is_empty(), "not empty")?;
                same("full", fifo.is_full(), level == room)?;
                for _ in 0..level {
                    same("the first", fifo.first().copied(), Some(expected))?;
                    same("taken out", fifo.pop(), Some(expected))?;
                    expected += 1;
                }
                claim(fifo.is_empty(), "empty")?;
                same("nothing more", fifo.pop(), None)?;
            }
        }
        Ok(())
    }

    #[test]
    fn out_of_the_middle() -> Result {
        let mut fifo = Fifo::with_capacity(4)?;
        // At each place of the ring.
        for first in 0..8 {
            for item in 0..4 {
                same("put in", fifo.push(first + item).is_ok(), true)?;
            }
            same("none", fifo.remove(4), None)?;
            same("third", fifo.remove(2), Some(first + 2))?;
            let left = [0, 1, 2, 3].map(|behind| fifo.get(behind).copied());
            let expected = [Some(first), Some(first + 1), Some(first + 3), None];
            same("in order", left, expected)?;
            let order = [first, first + 1, first + 3];
            claim(fifo.iter_mut().map(|item| *item).eq(order), "all")?;
            same("first", fifo.remove(0), Some(first))?;
            same("second", fifo.pop(), Some(first + 1))?;
            same("last", fifo.pop(), Some(first + 3))?;
            same("odd one", fifo.push(0), Ok(&mut 0))?;
            same("odd one", fifo.pop(), Some(0))?;
        }
        Ok(())
    }

    #[test]
    fn no_more_than_there_is_room_for() -> Result {
        let mut fifo = Fifo::with_capacity(2)?;
        same("one", fifo.push(1), Ok(&mut 1))?;
        same("two", fifo.push(2), Ok(&mut 2))?;
        same("three", fifo.push(3), Err(3))?;
        same("taken out", fifo.pop(), Some(1))?;
        same("three again", fifo.push(3), Ok(&mut 3))?;
        same("four", fifo.push(4), Err(4))?;
        same("the second", fifo.pop(), Some(2))?;
        same("the third", fifo.pop(), Some(3))?;
        same("nothing more", fifo.pop(), None)?;
        let mut none = Fifo::default();
        claim(none.is_full(), "full from the first")?;
        same("without room", none.push(1), Err(1))?;
        same("nothing in it", none.first(), None)?;
        same("nothing to take", none.pop(), None)
    }

    #[test]
    fn each_item_can_be_changed_where_it_is() -> Result {
        let mut fifo = Fifo::with_capacity(3)?;
        // Around the end.
        for item in [0, 0] {
            same("put in", fifo.push(item), Ok(&mut 0))?;
            same("taken out", fifo.pop(), Some(0))?;
        }
        for mut item in [1, 2] {
            same("put in", fifo.push(item), Ok(&mut item))?;
        }
        for item in fifo.iter_mut() {
            *item += 10;
        }
        same("the first", fifo.pop(), Some(11))?;
        same("the second", fifo.pop(), Some(12))
    }

    #[test]
    fn what_is_in_it_goes_with_it() -> Result {
        let gone = Cell::new(0);
        let mut fifo = Fifo::with_capacity(3)?;
        claim(fifo.push(Item(&gone)).is_ok(), "one")?;
        claim(fifo.push(Item(&gone)).is_ok(), "two")?;
        drop(fifo.pop());
        same("taken out", gone.get(), 1)?;
        drop(fifo);
        same("all", gone.get(), 2)
    }
}

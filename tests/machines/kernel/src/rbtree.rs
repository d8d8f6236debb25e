// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Sorted trees, whose nodes are made beforehand, over those of the standard library.

use crate::{
    alloc::Flags,
    error::Result, //
};
use std::collections::BTreeMap;

pub struct RBTree<K, V>(BTreeMap<K, V>);

pub struct RBTreeNode<K, V>(K, V);

pub struct RBTreeNodeReservation<K, V>(core::marker::PhantomData<(K, V)>);

/// A place in a tree, by its key.
pub struct CursorMut<'a, K, V> {
    tree: &'a mut BTreeMap<K, V>,
    key: K,
}

impl<K: Ord + Copy, V> RBTree<K, V> {
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn insert(&mut self, node: RBTreeNode<K, V>) -> Option<RBTreeNode<K, V>> {
        let RBTreeNode(key, value) = node;
        self.0.insert(key, value).map(|old| RBTreeNode(key, old))
    }

    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.0.get_mut(key)
    }

    pub fn cursor_front_mut(&mut self) -> Option<CursorMut<'_, K, V>> {
        let key = *self.0.keys().next()?;
        Some(CursorMut {
            tree: &mut self.0,
            key,
        })
    }

    pub fn cursor_lower_bound_mut(&mut self, key: &K) -> Option<CursorMut<'_, K, V>> {
        let key = *self.0.range(*key..).next()?.0;
        Some(CursorMut {
            tree: &mut self.0,
            key,
        })
    }
}

impl<K: Ord + Copy, V> CursorMut<'_, K, V> {
    pub fn current(&self) -> (&K, &V) {
        (&self.key, &self.tree[&self.key])
    }

    /// Removes what is here; of where the cursor is then nobody asks.
    pub fn remove_current(self) -> (Option<Self>, RBTreeNode<K, V>) {
        let value = self.tree.remove(&self.key).expect("the cursor is at one");
        (None, RBTreeNode(self.key, value))
    }
}

impl<K, V> RBTreeNode<K, V> {
    pub fn to_key_value(self) -> (K, V) {
        (self.0, self.1)
    }
}

impl<K, V> RBTreeNodeReservation<K, V> {
    pub fn new(_: Flags) -> Result<Self> {
        Ok(Self(core::marker::PhantomData))
    }

    pub fn into_node(self, key: K, value: V) -> RBTreeNode<K, V> {
        RBTreeNode(key, value)
    }
}

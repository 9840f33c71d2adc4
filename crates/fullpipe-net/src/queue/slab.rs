//! Many FIFOs in one slab, for the flows of fair queues. Memory grows with the number of packets that wait
//! at once, not with the number of flows, and nothing is allocated for a packet.

const NIL: u32 = u32::MAX;

#[derive(Debug)]
struct Node<T> {
    item: T,
    next: u32,
}

/// The slab.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    nodes: Vec<Node<T>>,
    /// First of the free nodes, which are linked by `next`.
    free: u32,
}

/// One FIFO within a [`Slab`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
}

impl List {
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NIL
    }

    /// Whether it has exactly one item.
    pub(crate) fn has_one(&self) -> bool {
        self.head == self.tail && self.head != NIL
    }
}

impl Default for List {
    fn default() -> Self {
        Self {
            head: NIL,
            tail: NIL,
        }
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            free: NIL,
        }
    }
}

impl<T: Copy> Slab<T> {
    pub(crate) fn push_back(&mut self, list: &mut List, item: T) {
        let node = self.take_node(item, NIL);
        if list.head == NIL {
            list.head = node;
        } else {
            self.nodes[list.tail as usize].next = node;
        }
        list.tail = node;
    }

    pub(crate) fn pop_front(&mut self, list: &mut List) -> Option<T> {
        let item = *self.front(list)?;
        self.drop_front(list);
        Some(item)
    }

    /// Removes the first item without a copy of it.
    #[inline]
    pub(crate) fn drop_front(&mut self, list: &mut List) {
        if let Some(node) = self.nodes.get_mut(list.head as usize) {
            let next = std::mem::replace(&mut node.next, self.free);
            self.free = std::mem::replace(&mut list.head, next);
        }
    }

    pub(crate) fn front(&self, list: &List) -> Option<&T> {
        self.nodes.get(list.head as usize).map(|node| &node.item)
    }

    pub(crate) fn front_mut(&mut self, list: &List) -> Option<&mut T> {
        self.nodes
            .get_mut(list.head as usize)
            .map(|node| &mut node.item)
    }

    /// Inserts an item behind all whose key is not greater. Takes constant time if its key is the greatest.
    pub(crate) fn insert_by_key(&mut self, list: &mut List, item: T, key: impl Fn(&T) -> u64) {
        let at = key(&item);
        if list.head == NIL || key(&self.nodes[list.tail as usize].item) <= at {
            self.push_back(list, item);
            return;
        }
        let (mut before, mut after) = (NIL, list.head);
        while key(&self.nodes[after as usize].item) <= at {
            (before, after) = (after, self.nodes[after as usize].next);
        }
        let node = self.take_node(item, after);
        if before == NIL {
            list.head = node;
        } else {
            self.nodes[before as usize].next = node;
        }
    }

    /// The index of the last item.
    pub(crate) fn last_place(&self, list: &List) -> Option<u32> {
        (!list.is_empty()).then_some(list.tail)
    }

    /// The items with their indices, in order.
    pub(crate) fn iter(&self, list: &List) -> impl Iterator<Item = (u32, &T)> {
        let mut place = list.head;
        std::iter::from_fn(move || {
            let node = self.nodes.get(place as usize)?;
            let found = (place, &node.item);
            place = node.next;
            Some(found)
        })
    }

    /// Removes the item behind `before` (`None`: the first).
    pub(crate) fn remove_behind(&mut self, list: &mut List, before: Option<u32>) -> Option<T> {
        let Some(before) = before else {
            return self.pop_front(list);
        };
        let place = self.nodes[before as usize].next;
        let node = self.nodes.get_mut(place as usize)?;
        let (item, next) = (node.item, node.next);
        node.next = self.free;
        self.free = place;
        self.nodes[before as usize].next = next;
        if list.tail == place {
            list.tail = before;
        }
        Some(item)
    }

    /// Removes the last item, in linear time.
    pub(crate) fn pop_back(&mut self, list: &mut List) -> Option<T> {
        let last = list.tail;
        let before = self
            .iter(list)
            .map(|(place, _)| place)
            .find(|&place| self.nodes[place as usize].next == last);
        self.remove_behind(list, before)
    }

    fn take_node(&mut self, item: T, next: u32) -> u32 {
        if self.free == NIL {
            self.nodes.push(Node { item, next });
            return (self.nodes.len() - 1) as u32;
        }
        let index = self.free;
        let node = &mut self.nodes[index as usize];
        self.free = node.next;
        *node = Node { item, next };
        index
    }
}

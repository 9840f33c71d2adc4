//! Sizes of the kernel's buffers (struct sk_buff), which senders and receivers count in memory.

/// Page fragments of a buffer (MAX_SKB_FRAGS).
pub(crate) const MAX_PAGES: u64 = 17;
/// sendfile() writes pages; each call starts at the beginning of one.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// MAX_TCP_HEADER of a kernel without wireless drivers, such as the virtual machine's; 320 with them.
pub(crate) const HEADER_ROOM_BYTES: u64 = 256;
/// truesize of an empty buffer (tcp_stream_alloc_skb() of 6.12): both structures and a head of 320 bytes.
pub(crate) const BUFFER_BYTES: u64 = 896;
/// The same where the head is rounded up to a size of kmalloc(), 1024 bytes.
pub(crate) const ROUNDED_BUFFER_BYTES: u64 = 1_280;
/// Largest payload of a buffer: sk_gso_max_size less headers.
pub(crate) const GSO_MAX_BYTES: u64 = 65_536 - HEADER_ROOM_BYTES - 1;

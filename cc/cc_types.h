/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* Integer types and the few helpers that every algorithm shares. A host that
 * already has the kernel's names (vmlinux-like headers) defines CC_HAVE_TYPES. */
#ifndef FULLPIPE_CC_TYPES_H
#define FULLPIPE_CC_TYPES_H

#ifndef CC_HAVE_TYPES
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;
#endif

/* A function that the eBPF verifier may check once instead of at every call site is not worth
 * its restrictions here: everything is inlined, on both hosts. Not in a debugger (CC_DEBUG), which
 * shows a function's arguments and stops at its name. */
#ifdef CC_DEBUG
#define CC_INLINE static __attribute__((__noinline__, unused)) /* linux_base.h has a noinline */
#else
#define CC_INLINE static inline __attribute__((always_inline, unused))
#endif

/* Between the steps of a long function: values go to memory and are read again. The eBPF verifier
 * follows every combination of what it knows of registers, but knows nothing of memory; without
 * such seams it gives up on a long function. Costs a native host a few loads. */
#ifndef CC_STEP
#define CC_STEP() __asm__ volatile("" ::: "memory")
#endif

CC_INLINE u32 cc_min_u32(u32 a, u32 b) { return a < b ? a : b; }
CC_INLINE u32 cc_max_u32(u32 a, u32 b) { return a > b ? a : b; }
CC_INLINE u64 cc_min_u64(u64 a, u64 b) { return a < b ? a : b; }
CC_INLINE u64 cc_max_u64(u64 a, u64 b) { return a > b ? a : b; }

/* Serial-number comparison of wrapping 32-bit counters and sequence numbers (RFC 1982). */
CC_INLINE int cc_before(u32 a, u32 b) { return (s32)(a - b) < 0; }
CC_INLINE int cc_after(u32 a, u32 b) { return cc_before(b, a); }

#define CC_USEC_PER_SEC 1000000u
#define CC_USEC_PER_MSEC 1000u
#define CC_NSEC_PER_USEC 1000u

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* bytes.h - packets of the contract for a host that counts bytes, such as QUIC, and back. It must
 * not know such a host. */
#ifndef FULLPIPE_CC_BYTES_H
#define FULLPIPE_CC_BYTES_H

#include "cc_types.h"

/* Packets that hold so many bytes: of data to be sent, the last may be short. */
CC_INLINE u32 cc_packets_up(u64 bytes, u32 mss_bytes)
{
	return mss_bytes ? (u32)((bytes + mss_bytes - 1) / mss_bytes) : 0;
}

/* A window of packets in bytes. */
CC_INLINE u64 cc_bytes_of(u32 packets, u32 mss_bytes) { return (u64)packets * mss_bytes; }

/* A counter of packets (conn->delivered, conn->lost) that bytes raise. */
struct cc_byte_count {
	u32 packets; /* wraps */
	u32 rest;    /* bytes that make no packet yet */
};

/* Returns how many packets the bytes complete. Short packets add up: nothing is rounded twice. */
CC_INLINE u32 cc_count_bytes(struct cc_byte_count *count, u64 bytes, u32 mss_bytes)
{
	u64 all = bytes + count->rest;
	u32 whole = mss_bytes ? (u32)(all / mss_bytes) : 0;

	count->rest = (u32)(all - (u64)whole * mss_bytes);
	count->packets += whole;
	return whole;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * ring.h - what was in flight, and what had been lost, when a packet was sent.
 *
 * BBRv2 and BBRv3 judge a loss rate against the flight that caused it
 * (draft-ietf-ccwg-bbr section 5.5.10.2: P.tx_in_flight, P.lost). Google's kernel
 * stores both in every packet; stock kernels do not. So the contract keeps a small
 * ring of snapshots, one a burst, and interpolates within a burst by sequence
 * number: packets of one burst differ only by their position in it. Both hosts feed
 * it from the same two places (before a burst is sent; for every ACK), so that they
 * give an algorithm the same facts.
 *
 * When a window holds more bursts than the ring has places, only every k-th burst is
 * kept; what was acknowledged between two snapshots is then taken as spread evenly over
 * the gaps between their bursts. (Otherwise a window-limited flow would seem to have had
 * up to k - 1 bursts more than its window in flight.) A retransmission is found by what was
 * delivered when it was sent, because its number says when it was sent first; for its sake
 * snapshots are also kept where only acknowledgements moved.
 */
#ifndef FULLPIPE_CC_RING_H
#define FULLPIPE_CC_RING_H

#include "cc.h"

#define CC_RING_SLOTS 64u /* a power of two, so that an index can be masked for the verifier */
#define CC_RING_STEPS 6   /* log2(CC_RING_SLOTS): a lookup's steps */

struct cc_snapshot {
	u32 snd_nxt;   /* where the burst begins */
	u32 delivered; /* connection counters at that moment */
	u32 lost;
	u32 inflight; /* before the burst's first packet */
	u32 bursts;   /* that this snapshot stands for: itself and those skipped after it */
};

struct cc_ring {
	struct cc_snapshot slot[CC_RING_SLOTS];
	u32 count; /* snapshots ever taken, wraps; the newest is slot[(count - 1) % CC_RING_SLOTS]
		    */
};

/* A burst is about to be sent. */
CC_INLINE void cc_ring_push(struct cc_ring *ring, const struct cc_conn *conn)
{
	struct cc_snapshot *s;
	u32 newest = (ring->count - 1) & (CC_RING_SLOTS - 1);
	u32 spacing;

	if (ring->count) {
		/* Twice the slots' share of the window, so that a window fits in half the ring
		 * and the packets that an ACK can name are still in it when it comes. */
		spacing = conn->inflight / (CC_RING_SLOTS / 2) * conn->mss_bytes;
		if (conn->snd_nxt - ring->slot[newest].snd_nxt <= spacing &&
		    conn->snd_nxt != ring->slot[newest].snd_nxt) {
			ring->slot[newest].bursts++;
			return;
		}
		/* No new data was sent since: the newer facts hold. */
		if (conn->snd_nxt == ring->slot[newest].snd_nxt &&
		    conn->delivered - ring->slot[newest].delivered <=
			conn->inflight / (CC_RING_SLOTS / 2))
			ring->count--;
	}
	s = &ring->slot[ring->count & (CC_RING_SLOTS - 1)];
	s->snd_nxt = conn->snd_nxt;
	s->delivered = conn->delivered;
	s->lost = conn->lost;
	s->inflight = conn->inflight;
	s->bursts = 1;
	ring->count++;
}

/* Packets acknowledged (or lost) between this snapshot and the sending of its n-th packet. */
CC_INLINE u32 cc_ring_left_before(const struct cc_snapshot *s, const struct cc_snapshot *next,
				  u32 n, u32 mss_bytes)
{
	u32 packets = (next->snd_nxt - s->snd_nxt) / mss_bytes;
	u32 left = s->inflight + packets - next->inflight;
	u32 gaps;

	if (s->bursts < 2 || !packets || !n || n > packets || (s32)left <= 0)
		return 0;
	gaps = (u32)((u64)(n - 1) * s->bursts / packets);
	return (u32)((u64)left * gaps / s->bursts);
}

/* Fills ack->tx_inflight and ack->lost for the newest packet that this ACK acknowledges. */
CC_INLINE void cc_ring_sample(const struct cc_ring *ring, const struct cc_conn *conn,
			      struct cc_ack *ack)
{
	u32 have = cc_min_u32(ring->count, CC_RING_SLOTS);
	u32 first = ring->count - have, low = 0, high = have, i;
	const struct cc_snapshot *s;
	u32 into_burst;

	ack->tx_inflight = ack->prior_inflight;
	ack->lost = ack->losses;
	if (!have || !conn->mss_bytes)
		return;
	/* The last snapshot that begins before the packet's end, or that was taken before it was
	 * sent again: snd_nxt and delivered rise along the ring. */
	for (i = 0; i < CC_RING_STEPS + 1; i++) {
		u32 mid = (low + high) / 2;

		if (high - low <= 1)
			break;
		s = &ring->slot[(first + mid) & (CC_RING_SLOTS - 1)];
		if (ack->is_retrans ? !cc_after(s->delivered, ack->prior_delivered)
				    : cc_before(s->snd_nxt, ack->last_end_seq))
			low = mid;
		else
			high = mid;
	}
	s = &ring->slot[(first + low) & (CC_RING_SLOTS - 1)];
	ack->lost = conn->lost - s->lost;
	if (ack->is_retrans) {
		ack->tx_inflight = s->inflight + 1;
		return;
	}
	into_burst = 0;
	if (cc_before(s->snd_nxt, ack->last_end_seq))
		into_burst =
		    (ack->last_end_seq - s->snd_nxt + conn->mss_bytes - 1) / conn->mss_bytes;
	ack->tx_inflight = s->inflight + into_burst;
	if (low + 1 < have)
		ack->tx_inflight -=
		    cc_ring_left_before(s, &ring->slot[(first + low + 1) & (CC_RING_SLOTS - 1)],
					into_burst, conn->mss_bytes);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * ring.h - what was in flight, and what had been lost, when a packet was sent.
 *
 * BBRv2 and BBRv3 judge a loss rate against the flight that caused it
 * (draft-ietf-ccwg-bbr section 5.5.10.2: P.tx_in_flight, P.lost). Google's kernel
 * stores both in every packet; stock kernels do not. So the contract keeps a small
 * ring of snapshots, one a burst, and interpolates within a burst by sequence
 * number: packets of one burst differ only by their position in it. Both hosts feed
 * it from the same places (before a burst is sent, and where a timeout will send; for
 * every ACK), so that they give an algorithm the same facts.
 *
 * When a window holds more bursts than the ring has places, only every k-th burst is
 * kept; what was acknowledged between two snapshots is then taken as spread evenly over
 * the gaps between their bursts. (Otherwise a window-limited flow would seem to have had
 * up to k - 1 bursts more than its window in flight.) A retransmission is found by the time of
 * its sending, because its number says when it was sent first. For its sake a snapshot also stays
 * where the same new data is still to come but something was sent again since, in a large flight
 * every k-th of them; and TCP asks before it sends, so that one after which nothing was sent goes.
 */
#ifndef FULLPIPE_CC_RING_H
#define FULLPIPE_CC_RING_H

#include "cc_more.h"

#define CC_RING_SLOTS 64u /* a power of two, so that an index can be masked for the verifier */
#define CC_RING_STEPS 6   /* log2(CC_RING_SLOTS): a lookup's steps */

struct cc_snapshot {
	u32 snd_nxt;   /* where the burst begins */
	u32 delivered; /* connection counters at that moment */
	u32 lost;
	u32 inflight;   /* before the burst's first packet */
	u32 bursts;     /* that this snapshot stands for: itself and those skipped after it */
	u32 departs_us; /* its first packet; low bits of the clock */
	u32 edt_ns;     /* low bits of conn->edt_ns, which every sending moves */
};

struct cc_ring {
	struct cc_snapshot slot[CC_RING_SLOTS];
	u32 count; /* snapshots ever taken, wraps; the newest is slot[(count - 1) % CC_RING_SLOTS]
		    */
};

/* Whether something is sent next: what a timeout sends again is not announced, but always follows
 * this change of state (tcp_enter_loss(), tcp_retransmit_timer()). */
CC_INLINE int cc_ring_is_fed_by(u32 event_kind, u32 value)
{
	return event_kind == CC_EVENT_SEND || (event_kind == CC_EVENT_STATE && value == CC_LOSS);
}

/* Sendings so far, but for a constant: what was sent is in flight, delivered or lost. */
CC_INLINE u32 cc_ring_sendings(const struct cc_snapshot *s)
{
	return s->inflight + s->delivered + s->lost;
}

/* So little was sent, delivered and lost from one to the other that the first stands for both. */
CC_INLINE int cc_ring_is_near(const struct cc_snapshot *s, const struct cc_snapshot *later,
			      u32 spacing)
{
	u32 sent = cc_ring_sendings(later) - cc_ring_sendings(s);

	return sent + later->delivered - s->delivered + later->lost - s->lost <= 2 * spacing;
}

/* Something is about to be sent (cc_ring_is_fed_by()). */
CC_INLINE void cc_ring_push(struct cc_ring *ring, const struct cc_conn *conn)
{
	u64 departs_ns = cc_max_u64(conn->now_ns, conn->edt_ns);
	struct cc_snapshot now = {
	    .snd_nxt = conn->snd_nxt,
	    .delivered = conn->delivered,
	    .lost = conn->lost,
	    .inflight = conn->inflight,
	    .bursts = 1,
	    .departs_us = (u32)(departs_ns / CC_NSEC_PER_USEC),
	    .edt_ns = (u32)conn->edt_ns,
	};
	struct cc_snapshot *newest = &ring->slot[(ring->count - 1) & (CC_RING_SLOTS - 1)];
	struct cc_snapshot *before = &ring->slot[(ring->count - 2) & (CC_RING_SLOTS - 1)];
	/* Twice the slots' share of the window, so that a window fits in half the ring and the
	 * packets that an ACK can name are still in it when it comes. */
	u32 spacing = now.inflight / (CC_RING_SLOTS / 2);
	u32 new_bytes = now.snd_nxt - newest->snd_nxt;

	if (ring->count && new_bytes && new_bytes <= (u64)spacing * conn->mss_bytes &&
	    cc_ring_is_near(newest, &now, spacing)) {
		newest->bursts++;
		return;
	}
	if (ring->count && !new_bytes) {
		/* Nothing was sent after the newest, or the one before stands for it too. */
		if (newest->edt_ns == now.edt_ns &&
		    cc_ring_sendings(newest) == cc_ring_sendings(&now))
			ring->count--;
		else if (ring->count > 1 && before->snd_nxt == now.snd_nxt &&
			 cc_ring_is_near(before, newest, spacing))
			ring->count--;
	}
	ring->slot[ring->count & (CC_RING_SLOTS - 1)] = now;
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
	u32 sent_us = (u32)conn->now_us - ack->age_us;
	const struct cc_snapshot *s;
	u32 into_burst;

	ack->tx_inflight = ack->prior_inflight;
	ack->lost = ack->losses;
	if (!have || !conn->mss_bytes)
		return;
	/* The last snapshot that begins before the packet's end, or that departs before it was
	 * sent again: snd_nxt and departs_us rise along the ring. */
	for (i = 0; i < CC_RING_STEPS + 1; i++) {
		u32 mid = (low + high) / 2;

		if (high - low <= 1)
			break;
		s = &ring->slot[(first + mid) & (CC_RING_SLOTS - 1)];
		if (ack->is_retrans ? cc_before(s->departs_us, sent_us)
				    : cc_before(s->snd_nxt, ack->last_end_seq))
			low = mid;
		else
			high = mid;
	}
	/* Of those at the very time the first: others are of what was sent after it. */
	if (ack->is_retrans && low + 1 < have &&
	    ring->slot[(first + low + 1) & (CC_RING_SLOTS - 1)].departs_us == sent_us)
		low++;
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

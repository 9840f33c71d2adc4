/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * sent.c - a record of every packet sent, which Google's kernel keeps in the packets themselves:
 * what was in flight and what had been lost at its last sending. A socket's own copy of its address
 * family's operations tells when TCP hands a packet to IP (as net/smc does for other calls).
 * Records are in the order of sending; a packet's is found by the time at which it was last sent,
 * which TCP knows, and among those of one microsecond by its bytes. glue.h and host.c must precede
 * it.
 *
 * Where a socket cannot be followed, or memory is missing, the contract's ring stands in.
 */
#define FP_SENT_LEAST 256u
#define FP_SENT_MOST 65536u

/* Where the record of what was sent at sent_us begins that has the byte before end_seq; NULL: none.
 */
static struct fp_sent *fp_sent_find(const struct fp_sents *sents, u32 sent_us, u32 end_seq)
{
	u32 have = min(sents->count, sents->size);
	u32 low = sents->count - have, high = sents->count;

	/* The first that is not older; times rise along the records. */
	while (low != high) {
		u32 mid = low + (high - low) / 2;

		if (cc_before(sents->slot[mid & (sents->size - 1)].sent_us, sent_us))
			low = mid + 1;
		else
			high = mid;
	}
	for (; low != sents->count; low++) {
		struct fp_sent *sent = &sents->slot[low & (sents->size - 1)];

		if (sent->sent_us != sent_us)
			return NULL;
		if (!cc_after(sent->seq, end_seq - 1) && cc_before(end_seq - 1, sent->end_seq))
			return sent;
	}
	return NULL;
}

/* In flight when the packet that ends at end_seq had been sent. */
static u32 fp_sent_inflight(const struct fp_sent *sent, u32 end_seq, u32 mss_bytes)
{
	return sent->inflight + DIV_ROUND_UP(end_seq - sent->seq, max(mss_bytes, 1u));
}

/* Doubles the room while all that is in flight may need it. */
static void fp_sent_grow(struct fp_sents *sents)
{
	u32 size = max(2 * sents->size, FP_SENT_LEAST), number;
	struct fp_sent *slot;

	slot = kmalloc_array(size, sizeof(*slot), GFP_ATOMIC | __GFP_NOWARN);
	if (!slot)
		return;
	for (number = sents->count - min(sents->count, sents->size); number != sents->count;
	     number++)
		slot[number & (size - 1)] = sents->slot[number & (sents->size - 1)];
	kfree(sents->slot);
	sents->slot = slot;
	sents->size = size;
}

/* TCP hands a packet to IP. It counts the packet as in flight after that. */
static int fp_sent_xmit(struct sock *sk, struct sk_buff *skb, struct flowi *flow)
{
	const struct fp_family *family =
	    container_of(inet_csk(sk)->icsk_af_ops, struct fp_family, calls);
	const struct tcphdr *header = tcp_hdr(skb);
	const struct tcp_sock *tp = tcp_sk(sk);
	struct fp_socket *s = fp_find(sk);
	u32 bytes = skb->len - tcp_hdrlen(skb);

	if (s && bytes) {
		struct fp_sents *sents = &s->sents;

		if (sents->count >= sents->size && sents->size < FP_SENT_MOST &&
		    tp->packets_out + tp->retrans_out >= sents->size / 4)
			fp_sent_grow(sents);
		if (sents->size) {
			struct fp_sent *sent = &sents->slot[sents->count & (sents->size - 1)];

			sent->sent_us = (u32)div_u64(tp->tcp_wstamp_ns, NSEC_PER_USEC);
			sent->seq = ntohl(header->seq);
			sent->end_seq = sent->seq + bytes;
			sent->inflight = tcp_packets_in_flight(tp);
			sent->lost = tp->lost;
			sent->is_told = false;
			sents->count++;
		}
	}
	return family->original->queue_xmit(sk, skb, flow);
}

/* From here on the socket's packets are recorded. */
static void fp_follow(struct sock *sk, struct fp_socket *s)
{
	const struct fp_family *family;

	s->sents.lost_seen = tcp_sk(sk)->lost;
	if (fp_uses_ring)
		return;
	family = fp_family_of(inet_csk(sk)->icsk_af_ops, fp_sent_xmit);
	if (!family)
		return;
	fp_sent_grow(&s->sents);
	if (s->sents.size)
		inet_csk(sk)->icsk_af_ops = &family->calls;
}

static void fp_unfollow(struct sock *sk, struct fp_socket *s)
{
	const struct inet_connection_sock_af_ops *calls = inet_csk(sk)->icsk_af_ops;

	if (calls->queue_xmit == fp_sent_xmit)
		inet_csk(sk)->icsk_af_ops = container_of(calls, struct fp_family, calls)->original;
	kfree(s->sents.slot);
}

/* Fills ack->tx_inflight and ack->lost for the newest packet that this ACK acknowledges. */
static void fp_sample(struct sock *sk, struct fp_socket *s)
{
	struct cc_ack *ack = &s->call.ack;
	const struct fp_sent *sent = NULL;

	if (s->sents.size)
		sent = fp_sent_find(&s->sents, (u32)tcp_sk(sk)->first_tx_mstamp, ack->last_end_seq);
	if (!sent) {
		cc_ring_sample(&s->ring, &s->call.conn, ack);
		return;
	}
	ack->tx_inflight = fp_sent_inflight(sent, ack->last_end_seq, s->call.conn.mss_bytes);
	ack->lost = s->call.conn.lost - sent->lost;
}

static void fp_tell_loss(struct sock *sk, struct fp_socket *s, const struct cc_event *event,
			 u32 sent_us)
{
	fp_begin(sk, s, FP_CALL_EVENT, CC_EVENT_LOST);
	if (FP_WANTS_DETAILS)
		s->call.conn.lost_age_us = (u32)s->call.conn.now_us - sent_us;
	fp_call_event(sk, s, event);
	s->call.conn.lost_age_us = 0;
}

/* CC_EVENT_LOST for every packet that was marked lost since the last call, as Google's kernel calls
 * skb_marked_lost(). */
static void fp_report_losses(struct sock *sk, struct fp_socket *s)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 lost = s->sents.lost_seen;
	struct sk_buff *skb;

	if (likely(tp->lost == lost))
		return;
	s->sents.lost_seen = tp->lost;
	if (!s->sents.size || !s->is_live)
		return;
	skb = tcp_rtx_queue_head(sk);
	skb_rbtree_walk_from(skb) {
		const struct tcp_skb_cb *packet = TCP_SKB_CB(skb);
		struct cc_event event = {.kind = CC_EVENT_LOST};
		struct fp_sent *sent;
		u32 i;

		if (lost == tp->lost)
			break;
		if ((packet->sacked & TCPCB_TAGBITS) != TCPCB_LOST)
			continue;
		sent = fp_sent_find(&s->sents, (u32)tcp_skb_timestamp_us(skb), packet->end_seq);
		if (!sent || sent->is_told)
			continue;
		sent->is_told = true;
		event.is_app_limited = packet->tx.is_app_limited;
		for (i = 1; i <= tcp_skb_pcount(skb) && lost != tp->lost; i++) {
			lost++;
			event.value = fp_sent_inflight(sent, packet->seq, tp->mss_cache) + i;
			event.packets = lost - sent->lost;
			fp_tell_loss(sk, s, &event, sent->sent_us);
		}
	}
}

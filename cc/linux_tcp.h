/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * linux_tcp.h - the Linux kernel's interface of TCP congestion controls, for files of the kernel
 * that run here unchanged: struct tcp_congestion_ops, the sockets that it is called with, and the
 * functions that such files share. Names and meanings are those of net/tcp.h, linux/tcp.h,
 * net/inet_connection_sock.h, net/sock.h and net/ipv4/tcp_cong.c, from Linux 4.9 to 7.3 and
 * Google's BBRv3 tree; text and layout are this project's. It must not know the contract:
 * linux_host.h fills the sockets and reads them.
 */
#ifndef FULLPIPE_CC_LINUX_TCP_H
#define FULLPIPE_CC_LINUX_TCP_H

#include "linux_base.h"

/* uapi/linux/tcp.h, enum tcp_ca_state */
enum tcp_ca_state {
	TCP_CA_Open,
	TCP_CA_Disorder,
	TCP_CA_CWR,
	TCP_CA_Recovery,
	TCP_CA_Loss,
};
#define TCPF_CA_Open (1 << TCP_CA_Open)
#define TCPF_CA_Disorder (1 << TCP_CA_Disorder)
#define TCPF_CA_CWR (1 << TCP_CA_CWR)
#define TCPF_CA_Recovery (1 << TCP_CA_Recovery)
#define TCPF_CA_Loss (1 << TCP_CA_Loss)

/* net/tcp.h. The last three are of kernels before 4.19 and of Google's tree. */
enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
	CA_EVENT_DELAYED_ACK,
	CA_EVENT_NON_DELAYED_ACK,
	CA_EVENT_TLP_RECOVERY,
};
enum tcp_ca_ack_event_flags {
	CA_ACK_SLOWPATH = 1 << 0,
	CA_ACK_WIN_UPDATE = 1 << 1,
	CA_ACK_ECE = 1 << 2,
};
#define TCP_CA_NAME_MAX 16
#define TCP_CA_MAX 128
#define TCP_CONG_NON_RESTRICTED BIT(0)
#define TCP_CONG_NEEDS_ECN BIT(1)
#define TCP_CONG_WANTS_CE_EVENTS BIT(2)
#define TCP_CONG_NEEDS_ACCECN BIT(2)
#define TCP_CONG_ECT_1_NEGOTIATION BIT(3)
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_INIT_CWND 10
#define TCP_TS_HZ 1000
#define TCP_MSS_DEFAULT 536u
#define TCP_MIN_MSS 88u
#define TCP_RTO_MAX ((unsigned int)(120 * HZ))
#define TCP_RTO_MIN ((unsigned int)(HZ / 5))
#define TCP_TIMEOUT_INIT ((unsigned int)(1 * HZ))
#define TCP_DELACK_MAX ((unsigned int)(HZ / 5))
#define TCP_DELACK_MIN ((unsigned int)(HZ / 25))
#define TCP_ATO_MIN ((unsigned int)(HZ / 25))
#define TCP_FASTRETRANS_THRESH 3
#define MAX_TCP_HEADER 320
#define MAX_TCP_WINDOW 32767u
#define TCP_MAX_QUICKACKS 16u
#define TCP_ECN_OK 1
#define TCP_ECN_MODE_RFC3168 TCP_ECN_OK
#define TCP_ECN_MODE_ACCECN 0
#define TCP_ECN_QUEUE_CWR 2
#define TCP_ECN_DEMAND_CWR 4
#define TCP_ECN_SEEN 8
#define TCP_ECN_LOW 16
#define TCP_ECN_ECT_PERMANENT 32
#define TCPHDR_CWR 0x80
#define TCPHDR_ECE 0x40
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT 2
#define TCP_SYN_RECV 3
#define TCP_CLOSE 7
#define TCP_LISTEN 10
#define TCPF_ESTABLISHED (1 << TCP_ESTABLISHED)
#define TCPF_CLOSE (1 << TCP_CLOSE)
#define TCPF_LISTEN (1 << TCP_LISTEN)

/* linux/sockptr.h, linux/socket.h, net/sock.h: applications set no options of a file's own. */
#define _LINUX_SOCKPTR_H
#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
typedef struct {
	void *user;
} sockptr_t;
struct sock;
struct proto {
	int (*setsockopt)(struct sock *sk, int level, int name, sockptr_t value,
			  unsigned int bytes);
	int (*getsockopt)(struct sock *sk, int level, int name, char *value, int *bytes);
};
static const struct proto tcp_prot;
static const struct proto tcpv6_prot;
static inline int copy_from_sockptr(void *to, sockptr_t from, size_t bytes)
{
	return (void)to, (void)from, (void)bytes, -EFAULT;
}

/* net/sock.h */
enum sk_pacing { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };
/* net/netns/ipv4.h: Linux's first values, which are the ones of a plan's hosts. */
struct net {
	struct {
		u8 sysctl_tcp_ecn, sysctl_tcp_min_tso_segs, sysctl_tcp_plb_enabled;
		u8 sysctl_tcp_slow_start_after_idle, sysctl_tcp_timestamps;
		int sysctl_tcp_pacing_ss_ratio, sysctl_tcp_pacing_ca_ratio;
	} ipv4;
};
static const struct net linux_net = {
    .ipv4 = {.sysctl_tcp_ecn = 2,
	     .sysctl_tcp_min_tso_segs = 2,
	     .sysctl_tcp_slow_start_after_idle = 1,
	     .sysctl_tcp_timestamps = 1,
	     .sysctl_tcp_pacing_ss_ratio = 200,
	     .sysctl_tcp_pacing_ca_ratio = 120},
};
#define init_net (*(struct net *)(unsigned long)&linux_net)
/* linux/in6.h */
struct in6_addr {
	u8 s6_addr[16];
};
/* What inet_csk_ca() points to: 13 words since 5.17. Google's tree of BBRv3 has 18, and a file for
 * it says so. */
#ifndef LINUX_PRIVATE_WORDS
#define LINUX_PRIVATE_WORDS 13
#endif
#define ICSK_CA_PRIV_SIZE (LINUX_PRIVATE_WORDS * sizeof(u64))
struct sock {
	/* First, where fullpipe's module has them too (module/linux/linux_tcp.h). */
	u64 linux_private[LINUX_PRIVATE_WORDS];
	u64 linux_mss;                /* get_info() computes with it */
	unsigned long sk_pacing_rate; /* bytes/s */
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status; /* enum sk_pacing */
	u32 sk_gso_max_size;
	u32 sk_gso_max_segs;
	u8 sk_pacing_shift;
	u8 sk_state;
	u16 sk_family;
	/* Logs print them: a plan's hosts have no addresses, so all are 0. */
	u16 sk_num;
	__be16 sk_dport;
	__be32 sk_daddr, sk_rcv_saddr;
	struct in6_addr sk_v6_daddr, sk_v6_rcv_saddr;
	struct proto *sk_prot;
};
#define GSO_LEGACY_MAX_SIZE 65536u
#define GSO_MAX_SIZE GSO_LEGACY_MAX_SIZE
#define GSO_MAX_SEGS 65535u

/* uapi/linux/inet_diag.h */
enum { INET_DIAG_VEGASINFO = 3, INET_DIAG_DCTCPINFO = 9, INET_DIAG_BBRINFO = 16 };
struct tcpvegas_info {
	__u32 tcpv_enabled, tcpv_rttcnt, tcpv_rtt, tcpv_minrtt;
};
struct tcp_dctcp_info {
	__u16 dctcp_enabled, dctcp_ce_state;
	__u32 dctcp_alpha, dctcp_ab_ecn, dctcp_ab_tot;
};
/* Google's tree adds what stands behind bbr_cwnd_gain. */
struct tcp_bbr_info {
	__u32 bbr_bw_lo, bbr_bw_hi, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain;
	__u32 bbr_bw_hi_lsb, bbr_bw_hi_msb, bbr_bw_lo_lsb, bbr_bw_lo_msb;
	__u8 bbr_mode, bbr_phase, unused1, bbr_version;
	__u32 bbr_inflight_lo, bbr_inflight_hi, bbr_extra_acked;
};
/* Of Google's v2 tree. */
struct tcp_bbr2_info {
	__u32 bbr_bw_lsb, bbr_bw_msb, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain;
	__u32 bbr_bw_hi_lsb, bbr_bw_hi_msb, bbr_bw_lo_lsb, bbr_bw_lo_msb;
	__u8 bbr_mode, bbr_phase, unused1, bbr_version;
	__u32 bbr_inflight_lo, bbr_inflight_hi, bbr_extra_acked;
};
#define LINUX_BBR_PHASES(prefix, tag)                                                              \
	enum tag {                                                                                 \
		prefix##_INVALID,                                                                  \
		prefix##_STARTUP,                                                                  \
		prefix##_DRAIN,                                                                    \
		prefix##_PROBE_RTT,                                                                \
		prefix##_PROBE_BW_UP,                                                              \
		prefix##_PROBE_BW_DOWN,                                                            \
		prefix##_PROBE_BW_CRUISE,                                                          \
		prefix##_PROBE_BW_REFILL,                                                          \
	}
LINUX_BBR_PHASES(BBR_PHASE, tcp_bbr_phase);
LINUX_BBR_PHASES(BBR2_PHASE, tcp_bbr2_phase);
union tcp_cc_info {
	struct tcpvegas_info vegas;
	struct tcp_dctcp_info dctcp;
	struct tcp_bbr_info bbr;
	struct tcp_bbr2_info bbr2;
};

/* linux/skbuff.h. Times of packets are in us; from 4.9 to 4.12 they were this union. The importing
 * file says so (LINUX_SKB_MSTAMP). */
struct skb_mstamp {
	union {
		u64 v64;
		struct {
			u32 stamp_us, stamp_jiffies;
		};
	};
};
#ifdef LINUX_SKB_MSTAMP
typedef struct skb_mstamp linux_stamp;
#define LINUX_STAMP(us)                                                                            \
	((struct skb_mstamp){.stamp_us = (u32)(us), .stamp_jiffies = (u32)LINUX_TICKS((us)*1000)})
#else
typedef u64 linux_stamp;
#define LINUX_STAMP(us) (us)
#endif

/* net/tcp.h */
struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight; /* bytes */
};
struct rate_sample {
	linux_stamp prior_mstamp;
	u32 prior_lost, prior_delivered, prior_delivered_ce, tx_in_flight;
	s32 lost, delivered, delivered_ce;
	long interval_us;
	u32 snd_interval_us, rcv_interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked, prior_in_flight, last_end_seq;
	bool is_app_limited, is_retrans, is_ack_delayed, is_acking_tlp_retrans_seq, is_ece;
};

/* linux/skbuff.h, net/tcp.h: a packet is seen only where Google's kernels report its loss. */
struct tcp_skb_cb {
	u32 seq, end_seq;
	u8 sacked, tcp_flags;
	struct {
		u32 delivered, delivered_ce, lost, in_flight;
		bool is_app_limited;
		linux_stamp first_tx_mstamp, delivered_mstamp;
	} tx;
};
struct sk_buff {
	struct tcp_skb_cb cb;
	u32 len;
};
#define TCP_SKB_CB(skb) ((struct tcp_skb_cb *)(unsigned long)&(skb)->cb)
#define tcp_skb_pcount(skb) 1

/* Members whose type changed from kernel to kernel are without one: the importing file knows what
 * its functions take (linux_host.h). */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*cwnd_event_tx_start)(struct sock *sk);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void *pkts_acked;
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*tso_segs)(struct sock *sk, unsigned int mss_now);
	u32 (*tso_segs_goal)(struct sock *sk); /* before 4.18 */
	void (*skb_marked_lost)(struct sock *sk, const struct sk_buff *skb);
	void *cong_control;
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	void *get_info;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[TCP_CA_NAME_MAX];
	struct module *owner;
	u32 flags;
	u32 key;
};

/* linux/tcp.h, net/inet_connection_sock.h. Every field is filled by linux_host.h or belongs to the
 * file; a field that a host of the contract cannot know is left out, and a file that needs it does
 * not compile. */
struct inet_connection_sock {
	union { /* first, so that pointers convert */
		struct sock sk;
		u64 icsk_ca_priv[LINUX_PRIVATE_WORDS];
	};
	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state;
	u8 icsk_ca_initialized;
	struct {
		u8 pending; /* what the receiving end, which is the host's, would send */
	} icsk_ack;
};
struct tcp_options_received {
	u32 rcv_tsval, rcv_tsecr;
	u16 saw_tstamp : 1, tstamp_ok : 1;
};
struct tcp_sock {
	struct inet_connection_sock inet_conn; /* first, so that pointers convert */
	linux_stamp tcp_mstamp, delivered_mstamp, first_tx_mstamp;
	u64 tcp_clock_cache, tcp_wstamp_ns;
	u64 bytes_acked;
	u32 snd_cwnd, snd_ssthresh, snd_cwnd_cnt, snd_cwnd_clamp;
	u32 prior_cwnd, prior_ssthresh, high_seq, reordering;
	u32 packets_out, sacked_out, lost_out, retrans_out, max_packets_out;
	u32 delivered, delivered_ce, lost, app_limited;
	u32 snd_una, snd_nxt, rcv_nxt, write_seq;
	u32 mss_cache, advmss, lsndtime;
	u32 srtt_us; /* in 1/8 us */
	u32 mdev_us; /* in 1/4 us */
	struct minmax rtt_min;
	struct tcp_options_received rx_opt;
	u8 ecn_flags;
	u32 reord_seen;     /* whether reordering was seen, not how often */
	u32 linux_sack_end; /* end of what the newest packet that was acknowledged carried */
	u8 fast_ack_mode;   /* Google's: asks the receiving end, which is the host's */
	bool is_cwnd_limited, tlp_orig_data_app_limited;
	bool is_sack_reneg;        /* receivers of a plan renege nothing */
	struct sk_buff linux_head; /* see tcp_send_head() */
	bool linux_wants_cwr;      /* the file called tcp_enter_cwr() */
};

#define tcp_sk(socket) ((struct tcp_sock *)(socket))
#define inet_csk(socket) ((struct inet_connection_sock *)(socket))
static inline void *inet_csk_ca(const struct sock *sk)
{
	return (void *)(unsigned long)sk->linux_private;
}
#define sock_net(sk) ((void)(sk), &init_net)
#define read_pnet(net) (&init_net)
#define sock_owned_by_me(sk) ((void)(sk))
#define lockdep_sock_is_held(sk) ((void)(sk), 1)
#define lock_sock(sk) ((void)(sk), might_sleep())
#define release_sock(sk) ((void)(sk))
#define bh_lock_sock(sk) ((void)(sk))
#define bh_unlock_sock(sk) ((void)(sk))
#define sk_pacing_shift_update(sk, shift) ((sk)->sk_pacing_shift = (u8)(shift))

/* net/ip.h, net/tcp.h, uapi/linux/snmp.h: there are no counters. */
#define NET_INC_STATS(net, counter) ((void)(net))
#define __NET_INC_STATS(net, counter) ((void)(net))
#define NET_INC_STATS_BH(net, counter) ((void)(net))
#define NET_ADD_STATS(net, counter, value) ((void)(net), (void)(value))
#define NET_ADD_STATS_BH(net, counter, value) ((void)(net), (void)(value))
#define TCP_INC_STATS(net, counter) ((void)(net))

/* linux/byteorder/generic.h, net/inet_sock.h, linux/inet.h, net/sock.h: what logs are made of. */
#define htons(x) __builtin_bswap16(x)
#define ntohs(x) __builtin_bswap16(x)
#define htonl(x) __builtin_bswap32(x)
#define ntohl(x) __builtin_bswap32(x)
#define INET_ADDRSTRLEN 16
#define INET6_ADDRSTRLEN 48
struct inet_sock {
	__be32 inet_daddr, inet_saddr, inet_rcv_saddr;
	__be16 inet_dport, inet_sport;
	u16 inet_num;
};
static const struct inet_sock linux_inet;
#define inet_sk(sk) ((void)(sk), (struct inet_sock *)(unsigned long)&linux_inet)
static inline bool ipv4_is_loopback(__be32 address) { return address == 0x7f; }
enum sock_flags { SOCK_DEAD, SOCK_DBG };
static inline bool sock_flag(const struct sock *sk, enum sock_flags flag)
{
	return (void)sk, (void)flag, false;
}

/* net/tcp.h */
#define before(a, b) cc_before(a, b)
#define after(a, b) cc_after(a, b)
#define between(a, low, high) ((high) - (low) >= (a) - (low))
#define tcp_jiffies32 ((u32)jiffies)
#define tcp_clock_ns() ktime_get_ns()
#define tcp_clock_us() (ktime_get_ns() / 1000)
#define tcp_clock_ms() (ktime_get_ns() / 1000000)
#define tcp_stamp_us_delta(later, earlier) ((u32)max_t(s64, (s64)((later) - (earlier)), 0))
#define tcp_stamp32_us_delta(later, earlier) ((u32)max_t(s32, (s32)((later) - (earlier)), 0))
#define tcp_time_stamp_ms(tp) ((u32)((tp)->tcp_mstamp / 1000))
#define tcp_time_stamp_ts(tp) tcp_time_stamp_ms(tp)
#define tcp_time_stamp_raw() ((u32)(ktime_get_ns() / 1000000))
/* Before 4.13 a variable, from then on a function. */
static u32 tcp_time_stamp;
#define tcp_time_stamp(tp) tcp_time_stamp_ms(tp)
#define skb_mstamp_get(stamp) (*(stamp) = linux_stamp_now())
#define skb_mstamp_us_delta(later, earlier) ((later)->stamp_us - (earlier)->stamp_us)
static inline struct skb_mstamp linux_stamp_now(void)
{
	return (struct skb_mstamp){.stamp_us = (u32)tcp_clock_us(), .stamp_jiffies = (u32)jiffies};
}
#define tcp_mstamp_refresh(tp) ((void)(tp))

static inline u32 tcp_snd_cwnd(const struct tcp_sock *tp) { return tp->snd_cwnd; }
static inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 cwnd) { tp->snd_cwnd = cwnd; }
static inline unsigned int tcp_left_out(const struct tcp_sock *tp)
{
	return tp->sacked_out + tp->lost_out;
}
static inline unsigned int tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tcp_left_out(tp) + tp->retrans_out;
}
static inline bool tcp_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}
static inline bool tcp_in_initial_slowstart(const struct tcp_sock *tp)
{
	return tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH;
}
static inline bool tcp_is_cwnd_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tp->is_cwnd_limited)
		return true;
	return tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}
static inline bool tcp_in_cwnd_reduction(const struct sock *sk)
{
	return (TCPF_CA_CWR | TCPF_CA_Recovery) & (1 << inet_csk(sk)->icsk_ca_state);
}
static inline u32 tcp_current_ssthresh(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tcp_in_cwnd_reduction(sk))
		return tp->snd_ssthresh;
	return max(tp->snd_ssthresh, (tp->snd_cwnd >> 1) + (tp->snd_cwnd >> 2));
}
/* With cong_control(), whose samples name that packet. */
static inline u32 tcp_highest_sack_seq(const struct tcp_sock *tp)
{
	return tp->sacked_out && after(tp->linux_sack_end, tp->snd_una) ? tp->linux_sack_end
									: tp->snd_una;
}
static inline u32 tcp_min_rtt(const struct tcp_sock *tp) { return minmax_get(&tp->rtt_min); }
static inline bool tcp_is_sack(const struct tcp_sock *tp) { return (void)tp, true; }
static inline bool tcp_is_reno(const struct tcp_sock *tp) { return (void)tp, false; }
static inline bool tcp_ecn_mode_any(const struct tcp_sock *tp)
{
	return tp->ecn_flags & TCP_ECN_OK;
}
static inline bool tcp_ecn_mode_rfc3168(const struct tcp_sock *tp) { return tcp_ecn_mode_any(tp); }
static inline bool tcp_ecn_mode_accecn(const struct tcp_sock *tp) { return (void)tp, false; }
/* Google's: a warning's condition. */
static inline bool tcp_skb_tx_in_flight_is_suspicious(u32 packets, u8 sacked, u32 in_flight)
{
	return (void)sacked, in_flight < packets;
}
static inline bool tcp_needs_internal_pacing(const struct sock *sk)
{
	return sk->sk_pacing_status == SK_PACING_NEEDED;
}
static inline bool tcp_ca_needs_ecn(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_ops->flags & TCP_CONG_NEEDS_ECN;
}
static inline void tcp_set_ca_state(struct sock *sk, const u8 state)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	if (icsk->icsk_ca_ops->set_state)
		icsk->icsk_ca_ops->set_state(sk, state);
	icsk->icsk_ca_state = state;
}
/* The host enters CWR when the call has ended: ssthresh() is asked then. */
static inline void tcp_enter_cwr(struct sock *sk)
{
	if (inet_csk(sk)->icsk_ca_state < TCP_CA_CWR)
		tcp_sk(sk)->linux_wants_cwr = true;
}
/* net/inet_connection_sock.h, net/tcp.h: DCTCP's echoes, which the host sends (CC_ECHOES_CE). */
enum {
	ICSK_ACK_SCHED = 1,
	ICSK_ACK_TIMER = 2,
	ICSK_ACK_PUSHED = 4,
	ICSK_ACK_PUSHED2 = 8,
	ICSK_ACK_NOW = 16,
};
#define __tcp_send_ack(sk, ...) ((void)(sk))
static inline void tcp_send_ack(struct sock *sk) { (void)sk; }
static inline void tcp_enter_quickack_mode(struct sock *sk, unsigned int most)
{
	(void)sk, (void)most;
}
#define INET_ECN_xmit(sk) ((void)(sk))
#define INET_ECN_dontxmit(sk) ((void)(sk))
/* net/ipv4/tcp_output.c: packets of about a millisecond at the pacing rate. */
static inline u32 tcp_tso_autosize(const struct sock *sk, unsigned int mss, int least)
{
	u64 bytes = min_t(u64, sk->sk_pacing_rate >> sk->sk_pacing_shift, sk->sk_gso_max_size);

	return min_t(u32, max_t(u32, (u32)(bytes / mss), (u32)least), sk->sk_gso_max_segs);
}
/* Headers: IPv4, TCP, timestamps. */
static inline int tcp_mss_to_mtu(struct sock *sk, int mss) { return (void)sk, mss + 20 + 20 + 12; }
static inline int tcp_mtu_to_mss(struct sock *sk, int mtu) { return (void)sk, mtu - 20 - 20 - 12; }
/* The receive window is the host's: it does not bind. */
static inline u32 tcp_wnd_end(const struct tcp_sock *tp) { return tp->snd_nxt + (1u << 30); }
static inline bool tcp_snd_wnd_test(const struct tcp_sock *tp, const struct sk_buff *skb,
				    unsigned int mss)
{
	return (void)tp, (void)skb, (void)mss, true;
}
/* What is written and not sent, as one packet. */
static inline struct sk_buff *tcp_send_head(const struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 bytes = tp->write_seq - tp->snd_nxt;

	tp->linux_head = (struct sk_buff){
	    .cb = {.seq = tp->snd_nxt, .end_seq = tp->write_seq},
	    .len = bytes,
	};
	return bytes ? &tp->linux_head : NULL;
}
static inline int tcp_call_bpf(struct sock *sk, int op, u32 count, u32 *args)
{
	return (void)sk, (void)op, (void)count, (void)args, -EPERM;
}
/* net/tcp_plb.h: another path for a congested flow (PLB). The network of a plan has one. */
#define TCP_PLB_SCALE 8
struct tcp_plb_state {
	u8 consec_cong_rounds : 5, unused : 3;
	u32 pause_until;
};
static inline void tcp_plb_init(const struct sock *sk, struct tcp_plb_state *plb)
{
	(void)sk, (void)plb;
}
static inline void tcp_plb_update_state(const struct sock *sk, struct tcp_plb_state *plb, int ratio)
{
	(void)sk, (void)plb, (void)ratio;
}
static inline void tcp_plb_check_rehash(struct sock *sk, struct tcp_plb_state *plb)
{
	(void)sk, (void)plb;
}
static inline void tcp_plb_update_state_upon_rto(struct sock *sk, struct tcp_plb_state *plb)
{
	(void)sk, (void)plb;
}
#define BPF_SOCK_OPS_BASE_RTT 7
#define tcp_bpf_get_base_rtt(sk) tcp_call_bpf(sk, BPF_SOCK_OPS_BASE_RTT, 0, NULL)

/* net/ipv4/tcp_cong.c. tcp_cong.c itself has them, and brings its own. */
#ifndef LINUX_HAS_RENO
static inline u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 cwnd = min(tp->snd_cwnd + acked, tp->snd_ssthresh);

	acked -= cwnd - tp->snd_cwnd;
	tcp_snd_cwnd_set(tp, min(cwnd, tp->snd_cwnd_clamp));
	return acked;
}
static inline void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 per, u32 acked)
{
	/* Credits gathered at a larger `per` are spent first. */
	if (tp->snd_cwnd_cnt >= per) {
		tp->snd_cwnd_cnt = 0;
		tcp_snd_cwnd_set(tp, tp->snd_cwnd + 1);
	}
	tp->snd_cwnd_cnt += acked;
	if (tp->snd_cwnd_cnt >= per) {
		u32 grow = tp->snd_cwnd_cnt / per;

		tp->snd_cwnd_cnt -= grow * per;
		tcp_snd_cwnd_set(tp, tp->snd_cwnd + grow);
	}
	tcp_snd_cwnd_set(tp, min(tp->snd_cwnd, tp->snd_cwnd_clamp));
}
static __attribute__((unused)) void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	(void)ack;
	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}
static __attribute__((unused)) u32 tcp_reno_ssthresh(struct sock *sk)
{
	return max(tcp_sk(sk)->snd_cwnd >> 1, 2u);
}
static __attribute__((unused)) u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return max(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->prior_cwnd);
}

/* The one that the file registers, or the last of them, is the socket's. */
static const struct tcp_congestion_ops *linux_registered;

static inline int tcp_register_congestion_control(struct tcp_congestion_ops *ops)
{
	linux_registered = ops;
	return 0;
}
#define tcp_unregister_congestion_control(ops) ((void)(ops))
#endif

#endif

"""Files in the kernel's form for tests, all of them this project's own."""

from __future__ import annotations

from pathlib import Path

#: Reno, with its own growth and a reduction that a module parameter sets.
PLAIN = r"""
#include <linux/module.h>
#include <net/tcp.h>

#define HALF (1024 / 2)

static int keep __read_mostly = HALF;
module_param(keep, int, 0644);
MODULE_PARM_DESC(keep, "what a reduction leaves, "
			"of 1024");
static int shift __read_mostly;	/* from the module's start */

static u32 plain_ssthresh(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return max((u32)((u64)tcp_snd_cwnd(tp) * keep >> shift), 2U);
}

static void plain_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked);
}

static struct tcp_congestion_ops plain __read_mostly = {
	.ssthresh	= plain_ssthresh,
	.cong_avoid	= plain_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "plain",
};

static int __init plain_register(void)
{
	BUILD_BUG_ON(HALF != 512);
	shift = ilog2(2 * HALF);
	pr_info("plain: keeps %d\n", keep);
	return tcp_register_congestion_control(&plain);
}

static void __exit plain_unregister(void)
{
	tcp_unregister_congestion_control(&plain);
}

module_init(plain_register);
module_exit(plain_unregister);

MODULE_LICENSE("GPL");
"""

#: Sends at a rate of its own from every ACK. @ stands for the arguments of cong_control.
RATED = r"""
#include <linux/module.h>
#include <linux/random.h>
#include <net/tcp.h>

struct rated {
	struct minmax bw;	/* bytes/s in 1/1024 */
	u32 end;
	u32 rounds;
};

static void rated_init(struct sock *sk)
{
	struct rated *r = inet_csk_ca(sk);

	minmax_reset(&r->bw, 0, 1);
	r->end = 0;
	r->rounds = 0;
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

static void rated_main(@)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct rated *r = inet_csk_ca(sk);

	if (rs->interval_us <= 0 || rs->delivered < 0)
		return;
	if (!before(rs->prior_delivered, r->end)) {
		r->end = tp->delivered;
		r->rounds++;
	}
	minmax_running_max(&r->bw, 10, r->rounds,
				div64_long((u64)rs->delivered * tp->mss_cache * 1000, rs->interval_us));
	sk->sk_pacing_rate = (u64)minmax_get(&r->bw) * 1000 * (r->rounds < 8 ? 2 : 1);
	tcp_snd_cwnd_set(tp, max_t(u32, 4, div_u64((u64)minmax_get(&r->bw) * tcp_min_rtt(tp),
							500 * tp->mss_cache)));
}

static u32 rated_ssthresh(struct sock *sk)
{
	return TCP_INFINITE_SSTHRESH;
}

static u32 rated_undo(struct sock *sk)
{
	return tcp_snd_cwnd(tcp_sk(sk));
}

static struct tcp_congestion_ops rated __read_mostly = {
	.flags = TCP_CONG_NON_RESTRICTED,
	.init = rated_init,
	.ssthresh = rated_ssthresh,
	.undo_cwnd = rated_undo,
	.cong_control = rated_main,
	.name = "rated",
};

static int __init rated_register(void)
{
	return tcp_register_congestion_control(&rated);
}
module_init(rated_register);
"""
#: Takes its reduction from PLAIN's file, as the kernel's tcp_yeah.c does from tcp_vegas.c.
USER = r"""
#include <net/tcp.h>
#include "tcp_plain.h"

static struct tcp_congestion_ops user = {
	.ssthresh = plain_ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.name = "user",
};

static int __init user_register(void)
{
	return tcp_register_congestion_control(&user);
}
module_init(user_register);
"""
#: PLAIN as files of other kernels write parts of it, each with what stands for a text of PLAIN:
#: they leave what it does unchanged.
DIALECTS = {
    "its own copy of a function that a kernel keeps to itself": (
        "static u32 plain_ssthresh",
        """static bool
tcp_snd_wnd_test(const struct tcp_sock *tp, const struct sk_buff *skb, u32 mss)
{
	return !after(TCP_SKB_CB(skb)->end_seq, tcp_wnd_end(tp)) && mss;
}
static u32 tcp_reno_ssthresh(struct sock *sk)
{
	struct sk_buff *skb = tcp_send_head(sk);

	return skb && tcp_snd_wnd_test(tcp_sk(sk), skb, tcp_sk(sk)->mss_cache) ? 7 : 8;
}
static u32 plain_ssthresh""",
    ),
    "a parameter whose first value shifts": (
        "static int keep __read_mostly = HALF;", "static int keep __read_mostly = 1 << 9;",
    ),
    "debugging that prints addresses": (
        "\tif (!tcp_is_cwnd_limited(sk))\n",
        """	char text[64];

	if (sock_flag(sk, SOCK_DBG) || ipv4_is_loopback(inet_sk(sk)->inet_daddr)) {
		snprintf(text, sizeof(text), "%pI4:%u", &inet_sk(sk)->inet_daddr, sk->sk_num);
		trace_printk("%s\\n", text);
		return;
	}
	if (ntohs(inet_sk(sk)->inet_dport) || sock_net(sk)->ipv4.sysctl_tcp_min_tso_segs != 2)
		return;
	if (!tcp_is_cwnd_limited(sk))
""",
    ),
    "lists of functions for BPF, of 5.16 and of 5.18": (
        "static int __init plain_register",
        """BTF_SET8_START(plain_ids)
BTF_ID_FLAGS(func, plain_ssthresh)
BTF_SET8_END(plain_ids)

static const struct btf_kfunc_id_set plain_set = {
	.owner = THIS_MODULE,
	.set = &plain_ids,
};
static DEFINE_KFUNC_BTF_ID_SET(&plain_ids, plain_older_set);

static int __init plain_register""",
    ),
}  # fmt: skip
#: RATED with the times of packets that kernels from 4.9 to 4.12 have.
STAMPS_4_9 = {
    "u32 rounds;": "u32 rounds;\n\tstruct skb_mstamp last;",
    "if (rs->interval_us": """if (skb_mstamp_us_delta(&tp->delivered_mstamp, &r->last) > 9)
		r->last.v64 = 0;
	r->last = tp->delivered_mstamp;
	if (r->last.stamp_jiffies - tcp_time_stamp > 1 && tp->delivered_mstamp.stamp_us)
		return;
	if (rs->interval_us""",
}
CONTROL_4_9 = "struct sock *sk, const struct rate_sample *rs"
CONTROL_6_10 = "struct sock *sk, u32 ack, int flag, const struct rate_sample *rs"


def plain(folder: Path, old: str = "", new: str = "") -> Path:
    """tcp_plain.c in a folder, with a text replaced."""
    assert old in PLAIN
    return write(folder, "plain", PLAIN.replace(old, new, 1))


def write(folder: Path, name: str, text: str) -> Path:
    """tcp_NAME.c in a folder."""
    path = folder / f"tcp_{name}.c"
    path.write_text(text, encoding="utf-8")
    return path

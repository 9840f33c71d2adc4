/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* host.c - what the glue needs of a module: state of sockets, constants, counters, the log of
 * calls. glue.h includes it where its struct fp_socket is known. */
#if FP_WANTS_RING
/* In sent.c. */
static void fp_follow(struct sock *sk, struct fp_socket *s);
static void fp_unfollow(struct sock *sk, struct fp_socket *s);
static void fp_sample(struct sock *sk, struct fp_socket *s);
static void fp_report_losses(struct sock *sk, struct fp_socket *s);
#else
#define fp_follow(sk, s)
#define fp_unfollow(sk, s)
#define fp_report_losses(sk, s)
#endif

static __always_inline struct fp_socket *fp_find(struct sock *sk) { return *fp_socket_place(sk); }

/* The kernel clears icsk_ca_priv before init. */
static __always_inline struct fp_socket *fp_make(struct sock *sk)
{
	struct fp_socket *s = fp_find(sk);

	if (s)
		return s;
	s = kzalloc(sizeof(*s), GFP_ATOMIC | __GFP_NOWARN);
	if (!s)
		return NULL;
	s->variant = fp_variant_of(sk);
	WRITE_ONCE(*fp_socket_place(sk), s);
	fp_follow(sk, s);
	return s;
}

/* ss may be reading it (fp_get_info()). */
static __always_inline void fp_drop(struct sock *sk)
{
	struct fp_socket *s = fp_find(sk);

	WRITE_ONCE(*fp_socket_place(sk), NULL);
	fp_unfollow(sk, s);
	kfree_rcu(s, rcu);
}

static __always_inline const struct FP_CC(_params) * fp_parameters(const struct fp_socket *s)
{
	return (const void *)s->variant->params;
}

/* The calls that its constants do without are not registered (core.c). */
#define fp_wants(flag) ((FP_FLAGS) & (flag))
#define fp_counts(s) (&(s)->variant->counts)
#define fp_is_traced(s) ((s)->variant->log != NULL)
#define fp_tick_us() (USEC_PER_SEC / HZ)
#define fp_jiffies() tcp_jiffies32
#define fp_random() get_random_u32()
#define fp_put_call(s) (!fp_log_put((s)->variant->log, &(s)->call))
/* Only the eBPF verifier asks for it. */
#define fp_keep(value)
#define fp_rate_sample(context) ((const struct rate_sample *)*(context + 1))

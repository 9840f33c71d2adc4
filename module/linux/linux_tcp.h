/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * linux_tcp.h - where a file of the kernel's net/ipv4 meets the kernel's TCP, and must meet this
 * module first: it registers here, its state is part of the module's, and CWR begins when its call
 * is over, as in the simulator. It stands in a package for cc/linux_tcp.h. It must not know which
 * file it is.
 */
#ifndef FULLPIPE_MODULE_LINUX_TCP_H
#define FULLPIPE_MODULE_LINUX_TCP_H

#include "linux_base.h"

/* As in cc/linux_tcp.h. */
#ifndef LINUX_PRIVATE_WORDS
#define LINUX_PRIVATE_WORDS 13
#endif

struct linux_call {
	struct sock *sk;
	const void *sample; /* struct rate_sample or ack_sample */
	u32 ack;
	int flag;
};

/* Of a connection, where struct fp_socket begins. */
struct linux_socket {
	/* What user space reads, as struct sock of cc/linux_tcp.h begins: the file's own, then the
	 * MSS. */
	u64 words[LINUX_PRIVATE_WORDS];
	u64 mss;
	struct linux_call call;
	u64 random;
	bool wants_cwr;
};

/* What get_info() reads of a connection that has just ended. */
static const u64 linux_nothing[LINUX_PRIVATE_WORDS];

static __maybe_unused void *linux_state(const struct sock *sk)
{
	void *state = READ_ONCE(*fp_socket_place(sk));

	return state ? state : (void *)linux_nothing;
}
#define inet_csk_ca(sk) linux_state(sk)
#undef ICSK_CA_PRIV_SIZE
#define ICSK_CA_PRIV_SIZE (LINUX_PRIVATE_WORDS * sizeof(u64))

static __maybe_unused void linux_want_cwr(struct sock *sk)
{
	struct linux_socket *s = *fp_socket_place(sk);

	if (s)
		s->wants_cwr = true;
}
#define tcp_enter_cwr(sk) linux_want_cwr(sk)

/* The one that the file registers, or the last of them, is the socket's. */
static const struct tcp_congestion_ops *linux_registered;

static int linux_register(const struct tcp_congestion_ops *ops)
{
	linux_registered = ops;
	return 0;
}
#define tcp_register_congestion_control(ops) linux_register(ops)
#define tcp_unregister_congestion_control(ops) ((void)(ops))

#endif

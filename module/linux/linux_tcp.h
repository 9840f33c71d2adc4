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
#define FP_LINUX_WORDS_MOST 18
_Static_assert(LINUX_PRIVATE_WORDS <= FP_LINUX_WORDS_MOST, "fp_linux_state() has too few zeros");

struct linux_call {
	struct sock *sk;
	const void *sample; /* struct rate_sample or ack_sample */
	u32 ack;
	int flag;
};

/* Of a connection, behind the file's own. */
struct linux_rest {
	u64 mss; /* user space reads it */
	struct linux_call call;
	u64 random;
	bool wants_cwr;
};

/* Of a connection, where struct fp_socket begins: what user space reads, as struct sock of
 * cc/linux_tcp.h begins. */
struct linux_socket {
	u64 words[LINUX_PRIVATE_WORDS];
	struct linux_rest rest;
};

/* Of a connection that has just ended get_info() reads zeros. */
void *fp_linux_state(const struct sock *sk);
#define inet_csk_ca(sk) fp_linux_state(sk)
#undef ICSK_CA_PRIV_SIZE
#define ICSK_CA_PRIV_SIZE (LINUX_PRIVATE_WORDS * sizeof(u64))

#define tcp_enter_cwr(sk)                                                                          \
	({                                                                                         \
		struct linux_socket *socket_ = *fp_socket_place(sk);                               \
                                                                                                   \
		if (socket_)                                                                       \
			socket_->rest.wants_cwr = true;                                            \
	})

/* The one that the file registers, or the last of them, is the socket's. */
static const struct tcp_congestion_ops *linux_registered __maybe_unused;
#define tcp_register_congestion_control(ops)                                                       \
	({                                                                                         \
		linux_registered = (ops);                                                          \
		0;                                                                                 \
	})
#define tcp_unregister_congestion_control(ops) ((void)(ops))

#endif

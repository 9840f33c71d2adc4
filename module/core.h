/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* core.h - what the module's core (core.c) knows of its algorithms, and they of it. */
#ifndef FULLPIPE_MODULE_CORE_H
#define FULLPIPE_MODULE_CORE_H

#include "kernel.h"
#include "../cc/cc_more.h"
#include "../cc/state.h"

struct fp_param {
	const char *name;
	u32 min, max, scale;
	u32 origin; /* what 0 is stored as */
};

/* An algorithm of the package. */
struct fp_algorithm {
	const char *name; /* as the front end names it */
	const struct tcp_congestion_ops *ops;
	const struct fp_param *params;
	u32 param_count;
	u32 flags;
	u32 (*flags_of)(const u32 *params); /* that hold with these constants (flags.h) */
	u32 state_bytes;
	u32 call_bytes;   /* of a call in the trace */
	bool has_one_set; /* its constants are variables of its file, which all sockets share */
};

/* A set of constants that the package registers by itself. */
struct fp_set {
	const char *kernel_name;
	const struct fp_algorithm *algorithm;
	const u32 *params;
};

/* Where the module's parameter of a set is kept. */
struct fp_place {
	const struct fp_param *about;
	u32 *value;
};

extern const struct kernel_param_ops fp_param_ops;

/* They are read when the module begins, and then do not change: a trace names an algorithm's
 * constants once. */
#define FP_MODULE_PARAM(name, place, text)                                                         \
	module_param_cb(name, &fp_param_ops, (void *)&place, 0444);                                \
	MODULE_PARM_DESC(name, text)

struct fp_counts {
	u32 live;       /* sockets that use it now */
	u32 opened;     /* sockets that ever used it */
	u32 trace_lost; /* calls that found the log full */
	u32 seed;       /* of the algorithm's random numbers; 0: the kernel's */
};

/* Calls that user space has not read yet. */
struct fp_log {
	spinlock_t lock;
	u32 call_bytes;
	u32 most;  /* calls that fit */
	u32 first; /* the oldest one, wraps */
	u32 next;
	u8 calls[];
};

/* One sending of a packet, of one or more segments. */
struct fp_sent {
	u32 sent_us; /* low bits of the clock */
	u32 seq, end_seq;
	u32 inflight; /* before it */
	u32 lost;     /* of the connection, till then */
	bool is_told; /* its loss */
};

/* Those of a socket (sent.c). */
struct fp_sents {
	struct fp_sent *slot;
	u32 size;      /* a power of two; 0: none are kept */
	u32 count;     /* ever kept, wraps */
	u32 lost_seen; /* tp->lost at the last look */
};

typedef int fp_xmit(struct sock *, struct sk_buff *, struct flowi *);

/* An address family's operations with one of ours among them. They stay as long as the module: a
 * socket's are read without its lock. */
struct fp_family {
	const struct inet_connection_sock_af_ops *original;
	struct inet_connection_sock_af_ops calls;
};

/* NULL: there are more families than places. */
const struct fp_family *fp_family_of(const struct inet_connection_sock_af_ops *original,
				     fp_xmit *queue_xmit);

/* Judge losses by the ring of snapshots, as eBPF has to. */
extern bool fp_uses_ring;

/* An algorithm with constants under a name. Sockets keep pointing to it, also those that never
 * connect, so it stays until the module goes. */
struct fp_variant {
	struct tcp_congestion_ops ops;
	const struct fp_algorithm *algorithm;
	struct fp_log *log; /* NULL: nobody traces */
	struct fp_counts counts;
	struct list_head others;
	bool is_registered;
	u32 params[];
};

/* False: there was no room. */
bool fp_log_put(struct fp_log *log, const void *call);

#define fp_variant_of(sk)                                                                          \
	((struct fp_variant *)container_of(inet_csk(sk)->icsk_ca_ops, struct fp_variant, ops))

/* The socket's state, with which its struct fp_socket begins; NULL: not ours, or not begun. Not by
 * inet_csk_ca(), which is another in a file of the kernel (linux/linux_tcp.h). */
#define fp_socket_place(sk) ((void **)inet_csk(sk)->icsk_ca_priv)

#endif

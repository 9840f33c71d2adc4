/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * linux_host.h - a file of the kernel's net/ipv4 as an algorithm of cc.h in the kernel itself: each
 * call of the contract becomes the call of the file's struct tcp_congestion_ops that TCP made, with
 * the arguments that TCP gave (ops.c hands them over), on the socket itself. The glue logs what TCP
 * knew before it and what the socket holds after it; cc/linux_host.h, for which this stands in a
 * package, must give the same from the same facts. It must not know which file it carries.
 */
#ifndef FULLPIPE_MODULE_LINUX_HOST_H
#define FULLPIPE_MODULE_LINUX_HOST_H

#include "cc_more.h"
#include "state.h"
#include "linux_tcp.h"

#define LINUX_FILE

/* The calls, in kernel_file.c. */
void fp_linux_init(const struct tcp_congestion_ops *ops, struct linux_rest *s,
		   const struct cc_conn *conn, struct cc_ctl *ctl);
void fp_linux_on_ack(const struct tcp_congestion_ops *ops, struct linux_rest *s,
		     const struct cc_ack *ack, struct cc_ctl *ctl);
void fp_linux_on_event(const struct tcp_congestion_ops *ops, struct linux_rest *s,
		       const struct cc_event *event, struct cc_ctl *ctl);
void fp_linux_cwnd_event(const struct tcp_congestion_ops *ops, struct sock *sk,
			 enum tcp_ca_event event);

/* As cc/linux_host.h has them. */
#define linux_init(s, conn, ctl) fp_linux_init(linux_registered, &(s)->rest, conn, ctl)
#define linux_on_ack(s, conn, ack, ctl) fp_linux_on_ack(linux_registered, &(s)->rest, ack, ctl)
#define linux_on_event(s, conn, event, ctl)                                                        \
	fp_linux_on_event(linux_registered, &(s)->rest, event, ctl)
/* `ss -i` asks the file itself (ops.c). */
#define linux_info(s, info) ((void)(s), (void)(info))

#endif

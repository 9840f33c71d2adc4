/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* kernel.h - the kernel's own headers for the glue (bpf/glue.h) as part of a module, and what
 * differs between kernels 6.1 and later. It must not know an algorithm. */
#ifndef FULLPIPE_MODULE_KERNEL_H
#define FULLPIPE_MODULE_KERNEL_H

#include <linux/inet_diag.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <net/tcp.h>

#ifndef CONFIG_64BIT
#error "fullpipe_cc divides 64-bit numbers as only 64-bit kernels can"
#endif

#define CC_HAVE_TYPES
#define FP_HOST_FIELDS                                                                             \
	struct fp_variant *variant;                                                                \
	struct fp_sents sents;                                                                     \
	struct rcu_head rcu;
#define FP_ENTRY static __maybe_unused
#define BPF_CORE_READ_BITFIELD(from, field) ((from)->field)

/* Accurate ECN, since 6.18. */
#ifdef TCP_ECN_MODE_ACCECN
#define TCP_ECN_OK TCP_ECN_MODE_RFC3168
#define fp_has_accecn(tp) 1
#else
#define TCP_ECN_MODE_ACCECN 0
#define fp_has_accecn(tp) 0
#endif

/* The route's feature tcp_usec_ts, since 6.7. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
#define fp_has_us_timestamps(tp) ((tp)->tcp_usec_ts)
#else
#define fp_has_us_timestamps(tp) 0
#endif

#define FP_IS_LIKE(function, ...) __builtin_types_compatible_p(typeof(function), __VA_ARGS__)

/* With flags in newer kernels, which 6.12 has taken too. The call that is not chosen
 * must be of the right type, so it goes to a function that there is not. */
void fp_no_send_ack_2(struct sock *, u32);
void fp_no_send_ack_3(struct sock *, u32, u16);
#define FP_SENDS_WITH_2 FP_IS_LIKE(__tcp_send_ack, void(struct sock *, u32))
#define fp_send_ack(sk, rcv_nxt)                                                                   \
	__builtin_choose_expr(                                                                     \
	    FP_SENDS_WITH_2,                                                                       \
	    __builtin_choose_expr(FP_SENDS_WITH_2, __tcp_send_ack, fp_no_send_ack_2)(sk, rcv_nxt), \
	    __builtin_choose_expr(FP_SENDS_WITH_2, fp_no_send_ack_3, __tcp_send_ack)(sk, rcv_nxt,  \
										     0))

#endif

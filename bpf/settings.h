/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* settings.h - what a loader sets in an object before the load, in this layout (kernel_cc/load.rs),
 * but for the first and the last three; an algorithm's constants follow. */
#ifndef FULLPIPE_BPF_SETTINGS_H
#define FULLPIPE_BPF_SETTINGS_H

#define FP_SETTINGS                                                                                \
	char algorithm[32]; /* as the front end names it */                                        \
	char kernel_name[16];                                                                      \
	u32 is_traced;                                                                             \
	u32 tick_us;           /* of jiffies */                                                    \
	u32 cong_control_args; /* 2 before Linux 6.10 */                                           \
	u32 flags;             /* of the algorithm */                                              \
	u32 state_bytes;       /* of its state, with which a struct fp_socket begins */            \
	u32 param_count;

#endif

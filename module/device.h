/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* device.h - what /dev/fullpipe_cc takes and gives (crates/fullpipe-agent/src/kernel_cc/module.rs).
 */
#ifndef FULLPIPE_MODULE_DEVICE_H
#define FULLPIPE_MODULE_DEVICE_H

#include <linux/ioctl.h>
#include <linux/types.h>
#include "../bpf/settings.h"

#define FP_DEVICE "fullpipe_cc"
#define FP_PARAMS_MOST 128
#define FP_NAME_BYTES 16

/* The settings of an eBPF object and its counters: what to register, and what is. tick_us and
 * cong_control_args are not looked at. */
struct fp_described {
	FP_SETTINGS
	u32 params[FP_PARAMS_MOST];
	u32 live, opened, trace_lost, seed;
	u32 is_registered;
	u32 index; /* of FP_DESCRIBE, from 0 */
};

struct fp_state {
	s32 socket; /* descriptor */
	u32 bytes;  /* of the buffer */
	u64 buffer;
};

/* EEXIST: the name is taken; ENOENT: no such algorithm; ERANGE: a constant out of its range;
 * EBUSY: a file of the kernel that is registered with other constants. */
#define FP_REGISTER _IOW('F', 1, struct fp_described)
/* By kernel_name. */
#define FP_UNREGISTER _IOW('F', 2, char[FP_NAME_BYTES])
/* ENOENT: there are no more. */
#define FP_DESCRIBE _IOWR('F', 3, struct fp_described)
/* Returns the bytes of the state; 0: the socket is not ours. The variant is FP_STATE's kernel_name.
 */
#define FP_STATE _IOW('F', 4, struct fp_state)
/* Sets seed by kernel_name. */
#define FP_SEED _IOW('F', 5, struct fp_described)
/* read() then gives the calls of this name, whole ones only; 0 bytes: there is none. */
#define FP_TRACE _IOW('F', 6, char[FP_NAME_BYTES])

#endif

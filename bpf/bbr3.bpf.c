/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* bbr3.bpf.c - BBRv3 and its family for the kernel: cc/bbr3.h in the glue. */
#include "kernel.h"
#include "../cc/bbr3.h"

#define FP_ALGORITHM bbr3
#define FP_OWNS_CWND
#define FP_WANTS_RING
#include "glue.h"

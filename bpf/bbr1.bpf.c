/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* bbr1.bpf.c - BBRv1 for the kernel: cc/bbr1.h in the glue. */
#include "kernel.h"
#include "../cc/bbr1.h"

#define FP_ALGORITHM bbr1
#define FP_OWNS_CWND
#include "glue.h"

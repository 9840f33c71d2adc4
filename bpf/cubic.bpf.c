/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* cubic.bpf.c - CUBIC for the kernel: cc/cubic.h in the glue. */
#include "kernel.h"
#include "../cc/cubic.h"

#define FP_ALGORITHM cubic
#define FP_WANTS_RTT
#include "glue.h"

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* reno.bpf.c - Reno for the kernel: cc/reno.h in the glue. */
#include "kernel.h"
#include "../cc/reno.h"

#define FP_ALGORITHM reno
#include "glue.h"

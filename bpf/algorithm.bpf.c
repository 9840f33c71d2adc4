/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* algorithm.bpf.c - one algorithm for the kernel: its file, FP_SOURCE, in the glue. The compiler is
 * told FP_SOURCE and FP_ALGORITHM (build.sh; fullpipe for a file from outside). */
#include "kernel.h"
#include "../cc/cc_more.h"
#include "../cc/params.h"
#include "../cc/state.h"

#include FP_SOURCE

#define FP_HOST "host.h"
#include "glue.h"
#include "ops.h"

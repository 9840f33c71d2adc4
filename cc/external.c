/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* external.c - makes the tables of native.h and layout.h from one user's file. The compiler gets
 * CC_SOURCE (the file), CC_NAME (the algorithm) and CC_TITLE. Nothing protects the process that
 * loads it: that is a worker without rights (python/fullpipe/congestion/userfiles/worker.py). */
#include "layout.h"
#include "native.h"
#include "params.h"

#include CC_SOURCE

extern __attribute__((visibility("default"))) const struct cc_algorithm cc_external;
extern __attribute__((visibility("default"))) const struct cc_layout cc_layout[];
#define CC_CALL(call) call
#ifdef CC_NOTES_DECISIONS /* for fuzz.c */
void cc_note_decision(const struct cc_ctl *ctl);
#define CC_DECIDED(ctl) cc_note_decision(ctl)
#endif
#include "table.h"

#define DEFINE(name) CC_DEFINE(name)
#define ROW(name, title) CC_ROW(name, title, "")

DEFINE(CC_NAME)

const struct cc_algorithm cc_external = ROW(CC_NAME, CC_TITLE);
const struct cc_layout cc_layout[] = CC_LAYOUT_ROWS;

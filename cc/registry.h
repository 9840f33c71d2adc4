/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * registry.h - the one list of algorithms and of parameter sets.
 *
 * ALGORITHM(name, "title", "sources"): name is the file's and the state's.
 * SET(name, algorithm, "kernel name", "title", OVERRIDES...): a parameter set; its name is what
 * users write, the kernel name (at most 15 characters) what sockets write. Overrides are
 * V(parameter, stored value) pairs on the algorithm's defaults; the set that carries the
 * algorithm's own name has none.
 */
#ifndef FULLPIPE_CC_REGISTRY_H
#define FULLPIPE_CC_REGISTRY_H

#include "reno.h"

#define CC_ALGORITHMS(ALGORITHM) ALGORITHM(reno, "Reno", "RFC 5681, Linux tcp_cong.c")

#define CC_SETS(SET, V) SET("reno", reno, "fp_reno", "Reno as Linux grows it", )

#endif

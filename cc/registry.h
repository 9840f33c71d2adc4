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

#include "bbr1.h"
#include "bbr3.h"
#include "cubic.h"
#include "dctcp.h"
#include "prague.h"
#include "reno.h"
#include "tarn.h"

#define CC_ALGORITHMS(ALGORITHM)                                                                   \
	ALGORITHM(reno, "Reno", "RFC 5681, Linux tcp_cong.c")                                      \
	ALGORITHM(cubic, "CUBIC", "RFC 9438, Linux tcp_cubic.c")                                   \
	ALGORITHM(dctcp, "DCTCP", "RFC 8257, Linux tcp_dctcp.c")                                   \
	ALGORITHM(prague, "Prague", "draft-briscoe-iccrg-prague-congestion-control, tcp_prague.c") \
	ALGORITHM(bbr1, "BBRv1", "Linux tcp_bbr.c, ACM Queue 14(5) 2016")                          \
	ALGORITHM(bbr3, "BBRv3 (and v2, BBR-n+)", "draft-ietf-ccwg-bbr, google/bbr tcp_bbr.c")     \
	ALGORITHM(tarn, "Tarn", "docs/background/algorithms/tarn.md")

/* clang-format off */
#define CC_SETS(SET, V)                                                                            \
	SET("reno", reno, "fp_reno", "Reno as Linux grows it", )                                   \
	SET("cubic", cubic, "fp_cubic", "CUBIC as Linux has it", )                                 \
	SET("dctcp", dctcp, "fp_dctcp", "DCTCP as Linux has it", )                                 \
	SET("prague", prague, "fp_prague", "Prague of the IETF draft, for L4S", )                  \
	SET("bbr1", bbr1, "fp_bbr1", "BBRv1 as mainline Linux has it", )                           \
	SET("bbr2", bbr3, "fp_bbr2", "BBRv2 as Google's v2 kernel has it", BBR3_LINUX_V2(V))       \
	SET("bbr3", bbr3, "fp_bbr3", "BBRv3 as the IETF draft has it", )                           \
	SET("bbr3-linux", bbr3, "fp_bbr3_linux", "BBRv3 as Google's v3 kernel has it",             \
	    BBR3_LINUX_V3(V))                                                                      \
	SET("bbr3-ecn", bbr3, "fp_bbr3_ecn", "BBRv3 as Google's v3 kernel on routes that mark early", \
	    BBR3_LINUX_V3_ECN(V))                                                                  \
	SET("bbrnplus", bbr3, "fp_bbrnplus", "BBR-n+ as published, Smart Exit by plateau and RTT", \
	    BBR3_NPLUS_PUBLISHED(V) V(smart_exit, BBR3_EXIT_INFLATION))                            \
	SET("bbrnplus-literal", bbr3, "fp_bbrnplus_lit", "BBR-n+ with Algorithm 1 word for word",  \
	    BBR3_NPLUS_PUBLISHED(V) V(smart_exit, BBR3_EXIT_LITERAL))                              \
	SET("bbrnplus-asrun", bbr3, "fp_bbrnplus_run", "BBR-n+ with the gains of its authors' files", \
	    BBR3_NPLUS_AS_RUN(V) V(smart_exit, BBR3_EXIT_INFLATION))                               \
	SET("bbrnplus-pseudocode", bbr3, "fp_bbrnplus_pse",                                        \
	    "BBR-n+ with the exit of its authors' pseudocode",                                     \
	    BBR3_NPLUS_PUBLISHED(V) V(smart_exit, BBR3_EXIT_AUTHORS))                              \
	SET("bbrnplus-patch", bbr3, "fp_bbrnplus_pat",                                             \
	    "BBR-n+ with its authors' patch and pseudocode",                                       \
	    BBR3_NPLUS_PATCH(V) V(smart_exit, BBR3_EXIT_AUTHORS))                                  \
	SET("bbrn", bbr3, "fp_bbrn", "BBR-n (2023), BBRv2 with the gains of its authors' files",   \
	    BBR3_BBRN(V))                                                                          \
	SET("tarn", tarn, "fp_tarn", "Tarn: a queue that is small and the same for all", )
/* clang-format on */

#endif

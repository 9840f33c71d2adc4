/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * linux_base.h - what a file of the kernel's net/ipv4 does as a module of its own, and must leave
 * to the module that carries it here: its start, its parameters, what it exports, logs and random
 * numbers. All else it finds in the kernel's headers. A package has it in place of cc/linux_base.h,
 * so that the text that `fullpipe cc import` wrote includes the file unchanged. It must not know
 * TCP.
 */
#ifndef FULLPIPE_MODULE_LINUX_BASE_H
#define FULLPIPE_MODULE_LINUX_BASE_H

/* All that files include, before names change their meaning. */
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/inet_diag.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/percpu.h>
#include <linux/prandom.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

/* The module's parameters are those of the set (set.h); its start runs before every call. */
#undef module_param
#undef module_param_named
#undef module_param_array
#undef module_param_array_named
#undef module_param_string
#undef module_param_cb
#undef MODULE_PARM_DESC
#undef MODULE_VERSION
#undef MODULE_ALIAS
#define module_param(...)
#define module_param_named(...)
#define module_param_array(...)
#define module_param_array_named(...)
#define module_param_string(...)
#define module_param_cb(...)
#define MODULE_PARM_DESC(...)
#define MODULE_VERSION(...)
#define MODULE_ALIAS(...)
#undef module_init
#undef module_exit
#undef late_initcall
#undef subsys_initcall
#undef fs_initcall
#undef device_initcall
#define module_init(...)
#define module_exit(...)
#define late_initcall(...)
#define subsys_initcall(...)
#define fs_initcall(...)
#define device_initcall(...)
#undef __init
#undef __exit
#undef __initdata
#undef __ro_after_init
#define __init __maybe_unused
#define __exit __maybe_unused
#define __initdata
#define __ro_after_init
/* The kernel's own module may be loaded beside it. */
#undef EXPORT_SYMBOL
#undef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL(...)
#define EXPORT_SYMBOL_GPL(...)

/* No eBPF program calls it, nor does anybody set its sysctls. */
#undef BTF_SET_START
#undef BTF_SET_END
#undef BTF_SET8_START
#undef BTF_SET8_END
#undef BTF_KFUNCS_START
#undef BTF_KFUNCS_END
#undef BTF_ID
#undef BTF_ID_FLAGS
#define BTF_SET_START(name) static struct btf_id_set __maybe_unused name;
#define BTF_SET_END(name)
#define BTF_SET8_START(name) static struct btf_id_set8 __maybe_unused name;
#define BTF_SET8_END(name)
#define BTF_KFUNCS_START(name) static struct btf_id_set8 __maybe_unused name;
#define BTF_KFUNCS_END(name)
#define BTF_ID(...)
#define BTF_ID_FLAGS(...)
#define register_btf_kfunc_id_set(type, set) ((void)(set), 0)
#undef register_net_sysctl
#define register_net_sysctl(...) ((struct ctl_table_header *)1)
#define unregister_net_sysctl_table(header) ((void)(header))

/* Its start runs before every call, and would print each time. Nothing else may run on this
 * processor meanwhile. */
DECLARE_PER_CPU(bool, fp_linux_is_starting);
void fp_linux_begin_start(void);
void fp_linux_end_start(void);
#define linux_begin_start() fp_linux_begin_start()
#define linux_end_start() fp_linux_end_start()
#undef printk
#define printk(format, ...)                                                                        \
	(this_cpu_read(fp_linux_is_starting) ? 0 : _printk(format, ##__VA_ARGS__))

/* The connection's stream of cc/linux_base.h, so that a replay draws the same numbers. A call holds
 * its processor (kernel_file.c), so each has one connection at a time. */
u64 fp_linux_draw(void);
void fp_linux_draw_bytes(void *to, size_t count);
u32 fp_linux_draw_below(u32 ceiling);
#undef get_random_u64
#undef get_random_u32
#undef get_random_u16
#undef get_random_u8
#undef get_random_long
#undef get_random_int
#undef get_random_u32_below
#undef get_random_u32_above
#undef get_random_u32_inclusive
#undef get_random_bytes
#undef prandom_u32
#undef prandom_u32_max
#undef prandom_bytes
#define get_random_u64() fp_linux_draw()
#define get_random_u32() ((u32)(fp_linux_draw() >> 32))
#define get_random_u16() ((u16)(fp_linux_draw() >> 48))
#define get_random_u8() ((u8)(fp_linux_draw() >> 56))
#define get_random_long() ((unsigned long)fp_linux_draw())
#define get_random_int() get_random_u32()
#define get_random_u32_below(ceiling) fp_linux_draw_below(ceiling)
#define get_random_u32_above(floor) ((floor) + 1 + fp_linux_draw_below(U32_MAX - (floor)))
#define get_random_u32_inclusive(low, high) ((low) + fp_linux_draw_below((high) - (low) + 1))
#define get_random_bytes(to, count) fp_linux_draw_bytes(to, count)
#define prandom_u32() get_random_u32()
#define prandom_u32_max(ceiling) fp_linux_draw_below(ceiling)
#define prandom_bytes(to, count) fp_linux_draw_bytes(to, count)

#endif

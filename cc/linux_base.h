/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * linux_base.h - what a file of the Linux kernel finds at hand before it speaks of TCP: types,
 * arithmetic, time, random numbers, memory and module macros, under the kernel's names. Written for
 * this project from the documented interfaces; the kernel's header that has a name is given with
 * it. It must not know TCP.
 */
#ifndef FULLPIPE_CC_LINUX_BASE_H
#define FULLPIPE_CC_LINUX_BASE_H

#include "cc_types.h"
#include "linux_print.h"

/* linux/types.h, linux/stddef.h, asm-generic/int-ll64.h */
typedef _Bool bool;
typedef signed char s8;
typedef signed short s16;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s8 __s8;
typedef s16 __s16;
typedef s32 __s32;
typedef s64 __s64;
typedef u8 uint8_t;
typedef u16 uint16_t;
typedef u32 uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef s8 int8_t;
typedef s16 int16_t;
typedef s32 int32_t;
typedef __INT64_TYPE__ int64_t;
typedef u16 __be16;
typedef u32 __be32;
typedef u64 __be64;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ssize_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef unsigned short ushort;
typedef unsigned char uchar;
typedef unsigned int gfp_t;
typedef long long loff_t;
typedef struct {
	int counter;
} atomic_t;

#define NULL ((void *)0)
#define true 1
#define false 0
#define typeof __typeof__
#define offsetof(type, member) __builtin_offsetof(type, member)
#define sizeof_field(type, member) sizeof(((type *)0)->member)

/* linux/limits.h, vdso/limits.h */
#define U8_MAX ((u8)~0u)
#define S8_MAX ((s8)(U8_MAX >> 1))
#define S8_MIN ((s8)(-S8_MAX - 1))
#define U16_MAX ((u16)~0u)
#define S16_MAX ((s16)(U16_MAX >> 1))
#define S16_MIN ((s16)(-S16_MAX - 1))
#define U32_MAX ((u32)~0u)
#define S32_MAX ((s32)(U32_MAX >> 1))
#define S32_MIN ((s32)(-S32_MAX - 1))
#define U64_MAX ((u64)~0ull)
#define S64_MAX ((s64)(U64_MAX >> 1))
#define S64_MIN ((s64)(-S64_MAX - 1))
#define USHRT_MAX U16_MAX
#define SHRT_MAX S16_MAX
#define INT_MAX __INT_MAX__
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX (~0u)
#define LONG_MAX __LONG_MAX__
#define LONG_MIN (-LONG_MAX - 1)
#define ULONG_MAX (~0ul)
#define LLONG_MAX __LONG_LONG_MAX__
#define ULLONG_MAX (~0ull)
#define BITS_PER_LONG (8 * (int)sizeof(long))
#define BITS_PER_BYTE 8
#define BITS_PER_TYPE(type) (sizeof(type) * BITS_PER_BYTE)
/* linux/const.h, uapi/linux/const.h */
#define U32_C(x) x##U
#define U64_C(x) x##ULL
#define UL(x) x##UL
#define ULL(x) x##ULL
#define PAGE_SIZE 4096ul

/* linux/compiler.h, linux/compiler_attributes.h, linux/init.h, linux/cache.h. `inline` without
 * `static` defines no function of its own, as in the kernel. */
#define inline inline __attribute__((always_inline, unused))
#define __always_inline inline
#define noinline __attribute__((noinline))
#define __init __attribute__((unused))
#define __exit __attribute__((unused))
#define __initdata
#define __net_init __attribute__((unused))
#define __net_exit __attribute__((unused))
#define __read_mostly
#define __ro_after_init
#define __cacheline_aligned
#define ____cacheline_aligned
#define ____cacheline_aligned_in_smp
#define __rcu
#define __user
#define __force
#define __bitwise
#define __percpu
#define __iomem
#define __sched
#define __must_check __attribute__((warn_unused_result))
#define __maybe_unused __attribute__((unused))
#define __always_unused __attribute__((unused))
#define __used __attribute__((unused))
#define __packed __attribute__((packed))
#define __aligned(x) __attribute__((aligned(x)))
#define __pure __attribute__((pure))
#define __attribute_const__ __attribute__((const))
#define __cold __attribute__((cold))
#define fallthrough __attribute__((fallthrough))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() CC_STEP()
#define smp_mb() CC_STEP()
#define smp_rmb() CC_STEP()
#define smp_wmb() CC_STEP()
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, value) ((x) = (value))
#define ACCESS_ONCE(x) (x)
#define smp_load_acquire(p) (*(p))
#define smp_store_release(p, value) (*(p) = (value))
#define cmpxchg(p, old, new)                                                                       \
	({                                                                                         \
		typeof(*(p)) linux_was = *(p);                                                     \
		if (linux_was == (old))                                                            \
			*(p) = (new);                                                              \
		linux_was;                                                                         \
	})
#define xchg(p, new)                                                                               \
	({                                                                                         \
		typeof(*(p)) linux_was = *(p);                                                     \
		*(p) = (new);                                                                      \
		linux_was;                                                                         \
	})
#define READ_ONCE_NOCHECK(x) (x)
#define data_race(x) (x)

/* linux/build_bug.h, linux/bug.h: warnings are logged (linux_print.h) */
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
#define BUILD_BUG_ON_MSG(condition, text) _Static_assert(!(condition), text)
#define static_assert(condition, ...) _Static_assert(condition, #condition)
#define WARN_ON(condition) LINUX_WARN_IF(LINUX_ALWAYS, condition, "")
#define WARN_ON_ONCE(condition) LINUX_WARN_IF(LINUX_ONCE, condition, "")
#define WARN(condition, ...) LINUX_WARN_IF(LINUX_ALWAYS, condition, __VA_ARGS__)
#define WARN_ONCE(condition, ...) LINUX_WARN_IF(LINUX_ONCE, condition, __VA_ARGS__)
/* An address that no pointer has: diagnosis.py knows it. */
#define LINUX_BUG_ADDRESS 0xb06
#define BUG_ON(condition)                                                                          \
	do {                                                                                       \
		if (condition)                                                                     \
			*(volatile char *)LINUX_BUG_ADDRESS = 0;                                   \
	} while (0)
#define BUG() BUG_ON(1)

/* linux/minmax.h, linux/kernel.h, linux/math.h */
#define linux_pick(a, b, op)                                                                       \
	({                                                                                         \
		__auto_type linux_a = (a);                                                         \
		__auto_type linux_b = (b);                                                         \
		linux_a op linux_b ? linux_a : linux_b;                                            \
	})
#define min(a, b) linux_pick(a, b, <)
#define max(a, b) linux_pick(a, b, >)
#define min_t(type, a, b)                                                                          \
	({                                                                                         \
		type linux_left = (type)(a);                                                       \
		type linux_right = (type)(b);                                                      \
		linux_left < linux_right ? linux_left : linux_right;                               \
	})
#define max_t(type, a, b)                                                                          \
	({                                                                                         \
		type linux_left = (type)(a);                                                       \
		type linux_right = (type)(b);                                                      \
		linux_left > linux_right ? linux_left : linux_right;                               \
	})
#define umin(a, b) min_t(u64, a, b)
#define umax(a, b) max_t(u64, a, b)
#define min3(a, b, c)                                                                              \
	({                                                                                         \
		__auto_type linux_first = min(a, b);                                               \
		__auto_type linux_third = (c);                                                     \
		linux_first < linux_third ? linux_first : (typeof(linux_first))linux_third;        \
	})
#define max3(a, b, c)                                                                              \
	({                                                                                         \
		__auto_type linux_first = max(a, b);                                               \
		__auto_type linux_third = (c);                                                     \
		linux_first > linux_third ? linux_first : (typeof(linux_first))linux_third;        \
	})
#define min_not_zero(a, b)                                                                         \
	({                                                                                         \
		__auto_type linux_x = (a);                                                         \
		__auto_type linux_y = (b);                                                         \
		linux_x == 0 ? linux_y : linux_y == 0 ? linux_x : min(linux_x, linux_y);           \
	})
#define clamp(value, low, high)                                                                    \
	({                                                                                         \
		typeof(value) linux_value = (value);                                               \
		typeof(value) linux_low = (low);                                                   \
		typeof(value) linux_high = (high);                                                 \
		linux_value<linux_low ? linux_low : linux_value> linux_high ? linux_high           \
									    : linux_value;         \
	})
#define clamp_t(type, value, low, high) clamp((type)(value), (type)(low), (type)(high))
#define clamp_val(value, low, high) clamp_t(typeof(value), value, low, high)
#define swap(a, b)                                                                                 \
	do {                                                                                       \
		typeof(a) linux_was = (a);                                                         \
		(a) = (b);                                                                         \
		(b) = linux_was;                                                                   \
	} while (0)
#define abs(x)                                                                                     \
	({                                                                                         \
		__auto_type linux_x = (x);                                                         \
		linux_x < 0 ? -linux_x : linux_x;                                                  \
	})
#define abs64(x) abs((s64)(x))
#define abs_diff(a, b)                                                                             \
	({                                                                                         \
		__auto_type linux_x = (a);                                                         \
		__auto_type linux_y = (b);                                                         \
		linux_x > linux_y ? linux_x - linux_y : linux_y - linux_x;                         \
	})
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define DIV_ROUND_UP(n, d) (((n) + (d)-1) / (d))
#define DIV_ROUND_UP_ULL(n, d) (((u64)(n) + (d)-1) / (d))
#define DIV_ROUND_DOWN_ULL(n, d) ((u64)(n) / (d))
#define DIV_ROUND_CLOSEST(x, divisor)                                                              \
	({                                                                                         \
		typeof(x) linux_x = (x);                                                           \
		typeof(divisor) linux_d = (divisor);                                               \
		((typeof(x))-1) > 0 || ((typeof(divisor))-1) > 0 ||                                \
			((linux_x > 0) == (linux_d > 0))                                           \
		    ? (linux_x + linux_d / 2) / linux_d                                            \
		    : (linux_x - linux_d / 2) / linux_d;                                           \
	})
#define DIV_ROUND_CLOSEST_ULL(x, divisor) (((u64)(x) + (divisor) / 2) / (divisor))
#define mult_frac(x, n, d)                                                                         \
	({                                                                                         \
		typeof(x) linux_x = (x);                                                           \
		typeof(d) linux_d = (d);                                                           \
		(linux_x / linux_d) * (n) + (linux_x % linux_d) * (n) / linux_d;                   \
	})
#define round_up(x, y) ((((x)-1) | ((typeof(x))(y)-1)) + 1)
#define round_down(x, y) ((x) & ~((typeof(x))(y)-1))
#define roundup(x, y) ((((x) + (y)-1) / (y)) * (y))
#define rounddown(x, y) ((x) - (x) % (y))
#define ALIGN(x, a) round_up(x, a)
#define container_of(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))
#define __stringify_1(x...) #x
#define __stringify(x...) __stringify_1(x)

/* linux/bits.h, linux/bitops.h, linux/log2.h, linux/int_sqrt.h */
#define BIT(n) (1ul << (n))
#define BIT_ULL(n) (1ull << (n))
#define GENMASK(high, low) ((~0ul << (low)) & (~0ul >> (BITS_PER_LONG - 1 - (high))))
#define GENMASK_ULL(high, low) ((~0ull << (low)) & (~0ull >> (63 - (high))))

static inline int fls64(u64 x) { return x ? 64 - __builtin_clzll(x) : 0; }
static inline int fls(unsigned int x) { return x ? 32 - __builtin_clz(x) : 0; }
static inline unsigned int fls_long(unsigned long x) { return (unsigned int)fls64(x); }
static inline int ffs(int x) { return __builtin_ffs(x); }
static inline unsigned long __ffs(unsigned long x) { return (unsigned long)__builtin_ctzl(x); }
static inline unsigned long __fls(unsigned long x) { return (unsigned long)fls64(x) - 1; }
static inline unsigned int hweight32(u32 x) { return (unsigned int)__builtin_popcount(x); }
static inline bool is_power_of_2(unsigned long x) { return x && !(x & (x - 1)); }
#define ilog2(x) (fls64(x) - 1)
#define order_base_2(x) ((x) > 1 ? fls64((u64)(x)-1) : 0)
#define roundup_pow_of_two(x) (1ul << order_base_2(x))
#define rounddown_pow_of_two(x) (1ul << ilog2(x))
#define hweight_long(x) ((unsigned int)__builtin_popcountl(x))

static inline unsigned long linux_root(u64 x)
{
	u64 root = 0, bit = 1ull << 62;

	while (bit > x)
		bit >>= 2;
	for (; bit; bit >>= 2) {
		if (x >= root + bit) {
			x -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return (unsigned long)root;
}
static inline unsigned long int_sqrt(unsigned long x) { return linux_root(x); }
static inline u32 int_sqrt64(u64 x) { return (u32)linux_root(x); }
static inline u64 int_pow(u64 base, unsigned int exponent)
{
	u64 power = 1;

	for (; exponent; exponent >>= 1, base *= base)
		if (exponent & 1)
			power *= base;
	return power;
}

/* linux/math64.h, asm/div64.h */
static inline u64 div_u64(u64 n, u32 d) { return n / d; }
static inline s64 div_s64(s64 n, s32 d) { return n / d; }
static inline u64 div64_u64(u64 n, u64 d) { return n / d; }
static inline s64 div64_s64(s64 n, s64 d) { return n / d; }
static inline u64 div_u64_rem(u64 n, u32 d, u32 *rest)
{
	*rest = (u32)(n % d);
	return n / d;
}
static inline u64 div64_u64_rem(u64 n, u64 d, u64 *rest)
{
	*rest = n % d;
	return n / d;
}
static inline s64 div_s64_rem(s64 n, s32 d, s32 *rest)
{
	*rest = (s32)(n % d);
	return n / d;
}
static inline u64 mul_u32_u32(u32 a, u32 b) { return (u64)a * b; }
static inline u64 mul_u64_u32_shr(u64 a, u32 b, unsigned int shift)
{
	return (u64)((unsigned __int128)a * b >> shift);
}
static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return (u64)((unsigned __int128)a * b >> shift);
}
static inline u64 mul_u64_u32_div(u64 a, u32 b, u32 d) { return (a / d) * b + (a % d) * b / d; }
#define div64_long(n, d) div64_s64(n, d)
#define div64_ul(n, d) div64_u64(n, d)
#define do_div(n, base)                                                                            \
	({                                                                                         \
		u32 linux_base = (u32)(base);                                                      \
		u32 linux_rest = (u32)((u64)(n) % linux_base);                                     \
		(n) = (u64)(n) / linux_base;                                                       \
		linux_rest;                                                                        \
	})
#define sector_div(n, base) do_div(n, base)

/* linux/string.h */
#define memset(to, value, count) __builtin_memset(to, value, count)
#define memcpy(to, from, count) __builtin_memcpy(to, from, count)
#define memcmp(one, other, count) __builtin_memcmp(one, other, count)
#define memzero_explicit(to, count) __builtin_memset(to, 0, count)
#define memset_startat(object, value, member)                                                      \
	__builtin_memset((char *)(object) + offsetof(typeof(*(object)), member), value,            \
			 sizeof(*(object)) - offsetof(typeof(*(object)), member))

static inline int strcmp(const char *one, const char *other)
{
	for (; *one && *one == *other; one++, other++)
		;
	return (unsigned char)*one - (unsigned char)*other;
}
static inline size_t strlen(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

/* The connection that is being served: what the clock says, and where its memory is. A simulator
 * makes one call at a time. */
#define LINUX_HEAP_BYTES 2048u

struct linux_heap {
	u32 used;
	u32 last; /* where the newest piece begins */
	u64 bytes[LINUX_HEAP_BYTES / 8];
};

struct linux_current {
	u64 now_ns;
	u64 *random;
	struct linux_heap *heap;
};

static struct linux_current linux_current;

/* linux/jiffies.h. Debian's kernels have 250 ticks a second, and like all begin 300 s before the
 * 32-bit counter wraps (INITIAL_JIFFIES). */
#define CONFIG_HZ 250
#define HZ CONFIG_HZ
#define INITIAL_JIFFIES ((unsigned long)(u32)(-300 * HZ))
#define TICK_NSEC (1000000000ull / HZ)
#define LINUX_TICKS(ns) ((ns) / TICK_NSEC + INITIAL_JIFFIES)

static unsigned long jiffies;
static u64 jiffies_64;
#define get_jiffies_64() jiffies_64

static inline unsigned long usecs_to_jiffies(unsigned int us)
{
	return ((u64)us * HZ + 999999u) / 1000000u;
}
static inline unsigned long msecs_to_jiffies(unsigned int ms)
{
	return ((u64)ms * HZ + 999u) / 1000u;
}
static inline unsigned long nsecs_to_jiffies(u64 ns) { return ns / TICK_NSEC; }
static inline u64 nsecs_to_jiffies64(u64 ns) { return ns / TICK_NSEC; }
static inline unsigned int jiffies_to_msecs(unsigned long ticks)
{
	return (unsigned int)(ticks * (1000u / HZ));
}
static inline unsigned int jiffies_to_usecs(unsigned long ticks)
{
	return (unsigned int)(ticks * (1000000u / HZ));
}
static inline u64 jiffies_to_nsecs(unsigned long ticks) { return (u64)ticks * TICK_NSEC; }
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define time_before_eq(a, b) time_after_eq(b, a)
#define time_in_range(a, b, c) (time_after_eq(a, b) && time_before_eq(a, c))
#define time_after32(a, b) ((s32)((u32)(b) - (u32)(a)) < 0)
#define time_before32(a, b) time_after32(b, a)
#define time_between32(t, low, high) ((u32)(high) - (u32)(low) >= (u32)(t) - (u32)(low))
#define time_is_before_jiffies(a) time_after(jiffies, a)
#define time_is_after_jiffies(a) time_before(jiffies, a)

/* linux/time64.h, vdso/time64.h, linux/ktime.h, linux/timekeeping.h, linux/sched/clock.h. All
 * clocks are the simulation's. */
#define MSEC_PER_SEC 1000L
#define USEC_PER_MSEC 1000L
#define NSEC_PER_USEC 1000L
#define NSEC_PER_MSEC 1000000L
#define USEC_PER_SEC 1000000L
#define NSEC_PER_SEC 1000000000L

typedef s64 ktime_t;
static inline ktime_t ktime_get(void) { return (s64)linux_current.now_ns; }
static inline u64 ktime_get_ns(void) { return linux_current.now_ns; }
#define ktime_get_real ktime_get
#define ktime_get_boottime ktime_get
#define ktime_get_raw ktime_get
#define ktime_get_real_ns ktime_get_ns
#define ktime_get_boottime_ns ktime_get_ns
#define ktime_get_raw_ns ktime_get_ns
#define ktime_get_mono_fast_ns ktime_get_ns
#define local_clock ktime_get_ns
#define sched_clock ktime_get_ns
static inline s64 ktime_get_seconds(void) { return ktime_get() / NSEC_PER_SEC; }
#define ktime_get_real_seconds ktime_get_seconds
static inline s64 ktime_to_ns(ktime_t t) { return t; }
static inline s64 ktime_to_us(ktime_t t) { return t / NSEC_PER_USEC; }
static inline s64 ktime_to_ms(ktime_t t) { return t / NSEC_PER_MSEC; }
static inline ktime_t ns_to_ktime(u64 ns) { return (s64)ns; }
static inline ktime_t us_to_ktime(u64 us) { return (s64)us * NSEC_PER_USEC; }
static inline ktime_t ms_to_ktime(u64 ms) { return (s64)ms * NSEC_PER_MSEC; }
static inline ktime_t ktime_set(s64 s, unsigned long ns) { return s * NSEC_PER_SEC + (s64)ns; }
static inline ktime_t ktime_sub(ktime_t a, ktime_t b) { return a - b; }
static inline ktime_t ktime_add(ktime_t a, ktime_t b) { return a + b; }
static inline ktime_t ktime_add_ns(ktime_t a, u64 ns) { return a + (s64)ns; }
static inline ktime_t ktime_add_us(ktime_t a, u64 us) { return a + us_to_ktime(us); }
static inline ktime_t ktime_add_ms(ktime_t a, u64 ms) { return a + ms_to_ktime(ms); }
static inline s64 ktime_us_delta(ktime_t a, ktime_t b) { return ktime_to_us(a - b); }
static inline s64 ktime_ms_delta(ktime_t a, ktime_t b) { return ktime_to_ms(a - b); }
static inline bool ktime_after(ktime_t a, ktime_t b) { return a > b; }
static inline bool ktime_before(ktime_t a, ktime_t b) { return a < b; }
static inline int ktime_compare(ktime_t a, ktime_t b) { return a < b ? -1 : a > b; }

/* linux/random.h, linux/prandom.h. One stream a connection (SplitMix64: Steele, Lea and Flood,
 * OOPSLA 2014), seeded by its host. */
static inline u64 linux_mix(u64 x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}
static inline u64 get_random_u64(void)
{
	return linux_mix(*linux_current.random += 0x9e3779b97f4a7c15ull);
}
static inline u32 get_random_u32(void) { return (u32)(get_random_u64() >> 32); }
static inline u16 get_random_u16(void) { return (u16)(get_random_u64() >> 48); }
static inline u8 get_random_u8(void) { return (u8)(get_random_u64() >> 56); }
#define prandom_u32 get_random_u32
#define net_random get_random_u32
#define random32 get_random_u32
#define get_random_int get_random_u32
static inline unsigned long get_random_long(void) { return get_random_u64(); }
static inline u32 get_random_u32_below(u32 ceiling)
{
	return (u32)((u64)get_random_u32() * ceiling >> 32);
}
#define prandom_u32_max(ceiling) get_random_u32_below(ceiling)
#define get_random_u32_above(floor) ((floor) + 1 + get_random_u32_below(U32_MAX - (floor)))
#define get_random_u32_inclusive(low, high) ((low) + get_random_u32_below((high) - (low) + 1))
static inline void get_random_bytes(void *to, size_t count)
{
	u8 *byte = to;

	while (count--)
		*byte++ = get_random_u8();
}
#define prandom_bytes(to, count) get_random_bytes(to, count)

/* linux/slab.h, linux/mm.h, linux/gfp.h. Memory belongs to the connection, is cleared, and is at
 * most LINUX_HEAP_BYTES; beyond that an allocation fails, as it may in the kernel. Only the newest
 * piece returns when it is freed. */
#define __GFP_DIRECT_RECLAIM 1u
#define GFP_KERNEL __GFP_DIRECT_RECLAIM
#define GFP_NOFS __GFP_DIRECT_RECLAIM
#define GFP_NOIO __GFP_DIRECT_RECLAIM
#define GFP_ATOMIC 0u
#define GFP_NOWAIT 0u
#define __GFP_NOWARN 0u
#define __GFP_ZERO 0u

static inline void *linux_take(u64 count, u64 bytes)
{
	struct linux_heap *heap = linux_current.heap;
	u8 *piece;

	if (bytes && count > LINUX_HEAP_BYTES / bytes)
		return NULL;
	bytes = round_up(count * bytes, 8u);
	if (!heap || bytes > LINUX_HEAP_BYTES - heap->used)
		return NULL;
	piece = (u8 *)heap->bytes + heap->used;
	heap->last = heap->used;
	heap->used += (u32)bytes;
	memset(piece, 0, bytes);
	return piece;
}
static inline void kfree(const void *piece)
{
	struct linux_heap *heap = linux_current.heap;

	if (piece && heap && (const u8 *)piece == (u8 *)heap->bytes + heap->last)
		heap->used = heap->last;
}
#define LINUX_TAKE(count, bytes, flags)                                                            \
	({                                                                                         \
		LINUX_SLEEPS_IF((flags)&__GFP_DIRECT_RECLAIM);                                     \
		linux_take(count, bytes);                                                          \
	})
#define kmalloc(bytes, flags) LINUX_TAKE(1, bytes, flags)
#define kzalloc(bytes, flags) LINUX_TAKE(1, bytes, flags)
#define kcalloc(count, bytes, flags) LINUX_TAKE(count, bytes, flags)
#define kmalloc_array(count, bytes, flags) LINUX_TAKE(count, bytes, flags)
/* Of 7.0: an object, or several, of a variable's or a type's size; flags may be left out. */
#define kmalloc_obj(of, ...) ((typeof(of) *)linux_take(1, sizeof(of)))
#define kzalloc_obj(of, ...) kmalloc_obj(of)
#define kmalloc_objs(of, count, ...) ((typeof(of) *)linux_take(count, sizeof(of)))
#define kzalloc_objs(of, count, ...) kmalloc_objs(of, count)
#define kvmalloc(bytes, flags) LINUX_TAKE(1, bytes, flags)
#define kvzalloc(bytes, flags) LINUX_TAKE(1, bytes, flags)
#define kvcalloc(count, bytes, flags) LINUX_TAKE(count, bytes, flags)
#define kvfree(piece) kfree(piece)
#define kfree_sensitive(piece) kfree(piece)
#define vmalloc(bytes) LINUX_TAKE(1, bytes, GFP_KERNEL)
#define vzalloc(bytes) LINUX_TAKE(1, bytes, GFP_KERNEL)
#define vfree(piece) kfree(piece)

/* linux/printk.h, linux/net.h: the host hears it (linux_print.h), without levels. */
#define KERN_EMERG ""
#define KERN_ALERT ""
#define KERN_CRIT ""
#define KERN_ERR ""
#define KERN_WARNING ""
#define KERN_NOTICE ""
#define KERN_INFO ""
#define KERN_DEBUG ""
#define KERN_CONT ""

static __attribute__((unused)) int linux_printed(const char *format, ...)
{
	(void)format;
	return 0;
}
/* Arguments are checked and nothing is printed, as without DEBUG. */
#define no_printk(...) (0 ? linux_printed(__VA_ARGS__) : 0)
#define trace_printk(...) no_printk(__VA_ARGS__)
#define pr_debug(...) no_printk(__VA_ARGS__)
#define pr_devel(...) no_printk(__VA_ARGS__)
#define pr_debug_ratelimited(...) no_printk(__VA_ARGS__)
#define net_dbg_ratelimited(...) no_printk(__VA_ARGS__)

/* linux/sprintf.h */
#define snprintf(to, bytes, format, ...)                                                           \
	linux_format(to, bytes, format, LINUX_WORDS(format, ##__VA_ARGS__))
#define scnprintf(to, bytes, ...)                                                                  \
	((int)min_t(size_t, (size_t)snprintf(to, bytes, __VA_ARGS__), (bytes)-1))
#define sprintf(to, ...) snprintf(to, LINUX_LINE_BYTES, __VA_ARGS__)

#ifndef pr_fmt
#define pr_fmt(format) format
#endif
#define printk(...) LINUX_SAY(LINUX_ALWAYS, __VA_ARGS__)
#define printk_once(...) LINUX_SAY(LINUX_ONCE, __VA_ARGS__)
#define printk_ratelimited(...) LINUX_SAY(LINUX_RATED, __VA_ARGS__)
#define pr_emerg(format, ...) printk(pr_fmt(format), ##__VA_ARGS__)
#define pr_alert(format, ...) printk(pr_fmt(format), ##__VA_ARGS__)
#define pr_crit(format, ...) printk(pr_fmt(format), ##__VA_ARGS__)
#define pr_err(format, ...) printk(pr_fmt(format), ##__VA_ARGS__)
#define pr_warn(format, ...) printk(pr_fmt(format), ##__VA_ARGS__)
#define pr_warning(format, ...) printk(pr_fmt(format), ##__VA_ARGS__)
#define pr_notice(format, ...) printk(pr_fmt(format), ##__VA_ARGS__)
#define pr_info(format, ...) printk(pr_fmt(format), ##__VA_ARGS__)
#define pr_cont(...) printk(__VA_ARGS__)
#define pr_err_once(format, ...) printk_once(pr_fmt(format), ##__VA_ARGS__)
#define pr_warn_once(format, ...) printk_once(pr_fmt(format), ##__VA_ARGS__)
#define pr_notice_once(format, ...) printk_once(pr_fmt(format), ##__VA_ARGS__)
#define pr_info_once(format, ...) printk_once(pr_fmt(format), ##__VA_ARGS__)
#define pr_err_ratelimited(format, ...) printk_ratelimited(pr_fmt(format), ##__VA_ARGS__)
#define pr_warn_ratelimited(format, ...) printk_ratelimited(pr_fmt(format), ##__VA_ARGS__)
#define pr_notice_ratelimited(format, ...) printk_ratelimited(pr_fmt(format), ##__VA_ARGS__)
#define pr_info_ratelimited(format, ...) printk_ratelimited(pr_fmt(format), ##__VA_ARGS__)
#define net_err_ratelimited(format, ...) pr_err_ratelimited(format, ##__VA_ARGS__)
#define net_warn_ratelimited(format, ...) pr_warn_ratelimited(format, ##__VA_ARGS__)
#define net_info_ratelimited(format, ...) pr_info_ratelimited(format, ##__VA_ARGS__)
#define net_ratelimit() 1
#define printk_ratelimit() 1
#define dump_stack() ((void)0)
/* TCP calls with the socket's lock held, mostly in a softirq: nothing may sleep. The module's start
 * may. */
#define LINUX_SLEEPS_IF(condition)                                                                 \
	((void)(!linux_is_starting && (condition) &&                                               \
		LINUX_SAY(LINUX_ONCE,                                                              \
			  "BUG: sleeping function called from invalid context at %s\n",            \
			  linux_without_folders(LINUX_HERE))))
#define might_sleep() LINUX_SLEEPS_IF(1)
#define cond_resched() LINUX_SLEEPS_IF(1)

/* linux/delay.h, linux/sched.h: sleeping takes no simulated time, and waiting neither */
#define msleep(ms) ((void)(ms), might_sleep())
#define msleep_interruptible(ms) ((void)(ms), might_sleep(), 0ul)
#define ssleep(s) msleep(s)
#define fsleep(us) msleep(us)
#define usleep_range(least, most) ((void)(most), msleep(least))
#define schedule() might_sleep()
#define schedule_timeout(ticks) ((void)(ticks), might_sleep(), 0l)
#define schedule_timeout_interruptible(ticks) schedule_timeout(ticks)
#define schedule_timeout_uninterruptible(ticks) schedule_timeout(ticks)
#define ndelay(ns) ((void)(ns))
#define udelay(us) ((void)(us))
#define mdelay(ms) ((void)(ms))
#define cpu_relax() ((void)0)

/* uapi/asm-generic/errno-base.h, linux/err.h */
#define EPERM 1
#define ENOENT 2
#define EIO 5
#define EAGAIN 11
#define ENOMEM 12
#define EACCES 13
#define EFAULT 14
#define EBUSY 16
#define EEXIST 17
#define ENODEV 19
#define EINVAL 22
#define ENOSPC 28
#define ERANGE 34
#define ENOSYS 38
#define EOPNOTSUPP 95
#define ENOTSUPP 524
#define IS_ERR(pointer) ((unsigned long)(pointer) >= (unsigned long)-4095)
#define IS_ERR_OR_NULL(pointer) (!(pointer) || IS_ERR(pointer))
#define ERR_PTR(error) ((void *)(long)(error))
#define PTR_ERR(pointer) ((long)(pointer))

/* linux/module.h, linux/moduleparam.h, linux/export.h, linux/kconfig.h, linux/kernel.h. What a
 * module's parameters and its start are, the importing file says (LINUX_PARAMS, LINUX_START). */
struct module;
#define THIS_MODULE ((struct module *)0)
#define KBUILD_MODNAME "fullpipe"
#define MODULE_AUTHOR(...)
#define MODULE_LICENSE(...)
#define MODULE_DESCRIPTION(...)
#define MODULE_VERSION(...)
#define MODULE_ALIAS(...)
#define MODULE_INFO(...)
#define MODULE_IMPORT_NS(...)
#define MODULE_SOFTDEP(...)
#define MODULE_PARM_DESC(...)
#define module_param(...)
#define module_param_named(...)
#define module_param_unsafe(...)
#define module_param_named_unsafe(...)
#define module_param_hw(...)
#define module_param_hw_named(...)
#define module_param_hw_array(...)
#define module_param_array(...)
#define module_param_array_named(...)
#define module_param_string(...)
#define module_param_cb(...)
#define core_param(...)
#define EXPORT_SYMBOL(...)
#define EXPORT_SYMBOL_GPL(...)
#define EXPORT_SYMBOL_NS_GPL(...)
#define EXPORT_PER_CPU_SYMBOL_GPL(...)
#define module_init(...)
#define module_exit(...)
#define late_initcall(...)
#define subsys_initcall(...)
#define fs_initcall(...)
#define device_initcall(...)
/* A parameter with a function of its own keeps its first value. */
struct kernel_param {
	const char *name;
	void *arg;
};
struct kernel_param_ops {
	unsigned int flags;
	int (*set)(const char *value, const struct kernel_param *param);
	int (*get)(char *text, const struct kernel_param *param);
	void (*free)(void *arg);
};
static inline int linux_no_param(void) { return -EINVAL; }
#define param_set_uint(value, param) ((void)(value), (void)(param), linux_no_param())
#define param_set_int(value, param) param_set_uint(value, param)
#define param_set_bool(value, param) param_set_uint(value, param)
#define param_set_uint_minmax(value, param, low, high) param_set_uint(value, param)
static __attribute__((unused)) int param_get_uint(char *text, const struct kernel_param *param)
{
	return (void)text, (void)param, linux_no_param();
}
#define param_get_int param_get_uint
#define param_get_bool param_get_uint
#define kstrtouint(text, base, to) ((void)(text), (void)(to), linux_no_param())
#define kstrtoint(text, base, to) kstrtouint(text, base, to)
/* linux/sysctl.h, net/net_namespace.h: nobody sets them, so they keep their first values. */
struct ctl_table {
	const char *procname;
	void *data;
	int maxlen;
	u16 mode;
	void *proc_handler;
	void *extra1, *extra2;
};
struct ctl_table_header;
#define register_net_sysctl(...) ((struct ctl_table_header *)1)
#define register_net_sysctl_sz(...) ((struct ctl_table_header *)1)
#define register_sysctl(...) ((struct ctl_table_header *)1)
#define unregister_net_sysctl_table(header) ((void)(header))
#define unregister_sysctl_table(header) ((void)(header))
#define proc_dointvec NULL
#define proc_dointvec_minmax NULL
#define proc_douintvec NULL
#define proc_douintvec_minmax NULL
#define proc_dobool NULL
#define proc_dou8vec_minmax NULL
#define SYSCTL_ZERO NULL
#define SYSCTL_ONE NULL
#define try_module_get(module) (1)
#define __module_get(module) ((void)0)
#define module_put(module) ((void)0)
#define LINUX_VERSION_CODE KERNEL_VERSION(6, 12, 0)
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + ((c) > 255 ? 255 : (c)))
#define IS_ENABLED(option) 0
#define IS_BUILTIN(option) 0
#define IS_MODULE(option) 0
#define IS_REACHABLE(option) 0

/* linux/atomic.h, linux/rcupdate.h, linux/spinlock.h: one call at a time. */
#define ATOMIC_INIT(value)                                                                         \
	{                                                                                          \
		(value)                                                                            \
	}
#define atomic_read(a) ((a)->counter)
#define atomic_set(a, value) ((a)->counter = (value))
#define atomic_inc(a) ((void)(a)->counter++)
#define atomic_dec(a) ((void)(a)->counter--)
#define atomic_add(value, a) ((void)((a)->counter += (value)))
#define atomic_sub(value, a) ((void)((a)->counter -= (value)))
#define atomic_inc_return(a) (++(a)->counter)
#define atomic_dec_return(a) (--(a)->counter)
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define rcu_dereference(pointer) (pointer)
#define rcu_assign_pointer(pointer, value) ((pointer) = (value))
#define synchronize_rcu() might_sleep()
typedef struct {
	int unused_;
} spinlock_t;
struct mutex {
	int unused_;
};
#define DEFINE_MUTEX(name) struct mutex name
#define mutex_init(lock) ((void)(lock))
#define mutex_lock(lock) ((void)(lock), might_sleep())
#define mutex_unlock(lock) ((void)(lock))
#define spin_lock_init(lock) ((void)(lock))
#define spin_lock(lock) ((void)(lock))
#define spin_unlock(lock) ((void)(lock))
#define spin_lock_bh(lock) ((void)(lock))
#define spin_unlock_bh(lock) ((void)(lock))
#define preempt_disable() ((void)0)
#define preempt_enable() ((void)0)

/* linux/jump_label.h: the module's start may switch them (kernel_files.py) */
struct static_key {
	int enabled;
};
struct static_key_true {
	struct static_key key;
};
struct static_key_false {
	struct static_key key;
};
#define STATIC_KEY_TRUE_INIT                                                                       \
	{                                                                                          \
		{                                                                                  \
			1                                                                          \
		}                                                                                  \
	}
#define STATIC_KEY_FALSE_INIT                                                                      \
	{                                                                                          \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}
#define DEFINE_STATIC_KEY_TRUE(name) struct static_key_true name = STATIC_KEY_TRUE_INIT
#define DEFINE_STATIC_KEY_FALSE(name) struct static_key_false name = STATIC_KEY_FALSE_INIT
#define DEFINE_STATIC_KEY_TRUE_RO(name) DEFINE_STATIC_KEY_TRUE(name)
#define DEFINE_STATIC_KEY_FALSE_RO(name) DEFINE_STATIC_KEY_FALSE(name)
#define static_key_enabled(name) ((name)->key.enabled > 0)
#define static_branch_likely(name) static_key_enabled(name)
#define static_branch_unlikely(name) static_key_enabled(name)
#define static_branch_enable(name) ((void)((name)->key.enabled = 1))
#define static_branch_disable(name) ((void)((name)->key.enabled = 0))
#define static_branch_inc(name) ((void)(name)->key.enabled++)
#define static_branch_dec(name) ((void)(name)->key.enabled--)

/* linux/btf.h, linux/btf_ids.h: what eBPF programs may call is of no use here. */
struct btf_id_set8 {
	u32 count;
};
#define btf_id_set btf_id_set8
struct btf_kfunc_id_set {
	struct module *owner;
	struct btf_id_set8 *set, *check_set;
};
#define DEFINE_KFUNC_BTF_ID_SET(ids, name) struct btf_kfunc_id_set name = {.set = (ids)}
#define register_kfunc_btf_id_set(list, ids) ((void)(ids))
#define unregister_kfunc_btf_id_set(list, ids) ((void)(ids))
#define __bpf_kfunc __attribute__((unused))
#define __bpf_kfunc_start_defs()
#define __bpf_kfunc_end_defs()
#define BTF_SET_START(name) __attribute__((unused)) static struct btf_id_set8 name = {0};
#define BTF_SET_END(name)
#define BTF_SET8_START(name) BTF_SET_START(name)
#define BTF_SET8_END(name)
#define BTF_KFUNCS_START(name) BTF_SET_START(name)
#define BTF_KFUNCS_END(name)
#define BTF_ID(...)
#define BTF_ID_FLAGS(...)
#define BPF_PROG_TYPE_STRUCT_OPS 27
#define register_btf_kfunc_id_set(type, set) ((void)(set), 0)

/* linux/win_minmax.h, lib/minmax.c: K. Nichols' windowed filter of three samples. */
struct minmax_sample {
	u32 t;
	u32 v;
};
struct minmax {
	struct minmax_sample s[3];
};
static inline u32 minmax_get(const struct minmax *m) { return m->s[0].v; }
static inline u32 minmax_reset(struct minmax *m, u32 t, u32 value)
{
	m->s[2].t = m->s[1].t = m->s[0].t = t;
	m->s[2].v = m->s[1].v = m->s[0].v = value;
	return value;
}
static inline u32 linux_minmax_settle(struct minmax *m, u32 window, const struct minmax_sample *now)
{
	u32 age = now->t - m->s[0].t;

	if (age > window) {
		m->s[0] = m->s[1];
		m->s[1] = m->s[2];
		m->s[2] = *now;
		if (now->t - m->s[0].t > window) {
			m->s[0] = m->s[1];
			m->s[1] = m->s[2];
			m->s[2] = *now;
		}
	} else if (m->s[1].t == m->s[0].t && age > window / 4) {
		m->s[2] = m->s[1] = *now;
	} else if (m->s[2].t == m->s[1].t && age > window / 2) {
		m->s[2] = *now;
	}
	return m->s[0].v;
}
static inline u32 minmax_running_max(struct minmax *m, u32 window, u32 t, u32 value)
{
	struct minmax_sample now = {.t = t, .v = value};

	if (value >= m->s[0].v || t - m->s[2].t > window)
		return minmax_reset(m, t, value);
	if (value >= m->s[1].v)
		m->s[2] = m->s[1] = now;
	else if (value >= m->s[2].v)
		m->s[2] = now;
	return linux_minmax_settle(m, window, &now);
}
static inline u32 minmax_running_min(struct minmax *m, u32 window, u32 t, u32 value)
{
	struct minmax_sample now = {.t = t, .v = value};

	if (value <= m->s[0].v || t - m->s[2].t > window)
		return minmax_reset(m, t, value);
	if (value <= m->s[1].v)
		m->s[2] = m->s[1] = now;
	else if (value <= m->s[2].v)
		m->s[2] = now;
	return linux_minmax_settle(m, window, &now);
}

#endif

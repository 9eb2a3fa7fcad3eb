/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The small things of the kernel that hwtw_wheel.c and hwtw_memory.c use, for
 * programs that include them: gcc -Itools/native -Iuapi.
 *
 * What is named here means what it means in the kernel. The headers in linux/
 * that don't bring anything of their own bring this.
 */
#ifndef _NATIVE_H
#define _NATIVE_H

#include <linux/limits.h>
#include <linux/types.h>

#undef static_assert
#define static_assert(expr)	_Static_assert(expr, #expr)

#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
#define noinline		__attribute__((noinline))
#define __maybe_unused	__attribute__((unused))
#ifndef __always_inline
#define __always_inline		inline __attribute__((always_inline))
#endif
#define ____cacheline_aligned_in_smp	__attribute__((aligned(64)))

#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, val)	(*(volatile __typeof__(x) *)&(x) = (val))

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

/* Each argument is evaluated once. Types are checked where the module is built. */
#define min(x, y) ({					\
	__typeof__((x) + (y)) _x = (x), _y = (y);	\
	_x < _y ? _x : _y; })
#define max(x, y) ({					\
	__typeof__((x) + (y)) _x = (x), _y = (y);	\
	_x > _y ? _x : _y; })
#define min3(x, y, z) ({				\
	__typeof__((x) + (y) + (z)) _m = min(x, y);	\
	min(_m, z); })
#define min_t(type, x, y)	({ type _a = (x), _b = (y); _a < _b ? _a : _b; })
#define max_t(type, x, y)	({ type _a = (x), _b = (y); _a > _b ? _a : _b; })

#define BIT(n)			(1UL << (n))
#define BIT_ULL(n)		(1ULL << (n))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))

static inline unsigned long __fls(unsigned long word)
{
	return sizeof(word) * 8 - 1 - __builtin_clzl(word);
}

static inline unsigned long __ffs64(u64 word)
{
	return __builtin_ctzll(word);
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

/* The compiler is not to know that the index is in bounds anyway. */
static inline unsigned long array_index_nospec(unsigned long index, unsigned long size)
{
	__asm__("" : "+r" (index));
	return index & -(unsigned long)(index < size);
}

#define prefetch(p)		__builtin_prefetch(p, 0)
#define prefetchw(p)		__builtin_prefetch(p, 1)

/* What an instance has beside its wheels is not for programs: names only. */
typedef struct { int unused; } spinlock_t;
typedef struct { int unused; } wait_queue_head_t;
typedef struct { long counter; } atomic_long_t;
struct mutex { int unused; };
struct hrtimer { int unused; };

static inline long atomic_long_read(const atomic_long_t *v)
{
	return READ_ONCE(v->counter);
}

#endif

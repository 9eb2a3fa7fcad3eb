/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _NATIVE_LINUX_PRANDOM_H
#define _NATIVE_LINUX_PRANDOM_H

#include <native.h>

/* Other numbers than the kernel's come of a seed. */
struct rnd_state {
	u64 x;
};

static inline void prandom_seed_state(struct rnd_state *rnd, u64 seed)
{
	rnd->x = seed;
}

static inline u32 prandom_u32_state(struct rnd_state *rnd)
{
	u64 x = rnd->x += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ULL;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ULL;
	return x >> 32;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _FUZZ_LINUX_PRANDOM_H
#define _FUZZ_LINUX_PRANDOM_H

#include <native.h>

/**
 * struct rnd_state - choices from the fuzzer's input, a byte for each
 * @pos: the next byte
 * @end: behind the last one
 * @mix: fills the lower bits, of the byte and those before it
 */
struct rnd_state {
	const u8 *pos;
	const u8 *end;
	u32 mix;
};

/* Set by the fuzzer, not by the model. */
static inline void prandom_seed_state(struct rnd_state *rnd, u64 seed)
{
}

/*
 * The byte decides, since choices are made by the upper bits. Behind the end it
 * is any: the model has loops that wait for a certain choice.
 */
static inline u32 prandom_u32_state(struct rnd_state *rnd)
{
	u32 byte = rnd->pos < rnd->end ? *rnd->pos++ : rnd->mix >> 24;

	rnd->mix = (rnd->mix ^ byte) * 0x9e3779b1U;
	return byte << 24 | rnd->mix >> 8;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hwtw: the inner parts of the wheel
 *
 * What hwtw_wheel.c and hwtw_memory.c share. The head of hwtw_wheel.c explains
 * it all.
 */
#ifndef _HWTW_WHEEL_H
#define _HWTW_WHEEL_H

#include <linux/bitops.h>
#include <linux/list.h>
#include <linux/minmax.h>

#include "hwtw.h"

/*
 * Pages and slots
 *
 * An entry of the directory is the address of a page, or, bit 0 set, what is
 * kept of a page that was freed: the next free page number and the first
 * generation that its slots have not had yet.
 */

#define HWTW_ENTRY_FREE(next, gen)	((u64)(gen) << 32 | (u64)(next) << 1 | 1)
#define HWTW_ENTRY_NEXT(entry)		((u32)(entry) >> 1)
#define HWTW_ENTRY_GEN(entry)		((u32)((entry) >> 32))
#define HWTW_ENTRY_END			((u32)S32_MAX)	/* of the list of free numbers */

/* The part of the directory that has a page's entry. */
static inline unsigned int hwtw_dir_part(u32 page)
{
	return __fls(page + BIT(HWTW_DIR_FIRST)) - HWTW_DIR_FIRST;
}

static inline u64 *hwtw_dir_entry(const struct hwtw_wheel *w, u32 page)
{
	unsigned long n = page + BIT(HWTW_DIR_FIRST);
	unsigned long k = __fls(n);

	return &w->dir[k - HWTW_DIR_FIRST][n ^ BIT(k)];
}

static inline struct hwtw_page *hwtw_entry_page(u64 entry)
{
	return (struct hwtw_page *)(unsigned long)entry;
}

/* The place 0 is the page's own. It looks like a slot that is not to be found. */
static inline struct hwtw_slot *hwtw_page_slot(const struct hwtw_page *page, u32 place)
{
	return (struct hwtw_slot *)page + place;
}

/* A slot that never has a timer. */
extern struct hwtw_slot hwtw_nobody;

/* The slot with an index that there is, or was: one of nobody if the page was freed. */
static inline struct hwtw_slot *hwtw_slot(const struct hwtw_wheel *w, u32 index)
{
	u64 entry = *hwtw_dir_entry(w, index >> HWTW_PLACE_BITS);

	if (unlikely(entry & 1))
		return &hwtw_nobody;
	return hwtw_page_slot(hwtw_entry_page(entry), index & HWTW_PLACE_MASK);
}

/*
 * Logs
 */

/* The chunk of a claim. A position behind a claim may be behind its chunk. */
static inline struct hwtw_chunk *hwtw_chunk_of(const struct hwtw_claim *claim)
{
	return (struct hwtw_chunk *)((unsigned long)claim & ~(HWTW_CHUNK_BYTES - 1UL));
}

/* Behind the last claim of a chunk. */
static inline struct hwtw_claim *hwtw_chunk_last(struct hwtw_chunk *chunk)
{
	return chunk->claim + HWTW_CHUNK_CLAIMS;
}

/* Behind the last claim of some chunk, or NULL. */
static inline bool hwtw_chunk_end(const struct hwtw_claim *pos)
{
	return !((unsigned long)pos & (HWTW_CHUNK_BYTES - 1));
}

static inline bool hwtw_log_empty(const struct hwtw_log *log)
{
	return log->head == log->tail;
}

static inline struct hwtw_block *hwtw_block_of(const struct hwtw_chunk *chunk)
{
	return (struct hwtw_block *)((unsigned long)chunk & ~(HWTW_PAGE_BYTES - 1UL));
}

/* There is one: hwtw_wheel_need() saw to it. */
static inline struct hwtw_chunk *hwtw_chunk_get(struct hwtw_wheel *w)
{
	struct hwtw_chunk *chunk = hlist_entry(w->pool.first, struct hwtw_chunk, pool);
	struct hwtw_block *block = hwtw_block_of(chunk);

	__hlist_del(&chunk->pool);
	if (block->free-- == HWTW_BLOCK_CHUNKS)
		__hlist_del(&block->whole);
	return chunk;
}

static inline void hwtw_chunk_put(struct hwtw_wheel *w, struct hwtw_chunk *chunk)
{
	struct hwtw_block *block = hwtw_block_of(chunk);

	hlist_add_head(&chunk->pool, &w->pool);
	if (++block->free == HWTW_BLOCK_CHUNKS)
		hlist_add_head(&block->whole, &w->whole_blocks);
}

/* The chunk that a sweep writes to was read from, to its end or not. */
static inline void hwtw_sweep_overtaken(struct hwtw_wheel *w, struct hwtw_log *log, bool whole)
{
	if (whole) {
		/* What follows is the next chunk to read, if there is one. */
		w->sweep.write = log->head ? hwtw_chunk_of(log->head) : NULL;
		w->sweep.read = w->sweep.write;
		w->sweep.out = log->head;
	} else if (w->sweep.out < log->head) {
		w->sweep.out = log->head;
	}
}

/* Drop @nr claims, all of them in the first chunk. */
static inline void hwtw_log_consume(struct hwtw_wheel *w, struct hwtw_log *log, unsigned int nr)
{
	struct hwtw_chunk *chunk = hwtw_chunk_of(log->head);
	bool whole = true;

	log->head += nr;
	w->claims -= nr;
	if (hwtw_log_empty(log)) {
		log->head = NULL;
		log->tail = NULL;
	} else if (hwtw_chunk_end(log->head)) {
		log->head = chunk->link->claim;
	} else {
		whole = false;
	}
	if (log == &w->log[w->sweep.log] && w->sweep.write == chunk)
		hwtw_sweep_overtaken(w, log, whole);
	if (whole)
		hwtw_chunk_put(w, chunk);
}

/* The number of claims up to the end of the first chunk, at most @max. */
static inline unsigned int hwtw_log_first(const struct hwtw_log *log, unsigned int max)
{
	struct hwtw_chunk *chunk = hwtw_chunk_of(log->head);
	const struct hwtw_claim *end = hwtw_chunk_last(chunk);

	if (hwtw_chunk_of(log->tail - 1) == chunk)
		end = log->tail;
	return min_t(unsigned int, end - log->head, max);
}

/*
 * Claims and buckets
 */

static inline bool hwtw_claim_valid(const struct hwtw_slot *slot, const struct hwtw_claim *claim)
{
	return slot->seq == claim->seq;
}

static inline u32 hwtw_seq_next(struct hwtw_wheel *w)
{
	if (unlikely(++w->seq == HWTW_SEQ_NONE))
		w->seq = 1;
	return w->seq;
}

/* The word of the bitmap that has a bucket's bit. */
static inline u64 *hwtw_bucket_word(struct hwtw_wheel *w, u32 bucket)
{
	return &w->bitmap[bucket / HWTW_ROW][bucket / HWTW_LEVEL_SIZE % 2];
}

static inline u64 hwtw_bucket_bit(u32 bucket)
{
	return BIT_ULL(bucket % HWTW_LEVEL_SIZE);
}

/* A bucket has no claims any more. */
static inline void hwtw_bucket_done(struct hwtw_wheel *w, u32 bucket)
{
	*hwtw_bucket_word(w, bucket) &= ~hwtw_bucket_bit(bucket);
}

/*
 * Late timers
 */

static inline struct hwtw_late *hwtw_late_first(const struct hwtw_wheel *w)
{
	return rb_entry_safe(rb_first_cached(&w->late), struct hwtw_late, node);
}

static inline struct hwtw_late *hwtw_late_get(struct hwtw_wheel *w)
{
	struct hwtw_late *late = w->late_spare;

	w->late_spare = late->link;
	w->late_spares--;
	return late;
}

static inline void hwtw_late_put(struct hwtw_wheel *w, struct hwtw_late *late)
{
	late->link = w->late_spare;
	w->late_spare = late;
	w->late_spares++;
}

static inline void hwtw_late_del(struct hwtw_wheel *w, struct hwtw_late *late)
{
	rb_erase_cached(&late->node, &w->late);
	hwtw_late_put(w, late);
	w->nr_late--;
}

#endif /* _HWTW_WHEEL_H */

// SPDX-License-Identifier: GPL-2.0-only
/*
 * hwtw: the memory of the wheel
 *
 * What the wheel needs, how it is given, and how it comes back. The rules are
 * under "Memory" at the head of hwtw_wheel.c.
 */
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "hwtw_wheel.h"

/* More chunks than claims and logs need. */
#define HWTW_CHUNK_SLACK	12U
/* Nodes for late timers asked for at once. */
#define HWTW_LATE_ASK		32
/*
 * Operations that pay for the sweep of one chunk: some add claims, others don't
 * and can take their time, unless hardly a claim is valid any more.
 */
#define HWTW_SWEEP_ARMS		2
#define HWTW_SWEEP_OPS		32
#define HWTW_SWEEP_LAST		2
#define HWTW_SWEEP_LAST_RATIO	6
/* Pieces of memory given back, and chunks of claims dropped, by one call. */
#define HWTW_TRIM_PIECES	16
#define HWTW_DROP_CHUNKS	128

/*
 * Stale claims
 */

/* From above, as claims move: those of a level are swept before they can get to the next. */
static void hwtw_sweep_next_log(struct hwtw_wheel *w)
{
	w->sweep.read = NULL;
	w->sweep.write = NULL;
	if (w->sweep.log)
		w->sweep.log--;
	else
		w->sweep.active = false;
}

/*
 * Read one chunk of the log being swept and move its valid claims to the front
 * of the log. What is left open behind them, up to the next chunk to read, is
 * filled with claims of nobody, so that others can read the log at any time.
 * Returns false if the log had none.
 */
static bool hwtw_sweep_chunk(struct hwtw_wheel *w)
{
	struct hwtw_claim nobody = { .seq = HWTW_SEQ_NONE };
	struct hwtw_log *log = &w->log[w->sweep.log];
	struct hwtw_claim *begin, *in, *end, *out;
	struct hwtw_chunk *chunk;
	bool last;

	if (hwtw_log_empty(log)) {
		hwtw_sweep_next_log(w);
		return false;
	}
	/* It will be moved like any other. */
	nobody.tick = log->head->tick;
	if (!w->sweep.read) {
		w->sweep.read = hwtw_chunk_of(log->head);
		w->sweep.write = w->sweep.read;
		w->sweep.out = log->head;
	}
	chunk = w->sweep.read;
	begin = w->sweep.out;
	out = begin;
	in = begin;
	if (w->sweep.write != chunk) {
		in = chunk->claim;
		w->claims -= hwtw_chunk_last(w->sweep.write) - out;
	}
	last = hwtw_chunk_of(log->tail - 1) == chunk;
	end = last ? log->tail : hwtw_chunk_last(chunk);

	w->claims -= end - in;
	w->dropped += end - in;
	for (; in < end; in++) {
		struct hwtw_slot *slot = hwtw_slot(w, in->index);

		if (!hwtw_claim_valid(slot, in))
			continue;
		/* Its number would be given again before long. */
		if (unlikely(w->seq - slot->seq > HWTW_SWEEP_SEQS / 2)) {
			slot->seq = hwtw_seq_next(w);
			in->seq = slot->seq;
		}
		if (w->sweep.write != chunk && hwtw_chunk_end(out)) {
			w->sweep.write = chunk;
			out = chunk->claim;
		}
		*out++ = *in;
		w->claims++;
		w->dropped--;
	}
	w->sweep.out = out;

	if (w->sweep.write != chunk) {
		w->sweep.write->link = chunk->link;
		hwtw_chunk_put(w, chunk);
	}
	if (!last) {
		w->sweep.read = w->sweep.write->link;
		w->claims += hwtw_chunk_last(w->sweep.write) - out;
		/* Unless it is filled already. */
		if (out != begin || w->sweep.write == chunk) {
			for (; out < hwtw_chunk_last(w->sweep.write); out++)
				*out = nobody;
		}
		return true;
	}
	/* A tail is never at the start of a chunk, and only the first chunk can be let go. */
	if (out == w->sweep.write->claim && w->sweep.write != hwtw_chunk_of(log->head)) {
		*out++ = nobody;
		w->claims++;
	}
	log->tail = out;
	if (hwtw_log_empty(log)) {
		log->head = NULL;
		log->tail = NULL;
		hwtw_chunk_put(w, w->sweep.write);
		if (w->sweep.log != HWTW_UNREAD)
			hwtw_bucket_done(w, w->sweep.log);
	}
	hwtw_sweep_next_log(w);
	return true;
}

/*
 * Memory
 */

/*
 * Most logs with a chunk that is not full. When the clock is set back those of
 * before and those of after count.
 */
static u32 hwtw_logs(const struct hwtw_wheel *w)
{
	return HWTW_LOGS << w->rewinds;
}

/* Chunks that can hold so many claims, however they spread over the logs. */
static u32 hwtw_chunks_for(const struct hwtw_wheel *w, u32 claims)
{
	return claims / HWTW_CHUNK_CLAIMS + min(claims << w->rewinds, hwtw_logs(w)) +
	       HWTW_CHUNK_SLACK;
}

static noinline void hwtw_sweep(struct hwtw_wheel *w, unsigned int chunks)
{
	if (!w->sweep.active) {
		w->sweep.active = true;
		w->sweep.log = HWTW_UNREAD;
		w->sweep.read = NULL;
		w->sweep.seq = w->seq;
	}
	while (w->sweep.active && chunks)
		chunks -= hwtw_sweep_chunk(w);
}

/* There are so many chunks now: the most claims for which hwtw_chunks_for() says as many. */
static void hwtw_chunks_set(struct hwtw_wheel *w, u32 chunks)
{
	u32 spare = chunks - min(chunks, HWTW_CHUNK_SLACK);
	/* That 15 claims take while each may be in a log of its own. */
	u32 most = (HWTW_CHUNK_CLAIMS << w->rewinds) + 1;

	w->chunks = chunks;
	if (spare >= hwtw_logs(w) + HWTW_LOGS / HWTW_CHUNK_CLAIMS)
		w->room = (spare - hwtw_logs(w) + 1) * HWTW_CHUNK_CLAIMS - 1;
	else
		w->room = spare / most * HWTW_CHUNK_CLAIMS +
			  min(spare % most >> w->rewinds, HWTW_CHUNK_CLAIMS - 1);
}

/* Drop up to so many chunks of a log. Returns how many more there might be. */
static unsigned int hwtw_log_drop(struct hwtw_wheel *w, struct hwtw_log *log, unsigned int chunks)
{
	for (; chunks && !hwtw_log_empty(log); chunks--) {
		unsigned int nr = hwtw_log_first(log, HWTW_CHUNK_CLAIMS);

		w->dropped += nr;
		hwtw_log_consume(w, log, nr);
	}
	return chunks;
}

/* Drop all claims, since none is valid, up to so many chunks of them. */
static noinline void hwtw_drop(struct hwtw_wheel *w, unsigned int chunks)
{
	unsigned int i;

	chunks = hwtw_log_drop(w, &w->log[HWTW_UNREAD], chunks);
	for (i = 0; i < 2 * HWTW_LEVELS; i++) {
		u64 *word = &w->bitmap[i / 2][i % 2];

		while (*word) {
			u32 bucket = i * HWTW_LEVEL_SIZE + __ffs64(*word);

			chunks = hwtw_log_drop(w, &w->log[bucket], chunks);
			if (!hwtw_log_empty(&w->log[bucket]))
				return;
			hwtw_bucket_done(w, bucket);
		}
	}
}

/* There are chunks that nobody uses, a block of them and more than are kept. */
static bool hwtw_block_spare(const struct hwtw_wheel *w)
{
	return !hlist_empty(&w->whole_blocks) &&
	       w->chunks >= hwtw_chunks_for(w, hwtw_claims_max(w)) + HWTW_CHUNK_KEEP +
			    HWTW_BLOCK_CHUNKS;
}

static noinline void hwtw_trim(struct hwtw_wheel *w)
{
	unsigned int trim = HWTW_TRIM_PIECES;

	for (; hwtw_block_spare(w) && trim; trim--) {
		struct hwtw_block *block = hlist_entry(w->whole_blocks.first, struct hwtw_block,
						       whole);
		unsigned int i;

		for (i = 0; i < HWTW_BLOCK_CHUNKS; i++)
			__hlist_del(&block->chunk[i].pool);
		__hlist_del(&block->whole);
		list_del(&block->node);
		hwtw_page_free(block);
		hwtw_chunks_set(w, w->chunks - HWTW_BLOCK_CHUNKS);
	}
	for (; w->late_spares > HWTW_LATE_KEEP && trim; trim--)
		kfree(hwtw_late_get(w));
}

/**
 * hwtw_wheel_tidy - keep memory in bounds
 * @w: the wheel
 * @arms: operations since the last call that may have added claims
 * @others: other operations since the last call
 *
 * Looks for stale claims if there are too many, in proportion to the
 * operations, and gives back what is not needed any more.
 *
 * Return: true if the last timer is gone and its memory not yet: call again.
 */
bool hwtw_wheel_tidy(struct hwtw_wheel *w, unsigned int arms, unsigned int others)
{
	u32 valid = hwtw_valid(w);
	unsigned int slow = HWTW_SWEEP_OPS;

	if (w->claims / HWTW_SWEEP_LAST_RATIO > valid)
		slow = HWTW_SWEEP_LAST;
	if (!valid)
		hwtw_drop(w, HWTW_DROP_CHUNKS);
	else if (hwtw_sweep_wanted(w))
		hwtw_sweep(w, 1 + arms / HWTW_SWEEP_ARMS + others / slow);
	hwtw_trim(w);
	return !valid && (w->claims || hwtw_block_spare(w));
}

/**
 * hwtw_wheel_need - what is missing for some operations
 * @w: the wheel
 * @arms: timers that may be armed
 * @adds: other operations that may add a claim: timers that may be re-armed, or
 *	armed in slots that are free by then
 * @need: what is missing
 *
 * Return: 1 if something is missing, 0 if nothing is, -ENOSPC if no page can
 * be added any more.
 */
int hwtw_wheel_need(const struct hwtw_wheel *w, unsigned int arms, unsigned int adds,
		    struct hwtw_need *need)
{
	u32 claims = hwtw_claims_max(w) + arms + adds;

	if (!hwtw_wheel_short(w, arms, adds))
		return 0;
	memset(need, 0, sizeof(*need));
	if (claims > w->room)
		need->blocks = DIV_ROUND_UP(hwtw_chunks_for(w, claims) - w->chunks,
					    HWTW_BLOCK_CHUNKS);
	if (w->late_wanted)
		need->late = HWTW_LATE_ASK;
	if (w->free_slots < arms) {
		need->pages = DIV_ROUND_UP(arms - w->free_slots, HWTW_PAGE_SLOTS);
		if (w->free_page == HWTW_ENTRY_END) {
			unsigned int part = hwtw_dir_part(w->nr_pages);

			if (w->nr_pages == HWTW_PAGES_MAX)
				return -ENOSPC;
			if (!w->dir[part])
				need->dir = BIT(part + HWTW_DIR_FIRST);
		}
	}
	return 1;
}

/**
 * hwtw_page_alloc - get memory for slots or chunks
 * @gfp: how
 *
 * Return: HWTW_PAGE_BYTES, aligned to that, or NULL.
 */
void *hwtw_page_alloc(gfp_t gfp)
{
	/* Cheaper, where it has such pages. */
	if (PAGE_SIZE == HWTW_PAGE_BYTES)
		return (void *)__get_free_page(gfp);
	return kmalloc(HWTW_PAGE_BYTES, gfp);
}

/**
 * hwtw_page_free - give memory of hwtw_page_alloc() back
 * @page: the memory
 */
void hwtw_page_free(void *page)
{
	if (PAGE_SIZE == HWTW_PAGE_BYTES)
		free_page((unsigned long)page);
	else
		kfree(page);
}

/**
 * hwtw_wheel_give_block - add a block of chunks
 * @w: the wheel
 * @block: memory of hwtw_page_alloc()
 */
void hwtw_wheel_give_block(struct hwtw_wheel *w, struct hwtw_block *block)
{
	unsigned int i;

	list_add(&block->node, &w->blocks);
	block->free = 0;
	for (i = HWTW_BLOCK_CHUNKS; i--;)
		hwtw_chunk_put(w, &block->chunk[i]);
	hwtw_chunks_set(w, w->chunks + HWTW_BLOCK_CHUNKS);
}

/**
 * hwtw_wheel_give_late - add a node for a late timer
 * @w: the wheel
 * @late: memory of kmalloc()
 */
void hwtw_wheel_give_late(struct hwtw_wheel *w, struct hwtw_late *late)
{
	hwtw_late_put(w, late);
	w->late_wanted = false;
}

/**
 * hwtw_wheel_give_dir - add a part of the page directory
 * @w: the wheel
 * @part: memory of kvcalloc()
 * @entries: &struct hwtw_need.dir
 *
 * Return: false if it is not needed any more.
 */
bool hwtw_wheel_give_dir(struct hwtw_wheel *w, u64 *part, unsigned int entries)
{
	unsigned int nr = __fls(entries) - HWTW_DIR_FIRST;

	if (w->dir[nr])
		return false;
	w->dir[nr] = part;
	return true;
}

/**
 * hwtw_wheel_give_page - add a page of slots
 * @w: the wheel
 * @page: memory of hwtw_page_alloc()
 *
 * Return: false if there is no room for it in the directory.
 */
bool hwtw_wheel_give_page(struct hwtw_wheel *w, struct hwtw_page *page)
{
	u32 nr = w->free_page;
	u64 *entry;
	u32 gen = 1;
	int i;

	if (nr != HWTW_ENTRY_END) {
		entry = hwtw_dir_entry(w, nr);
		gen = HWTW_ENTRY_GEN(*entry);
		w->free_page = HWTW_ENTRY_NEXT(*entry);
	} else {
		nr = w->nr_pages;
		if (nr == HWTW_PAGES_MAX || !w->dir[hwtw_dir_part(nr)])
			return false;
		entry = hwtw_dir_entry(w, nr);
		w->nr_pages++;
	}
	*entry = (unsigned long)page;
	page->index = nr << HWTW_PLACE_BITS;
	page->free = HWTW_PAGE_SLOTS;
	page->free_first = 1;
	page->free_last = HWTW_PAGE_SLOTS;
	page->slots = HWTW_PAGE_SLOTS;
	page->key = HWTW_KEY_NOBODY;
	page->seq = 0;
	for (i = 0; i < HWTW_PAGE_SLOTS; i++) {
		page->slot[i].next_free = i + 2;
		page->slot[i].key = HWTW_KEY(gen, HWTW_SLOT_FREE);
		page->slot[i].seq = 0;
	}
	list_add_tail(&page->node, &w->partial);
	w->free_slots += HWTW_PAGE_SLOTS;
	w->pages++;
	return true;
}

/**
 * hwtw_wheel_destroy - free all memory of a wheel
 * @w: the wheel
 * @budget: most pieces of memory to free
 *
 * Return: true if it has to be called again.
 */
bool hwtw_wheel_destroy(struct hwtw_wheel *w, unsigned int budget)
{
	struct hwtw_block *block, *next;
	struct hwtw_late *late;
	unsigned int i;

	for (; w->nr_pages; w->nr_pages--) {
		u64 entry = *hwtw_dir_entry(w, w->nr_pages - 1);

		if (!budget--)
			return true;
		if (!(entry & 1))
			hwtw_page_free(hwtw_entry_page(entry));
	}
	list_for_each_entry_safe(block, next, &w->blocks, node) {
		if (!budget--)
			return true;
		list_del(&block->node);
		hwtw_page_free(block);
	}
	while ((late = hwtw_late_first(w))) {
		if (!budget--)
			return true;
		hwtw_late_del(w, late);
	}
	while (w->late_spare) {
		if (!budget--)
			return true;
		kfree(hwtw_late_get(w));
	}
	for (i = 0; i < HWTW_DIR_PARTS; i++)
		kvfree(w->dir[i]);
	return false;
}

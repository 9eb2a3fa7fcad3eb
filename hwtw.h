/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hwtw: types and functions shared inside the module
 */
#ifndef _HWTW_H
#define _HWTW_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/hrtimer.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>

#include <linux/hwtw.h>

struct iov_iter;

/*
 * The wheel: hwtw_wheel.c. Its head comment explains how it works.
 */

#define HWTW_LEVEL_BITS		6
#define HWTW_LEVEL_SIZE		(1U << HWTW_LEVEL_BITS)
#define HWTW_LEVELS		8

/* A deadline is at most 2^63 - 1 ns and a tick at least 2^16 ns. */
#define HWTW_TICK_SHIFT_MIN	16
#define HWTW_TICK_SHIFT_MAX	30
#define HWTW_TICK_LAST		(1ULL << (63 - HWTW_TICK_SHIFT_MIN))

/*
 * A level has the buckets of two windows, the present one and the next. The
 * last level has one window and is cut off behind the bucket of the last tick.
 */
#define HWTW_ROW		(2 * HWTW_LEVEL_SIZE)
#define HWTW_LAST_SHIFT		((HWTW_LEVELS - 1) * HWTW_LEVEL_BITS)
#define HWTW_BUCKETS		((HWTW_LEVELS - 1) * HWTW_ROW + \
				 (unsigned int)(HWTW_TICK_LAST >> HWTW_LAST_SHIFT) + 1)
/*
 * Two more logs follow the buckets: of expired timers that were not read yet,
 * and of those that need a new place since the clock was set back.
 */
#define HWTW_UNREAD		HWTW_BUCKETS
#define HWTW_REWIND		(HWTW_BUCKETS + 1)
#define HWTW_LOGS		(HWTW_BUCKETS + 2)

/*
 * A timer's id: generation, number of the wheel, index of the slot. A slot
 * index is a page number and a place in the page, of which the first is none.
 * Each slot counts its own generations from 1 and is not used again when they
 * are spent, so an id is never 0 and never comes back.
 */
#define HWTW_PLACE_BITS		7
#define HWTW_PAGE_BITS		19
#define HWTW_INDEX_BITS		(HWTW_PAGE_BITS + HWTW_PLACE_BITS)
#define HWTW_WHEEL_BITS		10
#define HWTW_GEN_SHIFT		(HWTW_INDEX_BITS + HWTW_WHEEL_BITS)
#define HWTW_GEN_BITS		28
#define HWTW_WHEELS_MAX		(1U << HWTW_WHEEL_BITS)
#define HWTW_INDEX_MASK		((1U << HWTW_INDEX_BITS) - 1)
#define HWTW_PLACE_MASK		((1U << HWTW_PLACE_BITS) - 1)
#define HWTW_GEN_MAX		((1U << HWTW_GEN_BITS) - 1)

/* What slots and chunks are made of. */
#define HWTW_PAGE_BYTES		4096
#define HWTW_PAGE_SLOTS		127

/*
 * The page directory grows by parts that double in size and never move: with
 * n = page number + 64 and k = __fls(n), the entry of the page is
 * dir[k - 6][n - 2^k].
 */
#define HWTW_DIR_FIRST		6
#define HWTW_DIR_PARTS		(HWTW_PAGE_BITS - HWTW_DIR_FIRST)
#define HWTW_PAGES_MAX		((1U << HWTW_PAGE_BITS) - (1U << HWTW_DIR_FIRST))

/* What is going on with a slot. */
enum hwtw_state {
	HWTW_SLOT_PENDING	= 0,
	HWTW_SLOT_EXPIRED	= 1,	/* in the log of unread timers */
	HWTW_SLOT_LATE		= 2,	/* expired, in the tree of late timers */
	HWTW_SLOT_FREE		= 8,
};

/* A slot's key: its state above the generation. */
#define HWTW_KEY(gen, state)	((u32)(state) << HWTW_GEN_BITS | (gen))
#define HWTW_KEY_GEN(key)	((key) & HWTW_GEN_MAX)
#define HWTW_KEY_STATE(key)	((key) >> HWTW_GEN_BITS)
#define HWTW_KEY_NOBODY		HWTW_KEY(0, HWTW_SLOT_FREE)

/**
 * struct hwtw_slot - what is true about a timer
 * @expires_ns: deadline
 * @next_free: place of the next free slot of the page, while this one is free
 * @user_data: the user's
 * @interval_ns: 0 for one-shot timers
 * @key: generation and state; the generation of a free slot is the next timer's
 * @seq: the claim with this number is the timer's, 0: none is
 */
struct hwtw_slot {
	union {
		u64 expires_ns;
		u8 next_free;
	};
	u64 user_data;
	u64 interval_ns;
	u32 key;
	u32 seq;
};

/**
 * struct hwtw_page - slots, aligned to its size
 * @node: in hwtw_wheel.partial while there is a free slot
 * @index: index of the place 0
 * @free: free slots
 * @slots: slots that have not spent their generations
 * @free_first: the one that is used next, if there is one
 * @free_last: the one that is used last, so that all age alike
 * @reserved: keeps the places where a pointer has 32 bits
 * @key: where a slot has its key: nobody's
 * @seq: where a slot has its seq: 0
 * @slot: the slots; the first one's place is 1
 */
struct hwtw_page {
	struct list_head node;
	u32 index;
	u8 free;
	u8 slots;
	u8 free_first;
	u8 free_last;
#ifndef CONFIG_64BIT
	u32 reserved[2];
#endif
	u32 key;
	u32 seq;
	struct hwtw_slot slot[HWTW_PAGE_SLOTS];
};

/**
 * struct hwtw_claim - "the timer in this slot may be due at this tick"
 * @tick: deadline tick of the timer when the claim was made
 * @index: the slot
 * @seq: the claim is valid while this is the slot's, and stale for ever after
 */
struct hwtw_claim {
	u64 tick;
	u32 index;
	u32 seq;
};

#define HWTW_SEQ_NONE		U32_MAX		/* no slot has it */

#define HWTW_CHUNK_BYTES	256
#define HWTW_CHUNK_CLAIMS	15

/**
 * struct hwtw_chunk - piece of a log, aligned to its size
 * @link: next chunk of the log
 * @pool: in hwtw_wheel.pool, while it is free
 * @reserved: keeps the size
 * @claim: the claims
 */
struct hwtw_chunk {
	union {
		struct hwtw_chunk *link;
		struct hlist_node pool;
		u64 reserved[2];
	};
	struct hwtw_claim claim[HWTW_CHUNK_CLAIMS];
};

#define HWTW_BLOCK_CHUNKS	15

/**
 * struct hwtw_block - a page of chunks, aligned to its size
 * @node: in hwtw_wheel.blocks
 * @whole: in hwtw_wheel.whole_blocks while all chunks are free
 * @free: free chunks
 * @reserved: keeps the chunks' alignment
 * @chunk: the chunks
 */
struct hwtw_block {
	union {
		struct {
			struct list_head node;
			struct hlist_node whole;
			u32 free;
		};
		u8 reserved[HWTW_CHUNK_BYTES];
	};
	struct hwtw_chunk chunk[HWTW_BLOCK_CHUNKS];
};

/**
 * struct hwtw_log - claims in the order they were appended
 * @head: the next claim to read
 * @tail: behind the last claim; the same as @head, NULL, in an empty log
 */
struct hwtw_log {
	struct hwtw_claim *head;
	struct hwtw_claim *tail;
};

/**
 * struct hwtw_late - one timer of the tree of late timers
 * @node: in hwtw_wheel.late, sorted by the claim's tick, seq and index
 * @link: while it is a spare
 * @claim: of the timer
 */
struct hwtw_late {
	union {
		struct rb_node node;
		struct hwtw_late *link;
	};
	struct hwtw_claim claim;
};

/**
 * struct hwtw_need - memory that a wheel lacks
 * @blocks: number of &struct hwtw_block
 * @pages: number of &struct hwtw_page
 * @late: number of &struct hwtw_late
 * @dir: entries of the next part of the page directory, or 0
 */
struct hwtw_need {
	unsigned int blocks;
	unsigned int pages;
	unsigned int late;
	unsigned int dir;
};

/**
 * struct hwtw_wheel - timers of one instance armed on one CPU
 * @clk: tick up to which all was expired
 * @next: no bucket with claims starts before this tick, U64_MAX: none at all
 * @wake: tick at which the wheel wants to run, at the latest @next
 * @end: claims of earlier ticks than this may go to the level
 * @unread_tick: tick of the newest timer in the log of unread ones
 * @shift: a tick is 2^shift ns
 * @nr: number of the wheel
 * @id: what is the same in all ids
 * @instance: number of the instance, for traces; set by the owner
 * @seq: seq of the newest claim
 * @pending: timers waiting for their deadline
 * @unread: timers expired and not read, those in @late included
 * @nr_late: timers in @late
 * @late_spares: nodes in @late_spare
 * @late_wanted: an operation failed for lack of a &struct hwtw_late
 * @rewinds: the clock may be set back; set by the owner before the first timer
 * @claims: claims in all logs, stale ones included
 * @chunks: chunks in all blocks
 * @room: claims that the chunks are enough for
 * @free_slots: free slots in all pages of @partial
 * @nr_pages: page numbers in use or used before
 * @pages: pages there are
 * @free_page: first page number to be used again, or the end of the list
 * @armed: timers armed so far; this and what follows is for &struct hwtw_stats
 * @rearmed: times a timer was re-armed
 * @cancelled: timers cancelled
 * @cancelled_unread: those of them that had expired
 * @withdrawn: unread records of timers that were cancelled or re-armed
 * @expired: expiries
 * @delivered: records read
 * @completed: timers whose last record was read
 * @overruns: of the records read
 * @late_ticks: longest way from a deadline tick to its expiry
 * @cascaded: claims moved to another bucket
 * @dropped: stale claims dropped
 * @blocks: all blocks of chunks
 * @whole_blocks: those with no chunk in use
 * @pool: free chunks, the hottest first
 * @late: expired timers that came too late for the order of the unread log
 * @late_spare: nodes for @late
 * @partial: pages with free slots, empty ones last
 * @sweep: where the search for stale claims stands: the log, the chunk to read
 *	next (NULL: begin anew), where the next valid claim goes, its chunk, and
 *	@seq when the last sweep began
 * @bitmap: for each window of a level a bit per bucket, set while it has claims
 * @dir: page directory
 * @log: the buckets and the log of unread timers
 *
 * The owner serialises all calls. Nothing here sleeps, allocates, or looks at
 * a clock.
 */
struct hwtw_wheel {
	u64 clk;
	u64 next;
	u64 wake;
	u64 end[HWTW_LEVELS];
	u64 unread_tick;
	u64 id;
	u32 shift;
	u32 nr;
	u32 instance;
	u32 seq;
	u32 pending;
	u32 unread;
	u32 nr_late;
	u32 late_spares;
	bool late_wanted;
	bool rewinds;
	u32 claims;
	u32 chunks;
	u32 room;
	u32 free_slots;
	u32 nr_pages;
	u32 pages;
	u32 free_page;
	u64 armed;
	u64 rearmed;
	u64 cancelled;
	u64 cancelled_unread;
	u64 withdrawn;
	u64 expired;
	u64 delivered;
	u64 completed;
	u64 overruns;
	u64 late_ticks;
	u64 cascaded;
	u64 dropped;
	struct list_head blocks;
	struct hlist_head whole_blocks;
	struct hlist_head pool;
	struct rb_root_cached late;
	struct hwtw_late *late_spare;
	struct list_head partial;
	struct {
		bool active;
		u32 log;
		u32 seq;
		struct hwtw_chunk *read;
		struct hwtw_chunk *write;
		struct hwtw_claim *out;
	} sweep;
	u64 bitmap[HWTW_LEVELS][2];
	u64 *dir[HWTW_DIR_PARTS];
	struct hwtw_log log[HWTW_LOGS];
};

/**
 * struct hwtw_batch - records that a reader may take
 * @nr: their number
 * @claims: claims of the unread log up to the last of them; 0: they are of late
 *	timers
 * @slot: their slots
 * @ev: the records
 */
struct hwtw_batch {
	unsigned int nr;
	unsigned int claims;
	struct hwtw_slot *slot[HWTW_CHUNK_CLAIMS];
	struct hwtw_event ev[HWTW_CHUNK_CLAIMS];
};

/* The memory of a wheel: given by its owner, in process context. */
void hwtw_wheel_init(struct hwtw_wheel *w, u32 nr, u32 shift, u64 now);
int hwtw_wheel_need(const struct hwtw_wheel *w, unsigned int arms, unsigned int adds,
		    struct hwtw_need *need);
void *hwtw_page_alloc(gfp_t gfp);
void hwtw_page_free(void *page);
void hwtw_wheel_give_block(struct hwtw_wheel *w, struct hwtw_block *block);
void hwtw_wheel_give_late(struct hwtw_wheel *w, struct hwtw_late *late);
bool hwtw_wheel_give_dir(struct hwtw_wheel *w, u64 *part, unsigned int entries);
bool hwtw_wheel_give_page(struct hwtw_wheel *w, struct hwtw_page *page);
bool hwtw_wheel_tidy(struct hwtw_wheel *w, unsigned int arms, unsigned int others);
bool hwtw_wheel_destroy(struct hwtw_wheel *w, unsigned int budget);

/* Chunks and nodes for late timers that are not given back. */
#define HWTW_CHUNK_KEEP		32
#define HWTW_LATE_KEEP		64
/* A sweep begins with so many stale claims for a valid one, and these. */
#define HWTW_STALE_RATIO	2
#define HWTW_STALE_MIN		2048
/* ... or when so many claims were numbered since the last one began. */
#define HWTW_SWEEP_SEQS		(1U << 30)

/* Claims that are valid. */
static inline u32 hwtw_valid(const struct hwtw_wheel *w)
{
	return w->pending + w->unread - w->nr_late;
}

/* Claims, and late timers, which get one if they are periodic. */
static inline u32 hwtw_claims_max(const struct hwtw_wheel *w)
{
	return w->claims + w->nr_late;
}

/*
 * Whether the wheel lacks memory for some operations: hwtw_wheel_need() tells
 * what. It lacks none for those that neither arm nor add.
 */
static inline bool hwtw_wheel_short(const struct hwtw_wheel *w, unsigned int arms,
				    unsigned int adds)
{
	return hwtw_claims_max(w) + arms + adds > w->room || w->free_slots < arms ||
	       (unlikely(w->late_wanted) && arms + adds);
}

/* Whether stale claims are being looked for, or have to be. */
static inline bool hwtw_sweep_wanted(const struct hwtw_wheel *w)
{
	return w->sweep.active ||
	       w->claims > (HWTW_STALE_RATIO + 1) * hwtw_valid(w) + HWTW_STALE_MIN ||
	       w->seq - w->sweep.seq > HWTW_SWEEP_SEQS;
}

/* Whether hwtw_wheel_tidy() has something to do. */
static inline bool hwtw_wheel_untidy(const struct hwtw_wheel *w)
{
	const u32 spare = HWTW_CHUNK_KEEP + HWTW_BLOCK_CHUNKS;

	if (unlikely(!hwtw_valid(w)))
		return w->claims || w->room > hwtw_claims_max(w) + spare;
	return hwtw_sweep_wanted(w) ||
	       (!hlist_empty(&w->whole_blocks) &&
		w->room > hwtw_claims_max(w) + (spare + 1) * HWTW_CHUNK_CLAIMS) ||
	       w->late_spares > HWTW_LATE_KEEP;
}

int hwtw_op_check(const struct hwtw_op *op, u32 shift);
unsigned int hwtw_wheel_ops(struct hwtw_wheel *w, u64 now, unsigned int *credit,
			    struct hwtw_op *op, unsigned int nr);
unsigned int hwtw_wheel_op(struct hwtw_wheel *w, u64 now, unsigned int *credit,
			   struct hwtw_op *op);

unsigned int hwtw_wheel_list(const struct hwtw_wheel *w, u32 *index,
			     struct hwtw_timer *timer, unsigned int max);
void hwtw_wheel_cancel(struct hwtw_wheel *w, const struct hwtw_timer *timer, unsigned int nr);
void hwtw_wheel_stats(const struct hwtw_wheel *w, u64 now, struct hwtw_stats *stats);

/* Expiry and delivery. */
bool hwtw_wheel_rewind(struct hwtw_wheel *w, u64 now, unsigned int budget);
bool hwtw_wheel_run(struct hwtw_wheel *w, u64 now, unsigned int budget);
u64 hwtw_wheel_unread_tick(struct hwtw_wheel *w);
unsigned int hwtw_wheel_peek(struct hwtw_wheel *w, u64 now, u64 last_tick,
			     struct hwtw_batch *batch, unsigned int max);
unsigned int hwtw_wheel_take(struct hwtw_wheel *w, const struct hwtw_batch *batch,
			     unsigned int nr);

/*
 * Instances: hwtw_instance.c
 */

/**
 * struct hwtw_cpu - the timers of an instance that were armed on one CPU
 * @lock: guards all below. Taken alone: of two wheels never both. The timer
 *	base's locks nest inside, wait queues are woken outside.
 * @timer: runs the wheel, queued only under @lock
 * @programmed: tick for which @timer is queued, U64_MAX: it is not
 * @tidied: &hwtw_wheel.seq when the wheel was tidied up last
 * @ops: operations since then
 * @counted: part of &struct hwtw.unread that is this wheel's
 * @runs: times @timer ran
 * @longest_run_ns: the longest of them
 * @hwtw: the instance
 * @wheel: the wheel
 */
struct hwtw_cpu {
	spinlock_t lock;
	u32 tidied;
	u32 ops;
	u32 counted;
	struct hrtimer timer;
	u64 programmed;
	u64 runs;
	u64 longest_run_ns;
	struct hwtw *hwtw;
	struct hwtw_wheel wheel;
};

/**
 * struct hwtw - an instance, what one open file is
 * @setup: guards @clockid, @shift and @max_timers until there is a wheel, from
 *	when on they don't change, and the making of wheels
 * @clockid: CLOCK_*
 * @shift: a tick is 2^shift ns
 * @nr: a number, to tell it from others in traces
 * @max_timers: limit on @timers
 * @fasync: who wants SIGIO
 * @timers: live timers, and those that may still be armed by a call under way
 * @unread: records that can be read
 * @wait: readers
 * @nr_cpus: entries of @cpu
 * @cpu: the wheels, made on first use
 */
struct hwtw {
	struct mutex setup;
	clockid_t clockid;
	u32 shift;
	u32 nr;
	u64 max_timers;
	struct fasync_struct *fasync;
	atomic_long_t timers ____cacheline_aligned_in_smp;
	atomic_long_t unread;
	wait_queue_head_t wait;
	unsigned int nr_cpus ____cacheline_aligned_in_smp;
	struct hwtw_cpu *cpu[];
};

/* Limits, module parameters. */
extern unsigned int hwtw_max_timers;
extern unsigned int hwtw_max_timers_total;

struct hwtw *hwtw_create(void);
void hwtw_destroy(struct hwtw *hwtw);
int hwtw_setup(struct hwtw *hwtw, const struct hwtw_setup *setup);
void hwtw_run_ops(struct hwtw *hwtw, struct hwtw_op *op, unsigned int nr);
void hwtw_run_op(struct hwtw *hwtw, struct hwtw_op *op);
int hwtw_deliver(struct hwtw *hwtw, struct iov_iter *to);
int hwtw_list(struct hwtw *hwtw, struct hwtw_list *list);
void hwtw_stats(struct hwtw *hwtw, struct hwtw_stats *stats);

/* Whether a read would find something. */
static inline bool hwtw_readable(const struct hwtw *hwtw)
{
	return atomic_long_read(&hwtw->unread) > 0;
}

/* Which wheel an id belongs to. */
static inline u32 hwtw_id_wheel(u64 id)
{
	return (id >> HWTW_INDEX_BITS) & (HWTW_WHEELS_MAX - 1);
}

#endif /* _HWTW_H */

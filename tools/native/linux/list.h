/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _NATIVE_LINUX_LIST_H
#define _NATIVE_LINUX_LIST_H

#include <native.h>

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool list_empty(const struct list_head *list)
{
	return list->next == list;
}

static inline void list_add(struct list_head *node, struct list_head *before)
{
	node->next = before->next;
	node->prev = before;
	before->next->prev = node;
	before->next = node;
}

static inline void list_add_tail(struct list_head *node, struct list_head *behind)
{
	list_add(node, behind->prev);
}

/* No list is to be walked through a node that was removed. */
static inline void list_del(struct list_head *node)
{
	node->next->prev = node->prev;
	node->prev->next = node->next;
	node->next = NULL;
	node->prev = NULL;
}

static inline void list_move_tail(struct list_head *node, struct list_head *list)
{
	list_del(node);
	list_add_tail(node, list);
}

#define list_entry(ptr, type, member)	container_of(ptr, type, member)
#define list_first_entry(list, type, member) \
	list_entry((list)->next, type, member)
#define list_for_each_entry(pos, list, member)				\
	for (pos = list_first_entry(list, __typeof__(*pos), member);	\
	     &pos->member != (list);					\
	     pos = list_first_entry(&pos->member, __typeof__(*pos), member))
#define list_for_each_entry_safe(pos, after, list, member)		\
	for (pos = list_first_entry(list, __typeof__(*pos), member);	\
	     after = list_first_entry(&pos->member, __typeof__(*pos), member), \
	     &pos->member != (list);					\
	     pos = after)

static inline bool hlist_empty(const struct hlist_head *list)
{
	return !list->first;
}

static inline void hlist_add_head(struct hlist_node *node, struct hlist_head *list)
{
	node->next = list->first;
	node->pprev = &list->first;
	if (node->next)
		node->next->pprev = &node->next;
	list->first = node;
}

static inline void __hlist_del(struct hlist_node *node)
{
	*node->pprev = node->next;
	if (node->next)
		node->next->pprev = node->pprev;
}

#define hlist_entry(ptr, type, member)	container_of(ptr, type, member)
#define hlist_entry_safe(ptr, type, member)	({			\
	__typeof__(ptr) _node = (ptr);					\
	_node ? hlist_entry(_node, type, member) : NULL; })
#define hlist_for_each_entry(pos, list, member)				\
	for (pos = hlist_entry_safe((list)->first, __typeof__(*pos), member); \
	     pos;							\
	     pos = hlist_entry_safe(pos->member.next, __typeof__(*pos), member))

#endif

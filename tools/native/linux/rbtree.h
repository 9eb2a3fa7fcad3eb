/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's interface, but a treap beneath it: nodes are sorted by their
 * keys from left to right, and by a hash of their addresses from top to bottom.
 */
#ifndef _NATIVE_LINUX_RBTREE_H
#define _NATIVE_LINUX_RBTREE_H

#include <native.h>

struct rb_node {
	struct rb_node *rb_parent, *rb_left, *rb_right;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
};

#define RB_ROOT_CACHED		((struct rb_root_cached) { { NULL } })
#define rb_entry(ptr, type, member)	container_of(ptr, type, member)
#define rb_entry_safe(ptr, type, member) ({			\
	__typeof__(ptr) _ptr = (ptr);				\
	_ptr ? rb_entry(_ptr, type, member) : NULL; })

static inline struct rb_node *rb_first_cached(const struct rb_root_cached *tree)
{
	struct rb_node *node = tree->rb_root.rb_node;

	while (node && node->rb_left)
		node = node->rb_left;
	return node;
}

static inline struct rb_node *rb_next(const struct rb_node *node)
{
	if (node->rb_right) {
		node = node->rb_right;
		while (node->rb_left)
			node = node->rb_left;
		return (struct rb_node *)node;
	}
	while (node->rb_parent && node == node->rb_parent->rb_right)
		node = node->rb_parent;
	return node->rb_parent;
}

static inline u64 rb_rank(const struct rb_node *node)
{
	u64 x = (unsigned long)node * 0x9e3779b97f4a7c15ULL;

	return x ^ x >> 32;
}

/* Put @node, or nothing, where @old is. */
static inline void rb_replace(struct rb_root *root, struct rb_node *old, struct rb_node *node)
{
	struct rb_node *parent = old->rb_parent;

	if (!parent)
		root->rb_node = node;
	else if (parent->rb_left == old)
		parent->rb_left = node;
	else
		parent->rb_right = node;
	if (node)
		node->rb_parent = parent;
}

/* Let a node and its parent change places, the order staying what it is. */
static inline void rb_raise(struct rb_root *root, struct rb_node *node)
{
	struct rb_node *parent = node->rb_parent, *between;

	rb_replace(root, parent, node);
	if (parent->rb_left == node) {
		between = node->rb_right;
		parent->rb_left = between;
		node->rb_right = parent;
	} else {
		between = node->rb_left;
		parent->rb_right = between;
		node->rb_left = parent;
	}
	parent->rb_parent = node;
	if (between)
		between->rb_parent = parent;
}

static inline void rb_add_cached(struct rb_node *node, struct rb_root_cached *tree,
				 bool (*less)(struct rb_node *a, const struct rb_node *b))
{
	struct rb_node **link = &tree->rb_root.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = less(node, parent) ? &parent->rb_left : &parent->rb_right;
	}
	*node = (struct rb_node) { .rb_parent = parent };
	*link = node;
	while (node->rb_parent && rb_rank(node) > rb_rank(node->rb_parent))
		rb_raise(&tree->rb_root, node);
}

static inline void rb_erase_cached(struct rb_node *node, struct rb_root_cached *tree)
{
	while (node->rb_left && node->rb_right)
		rb_raise(&tree->rb_root, rb_rank(node->rb_left) > rb_rank(node->rb_right) ?
			 node->rb_left : node->rb_right);
	rb_replace(&tree->rb_root, node, node->rb_left ? node->rb_left : node->rb_right);
}

#endif

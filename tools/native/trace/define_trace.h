/* SPDX-License-Identifier: GPL-2.0-only */
/* Nothing to define: see linux/tracepoint.h. */

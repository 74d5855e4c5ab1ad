/*
 * guard.h: conditions that keep cached answers true, each of which can be removed from a build.
 *
 * GUARD(WORD, condition) is the condition. In a build with -DPOSTERIOR_WITHOUT_WORD it is false and
 * not evaluated: that build is the mutant WORD, in which test/history/mutants expects a test to
 * fail. docs/snapshots.md names the guard beside the argument that needs it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_GUARD_H
#define POSTERIOR_GUARD_H

#define GUARD(word, condition) (GUARD_IS_KEPT(POSTERIOR_WITHOUT_##word) && (condition))

/* 0 if the macro is defined as 1, else 1: only GUARD_REMOVED_1 puts a 0 before the 1. */
#define GUARD_IS_KEPT(macro) GUARD_PASTE(macro)
#define GUARD_PASTE(value) GUARD_SPLIT(GUARD_REMOVED_##value)
#define GUARD_SPLIT(removed) GUARD_SECOND(removed 0, 1, 0)
#define GUARD_SECOND(first, second, ...) second
#define GUARD_REMOVED_1 0,

#endif							/* POSTERIOR_GUARD_H */

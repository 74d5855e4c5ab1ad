/*
 * attempt.h: a step that may fail without failing the statement.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_ATTEMPT_H
#define POSTERIOR_ATTEMPT_H

#include "pg/base/compat.h"

/*
 * Run step(argument) in a subtransaction, which is kept if the step returns true and rolled back if
 * it returns false or raises an error. Memory context and resource owner are the caller's
 * afterwards, and the step's too as it begins. Returns the error, in the current memory context, or
 * NULL. Which errors are expected is the caller's to say: it throws the others by ReThrowError.
 */
ErrorData  *posterior_attempt(bool (*step) (void *argument), void *argument);

#endif							/* POSTERIOR_ATTEMPT_H */

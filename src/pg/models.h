/*
 * models.h: the models of this database, as a session sees and keeps them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_MODELS_H
#define POSTERIOR_MODELS_H

#include "compat.h"

#include "utils/uuid.h"

#include "tnp.h"

/* A model file, parsed. Everything about it lives in `memory`, encodings included while they are computed. */
typedef struct PosteriorModel
{
	char		name[NAMEDATALEN];
	pg_uuid_t	version;		/* of the row in posterior.model_file: another file has another one */
	int			kernels;		/* setting posterior.kernels when it was opened */
	TnpModel   *model;
	MemoryContext memory;
	int			pins;
	struct PosteriorModel *next;
} PosteriorModel;

/* The model of this name, as the active snapshot shows it. It stays until `owner` is reset or deleted. */
PosteriorModel *posterior_model_pin(const char *name, MemoryContext owner);

/* Hold on to a model, or let it go, by hand. */
void		posterior_model_hold(PosteriorModel *model);
void		posterior_model_release(PosteriorModel *model);

#endif							/* POSTERIOR_MODELS_H */

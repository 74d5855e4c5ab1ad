/*
 * store.h: the models and encodings that the device holds, found by their keys, the least recently
 * used one freed when memory runs out.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_STORE_H
#define TNP_STORE_H

#include "server/protocol.h"

#define TNP_STORE_BUCKETS 1024

typedef struct TnpStoredModel
{
	struct TnpStoredModel *newer,
			   *older;
	uint8_t		id[TNP_WIRE_MODEL];
	TnpDeviceModel *model;
	int64_t		encodings;		/* of this model; it stays while there are any */
	uint64_t	used;			/* when last, by the store's clock */
} TnpStoredModel;

typedef struct TnpStored
{
	struct TnpStored *newer,
			   *older,
			   *next;			/* in its bucket */
	TnpStoredModel *model;
	TnpWireKey	key;
	uint64_t	owner;			/* the only client that may use it, or 0 */
	int64_t		prefix;
	int			n_features,
				n_classes;
	TnpDeviceEncoding *encoding;
	uint64_t	used;
} TnpStored;

typedef struct TnpStore
{
	const TnpDeviceApi *api;
	TnpDevice  *device;
	/* why, for the log; may be NULL */
	void		(*log) (void *arg, const char *line);
	void	   *arg;
	uint64_t	clock;
	TnpStored  *newest,
			   *oldest;
	TnpStored  *buckets[TNP_STORE_BUCKETS];
	TnpStoredModel *newest_model,
			   *oldest_model;
	uint64_t	builds,
				appends,
				evictions,
				rows,			/* received */
				models,
				encodings;
} TnpStore;

void		tnp_store_init(TnpStore *store, const TnpDeviceApi *api, TnpDevice *device);
void		tnp_store_clear(TnpStore *store);

/* Take a model in. One that is there already stays. */
TnpStatus	tnp_store_load(TnpStore *store, const uint8_t id[TNP_WIRE_MODEL], const void *bytes,
						   uint64_t length, TnpError *error);

/* The model, and it was used now; NULL if it is not there. */
TnpStoredModel *tnp_store_model(TnpStore *store, const uint8_t id[TNP_WIRE_MODEL]);

/*
 * Bring the encoding that a request asks about to at least as many rows as it wants, from those
 * that came with it. TNP_OK with *stored = NULL: missing says what is lacking. On failure what was
 * there is unchanged.
 */
TnpStatus	tnp_store_prepare(TnpStore *store, const TnpWireQuery *query, uint64_t client,
							  TnpStored **stored, TnpWireMissing *missing, TnpError *error);

/* Ask the device, making room as needed. Every request has a status afterwards. */
void		tnp_store_answer(TnpStore *store, TnpStored *stored, int n, TnpRequest *requests);

/* Free an encoding of this client's own. */
void		tnp_store_forget(TnpStore *store, const TnpWireKey *key, uint64_t client);

/* Free all of them. */
void		tnp_store_forget_client(TnpStore *store, uint64_t client);

#endif							/* TNP_STORE_H */

/*
 * safetensors.h: the safetensors container, read as hostile bytes (docs/model-format.md sections 1
 * and 13).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_FILE_H
#define TNP_FILE_H

#include "engine/tnp.h"

#define TNP_MAX_RANK 8
#define TNP_FILE_LINE 96

/* One tensor of the file; data points into the bytes given to tnp_file_open. */
typedef struct TnpFileTensor
{
	char	   *name;
	bool		half;			/* F16, else F32 */
	int			rank;
	int64_t		shape[TNP_MAX_RANK];
	int64_t		n_elements;
	const unsigned char *data;	/* little-endian, possibly unaligned */
} TnpFileTensor;

typedef struct TnpFile
{
	int			n_tensors;
	TnpFileTensor *tensors;		/* sorted by name */
	/* value of __metadata__.pg_posterior, or of __metadata__.config, NUL-terminated */
	char	   *config;
	bool		published;		/* the latter: a package's own configuration */
	/* of a published file, one line each, cut where they are long; empty if not there */
	char		licence[TNP_FILE_LINE],
				source[TNP_FILE_LINE];
	size_t		config_length;
} TnpFile;

/*
 * Parse the header; bytes must outlive the TnpFile. Checks everything about the container, nothing
 * about the model.
 */
TnpStatus	tnp_file_open(const TnpEnv *env, const void *bytes, size_t length, TnpFile *file,
						  TnpError *error);
void		tnp_file_close(const TnpEnv *env, TnpFile *file);

/* Binary search by name; NULL if absent. */
const TnpFileTensor *tnp_file_find(const TnpFile *file, const char *name);

/* Widen n elements from start to float32. Returns false if one is NaN or infinite. */
bool		tnp_file_widen(const TnpFileTensor *tensor, int64_t start, int64_t n, float *out);

#endif							/* TNP_FILE_H */

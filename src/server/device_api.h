/*
 * device_api.h: what the server asks of a device: a table of functions, implemented on the engine
 * (device_cpu.c) and by the shared object pg_posterior_cuda.so, which the server opens when it is
 * told to use a GPU.
 *
 * Callers. The server calls every function of the table from one thread, one call at a time, that
 * of initialisation included; only memory_used may be called while another function polls for
 * cancellation, too. So an implementation needs no locks. It may start threads of its own; they
 * must not outlive `shutdown`. Nothing but the server ever loads an implementation: not a backend,
 * not the postmaster.
 *
 * Ownership. Arguments belong to the caller and are not looked at after the call. What `model_load`
 * and `encoding_build` return belongs to the device and ends with `model_free` and `encoding_free`;
 * the server frees all encodings of a model before the model, and everything before `shutdown`.
 * Handles are opaque to the server. Rows and answers are in host memory, pageable, aligned for
 * doubles; tables are row-major: x [n, F].
 *
 * Memory. Weights, encodings and everything temporary together stay within TnpDeviceConfig.memory
 * bytes of device memory, which the implementation enforces: what does not fit fails with
 * TNP_NO_MEMORY and leaves everything as it was. The server then frees what was used least recently
 * and calls again; if nothing is left to be freed, the client is told. TNP_NO_MEMORY is therefore
 * an ordinary status and must be exact, not sticky. It also says that host memory ran out.
 *
 * Failures. A function that can fail returns a TnpStatus and fills the TnpError, message and detail
 * as in tnp.h; what tnp.h says about rows, shapes, values and arguments holds with the same
 * statuses, and the same texts where the engine makes them. A failure of the device itself (illegal
 * address, launch failure, ECC, device gone) cannot be recovered from within the process. The
 * function then returns any failure status with a text that names the device's error, and from then
 * on `lost` returns true. The server asks `lost` after each failure; when it is true the server
 * answers all clients that wait, makes no further call and exits (also without `shutdown`), and is
 * started anew. Nothing may exit, abort or longjmp, or raise a signal.
 *
 * Cancellation. TnpDeviceConfig.interrupted is polled between kernels or tiles, from the calling
 * thread, at least every 50 ms of work. When it returns true no client wants the answers any more:
 * the call returns TNP_INTERRUPTED soon, with nothing left allocated. Polling also tells the server
 * that the device is alive: after posterior.device_timeout without a poll the process is ended.
 *
 * Numbers. All answers are those of the engine's functions of the same name (tnp.h,
 * docs/model-format.md): exactly, if TnpDeviceInfo.exact, else within the tolerance of
 * docs/device.md. In any case an answer depends on the encoding's first rows, the query, the seed
 * and the number of the draw alone, never on the other queries or requests of the call; and an
 * encoding that was appended to gives what one that was built at once gives.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_DEVICE_H
#define TNP_DEVICE_H

#include "engine/inference/request.h"

/* Raised by one with every change of this file; the server refuses other versions. */
#define TNP_DEVICE_API 1

/* The symbol that a shared object exports: extern const TnpDeviceApi tnp_device. */
#define TNP_DEVICE_SYMBOL "tnp_device"

typedef struct TnpDevice TnpDevice;
typedef struct TnpDeviceModel TnpDeviceModel;
typedef struct TnpDeviceEncoding TnpDeviceEncoding;

typedef enum TnpPrecision
{
	/*
	 * inputs of matrix products in 16 bits, sums in 32; weights that do not fit fall back to 32
	 * bits
	 */
	TNP_PRECISION_FP16 = 0,
	TNP_PRECISION_FP32 = 1
} TnpPrecision;

/* How the server wants the device. Strings live as long as the device. */
typedef struct TnpDeviceConfig
{
	int			ordinal;		/* which of the devices, from 0 */
	/* bytes of device memory that may be used, 0: three quarters of what is free now */
	size_t		memory;
	TnpPrecision precision;
	/* see above; never NULL, may be called whenever a function of the table runs */
	bool		(*interrupted) (void *arg);
	/* a line for the server's log, from the calling thread; never NULL */
	void		(*log) (void *arg, const char *line);
	void	   *arg;			/* of both */
} TnpDeviceConfig;

/* What a device says of itself. */
typedef struct TnpDeviceInfo
{
	char		provider[16];	/* "cpu", "cuda" */
	/* as people call it: "NVIDIA H100 80GB HBM3", or the instruction set of the CPU */
	char		name[128];
	char		version[64];	/* of driver and runtime, or empty */
	TnpPrecision precision;		/* in use */
	bool		exact;			/* answers are bitwise those of the engine's cpu provider */
	size_t		memory_total;	/* bytes of the device, 0: unknown */
	size_t		memory_limit;	/* bytes this process may use */
} TnpDeviceInfo;

/* The table. No member is NULL unless its comment says that it may be. */
typedef struct TnpDeviceApi
{
	uint32_t	version;		/* TNP_DEVICE_API */
	uint32_t	size;			/* sizeof(TnpDeviceApi) */

	/*
	 * Open a device. Fails with TNP_BAD_ARGUMENT and a text for the administrator when there is no
	 * driver, no device, or one that is not supported. config is copied, what it points to lives
	 * longer than the device.
	 */
	TnpStatus	(*init) (const TnpDeviceConfig *config, TnpDevice **device, TnpError *error);
	void		(*shutdown) (TnpDevice *device);
	void		(*describe) (const TnpDevice *device, TnpDeviceInfo *info);

	/* Whether the device has failed in a way that only a new process cures. */
	bool		(*lost) (const TnpDevice *device);

	/* Bytes of device memory in use: weights, encodings, pools that are kept. */
	size_t		(*memory_used) (const TnpDevice *device);

	/*
	 * A model file (safetensors, untrusted: read it with tnp_model_open) to the device. The info is
	 * that of tnp_model_info and lives as long as the model. Models that the device has no kernels
	 * for fail with TNP_BAD_CONFIG and a text that says which part of them; the client then answers
	 * on the CPU.
	 */
	TnpStatus	(*model_load) (TnpDevice *device, const void *bytes, size_t length,
							   TnpDeviceModel **model, TnpError *error);
	void		(*model_free) (TnpDeviceModel *model);
	const TnpModelInfo *(*model_info) (const TnpDeviceModel *model);
	void		(*model_answer_shape) (const TnpDeviceModel *model, TnpDistributionKind *kind,
									   int *n);
	size_t		(*model_bytes) (const TnpDeviceModel *model);

	/*
	 * tnp_build, with room for `capacity` rows if that is more than there are (a hint: appending
	 * beyond it is allowed and may move the encoding). The model stays while the encoding exists.
	 */
	TnpStatus	(*encoding_build) (TnpDeviceModel *model, const TnpRows *rows, int64_t prefix,
								   int64_t capacity, TnpDeviceEncoding **encoding, TnpError *error);

	/* tnp_append: rows after the last one. On failure the encoding is unchanged. */
	TnpStatus	(*encoding_append) (TnpDeviceEncoding *encoding, const TnpRows *rows,
									TnpError *error);
	void		(*encoding_free) (TnpDeviceEncoding *encoding);
	int64_t		(*encoding_rows) (const TnpDeviceEncoding *encoding);
	/* tnp_encoding_base_rows: the fewest leading rows that can be asked */
	int64_t		(*encoding_base_rows) (const TnpDeviceEncoding *encoding);
	size_t		(*encoding_bytes) (const TnpDeviceEncoding *encoding);

	/*
	 * Keys and values of rows [first, first + n) of one layer as the device holds them, as floats k
	 * [n, width], v [n, width], heads side by side: for comparisons between devices. May be NULL.
	 */
	TnpStatus	(*encoding_export) (const TnpDeviceEncoding *encoding, int layer, int64_t first,
									int64_t n, float *k, float *v, TnpError *error);

	/*
	 * Answer n requests, all about one encoding, of any kinds and sizes: what could be computed
	 * together, should be. Each gets its own status and error, so a query with a bad value does not
	 * fail its neighbours. request->rows is between encoding_base_rows and encoding_rows, answers
	 * are sized; all else is to be checked as the engine does. The result is TNP_OK when every
	 * request has a status of its own; else (interrupted, lost, out of memory for all of them) it
	 * is the status of those that have none. The server sets every status to TNP_INTERRUPTED before
	 * the call.
	 */
	TnpStatus	(*answer) (TnpDeviceEncoding *encoding, int n, TnpRequest *requests,
						   TnpError *error);
} TnpDeviceApi;

/* The engine's cpu provider as a device: `--device cpu`, and the oracle of the others. */
extern const TnpDeviceApi tnp_cpu_device;

#endif							/* TNP_DEVICE_H */

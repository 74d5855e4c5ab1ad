/*
 * server.h: the server process from within: clients, what they wait for, and the turns of its one
 * thread.
 *
 * One thread does everything, because a hand-over between threads would cost a small request as
 * much as its answer. It turns the loop (clients.c, messages.c: accept, receive, send, notice
 * closed sockets) between two calls of the device, and from within them whenever the device polls
 * for cancellation; so clients are served and missed also while a long answer is computed. What is
 * received meanwhile waits in a queue, and is then answered together as far as it asks the same
 * encoding (answers.c).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_SERVER_H
#define TNP_SERVER_H

#include "server/store.h"

#define TNP_SERVER_BATCH 256	/* requests answered at once, */
/* while their answers have together about this many bytes */
#define TNP_SERVER_BYTES ((uint64_t) 256 << 20)

typedef enum TnpClientState
{
	TNP_LISTENING,				/* a message is awaited or arrives */
	TNP_QUEUED,					/* its request waits for the device */
	TNP_ANSWERING,				/* the device is at it */
	TNP_REPLYING				/* the reply is sent */
} TnpClientState;

typedef struct TnpClient
{
	struct TnpClient *next;		/* of all clients */
	struct TnpClient *behind;	/* in the queue */
	uint64_t	number;			/* no other client ever has it */
	int			socket;
	TnpClientState state;
	bool		gone;			/* the socket is closed: freed as soon as nothing refers to it */
	bool		greeted;
	bool		leaves;			/* to be closed when the reply is sent */
	TnpHeader	header;			/* of the message that arrives or waits */
	size_t		header_got;
	uint64_t	payload_got;
	int			file;			/* received with the header, or -1 */
	TnpParcel	payload;
	TnpWireQuery *query;		/* in the payload */
	TnpHeader	reply;
	TnpParcel	reply_payload;	/* unless it is in a file */
	int			reply_file;
	uint64_t	sent;
} TnpClient;

/* An encoding that a client does not need any more, or all that are its own. */
typedef struct TnpReleased
{
	uint64_t	client;
	bool		all;
	TnpWireKey	key;
} TnpReleased;

typedef struct TnpServer
{
	TnpStore	store;
	TnpWireWelcome welcome;
	int			listener;
	/*
	 * ms: the listener is left alone until then, because there were no files left; 0: there always
	 * were
	 */
	double		backed_off_until;
	bool		silent;			/* no client is told anything */
	/* standard input ends with the supervisor, standard error is read by it */
	bool		supervised;
	TnpClient  *clients;
	TnpClient  *queue,
			   *queue_end;
	uint64_t	n_clients,
				n_queued,
				last_number;
	TnpReleased *released;		/* to be freed before the next request */
	size_t		n_released,
				max_released;
	uint64_t	most_bytes;		/* of answers computed at once; one request may have more */
	bool		answering;
	bool		ending;
	int			code;			/* exit status */
	TnpError	failure;		/* of the device, when code is 2 */
	uint64_t	requests,
				batches,
				largest_batch,
				failures,
				cancelled;
	double		began,			/* ms, as tnp_now() */
				turned,
				beat,
				usual_wait;		/* for a message: an average that forgets */
} TnpServer;

/* Milliseconds of a clock that only goes forward. */
double		tnp_now(void);

/* A line for the administrator: level 'L' (log), 'W' (warning) or 'D' (debug). */
void		tnp_say(TnpServer *server, char level, const char *format,...) TNP_PRINTF(3, 4);

/* ---- clients.c ---- */

/* Listen at this path, for this user only. False with a line said. */
bool		tnp_listen(TnpServer *server, const char *path);

/* A client on a connected socket, which is taken over. False: there is no room for it. */
bool		tnp_add_client(TnpServer *server, int socket);

/* Accept, receive, send; wait up to `timeout` ms for something to do. */
void		tnp_serve_once(TnpServer *server, int timeout);

/* The client has left, or is told to. Its request is dropped unless the device is at it. */
void		tnp_leave(TnpServer *server, TnpClient *client);

/*
 * Have an encoding of the client's own freed, or all of them (NULL), between two calls of the
 * device.
 */
void		tnp_release(TnpServer *server, const TnpClient *client, const TnpWireKey *key);

/* Free clients that are gone and that nothing refers to. */
void		tnp_sweep(TnpServer *server);

/* Send what can be sent, close everything. */
void		tnp_close(TnpServer *server);

/* ---- messages.c ---- */

/*
 * Give a client its reply: `length` bytes of payload, copied; sent as far as the socket takes them.
 */
void		tnp_reply(TnpServer *server, TnpClient *client, TnpMessage kind, const void *payload,
					  uint64_t length);

/* The same with a payload that is handed over. */
void		tnp_reply_parcel(TnpServer *server, TnpClient *client, TnpMessage kind,
							 TnpParcel *payload);

/* Reply with a failure. */
void		tnp_reply_failure(TnpServer *server, TnpClient *client, TnpStatus status, bool fault,
							  const TnpError *error);

/* Send what the socket takes of a reply, read what there is of the next message. */
void		tnp_send_some(TnpServer *server, TnpClient *client);
void		tnp_receive_some(TnpServer *server, TnpClient *client);

/* Forget a message that was received, or a reply. */
void		tnp_drop_message(TnpClient *client);
void		tnp_drop_reply(TnpClient *client);

/* ---- answers.c ---- */

/*
 * Free what was released, then answer the oldest request and those that can be answered with it.
 */
void		tnp_answer_queued(TnpServer *server);

/* Tell those whose requests are queued that the server ends, and of what. */
void		tnp_tell_queued(TnpServer *server);

/* Whether no client wants what the device is computing. For TnpDeviceConfig.interrupted. */
bool		tnp_unwanted(void *server);

#endif							/* TNP_SERVER_H */

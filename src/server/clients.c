/*
 * clients.c: the sockets. Nothing here blocks but poll(), and nothing calls the device: the loop is
 * turned from within its calls, too.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define HEARTBEAT 500			/* ms between two signs of life */
#define MAX_CLIENTS 10000
#define ACCEPT_BACKOFF 100				/* ms without accepting when there are no files left */
#define SPIN 0.25				/* ms that a wait for a message looks before it sleeps, */
#define SPIN_CLIENTS 64			/* unless there are many to look at; */
/* until two looks lie so many ms apart: others want the processor, and it sleeps at once for so */
#define PREEMPTED 0.05
#define SPIN_AGAIN 1000

bool
tnp_listen(TnpServer *server, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t		mask;
	int			status;

	if (strlen(path) >= sizeof(address.sun_path))
	{
		tnp_say(server, 'W', "the socket's path \"%s\" is too long", path);
		return false;
	}
	strcpy(address.sun_path, path);
	server->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	unlink(path);
	mask = umask(0177);
	status = server->listener < 0 ? -1 : bind(server->listener, (struct sockaddr *) &address,
											  sizeof(address));
	umask(mask);
	if (status != 0 || listen(server->listener, 256) != 0)
	{
		tnp_say(server, 'W', "could not listen at \"%s\": %s", path, strerror(errno));
		return false;
	}
	fcntl(server->listener, F_SETFL, O_NONBLOCK);
	fcntl(server->listener, F_SETFD, FD_CLOEXEC);
	return true;
}

/* ---- coming and going ------------------------------------------------------------------------ */

bool
tnp_add_client(TnpServer *server, int socket)
{
	TnpClient  *c = server->n_clients < MAX_CLIENTS ? calloc(1, sizeof(TnpClient)) : NULL;

	if (c == NULL)
	{
		close(socket);
		return false;
	}
	fcntl(socket, F_SETFL, O_NONBLOCK);
	fcntl(socket, F_SETFD, FD_CLOEXEC);
	c->socket = socket;
	c->file = c->reply_file = -1;
	c->number = ++server->last_number;
	c->next = server->clients;
	server->clients = c;
	server->n_clients++;
	return true;
}

/*
 * A connection that cannot be accepted stays in the listener's queue, which would then be ready at
 * every look: so it is not looked at for a while.
 */
static void
accept_clients(TnpServer *server)
{
	int			socket;

	while ((socket = accept(server->listener, NULL, NULL)) >= 0)
		tnp_add_client(server, socket);
	if (errno == EINTR || errno == ECONNABORTED)
		return;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
	{
		server->backed_off_until = 0;
		return;
	}
	if (server->backed_off_until == 0)
		tnp_say(server, 'W', "no more clients can be accepted beside %llu: %s",
				(unsigned long long) server->n_clients, strerror(errno));
	server->backed_off_until = tnp_now() + ACCEPT_BACKOFF;
}

/* Have an encoding of the client's own freed, or all of them, between two calls of the device. */
void
tnp_release(TnpServer *server, const TnpClient *c, const TnpWireKey *key)
{
	TnpReleased *r;

	if (server->n_released == server->max_released)
	{
		size_t		room = server->max_released * 2 + 64;
		TnpReleased *grown = realloc(server->released, room * sizeof(TnpReleased));

		if (grown == NULL)
			return;				/* the least recently used go first anyway */
		server->released = grown;
		server->max_released = room;
	}
	r = &server->released[server->n_released++];
	r->client = c->number;
	r->all = key == NULL;
	if (key != NULL)
		r->key = *key;
}

/* The client has left, or is told to. Its request is dropped unless the device is at it. */
void
tnp_leave(TnpServer *server, TnpClient *c)
{
	if (c->gone)
		return;
	c->gone = true;
	if (c->socket >= 0)
		close(c->socket);
	c->socket = -1;
	if (c->state == TNP_QUEUED)
	{
		TnpClient **link = &server->queue,
				   *last = NULL;

		while (*link != c)
		{
			last = *link;
			link = &(*link)->behind;
		}
		*link = c->behind;
		if (server->queue_end == c)
			server->queue_end = last;
		server->n_queued--;
		server->cancelled++;
		c->state = TNP_LISTENING;
	}
	tnp_release(server, c, NULL);
}

void
tnp_sweep(TnpServer *server)
{
	for (TnpClient **link = &server->clients; *link != NULL;)
	{
		TnpClient  *c = *link;

		if (!c->gone || c->state == TNP_ANSWERING)
		{
			link = &c->next;
			continue;
		}
		*link = c->next;
		tnp_drop_message(c);
		tnp_drop_reply(c);
		free(c);
		server->n_clients--;
	}
}

/* A client that waits for its answer may leave, but not speak. */
static void
client_watch(TnpServer *server, TnpClient *c)
{
	char		byte;
	ssize_t		n = recv(c->socket, &byte, 1, MSG_PEEK);

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return;
	if (n > 0)
		tnp_say(server, 'W', "a client is refused: it asks again before it has the answer");
	tnp_leave(server, c);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void
client_serve(TnpServer *server, TnpClient *c, short events)
{
	if (c->gone || events == 0)
		return;
	switch (c->state)
	{
		case TNP_LISTENING:
			tnp_receive_some(server, c);
			break;
		case TNP_QUEUED:
		case TNP_ANSWERING:
			client_watch(server, c);
			break;
		case TNP_REPLYING:
			tnp_send_some(server, c);
			break;
	}
}

/*
 * Wait until something can be done. Where messages usually follow each other within SPIN, the
 * server looks for so long before it sleeps: to be woken takes as long as a small answer. It does
 * not where more processes run than there are processors: there, one that has slept is woken sooner
 * than one that has looked.
 */
static int
wait_for_files(TnpServer *server, struct pollfd *files, size_t n, int timeout)
{
	static long processors = 0;
	static double not_before = 0;
	double		began,
				last,
				now;
	int			ready;

	if (timeout == 0)
		return poll(files, n, 0);
	if (processors == 0)
		processors = sysconf(_SC_NPROCESSORS_ONLN);
	began = now = tnp_now();
	do
	{
		ready = poll(files, n, 0);
		last = now;
		now = tnp_now();
		if (now - last > PREEMPTED)
			not_before = now + SPIN_AGAIN;
	} while (ready == 0 && processors > 1 && n <= SPIN_CLIENTS && now >= not_before
			 && server->usual_wait <= SPIN && now - began < SPIN);
	if (ready == 0)
		ready = poll(files, n, timeout < 0 || timeout > HEARTBEAT ? HEARTBEAT : timeout);
	/* one long pause among many short ones counts little */
	now = tnp_now() - began;
	server->usual_wait += ((now < 10 * SPIN ? now : 10 * SPIN) - server->usual_wait) / 8;
	return ready;
}

void
tnp_serve_once(TnpServer *server, int timeout)
{
	static struct pollfd *files = NULL;
	static TnpClient **who = NULL;
	static size_t room = 0;
	size_t		n = 2;
	bool		backed_off = server->backed_off_until > 0 && tnp_now() < server->backed_off_until;
	double		now;

	if (room < server->n_clients + 2)
	{
		size_t		wanted = 2 * (server->n_clients + 64);
		struct pollfd *more = realloc(files, wanted * sizeof(struct pollfd));
		TnpClient **more_who;

		if (more != NULL)
			files = more;
		more_who = realloc(who, wanted * sizeof(TnpClient *));
		if (more_who != NULL)
			who = more_who;
		if (more != NULL && more_who != NULL)
			room = wanted;
		else if (room == 0)
		{
			server->ending = true;
			return;
		}
	}
	if (backed_off && (timeout < 0 || timeout > ACCEPT_BACKOFF))
		timeout = ACCEPT_BACKOFF;
	files[0] = (struct pollfd) {backed_off ? -1 : server->listener, POLLIN, 0};
	files[1] = (struct pollfd) {server->supervised ? 0 : -1, POLLIN, 0};
	for (TnpClient *c = server->clients; c != NULL && n < room; c = c->next)
		if (!c->gone)
		{
			files[n] = (struct pollfd) {c->socket, c->state == TNP_REPLYING ? POLLOUT : POLLIN, 0};
			who[n++] = c;
		}
	if (wait_for_files(server, files, n, timeout) > 0)
	{
		for (size_t i = 2; i < n; i++)
			client_serve(server, who[i], files[i].revents);
		if (files[0].revents != 0)
			accept_clients(server);
		/* nothing is ever written to it: it ends with the supervisor */
		if (files[1].revents != 0)
			server->ending = true;
	}
	now = tnp_now();
	server->turned = now;
	if (server->supervised && now - server->beat >= HEARTBEAT)
	{
		/* an empty line is a sign of life; without a reader it is not missed */
		if (write(2, "\n", 1) < 0 && errno == EPIPE)
			server->ending = true;
		server->beat = now;
	}
	if (!server->answering)
		tnp_sweep(server);
}

void
tnp_close(TnpServer *server)
{
	for (TnpClient *c = server->clients; c != NULL; c = c->next)
		tnp_leave(server, c);
	tnp_sweep(server);
	free(server->released);
	close(server->listener);
}

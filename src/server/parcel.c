/*
 * parcel.c: memory files for large payloads. A file is sealed against any change before it is sent,
 * so the receiver can check what it maps once and for all, and no sender can truncate it
 * meanwhile. Where the system has no such files, payloads follow their header whatever their
 * size.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#define _GNU_SOURCE				/* memfd_create */
#include "server/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(MFD_ALLOW_SEALING) && defined(F_ADD_SEALS)
#define SEALED_FILES 1
#else
#define SEALED_FILES 0
#endif

bool
tnp_parcel_files(void)
{
	return SEALED_FILES;
}

#if SEALED_FILES
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static bool
write_all(int file, const void *bytes, uint64_t length)
{
	const char *p = bytes;

	while (length > 0)
	{
		ssize_t		n = write(file, p, length > (1 << 30) ? 1 << 30 : (size_t) length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		length -= (uint64_t) n;
	}
	return true;
}

int
tnp_parcel_send(const void *head, uint64_t head_length, const void *bytes, uint64_t length)
{
	int			file = memfd_create("pg_posterior", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (file < 0)
		return -1;
	if (!write_all(file, head, head_length) || !write_all(file, bytes, length)
		|| fcntl(file, F_ADD_SEALS, SEALS) != 0)
	{
		int			why = errno;

		close(file);
		errno = why;
		return -1;
	}
	return file;
}

bool
tnp_parcel_receive(int file, uint64_t length, TnpParcel *parcel)
{
	struct stat status;
	int			seals = fcntl(file, F_GET_SEALS),
				why = EINVAL;

	*parcel = (TnpParcel) {NULL, length, false};
	if (seals >= 0 && (seals & SEALS) == SEALS && fstat(file, &status) == 0
		&& (uint64_t) status.st_size == length)
	{
		why = 0;
		if (length > 0)
		{
			parcel->bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 0);
			why = parcel->bytes == MAP_FAILED ? errno : 0;
			parcel->mapped = why == 0;
			if (why != 0)
				parcel->bytes = NULL;
		}
	}
	close(file);
	errno = why;
	return why == 0;
}

#else

int
tnp_parcel_send(const void *head, uint64_t head_length, const void *bytes, uint64_t length)
{
	(void) head;
	(void) head_length;
	(void) bytes;
	(void) length;
	errno = ENOSYS;
	return -1;
}

bool
tnp_parcel_receive(int file, uint64_t length, TnpParcel *parcel)
{
	*parcel = (TnpParcel) {NULL, length, false};
	close(file);
	errno = ENOSYS;
	return false;
}
#endif

bool
tnp_parcel_alloc(uint64_t length, TnpParcel *parcel)
{
	*parcel = (TnpParcel) {length > 0 ? malloc((size_t) length) : NULL, length, false};
	return length == 0 || parcel->bytes != NULL;
}

void
tnp_parcel_free(TnpParcel *parcel)
{
	if (parcel->mapped)
		munmap(parcel->bytes, (size_t) parcel->length);
	else
		free(parcel->bytes);
	parcel->bytes = NULL;
	parcel->length = 0;
	parcel->mapped = false;
}

/*
 * model_functions.c: posterior.load_model: a file becomes a row of posterior.model_file, after it
 * has been read as hostile bytes by the engine. Writing the row is left to SQL with the caller's
 * rights, so INSERT on the table is what loading needs.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/base/bridge.h"
#include "pg/models/engine_env.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

/* A name that can be written in a setting and shown in a table without surprises. */
static void
check_name(const char *name)
{
	size_t		length = strlen(name);

	for (const char *c = name; *c != '\0'; c++)
		if ((unsigned char) *c < ' ' || *c == 127)
			length = 0;
	if (length == 0 || length >= NAMEDATALEN)
		ereport(ERROR, (errcode(ERRCODE_INVALID_NAME), errmsg("invalid model name"),
						errdetail("A name has 1 to %d bytes and no control characters.",
								  NAMEDATALEN - 1)));
}

/* Write the row. file has been validated. */
static void
insert_model(const char *name, bytea *file, bool bundled)
{
	static const char query[] =
		"INSERT INTO posterior.model_file (name, file, bundled, architecture, context, head, "
		"description, features, max_features, "
		"min_rows, buffer, takes_missing, takes_categories, parameters, classes) "
		"VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT DO "
		"NOTHING";
	Oid types[15] = {TEXTOID, BYTEAOID, BOOLOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, INT4OID,
					 INT4OID, INT4OID,  INT4OID, BOOLOID, BOOLOID, INT8OID, INT4OID};
	char		nulls[16] = "               ";
	Datum		values[15];
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext, "posterior model check",
												 ALLOCSET_DEFAULT_SIZES);
	TnpEnv		env = posterior_env(memory);
	const TnpModelInfo *info;
	TnpModel   *model;
	TnpError	error;

	check_name(name);
	if (tnp_model_open(&env, VARDATA_ANY(file), VARSIZE_ANY_EXHDR(file), &model, &error) != TNP_OK)
		posterior_raise(&error, name);
	info = tnp_model_info(model);
	values[0] = CStringGetTextDatum(name);
	values[1] = PointerGetDatum(file);
	values[2] = BoolGetDatum(bundled);
	values[3] = CStringGetTextDatum(info->architecture);
	values[4] = CStringGetTextDatum(info->context);
	values[5] = CStringGetTextDatum(info->head);
	values[6] = CStringGetTextDatum(info->description);
	values[7] = Int32GetDatum(info->n_features);
	if (info->n_features == 0)
		nulls[7] = 'n';
	values[8] = Int32GetDatum(info->max_features);
	values[9] = Int32GetDatum(info->min_rows);
	values[10] = Int32GetDatum(info->buffer);
	if (info->buffer == 0)
		nulls[10] = 'n';
	values[11] = BoolGetDatum(info->takes_missing);
	values[12] = BoolGetDatum(info->takes_categories);
	values[13] = Int64GetDatum(info->n_parameters);
	values[14] = Int32GetDatum(info->n_classes);
	if (info->n_classes == 0)
		nulls[14] = 'n';

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	if (SPI_execute_with_args(query, 15, types, values, nulls, false, 0) != SPI_OK_INSERT)
		elog(ERROR, "could not write posterior.model_file");
	if (SPI_processed == 0)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("model \"%s\" already exists", name),
				 errhint("Drop it first by posterior.drop_model, or choose another name.")));
	SPI_finish();
	tnp_model_close(model);
	MemoryContextDelete(memory);
}

/*
 * The bytes of a regular file. It is read, never mapped: truncating a mapped file would kill the
 * server.
 */
static bytea *
read_model_file(const char *path)
{
	struct stat st;
	int			fd;
	bytea	   *file;
	Size		done = 0,
				size;

	if (stat(path, &st) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read model file \"%s\": %m", path),
				 errhint("The file must be readable by the server's operating system user.")));
	if (!S_ISREG(st.st_mode))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a regular file", path)));
	if ((Size) st.st_size > MaxAllocSize - VARHDRSZ)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("model file \"%s\" is too large", path),
						errdetail("It has %lld bytes, at most %zu are read.",
								  (long long) st.st_size, (Size) (MaxAllocSize - VARHDRSZ))));
	fd = OpenTransientFile(path, O_RDONLY | PG_BINARY | O_NONBLOCK);
	if (fd < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open model file \"%s\": %m", path)));
	size = (Size) st.st_size;
	file = palloc(size + VARHDRSZ);
	while (done < size)
	{
		ssize_t		n = read(fd, VARDATA(file) + done, Min(size - done, (Size) 1 << 20));

		CHECK_FOR_INTERRUPTS();
		if (n < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read model file \"%s\": %m", path)));
		if (n == 0)
			break;
		done += n;
	}
	CloseTransientFile(fd);
	SET_VARSIZE(file, done + VARHDRSZ);
	return file;
}

/* The directory of the models that come with the extension, in MAXPGPATH bytes. */
static void
bundle_directory(char *directory)
{
	char		share[MAXPGPATH];

	get_share_path(my_exec_path, share);
	snprintf(directory, MAXPGPATH, "%s/extension/pg_posterior", share);
}

/*
 * Load a user's model. A dump leaves the bundled models to CREATE EXTENSION, so that one of their
 * names cannot be given to another model: restoring it would fail, and take the other models of the
 * table along. A bundled model that was dropped may come back under its name.
 */
static void
model_load(const char *name, bytea *file)
{
	char		directory[MAXPGPATH],
				path[MAXPGPATH * 2];
	struct stat st;
	bool		bundled;

	check_name(name);
	bundle_directory(directory);
	snprintf(path, sizeof(path), "%s/%s.safetensors", directory, name);
	bundled = strchr(name, '/') == NULL && stat(path, &st) == 0 && S_ISREG(st.st_mode);
	if (bundled)
	{
		bytea	   *own = read_model_file(path);

		if (VARSIZE_ANY_EXHDR(own) != VARSIZE_ANY_EXHDR(file)
			|| memcmp(VARDATA_ANY(own), VARDATA_ANY(file), VARSIZE_ANY_EXHDR(own)) != 0)
			ereport(ERROR,
					(errcode(ERRCODE_RESERVED_NAME),
					 errmsg("\"%s\" is the name of a model that comes with the extension", name),
					 errdetail("A dump leaves these to CREATE EXTENSION, and could not be restored "
							   "with another model of that name."),
					 errhint("Choose another name, and SET posterior.model or "
							 "posterior.class_model to it.")));
		pfree(own);
	}
	insert_model(name, file, bundled);
}

PG_FUNCTION_INFO_V1(posterior_load_model_path);
Datum
posterior_load_model_path(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0)),
			   *path = text_to_cstring(PG_GETARG_TEXT_PP(1));

	if (!has_privs_of_role(GetUserId(), ROLE_PG_READ_SERVER_FILES))
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
						errmsg("permission denied to read a model file of the server"),
						errdetail("Only roles with the privileges of pg_read_server_files may."),
						errhint("A user that may insert into posterior.model_file can load a model "
								"by posterior.load_model(name, bytes).")));
	PreventCommandIfReadOnly("posterior.load_model()");
	check_name(name);
	canonicalize_path(path);
	if (!is_absolute_path(path))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("the path of a model file must be absolute"),
				 errdetail("It is \"%s\".", path)));
	model_load(name, read_model_file(path));
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(posterior_load_model_bytes);
Datum
posterior_load_model_bytes(PG_FUNCTION_ARGS)
{
	PreventCommandIfReadOnly("posterior.load_model()");
	model_load(text_to_cstring(PG_GETARG_TEXT_PP(0)), PG_GETARG_BYTEA_PP(1));
	PG_RETURN_VOID();
}

/*
 * model_behaviour(file bytea) returns (appendable, mergeable, row_bytes, gpu, targets, revisable,
 * any_targets): of the view posterior.models. NULL for what is no model, so that a row with such a
 * file does not keep others from being restored with it.
 */
PG_FUNCTION_INFO_V1(posterior_model_behaviour);
Datum
posterior_model_behaviour(PG_FUNCTION_ARGS)
{
	bytea	   *file = PG_GETARG_BYTEA_PP(0);
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext, "posterior model check",
												 ALLOCSET_DEFAULT_SIZES);
	TnpEnv		env = posterior_env(memory);
	Datum		values[7];
	bool		nulls[7] = {false};
	const TnpModelInfo *info;
	TnpModel   *model;
	TupleDesc	row;
	TnpError	error;

	if (get_call_result_type(fcinfo, NULL, &row) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	/* of numbers of 32 bits, whatever the session's setting */
	env.kernels = NULL;
	if (tnp_model_open(&env, VARDATA_ANY(file), VARSIZE_ANY_EXHDR(file), &model, &error) != TNP_OK)
	{
		MemoryContextDelete(memory);
		if (error.status == TNP_NO_MEMORY || error.status == TNP_INTERRUPTED)
			posterior_raise(&error, "a file");
		PG_RETURN_NULL();
	}
	info = tnp_model_info(model);
	values[0] = BoolGetDatum(info->appendable);
	values[1] = BoolGetDatum(info->mergeable);
	values[2] = Int64GetDatum((int64) info->encoding_bytes_per_row);
	values[3] = BoolGetDatum(info->on_gpu);
	values[4] = Int32GetDatum(info->n_targets);
	values[5] = BoolGetDatum(info->revisable);
	values[6] = BoolGetDatum(info->each_target);
	MemoryContextDelete(memory);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(row), values, nulls));
}

/* Load every file that came with the extension; called once, by its installation script. */
PG_FUNCTION_INFO_V1(posterior_load_bundled_models);
Datum
posterior_load_bundled_models(PG_FUNCTION_ARGS)
{
	char		directory[MAXPGPATH],
				path[MAXPGPATH * 2];
	struct dirent *entry;
	DIR		   *dir;

	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("only a superuser may load the bundled models")));
	bundle_directory(directory);
	if (access(directory, F_OK) != 0)
		PG_RETURN_VOID();
	dir = AllocateDir(directory);
	while ((entry = ReadDir(dir, directory)) != NULL)
	{
		size_t		length = strlen(entry->d_name),
					suffix = strlen(".safetensors");

		if (length <= suffix || strcmp(entry->d_name + length - suffix, ".safetensors") != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		insert_model(pnstrdup(entry->d_name, length - suffix), read_model_file(path), true);
	}
	FreeDir(dir);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(posterior_drop_model);
Datum
posterior_drop_model(PG_FUNCTION_ARGS)
{
	Oid			type = TEXTOID;
	Datum		name = PG_GETARG_DATUM(0);

	PreventCommandIfReadOnly("posterior.drop_model()");
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	if (SPI_execute_with_args(
			"DELETE FROM posterior.model_file WHERE name OPERATOR(pg_catalog.=) $1", 1, &type,
			&name, NULL, false, 0)
		!= SPI_OK_DELETE)
		elog(ERROR, "could not write posterior.model_file");
	if (SPI_processed == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("model \"%s\" does not exist", TextDatumGetCString(name)),
				 errhint("The view posterior.models lists the models.")));
	SPI_finish();
	PG_RETURN_VOID();
}

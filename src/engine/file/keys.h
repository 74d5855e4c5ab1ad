/*
 * keys.h: reads JSON objects into structures by tables of their keys.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_KEYS_H
#define TNP_KEYS_H

#include <stddef.h>

#include "engine/file/json.h"

/* What all reading functions share. root is the structure that the outermost table fills. */
typedef struct TnpReader
{
	const TnpEnv *env;
	TnpError   *error;
	void	   *root;
} TnpReader;

/* A named value of an enumeration; a list of them ends with a NULL name. */
typedef struct TnpChoice
{
	const char *name;
	int			value;
} TnpChoice;

typedef enum TnpKeyKind
{
	TNP_KEY_INTEGER,			/* int field, min to max */
	TNP_KEY_NUMBER,				/* double field, min to max */
	TNP_KEY_BOOLEAN,			/* bool field */
	TNP_KEY_CHOICE,				/* enum field, one of choices */
	TNP_KEY_CHOICE_BOOLEAN,		/* bool field, one of choices */
	TNP_KEY_OBJECT,				/* an object with the table `keys`, in the same structure */
	TNP_KEY_OTHER				/* read into the field by a function */
} TnpKeyKind;

/* Reads the value of the key with the whole name path into field. */
typedef TnpStatus (*TnpReadValue) (TnpReader *reader, const char *path, const json_t *value,
								   void *field);

/*
 * One key. An optional key that is absent leaves its field as it was. A table ends with a NULL
 * name.
 */
typedef struct TnpKey
{
	const char *name;
	TnpKeyKind	kind;
	bool		optional;
	size_t		offset;			/* of the field in the structure that is filled */
	double		min,
				max;
	const TnpChoice *choices;
	const struct TnpKey *keys;
	TnpReadValue read;
} TnpKey;

/*
 * Rows of the tables: required unless the name ends in _OPTIONAL. `in` is the structure that has
 * the field.
 */
#define TNP_INTEGER(name, in, field, min, max) \
	{name, TNP_KEY_INTEGER, false, offsetof(in, field), min, max, NULL, NULL, NULL}
#define TNP_INTEGER_OPTIONAL(name, in, field, min, max) \
	{name, TNP_KEY_INTEGER, true, offsetof(in, field), min, max, NULL, NULL, NULL}
#define TNP_NUMBER(name, in, field, min, max) \
	{name, TNP_KEY_NUMBER, false, offsetof(in, field), min, max, NULL, NULL, NULL}
#define TNP_NUMBER_OPTIONAL(name, in, field, min, max) \
	{name, TNP_KEY_NUMBER, true, offsetof(in, field), min, max, NULL, NULL, NULL}
#define TNP_BOOLEAN(name, in, field) \
	{name, TNP_KEY_BOOLEAN, false, offsetof(in, field), 0, 0, NULL, NULL, NULL}
#define TNP_BOOLEAN_OPTIONAL(name, in, field) \
	{name, TNP_KEY_BOOLEAN, true, offsetof(in, field), 0, 0, NULL, NULL, NULL}
#define TNP_CHOICE(name, in, field, choices) \
	{name, TNP_KEY_CHOICE, false, offsetof(in, field), 0, 0, choices, NULL, NULL}
#define TNP_CHOICE_OPTIONAL(name, in, field, choices) \
	{name, TNP_KEY_CHOICE, true, offsetof(in, field), 0, 0, choices, NULL, NULL}
#define TNP_FLAG(name, in, field, choices) \
	{name, TNP_KEY_CHOICE_BOOLEAN, false, offsetof(in, field), 0, 0, choices, NULL, NULL}
#define TNP_FLAG_OPTIONAL(name, in, field, choices) \
	{name, TNP_KEY_CHOICE_BOOLEAN, true, offsetof(in, field), 0, 0, choices, NULL, NULL}
#define TNP_OBJECT(name, keys) {name, TNP_KEY_OBJECT, false, 0, 0, 0, NULL, keys, NULL}
#define TNP_OBJECT_OPTIONAL(name, keys) {name, TNP_KEY_OBJECT, true, 0, 0, 0, NULL, keys, NULL}
#define TNP_OTHER(name, in, field, read) \
	{name, TNP_KEY_OTHER, false, offsetof(in, field), 0, 0, NULL, NULL, read}
#define TNP_OTHER_OPTIONAL(name, in, field, read) \
	{name, TNP_KEY_OTHER, true, offsetof(in, field), 0, 0, NULL, NULL, read}
#define TNP_END {NULL, TNP_KEY_OTHER, false, 0, 0, 0, NULL, NULL, NULL}

/*
 * One kind of a variant: an object whose key "kind" chooses the table. Every table has "kind" in
 * it.
 */
typedef struct TnpVariant
{
	int			kind;
	const TnpKey *keys;
} TnpVariant;

/*
 * Read an object into target in the order of the table (not of the text); a key that is not in it,
 * and one that is missing, are errors. path is the object's whole name, "" for the outermost.
 * Fields read before a failure keep what was read.
 */
TnpStatus	tnp_read_object(TnpReader *reader, const char *path, const json_t *object,
							const TnpKey *keys, void *target);
TnpStatus	tnp_read_variant(TnpReader *reader, const char *path, const json_t *object,
							 const TnpChoice *kinds, const TnpVariant *variants, void *target);

/*
 * Single values, for functions of TNP_KEY_OTHER. min = DBL_MIN means above 0, max = DBL_MAX no
 * limit.
 */
TnpStatus	tnp_read_integer(TnpReader *reader, const char *path, const json_t *value, double min,
							 double max, int *field);
TnpStatus	tnp_read_number(TnpReader *reader, const char *path, const json_t *value, double min,
							double max, double *field);
TnpStatus	tnp_read_choice(TnpReader *reader, const char *path, const json_t *value,
							const TnpChoice *choices, int *field);

/* The value of `path` must be `expected`, and is not. */
TnpStatus	tnp_fail_value(TnpReader *reader, const char *path, const json_t *value,
						   const char *expected);

#endif							/* TNP_KEYS_H */

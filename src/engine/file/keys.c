/*
 * keys.c: reads JSON objects into structures by tables of their keys.
 *
 * An object is read in the order of its table, so that a later key may look at an earlier one
 * whatever the order in the text, and a key that no table has is refused, so that a misspelt option
 * is an error and not a default.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/file/keys.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"

#define MAX_PATH_NAME 128
#define MAX_KNOWN 200

/* Enum fields are written as int. */
_Static_assert(sizeof(TnpKeyKind) == sizeof(int), "enums are as wide as int");

TnpStatus
tnp_fail_value(TnpReader *reader, const char *path, const json_t *value, const char *expected)
{
	char		shown[TNP_JSON_SHOWN];

	tnp_fail(reader->error, TNP_BAD_CONFIG, "configuration key \"%s\" must be %s", path, expected);
	tnp_detail(reader->error, "it is %s", tnp_json_show(value, shown));
	return TNP_BAD_CONFIG;
}

/* An integer is a JSON integer: 1.0 is none. */
TnpStatus
tnp_read_integer(TnpReader *reader, const char *path, const json_t *value, double min, double max,
				 int *field)
{
	json_int_t	n = json_integer_value(value);
	char		expected[64];

	if (json_is_integer(value) && n >= (json_int_t) min && n <= (json_int_t) max)
	{
		*field = (int) n;
		return TNP_OK;
	}
	snprintf(expected, sizeof(expected), "an integer from %.0f to %.0f", min, max);
	return tnp_fail_value(reader, path, value, expected);
}

TnpStatus
tnp_read_number(TnpReader *reader, const char *path, const json_t *value, double min, double max,
				double *field)
{
	double		x = json_number_value(value);
	char		expected[64] = "a finite number";

	if (json_is_number(value) && isfinite(x) && x >= min && x <= max)
	{
		*field = x;
		return TNP_OK;
	}
	if (max < DBL_MAX)
		snprintf(expected, sizeof(expected), "a number from %g to %g", min, max);
	else if (min == DBL_MIN)
		snprintf(expected, sizeof(expected), "a finite number above 0");
	else if (min > -DBL_MAX)
		snprintf(expected, sizeof(expected), "a finite number of at least %g", min);
	return tnp_fail_value(reader, path, value, expected);
}

static TnpStatus
read_boolean(TnpReader *reader, const char *path, const json_t *value, bool *field)
{
	if (!json_is_boolean(value))
		return tnp_fail_value(reader, path, value, "true or false");
	*field = json_is_true(value);
	return TNP_OK;
}

TnpStatus
tnp_read_choice(TnpReader *reader, const char *path, const json_t *value, const TnpChoice *choices,
				int *field)
{
	char		known[MAX_KNOWN] = "";
	char		shown[TNP_JSON_SHOWN];

	for (const TnpChoice *choice = choices; choice->name != NULL; choice++)
	{
		size_t		used = strlen(known);

		if (json_is_string(value) && strcmp(json_string_value(value), choice->name) == 0)
		{
			*field = choice->value;
			return TNP_OK;
		}
		snprintf(known + used, sizeof(known) - used, "%s%s", used > 0 ? ", " : "", choice->name);
	}
	tnp_fail(reader->error, TNP_BAD_CONFIG, "unknown %s %s", path, tnp_json_show(value, shown));
	tnp_detail(reader->error, "known are %s", known);
	return TNP_BAD_CONFIG;
}

/* The whole name of a key of the object `path`. */
static const char *
join_path(const char *path, const char *name, char out[MAX_PATH_NAME])
{
	snprintf(out, MAX_PATH_NAME, "%s%s%s", path, path[0] != '\0' ? "." : "", name);
	return out;
}

/* Read one value as its row of the table says. */
static TnpStatus
read_key(TnpReader *reader, const char *path, const json_t *value, const TnpKey *key, void *target)
{
	void	   *field = (char *) target + key->offset;
	TnpStatus	status;
	int			choice;

	switch (key->kind)
	{
		case TNP_KEY_INTEGER:
			return tnp_read_integer(reader, path, value, key->min, key->max, field);
		case TNP_KEY_NUMBER:
			return tnp_read_number(reader, path, value, key->min, key->max, field);
		case TNP_KEY_BOOLEAN:
			return read_boolean(reader, path, value, field);
		case TNP_KEY_CHOICE:
			return tnp_read_choice(reader, path, value, key->choices, field);
		case TNP_KEY_CHOICE_BOOLEAN:
			status = tnp_read_choice(reader, path, value, key->choices, &choice);
			if (status == TNP_OK)
				*(bool *) field = choice != 0;
			return status;
		case TNP_KEY_OBJECT:
			return tnp_read_object(reader, path, value, key->keys, target);
		case TNP_KEY_OTHER:
			break;
	}
	return key->read(reader, path, value, field);
}

/* Refuse a key that the table does not have. */
static TnpStatus
check_known(TnpReader *reader, const char *path, const json_t *object, const TnpKey *keys)
{
	char		known[MAX_KNOWN] = "";
	char		full[MAX_PATH_NAME];
	char		shown[TNP_JSON_SHOWN];

	for (void *at = json_object_iter((json_t *) object); at != NULL;
		 at = json_object_iter_next((json_t *) object, at))
	{
		const char *name = json_object_iter_key(at);
		const TnpKey *key = keys;

		while (key->name != NULL && strcmp(key->name, name) != 0)
			key++;
		if (key->name != NULL)
			continue;
		for (key = keys; key->name != NULL; key++)
			snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
					 key == keys ? "" : ", ", key->name);
		tnp_fail(reader->error, TNP_BAD_CONFIG, "unknown configuration key \"%s\"",
				 join_path(path, tnp_json_show_text(name, shown), full));
		tnp_detail(reader->error, "known are %s", known);
		return TNP_BAD_CONFIG;
	}
	return TNP_OK;
}

TnpStatus
tnp_read_object(TnpReader *reader, const char *path, const json_t *object, const TnpKey *keys,
				void *target)
{
	char		full[MAX_PATH_NAME];
	TnpStatus	status;

	if (!json_is_object(object))
		return tnp_fail_value(reader, path, object, "an object");
	if ((status = check_known(reader, path, object, keys)) != TNP_OK)
		return status;
	for (const TnpKey *key = keys; key->name != NULL; key++)
	{
		const json_t *value = json_object_get(object, key->name);

		join_path(path, key->name, full);
		if (value == NULL && key->optional)
			continue;
		if (value == NULL)
			return tnp_fail(reader->error, TNP_BAD_CONFIG, "configuration key \"%s\" is missing",
							full);
		if ((status = read_key(reader, full, value, key, target)) != TNP_OK)
			return status;
	}
	return TNP_OK;
}

TnpStatus
tnp_read_variant(TnpReader *reader, const char *path, const json_t *object, const TnpChoice *kinds,
				 const TnpVariant *variants, void *target)
{
	const json_t *value = json_object_get(object, "kind");
	char		full[MAX_PATH_NAME];
	TnpStatus	status;
	int			kind;

	join_path(path, "kind", full);
	if (!json_is_object(object))
		return tnp_fail_value(reader, path, object, "an object");
	if (value == NULL)
		return tnp_fail(reader->error, TNP_BAD_CONFIG, "configuration key \"%s\" is missing", full);
	if ((status = tnp_read_choice(reader, full, value, kinds, &kind)) != TNP_OK)
		return status;
	while (variants->kind != kind)
		variants++;
	return tnp_read_object(reader, path, object, variants->keys, target);
}

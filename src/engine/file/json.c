/*
 * json.c: JSON of untrusted origin, over jansson.
 *
 * jansson itself refuses duplicate keys (asked to), invalid UTF-8, NUL in strings, and numbers
 * beyond int64 and double. It allows nesting 2048 deep and any number of values, each of which
 * costs a small allocation, so both are counted before it sees the text. jansson allocates with
 * malloc, never through TnpEnv: callers hold its values only within one call and between calls that
 * cannot leave by longjmp.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/file/json.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"

/*
 * Count the deepest nesting of brackets and the commas and brackets outside strings. Malformed text
 * gives some number; that it is malformed is found by the parser.
 */
static void
json_measure(const char *text, size_t length, size_t *depth, size_t *values)
{
	size_t		open = 0;
	bool		in_string = false;

	*depth = 0;
	*values = 0;
	for (size_t i = 0; i < length; i++)
	{
		char		c = text[i];

		if (in_string)
		{
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
			continue;
		}
		if (c == '"')
			in_string = true;
		else if (c == ',')
			(*values)++;
		else if (c == '{' || c == '[')
		{
			(*values)++;
			if (++open > *depth)
				*depth = open;
		}
		else if ((c == '}' || c == ']') && open > 0)
			open--;
	}
}

TnpStatus
tnp_json_parse(const char *text, size_t length, size_t max_values, TnpStatus bad, const char *what,
			   json_t **root, TnpError *error)
{
	json_error_t problem;
	size_t		depth,
				values;
	char		shown[TNP_JSON_SHOWN];

	*root = NULL;
	json_measure(text, length, &depth, &values);
	if (depth > TNP_JSON_MAX_DEPTH)
	{
		tnp_fail(error, bad, "%s is nested too deeply", what);
		tnp_detail(error, "%zu levels, at most %d are allowed", depth, TNP_JSON_MAX_DEPTH);
		return bad;
	}
	if (values > max_values)
	{
		tnp_fail(error, bad, "%s has too many values", what);
		tnp_detail(error, "about %zu values, at most %zu are allowed", values, max_values);
		return bad;
	}

	*root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &problem);
	if (*root == NULL)
	{
		/* Some of jansson's allocation failures leave no text. */
		if (problem.text[0] == '\0' || json_error_code(&problem) == json_error_out_of_memory)
			return tnp_no_memory(error);
		tnp_fail(error, bad, "%s is not valid JSON", what);
		tnp_detail(error, "at byte %d: %s", problem.position,
				   tnp_json_show_text(problem.text, shown));
		return bad;
	}
	if (!json_is_object(*root))
	{
		tnp_fail(error, bad, "%s is not a JSON object", what);
		tnp_detail(error, "it is %s", tnp_json_show(*root, shown));
		json_decref(*root);
		*root = NULL;
		return bad;
	}
	return TNP_OK;
}

const char *
tnp_json_show_text(const char *text, char out[TNP_JSON_SHOWN])
{
	size_t		n = 0;

	for (; *text != '\0' && n < TNP_JSON_SHOWN - 4; text++)
	{
		unsigned char c = (unsigned char) *text;

		if (c >= 0x80 && c < 0xc0)
			continue;			/* one question mark for a whole UTF-8 character */
		out[n++] = (c >= 0x20 && c < 0x7f) ? (char) c : '?';
	}
	if (*text != '\0')
	{
		memcpy(out + n, "...", 3);
		n += 3;
	}
	out[n] = '\0';
	return out;
}

const char *
tnp_json_show(const json_t *value, char out[TNP_JSON_SHOWN])
{
	char		text[TNP_JSON_SHOWN];

	switch (json_typeof(value))
	{
		case JSON_STRING:
			tnp_json_show_text(json_string_value(value), text);
			snprintf(out, TNP_JSON_SHOWN, "\"%.*s\"", TNP_JSON_SHOWN - 3, text);
			break;
		case JSON_INTEGER:
			snprintf(out, TNP_JSON_SHOWN, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
			break;
		case JSON_REAL:
			snprintf(out, TNP_JSON_SHOWN, "%.10g", json_real_value(value));
			if (strpbrk(out, ".e") == NULL)
				strcat(out, ".0");	/* 1.0 is not the integer 1 */
			break;
		case JSON_OBJECT:
			snprintf(out, TNP_JSON_SHOWN, "an object");
			break;
		case JSON_ARRAY:
			snprintf(out, TNP_JSON_SHOWN, "an array of %zu", json_array_size(value));
			break;
		case JSON_TRUE:
			snprintf(out, TNP_JSON_SHOWN, "true");
			break;
		case JSON_FALSE:
			snprintf(out, TNP_JSON_SHOWN, "false");
			break;
		case JSON_NULL:
			snprintf(out, TNP_JSON_SHOWN, "null");
			break;
	}
	return out;
}

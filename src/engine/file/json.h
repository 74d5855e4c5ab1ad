/*
 * json.h: JSON of untrusted origin, over jansson.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_JSON_H
#define TNP_JSON_H

#include <jansson.h>

#include "engine/tnp.h"

#define TNP_JSON_MAX_DEPTH 8
#define TNP_JSON_SHOWN 80		/* bytes that tnp_json_show needs */

/*
 * Parse text [length], which must be one JSON object with at most max_values values in it. `what`
 * names the text in messages ("the header"), `bad` is the status of malformed text. On success the
 * caller owns *root and gives it back by json_decref.
 */
TnpStatus	tnp_json_parse(const char *text, size_t length, size_t max_values, TnpStatus bad,
						   const char *what, json_t **root, TnpError *error);

/*
 * A short printable ASCII form of a text or a value for messages, cut where it is long; returns
 * out.
 */
const char *tnp_json_show_text(const char *text, char out[TNP_JSON_SHOWN]);
const char *tnp_json_show(const json_t *value, char out[TNP_JSON_SHOWN]);

#endif							/* TNP_JSON_H */

/*
 * safetensors.c: the safetensors container, read as hostile bytes.
 *
 * The file is 8 bytes of little-endian header length, the header (a JSON object), and the data.
 * Nothing in it is believed before it is checked: every length against the bytes that are there,
 * every product against overflow, and the tensors' byte ranges together must tile the data exactly,
 * so that no byte is read twice or hidden. The rules are docs/model-format.md sections 1 and 13.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/file/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/file/json.h"

#define MAX_FILE ((size_t) 1 << 30)
#define MAX_HEADER ((size_t) 16 << 20)
#define MAX_TENSORS 100000
#define MAX_PARAMETERS ((int64_t) 1 << 28)
#define MAX_VALUES 2000000		/* what 100,000 tensors of rank 8 need, and some metadata */
#define CONFIG_KEY "pg_posterior"
#define PUBLISHED_KEY "config"	/* where conversions of a package's weights have its own */

/* What the header's checks share. */
typedef struct Reader
{
	const TnpEnv *env;
	const unsigned char *data;	/* what the offsets count from */
	size_t		data_length;
	TnpFile    *file;
	TnpError   *error;
	char		shown[TNP_JSON_SHOWN];	/* the current tensor's name, for messages */
} Reader;

/* A copy of text [length] with a NUL after it, from the environment. */
static char *
copy_text(const TnpEnv *env, const char *text, size_t length)
{
	char	   *copy = tnp_alloc(env, length + 1, 1);

	if (copy != NULL)
	{
		memcpy(copy, text, length);
		copy[length] = '\0';
	}
	return copy;
}

/* No empty names and no control characters (C0, DEL, C1): names appear in messages and listings. */
static bool
name_is_printable(const char *name)
{
	const unsigned char *p = (const unsigned char *) name;

	if (*p == '\0')
		return false;
	for (; *p != '\0'; p++)
	{
		if (*p < 0x20 || *p == 0x7f)
			return false;
		if (p[0] == 0xc2 && p[1] < 0xa0)
			return false;
	}
	return true;
}

/* dtype, the only two that weights come in. */
static TnpStatus
read_dtype(Reader *reader, const json_t *value, TnpFileTensor *tensor)
{
	const char *dtype = json_string_value(value);
	char		shown[TNP_JSON_SHOWN];

	if (dtype != NULL && (strcmp(dtype, "F32") == 0 || strcmp(dtype, "F16") == 0))
	{
		tensor->half = strcmp(dtype, "F16") == 0;
		return TNP_OK;
	}
	tnp_fail(reader->error, TNP_BAD_FILE, "tensor \"%s\" has no usable dtype", reader->shown);
	tnp_detail(reader->error, "dtype is %s, known are F32, F16",
			   value ? tnp_json_show(value, shown) : "missing");
	return TNP_BAD_FILE;
}

/* shape, and the number of elements that it makes. */
static TnpStatus
read_shape(Reader *reader, const json_t *value, TnpFileTensor *tensor)
{
	char		shown[TNP_JSON_SHOWN];
	size_t		rank = json_array_size(value);

	if (!json_is_array(value) || rank > TNP_MAX_RANK)
	{
		tnp_fail(reader->error, TNP_BAD_FILE, "tensor \"%s\" has no usable shape", reader->shown);
		tnp_detail(reader->error, "shape is %s, expected an array of at most %d sizes",
				   value ? tnp_json_show(value, shown) : "missing", TNP_MAX_RANK);
		return TNP_BAD_FILE;
	}
	tensor->rank = (int) rank;
	tensor->n_elements = 1;
	for (size_t i = 0; i < rank; i++)
	{
		const json_t *element = json_array_get(value, i);
		json_int_t	size = json_integer_value(element);

		if (!json_is_integer(element) || size < 1)
		{
			tnp_fail(reader->error, TNP_BAD_FILE,
					 "tensor \"%s\" has a size that is not a positive integer", reader->shown);
			tnp_detail(reader->error, "size %zu of its shape is %s", i + 1,
					   tnp_json_show(element, shown));
			return TNP_BAD_FILE;
		}
		if (size > MAX_PARAMETERS / tensor->n_elements)
		{
			tnp_fail(reader->error, TNP_BAD_FILE, "tensor \"%s\" is too large", reader->shown);
			tnp_detail(reader->error, "its shape has more than %lld elements",
					   (long long) MAX_PARAMETERS);
			return TNP_BAD_FILE;
		}
		tensor->shape[i] = size;
		tensor->n_elements *= size;
	}
	return TNP_OK;
}

/* data_offsets [begin, end), within the data and of the length that dtype and shape say. */
static TnpStatus
read_offsets(Reader *reader, const json_t *value, TnpFileTensor *tensor)
{
	const json_t *first = json_array_get(value, 0);
	const json_t *second = json_array_get(value, 1);
	json_int_t	begin = json_integer_value(first);
	json_int_t	end = json_integer_value(second);
	json_int_t	expected = tensor->n_elements * (tensor->half ? 2 : 4);

	if (json_array_size(value) != 2 || !json_is_integer(first) || !json_is_integer(second)
		|| begin < 0 || end < begin)
	{
		tnp_fail(reader->error, TNP_BAD_FILE, "tensor \"%s\" has no usable data_offsets",
				 reader->shown);
		tnp_detail(reader->error, "expected two integers, 0 <= begin <= end");
		return TNP_BAD_FILE;
	}
	if ((uint64_t) end > reader->data_length)
	{
		tnp_fail(reader->error, TNP_BAD_FILE, "tensor \"%s\" lies beyond the end of the file",
				 reader->shown);
		tnp_detail(reader->error, "it ends at byte %lld of the data, which has %zu bytes",
				   (long long) end, reader->data_length);
		return TNP_BAD_FILE;
	}
	if (end - begin != expected)
	{
		tnp_fail(reader->error, TNP_BAD_FILE,
				 "tensor \"%s\" has data that does not match its shape", reader->shown);
		tnp_detail(reader->error, "the data has %lld bytes, dtype and shape make %lld",
				   (long long) (end - begin), (long long) expected);
		return TNP_BAD_FILE;
	}
	tensor->data = reader->data + begin;
	return TNP_OK;
}

/* One entry of the header: {"dtype": …, "shape": …, "data_offsets": …} and nothing else. */
static TnpStatus
read_tensor(Reader *reader, const char *name, const json_t *entry, TnpFileTensor *tensor)
{
	TnpStatus	status;

	tnp_json_show_text(name, reader->shown);
	if (!name_is_printable(name))
	{
		tnp_fail(reader->error, TNP_BAD_FILE, "a tensor's name is empty or has control characters");
		tnp_detail(reader->error, "the name is \"%s\"", reader->shown);
		return TNP_BAD_FILE;
	}
	if (json_object_size(entry) != 3 || !json_object_get(entry, "dtype")
		|| !json_object_get(entry, "shape") || !json_object_get(entry, "data_offsets"))
	{
		tnp_fail(reader->error, TNP_BAD_FILE, "tensor \"%s\" is not described as safetensors does",
				 reader->shown);
		tnp_detail(reader->error, "expected an object with the keys dtype, shape, data_offsets");
		return TNP_BAD_FILE;
	}
	if ((status = read_dtype(reader, json_object_get(entry, "dtype"), tensor)) != TNP_OK
		|| (status = read_shape(reader, json_object_get(entry, "shape"), tensor)) != TNP_OK
		|| (status = read_offsets(reader, json_object_get(entry, "data_offsets"), tensor))
		!= TNP_OK)
		return status;
	tensor->name = copy_text(reader->env, name, strlen(name));
	return tensor->name == NULL ? tnp_no_memory(reader->error) : TNP_OK;
}

/* A text of the metadata as one line, cut between characters where it is long. */
static void
copy_line(const json_t *metadata, const char *key, char *line)
{
	const char *text = json_string_value(json_object_get(metadata, key));
	size_t		length = text == NULL ? 0 : strlen(text);

	if (length > TNP_FILE_LINE - 1)
		for (length = TNP_FILE_LINE - 1; ((unsigned char) text[length] & 0xc0) == 0x80;)
			length--;
	for (size_t i = 0; i < length; i++)
		line[i] = (unsigned char) text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i];
	line[length] = '\0';
}

/* The configuration, a text within __metadata__; other metadata is not looked at. */
static TnpStatus
read_metadata(Reader *reader, const json_t *header)
{
	const json_t *metadata = json_object_get(header, "__metadata__"),
			   *config = json_object_get(metadata, CONFIG_KEY);

	if (config == NULL && json_object_get(metadata, PUBLISHED_KEY) != NULL)
	{
		config = json_object_get(metadata, PUBLISHED_KEY);
		reader->file->published = true;
		copy_line(metadata, "license", reader->file->licence);
		copy_line(metadata, "source", reader->file->source);
	}
	if (!json_is_string(config))
	{
		tnp_fail(reader->error, TNP_BAD_FILE, "the file has no configuration");
		tnp_detail(reader->error,
				   "a model carries it as a text in the safetensors metadata under the key \"%s\"",
				   CONFIG_KEY);
		return TNP_BAD_FILE;
	}
	reader->file->config_length = json_string_length(config);
	reader->file->config = copy_text(reader->env, json_string_value(config),
									 reader->file->config_length);
	return reader->file->config == NULL ? tnp_no_memory(reader->error) : TNP_OK;
}

/* All tensors, in the header's order. */
static TnpStatus
read_tensors(Reader *reader, json_t *header)
{
	TnpFile    *file = reader->file;
	size_t		n = json_object_size(header) - 1;	/* without __metadata__ */
	int64_t		parameters = 0;
	const char *name;
	json_t	   *entry;

	if (n > MAX_TENSORS)
	{
		tnp_fail(reader->error, TNP_BAD_FILE, "the file has too many tensors");
		tnp_detail(reader->error, "it has %zu, at most %d are allowed", n, MAX_TENSORS);
		return TNP_BAD_FILE;
	}
	file->tensors = tnp_alloc_zero(reader->env, n, sizeof(TnpFileTensor));
	if (file->tensors == NULL)
		return tnp_no_memory(reader->error);
	json_object_foreach(header, name, entry)
	{
		TnpFileTensor *tensor = &file->tensors[file->n_tensors];
		TnpStatus	status;

		if (strcmp(name, "__metadata__") == 0)
			continue;
		file->n_tensors++;
		if ((status = read_tensor(reader, name, entry, tensor)) != TNP_OK)
			return status;
		parameters += tensor->n_elements;
	}
	if (parameters > MAX_PARAMETERS)
	{
		tnp_fail(reader->error, TNP_BAD_FILE, "the model is too large");
		tnp_detail(reader->error, "it has %lld parameters, at most %lld are allowed",
				   (long long) parameters, (long long) MAX_PARAMETERS);
		return TNP_BAD_FILE;
	}
	return TNP_OK;
}

static int
compare_data(const void *a, const void *b)
{
	const unsigned char *x = ((const TnpFileTensor *) a)->data;
	const unsigned char *y = ((const TnpFileTensor *) b)->data;

	return (x > y) - (x < y);
}

static int
compare_name(const void *a, const void *b)
{
	return strcmp(((const TnpFileTensor *) a)->name, ((const TnpFileTensor *) b)->name);
}

/* The ranges, sorted, tile the data exactly; leaves the tensors sorted by data. */
static TnpStatus
check_tiling(Reader *reader)
{
	TnpFile    *file = reader->file;
	const unsigned char *reached = reader->data;
	size_t		rest;

	qsort(file->tensors, file->n_tensors, sizeof(TnpFileTensor), compare_data);
	for (int i = 0; i < file->n_tensors; i++)
	{
		const TnpFileTensor *tensor = &file->tensors[i];

		if (tensor->data != reached)
		{
			tnp_json_show_text(tensor->name, reader->shown);
			tnp_fail(reader->error, TNP_BAD_FILE, tensor->data < reached ?
					 "tensor \"%s\" overlaps another one"
					 : "there is a hole in the data before tensor \"%s\"", reader->shown);
			tnp_detail(reader->error,
					   "it begins at byte %zu of the data, the tensors before it end at %zu",
					   (size_t) (tensor->data - reader->data), (size_t) (reached - reader->data));
			return TNP_BAD_FILE;
		}
		reached += tensor->n_elements * (tensor->half ? 2 : 4);
	}
	rest = reader->data_length - (size_t) (reached - reader->data);
	if (rest != 0)
	{
		tnp_fail(reader->error, TNP_BAD_FILE, "the file has bytes after its last tensor");
		tnp_detail(reader->error, "%zu of %zu bytes of data belong to no tensor", rest,
				   reader->data_length);
		return TNP_BAD_FILE;
	}
	return TNP_OK;
}

/* The eight bytes in front of the header, and the header's first byte. */
static TnpStatus
read_header_length(const unsigned char *bytes, size_t length, size_t *header_length,
				   TnpError *error)
{
	uint64_t	h = 0;

	if (length < 8)
	{
		tnp_fail(error, TNP_BAD_FILE, "not a safetensors file");
		tnp_detail(error, "it has %zu bytes, too few for a header", length);
		return TNP_BAD_FILE;
	}
	if (length > MAX_FILE)
	{
		tnp_fail(error, TNP_BAD_FILE, "the file is too large");
		tnp_detail(error, "it has %zu bytes, at most %zu are allowed", length, MAX_FILE);
		return TNP_BAD_FILE;
	}
	for (int i = 7; i >= 0; i--)
		h = h << 8 | bytes[i];
	if (h == 0 || h > length - 8 || h > MAX_HEADER)
	{
		tnp_fail(error, TNP_BAD_FILE, "not a safetensors file, or it is truncated");
		tnp_detail(error,
				   "the header length is %llu; the file has %zu bytes, and a header at most %zu",
				   (unsigned long long) h, length, MAX_HEADER);
		return TNP_BAD_FILE;
	}
	if (bytes[8] != '{')
	{
		tnp_fail(error, TNP_BAD_FILE, "not a safetensors file");
		tnp_detail(error, "the header begins with byte 0x%02x instead of \"{\"", bytes[8]);
		return TNP_BAD_FILE;
	}
	*header_length = (size_t) h;
	return TNP_OK;
}

TnpStatus
tnp_file_open(const TnpEnv *env, const void *bytes, size_t length, TnpFile *file, TnpError *error)
{
	Reader		reader = {.env = env,.file = file,.error = error};
	json_t	   *header = NULL;
	size_t		header_length;
	TnpStatus	status;

	memset(file, 0, sizeof(*file));
	if ((status = read_header_length(bytes, length, &header_length, error)) != TNP_OK)
		return status;
	reader.data = (const unsigned char *) bytes + 8 + header_length;
	reader.data_length = length - 8 - header_length;

	if ((status = tnp_json_parse((const char *) bytes + 8, header_length, MAX_VALUES, TNP_BAD_FILE,
								 "the file's header", &header, error)) == TNP_OK
		&& (status = read_metadata(&reader, header)) == TNP_OK
		&& (status = read_tensors(&reader, header)) == TNP_OK)
		status = check_tiling(&reader);
	json_decref(header);
	if (status != TNP_OK)
		tnp_file_close(env, file);
	else
		qsort(file->tensors, file->n_tensors, sizeof(TnpFileTensor), compare_name);
	return status;
}

void
tnp_file_close(const TnpEnv *env, TnpFile *file)
{
	for (int i = 0; i < file->n_tensors; i++)
		tnp_free(env, file->tensors[i].name);
	tnp_free(env, file->tensors);
	tnp_free(env, file->config);
	memset(file, 0, sizeof(*file));
}

const TnpFileTensor *
tnp_file_find(const TnpFile *file, const char *name)
{
	int			low = 0;
	int			high = file->n_tensors;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;
		int			order = strcmp(name, file->tensors[middle].name);

		if (order == 0)
			return &file->tensors[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

/* The bits of a float32 with the value of a float16; infinities and NaN stay what they are. */
static uint32_t
widen_half(uint32_t half)
{
	uint32_t	sign = (half & 0x8000) << 16;
	uint32_t	exponent = (half >> 10) & 0x1f;
	uint32_t	fraction = half & 0x3ff;

	if (exponent == 0x1f)
		return sign | 0x7f800000 | fraction << 13;
	if (exponent == 0)
	{
		if (fraction == 0)
			return sign;
		/*
		 * A subnormal half is a normal float: shift until the leading one is where it is implied.
		 */
		for (exponent = 1; (fraction & 0x400) == 0; exponent--)
			fraction <<= 1;
		fraction &= 0x3ff;
	}
	return sign | (exponent + 127 - 15) << 23 | fraction << 13;
}

bool
tnp_file_widen(const TnpFileTensor *tensor, int64_t start, int64_t n, float *out)
{
	const unsigned char *p = tensor->data + start * (tensor->half ? 2 : 4);

	for (int64_t i = 0; i < n; i++)
	{
		uint32_t	bits;

		if (tensor->half)
		{
			bits = widen_half((uint32_t) p[0] | (uint32_t) p[1] << 8);
			p += 2;
		}
		else
		{
			bits = (uint32_t) p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16 |
				(uint32_t) p[3] << 24;
			p += 4;
		}
		if ((bits & 0x7f800000) == 0x7f800000)
			return false;
		memcpy(&out[i], &bits, sizeof(float));
	}
	return true;
}

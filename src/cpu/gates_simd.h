/*
 * gates_simd.h: one step of a recurrence (kernels.h, gate), in vectors. A last part of a vector is
 * computed like a whole one, so that a number does not depend on its place.
 *
 * SPDX-License-Identifier: PostgreSQL
 */

/* NaN stays NaN, which vector_exp() does not promise. */
INLINE Vector
gate_sigmoid(Vector x)
{
	Vector		y = 1.0f / (vector_exp(-x) + 1.0f);

	return choose(x != x, x, y);
}

/* tanh(x) = 1 - 2 / (exp(2x) + 1) */
INLINE Vector
gate_tanh(Vector x)
{
	Vector		y = 1.0f - 2.0f / (vector_exp(x + x) + 1.0f);

	return choose(x != x, x, y);
}

/* One vector of the gates of an LSTM; *c receives its cells. */
INLINE Vector
gate_vector(Vector in, Vector keep, Vector new, Vector out, Vector before, Vector *c)
{
	*c = multiply_add(gate_sigmoid(keep), before, gate_sigmoid(in) * gate_tanh(new));
	return gate_sigmoid(out) * gate_tanh(*c);
}

static void
gate(bool cells, int d, const float *gates, const float *before, float *s)
{
	int			parts = cells ? 4 : 1;

	for (int f = 0; f < d; f += WIDTH)
	{
		int			n = d - f < WIDTH ? d - f : WIDTH;
		float		part[5][WIDTH] = {{0}};
		Vector		c = splat(0),
					h;

		for (int p = 0; p < parts; p++)
			memcpy(part[p], gates + (size_t) p * d + f, n * sizeof(float));
		if (cells && before != NULL)
			memcpy(part[4], before + f, n * sizeof(float));
		h = cells ? gate_vector(load(part[0]), load(part[1]), load(part[2]), load(part[3]),
								load(part[4]), &c) : gate_tanh(load(part[0]));
		store(part[0], h);
		memcpy(s + f, part[0], n * sizeof(float));
		if (cells)
		{
			store(part[1], c);
			memcpy(s + d + f, part[1], n * sizeof(float));
		}
	}
}

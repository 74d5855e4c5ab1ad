"""Philox 4x32-10 and what is drawn with it (docs/model-format.md section 11).

SPDX-License-Identifier: PostgreSQL
"""
MASK = 0xFFFFFFFF


def philox(counter, key):
    """Four 32-bit words of a counter (4 words) and a key (2 words), ten rounds."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK, (p0 >> 32) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


def uniforms(seed, counter):
    """(u1, u2) in (0, 1)."""
    w = philox(counter, (seed & MASK, seed >> 32 & MASK))
    return tuple(((w[i] >> 5) * 2 ** 26 + (w[i + 1] >> 6) + 0.5) / 2 ** 53 for i in (0, 2))


def value_uniforms(seed, draw, step, target=0):
    """The two uniforms of step `step` (from 0) of draw number `draw`, for one of several targets.
    """
    return uniforms(seed, (draw & MASK, draw >> 32 & MASK, step, 2 * target))


def permutation(seed, order, m):
    """The order number `order` (from 0) of m rows: place i holds the number of the row that comes
    i-th.
    """
    places = list(range(m))
    for i in range(m - 1, 0, -1):
        u1, _ = uniforms(seed, (order & MASK, order >> 32 & MASK, i, 1))
        j = int(u1 * (i + 1))
        places[i], places[j] = places[j], places[i]
    return places


def self_test():
    """Known answers of the published generator."""
    assert philox((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    assert philox((MASK,) * 4, (MASK,) * 2) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
    assert philox((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)) == (
        0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)


if __name__ == "__main__":
    self_test()
    print("ok")

"""Functions on grids of pixels: epidemics (SIR) and pictures of a folder (Jenson et al. 2024;
Hassan et al. 2025). Columns are the two coordinates in [-1, 1].
"""

import functools
import os
import struct
import zlib

import torch

from ..tasks import numeric
from .source import Source


def coordinates(height, width):
    """[height * width, 2] in [-1, 1], row by row."""
    down = torch.linspace(-1, 1, height)[:, None].expand(height, width)
    right = torch.linspace(-1, 1, width)[None].expand(height, width)
    return torch.stack([down, right], -1).flatten(0, 1)


def some_pixels(s, values, x, rows):
    """Tasks of `rows` random pixels each; values [B, pixels, D], x [pixels, 2]."""
    count = len(values)
    if rows > len(x):
        raise ValueError(f"a grid of {len(x)} pixels has no {rows} rows")
    place = s.order(count, len(x))[:, :rows]
    y = values.gather(1, place[..., None].expand(-1, -1, values.shape[2]))
    return numeric(x.to(values.device)[place], y[..., 0] if values.shape[2] == 1 else y)


def epidemic(s, tasks, size, infection, recovery, steps, seeds):
    """States 0 susceptible, 1 infected, 2 recovered [B, size, size] after each task's own number of
    steps; neighbours are the eight around a cell.
    """
    state = torch.zeros(tasks, size, size, device=s.device)
    first = s.order(tasks, size * size)[:, :seeds]
    state.flatten(1).scatter_(1, first, 1.0)
    rate, heal = (s.uniform(*v, tasks, 1, 1) for v in (infection, recovery))
    last = s.integers(steps[0], steps[1], tasks, 1, 1)
    around = torch.ones(1, 1, 3, 3, device=s.device)
    around[..., 1, 1] = 0
    for step in range(steps[1]):
        ill = (state == 1).float()
        near = torch.nn.functional.conv2d(ill[:, None], around, padding=1)[:, 0]
        caught = (state == 0) & (s.rand(tasks, size, size) < 1 - (1 - rate) ** near)
        healed = (state == 1) & (s.rand(tasks, size, size) < heal)
        moved = torch.where(caught, 1.0, torch.where(healed, 2.0, state))
        state = torch.where(step < last, moved, state)
    return state


def sample_sir(generator, tasks, rows, shared=None, size=64, infection=(0.1, 0.4),
               recovery=(0.05, 0.3), steps=(10, 40), seeds=3):
    """Epidemics: the target is the state of a cell, 0, 1 or 2 (for heads of 3 classes)."""
    s = Source(generator)
    state = epidemic(s, tasks, size, infection, recovery, steps, seeds)
    return some_pixels(s, state.flatten(1)[..., None], coordinates(size, size), rows)


def png(path):
    """Pixels [height, width, channels] in 0 … 255 of an 8-bit PNG without interlacing; an alpha
    channel is left out.
    """
    with open(path, "rb") as f:
        data = f.read()
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError(f"{path} is not a PNG file")
    at, packed, palette = 8, b"", None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, color, _, _, interlaced = struct.unpack(">IIBBBBB", body)
        elif kind == b"PLTE":
            palette = torch.tensor(list(body), dtype=torch.uint8).reshape(-1, 3)
        elif kind == b"IDAT":
            packed += body
        at += length + 12
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    if depth != 8 or interlaced:
        raise ValueError(f"{path}: only PNG files of 8 bits without interlacing are read")
    pixels = unfilter(zlib.decompress(packed), height, width * channels, channels)
    out = torch.tensor(list(pixels), dtype=torch.uint8).reshape(height, width, channels)
    if color == 3:
        return palette[out[..., 0].long()]
    return out[..., : channels - 1] if color in (4, 6) else out


def unfilter(raw, height, stride, step):
    """Bytes of all lines, after the filters of PNG (RFC 2083, section 6)."""
    done, above = bytearray(), bytearray(stride)
    for y in range(height):
        kind, line = raw[y * (stride + 1)], bytearray(
            raw[y * (stride + 1) + 1 : (y + 1) * (stride + 1)])
        for i in range(stride):
            a = line[i - step] if i >= step else 0
            b, c = above[i], above[i - step] if i >= step else 0
            line[i] = (line[i] + predicted(kind, a, b, c)) & 255
        done += line
        above = line
    return done


def predicted(kind, a, b, c):
    """What a filter adds: nothing, left, above, their mean, or Paeth's choice."""
    if kind == 4:
        p = a + b - c
        return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
    return (0, a, b, (a + b) // 2)[kind]


@functools.lru_cache(maxsize=4)
def pictures(folder, size):
    """All PNG files of a folder as [count, channels, size, size] in [-0.5, 0.5]."""
    names = sorted(n for n in os.listdir(folder) if n.lower().endswith(".png"))
    if not names:
        raise ValueError(f"{folder} holds no PNG files")
    found = []
    for name in names:
        image = png(os.path.join(folder, name)).permute(2, 0, 1)[None].float() / 255 - 0.5
        found.append(torch.nn.functional.interpolate(image, (size, size), mode="area"))
    if len({image.shape[1] for image in found}) > 1:
        raise ValueError(f"{folder}: some PNG files are grey and some are not")
    return torch.cat(found)


def sample_images(generator, tasks, rows, shared=None, folder="", size=32):
    """Pixels of random pictures of a folder: one target for grey pictures, three for colour."""
    s = Source(generator)
    known = pictures(folder, size).to(s.device)
    chosen = known[s.integers(0, len(known) - 1, tasks)]
    return some_pixels(s, chosen.flatten(2).transpose(1, 2), coordinates(size, size), rows)

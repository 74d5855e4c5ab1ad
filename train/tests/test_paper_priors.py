"""The papers' priors: the feeder's published voltages, the simulator's limits, grids, PNG files."""

import os
import random
import struct
import tempfile
import unittest
import zlib

import torch

from pg_posterior_train.prior import PRIORS, feeder, fields, grids, multisensory
from pg_posterior_train.prior.source import Source


def draw(name, tasks, rows, seed=0, **options):
    generator = torch.Generator().manual_seed(seed)
    return PRIORS[name](generator, tasks, rows, shared=random.Random(seed), **options)


def write_png(path, pixels, kind):
    """An 8-bit RGB picture whose lines all use one filter."""
    height, width, channels = pixels.shape
    lines, above = b"", [0] * (width * channels)
    for y in range(height):
        line = pixels[y].flatten().tolist()
        out = []
        for i, value in enumerate(line):
            a, c = (line[i - channels], above[i - channels]) if i >= channels else (0, 0)
            out.append((value - grids.predicted(kind, a, above[i], c)) & 255)
        lines += bytes([kind] + out)
        above = line

    def chunk(name, body):
        crc = struct.pack(">I", zlib.crc32(name + body))
        return struct.pack(">I", len(body)) + name + body + crc

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header))
        f.write(chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


class PaperPriors(unittest.TestCase):
    def test_voltages_of_the_nominal_feeder(self):
        """Baran and Wu's feeder: lowest voltage 0.9131 at bus 18, losses 202.7 kW."""
        v = feeder.voltages(torch.ones(32), torch.ones(32))
        self.assertEqual(int(v.argmin()) + 2, 18)
        self.assertAlmostEqual(float(v.min()), 0.9131, places=4)
        self.assertAlmostEqual(float(v[31]), 0.9166, places=4)
        self.assertTrue(torch.equal(feeder.voltages(torch.zeros(32), torch.zeros(32)),
                                    torch.ones(32).double()))

    def test_feeder_targets(self):
        all_buses = draw("feeder", 2, 6, spread=[0.05, 0.5])
        one = draw("feeder", 2, 6, spread=[0.05, 0.5], bus=18)
        self.assertEqual(all_buses.y.shape, (2, 6, 32))
        self.assertTrue(torch.equal(all_buses.y[..., 16], one.y))

    def test_field_is_its_process(self):
        """Standardised residuals of the exact process have mean 0 and deviation 1."""
        options = {"lengthscale": 0.6, "variance": 0.01, "noise": 0.01, "shift": 1.0}
        tasks = draw("fields", 200, 40, features=2, **options)
        mean, sd = fields.exact(tasks, 20, **options)
        z = (tasks.y[:, 20:].double() - mean) / sd
        self.assertLess(abs(float(z.mean())), 0.05)
        self.assertLess(abs(float(z.std()) - 1), 0.03)

    def test_kernel_of_far_points(self):
        """The kernel's product of matrices is as exact as differences, also far from zero."""
        generator = torch.Generator().manual_seed(4)
        x = torch.rand(2, 30, 10, generator=generator).double() + 1000
        scale, height = torch.tensor([0.6, 0.2]).double(), torch.tensor([0.01, 2.0]).double()
        k = fields.kernel_matrix(x, scale, height)
        for b in range(2):
            square = (x[b, :, None] - x[b]).square().sum(-1)
            wanted = height[b] * torch.exp(-0.5 * square / scale[b] ** 2)
            self.assertLess(float((k[b] - wanted).abs().max()), 1e-12)
        self.assertLessEqual(float((k / height[:, None, None]).max()), 1.0)

    def test_multisensory(self):
        tasks = draw("multisensory", 300, 40)
        self.assertEqual(tasks.x.shape, (300, 40, 4))
        self.assertEqual(set(tasks.x[..., 3].unique().tolist()), {0.0, 1.0, 2.0})
        self.assertEqual(len((tasks.x[..., 1] * 15).round().unique()), 7)
        s = Source(torch.Generator().manual_seed(1))
        z = multisensory.truncated(s, torch.zeros(20000, 1), 1.0, 20000)
        self.assertLessEqual(float(z.abs().max()), 2.0)
        self.assertAlmostEqual(float(z.std()), 0.8796, delta=0.02)    # of the truncated normal

    def test_a_percept_with_one_source(self):
        """If the sources are surely the same, the percept is the product of three Gaussians."""
        one = torch.tensor([1.0], dtype=torch.float64)
        got = multisensory.percept(6 * one, 2 * one, one, 2 * one, 10 * one, one * (1 - 1e-15))
        self.assertAlmostEqual(float(got), (6 + 2 / 4) / (1 + 1 / 4 + 1 / 100), places=6)

    def test_epidemics(self):
        tasks = draw("sir", 8, 100, size=16)
        self.assertLessEqual(set(tasks.y.unique().tolist()), {0.0, 1.0, 2.0})
        s = Source(torch.Generator().manual_seed(2))
        still = grids.epidemic(s, 3, 12, (0.0, 0.0), (1.0, 1.0), (5, 5), 4)
        self.assertEqual((still == 2).flatten(1).sum(1).tolist(), [4, 4, 4])

    def test_pictures(self):
        pixels = torch.randint(0, 256, (5, 7, 3), generator=torch.Generator().manual_seed(3))
        with tempfile.TemporaryDirectory() as folder:
            for kind in range(5):
                path = os.path.join(folder, f"{kind}.png")
                write_png(path, pixels, kind)
                self.assertTrue(torch.equal(grids.png(path).long(), pixels), f"filter {kind}")
            tasks = draw("images", 2, 9, folder=folder, size=4)
            self.assertEqual(tasks.y.shape, (2, 9, 3))
            self.assertTrue(bool((tasks.y.abs() <= 0.5).all()))
            with open(os.path.join(folder, "bad.png"), "wb") as f:
                f.write(b"text")
            with self.assertRaisesRegex(ValueError, "not a PNG"):
                grids.png(os.path.join(folder, "bad.png"))


if __name__ == "__main__":
    unittest.main()

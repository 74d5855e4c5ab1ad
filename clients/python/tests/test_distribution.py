# SPDX-License-Identifier: PostgreSQL
"""Distributions by themselves, and where psycopg and a server (PGHOST) are, against the accessors
in SQL."""
import math
import os
import unittest

import pg_posterior
from pg_posterior import Bars, Categorical, Mixture, Normal, Quantiles

ALL = [Normal(3, 2), Mixture((0.3, 0.7), (-1, 4), (0.5, 2)), Bars((0.2, 0, 0.8), (-1, 0, 1, 3)),
       Bars((0.1, 0.6, 0.3), (-1, 0, 1, 3), True), Quantiles((-1, 0, 0.5, 2, 3), 0.7, 0.6)]
TEXTS = ["normal(3, 2)", "mixture(0.3*normal(-1, 0.5) + 0.7*normal(4, 2))"]


class Alone(unittest.TestCase):
    def test_quantile_inverts_cdf(self):
        for d in ALL:
            for p in (0.01, 0.3, 0.5, 0.77, 0.99):
                self.assertAlmostEqual(d.cdf(d.ppf(p)), p, 9)

    def test_pdf_is_slope_of_cdf(self):
        for d in ALL:
            for p in (0.05, 0.45, 0.9):
                y, h = d.ppf(p), 1e-6
                self.assertAlmostEqual((d.cdf(y + h) - d.cdf(y - h)) / (2 * h), d.pdf(y), 4)

    def test_moments(self):
        for d in ALL:
            grid = [d.ppf((i + 0.5) / 2000) for i in range(2000)]
            self.assertAlmostEqual(sum(grid) / len(grid), d.mean(), 1)
            self.assertAlmostEqual(sum((y - d.mean())**2 for y in grid) / len(grid) / d.var(), 1, 1)

    def test_as_in_scipy(self):
        for d in ALL:
            low, high = d.support()
            self.assertTrue(low <= d.ppf(0.001) < d.isf(0.001) <= high)
            self.assertAlmostEqual(d.cdf(d.isf(0.2)), 0.8, 9)
            self.assertAlmostEqual(math.exp(d.logcdf(d.median())), 0.5, 9)
            self.assertAlmostEqual(math.exp(d.logsf(d.median())), 0.5, 9)
            self.assertEqual((d.stats(), d.stats("v")), ((d.mean(), d.var()), d.var()))
            self.assertRaises(ValueError, d.stats, "k")
            self.assertAlmostEqual(d.expect(lambda y: y > d.median()), 0.5, 2)
        self.assertEqual(ALL[2].logcdf(-2), -math.inf)
        normal = 0.5 * math.log(2 * math.pi * math.e * 4)
        self.assertAlmostEqual(Normal(3, 2).entropy(), normal, 14)
        labels = Categorical(["a", "b"], [0.25, 0.75])
        self.assertEqual(labels.logpmf("a"), math.log(0.25))
        self.assertAlmostEqual(labels.rvs(2000, random_state=3).count("a") / 2000, 0.25, 1)
        self.assertIn(labels.rvs(), ("a", "b"))

    def test_entropy(self):
        for d in ALL:
            low, high = d.ppf(1e-9), d.isf(1e-9)
            step = (high - low) / 20000
            grid = [low + (i + 0.5) * step for i in range(20000)]
            found = -step * sum(d.pdf(y) * d.logpdf(y) for y in grid if d.pdf(y) > 0)
            self.assertAlmostEqual(d.entropy(), found, 1 if d.kind == "mixture" else 2)

    def test_far_tails(self):
        """Logarithms, and quantiles of tails, where densities and masses are 0."""
        standard = Normal(0, 1)
        self.assertAlmostEqual(standard.logpdf(40), -800.9189385332047, 11)
        self.assertAlmostEqual(standard.logcdf(-40), -804.6084420137539, 11)
        self.assertAlmostEqual(standard.isf(1e-20), 9.262340089798405, 12)
        for d in ALL:
            for y in (d.ppf(0.02), d.ppf(0.6), d.isf(0.01)):
                self.assertAlmostEqual(math.exp(d.logpdf(y)), d.pdf(y), 14)
                self.assertAlmostEqual(math.exp(d.logcdf(y)), d.cdf(y), 14)
                self.assertAlmostEqual(math.exp(d.logsf(y)), d.sf(y), 14)
            self.assertEqual((d.isf(0), d.isf(1)), d.support()[::-1])
            if math.isinf(d.support()[0]):
                for y in (d.mean() - 100 * d.std(), d.mean() + 100 * d.std()):
                    self.assertTrue(-1e6 < d.logpdf(y) < -50)

    def test_summary(self):
        for text in ("mean 3.200, sd 0.500, 90 % in [2.378, 4.022]", '"no" 0.750, "yes" 0.250'):
            with self.assertRaisesRegex(ValueError, "distribution_style = full"):
                pg_posterior.parse(text)

    def test_text(self):
        for text in TEXTS:
            self.assertEqual(repr(pg_posterior.parse(text)).replace(".0", ""), text)
        d = pg_posterior.parse('categorical("a \\"b\\"": 0.25, "c": 0.75)')
        self.assertEqual((d.pmf('a "b"'), d.mode()), (0.25, "c"))

    def test_columns(self):
        columns = pg_posterior.columns([Normal(0, 1), None], levels=(0.5,))
        self.assertEqual(columns, {"mean": [0.0, None], "stddev": [1.0, None], "q0.5": [0.0, None]})

    def test_hostile(self):
        for call in (lambda: Normal(0, 0), lambda: Bars(
            (1, ), (1, 0)), lambda: pg_posterior.parse("poisson(1)"),
                     lambda: pg_posterior.from_bytes(b"\x02\x01\0\0\0\1"), lambda: ALL[1].ppf(2)):
            self.assertRaises(ValueError, call)

    def test_draws(self):
        draws = Normal(5, 1).rvs(500, random_state=1)
        self.assertAlmostEqual(sum(draws) / 500, 5, 0)
        self.assertEqual(draws, Normal(5, 1).rvs(500, random_state=1))
        self.assertEqual(Categorical(["x"], [1.0]).entropy(), 0)


@unittest.skipUnless("PGHOST" in os.environ, "no server")
class WithServer(unittest.TestCase):
    def setUp(self):
        try:
            import psycopg
        except ImportError:
            self.skipTest("no psycopg")
        self.connection = psycopg.connect(autocommit=True)
        self.addCleanup(self.connection.close)
        self.connection.execute("CREATE EXTENSION IF NOT EXISTS pg_posterior")
        pg_posterior.register(self.connection)

    def test_against_accessors(self):
        texts = TEXTS + [
            "bars(-1 [0.2] 0 [0] 1 [0.8] 3)", "bars_half_normal(-1 [0.1] 0 [0.6] 1 [0.3] 3)"
        ]
        for text in texts:
            for binary in (False, True):
                d, mean, sd, low, density, far, entropy = self.connection.execute(
                    "SELECT d, posterior.mean(d), posterior.stddev(d), posterior.quantile(d, 0.1), "
                    "posterior.pdf(d, 0.5), posterior.log_pdf(d, 300), posterior.entropy(d)"
                    " FROM (SELECT %s::text::posterior.distribution AS d) d", (text,),
                    binary=binary).fetchone()
                self.assertAlmostEqual(d.mean(), mean, 9)
                self.assertAlmostEqual(d.std(), sd, 9)
                self.assertAlmostEqual(d.ppf(0.1), low, 6)
                self.assertAlmostEqual(d.pdf(0.5), density, 9)
                if math.isfinite(far):
                    self.assertAlmostEqual(d.logpdf(300) / far, 1, 12)
                self.assertAlmostEqual(d.entropy(), entropy, 1 if d.kind == "mixture" else 12)

    def test_json_and_labels(self):
        d, j = self.connection.execute(
            """SELECT d, d::jsonb FROM (SELECT
                'categorical("a": 0.25, "é": 0.75)'::posterior.distribution AS d) d""",
            binary=True).fetchone()
        self.assertEqual(d.probabilities, pg_posterior.from_json(j).probabilities)
        self.assertTrue(math.isclose(d.pmf("é"), 0.75))


if __name__ == "__main__":
    unittest.main()

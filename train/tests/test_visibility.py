"""Who sees whom: later rows never change earlier answers, prefix order does not matter, chains are
appends.
"""
import unittest

import torch

from pg_posterior_train.predict import chain, predict
from pg_posterior_train.tasks import Tasks, numeric

from .common import random_model, tasks

PRIOR_OF = {"gp1d": "gp1d", "tabular_small": "tabular", "tabular": "tabular"}


def select(data, rows):
    return Tasks(data.x[:, rows], data.y[:, rows], data.categorical)


class Visibility(unittest.TestCase):
    def each(self):
        for name, prior in PRIOR_OF.items():
            with self.subTest(model=name):
                yield random_model(name), tasks(prior, 4, 20)

    def test_later_rows_do_not_change_earlier_answers(self):
        for model, data in self.each():
            before = chain(model, data, 12).mixture
            changed = Tasks(data.x.clone(), data.y.clone(), data.categorical)
            changed.y[:, 16:] += 3
            changed.x[:, 17:] = 1
            after = chain(model, changed, 12).mixture
            # Chain row 16 is the first with another target; it first matters for the answer at row
            # 17.
            self.assertTrue(torch.equal(before.mean[:, :5], after.mean[:, :5]))
            self.assertFalse(torch.allclose(before.mean[:, 5:], after.mean[:, 5:]))

    def test_prefix_rows_are_a_set(self):
        for model, data in self.each():
            order = torch.cat([torch.randperm(15), torch.arange(15, 20)])
            a, b = predict(model, data, 15), predict(model, select(data, order), 15)
            self.assertTrue(torch.allclose(a.log_prob(data.y[:, 15:]), b.log_prob(data.y[:, 15:]),
                                           atol=1e-9))

    def test_queries_do_not_see_each_other(self):
        for model, data in self.each():
            together = predict(model, data, 15).log_prob(data.y[:, 15:])
            for i in range(5):
                alone = select(data, torch.tensor(list(range(15)) + [15 + i]))
                self.assertTrue(
                    torch.allclose(predict(model, alone, 15).log_prob(alone.y[:, 15:])[:, 0],
                                   together[:, i]))

    def test_one_pass_chain_equals_appends(self):
        for model, data in self.each():
            fast = chain(model, data, 10).log_prob(data.y[:, 10:])
            for j in range(10):
                part = select(data, torch.arange(11 + j))
                slow = predict(model, part, 10 + j, prefix=10).log_prob(part.y[:, 10 + j:])
                self.assertTrue(torch.allclose(slow[:, 0], fast[:, j], atol=1e-9))

    def test_column_order_does_not_matter(self):
        model = random_model("tabular_small")
        data = numeric(torch.randn(4, 20, 7, dtype=torch.float64),
                       torch.randn(4, 20, dtype=torch.float64))
        columns = torch.randperm(data.x.shape[2])
        moved = Tasks(data.x[:, :, columns], data.y, data.categorical[:, columns])
        a, b = (predict(model, d, 15).log_prob(data.y[:, 15:]) for d in (data, moved))
        self.assertTrue(torch.allclose(a, b, atol=1e-8))


if __name__ == "__main__":
    unittest.main()

"""What a gate reads of the rows behind the prefix, as the engine has it."""

import os
import sys
import tempfile
import unittest

import numpy as np
import torch

from pg_posterior_train.export import load_model
from pg_posterior_train.heads import Gate
from pg_posterior_train.predict import chain, predict
from pg_posterior_train.tasks import numeric

from .models import REFERENCE, TOOL

sys.path.insert(0, REFERENCE)
try:
    from checking import Tool, cells, table
    from make_models import make_random
    from safetensors_io import write_model
finally:
    sys.path.remove(REFERENCE)


class Behind(unittest.TestCase):
    def test_what_is_read(self):
        head = {"kind": "mixture", "components": 3, "std": "softplus", "process": 4,
                "process_behind": True}
        gate = Gate(head, "gelu")
        self.assertEqual(gate.read, Gate.NUMBERS + 1)
        outputs, said, asked = torch.zeros(2, 4, 9), torch.zeros(2, 4, 4), torch.zeros(2, 4, 8)
        read = gate.numbers(outputs, said, asked, torch.tensor([0, 1, 512, 9999]))
        wanted = torch.tensor([0, 1, 512, 512]).log1p() / 8
        self.assertTrue(torch.equal(read[..., -1], wanted.expand(2, 4)))
        self.assertTrue((gate.numbers(outputs, said, asked)[..., -1] == 0).all())

    @unittest.skipUnless(os.path.exists(TOOL), "no tool")
    def test_the_engine_answers_alike(self):
        """Of a prefix, of one with rows behind it, and in chains: of one whose process learns
        there, the rows of the chain are not behind."""
        for name, prefix, n in (("rows_behind", 40, 40), ("rows_behind", 40, 60),
                                ("rows_behind_buffer", 40, 40)):
            config, tensors, dtype = make_random(name, 0)
            random = np.random.default_rng(n)
            x = random.standard_normal((n + 6, 3))
            y = x[:, 0] + np.sin(2 * x[:, 1]) + 0.1 * random.standard_normal(n + 6)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "model.safetensors")
                write_model(path, config, tensors, dtype)
                with Tool(TOOL, path) as tool:
                    said = tool.ask(context=table(x[:n], y[:n]), queries=cells(x[n:]),
                                    score={**table(x[n:], y[n:]), "orders": 0}, prefix=prefix,
                                    kernels="reference")
                model = load_model(path).double()
            tasks = numeric(torch.from_numpy(x)[None], torch.from_numpy(y)[None])
            answer = predict(model, tasks, n, prefix)
            mean, sd = (part[0].numpy() for part in answer.moments())
            np.testing.assert_allclose(mean, said["mean"], atol=1e-3)
            np.testing.assert_allclose(sd, said["sd"], atol=1e-3)
            if prefix == n:
                joint = chain(model, tasks, n).log_prob(tasks.y[:, n:])[0].numpy()
                np.testing.assert_allclose(joint, said["per_row"], atol=1e-2)
            else:
                model.head.gate.behind = False
                weight = model.head.gate[0].weight
                model.head.gate[0].weight = torch.nn.Parameter(weight[:, :-1])
                plain = predict(model, tasks, n, prefix).moments()[0][0].numpy()
                self.assertGreater(np.abs(plain - mean).max(), 1e-3)


if __name__ == "__main__":
    unittest.main()

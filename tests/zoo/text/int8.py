"""How near int8 would come: cosines to float32's vectors of 300 sentences of news.

python -m tests.zoo.text.int8

Rounds as int8 products would, and multiplies in float32.
"""

import numpy as np
import tensorflow as tf
from colcast.zoo.text import bert, encoder, weights

from .peer_environment import real_sentences

COUNT, BATCH = 300, 30


class Int8Bert(bert.Bert):
    """Kernels come rounded; `inputs` says whether what they multiply is rounded too."""

    inputs = False

    def _dense(self, rows, name):
        return super()._dense(_rounded_inputs(rows) if self.inputs else rows, name)


def rounded_kernels(values, per_column):
    """The layers' kernels on a grid of 8 bits, with one scale per column or per kernel."""

    def rounded(kernel):
        scale = np.abs(kernel).max(axis=0 if per_column else None, keepdims=True) / 127
        return np.round(kernel / scale) * scale

    return {
        name: rounded(value) if bert.is_product(name) else value for name, value in values.items()
    }


def _rounded_inputs(rows):
    """On a grid of 256 steps from the least to the greatest of the batch."""
    least, greatest = tf.reduce_min(rows), tf.reduce_max(rows)
    step = (greatest - least) / 255
    return least + tf.round((rows - least) / step) * step


def main() -> None:
    model, texts = weights.load(encoder.WORK_DIR), real_sentences(COUNT)

    def vectors(module):
        return np.concatenate(
            [module.vectors(texts[n : n + BATCH]) for n in range(0, COUNT, BATCH)]
        )

    exact = vectors(encoder.Encoder(model))
    for per_column in (True, False):
        for inputs in (False, True):
            module = encoder.Encoder(model)
            module._bert = Int8Bert(model, rounded_kernels(bert.values(model), per_column))
            module._bert.inputs = inputs
            cosines = (vectors(module) * exact).sum(axis=1)
            print(
                f"one scale per {'column' if per_column else 'kernel'}, "
                f"inputs {'int8' if inputs else 'float32'}: cosine {cosines.min():.4f} at least, "
                f"{cosines.mean():.4f} in the mean"
            )


if __name__ == "__main__":
    main()

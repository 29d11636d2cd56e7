"""BERT's network on packed tokens: word-piece numbers [T] to vectors [T, width]."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.zoo.text.packed import Segments, attention
from colcast.zoo.text.weights import MiniLM

Values = Mapping[str, Any]  # name -> array, variable or tensor

# oneDNN has one layout of a float32 kernel for products with few rows (AVX-512: 6 to 80), and
# another for more rows. TensorFlow caches only the layout that was used first, and computes the
# other one in every run, which takes milliseconds. So served graphs have the layers twice, once for
# each layout.
_FEW_ROWS = 80


def values(model: MiniLM) -> dict[str, Any]:
    """The published weights as used in products: kernels [inputs, outputs].

    Queries, keys and values are one product; queries are already divided by the square root of a
    head's width.
    """
    tables = ("word_embeddings", "position_embeddings", "token_type_embeddings")
    found: dict[str, Any] = {name: model.tensors[f"embeddings.{name}.weight"] for name in tables}

    def copy(name: str, source: str) -> None:
        found[name + "/kernel"] = np.ascontiguousarray(model.tensors[source + ".weight"].T)
        found[name + "/bias"] = model.tensors[source + ".bias"]

    copy("norm", "embeddings.LayerNorm")
    for number in range(model.layers):
        ours, theirs = f"{number}/", f"encoder.layer.{number}."
        for kind in ("weight", "bias"):
            query, key, value = (
                model.tensors[f"{theirs}attention.self.{part}.{kind}"].T
                for part in ("query", "key", "value")
            )
            scale = np.float32((model.width // model.heads) ** -0.5)
            name = ours + "attention/" + ("kernel" if kind == "weight" else "bias")
            found[name] = np.concatenate([query * scale, key, value], axis=-1)
        copy(ours + "attended", theirs + "attention.output.dense")
        copy(ours + "attended/norm", theirs + "attention.output.LayerNorm")
        copy(ours + "inner", theirs + "intermediate.dense")
        copy(ours + "outer", theirs + "output.dense")
        copy(ours + "outer/norm", theirs + "output.LayerNorm")
    return found


def in_bfloat16(values: Values) -> dict[str, Any]:
    """The same values with the layers' kernels in bfloat16; all others stay float32."""
    products = [name[: -len("kernel")] for name in values if is_product(name)]
    rounded = {
        name: np.asarray(values[name]).astype(tf.bfloat16.as_numpy_dtype)
        for product in products
        for name in (product + "kernel", product + "bias")
    }
    return {**values, **rounded}


def is_product(name: str) -> bool:
    """Whether this is the name of a layer's kernel."""
    return name[0].isdigit() and name.endswith("/kernel") and "norm" not in name


class Bert:
    """The network.

    Attributes:
      model: its sizes.
      values: its weights: `values(model)`, maybe trained further. A product is computed in its
        kernel's dtype.
    """

    def __init__(self, model: MiniLM, weights: Values | None = None) -> None:
        self.model = model
        self.values = values(model) if weights is None else weights
        self._layers_twice = all(
            isinstance(value, np.ndarray) and value.dtype == np.float32
            for value in self.values.values()
        )

    def __call__(self, tokens: Any, where: Segments, kinds: Any = None) -> Any:
        """The vectors of the tokens.

        Args:
          tokens: int32 [T].
          where: the tokens' positions by text.
          kinds: int32 [T], 0 for the first and 1 for the second text of a pair; None for all 0.

        Returns:
          float32 [T, width].
        """
        positions, of_kind = (
            self.values[name] for name in ("position_embeddings", "token_type_embeddings")
        )
        rows = tf.gather(self.values["word_embeddings"], tokens)
        if kinds is None:
            rows += tf.gather(positions + of_kind[0], where.positions)
        else:
            rows += tf.gather(positions, where.positions) + tf.gather(of_kind, kinds)
        rows = self._normalized(rows, "norm")
        if not self._layers_twice:
            return self._layers(rows, where)
        return tf.cond(
            tf.shape(rows)[0] <= _FEW_ROWS,
            lambda: self._layers(rows, where),
            lambda: self._layers(rows, where),
        )

    def _layers(self, rows: Any, where: Segments) -> Any:
        for number in range(self.model.layers):
            rows = self._layer(rows, where, f"{number}/")
        return rows

    def _layer(self, rows: Any, where: Segments, name: str) -> Any:
        mixed = attention(self._dense(rows, name + "attention"), where, self.model.heads)
        rows = self._added(rows, mixed, name + "attended")
        return self._added(rows, tf.nn.gelu(self._dense(rows, name + "inner")), name + "outer")

    def _added(self, rows: Any, inner: Any, name: str) -> Any:
        outer = tf.cast(self._dense(inner, name), rows.dtype)
        return self._normalized(rows + outer, name + "/norm")

    def _dense(self, rows: Any, name: str) -> Any:
        kernel, bias = self.values[name + "/kernel"], self.values[name + "/bias"]
        return tf.nn.bias_add(tf.matmul(tf.cast(rows, kernel.dtype), kernel), bias)

    def _normalized(self, rows: Any, name: str) -> Any:
        mean = tf.reduce_mean(rows, axis=1, keepdims=True)
        variance = tf.reduce_mean(tf.math.squared_difference(rows, mean), axis=1, keepdims=True)
        scaled = (rows - mean) * tf.math.rsqrt(variance + self.model.epsilon)
        return scaled * self.values[name + "/kernel"] + self.values[name + "/bias"]

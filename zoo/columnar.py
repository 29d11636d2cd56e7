"""Exports the zoo's models once."""

import hashlib
from pathlib import Path
from typing import Any

import colcast.export
from colcast.export import export_saved_model
from colcast.zoo.cache import VERSION, cached

USER_FEATURES = "user_*"  # in every model of the zoo


def columnar(base_path: Path, *, late: bool) -> Path:
    """The base path of the model's exported form: BASE_PATH_columnar.

    It is exported again if the model or the exporter has changed.

    Args:
      base_path: the model that parses tf.Examples.
      late: whether to also add the late signature.

    Raises:
      colcast.export.ExportError: the exporter refuses the model.
    """
    exported = base_path.with_name(base_path.name + "_columnar")

    def make(folder: Path) -> dict[str, Any]:
        export_saved_model(base_path / VERSION, folder, user_features=[USER_FEATURES], late=late)
        return {}

    cached(exported, (), make, settings=f"{_digest(base_path)} late={late}")
    return exported


def _digest(base_path: Path) -> str:
    exporter = Path(colcast.export.__file__ or "").parent
    digest = hashlib.sha256((base_path / VERSION / "saved_model.pb").read_bytes())
    for source in sorted(exporter.rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()

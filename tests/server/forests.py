"""Trains forests with TF-DF; runs in .venv-estimator, TensorFlow 2.15: `forests.py OUTPUT`.

OUTPUT/NAME/1 is a SavedModel; OUTPUT/NAME/rows.npz has the features of some rows and, under
`expected`, TF-DF's answers.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import tensorflow as tf
import tensorflow_decision_forests as tfdf

TASKS = tfdf.keras.Task
COUNTRIES = ["de", "fr", "us", "", "rare"]  # "" is a missing value


def draw(random: np.random.Generator, count: int) -> pd.DataFrame:
    """Random features of rows; some are missing."""
    price = random.lognormal(size=count).astype(np.float32)
    price[random.random(count) < 0.2] = np.nan
    return pd.DataFrame(
        {
            "age": random.integers(18, 80, count).astype(np.float32),
            "country": random.choice(COUNTRIES, count, p=[0.4, 0.3, 0.15, 0.149, 0.001]),
            "price": price,
            "section": random.integers(1, 6, count),
        }
    )


def labels(random: np.random.Generator, rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """The labels to learn: one of two classes, one of three, a number."""
    cheap = rows["price"].fillna(3) < 1.5
    chance = 0.1 + 0.4 * cheap + 0.3 * (rows["age"] > 50) * (rows["country"] != "us")
    return {
        "clicked": (random.random(len(rows)) < chance).astype(int).to_numpy(),
        "genre": (rows["section"] + cheap).to_numpy() % 3,
        "spent": (rows["price"].fillna(2) * rows["age"] / 10).to_numpy(np.float32),
    }


def main(output: Path) -> None:
    """One forest per label."""
    random = np.random.default_rng(7)
    rows, asked = draw(random, 3000), draw(random, 200)
    asked.loc[::9, "country"] = "unheard of"
    for name, label in labels(random, rows).items():
        task = TASKS.REGRESSION if name == "spent" else TASKS.CLASSIFICATION
        kind = "RandomForestModel" if name == "spent" else "GradientBoostedTreesModel"
        model = getattr(tfdf.keras, kind)(task=task, num_trees=30, verbose=0)
        data = rows.assign(**{name: label})
        model.fit(tfdf.keras.pd_dataframe_to_tf_dataset(data, label=name, task=task))
        model.save(output / name / "1")
        columns = {column: tf.constant(asked[column].to_numpy()) for column in asked}
        columns["country"] = tf.constant(asked["country"].tolist())
        np.savez(
            output / name / "rows.npz",
            expected=model(columns).numpy(),
            **{column: tensor.numpy() for column, tensor in columns.items() if column != "country"},
            country=asked["country"].to_numpy().astype("S"),
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))

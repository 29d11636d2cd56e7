"""Reference models: trained on real data, or with the sizes that papers published.

movielens/   a ranking model on MovieLens-100K
wide         a model with hundreds of scalar features
papers/      the eight models papers about recommendation inference are judged on
text/        sentence vectors, with MiniLM's published weights
registry     all of them by name, with the requests they are sent
examples     rows as tf.Examples      saving, cache  SavedModels, and wheels with data, made once
columnar     them exported
"""

import os

# Must run before anything imports TensorFlow. Its GPU builds log an error (cuInit) on a machine
# without a GPU.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

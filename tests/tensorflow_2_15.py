"""Scripts that need TensorFlow 2.15, Estimators or TF-DF: they run in .venv-estimator."""

from functools import partial

from . import other_environment

ENVIRONMENT = other_environment.ROOT / ".venv-estimator"
package = partial(other_environment.package, ENVIRONMENT)
run = partial(other_environment.run, ENVIRONMENT)

"""The eight models that papers on recommendation inference use for evaluation, at any scale.

Sizes follow DeepRecSys (ISCA 2020, github.com/harvard-acc/DeepRecSys). Only tables are shrunk, all
by the same factor; weights are random but fixed; ids and values are generated.

model.py     a model from a paper: features, network, shared layers
networks.py  the eight models' networks
saved.py     SavedModels of them, made once
"""

from colcast.zoo.papers.model import PaperModel
from colcast.zoo.papers.networks import PAPERS
from colcast.zoo.papers.saved import SCALE, ensure

__all__ = ["PAPERS", "SCALE", "PaperModel", "ensure"]

"""The eight models with which papers on recommendation inference are evaluated, at any scale.

Sizes follow DeepRecSys (ISCA 2020, github.com/harvard-acc/DeepRecSys). Tables
are shrunk by one factor, nothing else; weights are random but fixed; ids and values are generated.

model.py  what a paper model is: features, network              ncf.py, wide_deep.py, dlrm.py,
saved.py  SavedModels of them, made once                        din.py, dien.py: the networks
"""

from colcast.zoo.papers.dien import DIEN
from colcast.zoo.papers.din import DIN
from colcast.zoo.papers.dlrm import RMC1, RMC2, RMC3
from colcast.zoo.papers.model import PaperModel
from colcast.zoo.papers.ncf import NCF
from colcast.zoo.papers.saved import SCALE, ensure
from colcast.zoo.papers.wide_deep import MULTI_TASK_WIDE_DEEP, WIDE_DEEP

PAPERS = {
    model.name: model
    for model in (NCF, WIDE_DEEP, MULTI_TASK_WIDE_DEEP, RMC1, RMC2, RMC3, DIN, DIEN)
}

__all__ = ["PAPERS", "SCALE", "PaperModel", "ensure"]

"""What the text models are asked: real words, in log-normal numbers."""

from pathlib import Path

import numpy as np
from colcast.client import encode_predict_request
from colcast.loadtest.send.connection import Request

_QUERY_WORDS = 12


def base_path(model: str) -> Path:
    """Where a text model is; it is written there unless it is there already."""
    from colcast.zoo.text import encoder, late_interaction

    if model == "late_interaction":
        return late_interaction.ensure()
    return encoder.ensure(precision=model.partition("_")[2] or "float32")


def mixed_lengths(count: int) -> list[str]:
    """Texts of 5 to 60 words, the median 15, out of Reuters-21578."""
    from colcast.zoo.text import encoder, reuters

    random = np.random.default_rng(7)
    words = " ".join(reuters.sentences(reuters.load(encoder.WORK_DIR))).split()
    sizes = np.clip(np.round(random.lognormal(np.log(15), 0.7, count)), 5, 60).astype(int)
    starts = random.integers(0, len(words) - 60, count)
    return [" ".join(words[at : at + size]) for at, size in zip(starts, sizes, strict=True)]


def text_requests(model: str, send: str, size: int, count: int) -> list[Request]:
    """So many requests of `size` texts, or of a query and `size` titles."""
    texts = [text.encode() for text in mixed_lengths(count * (size + 1))]
    found = []
    for number in range(count):
        query, *titles = texts[number * (size + 1) : (number + 1) * (size + 1)]
        if send == "encode":
            signature, inputs = "encode", {"texts": titles}
        else:
            once = send == "query once"
            short = [b" ".join(text.split()[:_QUERY_WORDS]) for text in (query, *titles)]
            inputs = {"query": short[:1] * (1 if once else size), "title": short[1:]}
            signature = "columnar_late" if once else "columnar"
        columns = {name: np.array(values, object) for name, values in inputs.items()}
        found.append(Request(encode_predict_request(model, signature, columns), size))
    return found

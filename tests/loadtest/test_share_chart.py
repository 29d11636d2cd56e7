"""The chart for documents: bars as high as the shares they stand for."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from colcast.loadtest.share_chart import share_chart

from .measured import LINES

SVG = "{http://www.w3.org/2000/svg}"


def bars(svg: str) -> dict[str, float]:
    """Title -> height of every bar."""
    found = {}
    for rect in ElementTree.fromstring(svg).iter(f"{SVG}rect"):
        title = rect.find(f"{SVG}title")
        if title is not None:
            found[title.text] = float(rect.attrib["height"])
    return found


def test_a_quarter_of_the_cpu_is_a_quarter_of_the_height():
    heights = bars(share_chart({"wide": LINES}))
    assert heights["user late: 2.00 ms"] == pytest.approx(
        heights["tf.Example: 8.00 ms"] / 4, abs=0.1
    )


def test_every_model_and_size_is_named():
    svg = share_chart({"wide": LINES, "a<b": [replace(line, candidates=20) for line in LINES]})
    texts = {text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")}
    assert {"wide", "a<b", "N = 500", "N = 20", "tf.Example", "user late"} <= texts


def test_nothing_is_loaded():
    svg = share_chart({"wide": LINES})
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")

"""Several users sent to `columnar_pair` itself: one run, as the original's of all their rows."""

from typing import Any

import grpc
import numpy as np
from colcast.client import decode_predict_response, encode_predict_request
from colcast.server import ServerProcess

from .cases import Asked
from .conftest import Models
from .exported import Columns, Exported, Outputs
from .hammer import METHOD, TOLERANCE, difference

ROW_TO_USER = [0, 2, 1, 1, 2, 0, 2]


def test_users_sent_to_the_pair_stage_are_scored_as_in_one_run_of_the_original(
    group: Models, server: ServerProcess
) -> None:
    """Whatever `users_per_run` is: that says what the server gains, not what it may be sent."""
    with grpc.insecure_channel(server.target) as channel:
        predict = channel.unary_unary(METHOD)
        for name, exported in group.items():
            if name == "nan_in_item_price":  # its stages refuse such rows
                continue
            if "columnar_pair" in exported.record["independence"]:
                asked = _draw(exported)
                given = _by_stages(predict, exported, asked)
                expected = exported.original().score(asked.rows)
                assert difference(expected, given) <= TOLERANCE, name


def _draw(exported: Exported) -> Asked:
    random = np.random.default_rng(5)
    rows = [exported.model.draw(random) for _ in ROW_TO_USER]
    names = exported.user_features()
    users = [{n: v for n, v in row.items() if n in names} for row in rows[:3]]
    items = [{n: v for n, v in row.items() if n not in names} for row in rows]
    return Asked(users, items, ROW_TO_USER, range(len(items)))


def _by_stages(predict: Any, exported: Exported, asked: Asked) -> Outputs:
    def run(signature: str, inputs: Columns) -> Outputs:
        message = encode_predict_request(exported.model.name, signature, inputs)
        return decode_predict_response(predict(message, timeout=60)).outputs

    names = exported.user_features()
    of_items = exported.columns(asked.items, set(exported.record["features"]) - names)
    states = run("columnar_user", exported.columns(asked.users, names))
    states |= run("columnar_item", of_items)
    numbers = {"row_to_user": np.array(asked.row_to_user), "user_state/row": np.arange(3)}
    return run("columnar_pair", states | numbers)

"""scripts/check_layers.sh finds every kind of forbidden include or import."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_layers.sh"
WRONG = """\
server/wire/reader.cc:#include "server/scheduling/worker_pool.h"
server/wire/reader.cc:#include <grpc/grpc.h>
server/base/log.cc:#include "server/wire/bytes.h"
server/states/store.h:#include "server/engine/engine.h"
server/scheduling/worker_pool.cc:#include "server/metrics/metrics.h"
server/engine/model.cc:#include "server/models/loader.h"
server/inference/classify.cc:#include "server/engine/model.h"
server/models/loader.cc:#include "server/scheduling/worker_pool.h"
server/http1/router.cc:#include "server/rpc/messages.h"
server/rpc/unary_call.cc:#include "tensorflow/core/framework/tensor.h"
serving_patches/expansion_rule.h:#include "server/wire/bytes.h"
tf_patches/repeat_row.cc:#include "serving_patches/expansion_rule.h"
client/_flow.py:    import tensorflow as tf
client/_flow.py:from colcast.export import export_saved_model
export/_plan.py:from colcast.zoo.wide import WIDE
export/_plan.py:from tests.models import ranker
export/graph/_ops.py:from colcast.export.rows._facts import Fact
export/rows/_op.py:from colcast.export.trials._rows import Rows
export/cut/_pair.py:    from colcast.export import _loaded_model
zoo/registry.py:import colcast.loadtest.measure.run
loadtest/run.py:from colcast.client._wire import encode
loadtest/run.py:from colcast.client import _wire
loadtest/send/traffic.py:from colcast.loadtest.measure.run import Options
loadtest/compare/sides.py:from colcast.loadtest.tune import climb
fork/hooks.py:from colcast.client import Client
"""
RIGHT = """\
server/http1/router.cc:#include "server/base/log.h"
server/models/loader.cc:#include "server/engine/engine.h"
server/engine/input.cc:#include "tf_patches/repeat_row.h"
server/flags/flags.cc:#include "server/rpc/grpc_server.h"
server/models/config.cc:#include "tensorflow/core/protobuf/config.pb.h"
loadtest/run.py:from colcast.client.wire import encode
loadtest/report/page.py:from colcast.loadtest.measure.search import Ended
export/cut/_pair.py:from colcast.export.graph._ops import EXACT
client/_flow.py:from colcast.client._wire import encode
export/cli.py:from colcast.cli.console import report_console
"""


def test_wrong_arrows_are_shown_and_right_ones_are_not(tmp_path: Path):
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / "server" / "a_new_folder").mkdir(parents=True)
    for case in (WRONG + RIGHT).splitlines():
        file, line = case.split(":", 1)
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        with (tmp_path / file).open("a") as opened:
            opened.write(line + "\n")
    command = ["bash", tmp_path / "scripts" / "check_layers.sh"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    shown = {":".join(found.split(":", 2)[::2]) for found in done.stdout.splitlines()}
    assert shown == set(WRONG.splitlines())
    assert "layers: server/a_new_folder: " in done.stderr

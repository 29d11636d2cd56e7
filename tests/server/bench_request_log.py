"""Server CPU per request with a log of none, of a hundredth and of all requests.

    python -m tests.server.bench_request_log

Columns of `wide`, user once; each share has a server of its own, in turn.
"""

import tempfile
from pathlib import Path

from colcast.loadtest.formats import FORMATS_ALONE
from colcast.loadtest.server_variants import Effort, ServerVariant, compare_servers
from colcast.loadtest.zoo_models import exported, zoo_rows

SIZES = (20, 100, 500)
CONFIG = """
model_config_list {{ config {{
  name: "wide" base_path: "{path}" model_platform: "tensorflow"
  logging_config {{
    log_collector_config {{ filename_prefix: "{folder}/{rate}" }}
    sampling_config {{ sampling_rate: {rate} }}
  }}
}} }}
"""


def main() -> None:
    """Measures and prints."""
    path = exported("wide").resolve()
    with tempfile.TemporaryDirectory() as folder:
        variants = []
        for rate, title in ((0, "nothing logged"), (0.01, "1 % logged"), (1, "all logged")):
            file = Path(folder) / f"{rate}.config"
            file.write_text(CONFIG.format(path=path, folder=folder, rate=rate))
            flags = (f"--model_config_file={file}", *FORMATS_ALONE)
            variants.append(ServerVariant(title, "late", flags))
        compare_servers("wide", path, variants, zoo_rows("wide"), SIZES, Effort())


if __name__ == "__main__":
    main()

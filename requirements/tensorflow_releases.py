"""TensorFlow releases that the server's wheel has engines for (docs/versions.md, TensorFlow)."""

RELEASES = ("2.20.0", "2.21.0")


def dynamic_metadata(field: str, settings: dict[str, str]) -> dict[str, list[str]]:
    """The extras of colcast-server, for scikit-build-core."""
    return {
        extra: [f"{name}>={RELEASES[0]},<={RELEASES[-1]}"]
        for extra, name in (("cpu", "tensorflow-cpu"), ("tensorflow", "tensorflow"))
    }


if __name__ == "__main__":
    print(*RELEASES)

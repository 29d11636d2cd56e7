"""TensorFlow releases that the server's wheel has engines for (docs/versions.md)."""

RELEASES = ("2.20.0", "2.21.0")


def dynamic_metadata(field: str, settings: dict[str, str]) -> dict[str, list[str]]:
    """The extras of colcast-server, for scikit-build-core."""
    releases, arm64 = f">={RELEASES[0]},<={RELEASES[-1]}", "platform_machine == 'aarch64'"
    whole = f"tensorflow{releases}"
    return {
        # There is no tensorflow-cpu for ARM64.
        "cpu": [f"tensorflow-cpu{releases}; {arm64.replace('==', '!=')}", f"{whole}; {arm64}"],
        "tensorflow": [whole],
    }


if __name__ == "__main__":
    print(*RELEASES)

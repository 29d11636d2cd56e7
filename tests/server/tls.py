"""A throw-away authority, certificates that it signs, and --ssl_config_file."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format

EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


@dataclass
class Identity:
    """A private key file and the file of its certificate chain."""

    key: Path
    chain: Path

    @property
    def pem(self) -> tuple[bytes, bytes]:
        return self.key.read_bytes(), self.chain.read_bytes()


# Since Python 3.13, authorities need these extensions (RFC 5280).
SIGNS = "keyUsage=critical,keyCertSign,cRLSign"
CA = f"basicConstraints=critical,CA:TRUE\n{SIGNS}"
KEY_IDENTIFIERS = "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid"
RECORDS = """[ca]
default_ca = ours
[ours]
database = {0}/index
new_certs_dir = {0}
rand_serial = yes
unique_subject = no
default_md = sha256
default_days = 10
policy = any
[any]
commonName = supplied
"""


class Authority:
    """A root that signs through an intermediate authority, as real ones do."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory / name
        self._directory.mkdir()
        (self._directory / "index").touch()
        (self._directory / "records").write_text(RECORDS.format(self._directory))
        self.root = self._directory / "root.pem"
        root_key = self._directory / "root.key"
        subject = f"/CN={name}"
        made = ("-keyout", root_key, "-out", self.root)
        openssl("req", "-x509", *EC, "-subj", subject, "-addext", SIGNS, *made)
        self._between = self._sign("between", Identity(root_key, self.root), CA, "DNS:none")

    def issue(
        self, name: str, names: str = "IP:127.0.0.1,DNS:localhost", year: int | None = None
    ) -> Identity:
        """Issues a key and a certificate for this machine; its chain has the intermediate's.

        The certificate is valid for ten days or, if given, in `year`.
        """
        role = "basicConstraints=critical,CA:FALSE"
        identity = self._sign(name, self._between, role, names, year)
        identity.chain.write_text(identity.chain.read_text() + self._between.chain.read_text())
        return identity

    def _sign(
        self, name: str, signer: Identity, role: str, names: str, year: int | None = None
    ) -> Identity:
        made = Identity(self._directory / f"{name}.key", self._directory / f"{name}.pem")
        asked, extensions = self._directory / f"{name}.csr", self._directory / f"{name}.ext"
        extensions.write_text(f"{role}\n{KEY_IDENTIFIERS}\nsubjectAltName={names}\n")
        openssl("req", *EC, "-subj", f"/CN={name}", "-keyout", made.key, "-out", asked)
        signing = ("-cert", signer.chain, "-keyfile", signer.key, "-extfile", extensions)
        settings = ["-batch", "-notext", "-config", self._directory / "records"]
        if year is not None:
            settings += ["-startdate", f"{year}0101000000Z", "-enddate", f"{year}1231235959Z"]
        openssl("ca", *settings, *signing, "-in", asked, "-out", made.chain)
        return made


def replace(path: Path, text: str) -> None:
    """Writes a file that a server may read at any moment."""
    beside = path.with_suffix(".beside")
    beside.write_text(text)
    beside.rename(path)


def write_config(path: Path, **fields: str | bool) -> str:
    """Writes an SSLConfig of these fields; returns its --ssl_config_file flag."""
    lines = [
        f"{name}: {str(value).lower()}"
        if isinstance(value, bool)
        else f'{name}: "{text_format.text_encoding.CEscape(value, as_utf8=True)}"'
        for name, value in fields.items()
    ]
    replace(path, "\n".join(lines) + "\n")
    return f"--ssl_config_file={path}"


def config_flag(path: Path, identity: Identity, **fields: str | bool) -> str:
    pair = {"server_key": identity.key.read_text(), "server_cert": identity.chain.read_text()}
    return write_config(path, **(pair | fields))

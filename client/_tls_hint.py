"""Whether a server that does not answer plain text would answer TLS."""

import socket
import ssl

_SECONDS = 0.5
HINT = "the port speaks TLS: give channel=ChannelOptions(tls=Tls(...)), or --tls on a command line"


def speaks_tls(address: str) -> bool:
    """Offers TLS to HOST:PORT, the first of several; takes half a second at most for each step."""
    host, _, port = address.partition(",")[0].strip().rpartition(":")
    if not host or not port.isdigit():
        return False  # a socket's path or another scheme of gRPC's
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is sent
    context.set_alpn_protocols(["h2"])
    try:
        with (
            socket.create_connection((host.strip("[]"), int(port)), _SECONDS) as connected,
            context.wrap_socket(connected),
        ):
            return True
    except OSError as error:
        return "ALERT" in str(getattr(error, "reason", ""))  # a refusal in the words of TLS

"""Put on the path of an example's process: a connection to anywhere but this machine is an error.

Python imports a module of this name at its start. Nothing is tested here.
"""

import socket
from ipaddress import ip_address
from typing import Any

_connect = socket.socket.connect
_look_up = socket.getaddrinfo


def _connect_locally(self: socket.socket, address: Any) -> None:
    if self.family != socket.AF_UNIX and not _is_local(address[0]):
        raise OSError(f"the network is off: no connection to {address[0]}")
    _connect(self, address)


def _look_up_locally(host: Any, *arguments: Any, **options: Any) -> Any:
    if host is not None and not _is_local(host):
        raise OSError(f"the network is off: no look-up of {host}")
    return _look_up(host, *arguments, **options)


def _is_local(host: Any) -> bool:
    text = host.decode() if isinstance(host, bytes) else str(host)
    try:
        return ip_address(text).is_loopback
    except ValueError:
        return text == "localhost"


socket.socket.connect = _connect_locally  # type: ignore[assignment, method-assign]
socket.getaddrinfo = _look_up_locally

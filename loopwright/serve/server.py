"""Listening: the process behind `loopwright serve`.

What is answered is in `app`; which agent answers is decided by the command line.
"""

import sys
from collections.abc import Sequence
from ipaddress import ip_address

import uvicorn

from loopwright.agent import Agent
from loopwright.errors import ConfigurationError
from loopwright.graph.entrance import AgentGraph
from loopwright.serve.app import create_app

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
"""The names that a local server is asked for by; another one is a page's attempt to reach it."""

EXPOSED = (
    "warning: listening on {host}: whoever can reach this address can run the agent "
    "and read its threads; there is no login"
)


def run(
    served: Agent | AgentGraph,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    allow_remote: bool = False,
) -> None:
    """Serve an agent or its graph until the process is interrupted.

    Only this machine can reach it, unless `allow_remote` is set and `host` says otherwise; that is
    warned of on stderr. Raises ConfigurationError for an open address that is not allowed.
    """
    hosts = _hosts(host, allow_remote)
    uvicorn.run(create_app(served, hosts=hosts), host=host, port=port)


def _hosts(host: str, allow_remote: bool) -> Sequence[str] | None:
    """The names under which the server may be asked for; None: any. Warns of an open address."""
    if _is_loopback(host):
        return LOCAL_NAMES
    if not allow_remote:
        raise ConfigurationError(
            f"host {host!r} can be reached from other machines and there is no login: "
            "use 127.0.0.1, or allow it with --allow-remote",
            field="host",
        )
    print(EXPOSED.format(host=host), file=sys.stderr)
    return None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

"""Stand-ins for what a test should not wait for or pay for: models, an HTTP server, time.

Shipped for users too. None of them is used by the runtime itself.

    model = ScriptedModel(["I look.", Response(calls=[("c1", "read", {"path": "a.txt"})]), "Done."])

    with OpenAIServer([Response(text="hello", stop="length")]) as server:
        model = ChatOpenAI(model="any", base_url=server.base_url, api_key="any")
"""

from loopwright.clock import Clock, SystemClock
from loopwright.testing.clock import VirtualClock
from loopwright.testing.gate import Gate
from loopwright.testing.http import Drop, ServerRequest
from loopwright.testing.model import ScriptedModel, ScriptedRequest
from loopwright.testing.script import Pause, Response, ScriptExhausted
from loopwright.testing.server import HttpReply, OpenAIServer, RawReply, SseReply

__all__ = [
    "Clock",
    "Drop",
    "Gate",
    "HttpReply",
    "OpenAIServer",
    "Pause",
    "RawReply",
    "Response",
    "ScriptExhausted",
    "ScriptedModel",
    "ScriptedRequest",
    "ServerRequest",
    "SseReply",
    "SystemClock",
    "VirtualClock",
]

"""The wire form: everything that decides what bytes leave for a server. The ledger stays untouched.

What servers take is said in `dialect`, a level above; `form` makes the messages of a request.
"""

from loopwright.providers.wire.cache import cache_key
from loopwright.providers.wire.form import WireForm, api_messages, request_messages
from loopwright.providers.wire.messages import NO_OUTPUT
from loopwright.providers.wire.names import ToolNames, wire_name
from loopwright.providers.wire.openai import openai_form
from loopwright.providers.wire.schemas import simple_schema
from loopwright.providers.wire.target import Producer, Target

__all__ = [
    "NO_OUTPUT",
    "Producer",
    "Target",
    "ToolNames",
    "WireForm",
    "api_messages",
    "cache_key",
    "openai_form",
    "request_messages",
    "simple_schema",
    "wire_name",
]

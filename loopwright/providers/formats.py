"""How a chat model is asked for an answer that fits a JSON schema, and who is known to obey.

What is checked afterwards, whatever the server promised, is in `structured`.
"""

from typing import Any
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel

from loopwright.errors import ConfigurationError
from loopwright.forms import OutputForm, is_strict
from loopwright.providers.contract import SchemaSupport

_OPENAI = "api.openai.com"


def support_of(model: BaseChatModel) -> SchemaSupport:
    """What is known of a model object: OpenAI's own models say in langchain's profile whether they
    do it; of another server behind OpenAI's protocol nobody knows.
    """
    if not _speaks_openai(model):
        return "none"
    address = getattr(model, "openai_api_base", None)
    at_openai = address is None or urlsplit(address).hostname == _OPENAI
    known = at_openai and bool((model.profile or {}).get("structured_output"))
    return "native" if known else "untested"


def asked_for(model: BaseChatModel, form: OutputForm) -> dict[str, Any]:
    """The options of a request whose answer must have this form. Raises ConfigurationError.

    They travel in the request's body beside langchain's own fields: its `response_format` would
    leave the stream to the SDK, which parses the answer and raises for one that was cut off.
    """
    if not _speaks_openai(model):
        raise ConfigurationError(
            f"the model {type(model).__name__} cannot be asked for a JSON schema: use "
            "Output(..., mode='tool')",
            field="output",
        )
    sent = {"name": form.name, "schema": form.sent, "strict": is_strict(form.sent)}
    body = dict(getattr(model, "extra_body", None) or {})
    if getattr(model, "use_responses_api", None):
        body["text"] = {**body.get("text", {}), "format": {"type": "json_schema", **sent}}
    else:
        body["response_format"] = {"type": "json_schema", "json_schema": sent}
    return {"extra_body": body}


def _speaks_openai(model: BaseChatModel) -> bool:
    """Whether the model is langchain's client of OpenAI's protocol, told without importing it."""
    return any(kind.__name__ == "BaseChatOpenAI" for kind in type(model).__mro__)

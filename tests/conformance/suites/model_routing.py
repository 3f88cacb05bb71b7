"""Suite `model_routing`: what a model name means, asked of an agent's models as a run asks them."""

from collections.abc import Sequence

from loopwright.errors import UnknownModelError
from loopwright.providers.chat_model import ChatModelProvider
from loopwright.providers.models import Models
from loopwright.providers.registry import Registry
from loopwright.providers.servers import SERVERS
from loopwright.settings import Environment
from tests.conformance.running import Case, difference, unknown_keys

REGISTERED = (
    *("anthropic", "openai", "google", "mistral", "xai", "openrouter", "ollama", "deepseek"),
)
"""The providers of the suite's text."""

ENVIRONMENT = Environment(base_url=None, api_key=None)


async def drive(case: Case) -> Sequence[str]:
    """The provider that a run would ask, and the model that it would ask for; or the error."""
    unknown = unknown_keys("input", case.input, ["model"])
    unknown += unknown_keys("expected", case.expect, ["provider", "model", "error"])
    if unknown:
        return unknown
    servers = {name: SERVERS[name] for name in REGISTERED}
    keys = {name: "sk-key" for name in REGISTERED}
    find = Registry(servers=servers, keys=keys, environment=ENVIRONMENT, variables={})
    models = Models(ENVIRONMENT, find)
    try:
        found = models.resolve(models.add(case.input["model"]))
    except UnknownModelError as error:
        return difference("the error", error.code, case.expect.get("error"))
    assert isinstance(found, ChatModelProvider)
    return [
        *difference("the error", None, case.expect.get("error")),
        *difference("the provider", found.id, case.expect.get("provider")),
        *difference("the model", found.name, case.expect.get("model")),
    ]

"""The graph as LangServe should see it: its schemas, and what each of its streams carries.

Whatever runs, runs through the entrance of the graph; the routes themselves are made in `app`.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Self

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, Field, create_model

from loopwright.errors import InputError
from loopwright.events import to_json
from loopwright.graph.admission import CONTINUE, admit
from loopwright.graph.entrance import AgentGraph


class ServedInput(BaseModel):
    """What a request may send: messages, as a list, as one message or as text; or `continue`.

    Raises InputError for anything else.
    """

    messages: list[AnyMessage]

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Any:
        """The entrance's own check: pydantic's would try every kind of message on what is none.

        Gives the input for the graph, which LangServe hands on as it is.
        """
        admitted = admit(obj).graph_input
        if not isinstance(admitted, dict):
            raise InputError("the input is empty: send {'messages': [...]}")
        if admitted["input"]["kind"] == "continue":
            return {CONTINUE: True}
        return {"messages": admitted["input"]["messages"]}


class ServedConfigurable(BaseModel):
    """What a request may say in `config.configurable`; other keys are ignored."""

    thread_id: Annotated[
        str | None, Field(description="Thread to continue; a new one if it is left out.")
    ] = None


class ServedGraph(AgentGraph):
    """An `AgentGraph` for `add_routes`; made by `of`, it shares everything with its graph.

    `astream` without a mode gives our events as JSON. `astream_events` gives them as
    `on_custom_event`, with the events of models and tools and the graph's own start and end.
    """

    @classmethod
    def of(cls, graph: AgentGraph) -> Self:
        """The view of a graph."""
        return cls(**vars(graph))

    async def astream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        stream_mode: Any = None,
        **options: Any,
    ) -> AsyncIterator[Any]:
        mode = stream_mode or "custom"
        async for chunk in super().astream(input, config, stream_mode=mode, **options):
            yield chunk if stream_mode else to_json(chunk)

    async def astream_events(  # type: ignore[override]
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        """Nothing is sent before the run has begun: a refusal can still be an HTTP error."""
        waiting: list[Any] = []
        begun = False
        async for event in super().astream_events(input, config, **options):
            begun = begun or event["event"] == "on_custom_event"
            if _is_told(event):
                waiting.append(event)
            while begun and waiting:
                yield waiting.pop(0)

    async def astream_log(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        """For the playground: what is streamed is the output, as far as it is known."""
        shown = {**options, "stream_mode": "values", "output_keys": self.output_channels}
        async for patch in super().astream_log(input, config, **shown):
            yield patch

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        return create_model(self.get_name("Input"), __base__=ServedInput)

    def config_schema(self, *, include: Sequence[str] | None = None) -> type[BaseModel]:
        nothing_said = ServedConfigurable()
        return create_model(
            self.get_name("Config"), configurable=(ServedConfigurable, nothing_said)
        )


def _is_told(event: Any) -> bool:
    """Not the nodes' own events: each would repeat the whole state, system prompt and all."""
    if not event["event"].startswith("on_chain"):
        return True
    return not event["parent_ids"] and event["event"] != "on_chain_stream"

"""The suites of vectors that can be run, by the name of their file."""

from tests.conformance.running import Driver
from tests.conformance.suites import (
    agent_cache_signature,
    api_messages,
    argument_dispatch,
    budget_wallet,
    cache_key,
    loop000_options,
    loop000_runs,
    model_routing,
    plan_drift,
    planner_loop,
    repair,
    retry_classification,
    retry_sequences,
    retry_wait,
    thinking_blocks,
    token_estimate,
    tool_argument_bounds,
    transcript_validation,
)

SUITES: dict[str, Driver] = {
    "agent_cache_signature": agent_cache_signature.drive,
    "api_messages": api_messages.drive,
    "argument_dispatch": argument_dispatch.drive,
    "budget_wallet": budget_wallet.drive,
    "cache_key": cache_key.drive,
    "loop000_options": loop000_options.drive,
    "loop000_runs": loop000_runs.drive,
    "model_routing": model_routing.drive,
    "plan_drift": plan_drift.drive,
    "planner_loop": planner_loop.drive,
    "repair": repair.drive,
    "retry_classification": retry_classification.drive,
    "retry_sequences": retry_sequences.drive,
    "retry_wait": retry_wait.drive,
    "thinking_blocks": thinking_blocks.drive,
    "token_estimate": token_estimate.drive,
    "tool_argument_bounds": tool_argument_bounds.drive,
    "transcript_validation": transcript_validation.drive,
}

"""Tools: what they are, how they are made, checked and run, and the built-in ones.

A list of tools becomes the registry of a run by `loopwright.tools.registry.registry`.
"""

from loopwright.tools.arguments import ArgumentRules, InvalidArguments, validate
from loopwright.tools.contract import Tool, ToolContext, ToolRegistry, ToolResult
from loopwright.tools.execution import run_call
from loopwright.tools.files import FILE_TOOLS, list_files, read_file, search_text
from loopwright.tools.functions import function_tool, tool
from loopwright.tools.langchain import langchain_tool
from loopwright.tools.workspace import WorkspaceError

__all__ = [
    "FILE_TOOLS",
    "ArgumentRules",
    "InvalidArguments",
    "Tool",
    "ToolContext",
    "ToolRegistry",
    "ToolResult",
    "WorkspaceError",
    "function_tool",
    "langchain_tool",
    "list_files",
    "read_file",
    "run_call",
    "search_text",
    "tool",
    "validate",
]

"""`ask_user`: the tool with which every agent may put questions to a person.

It never runs. The gate takes its calls: it pauses with the questions, or tells the model what is wrong with them, and
when they were answered, the answers are the call's result (`engine/adk/gate.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.tools.base_tool import BaseTool
from google.genai import types

from sayso_approvals.questions import MOST_CHOICES, MOST_QUESTIONS, SERVER, TOOL

if TYPE_CHECKING:
    from google.adk.tools.tool_context import ToolContext

_DESCRIPTION = (
    "Asks the person one or more questions and waits for the answers. Use it when something is missing or has to be "
    "chosen. The person may answer any question in words of their own, whatever choices it offers."
)


class AskUserTool(BaseTool):
    """The tool as the model sees it, with the identity that gates, digests and people know."""

    def __init__(self) -> None:
        super().__init__(name=TOOL, description=_DESCRIPTION)
        self.server = SERVER
        self.endpoint = f"{SERVER}:{TOOL}"
        self.tool = TOOL

    def _get_declaration(self) -> types.FunctionDeclaration:
        question = {
            "type": "object",
            "properties": {
                "question": {"type": "string", "description": "What is asked."},
                "choices": {
                    "type": "array",
                    "items": {"type": "string"},
                    "maxItems": MOST_CHOICES,
                    "description": "Answers to suggest. Left out: the person writes one.",
                },
                "multiple": {"type": "boolean", "description": "Whether several of the choices may be taken."},
            },
            "required": ["question"],
        }
        questions = {"type": "array", "items": question, "minItems": 1, "maxItems": MOST_QUESTIONS}
        schema = {"type": "object", "properties": {"questions": questions}, "required": ["questions"]}
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Never called: the gate stands in front of it."""
        raise RuntimeError("ask_user was called without the gate: no question was put to anybody")

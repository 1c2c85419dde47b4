"""The texts of chats: what a completion says, and the task that a prompt shows."""

from collections.abc import Mapping, Sequence
from typing import Any

from ._exceptions import InputError


class SourceText(str):
    """Text that is no path, whatever it looks like."""


def _content(message):
    content = message.get("content") if isinstance(message, Mapping) else getattr(message, "content", None)
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(part if isinstance(part, str) else part.get("text", "") for part in content)


def _role(message):
    return message.get("role") if isinstance(message, Mapping) else getattr(message, "role", None)


def completion_text(completion: Any) -> str:
    """The text of a completion: a text, or the last assistant's message of a chat."""
    if isinstance(completion, str):
        return completion
    if isinstance(completion, Mapping) or not isinstance(completion, Sequence):
        return _content(completion)
    own = [message for message in completion if _role(message) in (None, "assistant")] or list(completion)
    return _content(own[-1]) if own else ""


def prompt_text(prompt: Any) -> str:
    """All that a prompt says: a text, or the messages of a chat."""
    return prompt if isinstance(prompt, str) else "\n".join(_content(message) for message in prompt)


def reference_in(prompt: Any) -> str:
    """The task that a prompt shows: its last code block with `class Model`. Raises InputError where there is
    none."""
    blocks = prompt_text(prompt).split("```")[1::2]
    for block in reversed(blocks):
        source = block.partition("\n")[2]
        if "class Model" in source and "get_inputs" in source:
            return SourceText(source)
    raise InputError(
        "no reference: expected `references`, or a code block with `class Model` and `get_inputs` in the"
        " prompt"
    )

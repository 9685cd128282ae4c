"""What an agent can do with a browser: a closed set. Pure."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct


class Open(Struct, frozen=True, tag_field="action", tag="open"):
    """Go to an address, whatever its scheme."""

    url: str


class Click(Struct, frozen=True, tag_field="action", tag="click"):
    """Click what carries this text, or what this CSS selector finds first."""

    target: str


class Type(Struct, frozen=True, tag_field="action", tag="type"):
    """Type into the field with this label, name, placeholder or CSS selector; then Enter, if asked to."""

    target: str
    text: str
    submit: bool = False


class Scroll(Struct, frozen=True, tag_field="action", tag="scroll"):
    """Scroll down by so many pixels; up where it is negative."""

    pixels: int = 600


class Screenshot(Struct, frozen=True, tag_field="action", tag="screenshot"):
    """Take a picture now."""


class ReadPage(Struct, frozen=True, tag_field="action", tag="read-page"):
    """Read the page's text again, after a moment."""


class RunCommand(Struct, frozen=True, tag_field="action", tag="run-command"):
    """Run a line in the agent's terminal, which is a contained command under the same policy."""

    line: str


Action = Open | Click | Type | Scroll | Screenshot | ReadPage | RunCommand


def action_word(action: Action) -> str:
    """Its name in records and transcripts."""
    return str(type(action).__struct_config__.tag)


def parse_action(fields: Any) -> Action:
    """An action from JSON fields, such as a model gives.

    Raises:
        msgspec.ValidationError: It is none of the set, or not as it should be.
    """
    action: Action = msgspec.convert(fields, Action)
    return action


def describe_step(action: Action) -> dict[str, Any]:
    """The fields of a step's record that come from the action itself; what is typed is not among them."""
    fields: dict[str, Any] = {"action": action_word(action)}
    match action:
        case Open(url):
            fields["target"] = url
        case Click(target):
            fields["target"] = target
        case Type(target, text):
            fields |= {"target": target, "text_bytes": len(text.encode("utf-8", "surrogatepass"))}
        case RunCommand(line):
            fields["argv"] = [line]
    return fields

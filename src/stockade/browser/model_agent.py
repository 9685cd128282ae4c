"""A real model as the agent, behind an OpenAI- or Anthropic-style HTTP API.

The questions go out from a contained process under the session's own policy, so the way to the
provider is a rule like any other, and each question is an attempt on record. The model's answer
is foreign: it is parsed into the closed set of actions, and nothing else of it is used.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import msgspec

from stockade.browser.actions import Action, action_word, parse_action
from stockade.browser.agents import Seen
from stockade.errors import HostError
from stockade.ledger.record import clean_text
from stockade.vocabulary import Word

Ask = Callable[[dict[str, Any]], dict[str, Any]]
TOKENS_LIMIT = 500
TRIES = 2
TEXT_SHOWN = 6_000

INSTRUCTIONS = """You use a web browser for a person. You see a picture of the page and its text.
Answer with one JSON object and nothing else: the next action.
{"action": "open", "url": "https://..."}
{"action": "click", "target": "text of what to click, or a CSS selector"}
{"action": "type", "target": "label or name of the field", "text": "...", "submit": true}
{"action": "scroll", "pixels": 600}
{"action": "screenshot"}
{"action": "read-page"}
{"action": "run-command", "line": "..."}
{"action": "done"}"""


class Dialect(Word):
    """How a provider is spoken to."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"

    @property
    def key_variable(self) -> str:
        return f"{self.value.upper()}_API_KEY"

    @property
    def default_url(self) -> str:
        return f"https://api.{self.value}.com"


class ModelAgent:
    """Asks a model for each step.

    Args:
        ask: Sends one request (`url`, `headers`, `body`) and gives the answer (`status`, `body`, or `error`).
        key: The provider's key; None where the gateway puts it in (`credential:` of a rule).
    """

    def __init__(self, ask: Ask, dialect: Dialect, model: str, url: str, key: str | None = None) -> None:
        self._ask = ask
        self._dialect = dialect
        self._model = model
        self._url = url.rstrip("/")
        self._key = key.strip() if key else None
        self._done: list[str] = []

    def next_action(self, seen: Seen) -> Action | None:
        """What the model wants to do.

        Raises:
            HostError: The provider does not answer, or answers nothing that is an action.
        """
        if self._done:
            self._done[-1] += f" -> {clean_text(seen.came, 200)}"
        complaint = ""
        for _ in range(TRIES):
            text = self._question(seen, complaint)
            answer = find_object(read_answer(self._dialect, self._send(text, seen.screenshot)))
            if answer.get("action") == "done":
                return None
            try:
                action = parse_action(answer)
            except msgspec.ValidationError as error:
                complaint = f"Your last answer was not one of the actions: {error}"
                continue
            self._done.append(
                f"{seen.number}. {action_word(action)} {json.dumps(msgspec.to_builtins(action))}"
            )
            return action
        raise HostError("model-answer", f"the model names no action: {clean_text(complaint, 200)}")

    def _question(self, seen: Seen, complaint: str) -> str:
        parts = [
            f"What the person wants: {seen.prompt}",
            f"Address: {seen.address or 'none yet'}",
            f"Title: {seen.title}",
            "Done so far:\n" + ("\n".join(self._done) or "nothing"),
            f"Text of the page:\n{seen.text[:TEXT_SHOWN]}",
            complaint,
        ]
        return "\n\n".join(part for part in parts if part)

    def _send(self, text: str, picture: bytes | None) -> dict[str, Any]:
        encoded = None if picture is None else base64.b64encode(picture).decode()
        answer = self._ask(compose_request(self._dialect, self._url, self._model, self._key, text, encoded))
        if answer.get("status") != 200:
            said = str(answer.get("detail") or f"status {answer.get('status')}: {answer.get('body', '')}")
            if self._key:  # a header that cannot be sent is quoted, and some providers quote what they refuse
                said = said.replace(self._key, "(key)")
            raise HostError(
                "model-not-reached",
                f"the model at {self._url} gives no answer: {clean_text(said, 300)}",
                f"does the policy permit that host, and is {self._dialect.key_variable} set? `stockade log`",
            )
        return answer


def compose_request(
    dialect: Dialect, url: str, model: str, key: str | None, text: str, picture: str | None
) -> dict[str, Any]:
    """One question as an HTTP request; `picture` is a PNG in base64."""
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if dialect is Dialect.ANTHROPIC:
        if picture is not None:
            source = {"type": "base64", "media_type": "image/png", "data": picture}
            content.insert(0, {"type": "image", "source": source})
        headers["anthropic-version"] = "2023-06-01"
        if key is not None:
            headers["x-api-key"] = key
        messages = [{"role": "user", "content": content}]
        body = {"model": model, "max_tokens": TOKENS_LIMIT, "system": INSTRUCTIONS, "messages": messages}
        return {"url": f"{url}/v1/messages", "headers": headers, "body": body}
    if picture is not None:
        content.append({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}})
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": content}]
    body = {"model": model, "max_completion_tokens": TOKENS_LIMIT, "messages": messages}
    return {"url": f"{url}/v1/chat/completions", "headers": headers, "body": body}


def read_answer(dialect: Dialect, answer: dict[str, Any]) -> str:
    """The text of a provider's answer; empty if it is not as its API says."""
    try:
        body = json.loads(answer.get("body", ""))
        if dialect is Dialect.ANTHROPIC:
            return "".join(str(part["text"]) for part in body["content"] if part.get("type") == "text")
        return str(body["choices"][0]["message"]["content"])
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return ""


def find_object(text: str) -> dict[str, Any]:
    """The first JSON object in a text, with whatever stands around it; empty if there is none."""
    decoder = json.JSONDecoder()
    for start, char in enumerate(text):
        if char != "{":
            continue
        try:
            found, _end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        return found if isinstance(found, dict) else {}
    return {}

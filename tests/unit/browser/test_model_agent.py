"""A model as the agent: what it is asked, and what its answers come to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stockade.browser.actions import Open, Scroll
from stockade.browser.agents import Seen
from stockade.browser.model_agent import Dialect, ModelAgent, find_object
from stockade.errors import HostError

SEEN = Seen(
    prompt="Find it", number=1, address="http://a.test/", title="A", text="some words", screenshot=b"png"
)


class Provider:
    """Answers with these texts in turn, in one provider's form."""

    def __init__(self, dialect: Dialect, *texts: str) -> None:
        self.asked: list[dict[str, Any]] = []
        self._dialect = dialect
        self._texts = list(texts)

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        text = self._texts.pop(0)
        if self._dialect is Dialect.ANTHROPIC:
            body: dict[str, Any] = {"content": [{"type": "text", "text": text}], "role": "assistant"}
        else:
            body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}
        return {"status": 200, "body": json.dumps(body)}


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_model_names_an_action_and_then_is_done(dialect: Dialect) -> None:
    provider = Provider(dialect, 'Well: {"action": "open", "url": "http://b.test/"}', '{"action": "done"}')
    agent = ModelAgent(provider, dialect, "some-model", "http://provider.test/")
    assert agent.next_action(SEEN) == Open("http://b.test/")
    assert agent.next_action(SEEN) is None


def test_openai_is_asked_as_its_api_says() -> None:
    provider = Provider(Dialect.OPENAI, '{"action": "scroll"}')
    assert ModelAgent(provider, Dialect.OPENAI, "m", "http://p.test", "k").next_action(SEEN) == Scroll()
    [asked] = provider.asked
    assert asked["url"] == "http://p.test/v1/chat/completions"
    assert asked["headers"]["Authorization"] == "Bearer k"
    text, picture = asked["body"]["messages"][1]["content"]
    assert text["type"] == "text"
    assert "Find it" in text["text"]
    assert "some words" in text["text"]
    assert picture == {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}}


def test_anthropic_is_asked_as_its_api_says() -> None:
    provider = Provider(Dialect.ANTHROPIC, '{"action": "scroll"}')
    assert ModelAgent(provider, Dialect.ANTHROPIC, "m", "http://p.test", "k").next_action(SEEN) == Scroll()
    [asked] = provider.asked
    assert asked["url"] == "http://p.test/v1/messages"
    assert asked["headers"]["x-api-key"] == "k"
    assert asked["headers"]["anthropic-version"] == "2023-06-01"
    assert asked["body"]["messages"][0]["content"][0]["source"] == {
        "type": "base64", "media_type": "image/png", "data": "cG5n",
    }  # fmt: skip
    assert asked["body"]["max_tokens"] > 0


@pytest.mark.parametrize("dialect", list(Dialect))
def test_without_a_key_no_credential_is_sent_so_that_the_gateway_can_put_one_in(dialect: Dialect) -> None:
    provider = Provider(dialect, '{"action": "done"}')
    ModelAgent(provider, dialect, "m", "http://p.test").next_action(SEEN)
    assert not {name.lower() for name in provider.asked[0]["headers"]} & {"authorization", "x-api-key"}


def test_an_answer_that_is_no_action_is_asked_for_again_and_then_ends_the_session() -> None:
    provider = Provider(Dialect.OPENAI, "I would rather not", '{"action": "scroll"}')
    agent = ModelAgent(provider, Dialect.OPENAI, "m", "http://p.test")
    assert agent.next_action(SEEN) == Scroll()
    assert "not one of the actions" in provider.asked[1]["body"]["messages"][1]["content"][0]["text"]
    stubborn = ModelAgent(
        Provider(Dialect.OPENAI, "no", '{"action": "format"}'), Dialect.OPENAI, "m", "http://p.test"
    )
    with pytest.raises(HostError, match="model-answer"):
        stubborn.next_action(SEEN)


@pytest.mark.parametrize(
    "answer",
    [{"status": 403, "body": "not-listed"}, {"error": "URLError", "detail": "refused"}, {}],
)
def test_a_provider_that_is_not_reached_is_said_with_what_to_do(answer: dict[str, Any]) -> None:
    agent = ModelAgent(lambda _request: answer, Dialect.OPENAI, "m", "http://p.test")
    with pytest.raises(HostError, match="model-not-reached") as caught:
        agent.next_action(SEEN)
    assert "policy" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": {"b": "}"}}\n```', {"a": {"b": "}"}}),
        ('{broken {"a": 1} {"b": 2}', {"a": 1}),
        ("nothing", {}),
        ("", {}),
    ],
)
def test_the_first_object_of_a_text_is_taken(text: str, found: dict[str, Any]) -> None:
    assert find_object(text) == found


@pytest.mark.parametrize(
    "answer",
    [
        {"error": "ValueError", "detail": "Invalid header value b'Bearer sk-secret'"},
        {"status": 401, "body": "the key sk-secret is not known"},
    ],
)
def test_what_goes_wrong_is_told_without_the_key(answer: dict[str, Any]) -> None:
    agent = ModelAgent(lambda _request: answer, Dialect.OPENAI, "m", "http://p.test", "sk-secret\n")
    with pytest.raises(HostError) as told:
        agent.next_action(SEEN)
    assert "(key)" in told.value.message
    assert "sk-secret" not in f"{told.value} {told.value.hint}"

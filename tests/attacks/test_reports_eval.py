"""Public reports of kind EVAL: answers that were within reach while a run was scored."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from attack_steps import Tried, allow, get, get_tls, ok

from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "userns", "bwrap", "room")]

Do = Callable[..., Tried]
SCORING = ["--phase", "scoring"]
RUBRIC_ADDRESS = "93.184.216.80"
REGISTRY = "  - {proxy: registry.test, ports: [80], protocol: http, methods: [GET]}\n"


def test_r169_while_scoring_only_the_registry_is_reached_and_no_place_that_has_the_fix(
    contained: Do, in_the_open: Do, world: World
) -> None:
    """The code host's page, its API, its raw files, its archives, a search engine, a cache of the web."""
    listed = {
        "git.test": "/task/pull/7",
        "api.git.test": "/repos/task/pulls/7",
        "raw.git.test": "/task/main/fix.py",
        "codeload.git.test": "/task/archive/main.tar.gz",
    }
    unlisted = {"search.test": "/?q=task+fix", "cache.test": "/web/git.test/task"}
    world.set_dns({name: {"a": [RUBRIC_ADDRESS]} for name in (listed | unlisted)})
    steps = [get(name, path=path) for name, path in (listed | unlisted).items()]
    in_the_open(*steps)
    assert len(world.requests(address=RUBRIC_ADDRESS)) == len(steps)
    world.reset()
    world.set_dns({name: {"a": [RUBRIC_ADDRESS]} for name in (listed | unlisted)})
    policy = f"rules:\n{REGISTRY}  - allow: git.test\n    ports: [80]\nrubric: [git.test, '*.git.test']\n"
    tried = contained(*steps, get("registry.test", path="/simple/"), policy=policy, extra=SCORING)
    assert ok(tried[len(steps)])
    assert not any(ok(tried[number]) for number in range(len(steps)))
    assert world.arrivals(address=RUBRIC_ADDRESS) == []
    reasons = {denial["name"]: denial["reason"] for denial in tried.run.denials()}
    assert reasons == dict.fromkeys(listed, "rubric-in-scoring") | dict.fromkeys(unlisted, "not-listed")
    # The same place in the phase before: a rule lets it through.
    world.reset()
    contained(steps[0], policy=policy)
    assert [request["host"] for request in world.requests()] == ["git.test"]


def test_r170_mirrors_and_the_authors_site_are_not_listed_and_one_package_of_a_registry_can_be_closed(
    contained: Do, in_the_open: Do, world: World
) -> None:
    steps = [
        get("mirror.test", path="/git/task"),
        get("author.test", path="/task/"),
        get("registry.test", path="/simple/task/"),
        get("registry.test", path="/packages/task-2.0.tar.gz"),
    ]
    world.set_dns({"author.test": {"a": [RUBRIC_ADDRESS]}})
    in_the_open(*steps)
    assert len(world.requests()) == 4
    world.reset()
    world.set_dns({"author.test": {"a": [RUBRIC_ADDRESS]}})
    answers = (
        "rubric:\n  - {host: registry.test, paths: [/simple/task/**, '/packages/task-*']}\n  - git.test\n"
    )
    other = get("registry.test", path="/simple/range-tiny/")
    tried = contained(*steps, other, policy=f"rules:\n{REGISTRY}{answers}", extra=SCORING)
    assert ok(tried[4])
    assert [request["path"] for request in world.requests()] == ["/simple/range-tiny/"]
    assert [(denial["name"], denial["reason"]) for denial in tried.run.denials()] == [
        ("mirror.test", "not-listed"),
        ("author.test", "not-listed"),
        ("registry.test", "rubric-in-scoring"),
        ("registry.test", "rubric-in-scoring"),
    ]


def test_r171_a_rubric_host_behind_a_permitted_tenant_is_not_reached_by_hello_host_or_second_request(
    contained: Do, in_the_open: Do, world: World
) -> None:
    """Both names lead to the same servers; the witness is the name that arrives."""
    tenants = {"open.test": {"a": [RUBRIC_ADDRESS]}, "rubric.test": {"a": [RUBRIC_ADDRESS]}}
    second = [get("open.test")["send"].replace("Connection: close\r\n", ""), get("rubric.test")["send"]]
    steps = [
        get_tls("open.test", sni="rubric.test", host_header="rubric.test"),
        get("open.test", host_header="rubric.test"),
        {**get("open.test"), "send": second},
    ]
    world.set_dns(tenants)
    in_the_open(*steps)
    assert [request["host"] for request in world.requests()].count("rubric.test") == 3
    world.reset()
    world.set_dns(tenants)
    policy = allow("open.test", "rubric.test") + "rubric: [rubric.test]\n"
    through_connect = get_tls("open.test", sni="rubric.test", host_header="rubric.test", entry="http-proxy")
    tried = contained(*steps, through_connect, get("open.test"), policy=policy, extra=SCORING)
    assert ok(tried[4])
    assert {request["host"] for request in world.requests()} == {"open.test"}
    assert [denial["reason"] for denial in tried.run.denials()] == ["name-mismatch"] * 4


def test_r174_a_provider_that_searches_itself_can_be_closed_while_scoring_or_held_to_requests_without_tools(
    contained: Do, world: World
) -> None:
    def ask(**more: object) -> dict[str, object]:
        body = json.dumps({"model": "any", "messages": [], **more})
        head = "POST /v1/messages HTTP/1.1\r\nHost: provider.test\r\nContent-Type: application/json\r\n"
        send = f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        return {"do": "talk", "host": "provider.test", "port": 80, "entry": "transparent", "send": send}

    plain, searching = ask(), ask(tools=[{"type": "web_search_20250305", "name": "web_search"}])
    rule = "rules:\n  - {proxy: provider.test, ports: [80], protocol: http, methods: [POST]%s}\n"
    held = contained(plain, searching, policy=rule % ", body: {forbid-tools: [web_search]}", extra=SCORING)
    assert len(world.requests()) == 1
    assert [denial["reason"] for denial in held.run.denials()] == ["forbidden-content"]
    world.reset()
    closed = rule % ", phases: [work]"
    assert contained(plain, policy=closed, extra=SCORING).run.denials()[0]["reason"] == "wrong-phase"
    assert world.requests() == []
    contained(plain, policy=closed)
    assert len(world.requests()) == 1

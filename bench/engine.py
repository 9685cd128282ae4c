"""How many decisions a second, and whether the number of rules matters.

Run by `main.py`; prints rows as JSON. The attempts are a fixed mixture: listed by name,
listed by wildcard, denied by rule, unknown, and a metadata address. Names were parsed
before; permitted ones are judged with an answer, as the gateway does.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Iterator
from ipaddress import ip_address

from stockade.decision.engine import Engine
from stockade.decision.request import Attempt
from stockade.net.host import Host, parse_host
from stockade.policy.load import load_policy_text
from stockade.vocabulary import Entry, Identity, Phase, Protocol

SIZES = (10, 1_000, 100_000)
MIXTURE = 1000
PUBLIC = (ip_address("93.184.216.34"),)


def policy_text(rules: int) -> str:
    """Write a policy: of ten rules seven are exact, two are wildcards, one is a denial."""
    lines = ["version: 1", "rules:"]
    for number in range(rules):
        kind = number % 10
        if kind < 7:
            lines.append(f"  - allow: host{number}.site{number % 997}.test")
        elif kind < 9:
            lines.append(f'  - allow: "*.zone{number}.test"')
        else:
            lines.append(f"  - deny: bad{number}.site.test")
    return "\n".join(lines) + "\n"


def attempts(rules: int) -> Iterator[tuple[Attempt, tuple[object, ...] | None]]:
    """Yield the mixture, spread over all rules."""
    for index in range(MIXTURE):
        number = (index * 7919) % rules // 10 * 10
        name = (
            f"host{number}.site{number % 997}.test",
            f"a.b.zone{number + 7}.test",
            f"bad{number + 9}.site.test",
            f"unknown{index}.example",
            "169.254.169.254",
        )[index % 5]
        host = parse_host(name)
        if not isinstance(host, Host):
            raise SystemExit(f"engine: {name} is not a host")
        attempt = Attempt(entry=Entry.TRANSPARENT, protocol=Protocol.TLS, host=host, port=443, sni=host)
        yield attempt, PUBLIC if index % 5 < 2 else None


def measure(rules: int, seconds: float) -> dict[str, float]:
    """Load, compile, and decide for a while."""
    text = policy_text(rules)
    began = time.perf_counter()
    policy = load_policy_text(text)
    loaded = time.perf_counter()
    engine = Engine(policy, Phase.WORK, Identity.AGENT)
    compiled = time.perf_counter()
    mixture = list(attempts(rules))
    gc.collect()
    gc.freeze()
    return {
        "rules": rules,
        "load_s": loaded - began,
        "compile_s": compiled - loaded,
        "first_ms": time_first(engine, mixture),
        **time_decisions(engine, mixture, seconds),
    }


def time_first(engine: Engine, mixture: list) -> float:
    """Return the slowest decision of the first round: what is built when first needed shows here."""
    slowest = 0.0
    for attempt, addresses in mixture:
        began = time.perf_counter()
        engine.decide(attempt, addresses)
        slowest = max(slowest, time.perf_counter() - began)
    return slowest * 1e3


def time_decisions(engine: Engine, mixture: list, seconds: float) -> dict[str, float]:
    """Time each decision by itself, and many together for the rate."""
    times: list[int] = []
    count = 0
    began = time.perf_counter()
    while (elapsed := time.perf_counter() - began) < seconds:
        for attempt, addresses in mixture:
            engine.decide(attempt, addresses)
        count += len(mixture)
    for attempt, addresses in mixture * 20:
        start = time.perf_counter_ns()
        engine.decide(attempt, addresses)
        times.append(time.perf_counter_ns() - start)
    times.sort()
    return {
        "per_s": count / elapsed,
        "p50_us": times[len(times) // 2] / 1e3,
        "p99_us": times[len(times) * 99 // 100] / 1e3,
    }


def main() -> None:
    """Measure every size."""
    seconds = 0.7 if os.environ.get("BENCH_QUICK") else 3.0
    json.dump([measure(rules, seconds) for rules in SIZES], sys.stdout)


if __name__ == "__main__":
    main()

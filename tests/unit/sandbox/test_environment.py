"""The environment is an allow-list; PATH keeps what can be seen."""

from __future__ import annotations

from stockade.sandbox.environment import plan_environment, plan_search_path


def environment(caller: dict[str, str], extra: tuple[str, ...] = ()) -> dict[str, str]:
    return plan_environment(
        caller, visible_folders=["/usr", "/home/u/w"], extra=extra, run_id="r1", workspace="/home/u/w"
    )


def test_only_listed_names_pass() -> None:
    # The names are those of reports R144 and boundary.md: loaders, proxies, sockets, secrets.
    loaders = ["LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "NODE_OPTIONS", "PERL5LIB", "RUBYOPT", "ENV"]
    traffic = ["HTTP_PROXY", "https_proxy", "ALL_PROXY", "NO_PROXY", "DOCKER_HOST", "SSH_AUTH_SOCK"]
    others = ["GIT_DIR", "JAVA_TOOL_OPTIONS", "AWS_SECRET_ACCESS_KEY", "PAGER", "EDITOR", "IFS"]
    caller = dict.fromkeys([*loaders, *traffic, *others], "x")
    passed = environment({**caller, "LANG": "de_DE.UTF-8", "LC_ALL": "C", "TERM": "xterm"})
    assert not set(caller) & set(passed)
    assert (passed["LANG"], passed["LC_ALL"], passed["TERM"]) == ("de_DE.UTF-8", "C", "xterm")


def test_identity_and_places_are_ours() -> None:
    passed = environment({"HOME": "/home/u", "USER": "u", "SHELL": "/bin/zsh", "PWD": "/x", "STOCKADE": "0"})
    assert passed["HOME"] == "/home/worker"
    assert passed["USER"] == "worker"
    assert passed["PWD"] == "/home/u/w"
    assert (passed["STOCKADE"], passed["STOCKADE_RUN"]) == ("1", "r1")


def test_the_operator_can_pass_more_by_name_or_value() -> None:
    passed = environment({"TOKEN": "t"}, ("TOKEN", "MODE=fast", "ABSENT", "EMPTY="))
    assert (passed["TOKEN"], passed["MODE"], passed["EMPTY"]) == ("t", "fast", "")
    assert "ABSENT" not in passed


def test_path_keeps_visible_absolute_folders_in_order() -> None:
    path = plan_search_path(
        "/home/u/w/bin:/home/u/.local/bin:.::bin:/usr/bin:/usr/../etc:/usrlocal", ["/usr", "/home/u/w"]
    )
    assert path[:2] == ["/home/u/w/bin", "/usr/bin"]
    assert "/usr/local/bin" in path
    assert not {"", ".", "bin", "/home/u/.local/bin", "/usr/../etc", "/usrlocal"} & set(path)


def test_a_virtual_environment_outside_the_view_is_not_announced() -> None:
    assert "VIRTUAL_ENV" not in environment({"VIRTUAL_ENV": "/home/u/other"})
    assert environment({"VIRTUAL_ENV": "/home/u/w/.venv"})["VIRTUAL_ENV"] == "/home/u/w/.venv"

"""Pack files to a `Pack`, or every problem that they have, each with its line.

A pack is a YAML file, the policy card that it names, and perhaps a CSV file with its scenarios. All of
them lie in one folder or below it, so that a pack can be handed on as a folder.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from stockade.lab.pack.keys import PACK_KEYS
from stockade.lab.pack.pack import Pack
from stockade.lab.pack.read import READERS, PackError, Problems, Unreadable, read_scenario
from stockade.lab.pack.rows import Cells, read_keys, read_origins, rows_of_csv, rows_of_list
from stockade.lab.pack.scenario import Scenario
from stockade.policy.load import load_policy
from stockade.policy.model import Policy
from stockade.policy.problems import PolicyError, shown
from stockade.policy.yaml_tree import Mapping, Node, Scalar, Sequence, parse_yaml

FILE_LIMIT_BYTES = 4 << 20
SCENARIOS_LIMIT = 5000


def load_pack(path: Path) -> Pack:
    """Load a pack and what it names.

    Raises:
        PackError: With every problem of its files.
    """
    return _Loader(Path(os.path.abspath(path))).load()


class _Loader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = path.name
        self._folder = path.parent.resolve()
        self._problems = Problems()
        self._digest = hashlib.sha256()

    def load(self) -> Pack:
        try:
            pack = self._load()
        except PolicyError as error:  # of the YAML reader: nothing behind it can be read
            raise PackError(error.problems) from error
        if pack is None or self._problems.found:
            raise PackError(tuple(self._problems.found))
        return pack

    def _load(self) -> Pack | None:
        text = self._read(self._path, self._name, self._name)
        if text is None:
            return None
        root = parse_yaml(text, self._name)
        if not isinstance(root, Mapping):
            self._problems.add(f"{self._name}:1", "pack-yaml", "a pack has keys and values", "version: 1")
            return None
        nodes = self._read_keys(root)
        name = self._read_name(nodes)
        policy, card = self._load_policy(nodes.get("policy"))
        scenarios = self._read_scenarios(nodes)
        if policy is None or name is None:
            return None
        return Pack(
            name=name,
            file=self._folder / self._name,
            policy=policy,
            policy_text=card,
            scenarios=tuple(scenarios),
            digest=self._digest.hexdigest(),
        )

    # --- files ------------------------------------------------------------------------------

    def _read(self, path: Path, name: str, place: str) -> str | None:
        """The text of a file, which goes into the digest; None where something was noted."""
        try:
            with open(path, "rb", opener=lambda file, flags: os.open(file, flags | os.O_NONBLOCK)) as file:
                about = os.fstat(file.fileno())
                if not stat.S_ISREG(about.st_mode) or about.st_size > FILE_LIMIT_BYTES:
                    limit = f"a file of at most {FILE_LIMIT_BYTES >> 20} MiB"
                    self._problems.add(place, "pack-file", f"{name} is no such file", limit)
                    return None
                data = file.read()
            text = data.decode("utf-8-sig")
        except OSError as error:
            self._problems.add(place, "pack-file", f"{path} cannot be read: {error.strerror}")
            return None
        except UnicodeDecodeError:
            self._problems.add(place, "pack-file", f"{name} is not UTF-8", "save it as UTF-8")
            return None
        self._digest.update(data)
        return text

    def _find_beside(self, node: Node | None, what: str) -> tuple[Path, str, str] | None:
        """Path, name and place of a file that the pack names."""
        if node is None:
            return None
        place = f"{self._name}:{node.line}"
        if not isinstance(node, Scalar) or not node.value:
            self._problems.add(place, "pack-value", f"{what} is the name of a file")
            return None
        if not node.value.isprintable():  # it would stand in messages, and in a terminal it could act
            message = f"{what} is {shown(node.value)}, which holds a character that cannot be shown"
            self._problems.add(place, "pack-file", message, "rename the file")
            return None
        try:
            path = (self._folder / node.value).resolve()
        except (OSError, RuntimeError):  # links in a circle
            self._problems.add(place, "pack-file", f"{shown(node.value)} cannot be followed to a file")
            return None
        if not path.is_relative_to(self._folder):
            message = f"{shown(node.value)} lies outside of the pack's folder"
            self._problems.add(place, "pack-file", message, "copy it beside the pack")
            return None
        return path, node.value, place

    def _load_policy(self, node: Node | None) -> tuple[Policy | None, str]:
        found = self._find_beside(node, "`policy`")
        if found is None:
            return None, ""
        text = self._read(*found)
        if text is None:
            return None, ""
        try:
            policy = load_policy(found[0])
        except PolicyError as error:
            self._problems.found.extend(error.problems)
            return None, ""
        for path in sorted(set(policy.paths) - {str(found[0])}):  # what it includes decides as well
            self._read(Path(path), path, found[2])
        return policy, text

    # --- the pack's own keys ------------------------------------------------------------------

    def _read_keys(self, root: Mapping) -> dict[str, Node]:
        nodes = read_keys(root, PACK_KEYS, "a pack", self._name, self._problems)
        for missing in (one for one in PACK_KEYS if one.is_required and one.name not in nodes):
            message = f"the pack has no {missing.name}"
            self._problems.add(f"{self._name}:1", "pack-key-missing", message, missing.doc)
        return nodes

    def _read_name(self, nodes: dict[str, Node]) -> str | None:
        version, name = nodes.get("version"), nodes.get("name")
        if version is not None and not (isinstance(version, Scalar) and version.value == "1"):
            self._problems.add(f"{self._name}:{version.line}", "pack-value", "version is 1", "version: 1")
        if name is None:
            return None
        return self._read_value(name, "name", "text")

    def _read_value(self, node: Node, name: str, kind: str) -> str | None:
        place = f"{self._name}:{node.line}"
        if not isinstance(node, Scalar):
            self._problems.add(place, "pack-value", f"{name} is one value")
            return None
        try:
            return str(READERS[kind](node.value))
        except Unreadable as problem:
            self._problems.add(place, problem.code, f"{name}: {problem.message}", problem.better)
            return None

    # --- scenarios -----------------------------------------------------------------------------

    def _read_scenarios(self, nodes: dict[str, Node]) -> list[Scenario]:
        origins = read_origins(nodes.get("origins"), self._name, self._problems)
        source, rows = self._find_rows(nodes.get("scenarios"))
        if len(rows) > SCENARIOS_LIMIT:
            message = f"{len(rows)} scenarios are too many"
            self._problems.add(f"{source}:1", "pack-value", message, f"at most {SCENARIOS_LIMIT}")
            return []
        places: dict[str, str] = {}
        scenarios = []
        for cells, place in rows:
            number = cells["id"].text if "id" in cells else ""
            if number in places:
                message = f"{number} is the id of two scenarios; the other one: {places[number]}"
                self._problems.add(place, "pack-id-twice", message)
            elif number:
                places[number] = place
            scenario = read_scenario(cells, origins.get(number, {}), place, self._problems)
            scenarios += [] if scenario is None else [scenario]
        self._refuse_strays(scenarios, places, origins)
        return scenarios

    def _find_rows(self, node: Node | None) -> tuple[str, list[tuple[Cells, str]]]:
        """The file that holds the scenarios, and the scenarios as written."""
        if isinstance(node, Sequence):
            if not node.items:
                self._problems.add(f"{self._name}:{node.line}", "pack-value", "there is no scenario in it")
            return self._name, rows_of_list(node, self._name, self._problems)
        found = self._find_beside(node, "`scenarios`")
        text = None if found is None else self._read(*found)
        if found is None or text is None:
            return self._name, []
        rows = list(rows_of_csv(text, found[1], self._problems))
        if not rows:
            self._problems.add(f"{found[1]}:1", "pack-csv", "there is no scenario in it")
        return found[1], rows

    def _refuse_strays(
        self, scenarios: list[Scenario], places: dict[str, str], origins: dict[str, Cells]
    ) -> None:
        """Names of scenarios that are not there, which can be told when all are read."""
        for one in scenarios:
            if one.near == one.id or (one.near and one.near not in places):
                what = "its own near-pair" if one.near == one.id else f"near {one.near}, which is not there"
                self._problems.add(places[one.id], "pack-near", f"{one.id} is {what}")
        for number in [number for number in origins if number not in places]:
            place = next((cell.place for cell in origins[number].values()), f"{self._name}:1")
            self._problems.add(place, "pack-origin", f"the pack has no scenario {shown(number)}")

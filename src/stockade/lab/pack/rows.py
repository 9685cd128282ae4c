"""The rows of a pack: scenarios as written, from a list in the pack file or from a CSV file beside it.

Here only their form is read: which key has which text on which line. What the texts mean says `read.py`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from stockade.lab.pack.keys import ORIGIN_KEYS, SCENARIO_KEYS, Key
from stockade.lab.pack.read import Cell, Problems, refuse_unknown
from stockade.policy.problems import shown
from stockade.policy.yaml_tree import Mapping, Node, Scalar, Sequence

Cells = dict[str, Cell]
ALL_KEYS = (*SCENARIO_KEYS, *ORIGIN_KEYS)


def read_keys(
    node: Mapping, keys: tuple[Key, ...], what: str, source: str, problems: Problems
) -> dict[str, Node]:
    """The values of known keys; what is unknown or stands twice is noted."""
    known = {key.name for key in keys}
    values: dict[str, Node] = {}
    for key, value in node.entries:
        place = f"{source}:{key.line}"
        if key.value not in known:
            refuse_unknown(problems, place, key.value, keys, what)
        elif key.value in values:
            problems.add(place, "pack-key-twice", f"`{key.value}` stands twice", "keep one of them")
        else:
            values[key.value] = value
    return values


def rows_of_list(node: Sequence, source: str, problems: Problems) -> list[tuple[Cells, str]]:
    """The scenarios of a list, each with the place at which it begins."""
    rows = []
    for item in node.items:
        if isinstance(item, Mapping):
            rows.append((cells_of(item, ALL_KEYS, "a scenario", source, problems), f"{source}:{item.line}"))
        else:
            problems.add(f"{source}:{item.line}", "pack-yaml", "a scenario has keys and values")
    return rows


def read_origins(node: Node | None, source: str, problems: Problems) -> dict[str, Cells]:
    """What `origins` says of scenarios, by their ids."""
    if node is None:
        return {}
    if not isinstance(node, Mapping):
        problems.add(f"{source}:{node.line}", "pack-yaml", "`origins` has ids and their origins")
        return {}
    origins: dict[str, Cells] = {}
    for key, value in node.entries:
        place = f"{source}:{key.line}"
        if key.value in origins:
            problems.add(place, "pack-key-twice", f"{shown(key.value)} stands twice", "keep one of them")
        elif not isinstance(value, Mapping) or not value.entries:
            problems.add(place, "pack-yaml", "an origin has `from`, `sni` or `carries`")
        else:
            origins[key.value] = cells_of(value, ORIGIN_KEYS, "an origin", source, problems)
    return origins


def cells_of(node: Mapping, keys: tuple[Key, ...], what: str, source: str, problems: Problems) -> Cells:
    """The texts of one mapping; a list of addresses is joined as CSV has it."""
    kinds = {key.name: key.kind for key in keys}
    cells: Cells = {}
    for name, value in read_keys(node, keys, what, source, problems).items():
        written = _texts(value)
        if isinstance(value, Scalar) or (kinds[name] == "addresses" and written is not None):
            cells[name] = Cell(";".join(written or ()), f"{source}:{value.line}")
        else:
            problems.add(f"{source}:{value.line}", "pack-value", f"{name} is one value")
    return cells


def _texts(node: Node) -> list[str] | None:
    """One value, or a list of such; None for anything else."""
    items = node.items if isinstance(node, Sequence) else (node,)
    texts = [item.value for item in items if isinstance(item, Scalar)]
    return texts if len(texts) == len(items) else None


def rows_of_csv(text: str, source: str, problems: Problems) -> Iterator[tuple[Cells, str]]:
    """The scenarios of a CSV file (RFC 4180, a header first), each with the place at which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    before = 0
    try:
        header = next(reader, [])
        columns = _read_header(header, source, problems)
        before = reader.line_num
        for row in reader:
            place, before = f"{source}:{before + 1}", reader.line_num
            if len(row) == len(header):
                yield {name: Cell(row[index], place) for name, index in columns.items()}, place
            else:
                message = f"{len(row)} values for {len(header)} columns"
                problems.add(place, "pack-csv", message, "quote a value with a comma in it")
    except csv.Error as error:
        problems.add(f"{source}:{before + 1}", "pack-csv", str(error))


def _read_header(header: list[str], source: str, problems: Problems) -> dict[str, int]:
    columns: dict[str, int] = {}
    for index, name in enumerate(header):
        if name not in {key.name for key in ALL_KEYS}:
            refuse_unknown(problems, f"{source}:1", name, ALL_KEYS, "a scenario")
        elif name in columns:
            problems.add(f"{source}:1", "pack-key-twice", f"the column {name} stands twice")
        else:
            columns[name] = index
    return columns

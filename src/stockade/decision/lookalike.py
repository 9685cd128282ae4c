"""Names that imitate a listed one.

Nothing here permits or denies anything: a lookalike is simply not on the list. It is
found so that the record says which listed name it imitates. The cost of a miss depends
on the length of the name asked for, not on the number of rules, since everything is a
dictionary access. Names that look alike to the eye or are one edit away need an index of
their own; a policy that lists more than `MAX_DRAWN_NAMES` names goes without it, and
only imitations by prefix, suffix and apex are then named.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from itertools import islice

from stockade.decision.name_index import parents_of
from stockade.policy.model import HostPattern

MAX_DRAWN_NAMES = 4096  # about 20 index entries a name: 80,000 strings, some 10 MB and 40 ms
MAX_LABELS = 12  # of a name asked for; longer ones are looked at in their last labels
MAX_EDIT_LENGTH = 64
MIN_SQUASHED = 6  # "app" and "docs" are words that everybody uses, not somebody's name
MIN_EDITED_LABEL = 5

# Letters of other scripts that look like ASCII ones (a small part of Unicode TR 39), and
# the ASCII pairs that do in most fonts.
_CONFUSABLE = str.maketrans(
    "аеорсухіјѕԁһӏкмтвнԛԝɡıοαρνυκτɩ" + "0135",
    "aeopcyxijsdhlkmtbhqwgioapvuktl" + "oles",
)
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))


class LookalikeIndex:
    """The listed names, filed so that imitations of them are found."""

    def __init__(self, listed: Iterable[HostPattern]) -> None:
        patterns = list(dict.fromkeys(listed))
        self._texts = {pattern.name: pattern.text for pattern in patterns if pattern.name}
        self._roots = {pattern.name for pattern in patterns if pattern.is_wildcard}
        self._skeletons: dict[str, str] = {}
        self._edits: dict[str, str] = {}
        if len(self._texts) <= MAX_DRAWN_NAMES:
            for name in self._texts:
                self._draw_in(name)

    def _draw_in(self, name: str) -> None:
        for skeleton in _skeletons_of(name):
            self._skeletons.setdefault(skeleton, name)
        for form in _deletions(name):
            self._edits.setdefault(form, name)

    def find(self, name: str) -> str | None:
        """The listed pattern that an unlisted name imitates, as written in the policy, or None."""
        if name in self._roots:
            return f"*.{name}"
        for find in (self._find_inside, self._find_glued, self._find_drawn, self._find_edited):
            listed = find(name)
            if listed is not None:
                return self._texts[listed]
        return None

    def _find_inside(self, name: str) -> str | None:
        """``docs.python.org.evil.example``: the listed name, with a stranger's behind it."""
        labels = name.split(".")[-MAX_LABELS:]
        for end in range(len(labels) - 1, 1, -1):
            for start in range(end - 1):
                run = ".".join(labels[start:end])
                if run in self._texts:
                    return run
        return None

    def _find_glued(self, name: str) -> str | None:
        """``evildocs.python.org``: the listed name, with no dot before it."""
        for start in range(1, len(name) - MIN_SQUASHED):
            if name[start - 1] != "." and name[start:] in self._texts and "." in name[start:]:
                return name[start:]
        return None

    def _find_drawn(self, name: str) -> str | None:
        """``docs-python.example``, also with a Cyrillic letter: the same picture to the eye."""
        for skeleton in _skeletons_of(name):
            listed = self._skeletons.get(skeleton)
            if listed is not None and listed != name and not name.endswith("." + listed):
                return listed
        return None

    def _find_edited(self, name: str) -> str | None:
        """``docs.pyton.org``: one letter more, less, another, or two swapped."""
        for candidate in islice((name, *parents_of(name)), MAX_LABELS):
            if len(candidate) > MAX_EDIT_LENGTH or candidate.count(".") < 1:
                continue
            for form in _deletions(candidate):
                listed = self._edits.get(form)
                if listed is not None and _is_slip(candidate, listed):
                    return listed
        return None


def _skeletons_of(name: str) -> Iterator[str]:
    """What the eye keeps of a name: all of it, and all of it but the last label."""
    drawn = _draw(name)
    for form in (drawn, drawn.rpartition(".")[0]):
        squashed = form.replace(".", "").replace("-", "").replace("_", "")
        if len(squashed) >= MIN_SQUASHED:
            yield squashed


def _draw(name: str) -> str:
    if "xn--" in name:
        shown = ".".join(_decode_label(label) for label in name.split("."))
        parts = unicodedata.normalize("NFKD", shown)
        name = "".join(char for char in parts if not unicodedata.combining(char))
    drawn = name.translate(_CONFUSABLE)
    for pair, letter in _PAIRS:
        drawn = drawn.replace(pair, letter)
    return drawn


def _decode_label(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    try:
        return label[4:].encode().decode("punycode")
    except UnicodeError:
        return label


def _deletions(name: str) -> Iterator[str]:
    """The name and every form of it with one character less; two names meet in one if they are close."""
    if len(name) <= MAX_EDIT_LENGTH:
        yield name
        yield from (name[:at] + name[at + 1 :] for at in range(len(name)))


def _is_slip(candidate: str, listed: str) -> bool:
    """True if one edit parts the names and a reader would miss it.

    Numbered hosts (``node1``, ``node2``) and short labels (``app``, ``api``) differ by one
    character on purpose.
    """
    if candidate == listed:
        return False
    start = 0
    while candidate[start : start + 1] == listed[start : start + 1]:
        start += 1
    mine, theirs = candidate[start:], listed[start:]
    while mine and theirs and mine[-1] == theirs[-1]:
        mine, theirs = mine[:-1], theirs[:-1]
    is_swap = len(mine) == 2 and mine == theirs[::-1]
    if not is_swap and (len(mine) > 1 or len(theirs) > 1):
        return False
    if (mine + theirs).isdigit():
        return False
    label_start = listed.rfind(".", 0, start) + 1
    label = listed[label_start:].partition(".")[0]
    return len(label) >= MIN_EDITED_LABEL or "." in mine + theirs

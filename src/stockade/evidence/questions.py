"""The eight review questions, and where in the record a reviewer finds what to answer with."""

from __future__ import annotations

from msgspec import Struct


class Question(Struct, frozen=True):
    """One question: its key in an answers file, its words, what it asks for here."""

    key: str
    text: str
    help: str


QUESTIONS = (
    Question("what", "What?", "What exactly is claimed, and about which versions of what? (points 1 and 2)"),
    Question("why", "Why?", "Why does the claim matter: whom would a leak hurt, and how? (point 1)"),
    Question("how", "How?", "How was it tried, and is each attempt one that works without the layer? (4, 6)"),
    Question("what-if", "What if?", "What if one layer were missing: what would still hold? (the matrix)"),
    Question(
        "why-not", "Why not?", "Why not a simpler way, or another one: what speaks against it? (4 and 5)"
    ),
    Question(
        "how-proved", "How can I prove it?", "Which observation would convince somebody who doubts it? (6, 8)"
    ),
    Question("where-breaks", "Where can it break?", "What is not covered, and what would you try next? (7)"),
    Question(
        "what-learned", "What have I learned?", "What do you know now that you did not, and what follows?"
    ),
)

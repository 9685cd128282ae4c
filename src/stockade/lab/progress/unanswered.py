"""Which scenarios a learner has before him and must not be told about."""

from __future__ import annotations

from stockade.lab.progress.database import Database


def is_unanswered(database: Database, learner: str, scenario: str) -> bool:
    """The scenario stands in an open round or drill of the learner, without an answer yet."""
    return bool(
        database.rows(
            "SELECT 1 FROM steps s JOIN rounds r ON r.id = s.round "
            "LEFT JOIN answers a ON a.round = s.round AND a.place = s.place "
            "WHERE r.learner = ? AND s.scenario = ? AND r.ended_ms IS NULL AND a.decision IS NULL LIMIT 1",
            learner,
            scenario,
        )
    )


def list_unanswered(database: Database, learner: str) -> frozenset[str]:
    """Every scenario of an open round of the learner that has no answer yet; an open drill is no round."""
    rows = database.rows(
        "SELECT s.scenario FROM steps s JOIN rounds r ON r.id = s.round "
        "LEFT JOIN answers a ON a.round = s.round AND a.place = s.place "
        "WHERE r.learner = ? AND r.kind = 'round' AND r.ended_ms IS NULL AND a.decision IS NULL",
        learner,
    )
    return frozenset(row["scenario"] for row in rows)

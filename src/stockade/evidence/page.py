"""The record for people: one page that needs nothing beside it, no network and no script to be read.

Whatever a payload, a page or a ledger said is foreign: Jinja2 escapes all of it, and a content policy
lets nothing run or load but the page's own filter, should an escape ever be forgotten.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stockade.evidence.limits import LEDGER_NOTE
from stockade.evidence.pictures import Album
from stockade.evidence.points import Environment, UnderTest
from stockade.evidence.questions import QUESTIONS
from stockade.evidence.statement import (
    Circumstances,
    describe_model,
    make_claim,
    summarize,
    tell_reproduction,
    tell_verdict,
)
from stockade.evidence.views import view_attack
from stockade.prove.technique import Technique
from stockade.prove.trial import Judged

PAGE_NAME = "index.html"
# How the cells of the matrix are colored; the word stands in each as well.
_MATRIX_MARKS = {"arrived": "leaked", "blocked": "blocked", "unclear": "inconclusive"}
_TEMPLATES = Path(__file__).parent / "templates"


def render_page(
    folder: Path,
    techniques: Sequence[Technique],
    judged: Sequence[Judged],
    circumstances: Circumstances,
    subject: UnderTest,
    environment: Environment,
    *,
    signer: str,
    matrix: Mapping[str, Any] | None = None,
) -> str:
    """The page as text.

    Args:
        folder: Where the screenshots and transcripts are that trials name.
        signer: Fingerprint of the key that will sign.
        matrix: The ablation's (`prove.ablation.Matrix.to_json`), if there is one.
    """
    from jinja2 import Environment as Templates
    from jinja2 import FileSystemLoader, StrictUndefined

    templates = Templates(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        finalize=show,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["prose"] = mark_code
    script, style = ((_TEMPLATES / name).read_text() for name in ("filter.js", "page.css"))
    album = Album(folder)
    by_id = {one.id: one for one in techniques}
    attacks = [view_attack(by_id[one.judgement.id], one) for one in judged]
    files = {
        one.judgement.id: {
            "control": album.open_files(one.trial.control),
            "attempt": album.open_files(one.trial.attempt),
        }
        for one in judged
    }
    return templates.get_template("page.html.jinja").render(
        attacks=attacks,
        files=files,
        groups=list(dict.fromkeys(one.group for one in attacks)),
        claim=make_claim(techniques, judged),
        verdict=tell_verdict(techniques, judged, circumstances),
        reproduction=tell_reproduction(circumstances),
        summary=summarize(circumstances),
        circumstances=circumstances,
        subject=subject,
        environment=environment,
        questions=QUESTIONS,
        matrix=matrix,
        marks=_MATRIX_MARKS,
        signer=signer,
        script=script,
        script_hash=_hash_source(script),
        style=style,
        style_hash=_hash_source(style),
        model=describe_model(circumstances),
        ledger_note=LEDGER_NOTE,
    )


def show(value: Any) -> Any:
    """Foreign text with its invisible, control and direction characters written out (`\\u202e`)."""
    if not isinstance(value, str) or hasattr(value, "__html__") or value.isprintable():
        return value
    return "".join(one if one.isprintable() or one in "\n\t" else ascii(one)[1:-1] for one in value)


def mark_code(text: str) -> Any:
    """Prose of the catalogue: what stands between backticks as code, everything escaped."""
    from markupsafe import Markup

    parts = str(show(text)).split("`")
    if len(parts) % 2 == 0:  # one backtick has no partner
        return show(text)
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(part) if number % 2 else part for number, part in enumerate(parts))


def _hash_source(text: str) -> str:
    """As a content policy names what may stand inline (CSP level 3, section 2.3.1)."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

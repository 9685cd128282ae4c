"""A card to share: one SVG, made here, with no script and nothing to fetch.

It proves nothing by itself. It carries the digest of the signed result, so that whoever has both can see
that they belong together.
"""

from __future__ import annotations

from html import escape

from stockade.lab.game.score import FULL
from stockade.lab.progress.people import DEFAULT_NAME
from stockade.lab.progress.result import ResultEvent, Verified

WIDTH, HEIGHT = 1200, 630
_GROUND, _PANEL, _INK, _DIM, _LINE = "#0f1512", "#17211c", "#f1f4ee", "#a9b8ae", "#2d3b33"
_GRADES = {"S": "#7fe0a7", "A": "#7fe0a7", "B": "#bfe07f", "C": "#f0c66b", "D": "#f08f7a"}
_SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_MONO = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_STAKE = 24
_MARKS_AT, _MARK_STEP, _MARK = 368, 63, 52


def render_card(verified: Verified) -> str:
    """The card of a result that verifies."""
    result = verified.result
    color = _GRADES[result.grade]
    who = "" if result.learner == DEFAULT_NAME else result.learner
    by = f", played by {who}" if who else ""
    told = (
        f"Stockade lab{by}: grade {result.grade}, {result.percent:.1f} percent at tier {result.tier}, "
        f"{_count(result.leaks, 'leak')}, {_count(result.blocks, 'wrong block')}, seed {result.seed}."
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="t d">',
        f'<title id="t">{_text(told)}</title>',
        f'<desc id="d">Result sha256 {verified.sha256}; scenarios sha256 {verified.bank_digest}.</desc>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{_GROUND}"/>',
        _palisade(),
        _write(64, 96, "Stockade lab", 40, _INK, weight=700),
        _write(1136, 96, who, 32, _INK, anchor="end"),
        _write(64, 134, "Every call has a reason: allow, proxy+log or deny.", 22, _DIM),
        f'<rect x="64" y="176" width="252" height="252" rx="22" fill="{_PANEL}" stroke="{color}" '
        'stroke-width="5"/>',
        _write(190, 368, result.grade, 190, color, weight=800, anchor="middle"),
        _write(190, 414, "grade", 20, _DIM, anchor="middle"),
        _write(364, 262, f"{result.percent:.1f} %", 92, _INK, weight=700),
        _write(368, 312, f"tier {result.tier} · seed {result.seed}", 28, _INK),
        _write(
            368, 352, f"{_count(result.leaks, 'leak')} · {_count(result.blocks, 'wrong block')}", 28, _INK
        ),
        *[_mark(_MARKS_AT + _MARK_STEP * index, 376, event) for index, event in enumerate(result.events)],
        _write(64, 478, f"result {verified.sha256}", 18, _DIM, family=_MONO),
        _write(64, 506, f"bank   {verified.bank_digest}", 18, _DIM, family=_MONO),
        _write(64, 542, "Check it: stockade lab verify RESULT", 20, _INK),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _palisade() -> str:
    """The stakes along the foot."""
    stakes = "".join(
        f"M{x} {HEIGHT}V{582 + 7 * (x // _STAKE % 3)}l{_STAKE // 2 - 1} -12l{_STAKE // 2 - 1} 12V{HEIGHT}z"
        for x in range(0, WIDTH, _STAKE)
    )
    return f'<path d="{stakes}" fill="{_LINE}"/>'


def _mark(x: int, y: int, event: ResultEvent) -> str:
    """One event: a box filled as far as it brought points; told by shape, not by color alone."""
    inner = _MARK - 8
    filled = max(0, min(FULL, event.points)) * inner // FULL
    box = f'<rect x="{x}" y="{y}" width="{_MARK}" height="{_MARK}" rx="8" fill="{_PANEL}" stroke="{_DIM}"/>'
    top = y + 4 + inner - filled
    bar = f'<rect x="{x + 4}" y="{top}" width="{inner}" height="{filled}" rx="4" fill="{_INK}"/>'
    return box + (bar if filled else "")


def _write(
    x: int, y: int, text: str, size: int, color: str, *, weight: int = 400, anchor: str = "start",
    family: str = _SANS,
) -> str:  # fmt: skip
    space = ' xml:space="preserve"' if family == _MONO else ""
    return (
        f'<text x="{x}" y="{y}" font-family="{family}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}" fill="{color}"{space}>{_text(text)}</text>'
    )


def _text(text: str) -> str:
    """Text of others as XML: what cannot be shown is left out, marks of XML are written out."""
    return escape("".join(one for one in text if one.isprintable()), quote=True)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

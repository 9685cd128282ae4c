/** The policy card that every event is judged under: its lines, numbered, with a search that leads from hit to hit. */

import { html, useEffect, useMemo, useRef, useState } from "./vendor/preact-htm.js";
import { api } from "./api.js";
import { useKeys } from "./keys.js";
import { Foreign } from "./text.js";

let held = null; // one card a server start: loaded once for all rounds
const load = () => (held ??= api.card().catch((error) => {
  held = null;
  throw error;
}));

export function useCard() {
  const [card, setCard] = useState(null);
  useEffect(() => void load().then(setCard, () => {}), []);
  return card;
}

const isNarrow = () => matchMedia("(max-width: 1099px)").matches;

/**
 * @param {{event: number, line: number | null, last: number | null}} props the event, and the lines to lead to once an
 * answer or a hint names them; they go before what is searched for
 */
export function CardPanel({ event, line, last }) {
  const card = useCard();
  const [open, setOpen] = useState(!isNarrow());
  const [words, setWords] = useState("");
  const [hit, setHit] = useState(0);
  const [searching, setSearching] = useState(false);
  const lines = useRef(null);
  const summary = useRef(null);
  const hits = useMemo(() => findLines(card?.lines ?? [], words), [card, words]);
  useEffect(() => setHit(0), [words]);
  useEffect(() => setSearching(!line && Boolean(words.trim())), [event, line]);
  const target = searching ? hits[hit] : line;
  const end = searching ? target : last ?? line;
  useEffect(() => {
    if (!open || !lines.current) return;
    if (target) showLine(lines.current, target);
    else if (!words.trim()) showStart(lines.current, card.lines);
  }, [target, open, card, event]);
  useKeys((key) => {
    if (key !== "p") return false;
    setOpen(true);
    requestAnimationFrame(() => lines.current?.focus());
    return true;
  });
  const search = (text) => {
    setWords(text);
    setSearching(Boolean(text.trim()));
  };
  const step = (by) => {
    if (!hits.length) return;
    if (searching) setHit((hit + by + hits.length) % hits.length);
    setSearching(true);
  };
  const onKey = (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    step(event.shiftKey ? -1 : 1);
  };
  return html`<details class="panel card" open=${open} onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary ref=${summary}><h2>Policy card</h2> <span class="soft">${card?.name ?? ""}</span></summary>
    ${card && html`<div class="find"><label><span>Find</span> <input type="search" value=${words} autocomplete="off" spellcheck="false"
        onInput=${(event) => search(event.currentTarget.value)} onKeyDown=${onKey} /></label>
      <button type="button" class="quiet" onClick=${() => step(-1)} disabled=${!hits.length} aria-label="Hit before">↑</button>
      <button type="button" class="quiet" onClick=${() => step(1)} disabled=${!hits.length} aria-label="Next hit">↓</button>
      <span class="soft" role="status">${words.trim() ? (hits.length ? `${hit + 1} of ${hits.length}, line ${hits[hit]}` : "no hit") : ""}</span></div>
    <div class="lines" tabindex="0" role="region" aria-label="Lines of the policy card" ref=${lines}>
      <${Lines} lines=${card.lines} hits=${hits} target=${target} end=${end} /></div>`}
  </details>`;
}

function Lines({ lines, hits, target, end }) {
  const marked = new Set(hits);
  return html`<ol>${lines.map((text, at) => html`<li class=${`${target && at + 1 >= target && at + 1 <= end ? "target" : ""} ${marked.has(at + 1) ? "hit" : ""} ${text.trimStart().startsWith("#") ? "comment" : ""}`}
    ><span class="number" aria-hidden="true">${at + 1}</span><code><${Foreign} text=${narrowed(text)} /></code></li>`)}</ol>`;
}

/** Columns that its author lined up with spaces would tear in a narrow panel; the indentation stays. */
const narrowed = (text) => text.replace(/(?<=\S)[ ]{2,}/g, "  ");

function findLines(lines, words) {
  const wanted = words.trim().toLowerCase();
  return wanted ? lines.flatMap((text, at) => (text.toLowerCase().includes(wanted) ? [at + 1] : [])) : [];
}

/** Scroll the card alone: the page stays where the learner reads. */
function showLine(box, number) {
  const line = box.querySelectorAll("li")[number - 1];
  if (line) box.scrollTop = line.offsetTop - box.clientHeight / 3;
}

/** Where the rules begin. What the author wrote above, for authors, is there for who scrolls up. */
function showStart(box, lines) {
  const line = box.querySelectorAll("li")[lines.findIndex((one) => one.startsWith("rules:"))];
  box.scrollTop = line ? line.offsetTop : 0;
}

/** The three answers: decision, risk, control. Native radio groups, so that Tab, arrows and screen readers just work. */

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { ControlGroup } from "./controls.js";
import { keyHint, useKeys } from "./keys.js";
import { cut, Foreign } from "./text.js";
import { riskKey, shapeOf } from "./words.js";

export const emptyAnswer = { decision: null, risk: null, control: null };
export const isWhole = (answer) => Boolean(answer.decision && answer.risk && answer.control);

export function AnswerForm({ words, attempt, answer, choose, submit, busy, hint }) {
  const form = useRef(null);
  useKeys((key) => {
    const decision = words.decisions[Number(key) - 1];
    if (decision && "123".includes(key)) return choose("decision", decision.word), true;
    const risk = words.risks.find((one) => riskKey(one.word) === key);
    if (risk) return choose("risk", risk.word), true;
    if (key === "c") return focusControls(form.current), true;
    return false;
  });
  const missing = ["decision", "risk", "control"].filter((part) => !answer[part]);
  const send = (event) => {
    event.preventDefault();
    if (missing.length) form.current.querySelector(`input[name=${missing[0]}]`).focus();
    else submit();
  };
  useEnter(form, missing, submit);
  return html`<form class="panel answer" ref=${form} onSubmit=${send} aria-label="Your call">
    <${Pinned} text=${attempt} />
    <fieldset class="decisions"><legend>Decision</legend><div class="row">${words.decisions.map((one, at) => html`<label class=${`choice ${one.word}`} title=${one.help}>
      <input type="radio" name="decision" value=${one.word} checked=${answer.decision === one.word} onChange=${() => choose("decision", one.word)} />
      ${keyHint(at + 1) && html`<kbd aria-hidden="true">${at + 1}</kbd>`}<svg class="shape" viewBox="0 0 16 16" aria-hidden="true">${shapeOf(one.word)}</svg>
      <span>${one.shown}</span></label>`)}</div><${Told} list=${words.decisions} chosen=${answer.decision} /></fieldset>
    <fieldset class="risks"><legend>Risk</legend><div class="row">${words.risks.map((one) => html`<label class="choice" title=${one.help}>
      <input type="radio" name="risk" value=${one.word} checked=${answer.risk === one.word} onChange=${() => choose("risk", one.word)} />
      ${keyHint(riskKey(one.word)) && html`<kbd aria-hidden="true">${riskKey(one.word)}</kbd>`}<span>${one.word}</span></label>`)}</div>
      <${Told} list=${words.risks} chosen=${answer.risk} /></fieldset>
    <${ControlGroup} controls=${words.controls} chosen=${answer.control} choose=${(word) => choose("control", word)} />
    <p class="actions send"><button class="primary" disabled=${busy}>Answer ${keyHint("e") && html`<kbd aria-hidden="true">Enter</kbd>`}</button>
      <span class="soft" id="missing">${missing.length ? `Still to choose: ${missing.join(", ")}` : "All three chosen"}</span>${hint}</p>
  </form>`;
}

/** The attempt in one line at the top of the window while its panel is scrolled away; for the eye alone, it is read there. */
function Pinned({ text }) {
  const [away, setAway] = useState(false);
  useEffect(() => {
    const line = document.querySelector(".event .request");
    if (!line) return undefined;
    const watch = new IntersectionObserver(([seen]) => setAway(!seen.isIntersecting && seen.boundingClientRect.top < 0));
    watch.observe(line);
    return () => watch.disconnect();
  }, [text]);
  return html`<div class="pinned" aria-hidden="true">${away && html`<p><code><${Foreign} text=${cut(text, 300)} /></code></p>`}</div>`;
}

/** What the chosen word means; its line is there before, so that nothing jumps. */
const Told = ({ list, chosen }) => html`<p class="help-line">${list.find((one) => one.word === chosen)?.help ?? ""}</p>`;

const focusControls = (form) => {
  const group = form.querySelector(".controls");
  (group.querySelector("input[type=radio]:checked") ?? group.querySelector("input[type=radio]"))?.focus();
};

/** Enter answers from anywhere on the page that has no use for it, once all three are chosen. */
function useEnter(form, missing, submit) {
  const latest = useRef();
  latest.current = missing.length ? null : submit;
  useListener("keydown", (event) => {
    if (event.key !== "Enter" || event.defaultPrevented || event.repeat || !latest.current || document.querySelector("dialog[open]")) return;
    if (event.target.closest("a, button, summary, textarea, input, select")) return;
    event.preventDefault();
    latest.current();
  });
}

function useListener(kind, act) {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    const listen = (event) => latest.current(event);
    document.addEventListener(kind, listen);
    return () => document.removeEventListener(kind, listen);
  }, []);
}

/** Drills: short practice without clock and grade, from what is due, what looks alike, what was missed. */

import { html, useState } from "./vendor/preact-htm.js";
import { api } from "./api.js";
import { Fault, useLab } from "./lab.js";
import { go } from "./router.js";
import { tellOtherTabs } from "./tabs.js";

const KINDS = [
  ["due", "Due now", "what the schedule says you are about to forget, then what you missed, then new ones"],
  ["near-pairs", "Near-pairs", "two events that look alike and differ in what decides, one after the other"],
  ["missed", "Missed", "only what you called wrong"],
];

export const startDrill = async (kind, refresh) => {
  const round = await api.startDrill(kind);
  await refresh();
  tellOtherTabs();
  go("round", round.id);
};

/** That there is nothing to drill is no fault. */
export function DrillFault({ error }) {
  if (error.code !== "nothing-to-drill") return html`<${Fault} error=${error} />`;
  return html`<p class="banner" role="alert">Nothing of this kind to drill now: a drill takes events that you have met or missed in a round.</p>`;
}

export function DrillButtons() {
  const { state, refresh } = useLab();
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState(null);
  const start = async (kind) => {
    setBusy(true);
    setFault(null);
    try {
      await startDrill(kind, refresh);
    } catch (error) {
      setFault(error);
    }
    setBusy(false);
  };
  return html`${fault && html`<${DrillFault} error=${fault} />`}<ul class="drills">${KINDS.map(([kind, text, help]) => html`<li><button type="button" disabled=${busy} onClick=${() => start(kind)}>
    ${text}${kind === "due" ? ` (${state.due})` : ""}</button><span>${help}</span></li>`)}</ul>`;
}

export function DrillPage() {
  return html`<main class="page" id="main"><h1>Drill</h1>
    <p class="lead">Up to ten events, without a clock and without a grade. Each answer moves the event in your schedule: right ones come back later and later.</p>
    <section class="panel" aria-label="Kinds of drill"><${DrillButtons} /></section></main>`;
}

/**
 * Controls, risks and decisions, each with its sentence and an example. The sentences come from the server
 * (game/words.py), so that help, buttons and this page cannot disagree.
 */

import { html } from "../vendor/preact-htm.js";
import { useLab } from "../lab.js";
import { cut, plain } from "../text.js";
import { VerdictMark } from "../words.js";
import { Contents } from "./prose.js";

const GROUPS = [
  {
    id: "reference-decisions",
    title: "Decisions",
    name: "decisions",
    intro: "What happens to the attempt.",
  },
  {
    id: "reference-controls",
    title: "Controls",
    name: "controls",
    intro: "The control is the protection that fits best. It is the control when:",
  },
  {
    id: "reference-risks",
    title: "Risks",
    name: "risks",
    intro: "What the attempt would lead to. It does not follow from the decision, nor the decision from it.",
  },
  {
    id: "reference-classes",
    title: "Kinds of places",
    name: "classes",
    intro: "What kind of place an attempt is about. You are not asked for it; the map and the debrief use it.",
  },
];

function Example({ example }) {
  return html`<div class="example">
    <p><span class="label">Example</span> ${example.event} (${example.phase}, ${example.identity}).</p>
    <p><code class="attempt">${cut(plain(example.attempt), 160)}</code></p>
    <p><${VerdictMark} verdict=${example.verdict} /> What gives it away: ${example.cue}.</p>
  </div>`;
}

function Word({ one, group }) {
  const id = `${group}-${one.word}`;
  return html`<section class="word" aria-labelledby=${id}>
    <h3 id=${id}><code>${one.word}</code>${one.shown !== one.word && html` <span class="shown">${one.shown}</span>`}</h3>
    <p>${one.help}</p>
    ${one.unless && html`<p class="unless"><span class="label">Not to be mistaken:</span> ${one.unless}</p>`}
    ${one.example && group !== "classes" && html`<${Example} example=${one.example} />`}
  </section>`;
}

export function ReferencePage() {
  const { words } = useLab().state;
  return html`<main class="page prose reference" id="main">
    <h1>Controls and risks</h1>
    <p class="lead">The words of an answer: ${words.decisions.length} decisions, ${words.controls.length} controls, ${words.risks.length} risks. The examples are from the bank, so you may meet them in a round.</p>
    <${Contents} sections=${GROUPS} page="#/reference" />
    ${GROUPS.map(
      (group) => html`<section key=${group.id} aria-labelledby=${group.id}>
        <h2 id=${group.id} tabindex="-1">${group.title}</h2>
        <p>${group.intro}</p>
        ${(words[group.name] ?? []).map((one) => html`<${Word} key=${one.word} one=${one} group=${group.name} />`)}
      </section>`,
    )}
  </main>`;
}

export { ReferencePage as Reference };

/** The guided half day: steps to tick, lines to copy, evidence to verify, eight questions, and a record to take home. */

import { html, useRef, useState } from "../vendor/preact-htm.js";
import { say } from "../announce.js";
import { api, links } from "../api.js";
import { saveAs } from "../kept.js";
import { Fault, useLab, useLoaded } from "../lab.js";
import { useLater } from "../later.js";
import { rich } from "./prose.js";

export function WorkshopPage() {
  const { value, error, again } = useLoaded(api.workshop, []);
  if (error && !value) {
    return html`<main class="page" id="main"><h1>Workshop</h1><${Fault} error=${error} again=${again} /></main>`;
  }
  if (!value) return html`<main class="page" id="main"><h1>Workshop</h1><p>Loading…</p></main>`;
  return html`<${HalfDay} loaded=${value} again=${again} />`;
}

export { WorkshopPage as Workshop };

function HalfDay({ loaded, again }) {
  const [fault, setFault] = useState(null);
  const done = loaded.steps.filter((step) => step.is_done).length;
  const tick = async (step, is_done) => {
    try {
      await api.saveWorkshop({ ticks: { [step.key]: is_done } });
      setFault(null);
      say(`${step.title}: ${is_done ? "done" : "open again"}. ${done + (is_done ? 1 : -1)} of ${loaded.steps.length} steps done.`);
    } catch (error) {
      setFault(error);
    }
    again();
  };
  const inside = {
    verify: html`<${VerifyFolder} evidence=${loaded.evidence} onVerified=${again} />`,
    review: html`<${Questions} questions=${loaded.questions} onSaved=${again} />`,
    record: html`<${TakeHome} loaded=${loaded} />`,
  };
  return html`<main class="page prose workshop" id="main">
    <h1>Workshop: a guided half day</h1>
    <p class="lead">Read, build a policy, attack it, verify the evidence, explain it aloud. At the end you have a signed record of your own. It takes about ${hours(loaded.minutes)}; what you tick and write is kept, so you may stop between two steps.</p>
    <p><progress max=${loaded.steps.length} value=${done} aria-label="Steps done"></progress> ${done} of ${loaded.steps.length} steps done</p>
    ${fault && html`<${Fault} error=${fault} />`}
    <ol class="half-day">
      ${loaded.steps.map((step) => html`<li key=${step.key}><${Step} step=${step} tick=${tick} inside=${inside[step.key]} /></li>`)}
    </ol>
  </main>`;
}

const hours = (minutes) => `${Math.floor(minutes / 60)} hours${minutes % 60 ? ` and ${minutes % 60} minutes` : ""}`;

function Step({ step, tick, inside }) {
  const title = `step-${step.key}`;
  return html`<section class=${step.is_done ? "panel is-done" : "panel"} aria-labelledby=${title}>
    <h2 id=${title}>${step.number}. ${step.title} <span class="minutes">${step.minutes} min</span></h2>
    <ul>${step.do.map((text) => html`<li>${rich(text)}</li>`)}</ul>
    ${step.page && html`<p><a href=${step.page}>${WHERE[step.page] ?? "Open the page"}</a></p>`}
    ${step.commands.length > 0 && html`<ul class="commands" aria-label="Commands">
      ${step.commands.map((one) => html`<li><${Command} ...${one} /></li>`)}</ul>`}
    <p><strong>You should see:</strong> ${rich(step.see)}</p>
    ${inside}
    <p><strong>It is done when:</strong> ${rich(step.done_when)}</p>
    <label class="switch"><input type="checkbox" checked=${step.is_done}
      onChange=${(event) => tick(step, event.currentTarget.checked)} /> ${step.title}: done</label>
  </section>`;
}

const WHERE = {
  "#/": "To the rounds",
  "#/policy": "To the policy page, which also saves the text as my-policy.yaml",
  "#/progress": "To your progress, with the gap log",
  "#/reference": "To the controls and risks",
};

function Command({ text, what }) {
  const line = useRef(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("Copied.");
    } catch {
      getSelection().selectAllChildren(line.current); // no clipboard here: it is marked, and can be copied by hand
      say("Marked; copy it with your keyboard.");
    }
  };
  return html`<div class="command"><code ref=${line}>${text}</code>
    <button type="button" class="quiet" aria-label=${`Copy: ${text}`} onClick=${copy}>Copy</button>
    <span>${what}</span></div>`;
}

function VerifyFolder({ evidence, onVerified }) {
  const [path, setPath] = useState(evidence);
  const [found, setFound] = useState(null);
  const [fault, setFault] = useState(null);
  const [busy, setBusy] = useState(false);
  const verify = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const said = await api.verifyWorkshop(path);
      setFound(said);
      setFault(null);
      say(said.verifies ? "The folder verifies." : "The folder does not verify.");
      onVerified();
    } catch (error) {
      setFound(null);
      setFault(error);
    }
    setBusy(false);
  };
  return html`<form class="folder" onSubmit=${verify}>
    <label for="evidence-folder">Folder of the evidence</label>
    <p class="help" id="evidence-help">A path on this machine; a relative one counts from where the lab was started.</p>
    <div class="row"><input id="evidence-folder" type="text" value=${path} required maxlength="4096" spellcheck="false" autocomplete="off"
      aria-describedby="evidence-help" onInput=${(event) => setPath(event.currentTarget.value)} />
    <button type="submit" disabled=${busy}>Verify</button></div>
    ${fault && html`<${Fault} error=${fault} />`}
    ${found && html`<div class=${found.verifies ? "outcome is-true" : "outcome is-false"}>
      <p><strong>${found.verifies ? "It verifies." : found.sealed ? "It does not verify." : "It is not finished."}</strong> Exit code ${found.exit_code}.</p>
      <pre class="lines" tabindex="0" role="region" aria-label="What verification says">${found.lines.join("\n")}</pre></div>`}
    ${!found && evidence && html`<p>Verified before, and used for your record: <code>${evidence}</code></p>`}
  </form>`;
}

function Questions({ questions, onSaved }) {
  const whole = questions.every((one) => one.note.trim());
  return html`<div class="questions">
    ${questions.map((one) => html`<${Question} key=${one.key} one=${one} onSaved=${onSaved} />`)}
    <button type="button" disabled=${!whole} onClick=${() => keepAnswers(questions)}>Save my answers as answers.json</button>
    ${!whole && html`<p class="help">All eight need an answer first.</p>`}
  </div>`;
}

/** For `stockade evidence review --answers`. */
function keepAnswers(questions) {
  const answers = Object.fromEntries(questions.map((one) => [one.key, one.note]));
  saveAs(`${JSON.stringify(answers, null, 2)}\n`, "answers.json");
}

function Question({ one, onSaved }) {
  const [text, setText] = useState(one.note);
  const [change, status] = useLater(async (note) => {
    await api.saveWorkshop({ notes: { [one.key]: note } });
    onSaved();
  });
  const id = `answer-${one.key}`;
  return html`<div class="question">
    <label for=${id}>${one.text}</label>
    <p class="help" id=${`${id}-help`}>${one.help}</p>
    <textarea id=${id} rows="3" maxlength="20000" value=${text} aria-describedby=${`${id}-help`}
      onInput=${(event) => {
        setText(event.currentTarget.value);
        change(event.currentTarget.value);
      }}></textarea>
    <p class="saved">${status}</p>
  </div>`;
}

function TakeHome({ loaded }) {
  const { state } = useLab();
  const [fault, setFault] = useState(null);
  const texts = Object.fromEntries(loaded.questions.map((one) => [one.key, `an answer to “${one.text}”`]));
  const names = { policy: "a policy of your own (step 3)", evidence: "evidence that this page has verified (step 6)", ...texts };
  if (loaded.missing.length > 0) {
    return html`<div class="missing"><p>The record still needs:</p><ul>${loaded.missing.map((key) => html`<li>${names[key] ?? key}</li>`)}</ul></div>`;
  }
  // Fetched and not linked: what is not right yet (a policy that does not load) is said here and not in a file.
  const download = async () => {
    try {
      const answer = await fetch(links.workshopRecord(), { cache: "no-store" });
      if (!answer.ok) throw await answer.json();
      saveAs(await answer.blob(), "my-half-day.json");
      setFault(null);
      say("Your record is saved.");
    } catch (error) {
      setFault({ message: error.message, hint: error.hint });
    }
  };
  return html`<div><p>It is signed for <strong>${state.learner.name}</strong>, with the key of this machine's user.</p>
    <p><button type="button" class="primary" onClick=${download}>Download my record</button></p>
    ${fault && html`<${Fault} error=${fault} />`}</div>`;
}

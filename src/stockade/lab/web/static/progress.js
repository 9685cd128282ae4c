/** What was played, what is due, what is missed most; take it along, or forget it. */

import { html, useState } from "./vendor/preact-htm.js";
import { say } from "./announce.js";
import { api, links } from "./api.js";
import { Confirm } from "./dialog.js";
import { DrillButtons } from "./drill.js";
import { Fault, useLab, useLoaded } from "./lab.js";
import { GapLog } from "./review.js";
import { href } from "./router.js";
import { fixed, Meaning, Sensitivity } from "./sensitivity.js";
import { tellOtherTabs } from "./tabs.js";
import { Foreign, shortAttempt } from "./text.js";
import { RiskMark } from "./words.js";

const loadAll = async () => {
  const [progress, gaps] = await Promise.all([api.progress(), api.gaps()]);
  return { progress, gaps };
};

export function ProgressPage() {
  const { state, refresh } = useLab();
  const { value, error, again } = useLoaded(loadAll, [state.learner.id]);
  const [fault, setFault] = useState(null);
  const [asking, setAsking] = useState(false);
  const reset = async () => {
    setAsking(false);
    try {
      await api.reset();
      await refresh();
      tellOtherTabs();
      again();
      say("Progress is reset.");
    } catch (refused) {
      setFault(refused);
    }
  };
  return html`<main class="page wide" id="main"><h1>Progress</h1>
    ${(error ?? fault) && html`<${Fault} error=${error ?? fault} />`}
    ${value && html`<${Overview} key=${state.learner.id} value=${value} />`}
    <section class="panel"><h2>Yours to keep</h2><p>All of it lies on this machine, under the name <strong>${state.learner.name}</strong>.</p>
      <p class="actions"><a class="button" href=${links.export()} download>Export</a>
        <button type="button" class="danger" onClick=${() => setAsking(true)}>Reset</button></p></section>
    ${fault && html`<${Fault} error=${fault} />`}
    ${asking && html`<${Confirm} title="Forget everything?" text=${`Rounds, schedule, notes, gaps, settings, the policy draft and the workshop of “${state.learner.name}” are removed from this machine. A file that you exported stays.`}
      yes="Forget everything" onYes=${reset} onNo=${() => setAsking(false)} />`}
  </main>`;
}

function Overview({ value: { progress, gaps } }) {
  return html`<div class="two">
      <section class="panel"><h2>How sharp, and which way you lean</h2><${Sensitivity} value=${progress.sensitivity} /><${PerRisk} list=${progress.per_risk} /><${Meaning} /></section>
      <section class="panel"><h2>Schedule</h2><${DrillButtons} />
        ${progress.cards.length > 0 && html`<details><summary>What comes back when</summary><ul class="plain-list">${progress.cards.map((one) => html`<li><span class="tag">${one.scenario}</span> <code>${shortAttempt(one.attempt ?? "")}</code> <span class="soft">${one.is_due ? "due" : day(one.due_at)}</span></li>`)}</ul></details>`}</section>
    </div>
    <div class="two"><${History} list=${progress.history} /><${MostMissed} list=${progress.most_missed} /></div>
    <${GapLog} from="progress" first=${gaps} />`;
}

function PerRisk({ list }) {
  if (!list.length) return null;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Per risk"><table><thead><tr><th scope="col">Risk</th><th scope="col" class="number">d′</th><th scope="col" class="number">c</th><th scope="col" class="number">To deny</th></tr></thead>
    <tbody>${list.map((one) => html`<tr><td><${RiskMark} risk=${one.risk} /></td><td class="number">${fixed(one.sensitivity.d_prime)}</td><td class="number">${fixed(one.sensitivity.bias)}</td><td class="number">${one.sensitivity.signals}</td></tr>`)}</tbody></table></div>`;
}

const STATUS = { open: "open", done: "done", "broken-off": "broken off" };

function History({ list }) {
  return html`<section class="panel history"><h2>Rounds and drills</h2>${list.length === 0 ? html`<p>None yet. <a href=${href()}>Play a round</a></p>` : html`
    <div class="scroll" tabindex="0" role="region" aria-label="Rounds and drills"><table><thead><tr><th scope="col">When</th><th scope="col">What</th><th scope="col">Grade</th><th scope="col" class="number">Percent</th><th scope="col"><span class="unseen">Open</span></th></tr></thead>
    <tbody>${list.map((one) => html`<tr><td>${day(one.started_at)}</td><td>${one.kind === "drill" ? "drill" : `tier ${one.tier}`}</td><td>${one.grade ?? STATUS[one.status]}</td><td class="number">${one.percent == null || one.kind === "drill" ? "–" : Number(one.percent).toFixed(1)}</td>
      <td><a href=${one.status === "open" ? href("round", one.id) : href("round", one.id, "debrief")} aria-label=${`Look at the ${one.kind} of ${day(one.started_at)}`}>look</a></td></tr>`)}</tbody></table></div>`}</section>`;
}

function MostMissed({ list }) {
  return html`<section class="panel"><h2>Missed most</h2>${list.length === 0 ? html`<p>Nothing yet.</p>` : html`<ul class="plain-list">${list.map((one) => html`<li><span class="tag">${one.scenario}</span> <code>${shortAttempt(one.attempt ?? "")}</code> <span class="soft">missed ${one.missed} of ${one.seen}</span><br /><${Foreign} text=${one.cue} /></li>`)}</ul>`}</section>`;
}

/** A time as this machine's people write it. */
const day = (when) => new Date(when).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

/** After a round: the grade and its reason, what leaked and what was blocked, how sharp the eye is, and what to do next. */

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { api, links } from "./api.js";
import { DrillFault, startDrill } from "./drill.js";
import { Explanation, headline } from "./feedback.js";
import { Fault, useLab, useLoaded, usePlaying } from "./lab.js";
import { EgressLog } from "./log.js";
import { RiskMap } from "./map.js";
import { NoRound } from "./play.js";
import { GapLog, Questions } from "./review.js";
import { answered } from "./round.js";
import { go, href } from "./router.js";
import { Meaning, Sensitivity } from "./sensitivity.js";
import { tellOtherTabs } from "./tabs.js";
import { Foreign, RequestLine, shortAttempt } from "./text.js";
import { RightMark, RiskMark, VerdictMark, wholeOf } from "./words.js";

export function DebriefPage({ id }) {
  const { state } = useLab();
  const { value: debrief, error, again } = useLoaded(() => api.debrief(id), [id]);
  const { value: round } = useLoaded(() => api.round(id), [id]);
  usePlaying(round?.kind);
  useEffect(() => void (document.title = "Debrief · Stockade lab"), []);
  if (!debrief || !round) {
    return html`<main class="page" id="main"><h1>Debrief</h1>${error && html`<${NoRound} error=${error} again=${again} />`}</main>`;
  }
  const attempts = new Map(round.events.map((one) => [one.index, one]));
  return html`<main class="page wide" id="main">
    <h1>Debrief</h1>
    <div class="debrief-top">
      <${Result} round=${round} debrief=${debrief} />
      <${ShareCard} round=${round} debrief=${debrief} />
      <div class="two">
        <${Rates} title="Leaks" none="None: nothing that should be denied got out." list=${debrief.leaks} />
        <${Rates} title="Wrong blocks" none="None: no needed work was stopped." list=${debrief.blocks} />
      </div>
    </div>
    <div class="two">
      <section class="panel"><h2>How sharp, and which way you lean</h2>
        <h3>This ${round.kind === "drill" ? "drill" : "round"}</h3><${Sensitivity} value=${debrief.sensitivity} />
        <h3>All that you answered</h3><${Sensitivity} value=${debrief.overall.sensitivity} /><${Meaning} /></section>
      <${ByClass} list=${debrief.by_class} />
    </div>
    <${Missed} list=${debrief.missed} attempts=${attempts} />
    <${Next} round=${round} missed=${debrief.missed.length} grade=${debrief.grade} />
    <div class="drawn"><${EgressLog} round=${round} open=${() => go("round", id)} /><${RiskMap} round=${round} words=${state.words} /></div>
    <${Questions} id=${id} questions=${debrief.questions} missed=${debrief.missed.length} /><${GapLog} from=${id} first=${debrief.gap_log} />
  </main>`;
}

function Result({ round, debrief }) {
  const isDrill = round.kind === "drill";
  const calls = answered(round);
  const right = calls.filter((one) => wholeOf(one.feedback.right) === true).length;
  return html`<section class="panel result">
    ${debrief.grade && html`<p class="grade" aria-label=${`Grade ${debrief.grade}`}>${debrief.grade}</p>`}
    <div><h2>${isDrill ? `Drill: ${right} of ${calls.length} all right` : `Tier ${round.tier}: ${debrief.percent == null ? "" : `${Number(debrief.percent).toFixed(1)} %`}`}</h2>
      ${debrief.why_grade && html`<p>${debrief.why_grade}</p>`}
      <p class="soft">${isDrill ? "A drill has no points and no grade; best" : `${debrief.points} points, best`} streak ${round.best_streak}. Seed <code>${round.seed}</code>, bank <code>${round.bank_digest.slice(0, 12)}</code>.</p></div>
  </section>`;
}

function ShareCard({ round, debrief }) {
  if (round.status !== "done" || round.kind === "drill") return null;
  return html`<section class="panel share"><h2>Your result</h2>
    <img src=${links.shareCard(round.id)} width="320" height="168" alt=${`Share card: tier ${round.tier}, grade ${debrief.grade}, ${debrief.percent} percent`} />
    <p class="actions"><a class="button" href=${links.result(round.id)} download>Signed result</a>
      <a class="button" href=${links.shareCard(round.id)} download=${`stockade-lab-${round.id}.svg`}>Share card</a></p>
    <p class="note">Made on this machine and sent nowhere. <code>stockade lab verify</code> checks the result.</p></section>`;
}

function Rates({ title, none, list }) {
  return html`<section class="panel"><h2>${title} <span class="count-tag">${list.length}</span></h2>
    ${list.length ? html`<ul class="plain-list">${list.map((one) => html`<li><code>${shortAttempt(one.attempt)}</code>
      <span class="soft"> event ${one.index + 1}</span><br /><${Foreign} text=${one.cue} /></li>`)}</ul>` : html`<p>${none}</p>`}</section>`;
}

const AXES = { risk: "Risk", control: "Control", class: "Destination" };

function ByClass({ list }) {
  const missed = list.filter((one) => one.right < one.total);
  return html`<section class="panel"><h2>Missed classes</h2>${missed.length === 0 ? html`<p>None in this round.</p>` : html`
    <p class="soft">Of which kinds you had all three parts right, and how many there were.</p>
    <div class="by-class">${Object.entries(AXES).map(([axis, name]) => html`<section><h3>${name}</h3><ul class="plain-list">${missed.filter((one) => one.axis === axis).map((one) => html`<li>
      <span>${axis === "risk" ? html`<${RiskMark} risk=${one.word} />` : html`<code>${one.word}</code>`}</span> <span class="number">${one.right} of ${one.total}</span></li>`)}</ul></section>`)}</div>`}</section>`;
}

function Missed({ list, attempts }) {
  return html`<section class="panel"><h2>Again, what was missed <span class="count-tag">${list.length}</span></h2>
    ${list.length === 0 && html`<p>Nothing: all parts of all events were right.</p>`}
    ${list.map((one) => {
      const attempt = attempts.get(one.index)?.attempt ?? "";
      return html`<details class="missed"><summary><${RightMark} value=${wholeOf(one.right)} whole /> <span>Event ${one.index + 1}</span> <code>${shortAttempt(attempt)}</code></summary>
        <p><strong>${headline(one)}.</strong> You said <${VerdictMark} verdict=${one.answer.decision} />, <${RiskMark} risk=${one.answer.risk} />, <code>${one.answer.control}</code>;
          the key is <${VerdictMark} verdict=${one.key.decision} />, <${RiskMark} risk=${one.key.risk} />, <code>${one.key.control}</code>.</p>
        <${RequestLine} text=${attempt} /><${Explanation} feedback=${one} /></details>`;
    })}</section>`;
}

/** What to do next: what was missed, else the next tier after a good grade, else the same again. */
function Next({ round, missed, grade }) {
  const { state, refresh } = useLab();
  const [fault, setFault] = useState(null);
  const [busy, setBusy] = useState(false);
  const isDrill = round.kind === "drill";
  const higher = !isDrill && "SA".includes(grade ?? "-") && state.tiers.some((one) => one.tier === round.tier + 1);
  const start = async (act) => {
    setBusy(true);
    setFault(null);
    try {
      await act();
    } catch (error) {
      setFault(error);
    }
    setBusy(false);
  };
  const play = async (tier) => {
    const fresh = await api.startRound(tier);
    await refresh();
    tellOtherTabs();
    go("round", fresh.id);
  };
  const ways = [
    missed > 0 && ["Drill what you missed", () => startDrill("missed", refresh)],
    higher && [`Next round, tier ${round.tier + 1}`, () => play(round.tier + 1)],
    isDrill ? ["Next drill", () => startDrill("due", refresh)] : [`${higher ? "Another" : "Next"} round, tier ${round.tier}`, () => play(round.tier)],
  ].filter(Boolean);
  return html`<section class="panel" aria-label="What next">
    <p class="actions">${ways.map(([text, act], at) => html`<button key=${text} type="button" class=${at ? "" : "primary"} disabled=${busy} onClick=${() => start(act)}>${text}</button>`)}
      <a class="button" href=${href()}>To the start</a></p>
    ${fault && html`<${DrillFault} error=${fault} />`}</section>`;
}

/** What is said at once after an answer: which parts are right, what gives it away, why, and on what it rests. */

import { html, useLayoutEffect, useRef } from "./vendor/preact-htm.js";
import { keyHint } from "./keys.js";
import { RunIt } from "./live.js";
import { href } from "./router.js";
import { Foreign, ForeignLines, RequestLine, Sentence } from "./text.js";
import { RightMark, RiskMark, VerdictMark, shown, wholeOf } from "./words.js";

export function Feedback({ round, feedback, next, isLast }) {
  const title = useRef(null);
  useLayoutEffect(() => title.current.focus(), []);
  return html`<section class="panel feedback" aria-labelledby="feedback-title">
    <div class="event-head"><h2 id="feedback-title" tabindex="-1" ref=${title}><${RightMark} value=${wholeOf(feedback.right)} whole /> <span class="headline">${headline(feedback)}</span></h2>
      <p class="actions">${isLast
        ? html`<a class="button primary" href=${href("round", round.id, "debrief")}>Debrief ${keyHint("n") && html`<kbd aria-hidden="true">n</kbd>`}</a>`
        : html`<button type="button" class="primary" onClick=${next}>Next event ${keyHint("n") && html`<kbd aria-hidden="true">n</kbd>`}</button>`}</p></div>
    <${Parts} feedback=${feedback} />
    <${Explanation} feedback=${feedback} />
    <${RunIt} what=${{ round: round.id, index: feedback.index }} live=${feedback.live} note=${feedback.live_note} answer=${feedback.key} />
  </section>`;
}

/** The one sentence: a leak and a wrong block are named as such. */
export function headline({ right, answer, key }) {
  if (wholeOf(right) === true) return "All three parts";
  if (right.decision === false) {
    return key.decision === "deny" ? "This was a leak: it should have been denied" : "This was a wrong block: the work needs it";
  }
  const off = [right.risk !== true && "the risk", right.control !== true && "the control"].filter(Boolean);
  const start = right.decision === true ? "The decision is right" : `It passes, but the card says ${shown(key.decision)}`;
  return off.length ? `${start}; ${off.join(" and ")} ${off.length > 1 ? "are" : "is"} not right` : start;
}

/** On a narrow page the rows become blocks, which makes browsers forget that it is a table: so the roles are written out. */
function Parts({ feedback: { answer, key, right, points } }) {
  const rows = [
    ["Decision", html`<${VerdictMark} verdict=${answer.decision} />`, html`<${VerdictMark} verdict=${key.decision} />`, right.decision, points.decision],
    ["Risk", html`<${RiskMark} risk=${answer.risk} />`, html`<${RiskMark} risk=${key.risk} />`, right.risk, points.risk],
    ["Control", html`<code>${answer.control}</code>`, html`<code>${key.control}</code>`, right.control, points.control],
  ];
  const extra = [points.bonus && `${signed(points.bonus)} for speed`, points.hints && `${signed(-points.hints)} for hints`].filter(Boolean).join(", ");
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Your answer and the key"><table class="parts" role="table"><caption class="unseen">Your answer and the key</caption>
    <thead role="rowgroup"><tr role="row">${["Part", "Your answer", "Key", "Result", "Points"].map((name) => html`<th scope="col" role="columnheader" class=${name === "Points" ? "number" : ""}>${name}</th>`)}</tr></thead>
    <tbody role="rowgroup">${rows.map(([part, given, wanted, value, got]) => html`<tr role="row"><th scope="row" role="rowheader">${part}</th><td role="cell" data-label="you">${given}</td><td role="cell" data-label="key">${wanted}</td>
      <td role="cell"><${RightMark} value=${value} /></td><td role="cell" class="number">${signed(got)}</td></tr>`)}</tbody>
    <tfoot role="rowgroup"><tr role="row"><th scope="row" role="rowheader" colspan="4">Together${extra && html` <span class="soft">(${extra})</span>`}</th><td role="cell" class="number"><strong>${signed(points.total)}</strong></td></tr></tfoot></table></div>`;
}

export const signed = (number) => (number > 0 ? `+${number}` : String(number).replace("-", "−"));

/** The cue first: what to look at next time. */
export function Explanation({ feedback }) {
  const { cue, why, source, event, engine, key, rests_on: rests, technique, near, scenario } = feedback;
  return html`<div class="explanation">
    <dl>
      <dt>What decides</dt><dd class="cue"><${Foreign} text=${cue} /></dd>
      <dt>Why</dt><dd><${Sentence} text=${why} /></dd>
      <dt>What was tried</dt><dd><${Foreign} text=${event} />${technique && technique !== "none" && html`<br /><span class="soft">technique</span> <span class="tag">${technique}</span>`}</dd>
      <dt>It rests on</dt><dd><${RestsOn} rests=${rests} /></dd>
      <dt>The engine says</dt><dd><${VerdictMark} verdict=${engine.verdict} /> <code>${engine.reason}</code> <${Sentence} text=${engine.why} />
        ${engine.verdict !== key.decision && html`<p class="soft">It says so of the line alone. What decides is inside, and the key goes by that.</p>`}</dd>
      <dt>Source</dt><dd><${Foreign} text=${source} /> <span class="soft">(${scenario})</span></dd>
    </dl>
    ${near && html`<section class="near"><h3>Its near-pair <span class="soft">${near.scenario}</span></h3><${RequestLine} text=${near.attempt} label="Attempt of the near-pair" />
      ${near.answers.length > 0 && html`<p><span class="soft">The name resolves to</span> <code><${Foreign} text=${near.answers.join(", ")} /></code></p>`}
      <p><span class="tag">${near.phase}</span> <span class="tag">${near.identity}</span> <${VerdictMark} verdict=${near.key.decision} /> <${RiskMark} risk=${near.key.risk} /> <code>${near.key.control}</code></p>
      <p><${Sentence} text=${near.difference} /></p></section>`}
  </div>`;
}

const lineOf = ({ line, last }) => (last > line ? `Lines ${line} to ${last} of the policy card` : `Line ${line} of the policy card`);

function RestsOn({ rests }) {
  if (!rests) return html`<span>no single rule</span>`;
  if (rests.line) return html`<p>${lineOf(rests)}</p><pre class="quoted"><code><${ForeignLines} text=${rests.text} /></code></pre>`;
  return html`<code>${rests.rule}</code>${rests.text && html` <${Sentence} text=${rests.text} />`}`;
}

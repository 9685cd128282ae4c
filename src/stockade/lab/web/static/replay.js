/** What a replay of the bank gave: two numbers, never added up, and each row behind them. */

import { html } from "./vendor/preact-htm.js";
import { Foreign, RequestLine, shortAttempt } from "./text.js";
import { RiskMark, VerdictMark } from "./words.js";

export function Replay({ replay }) {
  return html`<section class="panel replay" aria-labelledby="replay-title"><h2 id="replay-title">The bank under your policy</h2>
    <dl class="numbers-of"><div><dt>Leaks</dt><dd class=${replay.leaks.length ? "bad" : ""}>${replay.leaks.length}</dd></div>
      <div><dt>Breakages</dt><dd class=${replay.breakages.length ? "bad" : ""}>${replay.breakages.length}</dd></div>
      <div><dt>Right</dt><dd>${replay.right} <small>of ${replay.total}</small></dd></div>
      ${replay.grade_word && html`<div><dt>Grade</dt><dd>${replay.grade_word}</dd></div>`}</dl>
    <p class="soft">A leak lets out what should be denied; a breakage denies what the work needs. ${replay.waiting?.length > 0 && html`${replay.waiting.length} events are not counted: their key needs a look inside TLS, which the line alone cannot show. `}${Math.round(replay.ms)} ms.</p>
    <div class="two"><${Rows} title="Leaks" rows=${replay.leaks} none="Nothing leaks." /><${Rows} title="Breakages" rows=${replay.breakages} none="Nothing is broken." /></div>
  </section>`;
}

function Rows({ title, rows, none }) {
  return html`<section><h3>${title}</h3>${rows.length === 0 ? html`<p>${none}</p>` : rows.map((one) => html`<details class="missed" key=${one.id}>
    <summary><span class="tag">${one.id}</span> <span>${one.phase}${one.identity === "grader" ? ", grader" : ""}</span> <code>${shortAttempt(one.attempt)}</code></summary>
    <${RequestLine} text=${one.attempt} />
    <p>Your policy: <${VerdictMark} verdict=${verdictOf(one.got)} /> by <code><${Foreign} text=${one.rule ?? "no rule"} /></code>. The key: <${VerdictMark} verdict=${verdictOf(one.key)} />${one.key?.risk && html` <${RiskMark} risk=${one.key.risk} />`}${one.key?.control && html` <code>${one.key.control}</code>`}.</p>
    <p><${Foreign} text=${one.why ?? ""} /></p></details>`)}</section>`;
}

const verdictOf = (one) => (typeof one === "string" ? one : one?.decision ?? one?.verdict);

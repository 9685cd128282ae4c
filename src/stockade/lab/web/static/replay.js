/** What a replay of the bank gave: leaks and breakages, never added up, and each row behind them. */

import { html } from "./vendor/preact-htm.js";
import { Foreign, RequestLine, shortAttempt } from "./text.js";
import { VerdictMark } from "./words.js";

/** @param {{replay: any, go: (line: number) => void}} props `go` leads to a line of the policy */
export function Replay({ replay, go }) {
  const { denied, needed } = replay.score;
  return html`<section class="panel replay" aria-labelledby="replay-title"><h2 id="replay-title" tabindex="-1">The bank under your policy</h2>
    <dl class="numbers-of"><${Count} name="Leaks" number=${replay.leaks.length} of=${denied.total} bad=${replay.leaks.length > 0} />
      <${Count} name="Breakages" number=${replay.breakages.length} of=${needed.total} bad=${replay.breakages.length > 0} />
      <div><dt>Grade</dt><dd>${replay.grade_word}</dd></div></dl>
    ${replay.isOld && html`<p class="banner" role="status">The text has changed since: replay it again.</p>`}
    ${replay.why_grade !== `${replay.grade_word}.` && html`<p>${replay.why_grade}</p>`}
    <p class="soft">The bank does not try everything: an S needs no <code>credential:</code> and no rule about bodies, which a policy for real work should have.</p>
    <p class="soft">A leak lets out what should be denied; a breakage denies what the work needs. ${replay.waiting.length > 0 &&
      html`${replay.waiting.length} events are not counted: their key needs a look inside TLS, which the line alone cannot show. `}${Math.round(replay.ms)} ms.</p>
    <div class="two"><${Rows} title="Leaks" rows=${replay.leaks} none="Nothing leaks." go=${go} />
      <${Rows} title="Breakages" rows=${replay.breakages} none="Nothing is broken." go=${go} /></div>
    ${replay.unwatched.length > 0 && html`<${Rows} title="Passed, but the other way" rows=${replay.unwatched} go=${go}
      help="It may pass; the key wants it under record and it passes straight, or the reverse." />`}
  </section>`;
}

const Count = ({ name, number, of, bad }) => html`<div><dt>${name}</dt><dd class=${bad ? "bad" : ""}>${number}${" "}<small>of ${of}</small></dd></div>`;

function Rows({ title, rows, none, help, go }) {
  return html`<section><h3>${title} <span class="count-tag">${rows.length}</span></h3>${help && html`<p class="soft">${help}</p>`}${rows.length === 0 && html`<p>${none}</p>`}
    ${rows.map((one) => html`<details class="missed" key=${one.id}>
      <summary><span class="tag">${one.id}</span> <span>${one.phase}${one.identity === "grader" ? ", grader" : ""}</span> <code>${shortAttempt(one.attempt)}</code></summary>
      <${RequestLine} text=${one.attempt} />
      ${one.answers.length > 0 && html`<p>The name resolves to <code>${one.answers.join(", ")}</code>.</p>`}
      <p>Your policy: <${VerdictMark} verdict=${one.got} /> by ${one.line ? html`<button type="button" class="link" onClick=${() => go(one.line)}>line ${one.line}</button>` : html`<code>${yours(one.rule)}</code>`}
        ${" "}(<code>${one.reason}</code>). The key: <${VerdictMark} verdict=${one.key} />.</p>
      <p><${Foreign} text=${yours(one.why)} /></p></details>`)}</section>`;
}

/** The learner has no file: the text in the editor is meant. */
export const yours = (text) => text?.replace(/\bpolicy\.yaml:(\d+)/g, "your policy, line $1");

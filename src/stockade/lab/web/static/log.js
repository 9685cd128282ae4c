/** The live egress log: a line for each event, as it is decided. */

import { html } from "./vendor/preact-htm.js";
import { answered } from "./round.js";
import { Breakable, shortAttempt } from "./text.js";
import { RightMark, VerdictMark, wholeOf } from "./words.js";

export function EgressLog({ round, current, open }) {
  const rows = answered(round);
  return html`<section class="panel log" aria-labelledby="log-title"><h2 id="log-title">Egress log</h2>
    ${rows.length === 0 && html`<p class="soft">Fills with each call that you make.</p>`}
    <div class="scroll" tabindex=${rows.length ? 0 : undefined} role="region" aria-label="Lines of the egress log" aria-live="polite" aria-relevant="additions">
      ${rows.length > 0 && html`<table><thead><tr><th scope="col">No.</th><th scope="col" class="number">Took</th><th scope="col">Phase</th><th scope="col">Attempt</th><th scope="col">You</th><th scope="col">Key</th><th scope="col">Result</th></tr></thead>
      <tbody>${rows.map(({ event, feedback }) => html`<tr key=${event.index} class=${event.index === current ? "current" : ""}>
        <td><button type="button" class="link" onClick=${() => open(event.index)} aria-label=${`Look at event ${event.index + 1} again`}>${event.index + 1}</button></td>
        <td class="number">${seconds(feedback.answer.ms)}</td><td>${event.phase}</td><td class="attempt"><code><${Breakable} text=${shortAttempt(event.attempt)} /></code></td>
        <td><${VerdictMark} verdict=${feedback.answer.decision} /></td><td><${VerdictMark} verdict=${feedback.key.decision} /></td>
        <td><${RightMark} value=${wholeOf(feedback.right)} whole /></td></tr>`)}</tbody></table>`}
    </div></section>`;
}

const seconds = (ms) => (ms == null ? "–" : `${(ms / 1000).toFixed(1)} s`);

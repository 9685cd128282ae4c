/**
 * Destination by risk, drawn as the round goes on: a shape for each event (circle allow, diamond proxy, square deny),
 * filled where the decision was right, hollow where not, with the event's number. The table says the same.
 */

import { html, useState } from "./vendor/preact-htm.js";
import { answered } from "./round.js";
import { Breakable, shortAttempt } from "./text.js";
import { riskKey, RightMark, RiskMark, shapeOf, VerdictMark } from "./words.js";

const LEFT = 108, TOP = 46, COLUMN = 74, MARK = 26, PER_LINE = 3;

export function RiskMap({ round, words }) {
  const [asTable, setAsTable] = useState(false);
  const rows = answered(round);
  return html`<section class="panel map" aria-labelledby="map-title"><div class="event-head"><h2 id="map-title">Destination by risk</h2>
      ${rows.length > 0 && html`<button type="button" class="quiet" aria-pressed=${asTable} onClick=${() => setAsTable(!asTable)}>Show as table</button>`}</div>
    ${rows.length === 0 ? html`<p class="soft">Each answered event is drawn where it belongs: what kind of place, and which risk.</p>`
      : asTable ? html`<${MapTable} rows=${rows} />` : html`<${Grid} rows=${rows} risks=${words.risks.map((one) => one.word)} /><${Legend} />`}
  </section>`;
}

function Grid({ rows, risks }) {
  const classes = [...new Set(rows.map((one) => one.feedback.key.class))].sort();
  const cell = (place, risk) => rows.filter(({ feedback: { key } }) => key.class === place && key.risk === risk);
  const heights = classes.map((place) => 10 + MARK * Math.max(1, ...risks.map((risk) => Math.ceil(cell(place, risk).length / PER_LINE))));
  const tops = heights.map((_, at) => TOP + heights.slice(0, at).reduce((sum, one) => sum + one, 0));
  const width = LEFT + COLUMN * risks.length, height = TOP + heights.reduce((sum, one) => sum + one, 0) + 1;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Map, destination by risk">
    <svg class="grid" viewBox=${`0 0 ${width} ${height}`} role="img" aria-label=${sayMap(rows)}>
      ${risks.map((risk, at) => html`<g class="column"><text x=${LEFT + COLUMN * (at + 0.5)} y="13" text-anchor="middle" class="key">${(riskKey(risk) ?? "").toUpperCase()}</text>
        ${halves(risk).map((part, line) => html`<text x=${LEFT + COLUMN * (at + 0.5)} y=${27 + 12 * line} text-anchor="middle">${part}</text>`)}
        <line x1=${LEFT + COLUMN * at} x2=${LEFT + COLUMN * at} y1=${TOP} y2=${height} /></g>`)}
      ${classes.map((place, at) => html`<g class="row"><line x1="0" x2=${width} y1=${tops[at]} y2=${tops[at]} /><text x=${LEFT - 8} y=${tops[at] + heights[at] / 2 + 4} text-anchor="end">${place}</text>
        ${risks.map((risk, column) => cell(place, risk).map((one, number, all) => html`<${Mark} one=${one} ...${spot(column, tops[at], heights[at], number, all.length)} />`))}</g>`)}
    </svg></div>`;
}

/** Up to three marks side by side, round the cell's middle. */
function spot(column, top, height, number, count) {
  const line = Math.floor(number / PER_LINE), inLine = Math.min(PER_LINE, count - line * PER_LINE), lines = Math.ceil(count / PER_LINE);
  return {
    x: LEFT + COLUMN * (column + 0.5) + MARK * ((number % PER_LINE) - inLine / 2),
    y: top + height / 2 + MARK * (line - lines / 2),
  };
}

function Mark({ one: { event, feedback }, x, y }) {
  const is = { true: "right", half: "half", false: "wrong" }[String(feedback.right.decision)];
  return html`<svg x=${x + 1} y=${y + 1} width=${MARK - 2} height=${MARK - 2} viewBox="-.5 -.5 17 17" class=${`spot ${feedback.key.decision} ${is}`}>
    ${shapeOf(feedback.key.decision)}<text x="8" y="11" text-anchor="middle">${event.index + 1}</text></svg>`;
}

function halves(risk) {
  const at = risk.indexOf("-");
  return at < 0 ? [risk] : [risk.slice(0, at + 1), risk.slice(at + 1)];
}

function sayMap(rows) {
  const right = rows.filter((one) => one.feedback.right.decision === true).length;
  return `${rows.length} ${rows.length === 1 ? "event" : "events"} by destination and risk, ${right} with the right decision. The table has the same.`;
}

const Legend = () => html`<ul class="legend">${["allow", "proxy", "deny"].map((verdict) => html`<li><${VerdictMark} verdict=${verdict} /></li>`)}
  <li>filled: right, dashed: half right, hollow: wrong decision</li></ul>`;

function MapTable({ rows }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Destination by risk as a table"><table><thead><tr><th scope="col">No.</th><th scope="col">Destination</th><th scope="col">Risk</th><th scope="col">Call</th><th scope="col">Decision</th><th scope="col">Attempt</th></tr></thead>
    <tbody>${rows.map(({ event, feedback }) => html`<tr><td>${event.index + 1}</td><td>${feedback.key.class}</td><td><${RiskMark} risk=${feedback.key.risk} /></td><td><${VerdictMark} verdict=${feedback.key.decision} /></td>
      <td><${RightMark} value=${feedback.right.decision} /></td><td class="attempt"><code><${Breakable} text=${shortAttempt(event.attempt)} /></code></td></tr>`)}</tbody></table></div>`;
}

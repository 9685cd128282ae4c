/** Three hints an event: the first free, the others paid from the event's points. */

import { html } from "./vendor/preact-htm.js";
import { keyHint } from "./keys.js";
import { Foreign } from "./text.js";

const price = (cost) => (cost ? `costs ${cost} points` : "free");

export function Hints({ hints, take }) {
  return html`<div class="hints">
    ${hints.taken.length > 0 && html`<ol aria-label="Hints taken">${hints.taken.map((one) => html`<li><${Foreign} text=${one.text} /> <span class="soft">(${one.cost ? `−${one.cost}` : "free"})</span></li>`)}</ol>`}
    ${hints.left > 0
      ? html`<button type="button" class="quiet" onClick=${take}>Hint ${hints.taken.length + 1}, ${price(hints.next_cost)} ${keyHint("h") && html`<kbd aria-hidden="true">h</kbd>`}</button>`
      : html`<p class="soft">All three hints are taken.</p>`}
  </div>`;
}

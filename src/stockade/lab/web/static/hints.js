/** Three hints an event: the first free, the others paid from the event's points, and only when asked for twice. */

import { html, useRef, useState } from "./vendor/preact-htm.js";
import { say } from "./announce.js";
import { keyHint, useKeys } from "./keys.js";
import { Foreign } from "./text.js";

const price = (cost) => (cost ? `costs ${cost} points` : "free");

export function HintsTaken({ hints }) {
  if (!hints.taken.length) return null;
  return html`<div class="hints"><ol aria-label="Hints taken">${hints.taken.map((one) => html`<li><${Foreign} text=${one.text} /> <span class="soft">(${one.cost ? `−${one.cost}` : "free"})</span></li>`)}</ol></div>`;
}

/** The first press on a paid one tells the price, the second takes it. */
export function HintButton({ hints, take }) {
  const [isAsking, setAsking] = useState(false);
  const button = useRef(null);
  const press = () => {
    if (hints.next_cost && !isAsking) {
      button.current.focus();
      setAsking(true);
      say(`Press again to take hint ${hints.taken.length + 1} for minus ${hints.next_cost} points.`);
      return;
    }
    setAsking(false);
    take();
  };
  useKeys((key) => key === "h" && hints.left > 0 && (press(), true));
  if (!hints.left) return html`<span class="hints soft">All three hints are taken.</span>`;
  return html`<span class="hints"><button type="button" class="quiet" ref=${button} onClick=${press} onBlur=${() => setAsking(false)}>
    ${isAsking ? `Press again for −${hints.next_cost}` : `Hint ${hints.taken.length + 1}, ${price(hints.next_cost)}`} ${keyHint("h") && html`<kbd aria-hidden="true">h</kbd>`}</button></span>`;
}

/** d′ and c of signal detection, in plain words. The signal is an event to deny, the response a denial. */

import { html } from "./vendor/preact-htm.js";

/** @param {{value: {d_prime: number | null, bias: number | null, n: number}}} props */
export function Sensitivity({ value }) {
  if (!value || value.d_prime == null) return html`<p>Not enough answers of both kinds yet.</p>`;
  return html`<p class="measure"><span><abbr title="sensitivity">d′</abbr> <strong>${fixed(value.d_prime)}</strong></span>
      <span><abbr title="bias">c</abbr> <strong>${fixed(value.bias)}</strong></span> <span class="soft">${value.n} events</span></p>
    <p>${sharpness(value.d_prime)} ${lean(value.bias)}${value.n < 20 ? html` <span class="soft">With ${value.n} events this is a first impression; it steadies with more.</span>` : ""}</p>`;
}

export const fixed = (number) => (number == null ? "–" : number.toFixed(2).replace("-", "−"));

/** 0 is guessing; about 1 is three in four right without a lean, about 2 five in six, 3 fourteen in fifteen. */
function sharpness(d) {
  if (d < 0.5) return "You do not tell the two apart yet: this is close to guessing.";
  if (d < 1.5) return "You tell harmful from legitimate better than chance, with many mix-ups.";
  if (d < 2.5) return "You tell them apart well, with some mix-ups.";
  return "You tell them apart very well.";
}

function lean(c) {
  if (c < -0.3) return "You lean towards denying: when in doubt you stop work that was needed.";
  if (c > 0.3) return "You lean towards letting through: when in doubt things leak.";
  return "You lean to neither side.";
}

/** d′ and c of signal detection, in plain words. The signal is an event to deny, the response a denial. */

import { html } from "./vendor/preact-htm.js";

/** @param {{value: {d_prime: number | null, bias: number | null, n: number, signals: number, hits: number, others: number, false_alarms: number, note: string}}} props */
export function Sensitivity({ value }) {
  return html`${value.d_prime != null && html`<p class="measure"><span><abbr title="sensitivity">d′</abbr> <strong>${fixed(value.d_prime)}</strong></span>
      <span><abbr title="bias">c</abbr> <strong>${fixed(value.bias)}</strong></span>
      <span class="soft">You denied ${value.hits} of the ${value.signals} that had to be denied, and ${value.false_alarms} of the ${value.others} legitimate ones.</span></p>`}
    <p>${value.note}</p>`;
}

/** What the two numbers are, once a page. */
export const Meaning = () => html`<p class="note">d′ says how well you tell what to deny from what is legitimate: 0 is guessing, 2 is good. c says which way you lean
  in doubt: below 0 towards denying, above 0 towards letting through.</p>`;

export const fixed = (number) => (number == null ? "–" : number.toFixed(2).replace("-", "−"));

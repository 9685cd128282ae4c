/** The keyboard scheme. */

import { html } from "./vendor/preact-htm.js";
import { Dialog } from "./dialog.js";
import { Fault, useLab, useSettings } from "./lab.js";
import { groupControls, riskKey } from "./words.js";

const Key = ({ children }) => html`<kbd>${children}</kbd>`;

export function HelpDialog({ onClose }) {
  const { state } = useLab();
  return html`<${Dialog} title="Keys" onClose=${onClose} wide>
    <${ShortcutSwitch} />
    <div class="key-columns">
      <section><h3>Anywhere in a round</h3><dl class="keys">
        <dt><${Key}>1<//> <${Key}>2<//> <${Key}>3<//></dt><dd>allow, proxy+log, deny</dd>
        ${state.words.risks.map((one) => html`<dt><${Key}>${riskKey(one.word)}<//></dt><dd>risk ${one.word}</dd>`)}
        <dt><${Key}>c<//></dt><dd>go to the controls, where the letters choose one</dd>
        <dt><${Key}>/<//></dt><dd>filter the controls by typing; Enter takes the first</dd>
        <dt><${Key}>Esc<//></dt><dd>from the controls back to the decision</dd>
        <dt><${Key}>Enter<//></dt><dd>answer, once all three are chosen</dd>
        <dt><${Key}>h<//></dt><dd>take a hint</dd>
        <dt><${Key}>r<//></dt><dd>run it, after the answer</dd>
        <dt><${Key}>n<//></dt><dd>next event, after the answer</dd>
        <dt><${Key}>p<//></dt><dd>go to the policy card</dd>
        <dt><${Key}>?<//></dt><dd>this list</dd>
      </dl></section>
      <section><h3>Inside the controls</h3><dl class="keys">
        ${groupControls(state.words.controls).flatMap((group) => group.controls).map((one) => html`
          <dt><${Key}>${one.key}<//></dt><dd>${one.word}</dd>`)}
      </dl></section>
    </div>
    <p>Everything works without these keys as well: Tab moves on, the arrow keys choose inside a group.</p>
  <//>`;
}

export function ShortcutSwitch() {
  const { settings, change, fault } = useSettings();
  return html`<label class="switch"><input type="checkbox" checked=${settings.shortcuts === "on"}
    onChange=${(event) => change({ shortcuts: event.currentTarget.checked ? "on" : "off" })} /> Single-key shortcuts</label>
    ${fault && html`<${Fault} error=${fault} />`}`;
}

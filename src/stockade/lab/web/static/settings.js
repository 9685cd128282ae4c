/** Clock, shortcuts, light or dark: the learner's, kept on the server. */

import { html } from "./vendor/preact-htm.js";
import { Dialog } from "./dialog.js";
import { ShortcutSwitch } from "./help.js";
import { Fault, useSettings } from "./lab.js";

const CLOCKS = [["on", "On", "as the tier says"], ["double", "Double", "twice the time"], ["off", "Off", "no clock and no bonus"]];
const THEMES = [["system", "As the system"], ["light", "Light"], ["dark", "Dark"]];

export function SettingsDialog({ onClose }) {
  return html`<${Dialog} title="Settings" onClose=${onClose}>
    <${ClockChoice} /><${Choice} name="theme" title="Colors" words=${THEMES} /><${ShortcutSwitch} />
  <//>`;
}

export function ClockChoice() {
  return html`<${Choice} name="clock" title="Clock of tiers 2 to 4" words=${CLOCKS} note="It holds for rounds that you begin from now on." />`;
}

function Choice({ name, title, words, note }) {
  const { settings, change, fault } = useSettings();
  return html`<fieldset class="choices"><legend>${title}</legend>
    ${words.map(([word, text, help]) => html`<label key=${word}><input type="radio" name=${name} value=${word}
      checked=${settings[name] === word} onChange=${() => change({ [name]: word })} /><span>${text}${help && html`<small>${help}</small>`}</span></label>`)}
    ${note && html`<p class="note">${note}</p>`}
    ${fault && html`<${Fault} error=${fault} />`}</fieldset>`;
}

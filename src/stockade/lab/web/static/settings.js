/** Clock, shortcuts, light or dark. */

import { html, useState } from "./vendor/preact-htm.js";
import { api } from "./api.js";
import { Dialog } from "./dialog.js";
import { ShortcutSwitch } from "./help.js";
import { keep } from "./kept.js";
import { Fault, useLab } from "./lab.js";
import { tellOtherTabs } from "./tabs.js";

const CLOCKS = [["on", "On", "as the tier says"], ["double", "Double", "twice the time"], ["off", "Off", "no clock and no bonus"]];

export function SettingsDialog({ onClose }) {
  return html`<${Dialog} title="Settings" onClose=${onClose}>
    <${ClockChoice} /><${ThemeChoice} /><${ShortcutSwitch} />
  <//>`;
}

export function ClockChoice() {
  const { state, refresh } = useLab();
  const [fault, setFault] = useState(null);
  const choose = async (clock) => {
    try {
      await api.setClock(clock);
      setFault(null);
      tellOtherTabs();
    } catch (error) {
      setFault(error);
    }
    await refresh();
  };
  return html`<fieldset class="choices"><legend>Clock of tiers 2 to 4</legend>
    ${CLOCKS.map(([word, text, help]) => html`<label><input type="radio" name="clock" value=${word}
      checked=${state.settings.clock === word} onChange=${() => choose(word)} /><span>${text}<small>${help}</small></span></label>`)}
    <p class="note">It holds for rounds that you begin from now on.</p>
    ${fault && html`<${Fault} error=${fault} />`}</fieldset>`;
}

function ThemeChoice() {
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? "system");
  const choose = (word) => {
    setTheme(word);
    if (word === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = word;
    try {
      localStorage.setItem("stockade-theme", word);
    } catch {
      keep("theme", null); // storage forbidden: it lasts until the page is left
    }
  };
  return html`<fieldset class="choices"><legend>Colors</legend>
    ${[["system", "As the system"], ["light", "Light"], ["dark", "Dark"]].map(([word, text]) => html`<label>
      <input type="radio" name="theme" checked=${theme === word} onChange=${() => choose(word)} /><span>${text}</span></label>`)}
  </fieldset>`;
}

/** Several people learn on one machine; each has an own progress. This is no login: it keeps notes apart, not secrets. */

import { html, useState } from "./vendor/preact-htm.js";
import { say } from "./announce.js";
import { api } from "./api.js";
import { Dialog } from "./dialog.js";
import { Fault, useLab } from "./lab.js";
import { go } from "./router.js";
import { tellOtherTabs } from "./tabs.js";

export function LearnerDialog({ onClose }) {
  const { state, refresh } = useLab();
  const [name, setName] = useState("");
  const [fault, setFault] = useState(null);
  const take = async (wanted) => {
    try {
      await api.switchLearner(wanted);
      await refresh();
      tellOtherTabs();
      say(`Now learning: ${wanted}`);
      onClose();
      go();
    } catch (error) {
      setFault(error);
    }
  };
  const submit = (event) => {
    event.preventDefault();
    if (name.trim()) take(name.trim());
  };
  return html`<${Dialog} title="Who is learning?" onClose=${onClose}>
    <ul class="plain-list">${state.learners.map((one) => html`<li><button type="button" onClick=${() => take(one.name)}
      aria-pressed=${one.id === state.learner.id}>${one.name}</button></li>`)}</ul>
    <form onSubmit=${submit} class="inline">
      <label>Somebody new <input value=${name} maxlength="40" autocomplete="off" onInput=${(event) => setName(event.currentTarget.value)} /></label>
      <button>Add</button></form>
    ${fault && html`<${Fault} error=${fault} />`}
    <p class="note">Progress is kept apart by name on this machine. It is no login.</p>
  <//>`;
}

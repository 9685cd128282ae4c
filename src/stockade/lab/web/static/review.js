/** The eight review questions with notes, and the gap log: what one found out that one does not know yet. */

import { html, useState } from "./vendor/preact-htm.js";
import { say } from "./announce.js";
import { api } from "./api.js";
import { Fault } from "./lab.js";
import { useLater } from "./later.js";

export function Questions({ id, questions, missed }) {
  return html`<section class="panel"><h2>Eight questions</h2><p class="soft">${missed ? "" : "You missed none: take the event that you were least sure of. "}Say it aloud, or write it down. Notes stay on this machine.</p>
    <div class="questions">${questions.map((one) => html`<${Question} key=${one.key} id=${id} one=${missed ? one : { ...one, help: one.help.replace("the event that you missed", "that event") }} />`)}</div></section>`;
}

function Question({ id, one }) {
  const [change, status] = useLater((text) => api.saveNote(id, one.key, text));
  return html`<div class="question"><label for=${`note-${one.key}`}><strong>${one.text}</strong> <span>${one.help}</span></label>
    <textarea id=${`note-${one.key}`} rows="2" defaultValue=${one.note ?? ""} aria-describedby=${`note-status-${one.key}`}
      onInput=${(event) => change(event.currentTarget.value)}></textarea>
    <p class="status" role="status" id=${`note-status-${one.key}`}>${status}</p></div>`;
}

export function GapLog({ from, first }) {
  const [gaps, setGaps] = useState(first);
  const [text, setText] = useState("");
  const [fault, setFault] = useState(null);
  const attempt = async (act) => {
    try {
      await act();
      setFault(null);
    } catch (error) {
      setFault(error);
    }
  };
  const add = (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    attempt(async () => {
      const added = await api.addGap(text.trim(), from);
      setGaps([...gaps, added]);
      setText("");
      say("Gap noted.");
    });
  };
  const tick = (gap, done) => attempt(async () => {
    const changed = await api.changeGap(gap.id, { done });
    setGaps(gaps.map((one) => (one.id === gap.id ? { ...one, ...changed, done } : one)));
  });
  return html`<section class="panel"><h2>Gap log</h2><p class="soft">What you noticed that you do not know yet. Tick it when you do.</p>
    <form class="inline" onSubmit=${add}><label>A gap <input value=${text} maxlength="400" autocomplete="off" onInput=${(event) => setText(event.currentTarget.value)} /></label><button>Add</button></form>
    ${fault && html`<${Fault} error=${fault} />`}
    ${gaps.length === 0 ? html`<p>No gaps noted.</p>` : html`<ul class="gaps">${gaps.map((gap) => html`<li key=${gap.id}><label class=${gap.done ? "done" : ""}><input type="checkbox" checked=${gap.done}
      onChange=${(event) => tick(gap, event.currentTarget.checked)} /><span>${gap.text}</span></label></li>`)}</ul>`}</section>`;
}

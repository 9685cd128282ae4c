/** Policy as the answer: one file, checked as it is typed, and the whole bank replayed through the engine under it. */

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { say } from "./announce.js";
import { api } from "./api.js";
import { Confirm } from "./dialog.js";
import { Editor, goToLine } from "./editor.js";
import { saveAs } from "./kept.js";
import { Fault, useLoaded } from "./lab.js";
import { useLater } from "./later.js";
import { Replay, yours } from "./replay.js";
import { Breakable, count, plain, Sentence } from "./text.js";

const loadBoth = async () => {
  const [start, draft] = await Promise.all([api.policyStart(), api.policy()]);
  return { start, draft };
};

export function PolicyPage() {
  const { value, error, again } = useLoaded(loadBoth, []);
  return html`<main class="page wide" id="main"><h1>Policy as the answer</h1>
    ${error && html`<${Fault} error=${error} again=${again} />`}
    ${value && html`<${Bench} start=${value.start} draft=${value.draft} />`}</main>`;
}

function Bench({ start, draft }) {
  const [text, setText] = useState(draft.text || start.text);
  const [lint, setLint] = useState(null);
  const [replay, setReplay] = useState(null);
  const [fault, setFault] = useState(null);
  const [busy, setBusy] = useState(false);
  const [asking, setAsking] = useState(false);
  const field = useRef(null);
  const [save, status] = useLater((now) => api.savePolicy(now), 800);
  useLint(text, setLint, setFault);
  const change = (now) => {
    setText(now);
    save(now);
    setFault(null);
    setReplay((before) => before && { ...before, isOld: true });
  };
  const run = async () => {
    setBusy(true);
    setFault(null);
    try {
      const said = await api.replay(text);
      setReplay(said);
      say(`${count(said.leaks.length, "leak")}, ${count(said.breakages.length, "breakage")}; ${said.right} of ${said.total} right.`);
    } catch (error) {
      setReplay(null);
      setFault(error);
    }
    setBusy(false);
  };
  // What comes out stands below the editor: it is led to.
  useEffect(() => {
    const shown = busy ? null : document.querySelector(fault ? ".replay-fault" : "#replay-title");
    if (!shown) return;
    shown.scrollIntoView({ block: "start" });
    if (!fault) shown.focus({ preventScroll: true });
  }, [busy]);
  const begin = () => {
    change(start.text);
    setAsking(false);
  };
  return html`<p class="lead"><${Sentence} text=${start.task} /></p>
    <div class="policy-columns">
      <section class="panel"><div class="event-head"><h2><label for="policy-text">Your policy</label></h2><span class="status" role="status">${status && `Draft ${status}`}</span></div>
        <${Editor} text=${text} change=${change} marked=${lint?.findings ?? []} field=${field} />
        <p class="actions"><button type="button" class="primary" disabled=${busy} onClick=${run}>Replay the bank</button>
          <button type="button" onClick=${() => saveAs(text, "my-policy.yaml", "application/yaml")}>Save as file</button>
          <button type="button" class="quiet" onClick=${() => setAsking(true)}>Start again</button></p></section>
      <div class="policy-side"><${Findings} lint=${lint} go=${(line) => goToLine(field.current, line)} />
        <${Needs} needs=${start.needs} /></div>
    </div>
    ${fault && html`<div class="replay-fault"><${Fault} error=${{ ...fault, message: yours(fault.message), hint: fault.hint }} /></div>`}
    ${replay && html`<${Replay} replay=${replay} go=${(line) => goToLine(field.current, line)} />`}
    ${asking && html`<${Confirm} title="Start again?" text="The text is replaced by the starting text." yes="Start again" onYes=${begin} onNo=${() => setAsking(false)} />`}`;
}

/** Ask a quarter of a second after the last key; an answer that a later text has overtaken is dropped. */
function useLint(text, setLint, setFault) {
  const turn = useRef(0);
  useEffect(() => {
    const mine = ++turn.current;
    const timer = setTimeout(async () => {
      try {
        const said = await api.lint(text);
        if (mine === turn.current) setLint(said);
      } catch (error) {
        if (mine === turn.current) setFault(error);
      }
    }, 250);
    return () => clearTimeout(timer);
  }, [text]);
}

function Findings({ lint, go }) {
  const list = lint?.findings ?? [];
  const words = !lint ? "" : list.length ? `${list.length} ${list.length === 1 ? "finding" : "findings"}` : "Loads, and nothing to remark";
  return html`<section class="panel findings" aria-labelledby="findings-title"><h2 id="findings-title">As you type</h2>
    <p role="status">${words}</p>
    ${list.length > 0 && html`<ol>${list.map((one) => html`<li class=${one.severity}>${one.line ? html`<button type="button" class="link" onClick=${() => go(one.line)}>Line ${one.line}</button>` : "Whole file"}${" "}
      <span class="tag">${one.severity}</span> <code>${one.code}</code><p><${Sentence} text=${yours(one.message)} /></p>${one.better && html`<p class="soft">Better: <${Sentence} text=${one.better} /></p>`}</li>`)}</ol>`}</section>`;
}

/** What the executor needs, in full, so that nobody has to guess. */
function Needs({ needs }) {
  return html`<details class="panel needs" open><summary><h2>What the work needs</h2> <span class="soft">${needs.length} places and programs; scroll for more</span></summary>
    <ul class="scroll" tabindex="0" aria-label="What the work needs">${needs.map((one) => html`<li><p><code><strong><${Breakable} text=${one.host} /></strong></code> <span class="soft">${one.class}, ${one.watched ? "under record" : "straight"}</span></p>
      <p><${Sentence} text=${one.what} /></p>
      <ul>${one.examples.map((example) => html`<li><code><${Breakable} text=${plain(example.attempt)} /></code> <span class="soft">${[example.phase, example.identity === "grader" && "grader", ...example.answers].filter(Boolean).join(", ")}</span></li>`)}</ul></li>`)}</ul>
  </details>`;
}

/** "Run it": the same attempt, made in a real sandbox against the range. What cannot be run yet says so. */

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { say } from "./announce.js";
import { api } from "./api.js";
import { keyHint, useKeys } from "./keys.js";
import { Fault, useLab } from "./lab.js";
import { Foreign, ForeignLines, Sentence } from "./text.js";
import { RightMark, RiskMark, VerdictMark } from "./words.js";

const results = new Map(); // what was run stays shown when one comes back to an event

export function RunIt({ what, live, note }) {
  const { state } = useLab();
  const name = JSON.stringify(what);
  const [result, setResult] = useState(results.get(name) ?? null);
  const [fault, setFault] = useState(null);
  const [busy, setBusy] = useState(false);
  const here = useRef(null);
  const waiting = useWaiting(busy);
  const run = async () => {
    if (busy || starting) return;
    setBusy(true);
    setFault(null);
    say("Running it in the sandbox.");
    try {
      const said = await api.runIt(what);
      if (said.state === "done") results.set(name, said);
      setResult(said);
      say(sayResult(said));
    } catch (error) {
      setFault(error);
    }
    setBusy(false);
  };
  const can = live === "yes" && state.live.state !== "unavailable";
  const starting = can && state.live.state === "starting";
  useKeys((key) => key === "r" && can && (run(), here.current?.scrollIntoView({ block: "nearest" }), true));
  return html`<section class="live" aria-labelledby="live-title" ref=${here}>
    <div class="event-head"><h3 id="live-title">For real</h3>
      ${can && html`<button type="button" onClick=${run} aria-disabled=${busy || starting}>${busy ? "Running" : result ? "Run it again" : "Run it"} ${keyHint("r") && html`<kbd aria-hidden="true">r</kbd>`}</button>`}</div>
    ${!can && html`<p class="waits">${live === "yes" ? `Cannot be run here: ${state.live.why}` : note ?? "This event cannot be run."}</p>`}
    ${can && !starting && !result && !busy && html`<p class="soft">The same attempt, made by a worker in a sealed sandbox against a small internet on this machine. Nothing leaves it.</p>`}
    ${starting && html`<p class="soft" role="status">The sandbox is getting ready; this takes a few seconds after a start.</p>`}
    ${busy && html`<progress class="running" aria-label="Running in the sandbox"></progress>`}
    <p class="soft" role="status">${waiting}</p>
    ${fault && html`<${Fault} error=${fault} />`}
    ${result && html`<${LiveResult} result=${result} />`}
  </section>`;
}

/** Why it takes longer than a moment: others stand before us, or the sandbox is not ready yet. */
function useWaiting(busy) {
  const [words, setWords] = useState("");
  useEffect(() => {
    setWords("");
    if (!busy) return undefined;
    const timer = setInterval(async () => {
      const line = await api.liveLine().catch(() => null);
      if (line?.state === "starting") setWords("The sandbox is getting ready.");
      else setWords(line?.before ? `${line.before} before you.` : "");
    }, 700);
    return () => clearInterval(timer);
  }, [busy]);
  return words;
}

function sayResult(result) {
  if (result.state !== "done") return `It did not run: ${result.why}`;
  const arrived = result.arrived.length ? `${result.arrived.length} arrived at the target` : "nothing arrived at the target";
  if (result.leaked?.length) return `It ran, and leaked though the ledger says that it was refused: ${result.leaked.join("; ")}`;
  return `It ran: ${result.record?.verdict ?? "no record"}, ${arrived}.`;
}

const NOT_DONE = { waits: "Waits for a control that is not built yet", unavailable: "Not available on this machine", failed: "It did not run" };

export function LiveResult({ result }) {
  if (result.state !== "done") return html`<p class="waits"><strong>${NOT_DONE[result.state] ?? result.state}.</strong> ${result.why}</p>`;
  return html`<div class="three">
      <section><h4>The ledger line</h4><${LedgerLine} record=${result.record} records=${result.records} />${result.note && html`<p class="note">${result.note}</p>`}</section>
      <section><h4>What the worker saw</h4>${result.saw.length ? html`<ol class="saw">${result.saw.map((one) => html`<li><span class="tag">${one.step}</span> <${Foreign} text=${one.text} /></li>`)}</ol>` : html`<p>Nothing.</p>`}</section>
      <section><h4>What arrived at the target</h4><${Arrivals} result=${result} /></section>
    </div>
    ${result.leaked?.length > 0 && html`<div class="fault"><strong>It leaked, though the ledger says that it was refused:</strong> <${Foreign} text=${result.leaked.join("; ")} />. Please report this.</div>`}
    <${Agreement} agrees=${result.agrees} />
    <p class="soft">Run <code>${result.run}</code>, ${Math.round(result.ms)} ms; its ledger is ${result.closing?.complete ? "closed and complete" : "not complete"}.</p>`;
}

function LedgerLine({ record, records }) {
  if (!record) return html`<p>No record decides this attempt.</p>`;
  const where = [record.name, record.address, record.port || null].filter(Boolean).join(" · ");
  const request = [record.method, record.path].filter(Boolean).join(" ");
  return html`<p class="marks"><${VerdictMark} verdict=${record.verdict} /> <${RiskMark} risk=${record.risk} /></p>
    <dl class="record">
      <dt>reason</dt><dd><code>${record.reason}</code></dd><dt>control</dt><dd><code>${record.control}</code></dd>
      <dt>rule</dt><dd><code><${Foreign} text=${record.rule ?? "–"} /></code></dd>
      ${where && html`<dt>where</dt><dd><code><${Foreign} text=${where} /></code></dd>`}
      ${request && html`<dt>request</dt><dd><code><${Foreign} text=${request} /></code></dd>`}
      <dt>entry</dt><dd><code>${record.entry}</code></dd><dt>record</dt><dd><code>${record.seq}</code> <time datetime=${record.time}>${record.time.slice(11, 23)}</time></dd>
    </dl>
    <p><${Sentence} text=${record.why} /></p>
    <details><summary>The record as it stands</summary><pre tabindex="0" role="region" aria-label="The record as JSON"><code><${ForeignLines} text=${JSON.stringify(record, null, 1)} /></code></pre></details>
    ${records?.length > 1 && html`<details><summary>All ${records.length} records of this try</summary><pre tabindex="0" role="region" aria-label="All records as JSON"><code><${ForeignLines} text=${records.map((one) => JSON.stringify(one)).join("\n")} /></code></pre></details>`}`;
}

function Arrived({ one }) {
  const where = [one.name, one.address].filter(Boolean).join(" · ");
  return html`<strong><${Foreign} text=${one.what} /></strong> <code><${Foreign} text=${`${where}${one.port ? `:${one.port}` : ""}`} /></code>
    ${one.request && html`<pre><code><${ForeignLines} text=${one.request} /></code></pre>`}${one.bytes != null && html`<span class="soft">${one.bytes} bytes</span>`}`;
}

const AGREES = { true: "agrees", false: "differs" };

/** Each part of the real decision beside the key; what a live try cannot show says so. */
function Agreement({ agrees }) {
  return html`<dl class="agrees"><div><dt>Real decision and key:</dt></div>${Object.entries(agrees ?? {}).map(([part, value]) => html`<div><dt>${part}</dt>
    <dd>${value == null ? "cannot be shown here" : html`<${RightMark} value=${value} word=${AGREES[value]} />`}</dd></div>`)}</dl>`;
}

/** What reached the other side; of attempts by which nothing leaves, what they did. */
function Arrivals({ result: { arrived, ran, asked, record } }) {
  const inside = record?.entry === "dns" ? "The gateway answered the question itself." : "The program was started, inside the room.";
  return html`${arrived.length > 0 ? html`<ul class="arrived">${arrived.map((one) => html`<li><${Arrived} one=${one} /></li>`)}</ul>`
    : ran === true ? html`<p><strong>Nothing leaves by this one.</strong> ${inside}</p>`
      : html`<p><strong>Nothing.</strong> No byte reached it.</p>`}
    ${asked?.length > 0 && html`<p class="soft">The gateway itself looked up, for its decision: <code><${Foreign} text=${asked.join(", ")} /></code></p>`}`;
}

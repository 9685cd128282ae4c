/** What is known of an attempt before the call. Everything here was written by somebody else: text, never markup. */

import { html } from "./vendor/preact-htm.js";
import { Foreign, RequestLine } from "./text.js";
import { VerdictMark } from "./words.js";

const ENTRY = {
  transparent: "straight, without a proxy", "http-proxy": "asked of the HTTP proxy", socks5: "asked of the SOCKS5 proxy", dns: "a name question",
  udp: "a UDP packet", exec: "a command", socket: "a socket",
};

export function EventView({ event, number, count, title, aside }) {
  return html`<section class="panel event" aria-labelledby="event-title">
    <div class="event-head"><h2 id="event-title" tabindex="-1" ref=${title}>Event ${number} <span class="unseen">of ${count}</span></h2>${aside}</div>
    ${event.background?.length > 0 && html`<${Background} lines=${event.background} open=${!event.feedback} />`}
    <dl class="facts">
      <div><dt>Phase</dt><dd><span class="tag">${event.phase}</span></dd></div>
      <div><dt>Identity</dt><dd><span class=${`tag ${event.identity === "grader" ? "strong" : ""}`}>${event.identity}</span></dd></div>
      <div><dt>Entry</dt><dd><span class="tag">${event.entry}</span> ${ENTRY[event.entry] ?? ""}</dd></div>
    </dl>
    <h3 class="label unseen">Attempt</h3>
    <${RequestLine} text=${event.attempt} label="Attempt" />
    <dl class="more">
      ${event.answers?.length > 0 && html`<dt>The name resolves to</dt><dd><code>${event.answers.map((one, at) => html`${at ? ", " : ""}<${Foreign} text=${one} />`)}</code></dd>`}
      ${event.came_from && html`<dt>Next hop of</dt><dd><code><${Foreign} text=${event.came_from} /></code></dd>`}
      ${event.sni && html`<dt>Name in the TLS hello</dt><dd><code><${Foreign} text=${event.sni} /></code></dd>`}
      ${event.carries && html`<dt>A look inside shows</dt><dd><${Foreign} text=${event.carries} /></dd>`}
    </dl>
    ${event.stated_reason && html`<figure class="reason"><figcaption>The ${event.identity} says</figcaption>
      <blockquote><p><${Foreign} text=${event.stated_reason} /></p></blockquote></figure>`}
  </section>`;
}

function Background({ lines, open }) {
  return html`<details class="background" open=${open}><summary>Other traffic, decided already <span class="soft">(${lines.length} lines, of no account for the answer${lines.length > 2 ? "; scroll for more" : ""})</span></summary>
    <ol tabindex="0" aria-label="Other traffic">${lines.map((one) => html`<li><time>${one.time}</time>
      <${VerdictMark} verdict=${one.verdict} /><code><${Foreign} text=${one.text} /></code></li>`)}</ol></details>`;
}

/** The time left of an event, as text and as a bar. It feeds the bonus alone: an answer after it counts as well. */

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { say } from "./announce.js";

/** @param {{limit_s: number | null, event: any}} props `limit_s` as it was set when the round began */
export function Clock({ limit_s, event }) {
  const since = useRef({ index: -1, at: 0 });
  if (since.current.index !== event.index) {
    since.current = { index: event.index, at: performance.now() - (event.shown_ms ?? 0) };
  }
  const [now, setNow] = useState(performance.now());
  const said = useRef(-1);
  const left_s = limit_s ? Math.max(0, limit_s - (now - since.current.at) / 1000) : null;
  useEffect(() => {
    if (!limit_s) return undefined;
    const timer = setInterval(() => setNow(performance.now()), 250);
    return () => clearInterval(timer);
  }, [event.index, limit_s]);
  useEffect(() => {
    if (left_s === null || left_s > 10 || said.current === event.index) return;
    said.current = event.index;
    if (left_s > 0) say("10 seconds left for the bonus.");
  });
  if (!limit_s) return html`<p class="clock none">No clock</p>`;
  const seconds = Math.ceil(left_s);
  return html`<div class=${`clock ${seconds <= 10 ? "late" : ""}`}>
    <p role="timer" aria-live="off">${seconds ? html`<strong>${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}</strong> for the bonus` : "No bonus any more; the answer still counts"}</p>
    <svg class="time-left" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true"><rect width="100" height="1" class="rail" /><rect width=${(100 * left_s) / limit_s} height="1" /></svg>
  </div>`;
}

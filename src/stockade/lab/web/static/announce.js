/** What a screen reader is told without moving the focus. Two regions take turns, so that the same words are said twice. */

import { html, useEffect, useState } from "./vendor/preact-htm.js";

let tell = () => {};

/** @param {string} text */
export const say = (text) => tell(text);

export function Announcer() {
  const [texts, setTexts] = useState(["", ""]);
  useEffect(() => {
    let turn = 0;
    tell = (text) => {
      turn = 1 - turn;
      setTexts(turn ? ["", text] : [text, ""]);
    };
    return () => {
      tell = () => {};
    };
  }, []);
  return html`<div class="unseen" role="status" aria-live="polite">${texts[0]}</div>
    <div class="unseen" role="status" aria-live="polite">${texts[1]}</div>`;
}

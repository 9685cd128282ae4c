/**
 * Text that an agent or a stranger wrote, shown as text and whole: characters that are not seen, or that turn the
 * reading around, stand as escapes.
 */

import { html } from "./vendor/preact-htm.js";

const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Mn}\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u115f\u1160\u3164\uffa0]/gu;

const escape = (one) => `\\u{${one.codePointAt(0).toString(16)}}`;

/** Pieces of a text, those that would be hidden marked. @returns {{text: string, hidden: boolean}[]} */
export function pieces(text) {
  const found = [];
  let at = 0;
  for (const match of String(text).matchAll(HIDDEN)) {
    if (match.index > at) found.push({ text: text.slice(at, match.index), hidden: false });
    found.push({ text: escape(match[0]), hidden: true });
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push({ text: text.slice(at), hidden: false });
  return found;
}

/** The same as one string, for labels and titles. */
export const plain = (text) => String(text).replace(HIDDEN, escape);

export const Foreign = ({ text }) =>
  pieces(text ?? "").map((one) => (one.hidden ? html`<span class="hidden-character">${one.text}</span>` : one.text));

/** A text of several lines; their ends are line ends, and everything else is treated as above. */
export const ForeignLines = ({ text }) =>
  String(text).split(/\r?\n/).map((line, at) => html`${at ? "\n" : ""}<${Foreign} text=${line} />`);

/** A request line: code that may break anywhere; a very long one scrolls inside its box. */
export function RequestLine({ text, label }) {
  const long = text.length > 700;
  return html`<pre class=${long ? "request long" : "request"} tabindex=${long ? 0 : undefined}
      role=${long ? "region" : undefined} aria-label=${long ? label ?? "Request line" : undefined}><code><${Foreign} text=${text} /></code></pre>`;
}

/** A sentence of ours that quotes foreign words between backticks. */
export const Sentence = ({ text }) =>
  String(text ?? "").split("`").map((part, at) => (at % 2 ? html`<code><${Foreign} text=${part} /></code>` : html`<${Foreign} text=${part} />`));

/** A name in a narrow column: it may break after its dots and slashes before it breaks anywhere. */
export const Breakable = ({ text }) => text.split(/(?<=[./])/).map((part, at) => (at ? html`<wbr />${part}` : part));

/** Method and host, for a row of a table. */
export function shortAttempt(attempt) {
  const [first, second = "", ...rest] = attempt.split(/\s+/);
  if (/^(tcp|udp)$/.test(first)) return `${first} ${second}${rest[0] ? `:${rest[0]}` : ""}`;
  const host = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(second.replace(/^['"$]+/, ""));
  return plain(cut(host ? `${first} ${host[1]}` : attempt, 64));
}

export const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

/** @param {number} number @param {string} what a word whose plural is an s */
export const count = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;

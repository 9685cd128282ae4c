/**
 * Running text for the pages: paragraphs, lists and tables from plain strings, with code between backticks. A template
 * would swallow spaces at line ends, and text that is data can be read and checked by itself.
 */

import { html } from "../vendor/preact-htm.js";

export function rich(text) {
  return text.split("`").map((part, number) => (number % 2 ? html`<code>${part}</code>` : part));
}

function block(one) {
  if (typeof one === "string") return html`<p>${rich(one)}</p>`;
  if (one.list) return html`<ul>${one.list.map((item) => html`<li>${rich(item)}</li>`)}</ul>`;
  if (one.steps) return html`<ol>${one.steps.map((item) => html`<li>${rich(item)}</li>`)}</ol>`;
  if (one.words)
    return html`<dl class="words">${one.words.map(([word, text]) => [
      html`<dt>${rich(word)}</dt>`,
      html`<dd>${rich(text)}</dd>`,
    ])}</dl>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${one.caption}>
    <table>
      <caption>${one.caption}</caption>
      <thead><tr>${one.head.map((cell) => html`<th scope="col">${rich(cell)}</th>`)}</tr></thead>
      <tbody>
        ${one.rows.map(
          ([first, ...others]) =>
            html`<tr><th scope="row">${rich(first)}</th>${others.map((cell) => html`<td>${rich(cell)}</td>`)}</tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

export function Section({ id, title, body }) {
  return html`<section aria-labelledby=${id}>
    <h2 id=${id} tabindex="-1">${title}</h2>
    ${body.map(block)}
  </section>`;
}

/** The address stays as it is, since it says which page is open; the heading takes the focus. */
function go(event, id) {
  event.preventDefault();
  show(id);
}

/** Lead to a heading of the page, if it has it. */
export function show(id) {
  const heading = document.getElementById(id);
  heading?.scrollIntoView();
  heading?.focus({ preventScroll: true });
}

export function Contents({ sections, page }) {
  return html`<nav class="contents" aria-label="On this page">
    <ul>
      ${sections.map(
        ({ id, title }) => html`<li><a href=${page} onClick=${(event) => go(event, id)}>${title}</a></li>`,
      )}
    </ul>
  </nav>`;
}

/**
 * A text area with line numbers for a policy. Tab indents; Esc and then Tab leaves, and Shift+Tab always does, so the
 * keyboard is never trapped (WCAG 2.1, success criterion 2.1.2).
 */

import { html, useEffect, useRef } from "./vendor/preact-htm.js";

export function Editor({ text, change, marked, field }) {
  const numbers = useRef(null);
  const leaving = useRef(false);
  const lines = text.split("\n").length;
  const follow = () => {
    numbers.current.scrollTop = field.current.scrollTop;
  };
  useEffect(follow, [text]);
  const onKey = (event) => {
    if (event.key === "Escape") {
      leaving.current = true;
      return;
    }
    const { shiftKey, ctrlKey, altKey, metaKey } = event;
    if (event.key === "Tab" && !leaving.current && !shiftKey && !ctrlKey && !altKey && !metaKey) {
      event.preventDefault();
      insert(field.current, "  ");
      change(field.current.value);
    }
    if (event.key !== "Shift") leaving.current = false;
  };
  const worst = new Map([...marked].sort((one) => (one.severity === "error" ? 1 : -1)).map((one) => [one.line, one.severity]));
  return html`<div class="editor">
    <div class="numbers" ref=${numbers} aria-hidden="true">${Array.from({ length: lines }, (_, at) => html`<span class=${worst.has(at + 1) ? `marked ${worst.get(at + 1)}` : ""}>${at + 1}</span>`)}</div>
    <textarea id="policy-text" ref=${field} value=${text} wrap="off" spellcheck="false" autocapitalize="off" autocomplete="off" rows="24" aria-describedby="editor-help"
      onInput=${(event) => change(event.currentTarget.value)} onKeyDown=${onKey} onScroll=${follow} onBlur=${() => (leaving.current = false)}></textarea></div>
    <p class="note" id="editor-help">Tab indents. Esc, then Tab leaves the editor; Shift+Tab leaves at once.</p>`;
}

/** Put text at the caret so that the browser can undo it, where it still offers the way. */
function insert(area, text) {
  if (document.execCommand?.("insertText", false, text)) return;
  area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
}

/** Put the caret at the start of a line, and the line into view. */
export function goToLine(area, number) {
  const lines = area.value.split("\n");
  const at = lines.slice(0, number - 1).reduce((sum, one) => sum + one.length + 1, 0);
  area.focus();
  area.setSelectionRange(at, at + (lines[number - 1] ?? "").length);
  area.scrollTop = (area.scrollHeight / lines.length) * (number - 1) - area.clientHeight / 3;
}

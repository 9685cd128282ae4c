/** A modal dialog by the browser's own element: it holds the focus, closes on Esc and gives the focus back. */

import { html, useEffect, useRef } from "./vendor/preact-htm.js";

export function Dialog({ title, onClose, children, wide = false }) {
  const box = useRef(null);
  useEffect(() => {
    const dialog = box.current;
    const before = document.activeElement;
    dialog.showModal();
    return () => {
      dialog.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return html`<dialog ref=${box} class=${wide ? "wide" : ""} aria-labelledby="dialog-title" onCancel=${(event) => {
    event.preventDefault();
    onClose();
  }}>
    <header><h2 id="dialog-title">${title}</h2>
      <button type="button" class="quiet" onClick=${onClose}>Close</button></header>
    ${children}
  </dialog>`;
}

export function Confirm({ title, text, yes, onYes, onNo }) {
  return html`<${Dialog} title=${title} onClose=${onNo}>
    <p>${text}</p>
    <p class="actions"><button type="button" class="danger" onClick=${onYes}>${yes}</button>
      <button type="button" onClick=${onNo}>Keep everything</button></p>
  <//>`;
}

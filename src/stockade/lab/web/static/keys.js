/**
 * Single-key shortcuts. They can be switched off (WCAG 2.1, success criterion 2.1.4), never act while text is
 * being typed, and never while a dialog is open.
 */

import { useLayoutEffect, useRef } from "./vendor/preact-htm.js";

let on = true;

/** Here and now; the server keeps it. */
export function switchShortcuts(value) {
  on = value;
}

const TEXT = "textarea, select, [contenteditable], input:not([type=radio], [type=checkbox], [type=button])";

/** @param {KeyboardEvent} event */
function isOurs(event) {
  if (!on || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return false;
  if (event.key.length !== 1 || event.key === " ") return false;
  const at = /** @type {Element} */ (event.target);
  return !at.closest?.(TEXT) && !document.querySelector("dialog[open]");
}

const OWN_LETTERS = ".controls";

/** Among the controls a letter is a control's, and nobody else's. */
const isTaken = (event) => /^[a-z]$/i.test(event.key) && event.target.closest?.(OWN_LETTERS);

/**
 * Act on keys while this component is shown.
 * @param {(key: string, event: KeyboardEvent) => boolean | void} act returns true if it took the key
 * @param {boolean} own it is the one that letters belong to where they have an owner
 */
export function useKeys(act, own = false) {
  const latest = useRef(act);
  latest.current = act;
  // At once with what is shown, so that the first key of a fast hand is not lost.
  useLayoutEffect(() => {
    const listen = (event) => {
      if (isOurs(event) && (own || !isTaken(event)) && latest.current(event.key.toLowerCase(), event)) event.preventDefault();
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, []);
}

/** A key's name beside a button, left out while shortcuts are off. */
export const keyHint = (key) => (on ? key : null);

/** Save what is typed a moment after the last key, and say so. */

import { useEffect, useRef, useState } from "./vendor/preact-htm.js";

/**
 * @param {(text: string) => Promise<any>} save
 * @param {number} wait_ms
 * @returns {[(text: string) => void, string]} call on each change; what to show beside the field
 */
export function useLater(save, wait_ms = 600) {
  const [status, setStatus] = useState("");
  const held = useRef({ timer: 0, text: null, save });
  held.current.save = save;
  const flush = async () => {
    const { text } = held.current;
    clearTimeout(held.current.timer);
    if (text === null) return;
    held.current.text = null;
    try {
      await held.current.save(text);
      setStatus(held.current.text === null ? "saved" : "not saved yet");
    } catch (error) {
      held.current.text ??= text;
      setStatus(`not saved: ${error.message}`);
    }
  };
  const change = (text) => {
    held.current.text = text;
    setStatus("not saved yet");
    clearTimeout(held.current.timer);
    held.current.timer = setTimeout(flush, wait_ms);
  };
  useEffect(() => {
    const leave = () => document.visibilityState === "hidden" && flush();
    document.addEventListener("visibilitychange", leave);
    return () => {
      document.removeEventListener("visibilitychange", leave);
      flush();
    };
  }, []);
  return [change, status];
}

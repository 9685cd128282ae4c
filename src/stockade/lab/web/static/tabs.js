/** Keeps the tabs of this browser in step: who changes something says so, and who gets the focus looks again. */

import { useEffect, useRef } from "./vendor/preact-htm.js";

const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel("stockade-lab") : null;

export const tellOtherTabs = () => channel?.postMessage("changed");

/** Call `look` when another tab changed something or this one is looked at again. */
export function useOtherTabs(look) {
  const latest = useRef(look);
  latest.current = look;
  useEffect(() => {
    const changed = () => latest.current();
    const seen = () => document.visibilityState === "visible" && latest.current();
    channel?.addEventListener("message", changed);
    addEventListener("focus", changed);
    document.addEventListener("visibilitychange", seen);
    return () => {
      channel?.removeEventListener("message", changed);
      removeEventListener("focus", changed);
      document.removeEventListener("visibilitychange", seen);
    };
  }, []);
}

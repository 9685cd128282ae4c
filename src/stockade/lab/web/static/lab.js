/** What every page knows: the server's state, and how to look at it again. */

import { createContext, html, useContext, useEffect, useState } from "./vendor/preact-htm.js";
import { api } from "./api.js";
import { paint } from "./kept.js";
import { switchShortcuts } from "./keys.js";
import { tellOtherTabs, useOtherTabs } from "./tabs.js";

/**
 * @typedef {object} Lab
 * @property {any} state what GET /api/state said
 * @property {() => Promise<void>} refresh
 * @property {"round" | "drill" | null} playing what the page that is open shows
 * @property {(kind: "round" | "drill" | null) => void} setPlaying
 */
const LabContext = createContext(null);

/** @returns {Lab} */
export const useLab = () => useContext(LabContext);

export function LabProvider({ children }) {
  const [state, setState] = useState(null);
  const [fault, setFault] = useState(null);
  const [playing, setPlaying] = useState(null);
  const refresh = async () => {
    try {
      const now = await api.state();
      apply(now.settings);
      setState(now);
      setFault(null);
    } catch (error) {
      setFault(error);
    }
  };
  useEffect(() => void refresh(), []);
  useOtherTabs(refresh);
  // The sandbox gets ready in the background: look until it is, so that no page says "starting" for ever.
  const starting = state?.live?.state === "starting";
  useEffect(() => {
    if (!starting) return undefined;
    const timer = setTimeout(refresh, 1500);
    return () => clearTimeout(timer);
  }, [state]);
  if (!state) {
    return fault ? html`<main class="page" id="main"><h1>Stockade lab</h1><${Fault} error=${fault} again=${refresh} /></main>` : null;
  }
  return html`<${LabContext.Provider} value=${{ state, refresh, playing, setPlaying }}>
    ${fault && html`<${Fault} error=${fault} again=${refresh} />`}${children}<//>`;
}

function apply({ theme, shortcuts }) {
  paint(theme);
  switchShortcuts(shortcuts === "on");
}

/** Tell the header what is played. @param {"round" | "drill" | undefined} kind */
export function usePlaying(kind) {
  const { setPlaying } = useLab();
  useEffect(() => {
    setPlaying(kind ?? null);
    return () => setPlaying(null);
  }, [kind]);
}

/** Settings of the learner, kept on the server, so that they hold whatever address it has the next time. */
export function useSettings() {
  const { state, refresh } = useLab();
  const [fault, setFault] = useState(null);
  const change = async (changed) => {
    apply({ ...state.settings, ...changed }); // at once: the next key may be one that is switched off
    try {
      await api.changeSettings(changed);
      setFault(null);
      tellOtherTabs();
    } catch (error) {
      setFault(error);
    }
    await refresh();
  };
  return { settings: state.settings, change, fault };
}

/** A refusal or a fault, said plainly. */
export function Fault({ error, again }) {
  return html`<div class="fault" role="alert"><p><strong>${error.message}</strong>${error.hint && html` ${error.hint}`}</p>
    ${again && html`<button type="button" onClick=${again}>Try again</button>`}</div>`;
}

/** Load something for a page, and again when another tab changed it. */
export function useLoaded(load, keys) {
  const [held, setHeld] = useState({ value: null, error: null });
  const [turn, setTurn] = useState(0);
  const again = () => setTurn((one) => one + 1);
  useEffect(() => {
    let current = true;
    load().then(
      (value) => current && setHeld({ value, error: null }),
      (error) => current && setHeld((before) => ({ value: before.value, error })),
    );
    return () => {
      current = false;
    };
  }, [...keys, turn]);
  /** @param {(now: any) => any} change from what is held now, which may be newer than what the caller saw */
  const set = (change) => setHeld((now) => ({ value: change(now.value), error: null }));
  return { ...held, set, again };
}

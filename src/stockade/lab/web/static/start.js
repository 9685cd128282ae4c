/** The start: what this is, a tier, a round; and the way to everything else. */

import { html, useRef, useState } from "./vendor/preact-htm.js";
import { api } from "./api.js";
import { DrillButtons } from "./drill.js";
import { Fault, useLab } from "./lab.js";
import { href, go } from "./router.js";
import { ClockChoice } from "./settings.js";
import { keep, recall } from "./kept.js";
import { tellOtherTabs } from "./tabs.js";

const SUBTLETY = {
  1: "A listed host, an unknown one, the metadata address.",
  2: "Right place, wrong operation; right request, wrong phase.",
  3: "Odd spellings, redirects, addresses behind a permitted name.",
  4: "The stated reason always sounds good.",
};

export function StartPage() {
  const { state, refresh } = useLab();
  const [tier, setTier] = useState(recall("tier", 1));
  const [seed, setSeed] = useState("");
  const [fault, setFault] = useState(null);
  const [busy, setBusy] = useState(false);
  const field = useRef(null);
  const [seedOpen, setSeedOpen] = useState(false);
  const wrongSeed = fault?.code === "bad-seed";
  const typeSeed = (text) => {
    setSeed(text);
    if (wrongSeed) setFault(null);
  };
  const start = async (event) => {
    event.preventDefault();
    setBusy(true);
    setFault(null);
    try {
      keep("tier", tier);
      const round = await api.startRound(tier, seed.trim());
      await refresh();
      tellOtherTabs();
      go("round", round.id);
    } catch (error) {
      setFault(error);
      setBusy(false);
      if (error.code === "bad-seed") {
        setSeedOpen(true);
        field.current?.focus();
      }
    }
  };
  return html`<main class="page" id="main">
    <h1>Make the call on an agent’s traffic</h1>
    <p class="lead">An agent’s executor keeps reaching out. For each attempt you decide whether it may pass, what the risk is, and which
      control fits; then you see what Stockade’s engine says, why, and what really happens when the same attempt is made in a sealed sandbox.</p>
    <p class="beginner"><strong>New here?</strong> Read <a href=${href("about")}>About</a> first, ten minutes: the words, and <a href=${href("about", "about-points")}>how points work</a>. Then begin with tier 1.</p>
    ${state.open_round && html`<${Resume} id=${state.open_round} refresh=${refresh} />`}
    <div class="start-columns">
      <form class="panel" onSubmit=${start}>
        <h2>A round of nine events</h2>
        <fieldset class="tiers"><legend>Tier</legend>${state.tiers.map((one) => html`<${Tier} one=${one} chosen=${tier === one.tier}
          best=${state.progress.best?.[one.tier]} choose=${() => setTier(one.tier)} clock=${state.settings.clock} />`)}</fieldset>
        <details class="seed" open=${seedOpen} onToggle=${(event) => setSeedOpen(event.currentTarget.open)}><summary>Play the same round as others</summary>
          <label>Seed <input value=${seed} maxlength="64" autocomplete="off" spellcheck="false" aria-describedby="seed-help seed-fault" aria-invalid=${wrongSeed} ref=${field}
            onInput=${(event) => typeSeed(event.currentTarget.value)} /></label>
          <p class="field-fault" id="seed-fault" role="alert">${wrongSeed && `${fault.message}${fault.hint ? `, ${fault.hint}` : ""}`}</p>
          <p class="note" id="seed-help">1 to 32 letters from a to z, digits, hyphens, underscores or dots. The same seed and tier draw the same nine events on every machine with this bank.</p></details>
        <p class="actions"><button class="primary" disabled=${busy}>Play a round</button>
          ${state.open_round && html`<span class="soft">An open round or drill is broken off by a new one.</span>`}</p>
        ${fault && !wrongSeed && html`<${Fault} error=${fault} />`}
      </form>
      <div class="start-side">
        <section class="panel"><h2>Drills</h2><p>Up to ten events, no clock, no grade. What you miss comes back when it is due.</p>
          <${DrillButtons} /></section>
        <section class="panel"><h2>Also here</h2><ul class="ways">
          <li><a href=${href("policy")}>Policy as the answer</a> – write one policy, and the whole bank is replayed through it</li>
          <li><a href=${href("workshop")}>Workshop</a> – a guided half day that ends with your own evidence record</li>
          <li><a href=${href("progress")}>Progress</a> – ${state.progress.rounds} ${state.progress.rounds === 1 ? "round" : "rounds"}, ${state.progress.answered} answers so far</li>
          <li><a href=${href("reference")}>Reference</a> – every control and risk, with an example</li>
          <li><a href=${href("about")}>About</a> – what is real here, and what touches a network</li></ul></section>
        <section class="panel"><${ClockChoice} /></section>
      </div>
    </div>
    <p class="note">Bank: ${state.bank.name}, ${state.bank.count} events, digest <code>${state.bank.digest.slice(0, 12)}</code>. Version ${state.version}.
      ${" "}<${LiveState} live=${state.live} /></p>
  </main>`;
}

function Tier({ one, chosen, choose, best, clock }) {
  const time = !one.clock_s || clock === "off" ? "No clock" : `${one.clock_s * (clock === "double" ? 2 : 1)} seconds an event for the bonus`;
  const noise = one.noise ? `${one.noise} lines of other traffic` : "no other traffic";
  return html`<label class="tier"><input type="radio" name="tier" value=${one.tier} checked=${chosen} onChange=${choose} />
    <span><strong>Tier ${one.tier} · ${one.label.split(",")[0]}</strong>
      ${best && html` <span class="best">best ${best}</span>`}
      <small>${SUBTLETY[one.tier] ?? ""} ${time}, ${noise}.</small></span></label>`;
}

function Resume({ id, refresh }) {
  const [fault, setFault] = useState(null);
  const leave = async () => {
    try {
      await api.leave(id);
      tellOtherTabs();
      await refresh();
    } catch (error) {
      setFault(error);
    }
  };
  return html`<section class="banner" aria-label="Still open"><p><strong>A round or drill is open.</strong> It goes on where you left it.</p>
    <p class="actions"><a class="button primary" href=${href("round", id)}>Resume</a>
      <button type="button" onClick=${leave}>Break it off</button></p>${fault && html`<${Fault} error=${fault} />`}</section>`;
}

export function LiveState({ live }) {
  if (live.state === "ready") return html`<span>“Run it” is ready.</span>`;
  if (live.state === "starting") return html`<span>“Run it” is getting its sandbox ready.</span>`;
  return html`<span>“Run it” is not available here: ${live.why}</span>`;
}

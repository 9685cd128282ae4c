/** The 24 controls: grouped, each with when it is *the* control, to be found by letter, by arrow or by typing. */

import { html, useMemo, useRef, useState } from "./vendor/preact-htm.js";
import { keep, recall } from "./kept.js";
import { keyHint, useKeys } from "./keys.js";
import { groupControls } from "./words.js";

export function ControlGroup({ controls, chosen, choose }) {
  const groups = useMemo(() => groupControls(controls), [controls]);
  const [filter, setFilter] = useState("");
  const [told, setTold] = useState(recall("control-help", false));
  const [at, setAt] = useState(null);
  const box = useRef(null);
  const field = useRef(null);
  const wanted = filter.trim().toLowerCase();
  const fits = (one) => !wanted || `${one.word} ${one.shown} ${one.help}`.toLowerCase().includes(wanted);
  const found = groups.flatMap((group) => group.controls).filter(fits);

  const take = (word) => {
    choose(word);
    setFilter("");
    const focus = () => box.current?.querySelector(`input[value="${CSS.escape(word)}"]`)?.focus();
    if (wanted) requestAnimationFrame(focus); // after the list is whole again
    else focus();
  };
  useKeys((key) => {
    if (key === "/") return field.current.focus(), true;
    if (!box.current.contains(document.activeElement)) return false;
    const one = groups.flatMap((group) => group.controls).find((control) => control.key === key);
    return one ? (take(one.word), true) : false;
  }, true);
  const inFilter = (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      if (found.length && wanted) take(found[0].word);
    } else if (event.key === "Escape" && filter) {
      event.preventDefault();
      event.stopPropagation();
      setFilter("");
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      box.current.querySelector("input[type=radio]")?.focus();
    }
  };
  const leave = (event) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    const decision = box.current.closest("form").querySelector("input[name=decision]:checked, input[name=decision]");
    decision.focus();
  };
  const look = (event) => {
    const input = event.target.closest("label.control")?.querySelector("input");
    if (input) setAt(input.value);
  };
  const tell = (event) => {
    setTold(event.currentTarget.checked);
    keep("control-help", event.currentTarget.checked);
  };
  return html`<fieldset class=${told ? "controls" : "controls untold"} ref=${box} onKeyDown=${leave}><legend>Control that fits best ${keyHint("c") && html`<kbd aria-hidden="true">c</kbd>`}</legend>
    <div class="finding"><label class="filter"><span>Filter</span> <input type="search" value=${filter} ref=${field} autocomplete="off" spellcheck="false"
      onInput=${(event) => setFilter(event.currentTarget.value)} onKeyDown=${inFilter} />
      ${keyHint("/") && html`<kbd aria-hidden="true">/</kbd>`}</label>
    <label class="switch"><input type="checkbox" checked=${told} onChange=${tell} /> What each means</label></div>
    <p class="unseen" role="status">${wanted ? `${found.length} ${found.length === 1 ? "control fits" : "controls fit"}` : ""}</p>
    ${chosen && !found.some((one) => one.word === chosen) && html`<p class="help-line">Chosen: <strong>${chosen}</strong></p>`}
    ${!told && html`<p class="help-line meant" aria-hidden="true">${meant(controls, at ?? chosen)}</p>`}
    <div class="control-groups" onPointerMove=${look} onPointerLeave=${() => setAt(null)} onFocusIn=${look} onFocusOut=${() => setAt(null)}>${groups.map((group) => {
      const shown = group.controls.filter(fits);
      return shown.length > 0 && html`<div class="control-group" role="group" aria-label=${group.name} key=${group.name}><p class="label" aria-hidden="true">${group.name}</p>
        ${shown.map((one) => html`<label class="choice control" key=${one.word} title=${one.unless}>
          <input type="radio" name="control" value=${one.word} checked=${chosen === one.word} aria-describedby=${`help-${one.word}`}
            aria-labelledby=${`word-${one.word}`} onChange=${() => choose(one.word)} />
          ${keyHint(one.key) && html`<kbd aria-hidden="true">${one.key}</kbd>`}<span class="control-text"><span class="word" id=${`word-${one.word}`}>${one.word}</span>
            <small id=${`help-${one.word}`}>${one.help}</small></span></label>`)}</div>`;
    })}</div>
    ${!found.length && html`<p class="soft">No control has these letters.</p>`}</fieldset>`;
}

/** One line for the control that is pointed at, has the focus or is chosen; the line is there before, so that nothing jumps. */
function meant(controls, word) {
  const one = controls.find((control) => control.word === word);
  return one ? html`<strong>${one.word}</strong>: ${one.help}` : "Point at a control, or go to it, to read what it means.";
}

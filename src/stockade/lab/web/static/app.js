/** The shell: header, navigation, the page of the route, and where the focus goes when the page changes. */

import { html, render, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { Announcer } from "./announce.js";
import { DebriefPage } from "./debrief.js";
import { DrillPage } from "./drill.js";
import { HelpDialog } from "./help.js";
import { useKeys } from "./keys.js";
import { LabProvider, useLab } from "./lab.js";
import { LearnerDialog } from "./learner.js";
import { AboutPage } from "./pages/about.js";
import { ReferencePage } from "./pages/reference.js";
import { WorkshopPage } from "./pages/workshop.js";
import { PlayPage } from "./play.js";
import { PolicyPage } from "./policy.js";
import { ProgressPage } from "./progress.js";
import { href, useRoute } from "./router.js";
import { SettingsDialog } from "./settings.js";
import { StartPage } from "./start.js";

const PAGES = [
  ["", "Play"], ["drill", "Drill"], ["policy", "Policy"], ["progress", "Progress"], ["workshop", "Workshop"], ["reference", "Reference"], ["about", "About"],
];

function pageOf([name = "", id, part]) {
  if (name === "round" && id) {
    return part === "debrief" ? html`<${DebriefPage} key=${id} id=${id} />` : html`<${PlayPage} key=${id} id=${id} />`;
  }
  if (name === "drill") return html`<${DrillPage} />`;
  if (name === "policy") return html`<${PolicyPage} />`;
  if (name === "progress") return html`<${ProgressPage} />`;
  if (name === "workshop") return html`<${WorkshopPage} />`;
  if (name === "about") return html`<${AboutPage} at=${id} />`;
  if (name === "reference") return html`<${ReferencePage} />`;
  if (name === "") return html`<${StartPage} />`;
  return html`<main class="page" id="main"><h1>No such page</h1><p><a href=${href()}>To the start</a></p></main>`;
}

function Shell() {
  const route = useRoute();
  const { state, playing } = useLab();
  const [open, setOpen] = useState(null);
  const close = () => setOpen(null);
  useKeys((key) => key === "?" && (setOpen("help"), true));
  const here = route[0] === "round" ? (playing === "drill" ? "drill" : "") : route[0] ?? "";
  useFocusOnPage(route);
  useHereInView(here);
  return html`<a class="skip" href="#main" onClick=${skip}>Skip to the page</a>
    <header class="top">
      <a class="brand" href=${href()}>Stockade <span>lab</span></a>
      <nav aria-label="Pages"><ul>${PAGES.map(([name, text]) => html`<li>
        <a href=${name ? href(name) : href()} aria-current=${name === here ? "page" : undefined}>${text}</a></li>`)}</ul></nav>
      <div class="tools">
        <button type="button" class="quiet" onClick=${() => setOpen("learner")}><span class="soft">Learner:</span> ${state.learner.name}</button>
        <button type="button" class="quiet" onClick=${() => setOpen("settings")}>Settings</button>
        <button type="button" class="quiet" onClick=${() => setOpen("help")}>Keys <kbd aria-hidden="true">?</kbd></button>
      </div>
    </header>
    ${pageOf(route)}
    ${open === "help" && html`<${HelpDialog} onClose=${close} />`}
    ${open === "settings" && html`<${SettingsDialog} onClose=${close} />`}
    ${open === "learner" && html`<${LearnerDialog} onClose=${close} />`}`;
}

function skip(event) {
  event.preventDefault(); // the hash belongs to the router
  const main = document.getElementById("main");
  main.tabIndex = -1;
  main.focus();
}

/** On a narrow screen the header is one line that scrolls: the page that is open is to be seen in it. */
function useHereInView(here) {
  useLayoutEffect(() => {
    const link = document.querySelector(".top a[aria-current]"), top = document.querySelector(".top");
    if (link) top.scrollLeft = link.offsetLeft - top.clientWidth / 3;
  }, [here]);
}

/** A new page begins at its heading, as a loaded one would. */
function useFocusOnPage(route) {
  const name = route.join("/");
  const before = useRef(name);
  useLayoutEffect(() => {
    const title = document.querySelector("main h1");
    document.title = title ? `${title.textContent} · Stockade lab` : "Stockade lab";
    if (before.current === name) return;
    before.current = name;
    scrollTo(0, 0);
    if (title) {
      title.tabIndex = -1;
      title.focus({ preventScroll: true });
    }
  }, [name]);
}

const root = document.getElementById("app");
root.textContent = "";
render(html`<${LabProvider}><${Shell} /><//><${Announcer} />`, root);

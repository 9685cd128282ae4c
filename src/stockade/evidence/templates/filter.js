"use strict";
// The page is whole without this: it only hides what does not fit the filter.
const form = document.querySelector(".filter");
const items = [...document.querySelectorAll("[data-text]")];
const output = form.querySelector("output");

function apply() {
  const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
  const result = form.elements.result.value;
  const group = form.elements.group.value;
  let shown = 0;
  for (const item of items) {
    const fits =
      (!result || item.dataset.result === result) &&
      (!group || item.dataset.group === group) &&
      words.every((word) => item.dataset.text.includes(word));
    item.hidden = !fits;
    if (fits && item.tagName === "TR") shown += 1;
  }
  const left = new Set(items.filter((item) => !item.hidden).map((item) => item.dataset.group));
  for (const heading of document.querySelectorAll("h3.group")) heading.hidden = !left.has(heading.dataset.group);
  output.value = `${shown} of ${items.length / 2} shown`;
}

function openTarget() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.tagName === "DETAILS") target.open = true;
}

form.hidden = false;
form.addEventListener("input", apply);
form.addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("hashchange", openTarget);
window.addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll("details")) one.open = true;
});
apply();
openTarget();

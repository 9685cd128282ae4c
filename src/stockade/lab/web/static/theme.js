// Runs before the first paint, so that a chosen theme does not flash in late. A classic script for that reason.
try {
  const chosen = localStorage.getItem("stockade-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden: then the system's choice holds.
}

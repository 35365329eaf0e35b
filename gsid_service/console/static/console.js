// Live updates, the panel beside the map, and what forms alone cannot do.
// Without this file every page still shows its tables and takes its forms.
"use strict";

const byId = (id) => document.getElementById(id);
const own = document.body.dataset.network;

// The page anew: every part marked data-swap that differs is exchanged, the rest stays as it is.

let refreshing = false;
let again = false;

async function refresh() {
  if (refreshing) {
    again = true;
    return;
  }
  refreshing = true;
  try {
    do {
      again = false;
      const response = await fetch(location.href, { headers: { accept: "text/html" } });
      if (response.redirected) location.reload(); // signed out meanwhile
      if (!response.ok) return;
      swap(new DOMParser().parseFromString(await response.text(), "text/html"));
    } while (again);
  } catch {
    // The server is away; the event source says so, and tells what was missed when it is back.
  } finally {
    refreshing = false;
  }
}

function swap(fresh) {
  document.title = fresh.title;
  for (const part of document.querySelectorAll("[data-swap]")) {
    const other = fresh.getElementById(part.id);
    if (!other || part.innerHTML === other.innerHTML || isBusy(part)) continue;
    const focused = part.contains(document.activeElement) ? document.activeElement.id : null;
    part.replaceChildren(...other.childNodes);
    for (const [name, value] of Object.entries(other.dataset)) part.dataset[name] = value;
    if (focused) byId(focused)?.focus();
  }
  const shape = byId("summary")?.dataset.shape;
  for (const map of document.querySelectorAll(".map")) {
    if (shape && shape !== map.dataset.shape) drawMap(map);
  }
}

// Nobody loses what they are writing, have just chosen or unfolded.
function isBusy(part) {
  const fields = [...part.querySelectorAll("input, textarea, select")];
  const isTouched = (field) => field.value !== (field.defaultValue ?? field.value) || field.checked !== field.defaultChecked;
  return fields.some((field) => field === document.activeElement || isTouched(field))
    || part.querySelector("details[open]") !== null;
}

// Events

let source = null;

function listen() {
  source = new EventSource(`/events?known=${document.body.dataset.known}`);
  source.addEventListener("change", (event) => {
    const { network } = JSON.parse(event.data);
    if (!own || (own !== network && ![own, network].includes("*"))) return;
    const begun = performance.now();
    for (const map of document.querySelectorAll(".map")) {
      updateMarks(map).then(() => {
        document.body.dataset.drawnMs = (performance.now() - begun).toFixed(1);
      });
    }
    refresh();
    refreshPanel();
  });
  source.onopen = () => show("");
  source.onerror = () => {
    show("connection lost, trying again …");
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  };
}

// A browser has few connections to one host: a page that nobody sees holds none.
document.addEventListener("visibilitychange", () => {
  if (!document.body.dataset.live) return;
  source?.close();
  if (!document.hidden) listen();
});

function show(text) {
  const place = byId("connection");
  if (place) place.textContent = text;
  document.body.classList.toggle("offline", text !== "");
}

// The panel: what was chosen on the map or in a table, without leaving the page

let panelUrl = null;

async function openPanel(url) {
  panelUrl = url;
  history.replaceState(null, "", `#${encodeURIComponent(url)}`);
  await refreshPanel();
  byId("panel").scrollTop = 0;
}

async function refreshPanel() {
  const panel = byId("panel");
  if (!panel || !panelUrl) return;
  const asked = panelUrl;
  try {
    const response = await fetch(asked, { headers: { accept: "text/html" } });
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    const thing = fresh.getElementById("thing") ?? fresh.querySelector("main .card");
    if (thing && asked === panelUrl) panel.replaceChildren(...thing.childNodes);
  } catch {
    // As above: the connection's line says that the server is away.
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-panel], #panel a[href*='/fact?'], #panel a[href*='/entity?']");
  if (!link || !byId("panel") || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  openPanel(link.getAttribute("href"));
});

document.addEventListener("map:choose", (event) => {
  if (byId("panel")) openPanel(event.detail);
  else location.href = event.detail;
});

// Small things

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = !navigator.clipboard; // which browsers leave out where there is no TLS
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(byId(button.dataset.copy).textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy the fix"; }, 2000);
  });
}

for (const area of document.querySelectorAll("[data-drop]")) {
  area.addEventListener("dragover", (event) => event.preventDefault());
  area.addEventListener("drop", async (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    area.value = await file.text();
  });
}

const theme = byId("theme");
if (theme) {
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
  });
}

function tellTime() {
  for (const time of document.querySelectorAll("[data-ago]")) {
    const seconds = Math.max(0, (Date.now() - Date.parse(time.dateTime)) / 1000);
    const [unit, size] = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]].find(([, size]) => seconds >= size) ?? ["s", 1];
    const text = `${Math.floor(seconds / size)} ${unit} ago`;
    if (time.textContent !== text) time.textContent = text;
  }
}
setInterval(tellTime, 5000);

document.querySelectorAll(".map").forEach(drawMap);
if (document.body.dataset.live) listen();
openLast();

// What was chosen when the page was left or its address was copied.
function openLast() {
  const map = document.querySelector(".map");
  if (!byId("panel") || !map) return;
  const chosen = [map.dataset.entity, map.dataset.fact].some((path) => location.hash.startsWith(`#${encodeURIComponent(`${path}?`)}`));
  if (chosen) openPanel(decodeURIComponent(location.hash.slice(1)));
}
